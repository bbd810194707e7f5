#!/usr/bin/env bash
# Times kernels, LSTM layers and training steps on this machine's GPU and writes a dated page into benchmarks/results/.
#
#   benchmarks/gpu.sh [largest batch [part...]]      of the layers: 1, 32, 128 (the default) or 1024
#                                                    parts: layers lstm steps (the default: all)
#
# Needs nvcc, CMake, Ninja and python3, whose PyTorch is timed too if it has one; installs nothing. TAPEGRAPH_CMAKE_ARGS adds
# to the configuration. Ends within ten minutes, its build included; what did not fit in is missing, which the page says, and
# a second run, or one for each part, need not build. Without a GPU nothing is run, which is no error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/gpu.sh
. tools/gpu.sh

largest=${1:-128}
parts=" ${*:2} "
[ $# -gt 1 ] || parts=" layers lstm steps "
for part in $parts; do
    case $part in
    layers | lstm | steps) ;;
    *)
        echo "unknown part '$part': layers, lstm or steps" >&2
        exit 2
        ;;
    esac
done

if ! find_gpu; then
    echo "no GPU: nothing was run"
    exit 0
fi

SECONDS=0
left() { echo $((SECONDS < 589 ? 590 - SECONDS : 1)); }
# measure SECONDS PROGRAM ARGUMENT...: into build/gpu/PROGRAM.tsv. What it printed before it failed or was stopped counts.
failed=0
measure() {
    local start=$SECONDS
    timeout "$1" "build/gpu/benchmarks/bench_$2" "${@:3}" >"build/gpu/$2.tsv" || {
        echo "$2 ended with status $? (124: its time was over)" >&2
        failed=1
    }
    echo "== $2: $((SECONDS - start)) s"
}
wanted() { [[ $parts == *" $1 "* ]]; }

programs=(bench_gpu_layers)
! wanted lstm || programs+=(bench_gpu_lstm)
! wanted steps || programs+=(bench_gpu_training_step)
commit=$(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')
export TAPEGRAPH_CMAKE_ARGS="-DTAPEGRAPH_BUILD_TESTS=OFF -DTAPEGRAPH_BUILD_BENCHMARKS=ON ${TAPEGRAPH_CMAKE_ARGS:-}"
timeout "$(left)" bash -euo pipefail -c '. tools/gpu.sh; find_gpu; build_for_gpu "$@"' build "${programs[@]}"
echo "== build: $SECONDS s"

arguments=()
# Of no batch it gives the device's own ceilings alone, which the floors of the others are made of.
wanted layers || largest=0
measure 150 gpu_layers "$largest"
if wanted lstm; then
    measure 60 gpu_lstm
    arguments+=(--lstm build/gpu/gpu_lstm.tsv)
fi
! wanted steps || arguments+=(--steps build/gpu/benchmarks/bench_gpu_training_step)

start=$SECONDS
mkdir -p benchmarks/results
name=$(tr -c 'A-Za-z0-9\n' '-' <<<"$gpu_name" | tr 'A-Z' 'a-z')
[ $# -le 1 ] || name+=$(printf -- '-%s' "${@:2}")
table=benchmarks/results/gpu-$(date -u '+%Y-%m-%d')-$name.md
{
    echo "# benchmarks/gpu.sh $largest${parts% }, commit $commit, $(date -u '+%Y-%m-%d %H:%M') UTC, driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
    echo
    timeout -k 5 "$(left)" python3 benchmarks/gpu_table.py build/gpu/gpu_layers.tsv --seconds $(($(left) - 20)) ${arguments[@]+"${arguments[@]}"}
} >"$table.new"
mv "$table.new" "$table"
echo "== table: $((SECONDS - start)) s"
cat "$table"
echo "written to $table"
exit $failed
