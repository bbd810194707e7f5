#include <tapegraph/real.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <tuple>
#include <type_traits>
#include <vector>

/// Compiled functions of structures of numbers, whose derivatives are those of the same functions by tg::real and jets.

namespace structured_values_test {

namespace tg = tapegraph;

template <class N>
struct body {
    N mass;
    std::array<N, 2> position;
    static constexpr double drag = 0.25;
};
template <class N>
struct scene {
    std::array<body<N>, 2> bodies;
    N gravity;
};
template <class N>
struct forces {
    N total;
    std::array<N, 2> each;
};
using scene_spec = scene<tg::spec<double>>;

constexpr auto energy = []<class N>(const scene<N>& s) {
    N sum = s.gravity * s.bodies[0].mass;
    for (const body<N>& b : s.bodies)
        sum = sum + b.mass * sin(b.position[0] * s.gravity) * b.position[1] - body<N>::drag * sum;
    return sum;
};
constexpr auto forces_of = []<class N>(const scene<N>& s) {
    return forces<N>{s.gravity * s.bodies[1].mass, {s.bodies[0].position[0] * s.gravity, energy(s)}};
};
const scene<double> at{{{{1.5, {0.3, 2}}, {0.5, {-0.4, 1}}}}, 0.75},
    along{{{{-0.5, {1, 0.5}}, {2, {0.25, -1}}}}, 0.125};

std::vector<double> flat(const scene<double>& s) {
    std::vector<double> all;
    for (const auto& b : s.bodies) all.insert(all.end(), {b.mass, b.position[0], b.position[1]});
    all.push_back(s.gravity);
    return all;
}
// Functions of <cmath> and the library's own differ by roundings.
void check_near(const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-13));
}

template <class Mode>
void check_derivatives() {
    auto first = tg::function<Mode>(tg::value_and_gradient(energy), scene_spec{});
    const auto [value, gradient] = first(at).parts();
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(gradient)>, scene<double>>);
    CHECK(value == doctest::Approx(energy(at)).epsilon(1e-14));
    check_near(flat(gradient), flat(tg::gradient(energy)(at)));
    auto second = tg::function<Mode>(tg::hvp(energy), scene_spec{}, scene_spec{});
    check_near(flat(second(at, along).product), flat(tg::hvp(energy)(at, along).product));
}
TEST_CASE("value, gradient and products with the Hessian, in both modes") {
    check_derivatives<tg::graph>();
    check_derivatives<tg::eager>();
}

TEST_CASE("results that are structures, their Jacobian, directions and cotangents") {
    auto f = tg::function<tg::graph>(tg::vjp(forces_of), forces<tg::spec<double>>{}, scene_spec{});
    const forces<double> weights{1, {-2, 0.5}};
    const auto [values, pulled] = f(weights, at).parts();
    const auto expected = tg::vjp(forces_of)(weights, at);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(values)>, forces<double>>);
    CHECK(values.total == expected.value.total);
    check_near(flat(pulled), flat(expected.gradient));

    auto rows = tg::function<tg::graph>(tg::jacobian(forces_of), scene_spec{});
    const forces<scene<double>> jacobian = rows(at);
    check_near(flat(jacobian.each[1]), flat(tg::gradient(energy)(at)));
    CHECK(jacobian.total.gravity == 0.5);
    CHECK(jacobian.each[0].bodies[0].position[0] == 0.75);
    CHECK(jacobian.each[0].bodies[1].mass == 0);

    auto hessian = tg::function<tg::graph>(tg::hessian(energy), scene_spec{});
    const scene<scene<double>> h = hessian(at), same = tg::hessian(energy)(at);
    check_near(flat(h.gravity), flat(same.gravity));
    check_near(flat(h.bodies[1].position[0]), flat(same.bodies[1].position[0]));
}

constexpr auto mixed = []<class N>(const body<N>& b, const auto& x, const auto& s) {
    return std::tuple(body<N>{b.mass * s, {sum(x) * b.position[1], b.position[0]}}, std::tuple(x * b.mass), s);
};
template <class Mode>
void check_mixed() {
    auto f = tg::function<Mode>(mixed, body<tg::spec<double>>{}, tg::spec<double, 3>{}, tg::spec<double>{});
    const auto [b, inner, s] = f({2, {3, 4}}, {1, 2, 4}, 0.5);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(b)>, body<double>>);
    CHECK(b.mass == 1);
    CHECK(b.position == std::array<double, 2>{28, 3});
    CHECK(std::get<0>(inner) == std::array<double, 3>{2, 4, 8});
    CHECK(s == 0.5);
    const auto again = f({1, {0, 0}}, {1, 1, 1}, -1.0); // the results of before stay
    CHECK(std::get<0>(again).mass == -1);
    CHECK(b.mass == 1);
}
TEST_CASE("structures beside arrays and numbers, in tuples") {
    check_mixed<tg::graph>();
    check_mixed<tg::eager>();
}

TEST_CASE("arrays of structures, float, one number") {
    auto f = tg::function<tg::graph>(
        tg::gradient([](const auto& all) { return all[0].mass * all[1].position[1] - all[2].mass * all[2].mass; }),
        std::array<body<tg::spec<float>>, 3>{});
    const std::array<body<float>, 3> slopes = f({{{2, {1, 1}}, {3, {1, 5}}, {4, {1, 1}}}});
    CHECK(slopes[0].mass == 5);
    CHECK(slopes[1].position == std::array<float, 2>{0, 2});
    CHECK(slopes[2].mass == -8);
    auto one = tg::function<tg::graph>(tg::gradient([](const auto& x) { return x[0] * x[0]; }),
                                       std::array<tg::spec<double>, 1>{});
    CHECK(one({3}) == std::array<double, 1>{6});
}

// Structures of tensors, in eager mode without a compiled function.
TEST_CASE("structures of tensors") {
    const body<tg::tensor<double>> x{{1, 2}, {tg::tensor<double>{3, 4}, tg::tensor<double>{5, 6}}};
    const auto f = [](const auto& b) { return sum(b.mass * b.position[0]) + sum(square(b.position[1])); };
    const body<tg::tensor<double>> slopes = tg::gradient(f)(x);
    CHECK(slopes.mass.to_vector() == std::vector<double>{3, 4});
    CHECK(slopes.position[0].to_vector() == std::vector<double>{1, 2});
    CHECK(slopes.position[1].to_vector() == std::vector<double>{10, 12});
    CHECK(tg::jvp(f)(x, x).tangent.item() == 2 * (3 + 8) + 2 * (25 + 36));
}

} // namespace structured_values_test
