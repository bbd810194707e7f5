#include <operations/operation.hpp>
#include <support/storage.hpp>

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/eager/interpreter.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace sixteen_bit_sweep_test {

/// Every elementwise operation of the table and its first derivatives, on all numbers of both 16-bit types: the values that are
/// computed once in long double and rounded, at most two units in the last place away, and finite where they are.
///
/// Operations are run node by node, as eager mode runs derivatives of derivatives: that costs no instantiation per operation and
/// type, and gives the kernels' bits (tests/ops/sixteen_bit_storage_test.cpp). A new operation of the table needs no line here.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

/// Derivatives where the library's formula, evaluated in double, would cancel or overflow. Of all other operations that is the
/// reference: the table tests compare it with finite differences.
const std::map<std::string, real (*)(real)> slopes{
    {"sigmoid", [](real x) { return 1 / (1 + std::exp(-x)) / (1 + std::exp(x)); }},
    {"log_sigmoid", [](real x) { return 1 / (1 + std::exp(x)); }},
    {"softplus", [](real x) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", [](real x) { return 1 / std::cosh(x) / std::cosh(x); }},
    {"expm1", [](real x) { return std::exp(x); }},
    {"tan", [](real x) { return 1 / std::cos(x) / std::cos(x); }},
    {"softsign", [](real x) { return 1 / (1 + std::abs(x)) / (1 + std::abs(x)); }},
    {"gelu",
     [](real x) {
         return std::erfc(-x * std::sqrt(real(0.5))) / 2 + x * std::exp(-x * x / 2) * 0.398942280401432677940L;
     }},
    {"gelu_tanh",
     [](real x) {
         const real u = 1.59576912160573071176L * (x + 0.044715L * x * x * x), s = 1 / (1 + std::exp(-u));
         return s + x * s / (1 + std::exp(u)) * 1.59576912160573071176L * (1 + 0.134145L * x * x);
     }},
    {"swish", [](real x) { return (1 + x / (1 + std::exp(x))) / (1 + std::exp(-x)); }},
    {"mish",
     [](real x) {
         const real e = std::exp(x), n = e * (e + 2);
         return x > 100 ? 1 : n / (n + 2) + x * 4 * e * (e + 1) / (n + 2) / (n + 2);
     }},
};

/// Values where the table's reference cancels: its 1 + tanh is good for 19 digits, bfloat16 has numbers of 38 zeros.
const std::map<std::string, real (*)(real)> values{
    {"gelu_tanh", [](real x) { return x / (1 + std::exp(-1.59576912160573071176L * (x + 0.044715L * x * x * x))); }},
};

/// Whether a case is compared; the exceptions say why.
template <tg::storage_type T>
bool compared(const std::string& name, const real* x, std::size_t count, real want) {
    // docs/accuracy.md: beyond, the argument's reduction loses digits in float.
    if (name == "sin" || name == "cos" || name == "tan") return std::abs(x[0]) <= 524288;
    // The floor of -0 is -1 beside an infinite divisor, as in Python.
    if (name == "floor_divide") return !std::isinf(x[1]);
    // Labels are in [0, 1]; beyond, terms as large as they are cancel.
    if (name == "sigmoid_cross_entropy_with_logits" && (x[1] < 0 || x[1] > 1)) return false;
    // Made of a sum, a clip and a quotient: the sum of 3 and the number below 3 rounds to the kink.
    if (name == "hard_sigmoid")
        return std::abs(x[0]) >= 3 ||
               std::abs(x[0] + 3) < 6 - 6 * static_cast<float>(std::numeric_limits<T>::epsilon());
    // bfloat16 has float's range, and at its ends float's steps leave it, for float itself as well. Half is compared everywhere.
    if constexpr (std::is_same_v<T, tg::bfloat16>) {
        // docs/accuracy.md: beyond, errors of float are below 1e-11, and below 5e-8 in the slope, but not small beside the value.
        if (name == "gelu" && x[0] < -6) return false;
        // Their gates are 0 where the exponential of their argument is infinite.
        if ((name == "gelu_tanh" || name == "swish") && std::abs(want) < 0x1p-120L) return false;
        if (std::abs(want) > 0x1p120L) return false;
        for (std::size_t k = 0; k < count; ++k)
            if (std::abs(x[k]) > 0x1p124L || (x[k] != 0 && std::abs(x[k]) < 0x1p-126L)) return false;
    }
    return true;
}

template <tg::storage_type T>
real unit_at(real x) {
    using limits = std::numeric_limits<T>;
    const int exponent = x == 0 ? -10000 : std::ilogb(x);
    const int least = std::ilogb(static_cast<float>(limits::min()));
    return std::ldexp(real(1), std::max(exponent, least) - limits::digits + 1);
}

struct finding {
    std::int64_t wrong = 0;
    real worst = 0;
    std::string first;
};

template <tg::storage_type T>
void compare(finding& f, const std::vector<std::vector<T>>& x, std::size_t i, T got, real want) {
    if (!std::isfinite(want)) return; // the table tests compare these in float
    const real largest = static_cast<float>(std::numeric_limits<T>::max());
    const real unit = unit_at<T>(want);
    real value = static_cast<float>(got);
    if (std::isinf(value))
        value = std::copysign(largest + unit_at<T>(largest), value); // what follows the largest number
    if (std::abs(want) >= largest + unit_at<T>(largest) / 2) want = std::copysign(largest + unit_at<T>(largest), want);
    real error = std::abs(value - want) / unit;
    if (std::is_same_v<T, tg::bfloat16> && std::abs(value - want) < 0x1p-126L)
        error = 0; // float's smallest normal number
    if (!std::isnan(value) && error > f.worst) f.worst = error;
    if (error <= 2) return;
    if (f.wrong++ != 0 && f.wrong > 3) return;
    const auto text = [](double number) {
        char buffer[32];
        std::snprintf(buffer, sizeof buffer, "%.9g", number);
        return std::string(buffer);
    };
    for (const auto& operand : x) f.first += text(static_cast<float>(operand[i])) + ", ";
    f.first += "gives " + text(static_cast<double>(value)) + " for " + text(static_cast<double>(want)) + "; ";
}

template <tg::storage_type T>
std::vector<std::vector<T>> operands_of(std::size_t count) {
    std::vector<std::vector<T>> x(count);
    if (count == 1) {
        for (int bits = 0; bits < 65536; ++bits) {
            const T each = T::from_bits(static_cast<std::uint16_t>(bits));
            if (!is_nan(each)) x[0].push_back(each);
        }
        return x;
    }
    using limits = std::numeric_limits<T>;
    std::vector<T> some{T(0),
                        T(-0.0f),
                        limits::denorm_min(),
                        limits::min(),
                        limits::max(),
                        limits::lowest(),
                        limits::infinity(),
                        T(-INFINITY),
                        limits::epsilon()};
    const int step = count == 2 ? 331 : 3011;
    for (int bits = 1; bits < 65536; bits += step) some.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
    for (float each = 0.125f; each < 64; each *= count == 2 ? 1.3f : 3)
        some.push_back(T(each)), some.push_back(T(-each));
    std::erase_if(some, [](T each) { return is_nan(each); });
    std::size_t total = 1;
    for (std::size_t k = 0; k < count; ++k) total *= some.size();
    for (std::size_t i = 0; i < total; ++i) {
        std::size_t rest = i;
        for (auto& operand : x) {
            operand.push_back(some[rest % some.size()]);
            rest /= some.size();
        }
    }
    return x;
}

template <class T>
tg::any_tensor tensor_of(const std::vector<T>& x) {
    tg::any_tensor t(tg::dtype_of<T>, tg::shape{static_cast<std::int64_t>(x.size())});
    std::memcpy(t.write(), x.data(), x.size() * sizeof(T));
    return t;
}

/// The value of an operation and its derivatives by its operands, computed in T.
template <class T>
std::vector<std::vector<T>> run(const operation& op, const attributes& with, const std::vector<std::vector<T>>& x,
                                int& nodes) {
    tg::detail::node_interpreter run;
    std::vector<int> ids;
    std::vector<tg::graph_node> handles;
    for (const auto& operand : x) ids.push_back(run.input(tensor_of(operand)));
    for (const int id : ids) handles.emplace_back(&run.t, id);
    const int before = run.t.nodes.size(), last = op.graph(handles.data(), with).id();
    nodes = 0;
    for (int i = before; i <= last; ++i) nodes += run.t.nodes[i].op->kind != tg::operation_kind::leaf;
    const auto values = [&](int id) {
        const tg::any_tensor& t = run.value(id);
        std::vector<T> result(x[0].size());
        if (t.type() == tg::dtype_of<T> && t.rank() > 0)
            std::memcpy(result.data(), t.read(), result.size() * sizeof(T));
        if (t.type() == tg::dtype_of<T> && t.rank() == 0)
            std::fill(result.begin(), result.end(), *static_cast<const T*>(t.read()));
        return result;
    };
    std::vector<std::vector<T>> result{values(last)};
    if (!tg::ir::detail::is_floating(run.t.nodes[last].type)) return {};
    result.resize(x.size() + 1);
    const int one = run.input(tensor_of(std::vector<T>(x[0].size(), T(1))));
    const int value = run.input(run.value(last));
    std::vector<int> sums(x.size(), -1);
    for (const tg::ir::contribution& c : tg::ir::differentiate_group(
             run.t, last, value, one, [&](int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); })) {
        const auto k = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), c.leaf) - ids.begin());
        sums[k] = tg::ir::detail::accumulated(run.t, sums[k], c.adjoint);
    }
    for (std::size_t k = 0; k < x.size(); ++k)
        if (sums[k] >= 0) result[k + 1] = values(sums[k]);
    return result;
}

template <tg::storage_type T>
int sweep(const operation& op) {
    if (op.weight == 0 || !op.formula || !op.reference) return 0; // results of other types
    for (const tg::dtype type : op.types)
        if (type != tg::dtype::f64) return 0;
    attributes with;
    if (op.draw) with.real = {0.25};
    const auto x = operands_of<T>(op.types.size());
    int nodes = 0;
    const auto got = run(op, with, x, nodes);
    const bool composite = nodes > 1 && op.name != "log_sigmoid" && op.name != "selu" && op.name != "hard_sigmoid";
    if (got.empty() || composite) return 0;
    std::vector<std::vector<double>> wide(x.size());
    std::vector<array> plain_operands;
    for (std::size_t k = 0; k < x.size(); ++k) {
        for (const T each : x[k]) wide[k].push_back(static_cast<float>(each));
        plain_operands.emplace_back(extents{static_cast<std::int64_t>(x[k].size())},
                                    std::vector<real>(wide[k].begin(), wide[k].end()));
    }
    const array value = op.reference(plain_operands, with);
    const auto slope = run(op, with, wide, nodes);
    for (std::size_t k = 0; k < got.size(); ++k) {
        if (got[k].empty()) continue;
        finding f;
        const auto& list = k == 0 ? values : slopes;
        const auto own = list.find(op.name);
        for (std::size_t i = 0; i < x[0].size(); ++i) {
            real at[3]{}, want = value[static_cast<std::int64_t>(i)];
            for (std::size_t j = 0; j < x.size(); ++j) at[j] = wide[j][i];
            if (k > 0 && !std::isfinite(want)) continue; // outside of the domain, and at poles
            if (own != list.end())
                want = own->second(at[0]);
            else if (k > 0)
                want = slope[k][i];
            if (compared<T>(op.name, at, x.size(), want)) compare(f, x, i, got[k][i], want);
        }
        CHECK_MESSAGE(f.wrong == 0, op.name << (k == 0 ? "" : ", derivative " + std::to_string(k)) << " in "
                                            << std::string(tg::name_of(tg::dtype_of<T>)) << ": " << f.wrong << " of "
                                            << x[0].size() << " are off, by " << static_cast<double>(f.worst)
                                            << " units at most: " << f.first);
    }
    return 1;
}

operation find_operation(const std::string& name) {
    for (const operation& op : activation_operations())
        if (op.name == name) return op;
    FAIL("no operation " << name);
    return {};
}

} // namespace

TEST_CASE_TEMPLATE("16-bit elements: every operation and its derivative on every number", T, tg::half, tg::bfloat16) {
    int swept = 0;
    for (const auto& list : {arithmetic_operations(), function_operations(), elementwise_operations(),
                             activation_operations(), selection_operations()})
        for (const operation& op : list) swept += sweep<T>(op);
    CHECK(swept > 70); // of the table as it is
}

TEST_CASE("16-bit elements: a fused kernel gives the sweep's derivative") {
    // Beyond 5.5 half has no square of e^x: this was NaN.
    auto x = tg::tensor<tg::half>::uninitialized({31744});
    for (std::int64_t i = 0; i < x.size(); ++i)
        x.mutable_data()[i] = tg::half::from_bits(static_cast<std::uint16_t>(i));
    tg::gradient_tape tape;
    tape.watch(x);
    const tg::tensor<tg::half> y = mish(x), slope(tape.gradient(y, x));
    const auto found = find_operation("mish");
    std::vector<std::vector<tg::half>> operand(1, std::vector<tg::half>(x.data(), x.data() + x.size()));
    int nodes = 0;
    const auto swept = run(found, {}, operand, nodes)[1];
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < x.size(); ++i)
        different += slope.data()[i].bits != swept[static_cast<std::size_t>(i)].bits;
    CHECK(different == 0);
}

} // namespace sixteen_bit_sweep_test
