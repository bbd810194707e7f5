#!/usr/bin/env bash
# Builds the batch-size study and runs it with the given arguments (--help lists them).
# On Debian and Ubuntu it first installs what is missing. Results go to results/ in the current folder.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

build=build/examples
program=$PWD/$build/examples/batch_study

ensure_packages g++ cmake ninja-build libcli11-dev libstb-dev nlohmann-json3-dev -- ccache
forget_moved_build "$build"

# The program's own output is all that goes to standard output.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
note "building batch_study"
if ! { cmake --preset examples && cmake --build "$build" --target batch_study --parallel "$(job_count)"; } \
    >"$log" 2>&1; then
    cat "$log" >&2
    note "the build failed"
    exit 1
fi

cd "$caller"
rm -f "$log"
exec "$program" "$@"
