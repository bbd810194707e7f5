#!/usr/bin/env bash
# Makes the files of a release and their SHA-256 sums: tools/release.sh [--kernels] DIRECTORY
#
#   tapegraph-VERSION.tar.gz, .deb                    what `cmake --install` installs: headers, CMake's and pkg-config's files
#   tapegraph-single-header-VERSION.tar.gz            single_include/, as include/
#   tapegraph-kernels-VERSION-SYSTEM.tar.gz, .deb     with --kernels: the first and the compiled component, for this architecture
#
# tests/consume/packages.sh archives unpacks them and compiles a program with each.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kernels=OFF
if [ "${1:-}" = --kernels ]; then kernels=ON; shift; fi
if [ $# != 1 ] || [[ $1 = -* ]]; then sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; fi
mkdir -p "$1"
target=$(cd "$1" && pwd)
cmake=${CMAKE:-cmake}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=$(sed -n 's/^#define TAPEGRAPH_VERSION_[A-Z]* \([0-9]*\)$/\1/p' "$source/include/tapegraph/version.hpp" | paste -sd.)
grep -q "^version: $version$" "$source/CITATION.cff" || { echo "CITATION.cff does not name version $version" >&2; exit 1; }
grep -q "^## $version\b" "$source/CHANGELOG.md" || { echo "CHANGELOG.md says nothing about version $version" >&2; exit 1; }
grep -q "\"version\": \"$version\"" "$source/tools/packaging/vcpkg/tapegraph/vcpkg.json" || { echo "vcpkg.json does not name version $version" >&2; exit 1; }
grep -q "version(\"$version\")" "$source"/tools/packaging/spack/spack_repo/tapegraph/packages/tapegraph/package.py || { echo "Spack's package.py does not name version $version" >&2; exit 1; }
python3 "$source/tools/single_header.py" --check

pack() { # pack NAME OPTIONS...: configures with the options and packs what that installs
    local build=$work/$1
    shift
    "$cmake" -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTAPEGRAPH_CUDA=OFF -DTAPEGRAPH_MPI=OFF \
        -DTAPEGRAPH_BUILD_TESTS=OFF -DTAPEGRAPH_BUILD_EXAMPLES=OFF -DTAPEGRAPH_BUILD_BENCHMARKS=OFF "$@" > "$work/log"
    "$cmake" --build "$build" > "$work/log"
    local generators=TGZ
    if command -v dpkg > /dev/null; then generators+=";DEB"; fi
    (cd "$build" && "$(dirname "$(command -v "$cmake")")/cpack" -G "$generators" -B "$work/packed") > "$work/log"
}

pack headers
if [ $kernels = ON ]; then pack kernels -DTAPEGRAPH_KERNELS=ON; fi
mv "$work"/packed/*.tar.gz "$target"
if compgen -G "$work/packed/*.deb" > /dev/null; then mv "$work"/packed/*.deb "$target"; fi

single=tapegraph-single-header-$version
mkdir -p "$work/$single/include"
cp -r "$source"/single_include/* "$work/$single/include"
cp "$source/LICENSE" "$work/$single"
tar -C "$work" --owner=0 --group=0 -czf "$target/$single.tar.gz" "$single"

cd "$target"
sha256sum -- *.tar.gz $(ls -- *.deb 2> /dev/null) > SHA256SUMS
cat SHA256SUMS
