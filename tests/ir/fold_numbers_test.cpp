#include <support/builders.hpp>

#include <doctest/doctest.h>

namespace fold_numbers_test {

/// Numbers with axes of extent 1 that the compiler knows.

namespace tg = tapegraph;
using namespace builders;

namespace {

constexpr node shaped(trace& t, double value, std::initializer_list<std::int64_t> extents, dtype type = dtype::f64) {
    return reshape(node(&t, t.constant(value, type)), shape(extents));
}

/// What is left: multiplications, reshapes, and the number that the output's kernel reads.
struct remains {
    int products = 0, reshapes = 0;
    double number = 0;
};
template <class Build>
constexpr remains folded(const Build& build) {
    trace t;
    build(t);
    simplify(t);
    fold_numbers(t);
    eliminate_common_subexpressions(t);
    eliminate_dead_nodes(t);
    if (!verify(t).ok()) return {-1, -1, 0};
    remains r{count<tg::multiply_op>(t), count<tg::reshape_op>(t), 0};
    for (int i = 0; i < t.nodes.size(); ++i) tg::ir::detail::constant_value(t, i, r.number);
    return r;
}
constexpr bool is(const remains& r, int products, int reshapes, double number) {
    return r.products == products && r.reshapes == reshapes && r.number == number;
}

static_assert(is(folded([](trace& t) { // as a sum's derivative has it
                     const node x = batch_input(t, "x", {3});
                     output(t, "y", x * (shaped(t, 1, {1, 1}) * 100 * 0.5));
                 }),
                 1, 0, 50));
static_assert(is(folded([](trace& t) { output(t, "y", batch_input(t, "x") * shaped(t, 7, {1})); }), 1, 0, 7));
static_assert(is(folded([](trace& t) { // rounded after each operation
                     const node x = batch_input(t, "x", {}, "batch", dtype::f32);
                     output(t, "y", x * (shaped(t, 0.1, {1}, dtype::f32) * 3));
                 }),
                 1, 0, static_cast<double>(0.1f * 3)));
// The shape comes from the number, or somebody else reads it.
static_assert(is(folded([](trace& t) { output(t, "y", input(t, "x", {3}) * shaped(t, 7, {1, 1})); }), 1, 1, 7));
static_assert(is(folded([](trace& t) { output(t, "y", shaped(t, 7, {1}) * 2); }), 1, 1, 2));
static_assert(is(folded([](trace& t) { output(t, "y", shaped(t, 7, {1}) * shaped(t, 3, {1})); }), 1, 2, 3));
static_assert(is(folded([](trace& t) {
                     const node seven = shaped(t, 7, {1});
                     output(t, "y", batch_input(t, "x") * seven);
                     output(t, "z", tg::concat({seven, seven}, 0));
                 }),
                 1, 1, 7));
// An operation whose value is not known exactly.
static_assert(is(folded([](trace& t) { output(t, "y", batch_input(t, "x") * exp(shaped(t, 7, {1}))); }), 1, 1, 7));

} // namespace

TEST_CASE("numbers with axes are folded while programs are compiled") {} // by the static_asserts above

} // namespace fold_numbers_test
