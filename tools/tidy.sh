#!/usr/bin/env bash
# Runs clang-tidy over the library's headers with the checks of .clang-tidy: tools/tidy.sh [HEADER...]
#
#   tools/tidy.sh                          tapegraph/tapegraph.hpp, tapegraph/data.hpp and tapegraph/io.hpp
#   tools/tidy.sh tapegraph/ode.hpp        one header, and what it includes
#
# CLANG_TIDY names the program; otherwise it is the newest clang-tidy from 16 on. Exits 77 where there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=${CLANG_TIDY:-}
for version in 22 21 20 19 18 17 16; do
    [ -n "$program" ] || program=$(command -v "clang-tidy-$version" || true)
done
[ -n "$program" ] || { echo "skipped: there is no clang-tidy from 16 on"; exit 77; }
if [ $# = 0 ]; then set -- tapegraph/{tapegraph,data,io}.hpp; fi
"$program" --version | sed -n 's/^ *\(.*version.*\)/tidy.sh: \1/p'
source=$(mktemp --suffix .cpp)
trap 'rm -f "$source"' EXIT
failed=0
for header; do
    echo "#include <$header>" > "$source"
    # One instruction set: kernels are templates of it.
    if ! "$program" --quiet --config-file=.clang-tidy "$source" -- -std=c++20 -Iinclude -DTG_INSTRUCTION_SETS=4 \
        -fconstexpr-steps=50000000 -fbracket-depth=1024 2> /dev/null; then
        failed=1
    fi
done
echo "tidy.sh: $#" headers, "$([ $failed = 0 ] && echo no findings || echo "findings above")"
exit $failed
