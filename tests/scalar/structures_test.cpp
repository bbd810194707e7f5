#include <tapegraph/number_program.hpp>
#include <tapegraph/real.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

/// Derivatives of functions of structures, with those of the same functions of one vector.

namespace structures_test {

namespace tg = tapegraph;
using vector = std::vector<double>;

template <class N>
struct body {
    N mass;
    std::array<N, 2> position;
    int steps = 2;
    double drag = 0.25; // a constant: it does not depend on N
};
template <class N>
struct scene {
    std::vector<body<N>> bodies;
    N gravity;
    std::vector<N> weights;
    std::string name = "scene";
};
template <class N>
struct forces {
    N total;
    std::vector<N> each;
    const char* unit = "N";
};

template <class N>
N energy(const scene<N>& s) {
    using std::sin, std::sqrt;
    N sum = 0;
    for (const body<N>& b : s.bodies) {
        N x = b.position[0];
        for (int i = 0; i < b.steps; ++i) x = x - b.drag * sin(x * s.gravity);
        sum += b.mass * s.gravity * x * b.position[1];
        if (x > 0) sum += sqrt(x);
    }
    for (std::size_t i = 0; i < s.weights.size(); ++i) sum = sum * s.weights[i] + b_term(s, i);
    return sum;
}
template <class N>
N b_term(const scene<N>& s, std::size_t i) {
    return s.weights[i] * s.weights[i] * s.bodies[0].mass;
}
const auto structured = [](const auto& s) { return energy(s); };

scene<double> example() {
    return {{{1.5, {0.3, 2}, 2, 0.25}, {0.5, {-0.4, 1}, 3, 0.5}, {2, {0.9, -1}, 1, 0.125}}, 9.81, {0.7, 1.1}, "three"};
}
vector flat(const scene<double>& s) {
    vector all;
    for (const auto& b : s.bodies) all.insert(all.end(), {b.mass, b.position[0], b.position[1]});
    all.push_back(s.gravity);
    all.insert(all.end(), s.weights.begin(), s.weights.end());
    return all;
}
template <class X>
auto scene_of(const X& x) {
    using N = std::remove_cvref_t<decltype(x[0])>;
    const scene<double> like = example();
    scene<N> s;
    std::size_t at = 0;
    for (const auto& b : like.bodies) {
        s.bodies.push_back({x[at], {x[at + 1], x[at + 2]}, b.steps, b.drag});
        at += 3;
    }
    s.gravity = x[at++];
    s.weights = {x[at], x[at + 1]};
    return s;
}
const auto flattened = [](const auto& x) { return energy(scene_of(x)); };
const auto forces_of = [](const auto& s) {
    using N = std::remove_cvref_t<decltype(s.gravity)>;
    return forces<N>{s.gravity * s.bodies[1].mass, {s.weights[0] * s.weights[1], energy(s)}};
};

// The same operations in the same order: the same bits.
TEST_CASE("gradient, value_and_gradient, vjp: structures come back, with their constants") {
    const scene<double> at = example();
    const vector x = flat(at), expected = tg::gradient(flattened)(x);
    const scene<double> slopes = tg::gradient(structured)(at);
    CHECK(flat(slopes) == expected);
    CHECK(slopes.bodies[1].steps == 3);
    CHECK(slopes.bodies[2].drag == 0.125);
    CHECK(slopes.name == "three");
    const auto both = tg::value_and_gradient(structured)(at);
    CHECK(both.value == energy(at));
    CHECK(flat(both.gradient) == expected);
    // With a number and a vector beside it
    const auto mixed = [](double, const auto& s, const auto& v) { return energy(s) * v[0]; };
    const auto f = [&](const auto& s, const auto& v) { return mixed(0, s, v); };
    const auto [by_scene, by_vector] = tg::gradient(f)(at, vector{2, 3});
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(by_scene)>, scene<double>>);
    for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(flat(by_scene)[i] == doctest::Approx(2 * expected[i]).epsilon(1e-14));
    CHECK(by_vector == vector{energy(at), 0});
    // Results that are structures, weighted by one
    const forces<double> weights{1, {0, 1}};
    const auto [values, pulled] = tg::vjp(forces_of)(weights, at).parts();
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(values)>, forces<double>>);
    CHECK(values.total == at.gravity * at.bodies[1].mass);
    CHECK(values.unit == std::string("N"));
    CHECK(pulled.gravity == doctest::Approx(slopes.gravity + at.bodies[1].mass).epsilon(1e-14));
    const std::vector<double> short_weights{1, 2};
    CHECK_THROWS_AS(tg::vjp(forces_of)(short_weights, at), tg::shape_error);
}

TEST_CASE("jvp, hvp: directions are structures") {
    const scene<double> at = example();
    scene<double> along = example();
    for (auto& b : along.bodies) b.mass = -b.mass + 0.1, b.position[0] *= 2;
    const auto [value, gradient, product] = tg::hvp(structured)(at, along).parts();
    const auto expected = tg::hvp(flattened)(flat(at), flat(along));
    CHECK(value == expected.value);
    CHECK(flat(gradient) == expected.gradient);
    CHECK(flat(product) == expected.product);
    CHECK(tg::jvp(structured)(at, along).tangent == tg::jvp(flattened)(flat(at), flat(along)).tangent);
    const forces<double> moved = tg::jvp(forces_of)(at, along).tangent;
    CHECK(moved.total == doctest::Approx(along.gravity * at.bodies[1].mass + at.gravity * along.bodies[1].mass));
    CHECK(moved.each[1] == tg::jvp(flattened)(flat(at), flat(along)).tangent);
    scene<double> fewer = along;
    fewer.weights.pop_back();
    CHECK_THROWS_AS(tg::jvp(structured)(at, fewer), tg::shape_error);
}

TEST_CASE("jacobian, hessian: the structure of the results, of structures") {
    const scene<double> at = example();
    const vector x = flat(at);
    const auto rows = tg::hessian(flattened)(x);
    const scene<scene<double>> h = tg::hessian(structured)(at);
    CHECK(flat(h.bodies[0].mass) == rows[0]);
    CHECK(flat(h.bodies[2].position[1]) == rows[8]);
    CHECK(flat(h.gravity) == rows[9]);
    CHECK(flat(h.weights[1]) == rows[11]);
    for (const bool forward : {false, true}) {
        const forces<scene<double>> j =
            forward ? tg::jacobian_forward(forces_of)(at) : tg::jacobian_reverse(forces_of)(at);
        CHECK(j.total.gravity == at.bodies[1].mass);
        CHECK(j.each[0].weights == vector{at.weights[1], at.weights[0]});
        const vector g = flat(tg::gradient(structured)(at));
        for (std::size_t i = 0; i < g.size(); ++i) CHECK(flat(j.each[1])[i] == doctest::Approx(g[i]).epsilon(1e-13));
    }
}

TEST_CASE("vectors of structures, and tg::record of structures") {
    const std::vector<body<double>> bodies = example().bodies;
    const auto moment = [](const auto& all) {
        using N = std::remove_cvref_t<decltype(all[0].mass)>;
        N sum = 0;
        for (const auto& b : all) sum += b.mass * b.position[0] * b.position[0];
        return sum;
    };
    const std::vector<body<double>> slopes = tg::gradient(moment)(bodies);
    CHECK(slopes.size() == 3);
    CHECK(slopes[1].mass == 0.16000000000000003);
    CHECK(slopes[2].position == std::array<double, 2>{3.6, 0});
    CHECK(slopes[2].steps == 1);
    const auto program = tg::record(structured, example());
    const vector x = flat(example());
    CHECK(program.inputs() == x.size());
    CHECK(program.value(x) == energy(example()));
    const vector expected = tg::gradient(flattened)(x), found = program.gradient()(x);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-13));
    CHECK(tg::sparse_hessian(structured, example()).rows() == x.size());
}

} // namespace structures_test
