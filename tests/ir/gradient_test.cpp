#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <cmath>

namespace gradient_test {

namespace tg = tapegraph;
using namespace builders;

namespace {

/// Outputs f and then df/dv for every variable v; with `Second` also d(sum of squares of df/dv0)/dv.
template <class F, bool Second = false>
struct differentiated {
    static constexpr void build(trace& t) {
        const node f = F::build(t);
        output(t, "f", f);
        tg::list<int> sources;
        for (const auto& v : t.variables) sources.push_back(v.node);
        const tg::list<int> first = tg::ir::gradient(t, f.id(), sources);
        if constexpr (Second) {
            const node g = sum(square(node(&t, first[0])));
            t.outputs[0].node = g.id();
            const tg::list<int> second = tg::ir::gradient(t, g.id(), sources);
            for (int i : second) t.outputs.push_back({"ddf", i});
        } else {
            for (int i : first) t.outputs.push_back({"df", i});
        }
    }
};

/// Every derivative against central differences of output 0.
template <class Builder>
void check() {
    static_assert(first_problem<Builder>() == nullptr);
    runner p(tg::ir::compile_program<Builder>());
    for (std::size_t v = 0; v < p.variables.size(); ++v)
        p.variables[v] = values(static_cast<std::int64_t>(p.variables[v].size()), static_cast<std::uint32_t>(v) + 5);
    for (std::size_t v = 0; v < p.variables.size(); ++v) p.program.set_variable(static_cast<int>(v), p.variables[v].data());
    p.run();
    std::vector<std::vector<double>> derivatives;
    for (std::size_t v = 0; v < p.variables.size(); ++v) derivatives.push_back(p.output(static_cast<int>(v) + 1));
    for (std::size_t v = 0; v < p.variables.size(); ++v) {
        const std::vector<double>& derivative = derivatives[v];
        REQUIRE(derivative.size() == p.variables[v].size());
        for (std::size_t i = 0; i < derivative.size(); ++i) {
            // Step 1e-5: rounding contributes about 1e-10 and the third derivative as much, times their sizes.
            constexpr double h = 1e-5;
            double& x = p.variables[v][i];
            const double at = x;
            x = at + h, p.run();
            const double above = p.scalar(0);
            x = at - h, p.run();
            const double below = p.scalar(0);
            x = at;
            CAPTURE(v);
            CAPTURE(i);
            CHECK(derivative[i] == doctest::Approx((above - below) / (2 * h)).epsilon(1e-8).scale(10));
        }
    }
}

struct two_layers {
    static constexpr node build(trace& t) {
        const node x = variable(t, "x", {5, 3}), w = variable(t, "w", {3, 4}), b = variable(t, "b", {4}),
                   u = variable(t, "u", {4, 2});
        const node h = tanh(matmul(x, w) + b);
        const node y = sigmoid(matmul(h, u)) * 2 - 1;
        return mean(square(y) + exp(-y));
    }
};

struct broadcasts { // every pattern: leading, inner and trailing axes, scalars, in one formula and across formulas
    static constexpr node build(trace& t) {
        const node a = variable(t, "a", {2, 3, 4}), b = variable(t, "b", {3, 1}), c = variable(t, "c", {4}),
                   d = variable(t, "d"), e = variable(t, "e", {2, 1, 1});
        const node y = a * b + c / (2 + square(d)) - e * a;
        return sum(y * sin(y) * d);
    }
};

struct shared_values { // a diamond, a value used by several formulas, a value that is also what is differentiated
    static constexpr node build(trace& t) {
        const node x = variable(t, "x", {6});
        const node h = exp(x * 0.5), a = h * h, b = sqrt(h) + h;
        const node s = sum(a, 0), m = mean(b);
        return s * m + s / (1 + square(m));
    }
};

struct moved_around {
    static constexpr node build(trace& t) {
        const node x = variable(t, "x", {4, 6});
        const node y = transpose(reshape(x, {6, 4})), z = tg::slice(y, {{1, 4}, {0, 6, 2}});
        const node both = concat(z, tg::slice(square(y), {{0, 3}, {1, 6, 2}}), 0);
        return sum(both * both) + sum(cumulative_sum(both, 1) * both);
    }
};

struct reductions {
    static constexpr node build(trace& t) {
        const node x = variable(t, "x", {3, 4});
        const node v = variance(x, 1), l = logsumexp(x, 0), m = max(x, 1), p = prod(x + 3, 0);
        return sum(v) + sum(l * l) + sum(square(m)) + mean(log_softmax(x)) + sum(log(p));
    }
};

struct convolved {
    static constexpr node build(trace& t) {
        const node x = variable(t, "x", {2, 6, 5, 2}), w = variable(t, "w", {3, 2, 2, 3}), b = variable(t, "b", {3});
        const node y = tanh(conv2d(x, w, {.stride = {2, 1}, .padding = tg::padding::same()}) + b);
        return sum(square(tg::max_pooling2d(y, {.pool_size = {2, 2}})));
    }
};

struct squared {
    static constexpr node build(trace& t) {
        const node x = variable(t, "x", {3, 2}), w = variable(t, "w", {2, 2});
        return sum(tanh(matmul(x, w)) * x);
    }
};

} // namespace

TEST_CASE("gradients against finite differences") {
    SUBCASE("two layers") { check<differentiated<two_layers>>(); }
    SUBCASE("broadcasts") { check<differentiated<broadcasts>>(); }
    SUBCASE("shared values") { check<differentiated<shared_values>>(); }
    SUBCASE("moved around") { check<differentiated<moved_around>>(); }
    SUBCASE("reductions") { check<differentiated<reductions>>(); }
    SUBCASE("convolved") { check<differentiated<convolved>>(); }
}

TEST_CASE("gradients of gradients") {
    SUBCASE("a matrix product") { check<differentiated<squared, true>>(); }
    SUBCASE("shared values") { check<differentiated<shared_values, true>>(); }
}

namespace {

constexpr bool independent_sources_have_none() {
    trace t;
    const node x = input(t, "x", {3}), y = input(t, "y", {3});
    const node f = sum(x * 2);
    const auto g = tg::ir::gradient(t, f.id(), {x.id(), y.id()});
    return g[0] >= 0 && g[1] == -1 && verify(t).ok();
}
constexpr bool stopped_gradients_stop() {
    trace t;
    const node x = input(t, "x", {3});
    const node f = sum(stop_gradient(x * 2)), g = sum(tg::cast<double>(tg::cast<int>(x)));
    return tg::ir::gradient(t, f.id(), {x.id()})[0] == -1 && tg::ir::gradient(t, g.id(), {x.id()})[0] == -1;
}
constexpr bool adjoints_have_their_operands_shapes() {
    trace t;
    const node x = batch_input(t, "x", {3}), w = input(t, "w", {3, 2}), b = input(t, "b", {2}), s = input(t, "s");
    const node f = mean(tanh(matmul(x, w) + b) * s);
    const auto g = tg::ir::gradient(t, f.id(), {x.id(), w.id(), b.id(), s.id()});
    return verify(t).ok() && t.same_shape(g[0], x.id()) && t.same_shape(g[1], w.id()) && t.same_shape(g[2], b.id()) &&
           t.same_shape(g[3], s.id());
}
static_assert(independent_sources_have_none());
static_assert(stopped_gradients_stop());
static_assert(adjoints_have_their_operands_shapes());

} // namespace

TEST_CASE("gradients at run time") {
    CHECK(independent_sources_have_none());
    CHECK(stopped_gradients_stop());
    CHECK(adjoints_have_their_operands_shapes());
}

} // namespace gradient_test
