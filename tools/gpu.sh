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

# build_for_gpu TARGET...: configures build/gpu and builds. TAPEGRAPH_CMAKE_ARGS adds to the configuration.
build_for_gpu() {
    if [ -z "${CUDACXX:-}" ] && ! command -v nvcc >/dev/null 2>&1; then
        if [ ! -x /usr/local/cuda/bin/nvcc ]; then
            echo "nvcc was not found (set CUDACXX)" >&2
            return 1
        fi
        export CUDACXX=/usr/local/cuda/bin/nvcc
    fi
    # Word splitting is wanted: several arguments in one variable.
    # shellcheck disable=SC2086
    cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" \
        "-DCMAKE_CUDA_FLAGS_RELEASE=-O2 -DNDEBUG" "-DCMAKE_CUDA_ARCHITECTURES=$gpu_architecture-real" \
        -DTAPEGRAPH_CUDA=ON -DTAPEGRAPH_GPU_TESTS=ON -DTAPEGRAPH_BUILD_EXAMPLES=OFF ${TAPEGRAPH_CMAKE_ARGS:-} &&
        cmake --build build/gpu --parallel "$(nproc)" --target "$@"
}
