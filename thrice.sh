#!/bin/sh
# Runs a command that needs the network: up to three times, with a pause, until it succeeds. Its last exit code counts.
# Usage: thrice.sh COMMAND [ARGUMENT…]
set -u
for pause_s in 5 20; do
  "$@" && exit 0
  echo "\`$1\` failed with exit code $?; again in $pause_s s" >&2
  sleep "$pause_s"
done
exec "$@"
