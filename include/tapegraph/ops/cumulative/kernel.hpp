#pragma once

#include <tapegraph/ops/cumulative/cpu.hpp>
#include <tapegraph/ops/cumulative/cpu_product_gradient.hpp>
#include <tapegraph/ops/cumulative/cumulative.hpp>
#include <tapegraph/ops/cumulative/product_line.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of running sums and products.

namespace tapegraph::runtime {

namespace detail {
// Integers are added and multiplied as unsigned, so that they wrap around.
template <cpu::scanning S, class T>
void run_scan(const kernel_call& c) {
    using element = typename reduced_element<sum_op, T>::type;
    const auto a = attributes_of<cumulative_sum_op>(c);
    cpu::scan<S>(c.in[0].rank, c.in[0].extents, static_cast<int>(a.axis), a.exclusive != 0, a.reverse != 0,
                 c.in[0].as<const element>(), c.out[0].as<element>());
}
} // namespace detail
template <class T>
struct kernel<cumulative_sum_op, T> {
    static void run(const kernel_call& c) { detail::run_scan<cpu::scanning::sum, T>(c); }
};
template <class T>
struct kernel<cumulative_product_op, T> {
    static void run(const kernel_call& c) { detail::run_scan<cpu::scanning::product, T>(c); }
};

namespace detail {
/// The axes of a buffer, those that a product runs along and the others, of which neighbours are merged.
struct product_axes {
    cpu::reduce_detail::groups outer, along;

    product_axes(std::int64_t axes, const buffer_view& x) {
        std::int64_t strides[max_rank], stride = 1;
        for (int i = x.rank; i-- > 0; stride *= x.extents[i]) strides[i] = stride;
        for (int i = 0; i < x.rank; ++i) {
            auto& to = (axes >> i & 1) != 0 ? along : outer;
            const std::int64_t e = x.extents[i];
            if (const int last = to.count - 1; last >= 0 && to.stride[last] == e * strides[i]) {
                to.extent[last] *= e;
                to.stride[last] = strides[i];
                to.size *= e;
            } else if (e != 1) {
                to.add(e, strides[i]);
            }
        }
    }
};
/// The lines of a product's derivative, each by itself.
template <int M, class T>
struct product_lines : product_axes {
    using kept = tapegraph::detail::product_terms<M>;
    tapegraph::detail::product_attributes a;

    product_lines(const tapegraph::detail::product_attributes& of, const buffer_view& x)
        : product_axes(of.axes, x), a(of) {}
    std::size_t workspace_bytes() const {
        return static_cast<std::size_t>(outer.size * tapegraph::detail::kept_places(along.size)) * sizeof(kept);
    }
    /// dy is null where terms are requested. v: M of them.
    void run(const T* dy, const T* x, const T* const* v, void* workspace, T* result) const {
        const std::int64_t n = along.size;
        if (outer.size == 0 || (n == 0 && a.total == 0)) return;
        const std::int64_t in_task = std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, n));
        const std::int64_t tasks = (outer.size + in_task - 1) / in_task;
        cpu::parallel_for(tasks, outer.size * n >= 16384, [&](std::int64_t task) {
            for (std::int64_t u = task * in_task, end = std::min(outer.size, u + in_task); u < end; ++u)
                line(u, dy, x, v, static_cast<kept*>(workspace), result);
        });
    }

private:
    void line(std::int64_t u, const T* dy, const T* x, const T* const* v, kept* workspace, T* result) const {
        const std::int64_t n = along.size, base = outer.offset(u);
        const bool total = a.total != 0, exclusive = a.exclusive != 0;
        const auto offset = [this, n](std::int64_t j) { return along.offset(a.reverse != 0 ? n - 1 - j : j); };
        tapegraph::detail::product_operands<T, decltype(offset)> p{x + base, {}, n, offset};
        for (int r = 0; r < M; ++r) p.v[r] = v[r] + base;
        result += total && dy == nullptr ? u : base;
        if (dy == nullptr) return tapegraph::detail::terms_of_products<M>(p, total, exclusive, result);
        tapegraph::detail::gradient_of_products(p, dy + (total ? u : base), total, exclusive,
                                                workspace + u * tapegraph::detail::kept_places(n), result);
    }
};
template <int M, class T>
product_lines<M, T> product_lines_of(const kernel_call& c, int x) {
    return {attributes_from_words<tapegraph::detail::product_gradient_op<M>>(c.attributes), c.in[x]};
}
template <int M, class T>
void run_product_lines(const kernel_call& c, int x) {
    const T* v[4] = {};
    for (int r = 0; r < M; ++r) v[r] = c.in[x + 1 + r].template as<const T>();
    product_lines_of<M, T>(c, x).run(x == 0 ? nullptr : c.in[0].template as<const T>(), c.in[x].template as<const T>(),
                                     v, c.workspace, c.out[0].template as<T>());
}
} // namespace detail
template <class T>
struct kernel<tapegraph::detail::product_gradient_op<0>, T> {
    static void run(const kernel_call& c) {
        if (c.out[0].elements() > 0)
            gradient_of(c).run(c.in[0].as<const T>(), c.in[1].as<const T>(), c.workspace, c.out[0].as<T>());
    }
    static std::size_t workspace(const kernel_call& c) { return gradient_of(c).workspace_bytes(); }

private:
    static cpu::product_gradient<T> gradient_of(const kernel_call& c) {
        const auto a = attributes_of<tapegraph::detail::product_gradient_op<0>>(c);
        const detail::product_axes axes(a.axes, c.in[1]);
        return {axes.outer, axes.along, a.total != 0, a.reverse != 0, a.exclusive != 0};
    }
};
template <int M, class T>
struct kernel<tapegraph::detail::product_gradient_op<M>, T> {
    static void run(const kernel_call& c) { detail::run_product_lines<M, T>(c, 1); }
    static std::size_t workspace(const kernel_call& c) {
        return detail::product_lines_of<M, T>(c, 1).workspace_bytes();
    }
};
template <int M, class T>
struct kernel<tapegraph::detail::product_terms_op<M>, T> {
    static void run(const kernel_call& c) { detail::run_product_lines<M, T>(c, 0); }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
