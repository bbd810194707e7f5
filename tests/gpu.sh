#!/usr/bin/env bash
# Tests on a GPU: of this machine, or of another that has nothing but a driver and cuBLAS.
#
#   tests/gpu.sh                         builds for this machine's GPU and tests it: numerics, then compute-sanitizer
#   tests/gpu.sh build [90]              builds tests and benchmarks for a GPU of that compute capability, which need not be there
#   tests/gpu.sh pack [ARCHIVE]          puts what is built into an archive (build/gpu/tapegraph-gpu.tar.xz) and says its size
#   tests/gpu.sh run ARCHIVE [stage...]  runs the plan of gpu_plan.sh from an archive
#
# Building needs nvcc, CMake, Ninja and doctest; nothing is installed. TAPEGRAPH_CMAKE_ARGS adds to the configuration, such as
# -DTAPEGRAPH_DOCTEST_INCLUDE_DIR=DIR. There is a program for each test file: what does not compile, or leaves the device in ruins,
# keeps none of the others from running. A build that was stopped goes on where it was. Results are in the folder OUT, or where the
# archive was unpacked. Without a GPU nothing is run, which is no error.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) || exit 2
here=$PWD
cd "$root" || exit 2
# shellcheck source=tools/gpu.sh
. tools/gpu.sh

tests='program_by_nvcc|test_gpu_.*'
case ${1:-} in
build)
    build_for_gpu "${2:-90}" "$tests|bench_(gpu|compare)_.*|(batch|mode)_study"
    ;;
pack)
    archive=${2:-build/gpu/tapegraph-gpu.tar.xz}
    pack_for_gpu && tar -C build/gpu/packed -c . | xz --lzma2=preset=6,dict=256MiB >"$archive" && du -h "$archive"
    ;;
run)
    [ $# -ge 2 ] || { echo "tests/gpu.sh run ARCHIVE [stage...]" >&2; exit 2; }
    folder=$(mktemp -d) && tar -C "$folder" -xf "$(cd "$here" && realpath "$2")" || exit 2
    export OUT=${OUT:-$here/gpu-results}
    "$folder/gpu_plan.sh" "${@:3}"
    ;;
"")
    if ! find_gpu; then
        echo "no GPU: nothing was run"
        exit 0
    fi
    build_for_gpu "$gpu_architecture" "$tests" # what was built is run
    pack_for_gpu && OUT=${OUT:-build/gpu/out} build/gpu/packed/gpu_plan.sh sanity numerics sanitizer
    ;;
*)
    sed -n 's/^#   //p' "$0" >&2
    exit 2
    ;;
esac
