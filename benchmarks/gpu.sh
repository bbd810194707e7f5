#!/usr/bin/env bash
# Times kernels, recurrent layers and training steps on this machine's GPU, compares them with
# PyTorch and writes a dated page into benchmarks/results/.
#
#   benchmarks/gpu.sh [stage...]     layers, steps, profile (the default: all)
#
# Needs nvcc, CMake, Ninja, doctest and python3, whose PyTorch is timed, too, if it has one;
# installs nothing. TAPEGRAPH_CMAKE_ARGS adds arguments to the configuration. STEPS_ONLY is a
# regular expression of the rows that are measured (benchmarks/gpu_steps.py); STEPS_SECONDS and
# PLAN_SECONDS limit the time after the build. For a machine that cannot build: tests/gpu.sh build,
# pack and run. Without a GPU nothing is run, which is no error.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
# shellcheck source=tools/gpu.sh
. tools/gpu.sh

if ! find_gpu; then
    echo "no GPU: nothing was run"
    exit 0
fi
build_for_gpu "$gpu_architecture" 'program_by_nvcc|test_gpu_context_test|bench_(gpu|compare)_.*' # what was built is run
pack_for_gpu
export OUT=${OUT:-$PWD/build/gpu/out}
[ $# -gt 0 ] || set -- layers steps profile
build/gpu/packed/gpu_plan.sh sanity "$@"
status=$?
page=benchmarks/results/gpu-$(date -u '+%Y-%m-%d')-$(tr -c '[:alnum:]\n' '-' <<<"$gpu_name" | tr '[:upper:]' '[:lower:]').md
python3 benchmarks/gpu_page.py "$OUT" >"$page" && echo "written to $page"
exit $status
