#!/usr/bin/env bash
# Builds and runs the tests. On Debian and Ubuntu it first installs what is missing.
#
#   tests/run.sh [--ci | --all] [ctest arguments]        e.g. tests/run.sh -L unit, tests/run.sh -R compile_fail
#
# Without an option this is the quick suite. --ci adds what continuous integration checks of every push, --all what takes long and
# has a shorter relative, and the suite of CI built by the oldest clang, where there is one; docs/testing.md says what. One build
# folder serves all.
# TAPEGRAPH_PRESET=asan (or debug, tsan, clang, oldest_clang, native) takes another preset, TAPEGRAPH_CMAKE_ARGS adds to its
# configuration. The last line is the summary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

preset=${TAPEGRAPH_PRESET:-default}
suite=quick
case ${1:-} in
--ci | --all)
    suite=${1#--}
    shift
    ;;
esac
options="-DTAPEGRAPH_SUITE=$suite"
if [ "$suite" = all ]; then
    options="$options -UTAPEGRAPH_TEST_OPTIMIZATION -UCMAKE_CUDA_ARCHITECTURES -UTAPEGRAPH_SASS_ARCHITECTURES"
    case $preset in # the sanitizers' have none
    asan | tsan) ;;
    *) options="$options -DTAPEGRAPH_BUILD_BENCHMARKS=ON" ;;
    esac
else # -O1, no benchmarks, one kind of device
    options="$options -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DTAPEGRAPH_TEST_OPTIMIZATION=-O1"
    options="$options -DTAPEGRAPH_BUILD_BENCHMARKS=OFF"
    options="$options -DCMAKE_CUDA_ARCHITECTURES=90-virtual -DTAPEGRAPH_SASS_ARCHITECTURES=90"
fi
build=build/$preset
log=$build/ctest.log

phase_start=$SECONDS
phase_done() { echo "== $1: $((SECONDS - phase_start)) s"; phase_start=$SECONDS; }

wanted="ccache libturbojpeg0-dev libutf8proc-dev libeigen3-dev libprotozero-dev libhdf5-dev"
[ "$suite" = quick ] || wanted="$wanted libcli11-dev libopenmpi-dev openmpi-bin libmpich-dev mpich"
[ "$suite" != all ] || wanted="$wanted libbenchmark-dev pkg-config meson"
# Word splitting is wanted, here and below: several arguments in one variable.
# shellcheck disable=SC2086
ensure_packages g++ cmake ninja-build python3 doctest-dev nlohmann-json3-dev libstb-dev zlib1g-dev -- $wanted
if [ "$suite" != quick ] || [[ $preset == *clang ]]; then
    ensure_oldest_clang
fi
forget_moved_build "$build"
phase_done "packages"

# shellcheck disable=SC2086
cmake --preset "$preset" $options ${TAPEGRAPH_CMAKE_ARGS:-}
phase_done "configure"

cmake --build "$build" --parallel "$(job_count)"
phase_done "build"
python3 tools/build_times.py "$build"

status=0
rm -f "$build/Testing/Temporary/LastTest.log"
ctest --preset "$preset" --parallel "$(nproc)" "$@" 2>&1 | tee "$log" || status=$?
phase_done "tests"

# Each of doctest's programs ends with two lines of counts; here is their sum.
awk '/^\[doctest\] test cases:/ { programs++; cases += $4; cases_failed += $9 }
     /^\[doctest\] assertions:/ { checks += $3; checks_failed += $8 }
     END { if (programs) printf "%d programs: %d test cases, %d failed; %d assertions, %d failed\n",
                                programs, cases, cases_failed, checks, checks_failed }' \
    "$build/Testing/Temporary/LastTest.log" 2>/dev/null || true
# ctest prints its summary before the times; repeat it as the closing line.
summary=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" | tail -n 1) || true
if [ -z "$summary" ]; then
    echo "no test was run" >&2
    exit $((status == 0 ? 0 : status))
fi
echo "$summary"
if [ "$suite" = all ] && [ "$preset" = default ] && [ $# = 0 ] && compgen -c | grep -qE '^clang[+][+]-(1[6-9]|2[0-9])$'; then
    echo "== the suite of CI, built by the oldest clang"
    TAPEGRAPH_PRESET=oldest_clang tests/run.sh --ci || status=$?
fi
exit "$status"
