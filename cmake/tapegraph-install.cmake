# Install rules and the package that find_package(tapegraph) reads.
include(CMakePackageConfigHelpers)

set(tapegraph_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tapegraph")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/tapegraph" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cpp" PATTERN "*.cppm")
# Nothing of it is compiled here, so whether nvcc is found is asked where it is used.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/cuda/tapegraph" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "*.cu")
install(TARGETS tapegraph EXPORT tapegraph-targets)
if(TAPEGRAPH_KERNELS)
    install(TARGETS tapegraph_kernels EXPORT tapegraph-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(EXPORT tapegraph-targets NAMESPACE tapegraph:: DESTINATION "${tapegraph_package_dir}")

configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/tapegraph-config.cmake.in" "${PROJECT_BINARY_DIR}/tapegraph-config.cmake"
    INSTALL_DESTINATION "${tapegraph_package_dir}" NO_SET_AND_CHECK_MACRO)
set(tapegraph_independent ARCH_INDEPENDENT) # headers alone are
if(TAPEGRAPH_KERNELS)
    set(tapegraph_independent "")
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tapegraph-config-version.cmake"
    COMPATIBILITY SameMinorVersion ${tapegraph_independent})
install(FILES
    "${PROJECT_BINARY_DIR}/tapegraph-config.cmake"
    "${PROJECT_BINARY_DIR}/tapegraph-config-version.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/tapegraph-components.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/tapegraph-compilation.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/tapegraph-cuda.cmake"
    "${CMAKE_CURRENT_LIST_DIR}/tapegraph-mpi.cmake"
    DESTINATION "${tapegraph_package_dir}")

# tapegraph.pc, for Meson, make and the like: the flags that users of this compiler get from the CMake target. What
# TAPEGRAPH_BLAS links is CMake's alone.
set(tapegraph_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH tapegraph_pc_to_prefix "/prefix/${tapegraph_pc_dir}" "/prefix")
string(REGEX REPLACE "/$" "" tapegraph_pc_to_prefix "${tapegraph_pc_to_prefix}")
set(tapegraph_pc_libs "${CMAKE_THREAD_LIBS_INIT}")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(JOIN tapegraph_limits_of_gnu " " tapegraph_pc_limits)
else()
    list(JOIN tapegraph_limits_of_clang " " tapegraph_pc_limits)
endif()
set(tapegraph_pc_files tapegraph)
if(TAPEGRAPH_KERNELS)
    list(APPEND tapegraph_pc_files tapegraph-kernels)
    set(tapegraph_pc_sets "")
    if(NOT TAPEGRAPH_KERNELS_INSTRUCTION_SETS EQUAL 7)
        set(tapegraph_pc_sets " -DTG_INSTRUCTION_SETS=${TAPEGRAPH_KERNELS_INSTRUCTION_SETS}")
    endif()
    set(tapegraph_pc_gc "")
    if(UNIX AND NOT APPLE)
        set(tapegraph_pc_gc " -Wl,--gc-sections")
    endif()
endif()
foreach(file IN LISTS tapegraph_pc_files)
    configure_file("${CMAKE_CURRENT_LIST_DIR}/${file}.pc.in" "${PROJECT_BINARY_DIR}/${file}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${file}.pc" DESTINATION "${tapegraph_pc_dir}")
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/tapegraph")

# `cpack -G TGZ` and `cpack -G DEB`: what `cmake --install` installs, as an archive and as a Debian package. tools/release.sh makes both.
if(PROJECT_IS_TOP_LEVEL)
    set(CPACK_PACKAGE_NAME tapegraph)
    set(CPACK_PACKAGE_VENDOR "The TapeGraph authors")
    set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
    set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
    set(CPACK_PACKAGE_CHECKSUM SHA256)
    set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The TapeGraph authors <tapegraph@localhost>")
    set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS g++)
    set(CPACK_DEBIAN_PACKAGE_NAME libtapegraph-dev)
    if(TAPEGRAPH_KERNELS) # the headers and the component, for one architecture
        set(CPACK_PACKAGE_FILE_NAME "tapegraph-kernels-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
        set(CPACK_DEBIAN_PACKAGE_NAME libtapegraph-kernels-dev)
        set(CPACK_DEBIAN_PACKAGE_CONFLICTS libtapegraph-dev)
        set(CPACK_DEBIAN_PACKAGE_PROVIDES "libtapegraph-dev (= ${PROJECT_VERSION})")
    else()
        set(CPACK_PACKAGE_FILE_NAME "tapegraph-${PROJECT_VERSION}")
        set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE all)
    endif()
    include(CPack)
endif()
