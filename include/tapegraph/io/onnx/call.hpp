#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/io/onnx/extents.hpp>

/// The export of elementwise operations: their operands in a common order of axes, and their names in
/// ONNX.

namespace tapegraph::onnx {

/// What a rule for an operation sees: its operands as values of the graph, and what it may write.
template <class G>
class basic_call {
public:
    basic_call(G& g, int node, std::vector<std::string> operands)
        : g_(g), node_(node), operands_(std::move(operands)) {}

    /// The number of operands.
    int count() const { return static_cast<int>(operands_.size()); }
    /// The name of an operand's value in the file, operands counted from 0.
    const std::string& operand(int k) const { return operands_[static_cast<std::size_t>(k)]; }
    /// The names of all operands' values in the file.
    const std::vector<std::string>& operands() const { return operands_; }
    /// The element type of an operand, and of the result.
    dtype type(int k) const { return g_.at(g_.t.argument(node_, k)).type; }
    /// The element type of the result.
    dtype result_type() const { return g_.at(node_).type; }
    /// Extents of an operand as it was traced; negative ones are symbols. The operands of elementwise
    /// operations may have another order of axes in the file.
    std::vector<std::int64_t> dims(int k) const { return g_.dims(g_.t.argument(node_, k)); }
    /// Operand k's number, if it is a constant.
    bool number(int k, double& value) const { return g_.number(g_.t.argument(node_, k), value); }

    /// The version of ONNX's operators in the file.
    std::int64_t opset() const { return g_.opset; }
    /// Writes an ONNX operation (of opset()) and gives the name of its first output.
    std::string emit(std::string_view op, std::vector<std::string> inputs, const attributes& settings = {},
                     int outputs = 1) {
        return g_.emit(op, std::move(inputs), settings, outputs);
    }
    /// A number of the first operand's element type.
    std::string constant(double value) { return g_.constant(value, type(0)); }
    std::string constant(double value, dtype type) { return g_.constant(value, type); }
    /// A list of int64, as ONNX's operands for axes and shapes are.
    std::string integers(const std::vector<std::int64_t>& values) { return g_.integers(values); }
    /// Says that this one cannot be written, and why; what the rule returns is not looked at then.
    std::string refuse(const std::string& why) {
        g_.refuse(node_, why);
        return "refused";
    }

    /// The graph that is written.
    G& whole() { return g_; }
    /// The node of the trace that the rule writes.
    int node() const { return node_; }

private:
    G& g_;
    int node_;
    std::vector<std::string> operands_;
};

using call = basic_call<graph>;

/// How an operation of your own is written; specialise it beside the operation:
///
///     template <>
///     struct tg::onnx::rule<mine::softsign_op> {
///         static std::string write(tg::onnx::call& c, const tg::no_attributes&) { return c.emit("Softsign", {c.operand(0)}); }
///     };
///
/// `write` returns the name of the result, whose axes have the order of the operands'. For an operation
/// that is not elementwise that is the order in which they were traced.
template <class Op>
struct rule {};

namespace detail {

/// The name of operand `node` as it broadcasts to results of rank `wide` in `axes`; empty if it would
/// have to be transposed for that.
template <class G>
std::string beside(G& g, int node, int wide, const order& axes) {
    const int rank = g.rank(node);
    if (rank == 0) return g.plain(node); // fits whatever the order
    if (axes.empty() || rank == wide) return g.in_order(node, axes);
    if (strided_view v; g.backed(node, v)) {
        strided_view moved = v.widened(wide).permuted(axes);
        std::vector<std::int64_t> dims = moved.dims;
        while (dims.size() > 1 && dims.front() == 1) dims.erase(dims.begin());
        return g.initializer(moved, dims);
    }
    std::vector<std::int64_t> missing;
    int last = -1;
    for (int i = 0; i < wide; ++i) {
        const int own = axes[static_cast<std::size_t>(i)] - (wide - rank);
        if (own < 0)
            missing.push_back(i);
        else if (own < last)
            return {};
        else
            last = own;
    }
    return g.unsqueeze(g.plain(node), missing);
}

/// Writes an elementwise node with `f(call)`, in the order of axes of its operands.
template <class G, class F>
void write_elementwise(G& g, int node, const F& f) {
    const int wide = g.rank(node), count = g.at(node).arguments;
    placed result;
    int flattened = -1, ranked = 0;
    for (int k = 0; k < count; ++k) {
        const int from = g.t.argument(node, k);
        strided_view v;
        if (g.rank(from) > 0) ++ranked;
        if (g.rank(from) != wide || g.backed(from, v)) continue;
        const placed& at = g.get(from);
        if (!at.flat.empty()) flattened = k;
        if (result.axes.empty()) result.axes = at.axes;
    }
    std::vector<std::string> operands;
    if (flattened >= 0 && ranked == 1) { // a flattened value keeps its order
        result = g.get(g.t.argument(node, flattened));
        for (int k = 0; k < count; ++k)
            operands.push_back(k == flattened ? result.name : g.plain(g.t.argument(node, k)));
    } else {
        for (int k = 0; k < count; ++k) {
            operands.push_back(beside(g, g.t.argument(node, k), wide, result.axes));
            if (!operands.back().empty()) continue;
            result.axes.clear();
            operands.clear();
            k = -1;
        }
    }
    basic_call<G> c(g, node, std::move(operands));
    result.name = f(c);
    g.define(node, std::move(result));
}

template <class C>
struct elementwise_rule {
    std::string_view name, onnx; ///< where `write` is null, the operation has one of the same operands
    std::string (*write)(C&) = nullptr;
};

template <class C>
std::string times(C& c, const std::string& a, const std::string& b) {
    return c.emit("Mul", {a, b});
}
/// x Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2
template <class C>
std::string gelu(C& c) {
    const std::string& x = c.operand(0);
    const std::string e = c.emit("Erf", {times(c, x, c.constant(0.70710678118654752440))});
    return times(c, times(c, x, c.constant(0.5)), c.emit("Add", {e, c.constant(1)}));
}
/// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
template <class C>
std::string gelu_tanh(C& c) {
    const std::string& x = c.operand(0);
    const std::string cube = times(c, times(c, x, x), x);
    const std::string inner = c.emit("Add", {x, times(c, cube, c.constant(0.044715))});
    const std::string t = c.emit("Tanh", {times(c, inner, c.constant(0.79788456080286535588))});
    return times(c, times(c, x, c.constant(0.5)), c.emit("Add", {t, c.constant(1)}));
}
template <class C>
std::string truncated(C& c, const std::string& x) {
    return times(c, c.emit("Sign", {x}), c.emit("Floor", {c.emit("Abs", {x})}));
}
/// With the sign of the divisor.
template <class C>
std::string remainder(C& c) {
    const std::string &x = c.operand(0), &y = c.operand(1);
    if (!is_floating(c.type(0))) return c.emit("Mod", {x, y});
    const std::string r = c.emit("Mod", {x, y}, attributes().set("fmod", 1)), zero = c.constant(0);
    const std::string below = c.emit("Xor", {c.emit("Less", {r, zero}), c.emit("Less", {y, zero})});
    const std::string odd = c.emit("And", {c.emit("Not", {c.emit("Equal", {r, zero})}), below});
    return c.emit("Where", {odd, c.emit("Add", {r, y}), r});
}
template <class C>
std::string floor_divide(C& c) {
    const std::string &x = c.operand(0), &y = c.operand(1);
    if (is_floating(c.type(0))) return c.emit("Floor", {c.emit("Div", {x, y})});
    return c.emit("Div", {c.emit("Sub", {x, c.emit("Mod", {x, y})}), y});
}
template <class C>
std::string clip(C& c) {
    if (c.dims(1).empty() && c.dims(2).empty()) return c.emit("Clip", c.operands());
    return c.emit("Min", {c.emit("Max", {c.operand(0), c.operand(1)}), c.operand(2)});
}
template <fixed_string Op, fixed_string Or, class C>
std::string with_alpha(C& c) {
    double alpha = 0;
    if (c.number(1, alpha)) return c.emit(Op.view(), {c.operand(0)}, attributes().set("alpha", alpha));
    if (!Or.view().empty()) return c.emit(Or.view(), c.operands());
    return c.refuse("alpha is a tensor");
}
template <class C>
std::string square(C& c) {
    return times(c, c.operand(0), c.operand(0));
}
template <fixed_string Op, class C>
std::string negated(C& c) {
    return c.emit("Not", {c.emit(Op.view(), c.operands())});
}
template <int Digits, class C>
std::string logarithm(C& c) {
    return times(c, c.emit("Log", c.operands()),
                 c.constant(Digits == 2 ? 1.4426950408889634074 : 0.43429448190325182765));
}
/// x^n; what n is, the operation says itself.
template <class C>
std::string integer_power(C& c) {
    const double two = 2;
    double result = 1;
    const void* in[]{&two};
    if (c.whole().at(c.node()).op->evaluate == nullptr ||
        !c.whole().at(c.node()).op->evaluate(dtype::f64, in, &result, 1))
        return c.refuse("its exponent is not known");
    int n = 0;
    for (; result > 1; result /= 2) ++n;
    for (; result < 1; result *= 2) --n;
    return c.emit("Pow", {c.operand(0), c.constant(n)});
}
template <class C>
std::string is_finite(C& c) {
    return c.emit("Not", {c.emit("Or", {c.emit("IsInf", c.operands()), c.emit("IsNaN", c.operands())})});
}
template <class C>
std::string rectangular(C& c) {
    return c.emit("Sqrt",
                  {c.emit("Add", {times(c, c.operand(0), c.operand(0)), times(c, c.operand(1), c.operand(1))})});
}
template <class C>
std::string to_type(C& c) {
    return c.whole().cast(c.operand(0), c.result_type());
}
template <class C>
std::string filled_like(C& c) {
    return c.emit("Expand", {c.operand(1), c.emit("Shape", {c.operand(0)})});
}
template <class C>
std::string indicator(C& c) {
    return c.whole().cast(c.emit("Equal", c.operands()), c.result_type());
}

template <class C>
inline constexpr elementwise_rule<C> elementwise_rules[] = {
    {"add", "Add"},
    {"subtract", "Sub"},
    {"multiply", "Mul"},
    {"divide", "Div"},
    {"negate", "Neg"},
    {"abs", "Abs"},
    {"sign", "Sign"},
    {"sqrt", "Sqrt"},
    {"reciprocal", "Reciprocal"},
    {"pow", "Pow"},
    {"exp", "Exp"},
    {"log", "Log"},
    {"sin", "Sin"},
    {"cos", "Cos"},
    {"tan", "Tan"},
    {"asin", "Asin"},
    {"acos", "Acos"},
    {"atan", "Atan"},
    {"sinh", "Sinh"},
    {"cosh", "Cosh"},
    {"asinh", "Asinh"},
    {"acosh", "Acosh"},
    {"atanh", "Atanh"},
    {"relu", "Relu"},
    {"sigmoid", "Sigmoid"},
    {"tanh", "Tanh"},
    {"softplus", "Softplus"},
    {"softsign", "Softsign"},
    {"erf", "Erf"},
    {"hard_swish", "HardSwish"},
    {"floor", "Floor"},
    {"ceil", "Ceil"},
    {"round", "Round"},
    {"maximum", "Max"},
    {"minimum", "Min"},
    {"where", "Where"},
    {"less", "Less"},
    {"less_equal", "LessOrEqual"},
    {"greater", "Greater"},
    {"greater_equal", "GreaterOrEqual"},
    {"equal", "Equal"},
    {"logical_and", "And"},
    {"logical_or", "Or"},
    {"logical_xor", "Xor"},
    {"logical_not", "Not"},
    {"is_nan", "IsNaN"},
    {"is_inf", "IsInf"},
    {"not_equal", "", &negated<"Equal", C>},
    {"is_finite", "", &is_finite<C>},
    {"square", "", &square<C>},
    {"squared_difference", "",
     [](C& c) {
         const auto d = c.emit("Sub", c.operands());
         return times(c, d, d);
     }},
    {"rsqrt", "", [](C& c) { return c.emit("Reciprocal", {c.emit("Sqrt", c.operands())}); }},
    {"cbrt", "",
     [](C& c) {
         return times(c, c.emit("Sign", c.operands()),
                      c.emit("Pow", {c.emit("Abs", c.operands()), c.constant(1.0 / 3)}));
     }},
    {"integer_power", "", &integer_power<C>},
    {"exp2", "",
     [](C& c) {
         return c.emit("Pow", {c.constant(2), c.operand(0)});
     }},
    {"log2", "", &logarithm<2, C>},
    {"log10", "", &logarithm<10, C>},
    {"expm1", "",
     [](C& c) {
         return c.emit("Sub", {c.emit("Exp", c.operands()), c.constant(1)});
     }},
    {"log1p", "",
     [](C& c) {
         return c.emit("Log", {c.emit("Add", {c.operand(0), c.constant(1)})});
     }},
    {"erfc", "",
     [](C& c) {
         return c.emit("Sub", {c.constant(1), c.emit("Erf", c.operands())});
     }},
    {"hypot", "", &rectangular<C>},
    {"lerp", "",
     [](C& c) {
         return c.emit("Add", {c.operand(0), times(c, c.operand(2), c.emit("Sub", {c.operand(1), c.operand(0)}))});
     }},
    {"trunc", "", [](C& c) { return truncated(c, c.operand(0)); }},
    {"floor_divide", "", &floor_divide<C>},
    {"remainder", "", &remainder<C>},
    {"clip", "", &clip<C>},
    {"relu6", "",
     [](C& c) {
         return c.emit("Clip", {c.operand(0), c.constant(0), c.constant(6)});
     }},
    {"leaky_relu", "", &with_alpha<"LeakyRelu", "PRelu", C>},
    {"elu", "", &with_alpha<"Elu", "", C>},
    {"gelu", "", &gelu<C>},
    {"gelu_tanh", "", &gelu_tanh<C>},
    {"swish", "", [](C& c) { return times(c, c.operand(0), c.emit("Sigmoid", c.operands())); }},
    {"mish", "", [](C& c) { return times(c, c.operand(0), c.emit("Tanh", {c.emit("Softplus", c.operands())})); }},
    {"cast", "", &to_type<C>},
    {"full_like", "", &filled_like<C>},
    {"indicator", "", &indicator<C>},
};

/// The index of the rule with that name; -1 if there is none. It is an index, because with
/// -fsanitize=undefined g++ cannot compare addresses in constant expressions.
template <class Rules>
constexpr int rule_named(const Rules& rules, std::string_view name) {
    int index = 0;
    for (const auto& each : rules) {
        if (each.name == name) return index;
        ++index;
    }
    return -1;
}

} // namespace detail
} // namespace tapegraph::onnx
