#!/usr/bin/env bash
# Installs the given Debian packages that are missing, and checks that there is a Rust toolchain.
# Usage: setup.sh RUST_VERSION PACKAGE...
# Prints nothing if nothing is missing. Without root it lists the missing packages and exits with 2.
set -euo pipefail

rust_version=$1
shift

missing=()
for package in "$@"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done

if ((${#missing[@]})); then
  if ((EUID == 0)); then
    as_root=()
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo)
  else
    echo "fairground needs these Debian packages: ${missing[*]}" >&2
    echo "Installing them requires root. Run:  sudo apt-get install ${missing[*]}" >&2
    echo "and then this command again." >&2
    exit 2
  fi
  echo "Installing Debian packages: ${missing[*]}"
  "$(dirname "$0")/thrice.sh" "${as_root[@]}" sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null' sh "${missing[@]}"
fi

if ! command -v cargo >/dev/null; then
  echo "fairground needs Rust $rust_version or newer, but there is no cargo on this machine." >&2
  echo "Install it (no root needed):  curl -sSf https://sh.rustup.rs | sh -s -- -y --default-toolchain $rust_version" >&2
  echo "and then run this command again." >&2
  exit 2
fi
