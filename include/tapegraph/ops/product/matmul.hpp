#pragma once

#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/ops/movement/layout.hpp>

namespace tapegraph {

namespace detail {
/// [..., m, k] reshaped to [product of the others, k].
template <handle H>
constexpr H rows_of(const H& x) {
    const shape from = shape_of(x);
    shape flat;
    flat.attach(from.table());
    flat.push_back(from.size(0, from.rank() - 1));
    flat.push_back(from[from.rank() - 1]);
    return invoke<reshape_op>({}, &flat, std::source_location::current(), x);
}
/// x with an axis of extent 1 at `at`.
template <handle H>
constexpr H with_axis(const H& x, int at, std::source_location where) {
    const shape from = shape_of(x);
    shape target;
    target.attach(from.table());
    for (int i = 0; i <= from.rank(); ++i) {
        if (i == at) target.push_back(1);
        if (i < from.rank()) target.push_back(from[i]);
    }
    return invoke<reshape_op>({}, &target, where, x);
}
/// x without axis `at`, which has extent 1.
template <handle H>
constexpr H without_axis(const H& x, int at, std::source_location where) {
    const shape from = shape_of(x);
    shape target;
    target.attach(from.table());
    for (int i = 0; i < from.rank(); ++i)
        if (i != at) target.push_back(from[i]);
    return invoke<reshape_op>({}, &target, where, x);
}
} // namespace detail

/// Matrix product over the last two axes, [..., m, k] by [..., k, n], with NumPy broadcasting of the axes before them.
/// Operands may be read transposed without a copy.
struct matmul_op {
    static constexpr std::string_view name = "matmul";
    static constexpr bool takes_storage_types = true;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr linearity linear = linearity::each;
    static constexpr int arity = 2;
    struct attributes {
        std::int64_t transpose_a = 0, transpose_b = 0;
    };
    /// The precision in which a GPU's library multiplies floats, where that is not float: it has no
    /// 3xTF32.
    static std::string_view method(const kernel_call& c) {
        const bool rounded =
            c.out[0].memory != 0 && c.out[0].type == dtype::f32 && current_math_mode() == math_mode::tf32;
        return rounded ? name_of(math_mode::tf32) : std::string_view();
    }
    static constexpr void infer(const attributes& t, inference& io) {
        const shape &a = io.in[0].dims, &b = io.in[1].dims;
        io.type = io.in[0].type;
        if (!io.require(io.in[0].type == io.in[1].type, "matmul: element types differ") ||
            !io.require(is_floating(io.type),
                        "matmul: elements must be floating-point; cast<float>(x) converts them") ||
            !io.require(a.rank() >= 2 && b.rank() >= 2, "matmul: an operand is a scalar"))
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
        else if (!t.transpose_a && shape_of(a).rank() > 2 && shape_of(b).rank() == 2) {
            // With one factor for every batch, the sum over batches is part of one product over all
            // rows. The first operand is named, because operands of one call are in no order, and a
            // graph made at run time must equal the compiler's.
            const auto rows_of_a = detail::rows_of(a);
            const auto rows_of_dc = detail::rows_of(dc);
            return t.transpose_b ? product(rows_of_dc, rows_of_a, 1, 0, shape_of(b))
                                 : product(rows_of_a, rows_of_dc, 1, 0, shape_of(b));
        } else
            return t.transpose_b ? product(dc, a, 1, t.transpose_a, shape_of(b))
                                 : product(a, dc, !t.transpose_a, 0, shape_of(b));
    }
    /// 2 m n k, for every matrix of a batch.
    static double flops(const kernel_call& c) {
        const buffer_view& a = c.in[0]; // [..., m, k] or, if read transposed, [..., k, m]
        const std::int64_t inner = a.extents[c.attributes[0] != 0 ? a.rank - 2 : a.rank - 1];
        return 2 * static_cast<double>(c.out[0].elements()) * static_cast<double>(inner);
    }
};

/// Matrix product plus a bias for every row, then relu if Relu, fused by a pass. Never
/// differentiated.
template <bool Relu>
struct matmul_bias_op {
    static constexpr std::string_view name = Relu ? "matmul_bias_relu" : "matmul_bias";
    static constexpr bool takes_storage_types = true;
    static constexpr operation_kind kind = operation_kind::kernel;
    static constexpr std::uint32_t saved_for_vjp = saved_operands;
    static constexpr int arity = 3;
    using attributes = matmul_op::attributes;
    static constexpr void infer(const attributes& t, inference& io) { matmul_op::infer(t, io); }
    static double flops(const kernel_call& c) { return matmul_op::flops(c); }
    static std::string_view method(const kernel_call& c) { return matmul_op::method(c); }
};

/// Options of `matmul`: the last two axes of an operand are exchanged before.
struct matmul_options {
    bool transpose_a = false, transpose_b = false;
};

/// NumPy's matmul. An operand of rank 1 is a row on the left and a column on the right, and the
/// axis it gains is dropped again; `transpose_a` and `transpose_b` do not apply to it. Elements are
/// float or double.
template <tensor_like A, tensor_like B>
constexpr auto matmul(const A& a, const B& b, matmul_options options = {},
                      std::source_location where = std::source_location::current()) {
    auto x = eval(a, where);
    auto y = eval(b, where);
    const int rank_x = shape_of(x).rank(), rank_y = shape_of(y).rank();
    if (rank_x == 1) x = detail::with_axis(x, 0, where);
    if (rank_y == 1) y = detail::with_axis(y, 1, where);
    auto z = invoke<matmul_op>({options.transpose_a && rank_x != 1, options.transpose_b && rank_y != 1}, nullptr, where,
                               x, y);
    if (rank_y == 1) z = detail::without_axis(z, shape_of(z).rank() - 1, where);
    if (rank_x == 1) z = detail::without_axis(z, shape_of(z).rank() - (rank_y == 1 ? 1 : 2), where);
    return z;
}
no_such_option_in<matmul_options> matmul(any_argument, any_argument, ...) TG_MISTAKE;

} // namespace tapegraph
