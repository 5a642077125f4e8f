#!/bin/sh
# Notes that a check cannot run on this machine, and fails where it must run.
# Usage: tests/unavailable.sh NAME WHAT REASON
#
#   NAME    what is missing, one of the names below
#   WHAT    the check
#   REASON  why it is missing and how to get it; its first line is kept
#
# Appends a line to target/unavailable.txt (FAIRGROUND_UNAVAILABLE), which `make test` prints at its end. The exit code
# is 1 where FAIRGROUND_REQUIRE has the name:
#
#   all     everything that make can install, fetch or build; the default where CI=true
#   NAME,…  these, e.g. `all,recording` on a machine that can record
#   none    nothing; the default elsewhere
set -eu

name=$1 what=$2
IFS= read -r reason <<EOF
$3
EOF
case $name in
kernel | originals | browser | shell | archive-tool | python | third-party | trace-cmd | licences | network | release) kind=all ;;
recording | control-groups | root | user-notification | sched-ext) kind=machine ;;
*)
  echo "$0: unknown name \`$name\`" >&2
  exit 2
  ;;
esac

list=${FAIRGROUND_UNAVAILABLE:-$(dirname "$0")/../target/unavailable.txt}
mkdir -p "$(dirname "$list")"
printf '%s: %s: %s\n' "$name" "$what" "$reason" >>"$list"

default=none
[ "${CI:-}" != true ] || default=all
case ",${FAIRGROUND_REQUIRE:-$default}," in
*,"$name",* | *,"$kind",*)
  echo "$what cannot run: $name: $reason" >&2
  echo "FAIRGROUND_REQUIRE=${FAIRGROUND_REQUIRE:-$default} (CI=${CI:-}) requires it." >&2
  exit 1
  ;;
esac
echo "skipped: $what: $name: $reason"
