# Kernels in the shapes that GPUs run them in, machine code that is read, and whole programs, all by nvcc.

file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/compile/*.cu")
add_library(tapegraph_kernel_report OBJECT ${sources})
target_link_libraries(tapegraph_kernel_report PRIVATE tapegraph::cuda)
target_compile_options(tapegraph_kernel_report PRIVATE "SHELL:-Xptxas -v" "SHELL:-Xcompiler -Wall,-Wextra")
set_target_properties(tapegraph_kernel_report PROPERTIES
    CUDA_ARCHITECTURES "${TAPEGRAPH_CUDA_REPORT_ARCHITECTURES}"
    NO_SYSTEM_FROM_IMPORTED ON)

if(Python3_Interpreter_FOUND AND CMAKE_GENERATOR MATCHES "Ninja|Makefiles")
    set(report "${PROJECT_SOURCE_DIR}/tools/kernel_report.py")
    set(device --device) # the host's half, which other targets compile, takes a fifth to three quarters of the time
    if(TAPEGRAPH_SUITE STREQUAL "all")
        set(device "")
        target_compile_definitions(tapegraph_kernel_report PRIVATE TG_EVERY_KERNEL)
    endif()
    set_target_properties(tapegraph_kernel_report PROPERTIES
        RULE_LAUNCH_COMPILE "\"${Python3_EXECUTABLE}\" \"${report}\" compile ${device} <OBJECT>.log --")
    set(logs "")
    foreach(source IN LISTS sources)
        cmake_path(GET source FILENAME name)
        list(APPEND logs "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/tapegraph_kernel_report.dir/compile/${name}.o.log")
    endforeach()

    add_library(tapegraph_products OBJECT products.cu)
    target_link_libraries(tapegraph_products PRIVATE tapegraph::cuda)
    set_target_properties(tapegraph_products PROPERTIES CUDA_PTX_COMPILATION ON CUDA_ARCHITECTURES 90-virtual)

    add_test(NAME kernel_report
        COMMAND Python3::Interpreter "${report}" report ${logs} --ptx $<TARGET_OBJECTS:tapegraph_products>
                --products "implicit_gemm|few_channels"
        COMMAND_EXPAND_LISTS)
    set_tests_properties(kernel_report PROPERTIES LABELS cuda)
endif()

# Machine code of the kernels that are counted, for every architecture: some 36 s of processor time.
# Those of warpgroups need CuTe.
if(Python3_Interpreter_FOUND)
    set(TAPEGRAPH_SASS_ARCHITECTURES "75,80,86,89,90,100,120" CACHE STRING "Devices whose machine code is read")
    function(tapegraph_add_sass_gate name source architectures)
        add_test(NAME ${name}
            COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/sass_gate.py" "${CMAKE_CURRENT_SOURCE_DIR}/sass/${source}"
                    --architectures "${architectures}" --nvcc "${CMAKE_CUDA_COMPILER}" --fetch "${CMAKE_BINARY_DIR}/nvdisasm"
                    -- -std=c++20 -O2 -DTG_CUDA -fmad=false --expt-relaxed-constexpr -Xcudafe --max_cost_constexpr_call=2000000000
                    "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/cuda" ${ARGN})
        set_tests_properties(${name} PROPERTIES LABELS cuda SKIP_RETURN_CODE 77 TIMEOUT 600)
    endfunction()
    tapegraph_add_sass_gate(sass_gate kernels.cu "${TAPEGRAPH_SASS_ARCHITECTURES}")
    if(TARGET tapegraph_cuda_sm90)
        tapegraph_add_sass_gate(sass_gate_warpgroups warpgroups.cu 90a -isystem "${TAPEGRAPH_CUTE}")
    endif()
endif()

# A whole program, and with it tapegraph_cuda_library (CUB, for CMAKE_CUDA_ARCHITECTURES), without a
# warning. A larger one (examples/first_program.cpp, both modes) would take nvcc longer than
# everything else here.
target_compile_options(tapegraph_cuda_library PRIVATE "SHELL:-Xcompiler -Wall,-Wextra,-Werror")
add_executable(program_by_nvcc program/training.cu)
target_link_libraries(program_by_nvcc PRIVATE tapegraph::cuda tapegraph_linked_development)
set_target_properties(program_by_nvcc PROPERTIES CUDA_ARCHITECTURES "${TAPEGRAPH_CUDA_REPORT_ARCHITECTURES}")
if(NOT TAPEGRAPH_SUITE STREQUAL "all" AND NOT TAPEGRAPH_GPU_TESTS) # what no device runs: no optimization (CUB takes longer so), no machine code
    set(unoptimized "SHELL:-Xcicc -O0" "SHELL:-Xcompiler -O0")
    target_compile_options(program_by_nvcc PRIVATE ${unoptimized})
    set_target_properties(program_by_nvcc PROPERTIES CUDA_ARCHITECTURES 90-virtual)
    if(TARGET tapegraph_cuda_sm90)
        target_compile_options(tapegraph_cuda_sm90 PRIVATE ${unoptimized})
        set_target_properties(tapegraph_cuda_sm90 PROPERTIES CUDA_ARCHITECTURES 90a-virtual)
    endif()
endif()
add_test(NAME program_by_nvcc COMMAND program_by_nvcc)
set_tests_properties(program_by_nvcc PROPERTIES LABELS cuda TIMEOUT 120)

# Thrust with tensors, as in docs/interop.md; on a machine without a GPU it says so.
if(TAPEGRAPH_SUITE STREQUAL "all")
    add_executable(thrust_by_nvcc program/thrust.cu)
    target_link_libraries(thrust_by_nvcc PRIVATE tapegraph::cuda tapegraph_linked_development)
    set_target_properties(thrust_by_nvcc PROPERTIES CUDA_ARCHITECTURES "${TAPEGRAPH_CUDA_REPORT_ARCHITECTURES}")
    target_compile_options(thrust_by_nvcc PRIVATE "SHELL:-Xcicc -O0" "SHELL:-Xptxas -O0") # whether it compiles, not how fast it is
    add_test(NAME thrust_by_nvcc COMMAND thrust_by_nvcc)
    set_tests_properties(thrust_by_nvcc PROPERTIES LABELS cuda TIMEOUT 120)
endif()
