#!/usr/bin/env bash
# Builds a study and runs it with the given arguments (--help lists them):
#   examples/run.sh [batch_study | mode_study | distributed] [OPTIONS]
# distributed trains with 1, 2 and 4 processes of MPI and compares their weights.
# On Debian and Ubuntu it first installs what is missing. Results go to results/ in the current folder.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

study=batch_study
case ${1:-} in
batch_study | mode_study | distributed)
    study=$1
    shift
    ;;
esac
build=build/examples
program=$PWD/$build/examples/$study

ensure_packages g++ cmake ninja-build libcli11-dev libstb-dev nlohmann-json3-dev -- ccache
if [ "$study" = distributed ]; then
    ensure_packages libopenmpi-dev openmpi-bin
fi
forget_moved_build "$build"

# Only the program's own output goes to standard output.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
note "building $study"
if ! { cmake --preset examples && cmake --build "$build" --target "$study" --parallel "$(job_count)"; } \
    >"$log" 2>&1; then
    cat "$log" >&2
    note "the build failed"
    exit 1
fi

cd "$caller"
rm -f "$log"
if [ "$study" != distributed ] || [ "${1:-}" = --help ]; then
    exec "$program" "$@"
fi

# One thread each, so that four processes compete as little as possible for two cores.
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
first=
for ranks in 1 2 4; do
    line=$(mpirun --oversubscribe -n "$ranks" "$program" "$@")
    echo "$line"
    hash=${line##* }
    if [ "${first:=$hash}" != "$hash" ]; then
        note "$ranks processes have other weights than one"
        exit 1
    fi
done
echo "the weights are equal"
