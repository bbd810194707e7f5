#include <cuda/device_array.hpp>
#include <cuda/late_device.hpp>

#include <tapegraph/cuda/runtime.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace runtime_test {

/// Memory passed to a device may change as soon as the call returns, however late the device reads
/// it.

using namespace tapegraph;

namespace {

runtime::device_runtime& opened() {
    runtime::device_runtime& d = *cuda::cuda_runtime::of(0);
    d.enter();
    return d;
}

struct memory {
    runtime::device_runtime& device;
    std::int32_t* at;
    std::int64_t count;

    memory(runtime::device_runtime& d, std::int64_t n)
        : device(d), at(static_cast<std::int32_t*>(d.allocate(static_cast<std::size_t>(n) * 4, "test"))), count(n) {}
    memory(const memory&) = delete;
    memory& operator=(const memory&) = delete;
    ~memory() { device.release(at); }
    std::vector<std::int32_t> host() const {
        std::vector<std::int32_t> v(static_cast<std::size_t>(count));
        device.download(v.data(), at, v.size() * 4);
        return v;
    }
};

std::vector<std::int32_t> counted(std::int64_t count, std::int32_t each = 1) {
    std::vector<std::int32_t> v(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::int32_t>(i) / each;
    return v;
}

} // namespace

TEST_CASE("a device's runtime: many small uploads") {
    const on_device::late_device late;
    runtime::device_runtime& d = opened();
    constexpr std::int64_t each = 101, times = 1500; // 600 KB: more than is in flight at once
    const memory there(d, each * times);
    std::vector<std::int32_t> numbers(each);
    for (std::int32_t i = 0; i < times; ++i) {
        std::fill(numbers.begin(), numbers.end(), i);
        d.upload(there.at + i * each, numbers.data(), each * 4);
    }
    std::int32_t last = 0;
    d.download(&last, there.at + each * times - 1, sizeof last);
    CHECK(last == times - 1);
    CHECK(there.host() == counted(each * times, each));
}

TEST_CASE("a device's runtime: numbers of calls") {
    const on_device::late_device late;
    runtime::device_runtime& d = opened();
    constexpr std::int32_t times = 500, size = 64; // 128 KB, of which the device keeps 64
    const memory there(d, times * size);
    for (std::int32_t i = 0; i < times; ++i) {
        std::vector<std::int32_t> numbers(size);
        std::iota(numbers.begin(), numbers.end(), i * size);
        d.copy(there.at + i * size, d.constant(numbers.data(), size * sizeof(std::int32_t)),
               size * sizeof(std::int32_t));
        std::fill(numbers.begin(), numbers.end(), -1);
    }
    CHECK(there.host() == counted(times * size));
}

TEST_CASE("a device's runtime: equal numbers of calls are where they were, or are sent again") {
    const on_device::late_device late;
    runtime::device_runtime& d = opened();
    constexpr std::int32_t times = 900, size = 64;
    const memory there(d, times * size);
    std::vector<std::int32_t> expected;
    const auto give = [&](std::vector<std::int32_t> numbers) {
        const std::size_t bytes = numbers.size() * sizeof(std::int32_t);
        d.copy(there.at + expected.size(), d.constant(numbers.data(), bytes), bytes);
        expected.insert(expected.end(), numbers.begin(), numbers.end());
    };
    // Alternates values that never change, values that occur now and then, and values that are
    // always new, which alone are 300 * 256 bytes.
    for (std::int32_t i = 0; i < times; ++i) {
        std::vector<std::int32_t> numbers(size, i % 3);
        numbers[5] = i % 3 == 0 ? -3 : i % 3 == 1 ? i % 70 : i;
        give(numbers);
    }
    CHECK(there.host() == expected);
#ifdef TG_SIMT
    const auto copies = [&](const std::vector<float>& numbers) {
        const int before = cuda::driver::imitation::instance().copies;
        d.constant(numbers.data(), numbers.size() * sizeof(float));
        return cuda::driver::imitation::instance().copies - before;
    };
    CHECK(copies({0.125f, 3}) == 1);
    CHECK(copies({0.125f, 3}) == 0);
    CHECK(copies({0.125f}) == 1);
    CHECK(copies({0.125f, 3}) == 0);
    for (int i = 0; i < 256; ++i) copies(std::vector<float>(64, float(i) + 0.25f)); // 64 KiB
    CHECK(copies({0.125f, 3}) == 1);                                                // others are there
#endif
}

TEST_CASE("a device's runtime: inputs of any size in turn") {
    const on_device::late_device late;
    runtime::device_runtime& d = opened();
    constexpr std::int64_t sizes[]{30000, 1, 50000, 50000, 20, 90000, 70000, 70000, 60000, 30000};
    std::int64_t all = 0;
    for (std::int64_t n : sizes) all += n;
    const memory there(d, all);
    std::vector<std::int32_t> expected;
    std::int32_t number = 0;
    for (std::int64_t n : sizes) {
        std::vector<std::int32_t> input(static_cast<std::size_t>(n), ++number);
        d.feed(there.at + expected.size(), input.data(), input.size() * 4);
        expected.insert(expected.end(), input.begin(), input.end());
        std::fill(input.begin(), input.end(), -1);
    }
    CHECK(there.host() == expected);
}

TEST_CASE("a device's runtime: the last 256 numbers that were sent to the host") {
    const on_device::late_device late;
    runtime::device_runtime& d = opened();
    const memory there(d, 1);
    std::int64_t last = 0;
    for (std::int32_t i = 0; i < 300; ++i) {
        d.upload(there.at, &i, sizeof i);
        last = d.publish(there.at, sizeof i);
    }
    for (std::int32_t back : {0, 100, 255})
        CHECK(*static_cast<const std::int32_t*>(d.published(last - back)) == 299 - back);
    CHECK_THROWS_AS(d.published(last - 256), argument_error);
    CHECK_THROWS_AS(d.published(last + 1), argument_error);
}

} // namespace runtime_test
