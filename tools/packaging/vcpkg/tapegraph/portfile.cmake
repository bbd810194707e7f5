# The sources are those of the checkout that this folder is in.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES kernels TAPEGRAPH_KERNELS)
if(NOT "kernels" IN_LIST FEATURES)
    set(VCPKG_BUILD_TYPE release) # headers alone
endif()

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        ${options}
        -DTAPEGRAPH_BUILD_TESTS=OFF
        -DTAPEGRAPH_BUILD_EXAMPLES=OFF
        -DTAPEGRAPH_BUILD_BENCHMARKS=OFF
        -DTAPEGRAPH_CCACHE=OFF
        -DTAPEGRAPH_CUDA=OFF
        -DTAPEGRAPH_MPI=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/tapegraph)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE
    "${CURRENT_PACKAGES_DIR}/debug/include"
    "${CURRENT_PACKAGES_DIR}/debug/share"
    "${CURRENT_PACKAGES_DIR}/share/licenses")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
