#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace simplify_test {

namespace tg = tapegraph;
using namespace builders;
using tg::ir::constant_op;

namespace {

/// Traces y = f(x), runs the pass, verifies, and hands the trace and y's node to `look`.
template <class F, class Look>
constexpr bool simplified(const F& f, const Look& look, dtype type = dtype::f64) {
    trace t;
    const node x = input(t, "x", {3, 4}, type);
    const node y = tg::eval(f(x));
    output(t, "y", y);
    if (t.error.what != nullptr || !verify(t).ok()) return false;
    simplify(t);
    if (!verify(t).ok()) return false;
    eliminate_dead_nodes(t);
    return verify(t).ok() && look(t, t.outputs[0].node);
}

constexpr auto is_operand = [](const trace& t, int y) { return t.is(y, tg::ir::descriptor_of<tg::ir::input_op>); };
template <class Op>
constexpr auto is_still = [](const trace& t, int y) { return t.is(y, tg::ir::descriptor_of<Op>); };

// What hands its operand through disappears.
static_assert(simplified([](auto x) { return x * 1; }, is_operand));
static_assert(simplified([](auto x) { return 1 * x; }, is_operand));
static_assert(simplified([](auto x) { return x / 1; }, is_operand));
static_assert(simplified([](auto x) { return x - 0; }, is_operand));
static_assert(simplified([](auto x) { return -(-x); }, is_operand));
static_assert(simplified([](auto x) { return stop_gradient(x); }, is_operand));
static_assert(simplified([](auto x) { return tg::cast<double>(x); }, is_operand));
static_assert(simplified([](auto x) { return reshape(x, {3, 4}); }, is_operand));
static_assert(simplified([](auto x) { return reshape(reshape(x, {12}), {3, 4}); }, is_operand));
static_assert(simplified([](auto x) { return broadcast_to(x, {3, 4}); }, is_operand));
static_assert(simplified([](auto x) { return ((x * 1) / 1 - 0) * 1; }, is_operand));

// What looks like it and is not: bits or shapes would change.
static_assert(simplified([](auto x) { return x + 0; }, is_still<tg::add_op>));        // -0 + 0 is 0
static_assert(simplified([](auto x) { return 0 + x; }, is_still<tg::add_op>));
static_assert(simplified([](auto x) { return x - (-0.0); }, is_still<tg::subtract_op>)); // the same in disguise
static_assert(simplified([](auto x) { return x * 0; }, is_still<tg::multiply_op>));   // NaN and infinity
static_assert(simplified([](auto x) { return 0 / x; }, is_still<tg::divide_op>));
static_assert(simplified([](auto x) { return x - x; }, is_still<tg::subtract_op>));
static_assert(simplified([](auto x) { return x / x; }, is_still<tg::divide_op>));
static_assert(simplified([](auto x) { return 1 / x; }, is_still<tg::divide_op>));
static_assert(simplified([](auto x) { return 0 - x; }, is_still<tg::subtract_op>));   // 0 - 0 is 0, -0 is not
static_assert(simplified([](auto x) { return tg::cast<float>(x); }, is_still<tg::cast_op<float>>));
static_assert(simplified([](auto x) { return reshape(x, {4, 3}); }, is_still<tg::reshape_op>));
static_assert(simplified([](auto x) { return broadcast_to(x, {2, 3, 4}); }, is_still<tg::broadcast_op>));
static_assert(simplified([](auto x) { return (x + 1) + 2; },                          // no reassociation
                         [](const trace& t, int) { return count<tg::add_op>(t) == 2; }));

// A transposed operand is read transposed.
static_assert(simplified([](auto x) { return matmul(x, transpose(x)); }, [](trace& t, int y) {
    return count<tg::transpose_op>(t) == 0 && t.words_of(y)[0] == 0 && t.words_of(y)[1] == 1 && t.dims(y) == shape{3, 3};
}));
static_assert(simplified([](auto x) { return matmul(transpose(x), x); }, [](trace& t, int y) {
    return count<tg::transpose_op>(t) == 0 && t.words_of(y)[0] == 1 && t.words_of(y)[1] == 0 && t.dims(y) == shape{4, 4};
}));
static_assert(simplified([](auto x) { return matmul(transpose(x), transpose(x), {.transpose_a = true}); },
                         [](trace& t, int y) { return t.words_of(y)[0] == 0 && t.words_of(y)[1] == 1; }));

// Not where a kernel for a matrix and a vector would sum in another order: one row, one column, or perhaps one.
// Of matrices in a batch, too, if the batch stays where it is.
constexpr int transposes_of_a_batch(std::initializer_list<int> order) {
    trace t;
    const node x = input(t, "x", {3, 3, 3});
    output(t, "y", matmul(x, transpose(x, order)));
    simplify(t);
    eliminate_dead_nodes(t);
    return count<tg::transpose_op>(t);
}
static_assert(transposes_of_a_batch({0, 2, 1}) == 0);
static_assert(transposes_of_a_batch({1, 0, 2}) == 1);
static_assert(transposes_of_a_batch({1, 2, 0}) == 1);
static_assert(simplified([](auto x) { return matmul(transpose(x), tg::slice(x, {tg::all, {0, 1}})); },
                         [](trace& t, int) { return count<tg::transpose_op>(t) == 1; }));
static_assert(simplified([](auto x) { return matmul(tg::slice(x, {{0, 1}}), transpose(x)); },
                         [](trace& t, int) { return count<tg::transpose_op>(t) == 1; }));
constexpr bool keeps_transpose_of_a_batch() {
    trace t;
    const node x = batch_input(t, "x", {3}), w = input(t, "w", {2, 3});
    output(t, "y", matmul(x, transpose(w)));
    simplify(t);
    eliminate_dead_nodes(t);
    return count<tg::transpose_op>(t) == 1;
}
static_assert(keeps_transpose_of_a_batch());

/// y = f(c) with constants only becomes one constant of these bits.
template <class F>
constexpr bool folds_to(const F& f, dtype type, double expected) {
    trace t;
    const auto constant = [&](double v) { return node(&t, t.constant(v, type)); };
    const node y = tg::eval(f(constant));
    output(t, "y", y);
    simplify(t);
    const int at = t.outputs[0].node;
    return verify(t).ok() && t.is(at, tg::ir::descriptor_of<constant_op>) &&
           t.words_of(at)[0] == std::bit_cast<std::int64_t>(expected);
}
template <class F>
constexpr bool stays(const F& f) {
    return !folds_to(f, dtype::f64, 0) && !folds_to(f, dtype::f64, -0.0);
}

static_assert(folds_to([](auto c) { return c(0.1) + c(0.2); }, dtype::f64, 0.1 + 0.2));
static_assert(folds_to([](auto c) { return c(0.1) - c(0.3); }, dtype::f64, 0.1 - 0.3));
static_assert(folds_to([](auto c) { return c(0.1) * c(0.7); }, dtype::f64, 0.1 * 0.7));
static_assert(folds_to([](auto c) { return c(1) / c(3); }, dtype::f64, 1.0 / 3.0));
static_assert(folds_to([](auto c) { return -c(0); }, dtype::f64, -0.0));
static_assert(folds_to([](auto c) { return square(c(0.1)); }, dtype::f64, 0.1 * 0.1));
static_assert(folds_to([](auto c) { return (c(1) + c(2)) * c(3); }, dtype::f64, 9));
static_assert(stays([](auto c) { return exp(c(0)) * 0; }));       // exp is not exactly rounded
static_assert(stays([](auto c) { return c(1) / c(0) * c(0); }));

constexpr bool square_root() {
    return folds_to([](auto c) { return sqrt(c(2)); }, dtype::f64, 1.4142135623730951);
}

} // namespace

TEST_CASE("simplification at run time") {
    CHECK(simplified([](auto x) { return ((x * 1) / 1 - 0) * 1; }, is_operand));
    CHECK(simplified([](auto x) { return x + 0; }, is_still<tg::add_op>));
    CHECK(simplified([](auto x) { return x * 0; }, is_still<tg::multiply_op>));
    CHECK(square_root());
}

TEST_CASE("folding in float gives the bits of float arithmetic") {
    for (int i = 1; i < 200; ++i) {
        const float a = static_cast<float>(i) * 0.37f, b = 11.f / static_cast<float>(i);
        const auto check = [&](const auto& f, float expected) {
            trace t;
            const auto constant = [&](double v) { return node(&t, t.constant(v, dtype::f32)); };
            output(t, "y", tg::eval(f(constant(a), constant(b))));
            simplify(t);
            const int at = t.outputs[0].node;
            REQUIRE(t.is(at, tg::ir::descriptor_of<constant_op>));
            CHECK(static_cast<float>(std::bit_cast<double>(t.words_of(at)[0])) == expected);
        };
        check([](auto x, auto y) { return x + y; }, a + b);
        check([](auto x, auto y) { return x - y; }, a - b);
        check([](auto x, auto y) { return x * y; }, a * b);
        check([](auto x, auto y) { return x / y; }, a / b);
        check([](auto x, auto) { return sqrt(x); }, std::sqrt(a));
        check([](auto x, auto y) { return (x * y + x) / y; }, [&] {
            volatile float product = a * b; // no contraction
            volatile float total = product + a;
            return total / b;
        }());
    }
}

} // namespace simplify_test
