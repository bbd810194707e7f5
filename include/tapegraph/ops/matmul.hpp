#pragma once

#include <tapegraph/ops/layout.hpp>

namespace tapegraph {

/// Matrix product over the last two axes, [..., m, k] by [..., k, n], with NumPy broadcasting of the axes before them.
/// Operands may be read transposed without a copy.
struct matmul_op {
    static constexpr std::string_view name = "matmul";
    static constexpr operation_kind kind = operation_kind::contract;
    static constexpr linearity linear = linearity::each;
    static constexpr int arity = 2;
    struct attributes {
        std::int64_t transpose_a = 0, transpose_b = 0;
    };
    static constexpr void infer(const attributes& t, inference& io) {
        const shape &a = io.in[0].dims, &b = io.in[1].dims;
        io.type = io.in[0].type;
        if (!io.require(io.in[0].type == io.in[1].type, "matmul: element types differ") ||
            !io.require(a.rank() >= 2 && b.rank() >= 2, "matmul: operands need two axes"))
            return;
        const int ra = a.rank(), rb = b.rank();
        const extent m = a[t.transpose_a ? ra - 1 : ra - 2], ka = a[t.transpose_a ? ra - 2 : ra - 1];
        const extent kb = b[t.transpose_b ? rb - 1 : rb - 2], n = b[t.transpose_b ? rb - 2 : rb - 1];
        if (!io.require(equal_or_required(ka, kb), "matmul: inner extents differ")) return;
        bool ok = true;
        io.result = broadcast(shape(ra - 2, a.data(), a.table()), shape(rb - 2, b.data(), b.table()), ok);
        io.require(ok, "matmul: batch extents do not broadcast");
        io.result.push_back(m);
        io.result.push_back(n);
    }
    // C = A B: dA = dC B^T, dB = A^T dC; with a transposed operand the product itself is transposed.
    template <int I>
    static constexpr auto vjp(const attributes& t, auto dc, auto a, auto b, auto) {
        const auto product = [](auto x, auto y, std::int64_t tx, std::int64_t ty, const shape& target) {
            const auto full = invoke<matmul_op>({tx, ty}, nullptr, std::source_location::current(), x, y);
            return sum_to(full, target);
        };
        if constexpr (I == 0)
            return t.transpose_a ? product(b, dc, t.transpose_b, 1, shape_of(a))
                                 : product(dc, b, 0, !t.transpose_b, shape_of(a));
        else
            return t.transpose_b ? product(dc, a, 1, t.transpose_a, shape_of(b))
                                 : product(a, dc, !t.transpose_a, 0, shape_of(b));
    }
};

struct matmul_options {
    bool transpose_a = false, transpose_b = false;
};

template <tensor_like A, tensor_like B>
constexpr auto matmul(const A& a, const B& b, matmul_options options = {},
                      std::source_location where = std::source_location::current()) {
    return invoke<matmul_op>({options.transpose_a, options.transpose_b}, nullptr, where, a, b);
}

} // namespace tapegraph
