#include <support/graph_runner.hpp>

#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace constants_forward_test {

/// Forward mode past what is made beside a differentiated tensor, or reads it for its shape, type or mode alone, in both
/// modes: constants have no tangent. And past operations that are affine rather than linear.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

std::vector<double> numbers(const tg::any_tensor& t) { return tg::tensor<double>(t).to_vector(); }

/// Result k of both modes, which must be the same bits.
template <class F>
std::vector<std::vector<double>> along(const F& f, const tg::tensor<double>& x, const tg::tensor<double>& v) {
    both_modes run(f, tg::spec<double, 3>{}, tg::spec<double, 3>{});
    TG_SAME(run.compare(x, v));
    std::vector<std::vector<double>> found;
    for (const tg::any_tensor& r : run.results()) found.push_back(numbers(r));
    return found;
}
template <class F>
std::vector<std::vector<double>> at(const F& f, const tg::tensor<double>& x) {
    both_modes run(f, tg::spec<double, 3>{});
    TG_SAME(run.compare(x));
    std::vector<std::vector<double>> found;
    for (const tg::any_tensor& r : run.results()) found.push_back(numbers(r));
    return found;
}

const tg::tensor<double> point{1, -2, 3}, direction{10, 20, 30};
using three = std::vector<double>;

} // namespace

TEST_CASE("jvp: constants made beside a differentiated tensor have no tangent") {
    const auto made = [](auto x) {
        return std::tuple{tg::eval(where(x > 0, x, tg::fill<double>(x, {3}, 2))),
                          tg::eval(x * tg::arange<double>(x, 3, 1)),
                          tg::eval(x * tg::linspace<double>(x, 1, 3, 3)),
                          tg::eval(x + tg::fill<double>(x, {3}, 5)),
                          tg::eval(tg::full_like(x, 4) * x + tg::zeros_like(x) - tg::ones_like(x)),
                          tg::matmul(tg::eye<double>(x, 3), x),
                          sum(tg::tril(tg::broadcast_to(x, {3, 3})), 1),
                          tg::fill<double>(x, {3}, 7)};
    };
    const auto found = along(tg::jvp(made), point, direction);
    REQUIRE(found.size() == 16);
    CHECK(found[8] == three{10, 0, 30});
    CHECK(found[9] == three{10, 40, 90});
    CHECK(found[10] == three{10, 40, 90});
    CHECK(found[11] == three{10, 20, 30});
    CHECK(found[12] == three{40, 80, 120});
    CHECK(found[13] == three{10, 20, 30});
    CHECK(found[14] == three{10, 30, 60});
    CHECK(found[15] == three{0, 0, 0});
}

TEST_CASE("jvp: padding with a number, reordered and joined, is affine") {
    const auto padded = [](auto x) {
        const auto wide = pad(x, {{1, 2}}, {.value = -1.5});
        return std::tuple{wide, reverse(wide), concat(wide, tg::fill<double>(x, {1}, 3)), tg::eval(square(wide))};
    };
    const auto found = along(tg::jvp(padded), point, direction);
    REQUIRE(found.size() == 8);
    CHECK(found[0] == three{-1.5, 1, -2, 3, -1.5, -1.5});
    CHECK(found[4] == three{0, 10, 20, 30, 0, 0});
    CHECK(found[5] == three{0, 0, 30, 20, 10, 0});
    CHECK(found[6] == three{0, 10, 20, 30, 0, 0, 0});
    CHECK(found[7] == three{0, 20, -80, 180, 0, 0});
}

// Reverse over reverse: what flows back from a slice is padding with zeros, and what flows back from padding with a number has
// nothing of the number.
TEST_CASE("the derivative of padding with a number is a slice, of any order") {
    const auto third = [](auto x) {
        return sum(tg::eval(x * square(pad(slice(x, {{0, 2}}), {{0, 1}}, {.value = 9}))));
    };
    // x0^3 + x1^3 + 81 x2
    CHECK(at(tg::gradient(third), point)[0] == three{3, 12, 81});
    CHECK(at(tg::hessian(third), point)[0] == three{6, 0, 0, 0, -12, 0, 0, 0, 0});
    CHECK(along(tg::hvp(tg::gradient(third)), point, direction)[2] == three{60, 120, 0});
    const auto reversed = [](auto x, auto v) {
        return tg::gradient([v](auto y) {
            return sum(v * tg::gradient([](auto z) { return sum(pow(pad(z, {{1, 1}}, {.value = 2}), 3)); })(y));
        })(x);
    };
    CHECK(along(reversed, point, direction)[0] == three{60, -240, 540});
}

TEST_CASE("hvp, hessian, jacobian_forward: constants are constants") {
    const auto weighted = [](auto x) { return sum(square(tg::arange<double>(x, 3, 1) * x)); };
    const auto product = along(tg::hvp(weighted), point, tg::tensor<double>{1, 1, 1});
    REQUIRE(product.size() == 3);
    CHECK(product[1] == three{2, -16, 54});
    CHECK(product[2] == three{2, 8, 18});
    CHECK(at(tg::hessian(weighted), point)[0] == three{2, 0, 0, 0, 8, 0, 0, 0, 18});
    const auto shifted = [](auto x) {
        return tg::eval(x * tg::linspace<double>(x, 2, 4, 3) + tg::fill<double>(x, {3}, 2));
    };
    const three diagonal{2, 0, 0, 0, 3, 0, 0, 0, 4};
    CHECK(at(tg::jacobian_forward(shifted), point)[0] == diagonal);
    CHECK(at(tg::jacobian_reverse(shifted), point)[0] == diagonal);
    // jvp of a jvp: the second derivative along two directions.
    const auto twice = [](auto x, auto v) {
        return tg::jvp([v](auto y) {
                   return tg::jvp([](auto z) {
                              return sum(tg::arange<double>(z, 3, 1) * z * square(pad(z, {{0, 0}})));
                          })(y, v)
                       .tangent;
               })(x, v)
            .tangent;
    };
    CHECK(along(twice, point, direction)[0][0] == 6 * (1 * 1 * 100 + 2 * -2 * 400 + 3 * 3 * 900));
}

// The tangent of what was broadcast has the shape that was asked for, also while it is recorded.
TEST_CASE("reverse over forward mode through broadcast_to") {
    const auto slope = [](auto x, auto v) {
        return tg::gradient([v](auto y) {
            const auto spread = [](auto z) { return repeat(tg::broadcast_to(sum(square(z)), {1, 1}), 3, 0); };
            return sum(square(tg::jvp(spread)(y, v).tangent)); // 3 (2 y v)^2
        })(x);
    };
    CHECK(along(slope, point, direction)[0] == three{14400, 28800, 43200});
}

// The derivative is the one that was given, in forward mode as in reverse, and not that of the value.
TEST_CASE("jvp of a function with a derivative of its own") {
    const auto straight = [](auto x) {
        return tg::custom_gradient([](auto y) { return tg::eval(sign(y) * square(y)); },
                                   [](auto dy, auto y) { return dy * (y + 5); })(x);
    };
    const auto found = along(tg::jvp(straight), point, direction);
    CHECK(found[0] == three{1, -4, 9});
    CHECK(found[1] == three{60, 60, 240});
    CHECK(at(tg::jacobian_forward(straight), point)[0] == three{6, 0, 0, 0, 3, 0, 0, 0, 8});
    CHECK(along(tg::hvp(straight), point, direction)[2] == three{10, 20, 30});
}

// Ties share evenly in reverse mode; the transpose of that is the mean of the tangents.
TEST_CASE("forward mode at ties is the transpose of reverse mode") {
    const auto best = [](auto x) { return std::tuple{max(x), min(-x), max(concat(x, x))}; };
    const tg::tensor<double> tied{2, 2, -1}, v{1, 2, 100};
    const auto found = along(tg::jvp(best), tied, v);
    CHECK(found[3] == three{1.5});
    CHECK(found[4] == three{-1.5});
    CHECK(found[5] == three{1.5});
    const auto pair = [](auto x) { return tg::eval(maximum(x, tg::stop_gradient(x)) + minimum(x, reverse(x))); };
    const auto forward = at(tg::jacobian_forward(pair), tg::tensor<double>{2, 1, 2});
    CHECK(forward == at(tg::jacobian_reverse(pair), tg::tensor<double>{2, 1, 2}));
}

} // namespace constants_forward_test

#undef TG_SAME
