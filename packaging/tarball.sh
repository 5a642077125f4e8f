#!/usr/bin/env bash
# Makes a tarball of the tree of stage.sh. Usage: tarball.sh FOLDER NAME OUTPUT_FOLDER
# Reproducible: order, owner and times are fixed (SOURCE_DATE_EPOCH).
set -euo pipefail

folder=$1
name=$2
output=$3

mkdir -p "$output"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --format=gnu \
  --mtime="@${SOURCE_DATE_EPOCH:?the time of every file, seconds since 1970}" \
  --transform="s,^\.,$name," --directory="$folder" . | gzip --no-name >"$output/$name.tar.gz"
echo "$output/$name.tar.gz"
