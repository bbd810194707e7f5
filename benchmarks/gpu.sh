#!/usr/bin/env bash
# Times the kernels on this machine's GPU and writes a dated table into benchmarks/results/.
#
#   benchmarks/gpu.sh [largest batch]         1, 32, 128 (the default) or 1024
#
# Needs nvcc, CMake, Ninja and python3, whose PyTorch is timed too if it has one; installs nothing. TAPEGRAPH_CMAKE_ARGS adds
# to the configuration. Takes less than ten minutes. Without a GPU nothing is run, which is no error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/gpu.sh
. tools/gpu.sh

if ! find_gpu; then
    echo "no GPU: nothing was run"
    exit 0
fi
start=$SECONDS
commit=$(git rev-parse --short HEAD 2>/dev/null || echo 'no commit')
TAPEGRAPH_CMAKE_ARGS="-DTAPEGRAPH_BUILD_TESTS=OFF -DTAPEGRAPH_BUILD_BENCHMARKS=ON ${TAPEGRAPH_CMAKE_ARGS:-}" \
    build_for_gpu bench_gpu_layers
echo "== build: $((SECONDS - start)) s"

start=$SECONDS
lines=build/gpu/layers.tsv
timeout 200 build/gpu/benchmarks/bench_gpu_layers "${1:-128}" >"$lines"
echo "== kernels: $((SECONDS - start)) s"

start=$SECONDS
mkdir -p benchmarks/results
name=$(tr -c 'A-Za-z0-9\n' '-' <<<"$gpu_name" | tr 'A-Z' 'a-z')
table=benchmarks/results/gpu-$(date -u '+%Y-%m-%d')-$name.txt
{
    echo "# benchmarks/gpu.sh ${1:-128}, commit $commit, $(date -u '+%Y-%m-%d %H:%M') UTC, driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
    timeout 200 python3 benchmarks/gpu_table.py "$lines"
} >"$table.new"
mv "$table.new" "$table"
echo "== table: $((SECONDS - start)) s"
cat "$table"
echo "written to $table"
