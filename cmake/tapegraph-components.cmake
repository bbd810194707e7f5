# Optional libraries, each wrapped in a target that exists when the library was found:
#
#   tapegraph::images  JPEG and PNG, <stb/stb_image.h>, <stb/stb_image_write.h>
#   tapegraph::zlib    .gz files, <zlib.h>
#   tapegraph::json    <nlohmann/json.hpp>; nothing of TapeGraph needs it: for programs that asked for it by this name
#   tapegraph::jpeg    JPEG by libjpeg-turbo, <turbojpeg.h>
#   tapegraph::unicode Unicode's tables (tokenizers), <utf8proc.h>
#   tapegraph::proto   protobuf's wire format (TensorBoard, ONNX, TFRecord), <protozero/pbf_writer.hpp>
#   tapegraph::hdf5    Keras's files, <hdf5.h>
#   tapegraph::mpi     MPI, <mpi.h>: cmake/tapegraph-mpi.cmake
#   tapegraph::blas    CBLAS, only looked for with TAPEGRAPH_BLAS
#
# Used by this project and installed for find_package(tapegraph), so that both find them in the same way.

# Finds a package and makes its target visible in the whole project: a target that is linked through
# tapegraph::tapegraph from a parent directory must not stay private to this one.
macro(tapegraph_find package target)
    if(NOT TARGET ${target})
        find_package(${package} QUIET ${ARGN})
        if(TARGET ${target})
            set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
        endif()
    endif()
endmacro()

if(NOT TARGET tapegraph::json)
    tapegraph_find(nlohmann_json nlohmann_json::nlohmann_json CONFIG)
    find_path(TAPEGRAPH_JSON_INCLUDE_DIR nlohmann/json.hpp)
    mark_as_advanced(TAPEGRAPH_JSON_INCLUDE_DIR)
    if(TARGET nlohmann_json::nlohmann_json)
        add_library(tapegraph::json INTERFACE IMPORTED GLOBAL)
        target_link_libraries(tapegraph::json INTERFACE nlohmann_json::nlohmann_json)
    elseif(TAPEGRAPH_JSON_INCLUDE_DIR)
        add_library(tapegraph::json INTERFACE IMPORTED GLOBAL)
        target_include_directories(tapegraph::json INTERFACE "${TAPEGRAPH_JSON_INCLUDE_DIR}")
    endif()
endif()

if(NOT TARGET tapegraph::zlib)
    tapegraph_find(ZLIB ZLIB::ZLIB)
    if(TARGET ZLIB::ZLIB)
        add_library(tapegraph::zlib INTERFACE IMPORTED GLOBAL)
        target_link_libraries(tapegraph::zlib INTERFACE ZLIB::ZLIB)
    endif()
endif()

if(NOT TARGET tapegraph::images)
    # Debian and Ubuntu ship the implementation as a library beside the header.
    find_path(TAPEGRAPH_STB_INCLUDE_DIR stb/stb_image.h)
    find_library(TAPEGRAPH_STB_LIBRARY stb)
    mark_as_advanced(TAPEGRAPH_STB_INCLUDE_DIR TAPEGRAPH_STB_LIBRARY)
    if(TAPEGRAPH_STB_INCLUDE_DIR AND TAPEGRAPH_STB_LIBRARY)
        add_library(tapegraph::images INTERFACE IMPORTED GLOBAL)
        target_include_directories(tapegraph::images INTERFACE "${TAPEGRAPH_STB_INCLUDE_DIR}")
        target_link_libraries(tapegraph::images INTERFACE "${TAPEGRAPH_STB_LIBRARY}")
    endif()
endif()

if(NOT TARGET tapegraph::jpeg)
    find_path(TAPEGRAPH_TURBOJPEG_INCLUDE_DIR turbojpeg.h)
    find_library(TAPEGRAPH_TURBOJPEG_LIBRARY turbojpeg)
    mark_as_advanced(TAPEGRAPH_TURBOJPEG_INCLUDE_DIR TAPEGRAPH_TURBOJPEG_LIBRARY)
    if(TAPEGRAPH_TURBOJPEG_INCLUDE_DIR AND TAPEGRAPH_TURBOJPEG_LIBRARY)
        add_library(tapegraph::jpeg INTERFACE IMPORTED GLOBAL)
        target_include_directories(tapegraph::jpeg INTERFACE "${TAPEGRAPH_TURBOJPEG_INCLUDE_DIR}")
        target_link_libraries(tapegraph::jpeg INTERFACE "${TAPEGRAPH_TURBOJPEG_LIBRARY}")
    endif()
endif()

if(NOT TARGET tapegraph::unicode)
    find_path(TAPEGRAPH_UTF8PROC_INCLUDE_DIR utf8proc.h)
    find_library(TAPEGRAPH_UTF8PROC_LIBRARY utf8proc)
    mark_as_advanced(TAPEGRAPH_UTF8PROC_INCLUDE_DIR TAPEGRAPH_UTF8PROC_LIBRARY)
    if(TAPEGRAPH_UTF8PROC_INCLUDE_DIR AND TAPEGRAPH_UTF8PROC_LIBRARY)
        add_library(tapegraph::unicode INTERFACE IMPORTED GLOBAL)
        target_include_directories(tapegraph::unicode INTERFACE "${TAPEGRAPH_UTF8PROC_INCLUDE_DIR}")
        target_link_libraries(tapegraph::unicode INTERFACE "${TAPEGRAPH_UTF8PROC_LIBRARY}")
    endif()
endif()

if(NOT TARGET tapegraph::proto)
    find_path(TAPEGRAPH_PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp)
    mark_as_advanced(TAPEGRAPH_PROTOZERO_INCLUDE_DIR)
    if(TAPEGRAPH_PROTOZERO_INCLUDE_DIR)
        add_library(tapegraph::proto INTERFACE IMPORTED GLOBAL)
        target_include_directories(tapegraph::proto INTERFACE "${TAPEGRAPH_PROTOZERO_INCLUDE_DIR}")
    endif()
endif()

if(NOT TARGET tapegraph::hdf5)
    # Not by find_package(HDF5): it runs the compiler's wrapper, and fails a project without the language C.
    find_path(TAPEGRAPH_HDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
    find_library(TAPEGRAPH_HDF5_LIBRARY NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial)
    mark_as_advanced(TAPEGRAPH_HDF5_INCLUDE_DIR TAPEGRAPH_HDF5_LIBRARY)
    if(TAPEGRAPH_HDF5_INCLUDE_DIR AND TAPEGRAPH_HDF5_LIBRARY)
        add_library(tapegraph::hdf5 INTERFACE IMPORTED GLOBAL)
        target_include_directories(tapegraph::hdf5 INTERFACE "${TAPEGRAPH_HDF5_INCLUDE_DIR}")
        target_link_libraries(tapegraph::hdf5 INTERFACE "${TAPEGRAPH_HDF5_LIBRARY}")
    endif()
endif()

if(TAPEGRAPH_BLAS AND NOT TARGET tapegraph::blas)
    tapegraph_find(BLAS BLAS::BLAS)
    find_path(TAPEGRAPH_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
    # The reference BLAS of some systems keeps the C interface in a library of its own.
    find_library(TAPEGRAPH_CBLAS_LIBRARY cblas)
    mark_as_advanced(TAPEGRAPH_CBLAS_INCLUDE_DIR TAPEGRAPH_CBLAS_LIBRARY)
    if(TARGET BLAS::BLAS AND TAPEGRAPH_CBLAS_INCLUDE_DIR)
        add_library(tapegraph::blas INTERFACE IMPORTED GLOBAL)
        target_include_directories(tapegraph::blas INTERFACE "${TAPEGRAPH_CBLAS_INCLUDE_DIR}")
        target_compile_definitions(tapegraph::blas INTERFACE TAPEGRAPH_USE_CBLAS=1)
        if(TAPEGRAPH_CBLAS_LIBRARY)
            target_link_libraries(tapegraph::blas INTERFACE "${TAPEGRAPH_CBLAS_LIBRARY}")
        endif()
        target_link_libraries(tapegraph::blas INTERFACE BLAS::BLAS)
    endif()
endif()
