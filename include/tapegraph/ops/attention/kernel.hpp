#pragma once

#include <tapegraph/ops/attention/attention.hpp>
#include <tapegraph/ops/attention/cpu_gradient.hpp>
#include <tapegraph/ops/random/kernel.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of attention and its derivative.

namespace tapegraph::runtime {

namespace detail {
/// From operands that begin with queries at `first`.
inline cpu::attention_shape attention_shape_of(const kernel_call& c, int first) {
    const attention_attributes a = attributes_of<attention_op>(c);
    const buffer_view &q = c.in[first], &k = c.in[first + 1], &v = c.in[first + 2], &bias = c.in[first + 3];
    cpu::attention_shape s;
    s.batch = q.extents[0], s.time = q.extents[1], s.heads = q.extents[2], s.depth = q.extents[3];
    s.steps = k.extents[1], s.width = v.extents[3];
    s.shared = k.extents[2] > 0 ? s.heads / k.extents[2] : 1;
    s.biased = a.biased != 0;
    std::int64_t stride = 1;
    for (int i = 3; i >= 0; --i) {
        s.bias_strides[i] = bias.extents[i] == 1 ? 0 : stride;
        stride *= bias.extents[i];
    }
    s.causal = a.causal != 0;
    s.offset = a.offset + (a.ends != 0 ? s.steps - s.time : 0);
    s.equal = a.equal != 0;
    s.drops = a.drops != 0;
    s.rate = a.rate;
    s.scale = a.scale;
    return s;
}
template <class T>
cpu::attention_operands<T> attention_operands_of(const kernel_call& c, int first) {
    return {c.in[first].as<const T>(), c.in[first + 1].as<const T>(), c.in[first + 2].as<const T>(),
            c.in[first + 3].as<const T>(), c.in[first + 4].as<const T>()};
}
} // namespace detail

template <std::floating_point T>
struct kernel<attention_op, T> {
    static void run(const kernel_call& c) {
        const cpu::attention_shape s = detail::attention_shape_of(c, 0);
        T* const y = c.out[0].as<T>();
        cpu::attention(s, detail::attention_operands_of<T>(c, 0), y, y + s.results(), c.workspace);
    }
    static std::size_t workspace(const kernel_call& c) {
        return cpu::attention_bytes<T>(detail::attention_shape_of(c, 0));
    }
};
template <std::floating_point T>
struct kernel<attention_gradient_op, T> {
    static void run(const kernel_call& c) {
        const cpu::attention_shape s = detail::attention_shape_of(c, 1);
        T *const dq = c.out[0].as<T>(), *const dk = dq + c.in[1].elements(), *const dv = dk + c.in[2].elements();
        const T* const y = c.in[6].as<const T>();
        cpu::attention_gradient<T>(s, detail::attention_operands_of<T>(c, 1), y, y + s.results(), c.in[0].as<const T>(),
                                   {dq, dk, dv}, c.workspace);
    }
    static std::size_t workspace(const kernel_call& c) {
        return cpu::attention_gradient_bytes<T>(detail::attention_shape_of(c, 1));
    }
};

template <std::floating_point T>
struct kernel<random_address_op<T>, T> {
    static void run(const kernel_call& c) {
        const auto ordinal = static_cast<std::uint32_t>(attributes_of<random_address_op<T>>(c).ordinal);
        T* const to = c.out[0].as<T>();
        for (std::int64_t i = 0; i < c.out[0].elements(); ++i)
            to[i] = static_cast<T>(random::address_part(*c.random, ordinal, i % random_address_op<T>::words));
    }
};

template <std::floating_point T>
struct kernel<numbers_at_op, T> {
    static void run(const kernel_call& c) {
        const random::address from = random::address_of(c.in[0].as<const T>());
        T* const to = c.out[0].as<T>();
        in_parts(c.out[0].elements(), [&](std::int64_t begin, std::int64_t count) {
            cpu::dispatch<cpu::attention_detail::draw_body<T>>(to + begin, begin, count, &from);
        });
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
