#include <ops/loss_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace movement_test {

/// Shapes and movement in graph mode: the same bits as in eager mode, values and gradients, with symbolic extents.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto shapes = [](auto x, auto y) { // [n, 4, 6], [1, 5, 1]
    return std::tuple{reshape(x, {-1, 24}),
                      reshape(x, {-1, 2, 3}),
                      ravel(x),
                      squeeze(y),
                      squeeze(expand_dims(x, {0, 2, -1}), {0, -1}),
                      swap_axes(x, 0, 2),
                      move_axis(x, {0, 1}, {2, 0}),
                      reverse(x),
                      flip(x, 0)};
};

constexpr auto parts = [](auto x) { // [n, 4, 6], n at least 3
    const auto [a, b] = tg::split<2>(x, 1);
    const auto [c, d, e] = split(x, {1, 2, 3}, -1);
    const auto rows = tg::unstack<4>(x, 1);
    return std::tuple{slice(x, {{2}}),
                      slice(x, {{0, 3}}),
                      slice(x, {{-2}}),
                      slice(x, {{1, -1}, {0, 2}}),
                      slice(x, {{-3, -1}}),
                      slice(x, {{0, tg::all.end, 2}}),
                      slice(x, {{1, tg::all.end, 3}, tg::all, {0, 6, 2}}),
                      slice(x, {{-1, tg::all.end, -2}}),
                      slice(x, {{-2, 0, -1}}),
                      slice(x, {{2, tg::all.end, -2}}),
                      slice(x, {{-3, tg::all.end, 2}}),
                      take(x, 2),
                      take(x, -1),
                      take(x, 1, -1),
                      a * b,
                      tg::concat({c, d, e, c, e}, 2),
                      tg::concat({x, a, x, b}, 1),
                      tg::concat({x, tg::eval(square(x)), slice(x, {{1}}), x, x}, 0),
                      tg::stack({rows[3], rows[0], rows[1]}, -1)};
};

// std::vector, std::array and std::span, of handles and of formulas; only the axis that is joined may differ.
constexpr auto ranges = [](auto x) { // [n, 4, 6], n at least 3
    std::vector<decltype(x)> widths{x};
    for (int k = 1; k < 6; ++k)
        widths.push_back(tg::slice(square(widths.back()) - 0.5, {tg::all, tg::all, {0, 7 - k}}));
    const std::vector<decltype(x)> alone{x};
    std::vector<decltype(x * 2.0)> formulas{x * 2.0, x * -1.5, x * 0.25};
    const std::array same{x, tg::eval(tanh(x)), x};
    return std::tuple{concat(widths),     concat(std::span(widths).first(2), 2), concat(alone, 0), concat(formulas, 1),
                      concat(same, -2),   concat(tg::split<2>(x, 1), 0),         stack(same),      stack(alone, -1),
                      stack(formulas, 2), tg::stack(std::span(same), -1)};
};

constexpr auto spread = [](auto x) { // [n, 4, 6], n at least 1
    return std::tuple{pad(x, {{2, 1}, {0, 3}}, {.value = 0.5}),
                      pad(x, {{2, 1}, {0, 3}, {1, 1}}, {.mode = tg::pad_mode::reflect}),
                      pad(x, {{0, 5}, {1, 0}}, {.mode = tg::pad_mode::symmetric}),
                      pad(x, {{3, 3}, {1, 1}}, {.mode = tg::pad_mode::edge}),
                      pad(x, {{3, 3}, {0, 0}, {7, 1}}, {.mode = tg::pad_mode::wrap}),
                      tile(x, {2, 1, 3}),
                      tile(x, {2, 1, 1, 1}),
                      repeat(x, 3, 0),
                      repeat(x, 2, -1),
                      roll(x, 2, 0),
                      roll(x, -5, 2),
                      tg::eval(tril(x, 1)),
                      tg::eval(triu(transpose(x, {1, 2, 0}))),
                      diag_part(x, -1),
                      diag(take(x, 0), 2),
                      tg::eval(x * tg::linspace<double>(x, -1, 1, 6) + ones_like(x) +
                               reshape(tg::arange<double>(x, 4, 0.25, -3), {4, 1}) * tg::fill<double>(x, {4, 1}, 1.5)),
                      tg::eval(matmul(x, tg::eye<double>(x, 6, 3, -1)))};
};

using batch_of_matrices = tg::spec<double, tg::dyn, 4, 6>;

tg::tensor<std::int32_t> indices(const tg::shape& dims, std::int64_t limit) {
    auto i = tg::tensor<std::int32_t>::uninitialized(dims);
    for (std::int64_t k = 0; k < i.size(); ++k) i.mutable_data()[k] = static_cast<std::int32_t>(k * 7 % limit);
    return i;
}

} // namespace

#define TG_SAME(batch, text) CHECK_MESSAGE((text).empty(), "batch " << (batch) << ": " << (text))

TEST_CASE("both modes: shapes") {
    both_modes values(shapes, batch_of_matrices{}, tg::spec<double, 1, 5, 1>{});
    both_modes gradients(gradient_loss(shapes), batch_of_matrices{}, tg::spec<double, 1, 5, 1>{});
    for (std::int64_t n : {5, 1, 0, 90}) {
        TG_SAME(n, values.compare(drawn<double>({n, 4, 6}, 1), drawn<double>({1, 5, 1}, 2)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 4, 6}, 1), drawn<double>({1, 5, 1}, 2)));
    }
}

TEST_CASE("both modes: parts and concatenation") {
    both_modes values(parts, batch_of_matrices{});
    both_modes gradients(gradient_loss(parts), batch_of_matrices{});
    for (std::int64_t n : {5, 3, 4, 90}) {
        TG_SAME(n, values.compare(drawn<double>({n, 4, 6}, 1)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 4, 6}, 1)));
    }
    // What was traced for any batch cannot be cut from one that is too short.
    CHECK_THROWS_WITH_AS(values.compare(drawn<double>({2, 4, 6}, 1)), "slice: extent batch is 2, at least 3 is needed",
                         tg::shape_error);
}

TEST_CASE("both modes: chained ranges of tensors and of formulas") {
    both_modes values(ranges, batch_of_matrices{});
    both_modes gradients(gradient_loss(ranges), batch_of_matrices{});
    for (std::int64_t n : {3, 1, 0}) {
        TG_SAME(n, values.compare(drawn<double>({n, 4, 6}, 1)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 4, 6}, 1)));
    }
}

TEST_CASE("eager mode: a number of tensors known only at run time, with derivatives") {
    for (int count : {1, 2, 97}) {
        std::vector<tg::tensor<float>> rows, points;
        std::vector<float> expected;
        for (int k = 0; k < count; ++k) {
            rows.push_back(drawn<float>({k % 4, 3}, static_cast<std::uint64_t>(k)));
            for (std::int64_t i = 0; i < rows.back().size(); ++i) expected.push_back(rows.back().data()[i]);
            points.push_back(drawn<float>({3}, static_cast<std::uint64_t>(k)));
        }
        const tg::tensor<float> all = concat(rows, 0), stacked = stack(points, 1);
        CHECK(std::equal(expected.begin(), expected.end(), all.data(), all.data() + all.size()));
        CHECK(stacked.shape() == tg::shape{3, count});
        for (int k = 0; k < count; ++k)
            for (int i = 0; i < 3; ++i)
                CHECK(stacked.data()[i * count + k] == points[static_cast<std::size_t>(k)].data()[i]);

        tg::gradient_tape tape({.persistent = true});
        for (auto& p : points) tape.watch(p);
        const tg::tensor<float> loss = sum(square(stack(points, 1)) * 3);
        for (const auto& p : points) { // d/dp of 3 p^2, a rounding or two
            const auto dp = tape.gradient(loss, p);
            for (int i = 0; i < 3; ++i) CHECK(dp.data()[i] == doctest::Approx(6 * p.data()[i]));
        }
    }
    const std::vector<tg::tensor<float>> none;
    CHECK_THROWS_WITH_AS(concat(none), "concat: the range has no tensors", tg::shape_error);
    CHECK_THROWS_WITH_AS(stack(none), "stack: the range has no tensors", tg::shape_error);
}

TEST_CASE("both modes: padding, tiles and constants") {
    both_modes values(spread, batch_of_matrices{});
    both_modes gradients(gradient_loss(spread), batch_of_matrices{});
    for (std::int64_t n : {5, 1, 2, 60}) {
        TG_SAME(n, values.compare(drawn<double>({n, 4, 6}, 1)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 4, 6}, 1)));
    }
    CHECK_THROWS_WITH_AS(values.compare(drawn<double>({0, 4, 6}, 1)), "pad: extent batch is 0, at least 1 is needed",
                         tg::shape_error);
}

TEST_CASE("both modes: an empty batch") {
    const auto f = [](auto x) { // [n, 4]
        return tg::value_and_gradient(loss_of<decltype([](auto v) {
            return std::tuple{slice(v, {{0, tg::all.end, 2}}),
                              slice(v, {tg::all, {1, 3}}),
                              reverse(v),
                              tile(v, {2, 2}),
                              repeat(v, 2, 0),
                              roll(v, 1, 0),
                              tg::concat({v, v, v}, 0),
                              tg::stack({v, v}, 1),
                              tg::split<2>(v, 1)[1],
                              tg::split<2>(v, 0)[1],
                              pad(v, {{0, 0}, {1, 2}})};
        })>{})(x);
    };
    both_modes both(f, tg::spec<double, tg::dyn, 4>{});
    for (std::int64_t n : {0, 2, 6}) TG_SAME(n, both.compare(drawn<double>({n, 4}, 1)));
    CHECK_THROWS_WITH_AS(both.compare(drawn<double>({3, 4}, 1)),
                         doctest::Contains("extents that must be equal differ: "), tg::shape_error);
}

TEST_CASE("both modes: indices along any axis") {
    const auto f = [](auto x, auto i) { // [3, n, 4], [n, 2]
        const auto along = tile(expand_dims(i, 0), {3, 1, 2});
        return std::tuple{tg::gather(x, i, 2),
                          tg::gather(x, i, 1, 0),
                          tg::gather(transpose(x, {1, 0, 2}), i, 2, 1),
                          tg::take_along(x, along, 2),
                          tg::take_along(x, along, 1),
                          tg::gather_nd(transpose(x, {1, 2, 0}), i),
                          tg::scatter_nd(take(transpose(x, {1, 0, 2}), 1, 1), i, {4, 4, 4}),
                          tg::put_along(x, along, {3, x.shape()[1].value, 5}, 2),
                          tg::scatter_add(x, take(i, 0, 1), {3, 4, 4}, 1),
                          x * tg::one_hot<double>(take(i, 1, 1), 4, {.on = 3, .off = 0.5}),
                          tg::cast<double>(tg::sequence_mask(i, 3))};
    };
    const auto loss = [](auto x, auto i) {
        return tg::value_and_gradient([i](auto v) {
            const auto along = tile(expand_dims(i, 0), {3, 1, 2});
            // One statement each: the order in which operands of + are evaluated is the compiler's.
            const auto a = sum(square(tg::gather(v, i, 2)));
            const auto b = sum(square(tg::gather(transpose(v, {1, 0, 2}), i, 2, 1)));
            const auto c = sum(square(tg::take_along(v, along, 1)));
            const auto d = sum(square(tg::gather_nd(transpose(v, {1, 2, 0}), i)));
            const auto scattered = tg::scatter_nd(take(transpose(v, {1, 0, 2}), 1, 1), i, {4, 4, 4});
            const auto put = tg::put_along(v, along, {3, v.shape()[1].value, 5}, 2);
            const auto e = sum(square(scattered)), f = sum(square(put));
            return tg::eval(a + b + c + d + e * 0.5 + f);
        })(x);
    };
    both_modes values(f, tg::spec<double, 3, tg::dyn, 4>{}, tg::spec<std::int32_t, tg::dyn, 2>{});
    both_modes gradients(loss, tg::spec<double, 3, tg::dyn, 4>{}, tg::spec<std::int32_t, tg::dyn, 2>{});
    for (std::int64_t n : {5, 4, 70}) {
        TG_SAME(n, values.compare(drawn<double>({3, n, 4}, 1), indices({n, 2}, 4)));
        TG_SAME(n, gradients.compare(drawn<double>({3, n, 4}, 1), indices({n, 2}, 4)));
    }
    for (std::int64_t n : {0, 1})
        TG_SAME(n, gradients.compare(drawn<double>({3, n, 4}, 1), tg::zeros<std::int32_t>({n, 2})));
}

TEST_CASE("both modes: elements of 1, 2, 4 and 8 bytes") {
    const auto f = [](auto x) { // [n, 6]
        return std::tuple{transpose(x),
                          slice(x, {tg::all, {-1, tg::all.end, -1}}),
                          pad(x, {{1, 0}, {0, 2}}, {.value = 1}),
                          pad(x, {{1, 0}, {0, 2}}, {.mode = tg::pad_mode::symmetric}),
                          tile(x, {2, 2}),
                          tg::concat({x, x, x}, 0),
                          repeat(x, 2, 1),
                          tg::eval(where(x == x, x, zeros_like(x)))};
    };
    const auto check = [&]<class T>(T) {
        both_modes both(f, tg::spec<T, tg::dyn, 6>{});
        for (std::int64_t n : {1, 37}) TG_SAME(n, both.compare(drawn<T>({n, 6}, 1, 0, 100)));
    };
    check(std::uint8_t{});
    check(std::int32_t{});
    check(std::int64_t{});
    check(false);
}

} // namespace movement_test

#undef TG_SAME
