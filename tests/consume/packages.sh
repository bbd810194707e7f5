#!/usr/bin/env bash
# Builds and runs main.cpp by what is not a CMake project: packages.sh KIND SOURCE BUILD, where KIND is
#   pkg_config     the compiler with the flags of the installed .pc files
#   meson          a Meson project
#   conan          the Conan package of this checkout, made and used
#   archives       the release archives of tools/release.sh, unpacked and used one by one
# ctest sets CMAKE, COMPILER and VERSION. Ends with 77, which means skipped, where the tool is missing.
set -euo pipefail

kind=$1 source=$2 build=$3
here=$source/tests/consume
work=$build/consume/$kind
rm -rf "$work"
mkdir -p "$work"

needs() { command -v "$1" > /dev/null || { echo "skipped: there is no $1"; exit 77; }; }

# run PROGRAM: its first line names the version, and it looks at its numbers itself.
run() {
    local output
    output=$("$1")
    echo "$output"
    [ "${output%%$'\n'*}" = "TapeGraph $VERSION" ] || { echo "the first line should be: TapeGraph $VERSION" >&2; exit 1; }
}

install_headers() { # into $work/prefix, which is then moved: an installation can be
    "$CMAKE" --install "$build" --prefix "$work/installed" > "$work/log"
    mv "$work/installed" "$work/prefix"
    export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig
    PKG_CONFIG_PATH+=:$(dirname "$(find "$work/prefix" -name tapegraph.pc)")
}

case $kind in
pkg_config)
    needs pkg-config
    install_headers
    [ "$(pkg-config --modversion tapegraph)" = "$VERSION" ]
    # Word splitting is wanted: several flags in one text.
    # shellcheck disable=SC2046
    "$COMPILER" -std=c++20 -O1 $(pkg-config --cflags tapegraph) "$here/main.cpp" $(pkg-config --libs tapegraph) -o "$work/consumer"
    run "$work/consumer"
    ;;
meson)
    needs meson
    needs pkg-config
    install_headers
    cp "$here/meson/meson.build" "$here/main.cpp" "$work"
    CXX=$COMPILER meson setup "$work/build" "$work"
    meson compile -C "$work/build"
    run "$work/build/consumer"
    ;;
conan)
    needs conan
    export CONAN_HOME=$work/home
    mkdir -p "$work/source/tests/consume" # a copy: Conan writes beside what it builds
    cp -r "$source"/{conanfile.py,CMakeLists.txt,LICENSE,cmake,include,cuda} "$work/source"
    cp -r "$here"/{conan,main.cpp} "$work/source/tests/consume"
    CXX=$COMPILER conan profile detect
    (cd "$work/source" && CXX=$COMPILER conan create . -s compiler.cppstd=20 -s build_type=Release) 2>&1 | tee "$work/log"
    grep -q "^TapeGraph $VERSION$" "$work/log"
    ;;
archives)
    "$source/tools/release.sh" "$work/archives"
    for archive in "$work"/archives/*.tar.gz; do
        folder=$work/$(basename "$archive" .tar.gz)
        mkdir "$folder"
        tar -xzf "$archive" -C "$folder" --strip-components 1
        "$COMPILER" -std=c++20 -O1 -I "$folder/include" "$here/main.cpp" -o "$folder/consumer"
        run "$folder/consumer"
    done
    ;;
*)
    echo "packages.sh: no such kind: $kind" >&2
    exit 1
    ;;
esac
