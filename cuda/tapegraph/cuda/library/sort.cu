#include <tapegraph/cuda/driver.cuh>
#include <tapegraph/cuda/kernels/sort.cuh>
#include <tapegraph/cuda/ops/ordering/library_sort.hpp>

#include <cub/device/device_radix_sort.cuh>

/// CUB's radix sort for rows of sort.cuh, compiled once per program.

namespace tapegraph::cuda {
namespace {

using kernels::sort_pair;

/// A pair as one number, whose lowest bits are the key's, and the position's follow. CUB's sort is stable, so positions stay in
/// order without being looked at. Plain numbers, because then nothing of ours is in the names of CUB's kernels, and tests/gpu.sh can
/// tell them from ours.
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
    // The host looks at none of them.
    cub::DoubleBuffer buffers(reinterpret_cast<word<Key>*>(pairs), reinterpret_cast<word<Key>*>(other));
    driver::check(radix_sort<Key>(scratch, bytes, buffers, count, bits, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceRadixSort::SortKeys", operation);
    return buffers.selector == 0 ? pairs : other;
}

[[maybe_unused]] const bool sorts_are_known = [] {
    sort_of_library<std::uint32_t> = {&scratch_bytes<std::uint32_t>, &sort<std::uint32_t>};
    sort_of_library<std::uint64_t> = {&scratch_bytes<std::uint64_t>, &sort<std::uint64_t>};
    return true;
}();

} // namespace
} // namespace tapegraph::cuda
