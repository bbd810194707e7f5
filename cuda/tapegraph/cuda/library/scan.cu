#include <tapegraph/cuda/driver.cuh>
#include <tapegraph/cuda/ops/cumulative/library_scan.hpp>

#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>

/// CUB's scan for long lines of integers, compiled once per program.

namespace tapegraph::cuda {
namespace {

// Operators with an explicit type: CUB accumulates in the operator's type, so nothing becomes wider
// than Word.
template <class Word>
cudaError_t device_scan(void* scratch, std::size_t& bytes, scan_way way, const Word* x, Word* y, std::int64_t count,
                        cudaStream_t stream) {
    const auto n = static_cast<std::uint32_t>(count);
    const auto joined_by = [&](auto join, Word start) {
        return way.exclusive ? cub::DeviceScan::ExclusiveScan(scratch, bytes, x, y, join, start, n, stream)
                             : cub::DeviceScan::InclusiveScan(scratch, bytes, x, y, join, n, stream);
    };
    return way.product ? joined_by(::cuda::std::multiplies<Word>{}, Word{1})
                       : joined_by(::cuda::std::plus<Word>{}, Word{0});
}

template <class Word>
std::size_t scratch_bytes(scan_way way, std::int64_t count) {
    std::size_t bytes = 0;
    if (device_scan<Word>(nullptr, bytes, way, nullptr, nullptr, count, nullptr) == cudaSuccess) return bytes;
    cudaGetLastError();
    return 0;
}

template <class Word>
void scan(const char* operation, void* stream, scan_way way, const Word* x, Word* y, std::int64_t count, void* scratch,
          std::size_t bytes) {
    driver::check(device_scan<Word>(scratch, bytes, way, x, y, count, static_cast<cudaStream_t>(stream)),
                  "cub::DeviceScan", operation);
}

template <class Word>
void give() {
    scan_of_library<Word> = {&scratch_bytes<Word>, &scan<Word>};
}
[[maybe_unused]] const bool scans_are_known = [] {
    give<std::uint32_t>(), give<std::uint64_t>();
    return true;
}();

} // namespace
} // namespace tapegraph::cuda
