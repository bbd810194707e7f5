# What runs Python: expected compile errors, front ends of other compilers, and the checks of tools/.

if(Python3_Interpreter_FOUND)
    # The umbrella header precompiled with no options but the language's, for tests that ask the compiler's opinion alone. If some
    # option of theirs should not suit, g++ reads the header itself. Where the suite is not all, it has the declarations of what the
    # component defines: what inline functions use is otherwise instantiated in every one of these tests, most of their time.
    set(tapegraph_has_component OFF)
    if(TARGET tapegraph_native_kernels AND NOT TAPEGRAPH_SANITIZE AND TAPEGRAPH_INSTRUCTION_SETS STREQUAL "native")
        set(tapegraph_has_component ON)
    endif()
    set(tapegraph_plain_umbrella "")
    if(TAPEGRAPH_TEST_PRECOMPILED_HEADER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        set(tapegraph_plain_umbrella "${CMAKE_CURRENT_BINARY_DIR}/plain/umbrella.hpp")
        set(umbrella_text "#include <tapegraph/tapegraph.hpp>\n")
        if(tapegraph_has_component AND NOT TAPEGRAPH_SUITE STREQUAL "all")
            string(PREPEND umbrella_text "#define TG_COMPONENT 1\n")
        endif()
        file(CONFIGURE OUTPUT "${tapegraph_plain_umbrella}" CONTENT "${umbrella_text}" @ONLY)
        add_custom_command(OUTPUT "${tapegraph_plain_umbrella}.gch"
            COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/include" -MD -MF "${tapegraph_plain_umbrella}.d"
                -MT "${tapegraph_plain_umbrella}.gch" -x c++-header "${tapegraph_plain_umbrella}" -o "${tapegraph_plain_umbrella}.gch"
            DEPFILE "${tapegraph_plain_umbrella}.d" DEPENDS "${tapegraph_plain_umbrella}" VERBATIM)
        add_custom_target(tapegraph_plain_umbrella ALL DEPENDS "${tapegraph_plain_umbrella}.gch")
    endif()
    add_subdirectory(compile_fail)
    if(NOT "compilers" IN_LIST tapegraph_left_out)
        add_subdirectory(compilers)
    endif()
    add_subdirectory(machines)
    add_test(NAME include_directions
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/check_includes.py")
    # Tests of all losses, say, that leave one out.
    add_test(NAME lists_of_tests COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/check_lists.py")
    # Numbers that are 0 or infinite in half.
    add_test(NAME constants_in_half COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/check_constants.py")
    add_test(NAME single_header_is_current
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/single_header.py" --check)
    # No program of docs/from_*.md is longer than the original.
    add_test(NAME lengths COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/check_lengths.py")
    set_tests_properties(include_directions lists_of_tests constants_in_half single_header_is_current lengths
        PROPERTIES LABELS tools)
    # What blocks exchange, under PTX's memory model; and that a weaker order in the source is found.
    add_test(NAME ptx_litmus COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/ptx_litmus.py")
    add_test(NAME ptx_litmus/weakened COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/ptx_litmus.py"
        --source "${CMAKE_CURRENT_BINARY_DIR}/weakened.cuh")
    file(READ "${PROJECT_SOURCE_DIR}/cuda/tapegraph/cuda/kernels/synchronization.cuh" weakened)
    string(REPLACE "red.release.gpu" "red.relaxed.gpu" weakened "${weakened}")
    file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/weakened.cuh" "${weakened}")
    set_tests_properties(ptx_litmus PROPERTIES LABELS tools)
    set_tests_properties(ptx_litmus/weakened PROPERTIES LABELS tools
        PASS_REGULAR_EXPRESSION "grid: what one block wrote: sees .*WRONG")
    # The comparison with other libraries, which takes none of them for this.
    add_test(NAME compare COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/compare/compare_test.py")
    add_test(NAME product_limits COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/compare/product_limits_test.py")
    # The plan for a GPU, with programs that pass, fail and hang in the place of those that need one.
    add_test(NAME gpu_plan COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/compare/gpu_plan_test.py")
    set_tests_properties(compare product_limits gpu_plan PROPERTIES LABELS tools TIMEOUT 300)
    # The site: its checkers of links, comments and sections, and where Zensical, Doxygen and Chromium are, all names, and the whole of it,
    # built strictly and opened.
    foreach(name links comments sections)
        add_test(NAME site/${name} COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/site/${name}_test.py")
        set_tests_properties(site/${name} PROPERTIES LABELS tools SKIP_RETURN_CODE 77)
    endforeach()
    if(TAPEGRAPH_SUITE STREQUAL "all")
        add_test(NAME site/all_comments COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/site/comments.py" --check)
        add_test(NAME site COMMAND "${PROJECT_SOURCE_DIR}/tools/site.sh" --check --here)
        set_tests_properties(site/all_comments site PROPERTIES LABELS tools TIMEOUT 1200 SKIP_RETURN_CODE 77)
    endif()
    # Seconds per target, of a log of two builds.
    configure_file("${CMAKE_CURRENT_SOURCE_DIR}/compile_budget/ninja_log" "${CMAKE_CURRENT_BINARY_DIR}/.ninja_log" COPYONLY)
    add_test(NAME build_times
        COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/build_times.py" "${CMAKE_CURRENT_BINARY_DIR}")
    set_tests_properties(build_times PROPERTIES LABELS tools PASS_REGULAR_EXPRESSION
        "7.0 +1  umbrella: cmake_pch.hxx 7.0\n +5.8 +3  test_ops: ops/a_test.cpp 3.5\n +12.8 +4  all")
    if("pages" IN_LIST tapegraph_left_out)
        return()
    endif()
    # What README.md and docs/ show, compiled; and pages on which the tool must find what is wrong.
    set(check_snippets "${PROJECT_SOURCE_DIR}/tools/check_snippets.py" --compiler "${CMAKE_CXX_COMPILER}")
    set(clang_budgets "")
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        set(clang_budgets -- -fconstexpr-steps=50000000 -fbracket-depth=1024)
    endif()
    # Pages that are only compiled read a precompiled umbrella, and those that run link the component, as other programs here do.
    set(for_pages "")
    if(tapegraph_plain_umbrella)
        list(APPEND for_pages --precompiled "${tapegraph_plain_umbrella}")
    endif()
    if(tapegraph_has_component)
        list(APPEND for_pages --component "$<TARGET_FILE:tapegraph_native_kernels>" ${TAPEGRAPH_NATIVE_INSTRUCTION_SET})
    endif()
    set(pages "")
    if(NOT TAPEGRAPH_SUITE STREQUAL "all") # those that newcomers read
        set(pages "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/docs/tutorial.md")
    endif()
    set(short_calls "")
    if(NOT TAPEGRAPH_SUITE STREQUAL "all")
        set(short_calls --short)
    endif()
    # A header that a page names is enough for what the page says it has.
    add_test(NAME named_headers COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/check_named_headers.py"
        --compiler "${CMAKE_CXX_COMPILER}" ${for_pages} ${short_calls} ${clang_budgets})
    set_tests_properties(named_headers PROPERTIES LABELS tools TIMEOUT 1200)
    add_test(NAME snippets COMMAND Python3::Interpreter ${check_snippets} ${for_pages} ${pages} ${clang_budgets})
    set_tests_properties(snippets PROPERTIES LABELS tools TIMEOUT 1200 PROCESSORS ${tapegraph_processors})
    set(objection_wrong
        "md:9: unknown words after cpp: unheard.*md:17: no statements.*md:23: examples/first_program.cpp does not contain.*md:6: there is no block.*md:14: compiles, but.*, 5 errors")
    set(objection_refused "refused.md:9:10: error: .*cubed")
    set(objection_output "output.md:16: the program prints\n    3\n    4\n.*, 1 errors")
    foreach(name wrong refused output)
        add_test(NAME snippets/${name}
            COMMAND Python3::Interpreter ${check_snippets} ${for_pages} "${CMAKE_CURRENT_SOURCE_DIR}/snippets/${name}.md")
        set_tests_properties(snippets/${name} PROPERTIES LABELS tools PASS_REGULAR_EXPRESSION "${objection_${name}}")
    endforeach()
    # What gdb and lldb show of tensors, where they are installed.
    add_test(NAME debugger_printers COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/debugger/check.py"
        "${CMAKE_CURRENT_SOURCE_DIR}/debugger/printed.cpp" "${CMAKE_CXX_COMPILER}" -std=c++20
        "-I${PROJECT_SOURCE_DIR}/include")
    set_tests_properties(debugger_printers PROPERTIES LABELS tools SKIP_RETURN_CODE 77)
    # What compiling costs, and a budget that is exceeded.
    set(compile_budget Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/compile_budget.py" --compiler "${CMAKE_CXX_COMPILER}")
    add_test(NAME compile_budget COMMAND ${compile_budget} ${short_calls})
    set_tests_properties(compile_budget PROPERTIES LABELS tools TIMEOUT 600 PROCESSORS ${tapegraph_processors} SKIP_RETURN_CODE 77)
    add_test(NAME compile_budget/exceeded COMMAND ${compile_budget} --only tensor
        --budget "${CMAKE_CURRENT_SOURCE_DIR}/compile_budget/exceeded.json")
    set_tests_properties(compile_budget/exceeded PROPERTIES LABELS tools
        PASS_REGULAR_EXPRESSION "tensor: [0-9]+ MB of memory, the budget is 100;there is no budget for")
    if(TAPEGRAPH_SUITE STREQUAL "all" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        add_test(NAME elementwise_loops_vectorise
            COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/vectorised.py" --compiler "${CMAKE_CXX_COMPILER}")
        set_tests_properties(elementwise_loops_vectorise PROPERTIES LABELS tools)
    endif()
    if(TAPEGRAPH_SUITE STREQUAL "all") # what clang-tidy says of the headers
        add_test(NAME tidy COMMAND bash "${PROJECT_SOURCE_DIR}/tools/tidy.sh")
        add_test(NAME tidy/finding COMMAND bash "${PROJECT_SOURCE_DIR}/tools/tidy.sh" "../tests/tidy/tapegraph/finding.hpp")
        set_tests_properties(tidy tidy/finding PROPERTIES LABELS tools TIMEOUT 1800 SKIP_RETURN_CODE 77)
        set_tests_properties(tidy/finding PROPERTIES PASS_REGULAR_EXPRESSION "performance-unnecessary-value-param;skipped: there is no clang-tidy")
    endif()
else()
    message(STATUS "tests: compile_fail and the tools' checks are left out, Python 3 not found")
endif()
