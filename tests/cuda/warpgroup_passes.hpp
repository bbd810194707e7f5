#pragma once

#include <cuda/device_array.hpp>

#include <tapegraph/core/half.hpp>
#include <tapegraph/cuda/ops/convolution/library_convolution.hpp>
#ifdef TG_SIMT
#include <tapegraph/cuda/ops/convolution/filter_gradient_by_warpgroups.cuh>
#else
#include <tapegraph/cuda/kernels/convolution.cuh>
#include <tapegraph/cuda/kernels/implicit_gemm.cuh>
#endif

#include <cuda/convolution_reference.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <type_traits>
#include <vector>

/// Shared by tests of convolutions by warpgroups: runs a pass, and compares it with sums written
/// out.

namespace warpgroup_testing {

using namespace convolution_testing;
using namespace tapegraph::cuda;
namespace kernels = tapegraph::cuda::kernels;

inline constexpr auto forward = convolution_pass::forward, input_gradient = convolution_pass::input_gradient,
                      filter_gradient = convolution_pass::filter_gradient;

#ifdef TG_SIMT
using kernels::warpgroup_tile;

/// The device that filter gradients are cut for, on the executor.
struct cut_for {
    int multiprocessors = 4;
    std::size_t limit = filter_gradient_cut::usual_limit;
};
inline cut_for& current_cut() {
    static cut_for c;
    return c;
}

/// As the registered source does, in a given tile.
template <class T, class... Tile>
std::vector<T> run(const tg::convolution_geometry& g, convolution_pass pass, const library_convolution_operands& o,
                   std::int64_t count) {
    const device_array<T> results(count);
    library_convolution_operands to = o;
    to.results = results.data();
    if (pass == filter_gradient) {
        using gradient = filter_gradient_by_warpgroups<T, Tile...>;
        const auto [multiprocessors, limit] = current_cut();
        const std::size_t bytes = gradient::scratch_bytes(g, multiprocessors, limit);
        const device_array<unsigned char> scratch(static_cast<std::int64_t>(bytes));
        gradient("test", nullptr, g, to, scratch.data(), multiprocessors, limit).run();
        return results.host();
    }
    const im2col_convolution c(g, pass);
    const std::size_t limit = current_cut().limit, bytes = warpgroup_scratch(c, sizeof(T), limit).bytes();
    const device_array<unsigned char> scratch(static_cast<std::int64_t>(bytes));
    convolution_by_warpgroups<T>("test", nullptr, c, to, scratch.data(), limit).template run<Tile...>(4);
    return results.host();
}
inline bool takes(const tg::convolution_geometry& g, convolution_pass pass, tg::dtype) {
    return im2col_convolution::has(g, pass);
}
#else
template <int Fragments, int Columns>
struct warpgroup_tile; ///< the source chooses

template <class T, class... Tile>
std::vector<T> run(const tg::convolution_geometry& g, convolution_pass pass, const library_convolution_operands& o,
                   std::int64_t count) {
    const library_convolution& l = convolution_of_library;
    const device_array<unsigned char> scratch(static_cast<std::int64_t>(l.scratch_bytes(g, pass, tg::dtype_of<T>)));
    const device_array<T> results(count);
    library_convolution_operands to = o;
    to.results = results.data();
    l.run("test", nullptr, g, pass, tg::dtype_of<T>, to, scratch.data());
    return results.host();
}
inline bool takes(const tg::convolution_geometry& g, convolution_pass pass, tg::dtype element) {
    return convolution_of_library.takes != nullptr && convolution_of_library.takes(g, pass, element);
}
#endif

template <class T>
std::vector<T> narrowed(const std::vector<float>& from) {
    std::vector<T> to;
    for (const float x : from) to.push_back(static_cast<T>(x));
    return to;
}

// Integers, which all types represent exactly; a 16-bit result is rounded, then again with its
// bias.
template <class T, class... Tile>
bool passes_are_right(const tg::convolution_geometry& g) {
    const sizes n(g);
    const expected<float> want(g);
    const std::vector<T> y = narrowed<T>(want.y);
    std::vector<T> activated;
    for (std::size_t i = 0; i < y.size(); ++i)
        activated.push_back(static_cast<T>(
            std::max(0.0f, static_cast<float>(y[i]) + want.bias[i % static_cast<std::size_t>(g.out_channels)])));
    const device_array<T> x(narrowed<T>(want.x)), w(narrowed<T>(want.w)), dy(narrowed<T>(want.dy)),
        bias(narrowed<T>(want.bias));
    bool right = true;
    const auto check = [&](convolution_pass pass, const library_convolution_operands& o, const std::vector<T>& wanted) {
        if (takes(g, pass, tg::dtype_of<T>))
            right = right && run<T, Tile...>(g, pass, o, static_cast<std::int64_t>(wanted.size())) == wanted;
    };
    check(forward, {x.data(), w.data(), nullptr}, y);
    check(forward, {x.data(), w.data(), nullptr, bias.data(), true}, activated);
    check(input_gradient, {dy.data(), w.data(), nullptr}, narrowed<T>(want.dx));
    check(filter_gradient, {x.data(), dy.data(), nullptr}, narrowed<T>(want.dw));
    return right;
}
template <class T, class... Tile>
bool filter_gradient_is_right(const tg::convolution_geometry& g) {
    const expected<float> want(g);
    const device_array<T> x(narrowed<T>(want.x)), dy(narrowed<T>(want.dy));
    return !takes(g, filter_gradient, tg::dtype_of<T>) ||
           run<T, Tile...>(g, filter_gradient, {x.data(), dy.data(), nullptr},
                           static_cast<std::int64_t>(want.dw.size())) == narrowed<T>(want.dw);
}

using small_tile = warpgroup_tile<1, 64>;

/// Whether a device, or its imitation, is present that supports any pass at all.
inline bool is_here() {
    const bool here = takes(geometry(1, 1, 1, 1, 1, 1, 1), forward, tg::dtype::f32);
    if (!here) MESSAGE("convolution_sm90.cu is not linked, or the device is not one of compute capability 9.0");
    return here;
}

} // namespace warpgroup_testing
