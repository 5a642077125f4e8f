#!/usr/bin/env bash
# Builds the kernel's own example schedulers (tools/sched_ext: scx_simple, scx_qmap, scx_central, scx_flatcg) and the
# schedulers of its tests of sched_ext (tools/testing/selftests/sched_ext) from Debian's kernel source, for the tests that
# run third-party objects. None of them is committed.
# Usage: third-party.sh [CACHE_DIRECTORY]. Needs no root: apt works in private folders inside the cache.
#
#   CACHE/scx_simple.bpf.o …   the objects
#   CACHE/selftests/         the objects of the kernel's tests, and in FILE.log why one does not compile
#   CACHE/version              the Debian version of their source; exists only if all of them do
#   CACHE/recipe               the checksum of this script at the time of the build; they are rebuilt if it differs
#   CACHE/source/              tools/sched_ext and the headers that it includes
#
# The types (vmlinux.h) are those of the cloud kernel of the same version: the kernel that the virtual machine boots.
set -euo pipefail

suite=${FAIRGROUND_DEBIAN_SUITE:-forky}
mirror=${FAIRGROUND_DEBIAN_MIRROR:-http://deb.debian.org/debian}
cache=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/fairground/third-party}
clang=${FAIRGROUND_CLANG:-clang-19}
examples=(simple qmap central flatcg)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { echo "third-party: $*" >&2; }
fail() {
  say "$*"
  exit 2
}
need() { command -v "$1" >/dev/null || fail "there is no \`$1\` on this machine: install the Debian package $2"; }

recipe=$(sha256sum <"$0" | cut -d ' ' -f 1)
if [[ -f $cache/version && -f $cache/recipe && $(<"$cache/recipe") == "$recipe" ]]; then
  say "the objects of linux-source $(<"$cache/version") are in $cache (delete that directory to rebuild them)"
  exit 0
fi
need apt-get apt
need dpkg-deb dpkg
need bpftool bpftool
need zstd zstd
need xz xz-utils
need python3 python3
need "$clang" clang-19

mkdir -p "$cache"
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,packages,include/bpf,objects,selftests}

# Private folders for apt: the machine's package sources and state stay unchanged. Packages are verified by the
# archive's signature.
[[ -f $keyring ]] || fail "there is no $keyring: install the Debian package debian-archive-keyring"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
apt=(-qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root -o Acquire::Retries=3 -o APT::Update::Error-Mode=any -o Acquire::Languages=none)
say "reading the package lists of Debian $suite"
thrice=$(realpath "$(dirname "$0")/thrice.sh")
"$thrice" apt-get "${apt[@]}" update

# linux-source-X.Y of the newest kernel that sched_ext's examples come with, and the cloud kernel of the same version.
source_package=$(apt-cache "${apt[@]}" search --names-only '^linux-source-[0-9.]+$' | awk '{print $1}' | sort -V | tail -n 1 || true)
[[ -n $source_package ]] || fail "Debian $suite has no package linux-source-X.Y"
version=$(apt-cache "${apt[@]}" show "$source_package" | awk '/^Version:/ {print $2; exit}')
series=${source_package#linux-source-}
kernel_package=
for kind in binary image; do # The image itself; up to 6.12 its package is called linux-image.
  [[ -n $kernel_package ]] || kernel_package=$(apt-cache "${apt[@]}" search --names-only "^linux-$kind-${series//./\\.}[0-9.]*\\+.*cloud-amd64$" |
    awk '{print $1}' | grep -v -e dbg -e unsigned | sort -V | tail -n 1 || true)
done
[[ -n $kernel_package ]] || fail "Debian $suite has no cloud kernel of version $series"
say "downloading $source_package and $kernel_package ($version, about 180 MB)"
(cd "$work/packages" && "$thrice" apt-get "${apt[@]}" download "$source_package" "$kernel_package")

# Only the examples, libbpf's headers and the UAPI headers of the sources.
say "unpacking"
top=linux-source-$series
dpkg-deb --fsys-tarfile "$work/packages/$source_package"_*.deb | tar -xO "./usr/src/$top.tar.xz" |
  tar -xJ -C "$work" "$top/tools/sched_ext" "$top/tools/testing/selftests/sched_ext" "$top/tools/lib/bpf" "$top/tools/include" "$top/include/uapi/linux/bpf.h" "$top/scripts/bpf_doc.py"
mv "$work/$top" "$work/source"
dpkg-deb -x "$work/packages/$kernel_package"_*.deb "$work/kernel"
vmlinuz=$(find "$work/kernel" -name 'vmlinuz*' -type f | head -n 1)
[[ -n $vmlinuz ]] || fail "the package $kernel_package holds no vmlinuz"

# The kernel's types. A bzImage holds its vmlinux compressed. The header of the boot protocol
# (Documentation/arch/x86/boot.rst, fields setup_sects, payload_offset, payload_length) has its place. The last 4 bytes
# are the unpacked size.
python3 - "$vmlinuz" "$work/payload" <<'PYTHON'
import struct, sys
image = open(sys.argv[1], "rb").read()
offset, length = struct.unpack_from("<II", image, 0x248)
start = ((image[0x1F1] or 4) + 1) * 512 + offset
open(sys.argv[2], "wb").write(image[start : start + length - 4])
PYTHON
case $(head -c 4 "$work/payload" | od -An -tx1 | tr -d ' ') in
28b52ffd) zstd -dqf "$work/payload" -o "$work/vmlinux" ;;
fd377a58) xz -dc "$work/payload" >"$work/vmlinux" ;;
1f8b*) gzip -dc "$work/payload" >"$work/vmlinux" ;;
*) fail "the kernel in $vmlinuz has an unknown compression (known: zstd, xz, gzip)" ;;
esac
bpftool btf dump file "$work/vmlinux" format c >"$work/include/vmlinux.h"

# As in `make -C tools/sched_ext`: libbpf's headers of the same tree, the flags of BPF_CFLAGS, and -fno-builtin-memset.
# Without it, clang up to version 21 merges neighbouring stores of zeros into a memset and does not translate its
# address in an arena; the verifier then refuses scx_qmap (`R7 invalid mem access 'scalar'` in qmap_dequeue). The code
# of the other three is the same with and without the flag.
tree=$work/source/tools
cp "$tree"/lib/bpf/*.h "$work/include/bpf/"
python3 "$work/source/scripts/bpf_doc.py" --header --filename "$work/source/include/uapi/linux/bpf.h" >"$work/include/bpf/bpf_helper_defs.h"
mapfile -t system < <("$clang" -v -E - </dev/null 2>&1 | sed -n '/<...> search starts here:/,/End of search list./{ s| \(/.*\)|-idirafter\n\1|p }')
scx=$tree/sched_ext
flags=(-g -D__TARGET_ARCH_x86 -mlittle-endian -I. "-I$scx/include" "-I$scx/include/bpf-compat" "-I$work/include"
  "-I$tree/include/uapi" "-I$tree/include" "${system[@]}" -Wall -Wno-compare-distinct-pointer-types -Wno-microsoft-anon-tag
  -Wno-incompatible-function-pointer-types -fms-extensions -O2 -mcpu=v3 -fno-builtin-memset -target bpf
  "-ffile-prefix-map=$work/=")
for example in "${examples[@]}"; do
  say "compiling scx_$example"
  (cd "$scx" && "$clang" "${flags[@]}" -c "scx_$example.bpf.c" -o "$work/objects/scx_$example.bpf.o")
done
say "compiling the tests of sched_ext"
for selftest in "$tree"/testing/selftests/sched_ext/*.bpf.c; do
  name=$(basename "$selftest" .bpf.c)
  log=$work/selftests/$name.log
  (cd "$(dirname "$selftest")" && "$clang" "${flags[@]}" -c "$name.bpf.c" -o "$work/selftests/$name.bpf.o") 2>"$log" ||
    say "$name does not compile: $(grep -m 1 error: "$log" || true)"
  [[ ! -f $work/selftests/$name.bpf.o ]] || rm -f "$log"
done

rm -rf "$cache/source" "$cache/selftests"
mv "$work/source" "$cache/source"
mv "$work/selftests" "$cache/selftests"
mv "$work"/objects/*.bpf.o "$cache/"
echo "$recipe" >"$cache/recipe"
echo "$version" >"$cache/version"
say "built from $source_package $version: $cache"
