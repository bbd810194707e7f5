#pragma once

#include <tapegraph/io/onnx_import/operands.hpp>
#include <tapegraph/ir/simplify.hpp>

#include <cmath>

/// Gated activations in files that have no operator for them: exporters, ours among them, write x sigmoid(x) and both
/// forms of gelu as the operators of their formulas. The library's operations round less, and take half of the time of
/// the sigmoid alone.

namespace tapegraph::io::onnx_import {

/// A product in a trace as a number times values.
class factors {
public:
    factors(const ir::trace& t, int of) : t_(t) { collect(of); }
    factors(const ir::trace& t, int a, int b) : t_(t) {
        collect(a);
        collect(b);
    }
    int values() const { return count_; }
    int value(int k) const { return value_[k]; }
    /// Files have numbers in float, often as the reciprocal of another one.
    bool times(double number) const { return std::abs(number_ - number) <= 1e-6 * number; }
    /// Whether this is a number times x^exponent.
    bool is_power(int x, int exponent) const {
        for (int k = 0; k < count_ && k < most; ++k)
            if (value_[k] != x) return false;
        return count_ == exponent;
    }

private:
    static constexpr int most = 3, most_nodes = 12;

    void collect(int id) {
        double number = 0;
        if (++nodes_ > most_nodes || count_ > most) {
            count_ = most + 1; // none of those that are looked for
        } else if (t_.is(id, ir::descriptor_of<multiply_op>)) {
            collect(t_.argument(id, 0));
            collect(t_.argument(id, 1));
        } else if (t_.is(id, ir::descriptor_of<divide_op>) &&
                   ir::detail::constant_value(t_, t_.argument(id, 1), number)) {
            collect(t_.argument(id, 0));
            number_ /= number;
        } else if (t_.is(id, ir::descriptor_of<pow_op>) && ir::detail::constant_value(t_, t_.argument(id, 1), number) &&
                   number == 3) {
            for (int k = 0; k < 3; ++k) collect(t_.argument(id, 0));
        } else if (ir::detail::constant_value(t_, id, number)) {
            number_ *= number;
        } else {
            if (count_ < most) value_[count_] = id;
            ++count_;
        }
    }

    const ir::trace& t_;
    double number_ = 1;
    int value_[most]{}, count_ = 0, nodes_ = 0;
};

namespace gates {

/// y of 1 + y, or -1.
inline int added_to_one(const ir::trace& t, int id) {
    double number = 0;
    for (int k = 0; k < 2 && t.is(id, ir::descriptor_of<add_op>); ++k)
        if (ir::detail::constant_value(t, t.argument(id, k), number) && number == 1) return t.argument(id, 1 - k);
    return -1;
}
/// Whether a value is x + 0.044715 x^3.
inline bool is_cubic(const ir::trace& t, int id, int x) {
    for (int k = 0; k < 2 && t.is(id, ir::descriptor_of<add_op>); ++k) {
        if (t.argument(id, k) != x) continue;
        const factors cube(t, t.argument(id, 1 - k));
        if (cube.times(0.044715) && cube.is_power(x, 3)) return true;
    }
    return false;
}
inline bool is_sigmoid_of(const ir::trace& t, int gate, int x) {
    return t.is(gate, ir::descriptor_of<sigmoid_op>) && t.argument(gate, 0) == x;
}
/// Whether a gate is 1 + erf(x / sqrt 2).
inline bool is_normal(const ir::trace& t, int gate, int x) {
    const int inner = added_to_one(t, gate);
    if (inner < 0 || !t.is(inner, ir::descriptor_of<erf_op>)) return false;
    const factors u(t, t.argument(inner, 0));
    return u.times(0.7071067811865476) && u.is_power(x, 1);
}
/// Whether a gate is 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
inline bool is_normal_by_tanh(const ir::trace& t, int gate, int x) {
    const int inner = added_to_one(t, gate);
    if (inner < 0 || !t.is(inner, ir::descriptor_of<tanh_op>)) return false;
    const factors u(t, t.argument(inner, 0));
    return u.times(0.7978845608028654) && u.values() == 1 && is_cubic(t, u.value(0), x);
}

} // namespace gates

/// x y, or the gated activation that this product completes.
inline node product(const node& x, const node& y) {
    ir::trace& t = x.owner();
    if (x.type() == dtype::f32 || x.type() == dtype::f64) {
        if (gates::is_sigmoid_of(t, y.id(), x.id())) return eval(swish(x));
        if (gates::is_sigmoid_of(t, x.id(), y.id())) return eval(swish(y));
        const factors all(t, x.id(), y.id());
        for (int k = 0; k < 2 && all.values() == 2 && all.times(0.5); ++k) {
            const node of(&t, all.value(k));
            if (gates::is_normal(t, all.value(1 - k), of.id())) return eval(gelu(of));
            if (gates::is_normal_by_tanh(t, all.value(1 - k), of.id())) return eval(gelu(of, approximate));
        }
    }
    return eval(x * y);
}

/// x sigmoid(alpha x)
inline node swished(const node& x, double alpha = 1) {
    return alpha == 1 ? node(eval(swish(x))) : node(eval(x * sigmoid(alpha * x)));
}

} // namespace tapegraph::io::onnx_import
