#!/usr/bin/env bash
# Times kernels, recurrent layers and training steps on this machine's GPU and writes a dated page into benchmarks/results/.
#
#   benchmarks/gpu.sh [largest batch [part...]]      of the layers: 1, 32, 128 (the default) or 1024
#                                                    parts: layers recurrent steps (the default: all)
#
# Needs nvcc, CMake, Ninja and python3, whose PyTorch is timed too if it has one; installs nothing. TAPEGRAPH_CMAKE_ARGS adds
# to the configuration. Ends within ten minutes, or TAPEGRAPH_GPU_SECONDS, its build included; what did not fit in is missing,
# which the page says, and a second run, or one for each part, need not build. Where OUT names a folder, page and lines of
# measurements are there, too. Without a GPU nothing is run, which is no error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/gpu.sh
. tools/gpu.sh

largest=${1:-128}
parts=" ${*:2} "
[ $# -gt 1 ] || parts=" layers recurrent steps "
for part in $parts; do
    case $part in
    layers | recurrent | steps) ;;
    *)
        echo "unknown part '$part': layers, recurrent or steps" >&2
        exit 2
        ;;
    esac
done

SECONDS=0
if ! find_gpu; then
    echo "no GPU: nothing was run"
    exit 0
fi

# What was measured is kept as it comes: where OUT names a folder, there too.
mkdir -p build/gpu benchmarks/results
keep() { [ -z "${OUT:-}" ] || cp "$1" "$OUT/"; }

# measure SECONDS NAME PROGRAM ARGUMENT...: into build/gpu/NAME.tsv. What it printed before it failed or was stopped counts.
failed=0
measure() {
    local start=$SECONDS
    timeout "$1" "build/gpu/benchmarks/$3" "${@:4}" >"build/gpu/$2.tsv" || {
        echo "$2 ended with status $? (124: its time was over)" >&2
        failed=1
    }
    keep "build/gpu/$2.tsv"
    echo "== $2: $((SECONDS - start)) s"
}
wanted() { [[ $parts == *" $1 "* ]]; }
# usable PROGRAM: whether it is built.
usable() {
    [ -x "build/gpu/benchmarks/$1" ] || {
        echo "$1 was not built" >&2
        failed=1
        return 1
    }
}

programs=(bench_gpu_layers)
! wanted recurrent || programs+=(bench_gpu_recurrent)
! wanted steps || programs+=(bench_gpu_training_step)
commit=$(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')
configure_for_gpu -DTAPEGRAPH_BUILD_TESTS=OFF -DTAPEGRAPH_BUILD_BENCHMARKS=ON
build_for_gpu $(($(left) * 2 / 3)) benchmarks "${programs[@]}" || true # what is missing is named below
echo "== build: $SECONDS s"

arguments=()
# Of no batch it gives the device's own ceilings alone, which the floors of the others are made of.
wanted layers || largest=0
usable bench_gpu_layers || exit 1
measure $(($(left) / 3)) gpu_layers bench_gpu_layers "$largest"
if wanted layers; then
    # Once more with plans that are measured; which, and what the predicted ones took, is in the log.
    export TAPEGRAPH_GPU_PLANS=measured TAPEGRAPH_LOG_PLACEMENT=1
    measure $(($(left) / 4)) gpu_layers_measured bench_gpu_layers "$largest" 2>build/gpu/gpu_layers_measured.log
    unset TAPEGRAPH_GPU_PLANS TAPEGRAPH_LOG_PLACEMENT
    grep -v '^tapegraph: plan ' build/gpu/gpu_layers_measured.log >&2 || true
    keep build/gpu/gpu_layers_measured.log
    arguments+=(--measured build/gpu/gpu_layers_measured.tsv)
fi
if wanted recurrent && usable bench_gpu_recurrent; then
    measure $(($(left) / 6)) gpu_recurrent bench_gpu_recurrent
    arguments+=(--recurrent build/gpu/gpu_recurrent.tsv)
fi
if wanted steps && usable bench_gpu_training_step; then
    arguments+=(--steps build/gpu/benchmarks/bench_gpu_training_step)
fi

command -v python3 >/dev/null 2>&1 || {
    echo "python3 was not found: lines of measurements are in build/gpu, without a table" >&2
    exit 1
}
start=$SECONDS
name=$(tr -c 'A-Za-z0-9\n' '-' <<<"$gpu_name" | tr 'A-Z' 'a-z')
[ $# -le 1 ] || name+=$(printf -- '-%s' "${@:2}")
table=benchmarks/results/gpu-$(date -u '+%Y-%m-%d')-$name.md
{
    echo "# benchmarks/gpu.sh $largest${parts% }, commit $commit, $(date -u '+%Y-%m-%d %H:%M') UTC, driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
    echo
    PYTHONUNBUFFERED=1 timeout -k 5 "$(left)" python3 benchmarks/gpu_table.py build/gpu/gpu_layers.tsv --seconds $(($(left) - 20)) ${arguments[@]+"${arguments[@]}"} || {
        echo "The table ends here: its program failed, or its time was over."
        exit 1
    }
} | tee "$table" || failed=1
keep "$table"
echo "== table: $((SECONDS - start)) s"
echo "written to $table"
exit $failed
