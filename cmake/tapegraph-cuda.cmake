# tapegraph::cuda, the GPU backend: headers, libraries, what nvcc must be told, and tapegraph_cuda_library, the sources that are
# compiled for themselves. Used by this project and installed for find_package(tapegraph COMPONENTS cuda).
#
#   project(mine LANGUAGES CXX CUDA)
#   find_package(tapegraph REQUIRED COMPONENTS cuda)
#   add_executable(mine main.cpp)
#   tapegraph_cuda_sources(mine)
#   target_link_libraries(mine PRIVATE tapegraph::cuda_kernels)   # optional, COMPONENTS kernels cuda: kernels compiled once
#
# Needs: the language CUDA enabled; TAPEGRAPH_CUDA_INCLUDE_DIR, where tapegraph/cuda/ lies. Takes, where it finds them, CuTe's headers
# (nvidia-cutlass of PyPI; TAPEGRAPH_CUTE is the folder that holds cute/).

if(NOT TARGET tapegraph::cuda)
    find_package(CUDAToolkit REQUIRED)
    # Targets that are linked through tapegraph::cuda from other directories must not stay private to this one.
    foreach(target CUDA::cublasLt CUDA::cudart_static CUDA::cudart_static_deps CUDA::toolkit)
        if(TARGET ${target})
            get_target_property(tapegraph_imported ${target} IMPORTED)
            if(tapegraph_imported)
                set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
            endif()
        endif()
    endforeach()
    if(NOT TARGET CUDA::cublasLt)
        find_path(TAPEGRAPH_CUBLASLT_INCLUDE_DIR cublasLt.h)
        find_library(TAPEGRAPH_CUBLASLT_LIBRARY cublasLt)
        mark_as_advanced(TAPEGRAPH_CUBLASLT_INCLUDE_DIR TAPEGRAPH_CUBLASLT_LIBRARY)
        if(NOT TAPEGRAPH_CUBLASLT_INCLUDE_DIR OR NOT TAPEGRAPH_CUBLASLT_LIBRARY)
            message(FATAL_ERROR
                "tapegraph::cuda needs cuBLAS (libcublas-dev), which is not beside ${CMAKE_CUDA_COMPILER}; "
                "TAPEGRAPH_CUBLASLT_INCLUDE_DIR and TAPEGRAPH_CUBLASLT_LIBRARY say where it is")
        endif()
        add_library(CUDA::cublasLt UNKNOWN IMPORTED GLOBAL)
        set_target_properties(CUDA::cublasLt PROPERTIES IMPORTED_LOCATION "${TAPEGRAPH_CUBLASLT_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${TAPEGRAPH_CUBLASLT_INCLUDE_DIR}")
    endif()

    add_library(tapegraph::cuda_headers INTERFACE IMPORTED GLOBAL)
    target_include_directories(tapegraph::cuda_headers INTERFACE "${TAPEGRAPH_CUDA_INCLUDE_DIR}")
    target_link_libraries(tapegraph::cuda_headers INTERFACE tapegraph::tapegraph CUDA::cudart_static CUDA::cublasLt)
    target_compile_definitions(tapegraph::cuda_headers INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:TG_CUDA>)
    if(CMAKE_VERSION VERSION_LESS 3.25.2)
        # These know neither CUDA_STANDARD 20 nor cuda_std_20 for nvcc 12 and later.
        target_compile_options(tapegraph::cuda_headers INTERFACE $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-std=c++20>)
    else()
        target_compile_features(tapegraph::cuda_headers INTERFACE cuda_std_20)
    endif()
    # Without contraction elementwise kernels give the CPU's bits; products say fma themselves.
    # Graph mode runs models inside the compiler: the host's, and nvcc's own front end.
    if(CMAKE_CUDA_HOST_COMPILER MATCHES "clang")
        set(tapegraph_host_options "-fconstexpr-steps=50000000,-fbracket-depth=1024")
    else()
        set(tapegraph_host_options "-fconstexpr-ops-limit=2000000000,-fconstexpr-loop-limit=10000000")
    endif()
    target_compile_options(tapegraph::cuda_headers INTERFACE
        "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-fmad=false;--expt-relaxed-constexpr;SHELL:-Xcudafe --max_cost_constexpr_call=2000000000;SHELL:-Xcompiler ${tapegraph_host_options}>")

    # CUB's and Thrust's headers cost nvcc seconds, so few sources include them, for CMAKE_CUDA_ARCHITECTURES, once for all programs of a build.
    # Their objects are named on the command line of whatever links tapegraph::cuda, also through static libraries: nothing in them
    # is called by name (they make themselves known before main), so that in an archive the linker would pass them by.
    add_library(tapegraph_cuda_library OBJECT EXCLUDE_FROM_ALL
        "${TAPEGRAPH_CUDA_INCLUDE_DIR}/tapegraph/cuda/library/ordering.cu"
        "${TAPEGRAPH_CUDA_INCLUDE_DIR}/tapegraph/cuda/library/reduce.cu")
    target_link_libraries(tapegraph_cuda_library PRIVATE tapegraph::cuda_headers)
    set_target_properties(tapegraph_cuda_library PROPERTIES POSITION_INDEPENDENT_CODE ON)

    # Convolutions by the instructions of compute capability 9.0 alone, likewise, where that is among CMAKE_CUDA_ARCHITECTURES and CuTe's
    # headers are.
    set(tapegraph_cuda_objects $<TARGET_OBJECTS:tapegraph_cuda_library>)
    find_path(TAPEGRAPH_CUTE cute/atom/mma_traits_sm90_gmma.hpp DOC "CuTe's headers (nvidia-cutlass)")
    mark_as_advanced(TAPEGRAPH_CUTE)
    if(TAPEGRAPH_CUTE AND CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)90a?(-|;|$)")
        add_library(tapegraph_cuda_sm90 OBJECT EXCLUDE_FROM_ALL
            "${TAPEGRAPH_CUDA_INCLUDE_DIR}/tapegraph/cuda/library/convolution_sm90.cu")
        target_link_libraries(tapegraph_cuda_sm90 PRIVATE tapegraph::cuda_headers)
        target_include_directories(tapegraph_cuda_sm90 SYSTEM PRIVATE "${TAPEGRAPH_CUTE}")
        set_target_properties(tapegraph_cuda_sm90 PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_ARCHITECTURES 90a-real)
        list(APPEND tapegraph_cuda_objects $<TARGET_OBJECTS:tapegraph_cuda_sm90>)
    endif()

    add_library(tapegraph::cuda INTERFACE IMPORTED GLOBAL)
    target_link_libraries(tapegraph::cuda INTERFACE tapegraph::cuda_headers ${tapegraph_cuda_objects})

    # tapegraph::cuda_kernels: tapegraph::kernels and its device's half (cuda/component.cuh), compiled for
    # CMAKE_CUDA_ARCHITECTURES once per build, when something links it.
    if(TARGET tapegraph::kernels)
        set(tapegraph_cuda_parts convolution movement ordering pooling recurrent reduction)
        set(tapegraph_cuda_part_sources "")
        foreach(part IN LISTS tapegraph_cuda_parts)
            set(text "#include <tapegraph/tapegraph.hpp>\n")
            if(part STREQUAL "recurrent") # the library's cells, then what runs them
                set(text "#include <tapegraph/ops/recurrent/layers_kernel.hpp>\n\n#include <tapegraph/nn/layers/recurrent.hpp>\n")
            endif()
            set(source "${CMAKE_CURRENT_BINARY_DIR}/tapegraph_cuda_kernels/${part}.cu")
            file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
            set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS TG_CUDA_PART=${part})
            list(APPEND tapegraph_cuda_part_sources "${source}")
        endforeach()
        add_library(tapegraph_cuda_kernels STATIC EXCLUDE_FROM_ALL ${tapegraph_cuda_part_sources})
        set_target_properties(tapegraph_cuda_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
        target_link_libraries(tapegraph_cuda_kernels PUBLIC tapegraph::kernels tapegraph::cuda)
        target_compile_definitions(tapegraph_cuda_kernels PRIVATE TG_CUDA_COMPONENT=2
            INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:TG_CUDA_COMPONENT=1>)
        add_library(tapegraph::cuda_kernels ALIAS tapegraph_cuda_kernels)
    endif()
endif()

# Compiles a target's .cpp files with nvcc, so that the models in them run on GPUs, and links tapegraph::cuda. Another
# target of the same directory that has one of these files gets it compiled by nvcc, too.
function(tapegraph_cuda_sources target)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.(cpp|cxx|cc)$")
    get_target_property(directory ${target} SOURCE_DIR)
    set_source_files_properties(${sources} DIRECTORY "${directory}" PROPERTIES LANGUAGE CUDA)
    target_link_libraries(${target} PRIVATE tapegraph::cuda)
endfunction()
