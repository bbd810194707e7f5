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
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/tapegraph")
