#define TG_SIMT
#include <simt/instructions.hpp>
#include <simt/mutation.hpp>

#include <tapegraph/cuda/convolution.cuh>
#include <tapegraph/runtime/contract.hpp>

#include <cuda/convolution_reference.hpp>

#include <doctest/doctest.h>

#include <random>

/// The convolution operations on an imitated device, as graphs and tapes call them.

using namespace convolution_testing;
namespace cuda = tapegraph::cuda;

namespace {

/// A call of an operation, with poisoned results and scratch memory of exactly the size that the kernel asks for.
template <class Op, class T>
class device_call {
public:
    device_call(const tg::convolution_geometry& g, std::vector<std::vector<T>> operands, std::int64_t results)
        : operands_(std::move(operands)), result_(poisoned<T>(results)) {
        tg::window_attributes a;
        a.stride[0] = g.stride_height, a.stride[1] = g.stride_width;
        a.dilation[0] = g.dilation_height, a.dilation[1] = g.dilation_width;
        a.mode = static_cast<std::int64_t>(tg::padding_mode::explicit_amounts);
        a.before[0] = g.pad_top, a.before[1] = g.pad_left, a.groups = g.groups;
        words_ = tg::attributes_to_words<tg::convolution_op>(a);
        const auto view = [&](const T* data, std::initializer_list<std::int64_t> extents) {
            tg::buffer_view v;
            v.data = const_cast<T*>(data);
            v.type = tg::dtype_of<T>;
            v.rank = 4;
            std::copy(extents.begin(), extents.end(), v.extents);
            return v;
        };
        const auto x = [&](const T* d) { return view(d, {g.batch, g.in_height, g.in_width, g.in_channels}); };
        const auto w = [&](const T* d) {
            return view(d, {g.kernel_height, g.kernel_width, g.group_in(), g.out_channels});
        };
        const auto y = [&](const T* d) { return view(d, {g.batch, g.out_height, g.out_width, g.out_channels}); };
        const T *const a0 = operands_[0].data(), *const a1 = operands_[1].data();
        if constexpr (std::is_same_v<Op, tg::convolution_input_gradient_op>)
            in_ = {y(a0), w(a1)}, out_ = x(result_.data());
        else if constexpr (std::is_same_v<Op, tg::convolution_filter_gradient_op>)
            in_ = {x(a0), y(a1)}, out_ = w(result_.data());
        else
            in_ = {x(a0), w(a1)}, out_ = y(result_.data());
        if (operands_.size() > 2) {
            tg::buffer_view bias = view(operands_[2].data(), {g.out_channels});
            bias.rank = 1;
            in_.push_back(bias);
        }
        call_.in = in_.data(), call_.inputs = static_cast<int>(in_.size());
        call_.out = &out_, call_.outputs = 1;
        call_.attributes = words_.value;
    }
    device_call(const device_call&) = delete;

    const std::vector<T>& run(tg::runtime::kernel_pair kernel) {
        constexpr std::size_t guard = 64;
        const std::size_t bytes = kernel.workspace(call_);
        std::vector<std::byte> scratch(bytes + 2 * guard, std::byte{0xFF});
        const auto begin = (reinterpret_cast<std::uintptr_t>(scratch.data()) + guard - 1) / guard * guard;
        call_.workspace = reinterpret_cast<void*>(begin);
        std::fill(result_.begin(), result_.end(), static_cast<T>(NAN));
        kernel.run(call_);
        const auto* const after = reinterpret_cast<const std::byte*>(begin + bytes);
        for (std::size_t i = 0; i < guard / 2; ++i) CHECK(after[i] == std::byte{0xFF});
        return result_;
    }
    const std::vector<T>& on_device() { return run(cuda::kernel_for<Op, T>()); }
    const std::vector<T>& on_cpu() { return run(tg::runtime::kernel_for<Op, T>()); }

private:
    std::vector<std::vector<T>> operands_;
    std::vector<T> result_;
    tg::detail::words<tg::attribute_words<tg::convolution_op>> words_;
    std::vector<tg::buffer_view> in_;
    tg::buffer_view out_;
    tg::kernel_call call_;
};

template <class Op, class T>
std::vector<T> on_device(const tg::convolution_geometry& g, std::vector<std::vector<T>> operands,
                         std::int64_t results) {
    return device_call<Op, T>(g, std::move(operands), results).on_device();
}

class with_mode {
public:
    explicit with_mode(tg::math_mode mode) { tg::set_math_mode(mode); }
    with_mode(const with_mode&) = delete;
    ~with_mode() { tg::set_math_mode(tg::math_mode::fp32); }
};

template <class T>
void check_operations(const tg::convolution_geometry& g) {
    const sizes n(g);
    const expected<T> e(g);
    CHECK(on_device<tg::convolution_op, T>(g, {e.x, e.w}, n.y) == e.y);
    CHECK(on_device<tg::convolution_bias_op<true>, T>(g, {e.x, e.w, e.bias}, n.y) == e.activated);
    CHECK(on_device<tg::convolution_input_gradient_op, T>(g, {e.dy, e.w}, n.x) == e.dx);
    CHECK(on_device<tg::convolution_filter_gradient_op, T>(g, {e.x, e.dy}, n.w) == e.dw);
    auto biased = e.y;
    for (std::size_t i = 0; i < biased.size(); ++i) biased[i] += e.bias[i % static_cast<std::size_t>(g.out_channels)];
    CHECK(on_device<tg::convolution_bias_op<false>, T>(g, {e.x, e.w, e.bias}, n.y) == biased);
}

template <class T>
std::vector<T> random_numbers(std::int64_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> law;
    std::vector<T> v(static_cast<std::size_t>(count));
    for (T& x : v) x = static_cast<T>(law(generator));
    return v;
}

template <class T>
double distance(const std::vector<T>& got, const std::vector<double>& want) {
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double d = static_cast<double>(got[i]) - want[i];
        apart += d * d, size += want[i] * want[i];
    }
    return std::sqrt(apart / size);
}

} // namespace

TEST_CASE("convolution on a device: all operations are exact at awkward sizes") {
    for (const auto& g : geometries) in_orders([&] { check_operations<float>(g); });
    for (const auto& g : geometries) check_operations<double>(g);
}

TEST_CASE("convolution on a device: 150 and 300 channels, in every mode") {
    const auto g = geometry(1, 4, 4, 150, 2, 3, 300, 1, 1, 1, 1, 0, 1);
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32, tg::math_mode::tf32x3}) {
        const with_mode set(mode);
        check_operations<float>(g);
    }
}

// Several tiles across and down, several blocks of channels and of taps, images narrower than a tile, 1-D.
const tg::convolution_geometry first_layers[]{
    geometry(2, 17, 21, 3, 3, 3, 150, 1, 1, 1, 1, 1, 1),       geometry(1, 20, 35, 1, 5, 5, 33),
    geometry(1, 23, 19, 3, 7, 7, 70, 2, 2, 3, 3, 3, 3),        geometry(3, 3, 2, 4, 3, 2, 9, 1, 2, 2, 0, 1, 1, 1, 1),
    geometry(1, 13, 12, 3, 3, 3, 161, 2, 3, 1, 2, 0, 1, 2, 3), geometry(2, 1, 300, 4, 1, 9, 64, 1, 3, 0, 4, 0, 4),
};

TEST_CASE("convolution on a device: few channels") {
    for (const auto& g : first_layers) {
        const cuda::detail::few_channels_tiling t(g, cuda::convolution_pass::forward, sizeof(float));
        CHECK(t.fits);
        in_orders([&] { check_operations<float>(g); });
    }
    for (const auto& g : {first_layers[1], first_layers[3]}) check_operations<double>(g);
}

// Windows of outputs that a tile holds beyond the image's end may see the image: what is there must not count.
TEST_CASE("convolution on a device: few channels, NaN only where the image's outputs see it") {
    const auto g = geometry(1, 9, 7, 3, 2, 2, 5, 2, 2);
    const sizes n(g);
    auto x = whole_numbers<float>(n.x, 1);
    const auto dy = whole_numbers<float>(n.y, 2);
    for (std::int64_t i = n.x - 7 * 3; i < n.x; ++i)
        x[static_cast<std::size_t>(i)] = NAN; // a row that no window reaches
    device_call<tg::convolution_filter_gradient_op, float> call(g, {x, dy}, n.w);
    const auto want = call.on_cpu();
    CHECK(call.on_device() == want);
}

#ifndef SIMT_TSAN
TEST_CASE("convolution on a device: few channels, no barrier is there for nothing") {
    const auto g = geometry(2, 17, 21, 3, 3, 3, 70, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    const expected<float> e(g);
    std::size_t found = 0;
    auto unnoticed = simt::unnoticed_barriers(
        [&] {
            return on_device<tg::convolution_op, float>(g, {e.x, e.w}, n.y) == e.y;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 1);
    unnoticed = simt::unnoticed_barriers(
        [&] {
            return on_device<tg::convolution_filter_gradient_op, float>(g, {e.x, e.dy}, n.w) == e.dw;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 3);
}
#endif

TEST_CASE("convolution on a device: nothing to compute, and nothing to add") {
    for (auto [batch, height, in, out] : {std::array{0, 5, 3, 4}, {2, 5, 0, 4}, {2, 5, 3, 0}, {2, 0, 3, 4}}) {
        auto g = geometry(batch, height, 5, in, 3, 3, out, 1, 1, 1, 1, 1, 1);
        if (height == 0) g.out_height = 0;
        check_operations<float>(g);
    }
}

TEST_CASE("convolution on a device: the CPU's meaning of NaN") {
    const auto g = geometry(2, 7, 6, 5, 3, 3, 9, 2, 2, 0, 0, 1, 0);
    const sizes n(g);
    auto x = whole_numbers<float>(n.x, 1);
    const auto w = whole_numbers<float>(n.w, 2), bias = whole_numbers<float>(g.out_channels, 3);
    x[17] = NAN;
    device_call<tg::convolution_bias_op<true>, float> call(g, {x, w, bias}, n.y);
    const auto want = call.on_cpu();
    const auto got = call.on_device();
    int nans = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        nans += std::isnan(want[i]);
        CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
    }
    CHECK(nans > 0);
}

// Addresses need not suit vectors: a gradient may be taken of a part of a buffer.
TEST_CASE("convolution on a device: unaligned operands") {
    const auto g = geometry(2, 5, 6, 8, 3, 3, 12, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    const expected<float> e(g);
    std::vector<float> x(e.x.size() + 1), w(e.w.size() + 1), y(e.y.size() + 1);
    std::copy(e.x.begin(), e.x.end(), x.begin() + 1);
    std::copy(e.w.begin(), e.w.end(), w.begin() + 1);
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
        const with_mode set(mode);
        cuda::detail::convolution_run<float, cuda::convolution_pass::forward>::workspace(g);
        tg::buffer_view out;
        out.rank = 1, out.extents[0] = n.y, out.data = y.data() + 1;
        std::vector<float> scratch(1 << 20);
        tg::kernel_call call;
        call.out = &out, call.workspace = scratch.data();
        std::fill(y.begin(), y.end(), NAN);
        cuda::detail::convolution_run<float, cuda::convolution_pass::forward>::run(
            call, "convolution", g, {x.data() + 1, w.data() + 1, y.data() + 1});
        CHECK(std::vector<float>(y.begin() + 1, y.end()) == e.y);
    }
}

// fp32: a sum of 2,000 products rounds by some 1e-6 of its size. tf32 rounds every operand by up to 2^-11.
TEST_CASE("convolution on a device: accuracy of the modes, and the same bits twice") {
    const auto g = geometry(2, 7, 7, 40, 3, 3, 52, 1, 1, 1, 1, 1, 1);
    const sizes n(g);
    const auto x = random_numbers<float>(n.x, 1), w = random_numbers<float>(n.w, 2), dy = random_numbers<float>(n.y, 3);
    std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
    for_each_product(g, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
        const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j), c = static_cast<std::size_t>(k);
        y[c] += double{x[a]} * w[b], dx[a] += double{dy[c]} * w[b], dw[b] += double{dy[c]} * x[a];
    });
    const auto check = [&](double most, double least) {
        device_call<tg::convolution_op, float> forward(g, {x, w}, n.y);
        device_call<tg::convolution_input_gradient_op, float> input(g, {dy, w}, n.x);
        device_call<tg::convolution_filter_gradient_op, float> filter(g, {x, dy}, n.w);
        const auto once = [&](auto& call, const std::vector<double>& want) {
            const std::vector<float> got = call.on_device();
            CHECK(distance(got, want) < most);
            CHECK(distance(got, want) > least);
            const simt::with_settings set(simt::order::greedy, 7);
            CHECK(call.on_device() == got);
        };
        once(forward, y), once(input, dx), once(filter, dw);
    };
    check(1e-6, 0);
    {
        const with_mode set(tg::math_mode::tf32);
        check(1e-3, 1e-5);
    }
    const with_mode set(tg::math_mode::tf32x3);
    check(3e-6, 0);
}
