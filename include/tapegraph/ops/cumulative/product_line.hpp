#pragma once

#include <tapegraph/ops/cumulative/wide_number.hpp>

/// Derivatives of products along a line, without a division. With (x_j + t_1 v_1j + ... + t_m v_mj) in
/// place of x_j a product is a polynomial in t_1, ..., t_m, whose coefficient of t_1 ... t_m is the m-th
/// derivative by x along v_1, ..., v_m. Only coefficients of products of different t are needed;
/// coefficient S belongs to the product of the t_r whose bits r are set in S.
///
/// First derivatives are computed for blocks of 32 elements, multiplied from their ends, and completed by the products before
/// and after the block: so each of the CPU's lanes can take a block (ops/cumulative/cpu_product_lanes.hpp), with the same bits.

namespace tapegraph::detail {

/// The memory layout of lines: element j of line u is at base(u) + offset(j).
template <class T, class Offset>
struct product_operands {
    const T* x;
    const T* v[4]; ///< m of them
    std::int64_t length;
    Offset offset; ///< in the order of the products
};

inline constexpr std::int64_t product_block = 32;

/// A polynomial of 2^M coefficients.
template <int M>
struct product_terms {
    using N = wide_number;
    static constexpr int count = 1 << M;
    N of[count];

    TG_HD void set_to(double first) {
        of[0] = N(first);
        for (int s = 1; s < count; ++s) of[s] = N(0);
    }
    /// Multiplies by (x + sum of t_r v_r) at element `at` of the operands.
    template <class T>
    TG_HD void multiply(const T* x, const T* const* v, std::int64_t at) {
        N by[M + 1];
        by[0] = N(static_cast<double>(x[at]));
        for (int r = 0; r < M; ++r) by[r + 1] = N(static_cast<double>(v[r][at]));
        for (int s = count - 1; s >= 0; --s) {
            N sum = of[s] * by[0];
            for (int r = 0; r < M; ++r)
                if ((s >> r & 1) != 0) sum = sum + of[s ^ (1 << r)] * by[r + 1];
            of[s] = sum;
        }
    }
    /// The last coefficient of the product with another polynomial.
    TG_HD double last_of_product(const product_terms& b) const {
        N sum = of[0] * b.of[count - 1];
        for (int s = 1; s < count; ++s) sum = sum + of[s] * b.of[count - 1 - s];
        return static_cast<double>(sum);
    }
};

/// The number of blocks before which a line's gradient keeps the product of the elements so far;
/// the first block needs none.
TG_HD constexpr std::int64_t kept_places(std::int64_t length) { return length > 0 ? (length - 1) / product_block : 0; }

/// What flows back out of a block at its beginning, from what flows into its end, the product of its elements and, unless
/// `total`, the block's own contribution.
TG_HD wide_number before_block(const wide_number& after, const wide_number& product, const wide_number& own,
                               bool total) {
    if (total) return after * product;
    return after.part == 0 ? own : own + after * product;
}

/// result_k = the last coefficient of the sum over i of dy_i times the product of the elements up to i
/// (`exclusive`: before i) except k; with `total`, of dy_0 times the product of all elements except k.
/// `kept` is scratch memory for kept_places(length) polynomials.
template <int M, class T, class Offset>
TG_HD void gradient_of_products(const product_operands<T, Offset>& p, const T* dy, bool total, bool exclusive,
                                product_terms<M>* kept, T* result) {
    const std::int64_t n = p.length;
    constexpr bool by_blocks = M == 0;
    product_terms<M> left[product_block], right, before, own,
        product; // own, product: right and all factors, of the block alone
    before.set_to(1);
    for (std::int64_t block = 0; block < kept_places(n); ++block) {
        const std::int64_t begin = block * product_block, end = begin + product_block;
        if constexpr (by_blocks) {
            product.set_to(1);
            for (std::int64_t j = end; j-- > begin;) product.multiply(p.x, p.v, p.offset(j));
            before.of[0] = before.of[0] * product.of[0];
        } else {
            for (std::int64_t j = begin; j < end; ++j) before.multiply(p.x, p.v, p.offset(j));
        }
        kept[block] = before;
    }
    right.set_to(total ? static_cast<double>(dy[0]) : 0);
    const auto add = [&](product_terms<M>& to, std::int64_t j) {
        to.of[0] = to.of[0] + wide_number(static_cast<double>(dy[p.offset(j)]));
    };
    for (std::int64_t end = n; end > 0;) {
        const std::int64_t begin = (end - 1) / product_block * product_block;
        left[0].set_to(1);
        if (begin > 0) left[0] = kept[begin / product_block - 1];
        for (std::int64_t j = begin + 1; j < end; ++j) {
            left[j - begin] = left[j - 1 - begin];
            left[j - begin].multiply(p.x, p.v, p.offset(j - 1));
        }
        const product_terms<M> after = right;
        own.set_to(0);
        product.set_to(1);
        for (std::int64_t k = end - 1; k >= begin; --k) {
            if (!total && !exclusive) add(right, k), add(own, k);
            result[p.offset(k)] = static_cast<T>(left[k - begin].last_of_product(right));
            right.multiply(p.x, p.v, p.offset(k));
            if constexpr (by_blocks) {
                product.multiply(p.x, p.v, p.offset(k));
                if (!total) own.multiply(p.x, p.v, p.offset(k));
            }
            if (!total && exclusive) add(right, k), add(own, k);
        }
        if constexpr (by_blocks) right.of[0] = before_block(after.of[0], product.of[0], own.of[0], total);
        end = begin;
    }
}

/// result_i = the last coefficient of the product of the elements up to i (`exclusive`: before i); with
/// `total`, result_0 is that of all elements.
template <int M, class T, class Offset>
TG_HD void terms_of_products(const product_operands<T, Offset>& p, bool total, bool exclusive, T* result) {
    product_terms<M> so_far;
    so_far.set_to(1);
    const auto last = [&] { return static_cast<T>(static_cast<double>(so_far.of[(1 << M) - 1])); };
    for (std::int64_t i = 0; i < p.length; ++i) {
        if (!total && exclusive) result[p.offset(i)] = last();
        so_far.multiply(p.x, p.v, p.offset(i));
        if (!total && !exclusive) result[p.offset(i)] = last();
    }
    if (total) result[0] = last();
}

} // namespace tapegraph::detail
