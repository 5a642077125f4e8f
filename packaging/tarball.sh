#!/usr/bin/env bash
# A tarball of what stage.sh laid out. Usage: tarball.sh FOLDER NAME OUTPUT_FOLDER
# The same files give the same bytes: order, owner and times are fixed (SOURCE_DATE_EPOCH).
set -euo pipefail

folder=$1
name=$2
output=$3

mkdir -p "$output"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --format=gnu \
  --mtime="@${SOURCE_DATE_EPOCH:?the time of every file, seconds since 1970}" \
  --transform="s,^\.,$name," --directory="$folder" . | gzip --no-name >"$output/$name.tar.gz"
echo "$output/$name.tar.gz"
