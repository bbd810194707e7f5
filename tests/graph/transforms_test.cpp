#include <support/builders.hpp>

#include <tapegraph/graph/transforms.hpp>

#include <doctest/doctest.h>

namespace transforms_test {

/// What transforms leave in a trace, pass by pass.

namespace tg = tapegraph;
using namespace builders;

namespace {

constexpr auto halved = tg::custom_gradient([](auto x) { return tg::exp(x); }, [](auto dy, auto y, auto) { return 0.5 * dy * y; });

struct marked {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {4}), w = variable(t, "w", {4, 4});
        const auto layer = [w](auto h) {
            const auto inside = tg::checkpoint([](auto u) { return tanh(tg::print<"u">(u)) * 2; });
            return tg::eval(inside(matmul(h, w)) + 1);
        };
        const node h = tg::checkpoint(layer)(halved(x));
        const node same = tg::print<"h">(h);
        tg::print<"h">(same);
        tg::check<"small">(same < 4);
        const node loss = sum(square(halved(h)));
        output(t, "loss", loss);
        tg::list<int> sources;
        sources.push_back(w.id());
        sources.push_back(x.id());
        for (const int i : tg::ir::gradient(t, loss.id(), sources)) t.outputs.push_back({"d", i});
    }
};
static_assert(first_problem<marked>() == nullptr);

constexpr int effects(const trace& t) {
    int n = 0;
    for (const tg::ir::entry& e : t.nodes) n += e.op->kind == tg::operation_kind::effect;
    return n;
}
constexpr int gates(const trace& t) {
    int n = 0;
    for (const tg::ir::entry& e : t.nodes) n += e.op->identity;
    return n;
}

} // namespace

TEST_CASE("transforms in a trace: gates go with simplification, effects and copies stay") {
    trace t;
    marked::build(t);
    CHECK(t.error.what == nullptr);
    CHECK(gates(t) > 0);
    CHECK(effects(t) == 4); // the one in the checkpoint is not copied
    CHECK(count<tg::ir::recompute_op>(t) > 0);
    CHECK(count<tg::matmul_op>(t) == 4); // forward, again, two derivatives
    simplify(t);
    eliminate_dead_nodes(t);
    CHECK(gates(t) == 0);
    CHECK(effects(t) == 4);
    const int products = count<tg::matmul_op>(t);
    eliminate_common_subexpressions(t);
    eliminate_dead_nodes(t);
    CHECK(effects(t) == 4);                     // equal ones too
    CHECK(count<tg::matmul_op>(t) == products); // the copy is not merged back
    CHECK(products == 4);
}

TEST_CASE("transforms in a trace: gates left in a schedule are views") {
    trace t;
    marked::build(t);
    const auto s = make_schedule(t, false);
    CHECK(verify(t, s).ok());
}

} // namespace transforms_test
