#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cuda/kernels/warpgroup_instructions.cuh>

#include <cstddef>
#include <cstdint>
#include <string>

#ifndef TG_SIMT
#include <tapegraph/cuda/driver.cuh>

#include <cudaTypedefs.h>
#endif

/// Describes tensors for TMA, which reads them into tiles of rows of 128 swizzled bytes
/// (kernels/swizzled_tile.hpp). Elements of 2 or 4 bytes travel as integers, since it is not
/// documented how TMA itself rounds floats to TF32. Tests on the CPU supply twins
/// (simt/warpgroup_instructions.hpp).

namespace tapegraph::cuda {

/// Images [images, height, width, channels], with channels contiguous. Coordinates along the image
/// begin with the columns, as in CUTLASS (cuda.h lists them from the other end): the box's corners,
/// counted from the first and the last pixel, and the steps within it.
struct map_of_images {
    const void* at; ///< aligned to 16 bytes, as are pixels
    std::uint64_t element, channels, width, height, images;
    std::uint64_t pixel_bytes; ///< bytes from one pixel to the next
    int lower[2], upper[2];
    std::uint32_t steps[2];
    std::uint32_t rows; ///< pixels of a tile
    bool flat = false;  ///< of height 1: a map of three dimensions, whose corners and offsets have 16 bits instead of 8
};
/// Filters [taps, results, channels], with channels contiguous.
struct map_of_filters {
    const void* at;
    std::uint64_t element, channels, results, taps;
    std::uint64_t row_bytes;
    std::uint32_t rows; ///< results of a tile
};

#ifndef TG_SIMT
namespace detail {

/// The driver's functions, looked up without linking it; null where it lacks them.
struct tensor_map_encoders {
    PFN_cuTensorMapEncodeIm2col_v12000 im2col = nullptr;
    PFN_cuTensorMapEncodeTiled_v12000 tiled = nullptr;

    static const tensor_map_encoders& instance() {
        static const tensor_map_encoders found{function<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col"),
                                               function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled")};
        return found;
    }

private:
    template <class F>
    static F function(const char* name) {
        void* at = nullptr;
        cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
        const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &at, 12000, cudaEnableDefault, &result);
#else
        const cudaError_t status = cudaGetDriverEntryPoint(name, &at, cudaEnableDefault, &result);
#endif
        if (status == cudaSuccess && result == cudaDriverEntryPointSuccess) return reinterpret_cast<F>(at);
        cudaGetLastError();
        return nullptr;
    }
};

inline void check_map(CUresult status, const char* call, const char* operation) {
    if (status != CUDA_SUCCESS)
        throw device_error(std::string(call) + " for " + operation + ": CUresult " + std::to_string(status));
}
inline CUtensorMapDataType integers_of(std::uint64_t element) {
    return element == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
}

} // namespace detail

inline bool can_encode() {
    const detail::tensor_map_encoders& e = detail::tensor_map_encoders::instance();
    return e.im2col != nullptr && e.tiled != nullptr;
}
inline kernels::tensor_map encoded(const map_of_images& m, const char* operation) {
    const cuuint64_t extents[]{m.channels, m.width, m.height, m.images};
    const cuuint64_t strides[]{m.pixel_bytes, m.pixel_bytes * m.width, m.pixel_bytes * m.width * m.height};
    const cuuint32_t steps[]{1, m.steps[0], m.steps[1], 1};
    const cuuint64_t flat_extents[]{m.channels, m.width, m.images};
    const cuuint64_t flat_strides[]{m.pixel_bytes, m.pixel_bytes * m.width};
    const cuuint32_t flat_steps[]{1, m.steps[0], 1};
    kernels::tensor_map map{};
    detail::check_map(detail::tensor_map_encoders::instance().im2col(
                          &map, detail::integers_of(m.element), m.flat ? 3 : 4, const_cast<void*>(m.at),
                          m.flat ? flat_extents : extents, m.flat ? flat_strides : strides, m.lower, m.upper,
                          static_cast<cuuint32_t>(128 / m.element), m.rows, m.flat ? flat_steps : steps,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                      "cuTensorMapEncodeIm2col", operation);
    return map;
}
inline kernels::tensor_map encoded(const map_of_filters& m, const char* operation) {
    const cuuint64_t extents[]{m.channels, m.results, m.taps};
    const cuuint64_t strides[]{m.row_bytes, m.row_bytes * m.results};
    const cuuint32_t box[]{static_cast<cuuint32_t>(128 / m.element), m.rows, 1}, steps[]{1, 1, 1};
    kernels::tensor_map map{};
    detail::check_map(detail::tensor_map_encoders::instance().tiled(
                          &map, detail::integers_of(m.element), 3, const_cast<void*>(m.at), extents, strides, box,
                          steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                      "cuTensorMapEncodeTiled", operation);
    return map;
}
#endif

} // namespace tapegraph::cuda
