#pragma once

#include <cuda/convolution_reference.hpp>

#include <tapegraph/cuda/ops/convolution/convolution.cuh>
#include <tapegraph/ops/convolution/kernel.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/backend.cuh> // runtime::kernel_for needs it
#endif

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

/// The convolution operations on a device, called as graphs and tapes call them.

namespace convolution_testing {

namespace cuda = tapegraph::cuda;

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
        a.algorithm = static_cast<std::int64_t>(g.algorithm);
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

} // namespace convolution_testing
