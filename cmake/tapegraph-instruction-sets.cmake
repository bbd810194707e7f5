# Programs of this project run where they are built, and run the processor's best instruction set. So they are compiled for no
# other, which saves a third of their compilation: they link tapegraph_native_development. What is about instruction sets links
# tapegraph_development and has all of them, as programs that use the library have.

set(TAPEGRAPH_INSTRUCTION_SETS "native" CACHE STRING
    "Instruction sets of tests, examples and benchmarks: native (this processor's best), avx2 (for another machine) or all")
set_property(CACHE TAPEGRAPH_INSTRUCTION_SETS PROPERTY STRINGS native avx2 all)

add_library(tapegraph_native_development INTERFACE)
target_link_libraries(tapegraph_native_development INTERFACE tapegraph_development)
if(TAPEGRAPH_INSTRUCTION_SETS STREQUAL "native" AND NOT CMAKE_CROSSCOMPILING)
    if(NOT DEFINED TAPEGRAPH_NATIVE_INSTRUCTION_SET)
        try_run(tapegraph_set tapegraph_set_compiled
            "${CMAKE_CURRENT_BINARY_DIR}/instruction_set" "${PROJECT_SOURCE_DIR}/cmake/instruction_set.cpp"
            CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}/include"
            CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
        if(NOT tapegraph_set_compiled OR NOT tapegraph_set MATCHES "^[124]$")
            message(FATAL_ERROR "The processor's instruction set was not found; set TAPEGRAPH_INSTRUCTION_SETS=all")
        endif()
        set(TAPEGRAPH_NATIVE_INSTRUCTION_SET ${tapegraph_set} CACHE INTERNAL "As TG_INSTRUCTION_SETS has it")
    endif()
    target_compile_definitions(tapegraph_native_development INTERFACE
        TG_INSTRUCTION_SETS=${TAPEGRAPH_NATIVE_INSTRUCTION_SET})
elseif(TAPEGRAPH_INSTRUCTION_SETS STREQUAL "avx2")
    target_compile_definitions(tapegraph_native_development INTERFACE TG_INSTRUCTION_SETS=2)
elseif(NOT TAPEGRAPH_INSTRUCTION_SETS MATCHES "^(native|all)$")
    message(FATAL_ERROR "TAPEGRAPH_INSTRUCTION_SETS is ${TAPEGRAPH_INSTRUCTION_SETS}, not native, avx2 or all")
endif()

# Most of them link the compiled component, which is compiled as they are. Off, everything is compiled where it is used, as in
# programs that have the headers alone.
option(TAPEGRAPH_OWN_KERNELS "Tests, examples and benchmarks link the compiled component" ON)
if(TAPEGRAPH_OWN_KERNELS)
    tapegraph_add_kernels(tapegraph_native_kernels tapegraph_native_development)
    add_library(tapegraph_linked_development ALIAS tapegraph_native_kernels)
else()
    add_library(tapegraph_linked_development ALIAS tapegraph_native_development)
endif()
