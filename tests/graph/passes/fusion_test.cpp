#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace fusion_test {

/// One trace run as it is compiled, without fusion, and without any pass: the same bits.

namespace tg = tapegraph;
using namespace builders;

namespace {

template <class Builder>
struct unfused {
    static constexpr void build(trace& t, tg::ir::schedule& s) {
        Builder::build(t);
        simplify(t);
        eliminate_common_subexpressions(t);
        eliminate_dead_nodes(t);
        snapshot_variables(t);
        s = make_schedule(t, false);
    }
};
template <class Builder>
struct untouched {
    static constexpr void build(trace& t, tg::ir::schedule& s) {
        Builder::build(t);
        s = make_schedule(t, false);
    }
};

// A training step in small: forward, loss, gradient, momentum.
struct step {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {7}), labels = batch_input(t, "labels", {3});
        const node w = variable(t, "w", {7, 5}), b = variable(t, "b", {5}), u = variable(t, "u", {5, 3}),
                   v = variable(t, "velocity", {7, 5});
        const node h = relu(matmul(x, w) + b);
        const node centered = (h - mean(h, 0)) * rsqrt(variance(h, 0) + 0.01);
        const node y = log_softmax(matmul(centered, u));
        const node loss = mean(-sum(y * labels, -1));
        output(t, "loss", loss);
        output(t, "again", exp(y) * 0.25 + tg::where(y > -1, y, y * y));
        const auto g = tg::ir::gradient(t, loss.id(), {w.id(), b.id(), u.id()});
        const node next = v * 0.9 - node(&t, g[0]) * 0.1;
        assign(t, v, next);
        assign(t, w, w + next);
        assign(t, b, b - node(&t, g[1]) * 0.1);
        assign(t, u, u - node(&t, g[2]) * 0.1);
    }
};

std::vector<std::vector<double>> trained(const tg::ir::program_view& view, std::int64_t batch) {
    runner p(view);
    for (std::size_t v = 0; v < 3; ++v)
        p.variables[v] = values(static_cast<std::int64_t>(p.variables[v].size()), static_cast<std::uint32_t>(v) + 1);
    for (int v = 0; v < 4; ++v) p.program.set_variable(v, p.variables[static_cast<std::size_t>(v)].data());
    const std::vector<double> x = values(batch * 7, 10), labels = values(batch * 3, 11);
    p.feed(0, x, {batch, 7});
    p.feed(1, labels, {batch, 3});
    for (int i = 0; i < 5; ++i) p.run();
    std::vector<std::vector<double>> result = p.variables;
    result.push_back(p.output(0));
    result.push_back(p.output(1));
    return result;
}

bool same_bits(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(double)) != 0)
            return false;
    return a.size() == b.size();
}

} // namespace

TEST_CASE("passes and fusion keep every bit") {
    static_assert(first_problem<step>() == nullptr);
    const tg::ir::program_view& fused = tg::ir::compile_program<step>();
    const tg::ir::program_view& one_by_one = tg::ir::lowered<tg::ir::compile_stage<unfused<step>>>::view;
    const tg::ir::program_view& raw = tg::ir::lowered<tg::ir::compile_stage<untouched<step>>>::view;
    CHECK(fused.steps.size() < one_by_one.steps.size());
    CHECK(one_by_one.steps.size() < raw.steps.size());
    for (const std::int64_t batch : {1, 2, 13, 600, 5000}) {
        const auto expected = trained(fused, batch);
        CHECK(same_bits(expected, trained(one_by_one, batch)));
        CHECK(same_bits(expected, trained(raw, batch)));
    }
}

} // namespace fusion_test
