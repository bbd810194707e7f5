# What makes programs compile in less time. Used by this project and installed for find_package(tapegraph); docs/compile_time.md
# says what each of these saves.
#
#   tapegraph::weights                  a library with the functions of <tapegraph/io/weights.hpp>
#   tapegraph_precompile(TARGET...)     one precompiled <tapegraph/tapegraph.hpp> for all these targets
#
# Needs TAPEGRAPH_INCLUDE_DIR, where tapegraph/ lies.

# The library is compiled in the project that uses it, so with that project's flags, and only if something links it. Programs that
# do so have the functions declared alone.
if(NOT TARGET tapegraph_weights)
    add_library(tapegraph_weights STATIC EXCLUDE_FROM_ALL "${TAPEGRAPH_INCLUDE_DIR}/tapegraph/io/weights.cpp")
    add_library(tapegraph::weights ALIAS tapegraph_weights)
    target_link_libraries(tapegraph_weights PUBLIC tapegraph::tapegraph)
    target_compile_definitions(tapegraph_weights INTERFACE TG_WEIGHTS_COMPILED)
    set_target_properties(tapegraph_weights PROPERTIES POSITION_INDEPENDENT_CODE ON)
endif()

# Precompiles the umbrella header for targets, which must be compiled with the same options and definitions. The first makes the
# header and the others wait for it, so it must not link any of them. HEADERS adds headers, as target_precompile_headers takes them.
function(tapegraph_precompile)
    cmake_parse_arguments(PARSE_ARGV 0 tapegraph "" "" HEADERS)
    if(NOT tapegraph_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "tapegraph_precompile: names no target")
    endif()
    list(POP_FRONT tapegraph_UNPARSED_ARGUMENTS first)
    target_precompile_headers(${first} PRIVATE <tapegraph/tapegraph.hpp> ${tapegraph_HEADERS})
    foreach(target IN LISTS tapegraph_UNPARSED_ARGUMENTS)
        target_precompile_headers(${target} REUSE_FROM ${first})
    endforeach()
endfunction()
