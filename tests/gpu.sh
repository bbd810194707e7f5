#!/usr/bin/env bash
# Builds the CUDA tests for this machine's GPU and runs them on it, then under compute-sanitizer where that is found.
#
#   tests/gpu.sh [doctest's arguments]        e.g. tests/gpu.sh -tc="*matmul*"
#
# Needs nvcc, CMake, Ninja and doctest; installs nothing. TAPEGRAPH_CMAKE_ARGS adds to the configuration, such as
# -DTAPEGRAPH_DOCTEST_INCLUDE_DIR=DIR. Takes less than ten minutes. The last line is the summary; without a GPU nothing is
# run, which is no error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/gpu.sh
. tools/gpu.sh

if ! find_gpu; then
    echo "no GPU: nothing was run"
    exit 0
fi
echo "== $(date -u '+%Y-%m-%d %H:%M:%S') UTC, $gpu_name, compute capability $gpu_architecture, $(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')"

phase_start=$SECONDS
failed=() left_out=()
phase() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 status=0
    shift 2
    timeout "$limit" "$@" || status=$?
    if [ "$status" -eq 124 ]; then echo "$name: not finished within $limit s" >&2; fi
    if [ "$status" -ne 0 ]; then failed+=("$name"); fi
    echo "== $name: $((SECONDS - phase_start)) s"
    phase_start=$SECONDS
}

build_for_gpu test_gpu
echo "== build: $((SECONDS - phase_start)) s"
phase_start=$SECONDS

program=build/gpu/tests/cuda/test_gpu
phase "tests" 120 "$program" "$@"
if command -v compute-sanitizer >/dev/null 2>&1; then
    # Every buffer an allocation of its own, so that its ends are seen. Races: in our kernels, not in cuBLAS's.
    export TAPEGRAPH_GPU_ALLOCATOR=plain
    phase "memcheck" 150 compute-sanitizer --tool memcheck --error-exitcode 86 "$program" "$@"
    phase "racecheck" 120 compute-sanitizer --tool racecheck --error-exitcode 86 --kernel-name kernel_substring=tapegraph "$program" "$@"
else
    left_out=("memcheck and racecheck (compute-sanitizer was not found)")
fi
if [ "${#left_out[@]}" -gt 0 ]; then echo "left out: ${left_out[*]}"; fi
if [ "${#failed[@]}" -gt 0 ]; then
    echo "failed on $gpu_name: ${failed[*]}"
    exit 1
fi
echo "all passed on $gpu_name"
