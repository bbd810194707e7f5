#include <tapegraph/ops/pooling/cpu_of_convolution.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace convolution_pool_test {

/// Pooled in bands or image by image, on one thread or several: the bits of the convolution pooled as a whole.

namespace {

namespace cpu = tapegraph::cpu;
using tapegraph::convolution_geometry;

template <class T>
std::vector<T> numbers(std::int64_t n, unsigned seed) {
    std::vector<T> v(static_cast<std::size_t>(n));
    for (T& x : v) {
        seed = seed * 1664525u + 1013904223u;
        x = static_cast<T>(static_cast<int>(seed >> 20) - 2048) / T(700);
    }
    return v;
}

/// Memory aligned to 64 bytes, filled with NaN, with a guard past its end.
class scratch_memory {
public:
    explicit scratch_memory(std::size_t bytes) : bytes_(bytes), memory_(bytes + 192, 0xFF) {
        void* p = memory_.data();
        std::size_t space = memory_.size();
        at_ = static_cast<unsigned char*>(std::align(64, bytes + 64, p, space));
    }
    void* get() const { return at_; }
    bool intact() const {
        for (std::size_t i = 0; i < 64; ++i)
            if (at_[bytes_ + i] != 0xFF) return false;
        return true;
    }

private:
    std::size_t bytes_;
    std::vector<unsigned char> memory_;
    unsigned char* at_;
};

template <class T>
void check(const convolution_geometry& g, bool relu) {
    const std::int64_t count = g.batch * g.out_height * g.out_width * g.out_channels;
    const auto x = numbers<T>(g.batch * g.in_height * g.in_width * g.in_channels, 1),
               w = numbers<T>(g.kernel_height * g.kernel_width * g.group_in() * g.out_channels, 2),
               bias = numbers<T>(g.out_channels, 3);
    std::vector<T> y(static_cast<std::size_t>(count)), want(static_cast<std::size_t>(count / 4));
    const scratch_memory first(
        cpu::convolution_workspace_bytes<T>(g, cpu::convolution_pass::forward, tapegraph::thread_count()));
    cpu::convolution_forward<T>(g, x.data(), w.data(), y.data(), first.get(), {bias.data(), relu});
    cpu::pool_geometry p{};
    p.batch = g.batch, p.in_height = g.out_height, p.in_width = g.out_width, p.channels = g.out_channels;
    p.out_height = g.out_height / 2, p.out_width = g.out_width / 2;
    p.window_height = p.window_width = p.stride_height = p.stride_width = 2;
    cpu::max_pool_forward<T>(p, y.data(), want.data());
    for (const int threads : {1, 2, 3}) {
        tapegraph::set_thread_count(threads);
        // The workspace of a larger batch, and of more threads, does for a smaller one.
        auto larger = g;
        larger.batch += 100;
        const std::size_t bytes = cpu::convolution_pool_workspace_bytes<T>(g, threads);
        CHECK(bytes <= cpu::convolution_pool_workspace_bytes<T>(larger, 3));
        const scratch_memory scratch(bytes);
        std::vector<T> got(want.size(), std::numeric_limits<T>::quiet_NaN());
        cpu::convolution_pool_forward<T>(g, x.data(), w.data(), got.data(), scratch.get(), {bias.data(), relu});
        CAPTURE(threads);
        CAPTURE(g.batch);
        CAPTURE(g.out_height);
        CAPTURE(g.out_channels);
        CHECK(scratch.intact());
        CHECK((got.empty() || std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0));
    }
    tapegraph::set_thread_count(0);
}

template <class T>
void check_all() {
    // Images, channels, taps, outputs; strides, padding, dilation, groups.
    const auto geometry = [](std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t in,
                             std::int64_t taps, std::int64_t out, std::int64_t stride = 1, std::int64_t pad = 0,
                             std::int64_t dilation = 1, std::int64_t groups = 1) {
        convolution_geometry g{};
        g.batch = batch, g.in_height = height, g.in_width = width, g.in_channels = in, g.out_channels = out;
        g.kernel_height = g.kernel_width = taps, g.stride_height = g.stride_width = stride;
        g.pad_top = g.pad_left = pad, g.dilation_height = g.dilation_width = dilation, g.groups = groups;
        g.out_height = ((height + 2 * pad - g.span_height()) / stride + 1) / 2 * 2;
        g.out_width = ((width + 2 * pad - g.span_width()) / stride + 1) / 2 * 2;
        return g;
    };
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        if (cpu::active_instruction_set() != set) continue;
        for (const bool relu : {false, true})
            for (const auto& g :
                 {geometry(1, 2, 2, 1, 1, 1), geometry(3, 9, 8, 5, 3, 7), geometry(40, 9, 8, 5, 3, 37, 1, 1),
                  geometry(2, 31, 30, 3, 3, 17), geometry(20, 20, 11, 4, 3, 6, 2, 1),
                  geometry(30, 13, 14, 6, 3, 6, 1, 1, 2, 3), geometry(9, 21, 18, 19, 3, 19, 1, 1, 1, 19),
                  geometry(2, 6, 300, 2, 3, 5, 1, 1), geometry(40, 5, 9, 3, 3, 257, 1, 1), geometry(0, 6, 6, 2, 3, 5),
                  geometry(2, 6, 6, 0, 3, 5)})
                check<T>(g, relu);
    }
    cpu::set_instruction_set(cpu::supported_instruction_set());
}

} // namespace

TEST_CASE_TEMPLATE("convolutions pooled on the way out", T, float, double) { check_all<T>(); }

} // namespace convolution_pool_test
