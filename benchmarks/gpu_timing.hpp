#pragma once

#include <tapegraph/cuda/driver.cuh>
#include <tapegraph/cuda/kernels/trial.cuh>

#include <algorithm>
#include <cstdint>
#include <vector>

/// Measures times of work on a GPU.

namespace gpu_timing {

namespace driver = tapegraph::cuda::driver;

/// Memory of the device, released at the end; null when there is not enough.
template <class T>
class buffer {
public:
    explicit buffer(std::int64_t count)
        : at_(static_cast<T*>(driver::allocate_plain(static_cast<std::size_t>(count) * sizeof(T)))), count_(count) {}
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;
    ~buffer() { driver::release_plain(at_); }
    T* data() const { return at_; }
    std::int64_t size() const { return count_; }
    std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }

private:
    T* at_;
    std::int64_t count_;
};

/// Numbers between -1 and 1 without a pattern: zeros multiply faster than other numbers.
template <class T>
void fill(const buffer<T>& b, std::uint32_t seed, driver::stream stream) {
    driver::launch(stream, "fill", {dim3(1024), dim3(256)}, tapegraph::cuda::kernels::noise<T>, b.data(), b.size(),
                   seed);
}

/// Runs work with none of its data in the level 2 cache and takes medians of the times between
/// events before and after.
class stopwatch {
public:
    explicit stopwatch(driver::stream stream) : stream_(stream), flush_(cache_bytes()) {}

    /// Microseconds of `work`, which enqueues on the stream.
    template <class F>
    double median(const F& work, int runs = 21) const {
        for (int i = 0; i < 3; ++i) work(); // loads modules and finds algorithms
        struct interval {
            cudaEvent_t begin, end;
        };
        std::vector<interval> intervals(static_cast<std::size_t>(runs));
        for (interval& i : intervals) {
            driver::check(cudaEventCreate(&i.begin), "cudaEventCreate");
            driver::check(cudaEventCreate(&i.end), "cudaEventCreate");
            // Long enough for the host to run ahead, so that the launch is not part of the time.
            driver::fill(flush_.data(), 1, flush_.bytes(), stream_);
            driver::check(cudaEventRecord(i.begin, stream_), "cudaEventRecord");
            work();
            driver::check(cudaEventRecord(i.end, stream_), "cudaEventRecord");
        }
        driver::wait(stream_);
        std::vector<float> times;
        for (interval& i : intervals) {
            float milliseconds = 0;
            driver::check(cudaEventElapsedTime(&milliseconds, i.begin, i.end), "cudaEventElapsedTime");
            times.push_back(1000 * milliseconds);
            cudaEventDestroy(i.begin);
            cudaEventDestroy(i.end);
        }
        std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
        return times[static_cast<std::size_t>(runs / 2)];
    }

private:
    static std::int64_t cache_bytes() {
        int bytes = 0;
        driver::check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, driver::current_device()),
                      "cudaDeviceGetAttribute");
        return std::max<std::int64_t>(4 * std::int64_t{bytes}, std::int64_t{128} << 20);
    }

    driver::stream stream_;
    buffer<char> flush_;
};

} // namespace gpu_timing
