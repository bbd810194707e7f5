#include "vmap_support.hpp"

#include <doctest/doctest.h>

namespace vmap_test {

/// vmap in both modes: the numbers of one example after another, and the same bits in both modes.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using tg::tensor;

namespace {

// One example: x [3, 4], y [4], z []
constexpr auto elementwise = [](auto x, auto y, auto z) {
    return std::tuple{tg::eval(x * y + z), tg::eval(tanh(y) * z - 2), tg::eval(tg::where(x > z, x, y)), tg::eval(y * 1),
                      tg::eval(z > 0)};
};
constexpr auto reductions = [](auto x, auto y, auto z) {
    return std::tuple{sum(x),
                      sum(x * y, 0),
                      sum(x + z, {1}, {.keepdims = true}),
                      mean(x, -1),
                      max(y * z),
                      variance(x, 0),
                      logsumexp(x, {0, 1}),
                      softmax(x),
                      log_softmax(y),
                      prod(y)};
};
constexpr auto movement = [](auto x, auto y, auto z) {
    return std::tuple{reshape(x, {2, -1}),
                      flatten(x),
                      expand_dims(y, 0),
                      transpose(x),
                      slice(x, {{1, 3}, {-1, -5, -2}}),
                      pad(x, {{1, 0}, {0, 2}}),
                      concat(x, 2 * x, 0),
                      tg::broadcast_to(y, {2, 4}),
                      tg::broadcast_to(z, {2, 3}),
                      cumulative_sum(x, 0),
                      cumulative_sum(y, -1, {.reverse = true}),
                      sort(x),
                      argsort(y),
                      argmax(x, 0),
                      argmin(x)};
};
// One example: x [3, 4]; shared: w [4, 2], u [2, 3, 3]
constexpr auto products = [](auto x, auto w, auto u) {
    return std::tuple{matmul(x, w),
                      matmul(x, transpose(w), {.transpose_b = true}),
                      matmul(x, x, {.transpose_b = true}),
                      matmul(w, x, {.transpose_a = true, .transpose_b = true}),
                      matmul(u, x),
                      tg::eval(matmul(u, x) + 2 * x),
                      matmul(x, w + 1),
                      concat(w, w, 1)};
};
// Sums of products over named axes, and joints, of what each example has and what all share; so with both ways round, and
// with axes that both have beside those that are summed.
constexpr auto contractions = [](auto x, auto w, auto u) {
    return std::tuple{einsum("ij,jk->ik", x, w),
                      einsum("jk,ij->ki", w, x),
                      einsum("ij,jk", x, w),
                      einsum("bki,ij->bjk", u, x),
                      einsum("ij,bij->i", tg::eval(x + 1), tg::broadcast_to(take(w, 1, 1), {2, 3, 4})),
                      einsum("ij,jk->ijk", x, w),
                      einsum("...j,jk->...k", x, w),
                      einsum("ij,jk->k", w, transpose(w)),
                      tensordot(x, w, 1),
                      tensordot(w, x, {{0}, {1}}),
                      tg::dot(x, w),
                      tg::dot(u, x),
                      inner(x, transpose(w)),
                      outer(x, w),
                      vdot(x, broadcast_to(take(w, 0, 1), {3, 4}))};
};
constexpr auto joints = [](auto x, auto w, auto u) {
    const auto constant = tg::fill<double>(x, {3, 1}, 0.5);
    return std::tuple{concat(x, transpose(w), 0),
                      concat(transpose(w), x * 2, 0),
                      tg::stack({x, tg::eval(x + 1)}),
                      tg::stack({x, tg::eval(2 * x), tg::eval(sin(x))}, -1),
                      tg::stack({w, w}),
                      concat(std::vector{x, tg::eval(x + 1), x}, 1),
                      stack(std::vector{x * 2, x * 3}, 1),
                      stack(std::array{w, w}, -1),
                      concat(x, constant, 1),
                      tg::concat({x, tg::eval(-x)}, 0),
                      tg::fill<double>(x, {2, 2}, 3),
                      tg::eval(x * tg::arange<double>(x, 4, 1, 0.5)),
                      tg::linspace<double>(u, 0, 1, 3),
                      tg::tril(x),
                      tg::eval(tg::eye<double>(x, 3, 4) + x),
                      pad(x, {{1, 0}, {0, 2}}, {.value = 7}),
                      pad(sum(x), {}, {.value = 7}),
                      pad(slice(x, {{1, 3}}), {{0, 1}}, {.value = -1}),
                      tg::diag_part(pad(x, {{0, 1}}, {.value = 2}))};
};
// One example: table [5, 2, 2], i [3]; shared: rows [5, 2], j [4]
constexpr auto choices = [](auto table, auto i, auto rows, auto j) {
    const auto picked = tg::gather(table, i);
    return std::tuple{tg::gather(rows, i),
                      tg::gather(table, j),
                      picked,
                      tg::gather(tg::sum(table, {1, 2}), i),
                      tg::scatter_add(picked, i, {5, 2, 2}),
                      tg::scatter_add(tg::gather(table, j), j, {6, 2, 2}),
                      tg::gather_scatter_add(table, i, i, {5, 2, 2}),
                      tg::gather_scatter_add(table, j, j, {6, 2, 2}),
                      tg::gather_scatter_add(rows, j, j, tg::gather(tg::take(tg::sum(table, 2), 0, 1), j), {7, 2}),
                      tg::one_hot<double>(i, 5)};
};
constexpr auto images = [](auto x, auto w) { // [2, 6, 5, 2], [3, 3, 2, 4]
    const auto y = tg::conv2d(x, w, {.padding = tg::padding::same()});
    const auto z = tg::conv2d(x, w, {.stride = {2, 1}});
    return std::tuple{y, z, tg::max_pooling2d(y), tg::average_pooling2d(y, {.pool_size = {3, 3}, .stride = {1, 1}})};
};

tensor<std::int32_t> indices(std::initializer_list<std::int64_t> dims) {
    auto t = tensor<std::int32_t>::uninitialized(tg::shape(dims));
    for (std::int64_t k = 0; k < t.size(); ++k) t.mutable_data()[k] = static_cast<std::int32_t>((k * 7 + 3) % 5);
    return t;
}

} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("vmap: elementwise formulas, reductions, movement") {
    const auto check = [](auto f) {
        both_modes run(tg::vmap(f), tg::spec<double, tg::dyn, 3, 4>{}, tg::spec<double, tg::dyn, 4>{},
                       tg::spec<double, tg::dyn>{});
        for (std::int64_t n : {3, 1, 211}) {
            const auto x = drawn<double>({n, 3, 4}, 1), y = drawn<double>({n, 4}, 2), z = drawn<double>({n}, 3);
            TG_SAME(run.compare(x, y, z));
            // Another order of adding in a reduction of other extents: a few roundings.
            CHECK(apart(run.results(), one_by_one(f, n, x, y, z)) < 1e-14);
        }
        TG_SAME(run.compare(drawn<double>({0, 3, 4}, 1), drawn<double>({0, 4}, 2), drawn<double>({0}, 3)));
    };
    check(elementwise);
    check(reductions);
    check(movement);
}

TEST_CASE("vmap: products with shared and own matrices") {
    both_modes run(tg::vmap<0, tg::unbatched, tg::unbatched>(products), tg::spec<double, tg::dyn, 3, 4>{},
                   tg::spec<double, 4, 2>{}, tg::spec<double, 2, 3, 3>{});
    for (std::int64_t n : {3, 1, 50}) {
        const auto x = drawn<double>({n, 3, 4}, 1), w = drawn<double>({4, 2}, 2), u = drawn<double>({2, 3, 3}, 3);
        TG_SAME(run.compare(x, w, u));
        CHECK(apart(run.results(), one_by_one(products, n, x, shared<double>{w}, shared<double>{u})) < 1e-14);
    }
    // Rows of all examples are rows of one product.
    constexpr auto dense = [](auto x, auto w) { return tanh(matmul(x, w)); };
    auto f = tg::function<tg::graph>(tg::vmap<0, tg::unbatched>(dense), tg::spec<float, tg::dyn, 1, 8>{},
                                     tg::spec<float, 8, 4>{});
    f(drawn<float>({5, 1, 8}, 1), drawn<float>({8, 4}, 2));
    int calls = 0;
    for (int s = 0; s < f.view().steps.size(); ++s)
        if (f.view().nodes[f.view().steps[s].node].op == &tg::ir::descriptor_of<tg::matmul_op>) {
            CHECK(f.program().call_of(s).out[0].rank == 2);
            ++calls;
        }
    CHECK(calls == 1);
}

TEST_CASE("vmap: sums over named axes, joints and constants, of shared and own operands") {
    const auto check = [](auto f) {
        both_modes run(tg::vmap<0, tg::unbatched, tg::unbatched>(f), tg::spec<double, tg::dyn, 3, 4>{},
                       tg::spec<double, 4, 2>{}, tg::spec<double, 2, 3, 3>{});
        for (std::int64_t n : {3, 1, 40}) {
            const auto x = drawn<double>({n, 3, 4}, 1), w = drawn<double>({4, 2}, 2), u = drawn<double>({2, 3, 3}, 3);
            TG_SAME(run.compare(x, w, u));
            // Sums of products in another order.
            CHECK(apart(run.results(), one_by_one(f, n, x, shared<double>{w}, shared<double>{u})) < 1e-14);
        }
    };
    check(contractions);
    check(joints);
}

TEST_CASE("vmap: indices") {
    both_modes run(tg::vmap<0, 0, tg::unbatched, tg::unbatched>(choices), tg::spec<double, tg::dyn, 5, 2, 2>{},
                   tg::spec<std::int32_t, tg::dyn, 3>{}, tg::spec<double, 5, 2>{}, tg::spec<std::int32_t, 4>{});
    for (std::int64_t n : {3, 1, 40}) {
        const auto table = drawn<double>({n, 5, 2, 2}, 1), rows = drawn<double>({5, 2}, 2);
        const auto i = indices({n, 3}), j = indices({4});
        TG_SAME(run.compare(table, i, rows, j));
        CHECK(apart(run.results(), one_by_one(choices, n, table, i, shared<double>{rows}, shared<std::int32_t>{j})) ==
              0);
    }
}

TEST_CASE("vmap: convolution and pooling") {
    both_modes run(tg::vmap<0, tg::unbatched>(images), tg::spec<float, tg::dyn, 2, 6, 5, 2>{},
                   tg::spec<float, 3, 3, 2, 4>{});
    const auto x = drawn<float>({3, 2, 6, 5, 2}, 1), w = drawn<float>({3, 3, 2, 4}, 2);
    TG_SAME(run.compare(x, w));
    CHECK(apart(run.results(), one_by_one(images, 3, x, shared<float>{w})) < 1e-6);
    both_modes own(tg::vmap(images), tg::spec<float, 3, 2, 6, 5, 2>{}, tg::spec<float, 3, 3, 3, 2, 4>{});
    const auto filters = drawn<float>({3, 3, 3, 2, 4}, 2);
    TG_SAME(own.compare(x, filters));
    CHECK(apart(own.results(), one_by_one(images, 3, x, filters)) < 1e-6);
}

TEST_CASE("vmap: other axes, shared results, captured values") {
    const auto x = drawn<double>({3, 4, 2}, 1);
    const tensor<double> w{1, 2, 3};
    const auto f = [w](auto v) { return std::tuple{tg::eval(v * w), w, sum(v)}; }; // v [3]
    const auto [a, b, c] = tg::vmap<1>([&](auto rows) { return tg::vmap<-1>(f)(rows); })(x);
    CHECK(a.shape() == tg::shape{4, 2, 3});
    CHECK(b.shape() == tg::shape{4, 2, 3});
    CHECK(c.shape() == tg::shape{4, 2});
    for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t j = 0; j < 2; ++j)
            for (std::int64_t k = 0; k < 3; ++k) {
                CHECK(a(i, j, k) == x(k, i, j) * w(k));
                CHECK(b(i, j, k) == w(k));
            }
}

TEST_CASE("vmap: inside vmap, over pairs") {
    constexpr auto distance = [](auto a, auto b) { return sum(square(a - b)); };
    // The inner vmap maps what the outer one has mapped already.
    constexpr auto pairs = [](auto a, auto b) {
        return tg::vmap<tg::unbatched, 0>([](auto y, auto x) {
            return tg::vmap<0, tg::unbatched>([](auto p, auto q) { return sum(square(p - q)); })(x, y);
        })(b, a);
    };
    both_modes run(pairs, tg::spec<double, tg::dyn, 2, 3>{}, tg::spec<double, 3>{});
    const auto a = drawn<double>({5, 2, 3}, 1), b = drawn<double>({3}, 2);
    TG_SAME(run.compare(a, b));
    const tensor<double> d(run.results()[0]);
    REQUIRE(d.shape() == tg::shape{5, 2});
    CHECK(d(3, 1) == doctest::Approx(tensor<double>(distance(example(example(a, 3), 1), b)).item()));

    // All pairs of two sets: the inner vmap maps one set, the outer the other.
    constexpr auto table = [](auto p, auto q) {
        return tg::vmap<0, tg::unbatched>([](auto one, auto others) {
            return tg::vmap<tg::unbatched, 0>([](auto u, auto v) { return sum(square(u - v)); })(one, others);
        })(p, q);
    };
    both_modes all(table, tg::spec<double, tg::dyn, 3>{}, tg::spec<double, 7, 3>{});
    const auto p = drawn<double>({4, 3}, 3), q = drawn<double>({7, 3}, 4);
    TG_SAME(all.compare(p, q));
    const tensor<double> t(all.results()[0]);
    REQUIRE(t.shape() == tg::shape{4, 7});
    for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t j = 0; j < 7; ++j)
            CHECK(t(i, j) == doctest::Approx(tensor<double>(distance(example(p, i), example(q, j))).item()));
}

TEST_CASE("vmap: errors") {
    const auto x = drawn<double>({3, 4}, 1);
    const auto sum_of = [](auto a, auto b) { return a + b; };
    CHECK_THROWS_WITH_AS(tg::vmap(sum_of)(x, drawn<double>({1, 4}, 1)),
                         "vmap: mapped arguments differ in the number of examples: [3, 4], [1, 4]", tg::shape_error);
    CHECK_THROWS_WITH_AS(tg::vmap<2>([](auto v) { return v; })(x), "vmap: axis outside the rank: [3, 4], [3, 4]",
                         tg::shape_error);
    CHECK_THROWS_WITH_AS(tg::vmap([](auto v) { return v; })(tensor<double>(2.0)), "vmap: axis outside the rank: [], []",
                         tg::shape_error);
    // What one example may not do, the batch may not: here a product that does not fit, and an axis of the batch.
    CHECK_THROWS_AS(tg::vmap([](auto v) { return matmul(v, expand_dims(v, 0)); })(x), tg::shape_error);
    CHECK_THROWS_AS(tg::vmap([](auto v) { return sum(v, 1); })(x), tg::shape_error);
    CHECK_THROWS_AS(tg::vmap([](auto v) { return cumulative_sum(v, -2); })(x), tg::shape_error);
}

} // namespace vmap_test
