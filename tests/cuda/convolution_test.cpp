#include <cuda/device_array.hpp>

#include <tapegraph/cuda/ops/convolution/convolution.cuh>
#include <tapegraph/ops/convolution/kernel.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/backend.cuh> // runtime::kernel_for needs it
#endif

#include <cuda/convolution_reference.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <span>

namespace convolution_test {

/// The convolution operations on an imitated device, called as graphs and tapes call them.

using namespace convolution_testing;
namespace cuda = tapegraph::cuda;

namespace {

/// A call of an operation on either side, with poisoned results and scratch memory of the size that
/// the kernel requests.
template <class Op, class T>
class convolution_call {
public:
    convolution_call(const tg::convolution_geometry& g, std::vector<std::vector<T>> operands)
        : geometry_(g), operands_(std::move(operands)) {
        tg::window_attributes a;
        a.stride[0] = g.stride_height, a.stride[1] = g.stride_width;
        a.dilation[0] = g.dilation_height, a.dilation[1] = g.dilation_width;
        a.mode = static_cast<std::int64_t>(tg::padding_mode::explicit_amounts);
        a.before[0] = g.pad_top, a.before[1] = g.pad_left, a.groups = g.groups;
        words_ = tg::attributes_to_words<tg::convolution_op>(a);
    }

    std::vector<T> on_device() const {
        const std::vector<device_array<T>> in = [&] {
            std::vector<device_array<T>> arrays;
            for (const auto& o : operands_) arrays.emplace_back(o);
            return arrays;
        }();
        const device_array<T> out(results());
        std::vector<const T*> addresses;
        for (const auto& a : in) addresses.push_back(a.data());
        with_call(addresses, out.data(), [&](tg::kernel_call& call) {
            const tg::runtime::kernel_functions kernel = cuda::kernel_for<Op, T>();
            // There is more memory after the requested size, which must stay unchanged.
            const auto bytes = static_cast<std::int64_t>(kernel.workspace(call)), guard = std::int64_t{256};
            const device_array<unsigned char> scratch(bytes + guard);
            call.workspace = scratch.data();
            kernel.run(call);
            const auto after = scratch.host();
            CHECK(std::all_of(after.begin() + bytes, after.end(), [](unsigned char c) { return c == 0xFF; }));
        });
        return out.host();
    }
    std::vector<T> on_cpu() const {
        std::vector<T> out(static_cast<std::size_t>(results()), static_cast<T>(NAN));
        std::vector<const T*> addresses;
        for (const auto& o : operands_) addresses.push_back(o.data());
        with_call(addresses, out.data(), [&](tg::kernel_call& call) {
            const tg::runtime::kernel_pair kernel = tg::runtime::kernel_for<Op, T>();
            const auto scratch = std::make_unique<std::byte[]>(kernel.workspace(call) + 64);
            void* aligned = scratch.get();
            std::size_t room = kernel.workspace(call) + 64;
            call.workspace = std::align(64, room - 64, aligned, room);
            kernel.run(call);
        });
        return out;
    }

private:
    static constexpr bool to_image = std::is_same_v<Op, tg::convolution_input_gradient_op>;
    static constexpr bool to_filter = std::is_same_v<Op, tg::convolution_filter_gradient_op>;

    std::int64_t results() const {
        const sizes n(geometry_);
        return to_image ? n.x : to_filter ? n.w : n.y;
    }
    template <class F>
    void with_call(const std::vector<const T*>& in, T* out, const F& f) const {
        const auto& g = geometry_;
        const auto x = [&](const T* d) { return view(d, {g.batch, g.in_height, g.in_width, g.in_channels}); };
        const auto w = [&](const T* d) {
            return view(d, {g.kernel_height, g.kernel_width, g.group_in(), g.out_channels});
        };
        const auto y = [&](const T* d) { return view(d, {g.batch, g.out_height, g.out_width, g.out_channels}); };
        std::vector<tg::buffer_view> views;
        tg::buffer_view result;
        if (to_image)
            views = {y(in[0]), w(in[1])}, result = x(out);
        else if (to_filter)
            views = {x(in[0]), y(in[1])}, result = w(out);
        else
            views = {x(in[0]), w(in[1])}, result = y(out);
        if (in.size() > 2) views.push_back(view(in[2], {g.out_channels}));
        tg::kernel_call call;
        call.in = views.data(), call.inputs = static_cast<int>(views.size());
        call.out = &result, call.outputs = 1;
        call.attributes = words_.value;
        f(call);
    }

    tg::convolution_geometry geometry_;
    std::vector<std::vector<T>> operands_;
    tg::detail::words<tg::attribute_words<tg::convolution_op>> words_;
};

template <class Op, class T>
std::vector<T> result(const tg::convolution_geometry& g, std::vector<std::vector<T>> operands) {
    return convolution_call<Op, T>(g, std::move(operands)).on_device();
}

class with_mode {
public:
    explicit with_mode(tg::math_mode mode) { tg::set_math_mode(mode); }
    with_mode(const with_mode&) = delete;
    ~with_mode() { tg::set_math_mode(tg::math_mode::fp32); }
};

template <class T>
void check_operations(const tg::convolution_geometry& g) {
    const expected<T> e(g);
    CHECK(result<tg::convolution_op, T>(g, {e.x, e.w}) == e.y);
    CHECK(result<tg::convolution_bias_op<true>, T>(g, {e.x, e.w, e.bias}) == e.activated);
    CHECK(result<tg::convolution_input_gradient_op, T>(g, {e.dy, e.w}) == e.dx);
    CHECK(result<tg::convolution_filter_gradient_op, T>(g, {e.x, e.dy}) == e.dw);
    auto biased = e.y;
    for (std::size_t i = 0; i < biased.size(); ++i) biased[i] += e.bias[i % static_cast<std::size_t>(g.out_channels)];
    CHECK(result<tg::convolution_bias_op<false>, T>(g, {e.x, e.w, e.bias}) == biased);
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

TEST_CASE("convolution on a device: batch innermost") {
    for (const auto& g :
         {geometry(9, 4, 5, 6, 3, 3, 10, 1, 1, 1, 1, 1, 1), geometry(8, 7, 5, 5, 4, 3, 6, 2, 2, 1, 1, 1, 0)}) {
        CHECK(cuda::choose_convolution(g, cuda::convolution_pass::input_gradient, 4, tg::math_mode::fp32, {})
                  .batch_innermost);
        for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
            const with_mode set(mode);
            in_orders([&] { check_operations<float>(g); });
        }
    }
}

// Large problems choose among more tiles than small ones do: each of these is tested by a given
// plan.
template <cuda::convolution_pass Pass>
void check_every_tile(const tg::convolution_geometry& g, const std::vector<float>& a, const std::vector<float>& b,
                      const std::vector<float>& want) {
    const device_array<float> at[]{a, b};
    int kernels = 0;
    const auto check = [&](cuda::convolution_algorithm algorithm, std::span<const cuda::product_tile> tiles,
                           bool exact) {
        for (int tile = 0; tile < static_cast<int>(tiles.size()); ++tile)
            for (int vector : {1, 2, 4}) {
                const cuda::product_tile& t = tiles[static_cast<std::size_t>(tile)];
                if (vector < t.vector || (exact && !t.exact)) continue;
                cuda::convolution_plan plan;
                plan.algorithm = algorithm, plan.tile = tile, plan.vector = vector, plan.exact = exact;
                const device_array<float> out(static_cast<std::int64_t>(want.size()));
                cuda::detail::convolution_run<float, Pass>::run_product(
                    tg::kernel_call(), "convolution", g, {at[0].data(), at[1].data(), out.data()}, plan, out.data());
                CAPTURE(tile);
                CAPTURE(vector);
                CHECK(out.host() == want);
                ++kernels;
            }
    };
    check(cuda::convolution_algorithm::multiply_adds, cuda::multiply_add_tiles, false);
    check(cuda::convolution_algorithm::tensor_cores, cuda::tensor_tiles, false);
    check(cuda::convolution_algorithm::tensor_cores, cuda::tensor_tiles, true);
    CHECK(kernels == 6 + 8 + 3);
}

TEST_CASE("convolution on a device: every tile that a plan may name") {
    const auto g = geometry(1, 6, 7, 12, 3, 2, 20, 1, 1, 1, 0, 1, 1);
    const expected<float> e(g);
    check_every_tile<cuda::convolution_pass::forward>(g, e.x, e.w, e.y);
    check_every_tile<cuda::convolution_pass::input_gradient>(g, e.dy, e.w, e.dx);
    check_every_tile<cuda::convolution_pass::filter_gradient>(g, e.x, e.dy, e.dw);
}

// Several tiles across and down, several blocks of channels and of taps, images narrower than a tile, 1-D.
const tg::convolution_geometry first_layers[]{
    geometry(2, 17, 21, 3, 3, 3, 150, 1, 1, 1, 1, 1, 1),       geometry(1, 20, 35, 1, 5, 5, 33),
    geometry(1, 23, 19, 3, 7, 7, 70, 2, 2, 3, 3, 3, 3),        geometry(3, 3, 2, 4, 3, 2, 9, 1, 2, 2, 0, 1, 1, 1, 1),
    geometry(1, 13, 12, 3, 3, 3, 161, 2, 3, 1, 2, 0, 1, 2, 3), geometry(2, 1, 300, 4, 1, 9, 64, 1, 3, 0, 4, 0, 4),
};

namespace {

/// While it lives, filter gradients of these shapes go by few_channels, which is predicted for large ones of few outputs alone.
class by_few_channels {
public:
    explicit by_few_channels(const tg::convolution_geometry& g) {
        constexpr auto pass = cuda::convolution_pass::filter_gradient;
        const cuda::detail::few_channels_tiling t(g, pass, sizeof(float));
        REQUIRE(t.valid);
        const auto plan = cuda::detail::few_channels_plan(
            t, g, pass, sizeof(float), cuda::detail::this_convolution_device(), cuda::convolution_workspace_limit);
        for (const auto mode : {tg::math_mode::fp32, tg::math_mode::tf32, tg::math_mode::tf32x3})
            cuda::plan_memory::instance().keep(cuda::context::of(0).properties().name,
                                               cuda::detail::convolution_work(g, pass, tg::dtype::f32, mode),
                                               {cuda::name_of(plan), 1});
    }
    by_few_channels(const by_few_channels&) = delete;
    by_few_channels& operator=(const by_few_channels&) = delete;
    ~by_few_channels() { cuda::plan_memory::instance().forget(); }
};

} // namespace

TEST_CASE("convolution on a device: few channels") {
    for (const auto& g : first_layers) {
        const by_few_channels remembered(g);
        const cuda::detail::few_channels_tiling t(g, cuda::convolution_pass::forward, sizeof(float));
        CHECK(t.valid);
        in_orders([&] { check_operations<float>(g); });
    }
    for (const auto& g : {first_layers[1], first_layers[3]}) check_operations<double>(g);
}

// A tile may contain windows of outputs beyond the image's end that read the image: they must not
// count.
TEST_CASE("convolution on a device: few channels, NaN only where the image's outputs see it") {
    const auto g = geometry(1, 9, 7, 3, 2, 2, 5, 2, 2);
    const by_few_channels remembered(g);
    const sizes n(g);
    auto x = whole_numbers<float>(n.x, 1);
    const auto dy = whole_numbers<float>(n.y, 2);
    for (std::int64_t i = n.x - 7 * 3; i < n.x; ++i)
        x[static_cast<std::size_t>(i)] = NAN; // a row that no window reaches
    const convolution_call<tg::convolution_filter_gradient_op, float> call(g, {x, dy});
    const auto want = call.on_cpu();
    CHECK(call.on_device() == want);
}

#if defined(TG_SIMT) && !defined(SIMT_TSAN)
TEST_CASE("convolution on a device: few channels, no barrier is there for nothing") {
    const auto g = geometry(2, 17, 21, 3, 3, 3, 70, 1, 1, 1, 1, 1, 1);
    const by_few_channels remembered(g);
    const expected<float> e(g);
    std::size_t found = 0;
    auto unnoticed = simt::unnoticed_barriers(
        [&] {
            return result<tg::convolution_op, float>(g, {e.x, e.w}) == e.y;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 1);
    unnoticed = simt::unnoticed_barriers(
        [&] {
            return result<tg::convolution_filter_gradient_op, float>(g, {e.x, e.dy}) == e.dw;
        },
        found);
    CHECK(unnoticed == std::vector<std::string>{});
    CHECK(found == 3);
}
#endif

TEST_CASE("convolution on a device: narrow groups") {
    for (const auto& g : {geometry(2, 7, 6, 37, 3, 3, 37, 1, 1, 1, 1, 1, 1, 1, 1, 37),
                          geometry(2, 9, 8, 10, 3, 2, 30, 2, 3, 1, 0, 1, 1, 2, 1, 10),
                          geometry(1, 1, 41, 12, 1, 5, 8, 1, 2, 0, 4, 0, 0, 1, 1, 4)}) {
        CHECK(cuda::choose_convolution(g, cuda::convolution_pass::forward, 4, tg::math_mode::tf32, {}).algorithm ==
              cuda::convolution_algorithm::direct);
        in_orders([&] { check_operations<float>(g); });
        check_operations<double>(g);
    }
}

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
    const convolution_call<tg::convolution_bias_op<true>, float> call(g, {x, w, bias});
    const auto want = call.on_cpu();
    const auto got = call.on_device();
    int nans = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        nans += std::isnan(want[i]);
        CHECK((std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]));
    }
    CHECK(nans > 0);
}

// Addresses need not be aligned for vectors: an operand may be a part of a buffer.
TEST_CASE("convolution on a device: unaligned operands") {
    const auto g = geometry(2, 5, 6, 8, 3, 3, 12, 1, 1, 1, 1, 1, 1);
    const expected<float> e(g);
    const auto after_one_zero = [](std::vector<float> v) {
        v.insert(v.begin(), 0.0f);
        return v;
    };
    const device_array<float> x(after_one_zero(e.x)), w(after_one_zero(e.w));
    using pass = cuda::detail::convolution_run<float, cuda::convolution_pass::forward>;
    const std::int64_t planned = cuda::known_convolution_plans::instance().made();
    for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32}) {
        const with_mode set(mode);
        const device_array<float> y(static_cast<std::int64_t>(e.y.size()) + 1);
        const device_array<unsigned char> scratch(static_cast<std::int64_t>(pass::workspace(g)));
        const tg::buffer_view out = view(y.data() + 1, {static_cast<std::int64_t>(e.y.size())});
        tg::kernel_call call;
        call.out = &out, call.workspace = scratch.data();
        pass::run(call, "convolution", g, {x.data() + 1, w.data() + 1, y.data() + 1});
        const auto got = y.host();
        CHECK(std::vector<float>(got.begin() + 1, got.end()) == e.y);
    }
    CHECK(cuda::known_convolution_plans::instance().made() == planned + 1); // once for scratch memory, runs and modes
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
        const convolution_call<tg::convolution_op, float> forward(g, {x, w});
        const convolution_call<tg::convolution_input_gradient_op, float> input(g, {dy, w});
        const convolution_call<tg::convolution_filter_gradient_op, float> filter(g, {x, dy});
        const auto once = [&](auto& call, const std::vector<double>& want) {
            const std::vector<float> got = call.on_device();
            CHECK(distance(got, want) < most);
            CHECK(distance(got, want) > least);
            in_orders([&] { CHECK(call.on_device() == got); });
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

#ifndef TG_SIMT
// The layers of a network of 3 -> 150 -> 300 -> 200 channels, too large for the executor: the plans
// chosen for them against library products over written-out windows. Integers again: every sum
// stays below 2^24.
TEST_CASE("convolution on a device: large layers agree with products of a library") {
    for (int batch : {1, 33, 128})
        for (const auto& g :
             {geometry(batch, 50, 50, 3, 3, 3, 150), geometry(batch, 24, 24, 150, 5, 5, 300),
              geometry(batch, 10, 10, 300, 3, 3, 200), geometry(batch, 12, 12, 64, 3, 3, 128, 2, 2, 1, 1, 1, 1)}) {
            const sizes n(g);
            const auto x = whole_numbers<float>(n.x, 1, 1), w = whole_numbers<float>(n.w, 2, 1);
            const auto dy = whole_numbers<float>(n.y, 3, 1), bias = whole_numbers<float>(g.out_channels, 4, 9);
            const device_array<float> at[]{x, w, dy, bias}, y(n.y), dx(n.x), dw(n.w);
            const device_array<unsigned char> scratch(static_cast<std::int64_t>(
                cuda::detail::chunk_bytes(g, sizeof(float), cuda::convolution_workspace_limit)));
            const auto multiply = [](const cuda::gemm_arguments<float>& a) {
                cuda::gemm(nullptr, "convolution", a, tg::math_mode::fp32);
            };
            const tg::kernel_call call;
            const cuda::convolution_by_product<float, decltype(multiply)> product(
                call, "convolution", g, scratch.data(), cuda::convolution_workspace_limit, multiply);
            product.forward(at[0].data(), at[1].data(), at[3].data(), true, y.data());
            product.input_gradient(at[2].data(), at[1].data(), dx.data());
            product.filter_gradient(at[0].data(), at[2].data(), dw.data());
            for (auto mode : {tg::math_mode::fp32, tg::math_mode::tf32, tg::math_mode::tf32x3}) {
                CAPTURE(static_cast<int>(mode));
                const with_mode set(mode);
                CHECK((result<tg::convolution_bias_op<true>, float>(g, {x, w, bias}) == y.host()));
                CHECK((result<tg::convolution_input_gradient_op, float>(g, {dy, w}) == dx.host()));
                CHECK((result<tg::convolution_filter_gradient_op, float>(g, {x, dy}) == dw.host()));
            }
        }
}
#endif

} // namespace convolution_test
