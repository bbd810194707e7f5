# Toolchain file: the newest clang++ of version 16 or later; with TAPEGRAPH_OLDEST_CLANG the oldest. Those before it lack parts of
# C++20 the library needs.
if(NOT CMAKE_CXX_COMPILER)
    set(tapegraph_clangs clang++-22 clang++-21 clang++-20 clang++-19 clang++-18 clang++-17 clang++-16)
    if(TAPEGRAPH_OLDEST_CLANG)
        list(REVERSE tapegraph_clangs)
    endif()
    find_program(TAPEGRAPH_CLANG NAMES ${tapegraph_clangs} clang++)
    if(NOT TAPEGRAPH_CLANG)
        message(FATAL_ERROR "no clang++ found (apt-get install clang-16 libomp-16-dev)")
    endif()
    set(CMAKE_CXX_COMPILER "${TAPEGRAPH_CLANG}")
endif()
