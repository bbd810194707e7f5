#!/usr/bin/env bash
# Builds and runs one consumer: run.sh KIND SOURCE BUILD, where KIND is
#   find_package | kernels | compilation | cuda | cuda_kernels | mpi | add_subdirectory | fetch_content    a project
#   single_header | single_header_readme | single_header_lstm              main.cpp, README.md's first program, lstm.cpp
# Without optimization: what is asked is whether a project finds and links what it needs.
# ctest sets CMAKE, GENERATOR, COMPILER, LAUNCHER and VERSION.
set -euo pipefail

kind=$1 source=$2 build=$3
here=$source/tests/consume
work=$build/consume/$kind
rm -rf "$work"
mkdir -p "$work"

if [ "$kind" = mpi ]; then # by each MPI that is there, one process and two: the same bits
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
    "$CMAKE" --install "$build" --prefix "$work/prefix"
    losses=()
    for mpi in openmpi mpich; do
        if ! command -v "mpicc.$mpi" "mpirun.$mpi" > "$work/found" || [ "$(wc -l < "$work/found")" != 2 ]; then continue; fi
        "$CMAKE" -S "$here/mpi" -B "$work/$mpi" -G "$GENERATOR" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
            "-DCMAKE_CXX_COMPILER=$COMPILER" "-DCMAKE_CXX_COMPILER_LAUNCHER=$LAUNCHER" "-DCMAKE_PREFIX_PATH=$work/prefix" \
            "-Dtapegraph_version=$VERSION" "-DTAPEGRAPH_MPICC=$(command -v "mpicc.$mpi")"
        "$CMAKE" --build "$work/$mpi"
        for ranks in 1 2; do
            said=$("mpirun.$mpi" -n "$ranks" "$work/$mpi/consumer")
            echo "$mpi: $said"
            [[ $said = "$ranks ranks, loss 0x"* ]]
            losses+=("${said#*, }")
        done
    done
    if [ ${#losses[@]} = 0 ]; then exit 77; fi
    [ "$(printf '%s\n' "${losses[@]}" | sort -u | wc -l)" = 1 ]
    exit
fi
if [[ $kind = single_header* ]]; then
    program=$here/main.cpp
    if [ "$kind" = single_header_lstm ]; then program=$here/lstm.cpp; fi
    if [ "$kind" = single_header_readme ]; then
        program=$work/readme.cpp
        awk '/^```cpp$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$source/README.md" > "$program"
    fi
    # No build system, no flags: the file alone.
    "$COMPILER" -std=c++20 -O0 -I "$source/single_include" "$program" -o "$work/consumer"
else
    arguments=(-S "$here/$kind" -B "$work/build" -G "$GENERATOR" -DCMAKE_BUILD_TYPE=Release
        "-DCMAKE_CXX_FLAGS_RELEASE=-O0" "-DCMAKE_CXX_COMPILER=$COMPILER" "-DTAPEGRAPH_SOURCE=$source")
    if [ -n "$LAUNCHER" ]; then arguments+=("-DCMAKE_CXX_COMPILER_LAUNCHER=$LAUNCHER"); fi
    if [[ $kind = cuda* ]]; then
        arguments+=("-DCMAKE_CUDA_COMPILER=$CUDA_COMPILER" -DCMAKE_CUDA_ARCHITECTURES=80-virtual
            "-DCMAKE_CUDA_FLAGS_RELEASE=-O0 -Xcicc -O0")
        if [ -n "$LAUNCHER" ]; then arguments+=("-DCMAKE_CUDA_COMPILER_LAUNCHER=$LAUNCHER"); fi
    fi
    if [[ $kind = *kernels ]]; then # the component has to be built to be installed: for one instruction set, which is quicker
        "$CMAKE" -S "$source" -B "$work/library" -G "$GENERATOR" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=$COMPILER" \
            "-DCMAKE_CXX_COMPILER_LAUNCHER=$LAUNCHER" -DTAPEGRAPH_KERNELS=ON -DTAPEGRAPH_KERNELS_INSTRUCTION_SETS=1 \
            -DTAPEGRAPH_CUDA=OFF -DTAPEGRAPH_BUILD_TESTS=OFF -DTAPEGRAPH_BUILD_EXAMPLES=OFF -DTAPEGRAPH_BUILD_BENCHMARKS=OFF
        "$CMAKE" --build "$work/library"
        "$CMAKE" --install "$work/library" --prefix "$work/prefix"
        arguments+=("-DCMAKE_PREFIX_PATH=$work/prefix" "-Dtapegraph_version=$VERSION")
    fi
    if [[ $kind = @(find_package|compilation|cuda) ]]; then
        "$CMAKE" --install "$build" --prefix "$work/prefix"
        arguments+=("-DCMAKE_PREFIX_PATH=$work/prefix" "-Dtapegraph_version=$VERSION")
    fi
    "$CMAKE" "${arguments[@]}"
    "$CMAKE" --build "$work/build"
    cp "$work/build/consumer" "$work/consumer"
    if [ "$kind" = cuda_kernels ]; then # the program has none of what it took from there
        nm -C "$work"/build/CMakeFiles/consumer.dir/models.cpp.o > "$work/names"
        for name in convolution_bias_op max_pool matmul softmax argsort gather 'recurrent_forward<tapegraph::cpu::lstm_cell'; do
            grep -q "$name" "$work/names" || { echo "models.cpp does not have $name" >&2; exit 1; }
        done
        if grep -E "cuda::kernels::(implicit_gemm|tensor_gemm|few_channels|pool|softmax|step_gemm|recurrent_[a-z]+_resident)" "$work/names"; then exit 1; fi
    fi
    if [ "$kind" = kernels ]; then
        "$work/build/mixture"
        if LC_ALL=C "$CMAKE" --build "$work/build" --target refused > "$work/log" 2>&1; then
            echo "objects and a component of different instruction sets were linked" >&2
            exit 1
        fi
        grep -q tapegraph_objects_differ_in_TG_INSTRUCTION_SETS "$work/log" || { cat "$work/log" >&2; exit 1; }
    fi
fi

output=$("$work/consumer")
echo "$output"
if [ "$kind" = single_header_lstm ]; then exit 0; fi # it looks at its results itself
if [ "$kind" = single_header_readme ]; then
    in_graph=$(sed -n 's/^graph, //p' <<< "$output")
    if [ -z "$in_graph" ] || [ "$in_graph" != "$(sed -n 's/^eager, //p' <<< "$output")" ]; then
        echo "both modes should print the same numbers" >&2
        exit 1
    fi
    exit 0
fi
if [ "${output%%$'\n'*}" != "TapeGraph $VERSION" ]; then
    echo "the first line should be: TapeGraph $VERSION" >&2
    exit 1
fi
