#!/usr/bin/env bash
# Links objects that were compiled alike, and objects that were not: objects.sh SOURCE BUILD. ctest sets COMPILER.
set -euo pipefail

source=$1 work=$2/consume/objects
part=$source/tests/consume/objects/part.cpp
rm -rf "$work"
mkdir -p "$work/other/tapegraph" "$work/cblas"
cd "$work"

# Another version of the library, and a CBLAS for those who have none.
sed 's/\(VERSION_PATCH\) .*/\1 99/' "$source/include/tapegraph/version.hpp" > other/tapegraph/version.hpp
cat > cblas/cblas.h << 'END'
enum { CblasRowMajor, CblasTrans, CblasNoTrans };
END

compile() { # OBJECT [FLAG...]
    "$COMPILER" -std=c++20 -O0 "${@:2}" -I "$source/include" -c "$part" -o "$1"
}
fail() {
    echo "$*" >&2
    exit 1
}

compile program.o -DPROGRAM
compile alike.o
"$COMPILER" program.o alike.o -o alike
./alike || fail "two objects that were compiled alike: wrong results"

# A program may use OpenMP in some of its objects. The library then takes omp_set_num_threads for its own, and its kernels do
# not divide inside the program's regions.
cat > openmp.cpp << 'END'
#include <omp.h>
#include <tapegraph/tensor.hpp>
#include <cstdio>
int threads_of_other_object();
int main() {
    omp_set_num_threads(3);
    const int set = tapegraph::thread_count();
    int inside = 0;
#pragma omp parallel num_threads(2)
    tapegraph::cpu::parallel_team(true, [&](int, int team) {
#pragma omp atomic
        inside += team;
    });
    int outside = 0;
    tapegraph::cpu::parallel_team(true, [&](int, int team) { outside = team; });
    std::printf("%d threads, %d in the other object, two regions of %d in all, one of %d\n", set, threads_of_other_object(), inside, outside);
    return set == 3 && threads_of_other_object() == 3 && inside == 2 && outside >= 1 ? 0 : 1;
}
END
cat > plain.cpp << 'END'
#include <tapegraph/tensor.hpp>
int threads_of_other_object() { return tapegraph::thread_count(); }
END
if "$COMPILER" -fopenmp -include omp.h -x c++ -fsyntax-only /dev/null 2> /dev/null; then
    "$COMPILER" -std=c++20 -O0 -fopenmp -I "$source/include" -c openmp.cpp -o openmp.o
    "$COMPILER" -std=c++20 -O0 -I "$source/include" -c plain.cpp -o plain.o
    "$COMPILER" -fopenmp openmp.o plain.o -o openmp
    ./openmp || fail "a program that uses OpenMP itself"
fi

# Who only chooses how to convolve has all that the choice names.
cat > choice.cpp << 'END'
#include <tapegraph/fast_convolution.hpp>
int main() { tapegraph::set_convolution_algorithm(tapegraph::convolution_algorithm::direct); }
END
"$COMPILER" -std=c++20 -O0 -Wall -Werror -I "$source/include" choice.cpp -o choice
./choice || fail "a program that chooses an algorithm: fails"

differ() { # CHOICE [FLAG...]: the link must fail and say in what the objects differ
    local choice=$1
    compile differs.o "${@:2}"
    if LC_ALL=C "$COMPILER" program.o differs.o "${@:2}" -o mixture 2> log; then
        fail "objects that differ in $choice were linked"
    fi
    cat log
    grep -q "tapegraph_objects_differ_in_$choice" log || fail "the linker does not name $choice"
    if [ "$(grep -c 'tapegraph_objects_differ_in_' log)" != "$(grep -c "tapegraph_objects_differ_in_$choice" log)" ]; then
        fail "the linker names more than $choice"
    fi
}
differ version -I other
differ TAPEGRAPH_USE_CBLAS -I cblas -DTAPEGRAPH_USE_CBLAS
differ TG_CUDA -DTG_CUDA -DTG_SIMT
if [ "$(uname -m)" = x86_64 ]; then
    differ TG_INSTRUCTION_SETS -DTG_INSTRUCTION_SETS=1

    # A shared library's functions become the program's when it is loaded, or stay its own.
    compile shared.o -fPIC -DTG_INSTRUCTION_SETS=1
    "$COMPILER" -shared shared.o -o libshared.so
    "$COMPILER" program.o ./libshared.so -o loads_a_mixture
    if (ulimit -c 0 && exec ./loads_a_mixture) 2> log; then fail "a library that was compiled otherwise was loaded"; fi
    cat log
    grep -q "TG_INSTRUCTION_SETS = 7 and = 1" log || fail "the check before main does not say what differs"
    compile hidden.o -fPIC -fvisibility=hidden -DTG_INSTRUCTION_SETS=1
    "$COMPILER" -shared hidden.o -o libhidden.so
    "$COMPILER" program.o ./libhidden.so -o with_hidden
    ./with_hidden || fail "a library whose symbols are hidden: wrong results"

    # Which sets there are where nobody says. With nvcc's macro and without its compiler, this header alone.
    sets() { # SUM [FLAG...]
        printf '#include <tapegraph/cpu/isa.hpp>\nstatic_assert(TG_INSTRUCTION_SETS == %s);\n' "$1" > sets.cpp
        "$COMPILER" -std=c++20 "${@:2}" -I "$source/include" -fsyntax-only sets.cpp || fail "the sets with ${*:2} are not $1"
    }
    sets 7 -march=x86-64
    sets 6 -march=haswell
    sets 4 -march=skylake-avx512
    sets 3 -march=x86-64 -DTG_CUDA
    sets 2 -march=haswell -DTG_CUDA
    sets 4 -march=skylake-avx512 -DTG_CUDA
    sets 7 -march=x86-64 -DTG_CUDA -DTG_SIMT
    sets 7 -march=haswell -DTG_CUDA -DTG_COMPONENT=1
    sets 7 -march=x86-64 -DTG_CUDA -DTG_INSTRUCTION_SETS=7
    differ TG_INSTRUCTION_SETS -DTG_INSTRUCTION_SETS=3
fi
echo "objects that differ are refused"
