#!/usr/bin/env bash
# Creates the file tree of a package, for `make packages` and its test. Usage: stage.sh BINARY FOLDER
#
#   FOLDER/bin/fairground                     the program, without its symbols
#   FOLDER/share/man/man1/*.1                 its man pages, from its own definitions
#   FOLDER/share/{bash-completion,zsh,fish}/  its completion scripts, likewise
#   FOLDER/share/doc/fairground/              the documentation and the licences
set -euo pipefail
# Files get the permissions of a package, independent of the umask.
umask 022

binary=$(realpath "$1")
folder=$2
source=$(dirname "$(dirname "$(realpath "$0")")")

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/share/man/man1" "$folder/share/bash-completion/completions" \
  "$folder/share/zsh/vendor-completions" "$folder/share/fish/vendor_completions.d" "$folder/share/doc/fairground"

strip -o "$folder/bin/fairground" "$binary"
"$binary" man "$folder/share/man/man1"
"$binary" completions bash >"$folder/share/bash-completion/completions/fairground"
"$binary" completions zsh >"$folder/share/zsh/vendor-completions/_fairground"
"$binary" completions fish >"$folder/share/fish/vendor_completions.d/fairground.fish"

doc=$folder/share/doc/fairground
cp "$source"/{README.md,CHANGELOG.md,ARCHITECTURE.md,LICENSE-APACHE,LICENSE-MIT} "$doc/"
cp -r "$source/docs" "$doc/docs"
cp "$source/packaging/copyright" "$doc/COPYRIGHT"
mkdir -p "$doc/experiments/profiles"
cp "$source"/experiments/profiles/*.toml "$doc/experiments/profiles/"
cp "$source/policies/LICENSE" "$doc/LICENSE-GPL-2.0"
cp "$source"/crates/report/assets/{echarts.LICENSE,echarts.NOTICE,arimo.LICENSE} "$doc/"
(cd "$source" && packaging/licences.py "$(realpath "$doc")/crates")
chmod -R u=rwX,go=rX "$folder"
