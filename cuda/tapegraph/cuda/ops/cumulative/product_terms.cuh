#pragma once

#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/cuda/kernels/strided_index.cuh>
#include <tapegraph/cuda/lines.cuh>
#include <tapegraph/ops/cumulative/kernel.hpp>

/// Derivatives of products, a thread for each line: what a line's elements multiply to goes from one to the next.

namespace tapegraph::cuda {

namespace kernels {

/// The shape of a call.
struct product_shape {
    strided_index<1> outer, along;
    bool total, reverse, exclusive;
};
template <int M, class T>
struct product_pointers {
    const T *dy, *x, *v[M + 1]; ///< dy null: terms are asked for
    tapegraph::detail::product_terms<M>* kept;
    T* result;
};

template <int M, class T>
__global__ void product_lines(product_shape s, product_pointers<M, T> m, std::int64_t first, std::int64_t end) {
    const std::int64_t u = first + thread_number();
    if (u >= end) return;
    const std::int64_t n = s.along.size, base = s.outer.offset(u);
    const auto offset = [&](std::int64_t j) { return s.along.offset(s.reverse ? n - 1 - j : j); };
    tapegraph::detail::product_operands<T, decltype(offset)> p{m.x + base, {}, n, offset};
    for (int r = 0; r < M; ++r) p.v[r] = m.v[r] + base;
    if (m.dy == nullptr)
        return tapegraph::detail::terms_of_products<M>(p, s.total, s.exclusive, m.result + (s.total ? u : base));
    tapegraph::detail::gradient_of_products(p, m.dy + (s.total ? u : base), s.total, s.exclusive,
                                            m.kept + u * tapegraph::detail::kept_places(n), m.result + base);
}

} // namespace kernels

namespace detail {

template <int M, bool Gradient, class T>
struct product_kernel {
    using terms = tapegraph::detail::product_terms<M>;

    static kernels::product_shape shape_of(const kernel_call& c) {
        const auto a = attributes_from_words<tapegraph::detail::product_gradient_op<M>>(c.attributes);
        kernels::product_shape s{{}, {}, a.total != 0, a.reverse != 0, a.exclusive != 0};
        const buffer_view& x = c.in[Gradient ? 1 : 0];
        std::int64_t strides[max_rank], stride = 1;
        for (int i = x.rank; i-- > 0; stride *= x.extents[i]) strides[i] = stride;
        for (int i = 0; i < x.rank; ++i) // an index space has elements
            if (x.extents[i] > 0)
                ((a.axes >> i & 1) != 0 ? s.along : s.outer).add(x.extents[i], &strides[i]);
            else
                ((a.axes >> i & 1) != 0 ? s.along : s.outer).size = 0;
        return s;
    }
    static std::size_t workspace(const kernel_call& c) {
        if (!Gradient || c.out[0].elements() == 0) return 0;
        const auto s = shape_of(c);
        return static_cast<std::size_t>(s.outer.size * tapegraph::detail::kept_places(s.along.size)) * sizeof(terms);
    }
    static void run(const kernel_call& c) {
        if (c.out[0].elements() == 0) return;
        const auto s = shape_of(c);
        const int x = Gradient ? 1 : 0;
        kernels::product_pointers<M, T> m{Gradient ? c.in[0].as<const T>() : nullptr,
                                          c.in[x].as<const T>(),
                                          {},
                                          static_cast<terms*>(c.workspace),
                                          c.out[0].as<T>()};
        for (int r = 0; r < M; ++r) m.v[r] = c.in[x + 1 + r].as<const T>();
        for_pieces(s.outer.size, [&](std::int64_t first, std::int64_t count) {
            launch(c, Gradient ? "product_gradient" : "product_terms", over(count, 128), kernels::product_lines<M, T>,
                   s, m, first, first + count);
        });
    }
};

} // namespace detail

template <int M, class T>
struct kernel<tapegraph::detail::product_gradient_op<M>, T> : detail::product_kernel<M, true, T> {};
template <int M, class T>
struct kernel<tapegraph::detail::product_terms_op<M>, T> : detail::product_kernel<M, false, T> {};

} // namespace tapegraph::cuda
