# Sourced by tests/gpu.sh and benchmarks/gpu.sh: which GPU there is, and a build for it in build/gpu.

# Sets gpu_name and gpu_architecture ("90"), of the first GPU; false when there is none.
find_gpu() {
    local line
    command -v nvidia-smi >/dev/null 2>&1 || return 1
    line=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null | head -n 1) || return 1
    gpu_name=${line%,*}
    gpu_architecture=$(tr -dc '0-9' <<<"${line##*,}")
    [ -n "$gpu_architecture" ]
}

# What is left, at least 1, of the seconds that a script takes: those it ends within, ten minutes less some for the end, unless
# TAPEGRAPH_GPU_SECONDS says otherwise.
left() {
    local seconds=$((${TAPEGRAPH_GPU_SECONDS:-585} - SECONDS))
    echo $((seconds > 1 ? seconds : 1))
}

# Where cuBLAS is if it is not beside nvcc: in the wheels that PyTorch brings along. Prints arguments for CMake, if any.
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

# configure_for_gpu ARGUMENT...: for CMake; TAPEGRAPH_CMAKE_ARGS adds to them. What is missing is the last line said.
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
        "-DCMAKE_CUDA_FLAGS_RELEASE=-O2 -DNDEBUG" "-DCMAKE_CUDA_ARCHITECTURES=$gpu_architecture-real" \
        "-DTAPEGRAPH_CUDA_REPORT_ARCHITECTURES=$gpu_architecture-real" $(cublas_of_python) \
        -DTAPEGRAPH_CUDA=ON -DTAPEGRAPH_GPU_TESTS=ON -DTAPEGRAPH_BUILD_EXAMPLES=OFF "$@" ${TAPEGRAPH_CMAKE_ARGS:-} \
        2>&1 | tee build/gpu/configuration.log && return # with pipefail cmake's own status counts
    echo "not configured:$(awk '
        /^CMake Error/ { if (found++) exit; sub(/^CMake Error( at [^:]*:[0-9]+ [^:]*)?: */, "") }
        found && (/^--/ || (NF == 0 && told)) { exit }
        found && NF > 0 { $1 = $1; printf " %s", $0; told = 1 }' build/gpu/configuration.log)" \
        "(TAPEGRAPH_CMAKE_ARGS adds arguments, such as -DTAPEGRAPH_DOCTEST_INCLUDE_DIR=DIR)" >&2
    return 1
}

# build_for_gpu SECONDS FOLDER PROGRAM...: as many of the folder's as can be built in that time; what fails does not keep the
# others from it. Afterwards those that are up to date exist, and no others.
build_for_gpu() {
    (cd "build/gpu/$2" && rm -f -- "${@:3}")
    timeout "$1" cmake --build build/gpu --parallel "$(nproc)" --target "${@:3}" -- -k 0
}
