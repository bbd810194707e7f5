# Finds CuTe's headers, as TAPEGRAPH_CUTE, and the libcu++ of a CUDA toolkit that they need, as TAPEGRAPH_CCCL. Where a toolkit is but no
# CuTe, it comes from PyPI once, into the build folder; TAPEGRAPH_CUTE_IS_NOT_THERE says why not. For this project's own builds.

find_path(TAPEGRAPH_CCCL cuda/std/utility HINTS /usr/local/cuda/include/cccl "$ENV{CUDA_HOME}/include/cccl"
    DOC "libcu++ of a CUDA toolkit, which CuTe needs")
find_path(TAPEGRAPH_CUTE cute/atom/mma_traits_sm90_gmma.hpp HINTS "${CMAKE_BINARY_DIR}/cute" DOC "CuTe's headers (nvidia-cutlass)")
if(TAPEGRAPH_CCCL AND NOT TAPEGRAPH_CUTE AND NOT TAPEGRAPH_CUTE_IS_NOT_THERE)
    find_package(Python3 COMPONENTS Interpreter QUIET)
    if(Python3_EXECUTABLE)
        execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tools/fetch_package.py" nvidia-cutlass==4.2.0.0
            "${CMAKE_BINARY_DIR}/cute" cutlass_library/source/include/ OUTPUT_VARIABLE why RESULT_VARIABLE failed
            OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(failed)
            set(TAPEGRAPH_CUTE_IS_NOT_THERE "${why}" CACHE INTERNAL "why: it is asked for once")
        else()
            find_path(TAPEGRAPH_CUTE cute/atom/mma_traits_sm90_gmma.hpp HINTS "${CMAKE_BINARY_DIR}/cute"
                DOC "CuTe's headers (nvidia-cutlass)")
        endif()
    endif()
endif()
mark_as_advanced(TAPEGRAPH_CUTE TAPEGRAPH_CCCL)
