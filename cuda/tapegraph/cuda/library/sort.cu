#include <tapegraph/cuda/driver.cuh>
#include <tapegraph/cuda/kernels/sort.cuh>
#include <tapegraph/cuda/ops/ordering/library_sort.hpp>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

/// CUB's radix sorts for the rows of sort.cuh, compiled once per program.

// The types that CUB's kernels are instantiated with lie outside our namespace, so that
// tests/gpu.sh can distinguish its kernels from ours by name.
namespace rows_of_one_length {

struct begin_of {
    std::int32_t length;

    __host__ __device__ std::int32_t operator()(std::int32_t row) const { return row * length; }
};

} // namespace rows_of_one_length

namespace tapegraph::cuda {
namespace {

using kernels::sort_pair;

/// A pair as one integer with the key in the lowest bits and the position above it. CUB's sort is
/// stable, so positions stay in order without being compared. A plain integer keeps our names out
/// of CUB's kernels, so tests/gpu.sh can distinguish them from ours.
template <class Key>
using word = std::conditional_t<sizeof(Key) == 4, std::uint64_t, unsigned __int128>;

template <class Key>
cudaError_t radix_sort(void* scratch, std::size_t& bytes, cub::DoubleBuffer<word<Key>>& buffers, std::int64_t count,
                       int bits, cudaStream_t stream) {
    static_assert(sizeof(word<Key>) == sizeof(sort_pair<Key>) && offsetof(sort_pair<Key>, key) == 0 &&
                  offsetof(sort_pair<Key>, position) == sizeof(Key));
    return cub::DeviceRadixSort::SortKeys(scratch, bytes, buffers, static_cast<std::uint32_t>(count), 0, bits, stream);
}

template <class Key>
std::size_t scratch_bytes(std::int64_t count, int bits) {
    std::size_t bytes = 0;
    cub::DoubleBuffer<word<Key>> none(nullptr, nullptr);
    if (radix_sort<Key>(nullptr, bytes, none, count, bits, nullptr) == cudaSuccess) return bytes;
    cudaGetLastError();
    return 0;
}

template <class Key>
sort_pair<Key>* sort(const char* operation, void* stream, sort_pair<Key>* pairs, sort_pair<Key>* other,
                     std::int64_t count, int bits, void* scratch, std::size_t bytes) {
    // The host never reads either buffer.
    cub::DoubleBuffer buffers(reinterpret_cast<word<Key>*>(pairs), reinterpret_cast<word<Key>*>(other));
    driver::check(radix_sort<Key>(scratch, bytes, buffers, count, bits, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceRadixSort::SortKeys", operation);
    return buffers.selector == 0 ? pairs : other;
}

template <class Key>
cudaError_t radix_sort_rows(void* scratch, std::size_t& bytes, cub::DoubleBuffer<word<Key>>& buffers, std::int64_t rows,
                            std::int64_t length, int bits, cudaStream_t stream) {
    const auto begins = thrust::make_transform_iterator(
        thrust::counting_iterator<std::int32_t>(0), rows_of_one_length::begin_of{static_cast<std::int32_t>(length)});
    return cub::DeviceSegmentedRadixSort::SortKeys(scratch, bytes, buffers, static_cast<std::int32_t>(rows * length),
                                                   static_cast<std::int32_t>(rows), begins, begins + 1, 0, bits,
                                                   stream);
}
template <class Key>
std::size_t scratch_bytes_of_rows(std::int64_t rows, std::int64_t length, int bits) {
    std::size_t bytes = 0;
    cub::DoubleBuffer<word<Key>> none(nullptr, nullptr);
    if (radix_sort_rows<Key>(nullptr, bytes, none, rows, length, bits, nullptr) == cudaSuccess) return bytes;
    cudaGetLastError();
    return 0;
}
template <class Key>
sort_pair<Key>* sort_rows(const char* operation, void* stream, sort_pair<Key>* pairs, sort_pair<Key>* other,
                          std::int64_t rows, std::int64_t length, int bits, void* scratch, std::size_t bytes) {
    cub::DoubleBuffer buffers(reinterpret_cast<word<Key>*>(pairs), reinterpret_cast<word<Key>*>(other));
    driver::check(radix_sort_rows<Key>(scratch, bytes, buffers, rows, length, bits, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceSegmentedRadixSort::SortKeys", operation);
    return buffers.selector == 0 ? pairs : other;
}

[[maybe_unused]] const bool sorts_are_known = [] {
    sort_of_library<std::uint32_t> = {&scratch_bytes<std::uint32_t>, &sort<std::uint32_t>,
                                      &scratch_bytes_of_rows<std::uint32_t>, &sort_rows<std::uint32_t>};
    sort_of_library<std::uint64_t> = {&scratch_bytes<std::uint64_t>, &sort<std::uint64_t>};
    return true;
}();

} // namespace
} // namespace tapegraph::cuda
