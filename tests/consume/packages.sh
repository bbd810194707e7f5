#!/usr/bin/env bash
# Builds and runs main.cpp by what is not a CMake project: packages.sh KIND SOURCE BUILD, where KIND is
#   pkg_config     the compiler with the flags of the installed .pc files
#   meson          a Meson project
#   conan          the Conan package of this checkout, made and used
#   archives       the release archives of tools/release.sh, unpacked and used one by one
#   vcpkg          the port of tools/packaging/vcpkg, run by imitations of vcpkg's functions
#   spack          the package of tools/packaging/spack, run by imitations of Spack's directives
#   bazel          a project of Bazel 4 with the build file of tools/packaging/bazel
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

build_consumer() { # build_consumer PREFIX: the project that calls find_package, with what a package manager has installed there
    "$CMAKE" -S "$here/find_package" -B "$work/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
        "-DCMAKE_CXX_COMPILER=$COMPILER" "-DCMAKE_PREFIX_PATH=$1" "-Dtapegraph_version=$VERSION"
    "$CMAKE" --build "$work/consumer"
    run "$work/consumer/consumer"
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
vcpkg)
    needs ninja
    "$CMAKE" "-DPORT_FOLDER=$source/tools/packaging/vcpkg/tapegraph" "-DPACKAGES=$work/package" "-DBUILDTREES=$work/library" \
        "-DCOMPILER=$COMPILER" "-DVERSION=$VERSION" -P "$here/vcpkg/run_port.cmake"
    build_consumer "$work/package"
    ;;
spack)
    needs ninja
    COMPILER=$COMPILER CMAKE=$CMAKE python3 "$here/spack/run_package.py" \
        "$source/tools/packaging/spack/spack_repo/tapegraph/packages/tapegraph/package.py" \
        "$source" "$work/library" "$work/package" "$VERSION"
    build_consumer "$work/package"
    ;;
bazel)
    needs bazel
    # Debian's, which is 4.2.3, has no version.
    [[ $(bazel --version) = @("bazel 4."*|"bazel no_version") ]] || { echo "skipped: $(bazel --version) downloads its rules"; exit 77; }
    mkdir -p "$work"/project/rules_{cc,java}/{cc,java}
    cp "$here"/bazel/{BUILD.bazel,.bazelrc} "$here/main.cpp" "$source/tools/packaging/bazel/tapegraph.BUILD.bazel" "$work/project"
    sed "s|@source@|$source|" "$here/bazel/WORKSPACE.in" > "$work/project/WORKSPACE"
    natives() { # natives LANGUAGE RULE...: a repository whose rules are Bazel's own
        local language=$1 folder=$work/project/rules_$1
        shift
        touch "$folder/WORKSPACE" "$folder/$language/BUILD"
        for rule; do echo "${language}_$rule = native.${language}_$rule"; done > "$folder/$language/defs.bzl"
    }
    natives cc binary library toolchain toolchain_suite
    natives java binary import library package_configuration plugin runtime test toolchain
    (cd "$work/project" && CC=$COMPILER bazel --batch "--output_user_root=$work/bazel" build //:consumer)
    run "$work/project/bazel-bin/consumer"
    chmod -R u+w "$work/bazel"
    ;;
*)
    echo "packages.sh: no such kind: $kind" >&2
    exit 1
    ;;
esac
