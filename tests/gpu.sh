#!/usr/bin/env bash
# Builds the CUDA tests for this machine's GPU and runs them on it, then under compute-sanitizer where that is found.
#
#   tests/gpu.sh [doctest's arguments]        e.g. tests/gpu.sh -tc="*matmul*"
#
# Needs nvcc, CMake, Ninja and doctest; installs nothing. TAPEGRAPH_CMAKE_ARGS adds to the configuration, such as
# -DTAPEGRAPH_DOCTEST_INCLUDE_DIR=DIR. There is a program for each test file: what does not compile, or leaves the device in
# ruins, keeps none of the others from running. Ends within ten minutes, or TAPEGRAPH_GPU_SECONDS; what did not fit in is named
# in the summary, the last lines, and a second run need not build again. Everything printed is kept in tests-gpu.log, in the
# folder OUT if that is set, else in build/gpu. Without a GPU nothing is run, which is no error.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
# shellcheck source=tools/gpu.sh
. tools/gpu.sh
SECONDS=0

if ! find_gpu; then
    echo "no GPU: nothing was run"
    exit 0
fi
mkdir -p build/gpu
exec > >(tee "${OUT:-build/gpu}/tests-gpu.log") 2>&1
echo "== $(date -u '+%Y-%m-%d %H:%M:%S') UTC, $gpu_name, compute capability $gpu_architecture, $(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')"

passed=() failed=() unfinished=() unbuilt=() left_out=()
# run NAME SECONDS COMMAND...: at most so long, and not beyond the script's end.
run() {
    local name=$1 limit=$2 status=0 start=$SECONDS
    shift 2
    if [ "$(left)" -lt 5 ]; then
        left_out+=("$name")
        return
    fi
    [ "$limit" -le "$(left)" ] || limit=$(left)
    timeout -k 5 "$limit" "$@" || status=$?
    echo "== $name: $((SECONDS - start)) s, status $status"
    case $status in
    0) passed+=("$name") ;;
    124 | 137) unfinished+=("$name") ;;
    *) failed+=("$name") ;;
    esac
}

configure_for_gpu -DTAPEGRAPH_BUILD_TESTS=ON -DTAPEGRAPH_BUILD_BENCHMARKS=OFF || exit 1
echo "== configuration: $SECONDS s"
# Whole programs last, but for the smallest.
wanted=(program_by_nvcc thrust_by_nvcc)
for test in device_array whole_programs; do
    for source in $(grep -l "#include <cuda/$test.hpp>" tests/cuda/*_test.cpp); do
        wanted+=("test_gpu_$(basename "$source" .cpp)")
    done
done
build_for_gpu $(($(left) * 2 / 3)) tests/cuda "${wanted[@]}" || echo "== not everything was built" >&2
echo "== build: $SECONDS s since the start"

programs=()
for name in "${wanted[@]}"; do
    if [ -x "build/gpu/tests/cuda/$name" ]; then programs+=("$name"); else unbuilt+=("$name"); fi
done
for name in "${programs[@]}"; do
    arguments=()
    [ "$name" = program_by_nvcc ] || arguments=(-aa=20 "$@") # twenty failures say enough
    run "$name" 90 "build/gpu/tests/cuda/$name" ${arguments[@]+"${arguments[@]}"}
done

sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ ! -x "$sanitizer" ]; then
    left_out+=("memcheck and racecheck (compute-sanitizer was not found)")
elif [ ${#programs[@]} -eq 0 ] || "$sanitizer" "build/gpu/tests/cuda/${programs[0]}" 2>&1 | grep -q 'not supported'; then
    left_out+=("memcheck and racecheck (compute-sanitizer does not support this device here)")
else
    # Every buffer an allocation of its own, so that its ends are seen. Races: in our kernels, not in cuBLAS's.
    export TAPEGRAPH_GPU_ALLOCATOR=plain
    for tool in memcheck racecheck; do
        options=()
        [ $tool = memcheck ] || options=(--kernel-name kernel_substring=tapegraph)
        for name in "${programs[@]}"; do
            [[ $name == test_gpu_* ]] || continue
            run "$tool of $name" 60 "$sanitizer" --tool $tool --error-exitcode 86 ${options[@]+"${options[@]}"} \
                "build/gpu/tests/cuda/$name" -aa=5 "$@"
        done
    done
fi

list() { # WHAT NAME...
    [ $# -eq 1 ] || printf '%s: %s\n' "$1" "$(printf '%s, ' "${@:2}" | sed 's/, $//')"
}
echo "== $gpu_name, $SECONDS s"
list "passed" ${passed[@]+"${passed[@]}"}
list "left out" ${left_out[@]+"${left_out[@]}"}
list "not finished in time" ${unfinished[@]+"${unfinished[@]}"}
list "not built" ${unbuilt[@]+"${unbuilt[@]}"}
list "FAILED" ${failed[@]+"${failed[@]}"}
[ ${#failed[@]} -eq 0 ] && [ ${#unbuilt[@]} -eq 0 ] && [ ${#passed[@]} -gt 0 ]
