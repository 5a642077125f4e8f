#!/usr/bin/env bash
# Unpacks packages and runs their contents with an empty environment. Usage: check.sh PACKAGE...
set -euo pipefail

for package in "$@"; do
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  case $package in
    *.deb)
      dpkg-deb -x "$package" "$folder"
      depends=$(dpkg-deb -f "$package" Depends)
      [ -z "$depends" ] || { echo "$package depends on $depends: it must be static" >&2; exit 1; }
      binary=$folder/usr/bin/fairground
      share=$folder/usr/share
      ;;
    *.tar.gz)
      tar -xzf "$package" -C "$folder" --strip-components=1
      binary=$folder/bin/fairground
      share=$folder/share
      ;;
    *.whl)
      python3 -m venv "$folder"
      "$folder/bin/pip" install --quiet --disable-pip-version-check --no-index --no-deps "$package"
      env -i "$folder/bin/python" -c 'import fairground; assert len(fairground.simulate("hogs:2", duration="1s").groups) > 0'
      env -i "$folder/bin/python" -c 'import fairground; assert any("slice-2009" in row for table in fairground.reproduce().tables for row in table.rows)'
      [ -e "$folder"/share/doc/fairground/COPYRIGHT ] || { echo "$package has no licences" >&2; exit 1; }
      [ -e "$folder"/lib/python3*/site-packages/fairground/py.typed ] || { echo "$package has no py.typed" >&2; exit 1; }
      echo "$package: hogs:2 ran, $(du -h "$package" | cut -f1)"
      rm -rf "$folder"
      continue
      ;;
    *)
      echo "$package: neither .deb nor .tar.gz nor .whl" >&2
      exit 2
      ;;
  esac
  for part in man/man1/fairground.1 man/man1/fairground-run.1 bash-completion/completions/fairground \
    zsh/vendor-completions/_fairground fish/vendor_completions.d/fairground.fish doc/fairground/COPYRIGHT \
    doc/fairground/docs doc/fairground/arimo.LICENSE doc/fairground/crates; do
    [ -e "$share/$part" ] || [ -e "$share/$part.gz" ] || { echo "$package has no share/$part" >&2; exit 1; }
  done
  schedulers=$(env -i "$binary" sched list --format csv | awk -F, '$2 == "schedulers" { print $3 }' | sort -u | wc -l)
  [ "$schedulers" -ge 7 ] || { echo "$package: $schedulers schedulers in the program" >&2; exit 1; }
  env -i "$binary" run hogs:2 --sched rfs --duration 1s --format csv | grep -q 'jain_index,0.999' ||
    { echo "$package: two hogs do not share a CPU" >&2; exit 1; }
  env -i "$binary" doctor simulate --quiet >"$folder/doctor" || { cat "$folder/doctor" >&2; exit 1; }
  echo "$package: $schedulers schedulers, hogs:2 ran, $(du -h "$package" | cut -f1)"
  rm -rf "$folder"
done
