# Sourced by tests/run.sh and examples/run.sh. Installs what a build needs with apt-get, and only
# what is missing: if everything is installed, the network is not used. Sets CXX unless it is set:
# c++ need not be g++, and the default g++ may be too old.

oldest_gcc=12

note() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# True when the preprocessor finds a header.
has_header() { echo "#include <$1>" | "${CXX:-g++}" -x c++ -E - >/dev/null 2>&1; }

# Chooses the default g++ if it is new enough, or else the newest that is.
choose_compiler() {
    if [ -n "${CXX:-}" ]; then return 0; fi
    local name version
    for name in g++ g++-16 g++-15 g++-14 g++-13 g++-12; do
        if command -v "$name" >/dev/null 2>&1; then
            version=$("$name" -dumpversion)
            if [ "${version%%.*}" -ge "$oldest_gcc" ]; then
                export CXX=$name
                return 0
            fi
        fi
    done
    return 1
}

# present PACKAGE: is the content of the package installed, from whatever source?
present() {
    case $1 in
    g++) command -v g++ >/dev/null 2>&1 && g++ -x c++ -std=c++20 -fsyntax-only - <<<'#include <vector>' 2>/dev/null ;;
    cmake) command -v cmake >/dev/null 2>&1 ;;
    ninja-build) command -v ninja >/dev/null 2>&1 ;;
    ccache) command -v ccache >/dev/null 2>&1 ;;
    python3) command -v python3 >/dev/null 2>&1 ;;
    doctest-dev) has_header doctest/doctest.h ;;
    nlohmann-json3-dev) has_header nlohmann/json.hpp ;;
    libcli11-dev) has_header CLI/CLI.hpp ;;
    libstb-dev) has_header stb/stb_image.h ;;
    zlib1g-dev) has_header zlib.h ;;
    libbenchmark-dev) has_header benchmark/benchmark.h ;;
    libturbojpeg0-dev) has_header turbojpeg.h ;;
    libutf8proc-dev) has_header utf8proc.h ;;
    libeigen3-dev) has_header eigen3/Eigen/Core || has_header Eigen/Core ;;
    libprotozero-dev) has_header protozero/pbf_writer.hpp ;;
    libopenmpi-dev) command -v mpicc.openmpi >/dev/null 2>&1 ;;
    openmpi-bin) command -v mpirun.openmpi >/dev/null 2>&1 ;;
    libmpich-dev) command -v mpicc.mpich >/dev/null 2>&1 ;;
    mpich) command -v mpirun.mpich >/dev/null 2>&1 ;;
    pkg-config | meson) command -v "$1" >/dev/null 2>&1 ;;
    libhdf5-dev) has_header hdf5.h || has_header hdf5/serial/hdf5.h ;;
    *) note "no rule tells whether $1 is present"; return 1 ;;
    esac
}

apt_get() {
    local sudo=()
    if [ "$(id -u)" -ne 0 ]; then sudo=(sudo); fi
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null >&2
}

# ensure_packages REQUIRED... -- OPTIONAL...
ensure_packages() {
    local required=1 package missing=() optional_missing=()
    # Finding headers needs a compiler, so that one comes first.
    [ -n "${CXX:-}" ] || present g++ || install_packages g++ || { note "a C++ compiler is needed: apt-get install g++"; return 1; }
    if ! choose_compiler; then
        install_packages "g++-$oldest_gcc" && choose_compiler ||
            { note "g++ $oldest_gcc or newer is needed, found $(g++ -dumpversion); set CXX"; return 1; }
    fi
    for package in "$@"; do
        if [ "$package" = -- ]; then required=0; continue; fi
        if present "$package"; then continue; fi
        if [ "$required" = 1 ]; then missing+=("$package"); else optional_missing+=("$package"); fi
    done
    if [ ${#missing[@]} -gt 0 ]; then
        install_packages "${missing[@]}" || { note "needed, and could not be installed: ${missing[*]}"; return 1; }
    fi
    if [ ${#optional_missing[@]} -gt 0 ]; then
        install_packages "${optional_missing[@]}" || note "going on without: ${optional_missing[*]}"
    fi
}

# The oldest clang of the claim that is installed or in the archive, for the tests' label
# `compilers`. It is optional: without it the tests report what they left out.
ensure_oldest_clang() {
    local version
    command -v apt-cache >/dev/null 2>&1 || return 0
    for version in 16 17 18 19 20 21 22; do
        command -v "clang++-$version" >/dev/null 2>&1 && return 0
        if [ "$apt_updated" = 0 ] && ! in_archive "clang-$version"; then update_lists; fi
        in_archive "clang-$version" && break
    done
    install_packages --no-remove "clang-$version" || note "going on without clang"
}
in_archive() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

apt_updated=0
update_lists() {
    apt_get -qq update || note "apt-get update failed; trying with the lists there are"
    apt_updated=1
}
install_packages() {
    if ! command -v apt-get >/dev/null 2>&1; then
        note "missing, and there is no apt-get to install it: $*"
        return 1
    fi
    note "installing $*"
    if [ "$apt_updated" = 0 ]; then update_lists; fi
    apt_get -qq install -y --no-install-recommends "$@"
}

# A source tree that was moved or copied contains a build folder that CMake refuses.
forget_moved_build() {
    local cache=$1/CMakeCache.txt
    if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; then
        note "$1 belongs to another folder and is made anew"
        rm -rf "$1"
    fi
}

# Parallel compilations: one per core, but the largest programs take 3 GB each.
job_count() {
    local cores memory
    cores=$(nproc)
    memory=$(awk '/^MemAvailable:/ { print int($2 / 3000000) }' /proc/meminfo 2>/dev/null || echo "$cores")
    if [ "${memory:-0}" -lt 1 ]; then memory=1; fi
    echo $((memory < cores ? memory : cores))
}
