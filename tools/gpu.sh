# Sourced by tests/gpu.sh and benchmarks/gpu.sh: builds for a GPU in build/gpu, and packs the parts
# that run elsewhere in build/gpu/packed.

# Sets gpu_name and gpu_architecture ("90") for the first GPU; returns false if there is none.
find_gpu() {
    local line
    command -v nvidia-smi >/dev/null 2>&1 || return 1
    line=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || return 1
    gpu_name=${line%,*}
    gpu_architecture=$(tr -dc '0-9' <<<"${line##*,}")
    [ -n "$gpu_architecture" ]
}

# Finds cuBLAS if it is not next to nvcc: in the wheels that PyTorch depends on. Prints arguments
# for CMake, if any.
cublas_of_python() {
    python3 - <<'PYTHON' 2>/dev/null
import glob, importlib.util
roots = list(getattr(importlib.util.find_spec("nvidia"), "submodule_search_locations", None) or [])
def first(pattern):
    found = [f for r in roots for f in sorted(glob.glob(r + "/*/" + pattern))]
    return found[0] if found else None
header, library = first("include/cublasLt.h"), first("lib/libcublasLt.so*")
if header and library:
    print(f"-DTAPEGRAPH_CUBLASLT_INCLUDE_DIR={header.rsplit('/', 1)[0]}", f"-DTAPEGRAPH_CUBLASLT_LIBRARY={library}")
PYTHON
}

# configure_for_gpu ARCHITECTURE: runs CMake, for "90"; TAPEGRAPH_CMAKE_ARGS adds arguments. The
# host's code is for AVX2, since the GPU may be in another machine. The last line of output names
# what is missing.
configure_for_gpu() {
    command -v cmake >/dev/null 2>&1 || {
        echo "cmake was not found" >&2
        return 1
    }
    if [ -z "${CUDACXX:-}" ] && ! command -v nvcc >/dev/null 2>&1; then
        if [ ! -x /usr/local/cuda/bin/nvcc ]; then
            echo "nvcc was not found (set CUDACXX)" >&2
            return 1
        fi
        export CUDACXX=/usr/local/cuda/bin/nvcc
    fi
    mkdir -p build/gpu
    # Word splitting is wanted: several arguments in one variable.
    # shellcheck disable=SC2046,SC2086
    cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
        "-DCMAKE_CUDA_FLAGS_RELEASE=-O2 -DNDEBUG" "-DCMAKE_CUDA_ARCHITECTURES=$1-real" \
        "-DTAPEGRAPH_CUDA_REPORT_ARCHITECTURES=$1-real" $(cublas_of_python) -DTAPEGRAPH_BUILD_TESTS=ON \
        -DTAPEGRAPH_BUILD_BENCHMARKS=ON -DTAPEGRAPH_CUDA=ON -DTAPEGRAPH_GPU_TESTS=ON \
        -DTAPEGRAPH_BUILD_EXAMPLES=ON -DTAPEGRAPH_CUDA_EXAMPLES=ON \
        -DTAPEGRAPH_INSTRUCTION_SETS=avx2 -DTAPEGRAPH_KERNELS_INSTRUCTION_SETS=2 \
        ${TAPEGRAPH_CMAKE_ARGS:-} 2>&1 | tee build/gpu/configuration.log && return # with pipefail cmake's own status counts
    echo "not configured:$(awk '
        /^CMake Error/ { if (found++) exit; sub(/^CMake Error( at [^:]*:[0-9]+ [^:]*)?: */, "") }
        found && (/^--/ || (NF == 0 && told)) { exit }
        found && NF > 0 { $1 = $1; printf " %s", $0; told = 1 }' build/gpu/configuration.log)" \
        "(TAPEGRAPH_CMAKE_ARGS adds arguments, such as -DTAPEGRAPH_DOCTEST_INCLUDE_DIR=DIR)" >&2
    return 1
}

# gpu_programs PATTERN: lists targets of the build, small ones first.
gpu_programs() {
    ninja -C build/gpu -t targets all | sed -n 's/: phony$//p' | grep -E "^($1)$" | sort -u
}

# build_for_gpu ARCHITECTURE PATTERN: builds all programs with these names; failures do not stop the
# others, and are named at the end. An interrupted build continues where it was.
build_for_gpu() {
    configure_for_gpu "$1" || return
    # shellcheck disable=SC2046
    cmake --build build/gpu --parallel "$(nproc)" --target $(gpu_programs "$2") -- -k 0 && return
    echo "not everything was built" >&2
    return 1
}

# pack_for_gpu: packs the built programs, stripped, with the scripts that run them, into the folder
# build/gpu/packed.
pack_for_gpu() {
    local to=build/gpu/packed program
    rm -rf "$to"
    mkdir -p "$to/bin" "$to/lib" "$to/benchmarks"
    for program in build/gpu/tests/cuda/{test_gpu_*,program_by_nvcc} build/gpu/benchmarks/bench_{gpu,compare}_* \
        build/gpu/examples/{batch,mode}_study; do
        [ -f "$program" ] && [ -x "$program" ] || continue
        strip -o "$to/bin/${program##*/}" "$program"
    done
    # Libraries of readers, which the other machine may lack; not the system's own, the driver's or cuBLAS.
    ldd "$to"/bin/* 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
        grep -v -E '/(ld-|libc\.|libm\.|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libcu|libnv)' |
        while read -r library; do cp -L "$library" "$to/lib/"; done
    cp tests/gpu_plan.sh "$to/"
    cp -r benchmarks/gpu_*.py benchmarks/compare "$to/benchmarks/"
    rm -rf "$to"/benchmarks/compare/{*.cpp,*.hpp,__pycache__}
    git rev-parse HEAD >"$to/commit" 2>/dev/null || echo unknown >"$to/commit"
}
