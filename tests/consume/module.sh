#!/usr/bin/env bash
# Compiles the library as a module, a file that imports it and one that includes it, and runs them: module.sh SOURCE BUILD.
# ctest sets COMPILER; where that is no clang from 19 on, one that is installed is taken. Ends with 77 where there is none.
set -euo pipefail

source=$1 work=$2/consume/module
here=$source/tests/consume/module
rm -rf "$work"
mkdir -p "$work"
cd "$work"

flags=(-std=c++20 -O1 -I "$source/include")
suits() { # COMPILER
    command -v "$1" > /dev/null && "$1" --version | grep -q clang && [ "$("$1" -dumpversion | cut -d. -f1)" -ge 19 ]
}
found=
for compiler in "$COMPILER" clang++ clang++-{22,21,20,19}; do
    if suits "$compiler"; then found=$compiler && break; fi
done
if [ -z "$found" ]; then
    echo "tapegraph.cppm is compiled by clang 19 and later, and there is none"
    exit 77
fi
COMPILER=$found
"$COMPILER" "${flags[@]}" -DTG_MODULE -Wno-include-angled-in-module-purview --precompile -x c++-module \
    "$source/include/tapegraph/tapegraph.cppm" -o tapegraph.pcm
"$COMPILER" -std=c++20 -O1 -c tapegraph.pcm -o tapegraph.o
"$COMPILER" "${flags[@]}" -fmodule-file=tapegraph=tapegraph.pcm -c "$here/main.cpp" -o main.o
"$COMPILER" "${flags[@]}" -c "$here/included.cpp" -o included.o
"$COMPILER" main.o included.o tapegraph.o -o consumer
./consumer
