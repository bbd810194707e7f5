#include <ops/loss_of.hpp>

#include <doctest/doctest.h>

namespace operands_and_extents_test {

/// Reductions, contractions, movement and order in graph mode: the same bits as in eager mode, values and gradients.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto reductions = [](auto x) { // [n, 3, 4]
    return std::tuple{sum(x),
                      sum(x * 2 + 1, 0),
                      sum(x, {0, 2}, {.keepdims = true}),
                      mean(x, {1, 2}),
                      mean(square(x)),
                      variance(x, 0),
                      max(x, -1),
                      min(x - 1, {0, 1}),
                      prod(x, 2),
                      logsumexp(x, {0, 2}),
                      softmax(x),
                      log_softmax(x, 1)};
};

constexpr auto more_reductions = [](auto x) { // [n, 3, 4]
    const auto [m, v] = tg::moments(x, {0, 1});
    const auto best = tg::top_k(x, 2, 1);
    return std::tuple{m,
                      v,
                      norm(x, 2, -1),
                      norm(x, 3, {0, 2}),
                      stddev(x, -1, {.correction = 1}),
                      max(relu(x), {0, 2}), // ties
                      prod(relu(x), 1),     // zeros
                      cumulative_product(relu(x), 2),
                      sort(x, 0),
                      best.values,
                      tg::cast<double>(tg::count_nonzero(x > 0, 0)),
                      tg::cast<double>(tg::any(x > 1.4, 1)),
                      tg::cast<double>(tg::all(x < 1.4))};
};

constexpr auto contractions = [](auto x, auto w, auto b) { // [n, 3, 4], [4, 5], [2, 1, 3, 4]
    return std::tuple{matmul(x, w), matmul(x, x, {.transpose_b = true}), matmul(x, b, {.transpose_a = true}),
                      matmul(w, tanh(x), {.transpose_a = true, .transpose_b = true}),
                      matmul(b, x, {.transpose_b = true})};
};

constexpr auto movement = [](auto x, auto y) { // [n, 4, 6], [2, 1]
    return std::tuple{reshape(x, {-1, 8, 3}),
                      flatten(x),
                      expand_dims(squeeze(expand_dims(x, 1), 1), -1),
                      transpose(x),
                      transpose(x, {1, 0, 2}),
                      broadcast_to(y, {3, 2, 5}),
                      slice(x, {tg::all, {1, 3}, {-1, -7, -2}}),
                      pad(x, {{0, 0}, {1, 2}, {3, 0}}),
                      concat(x, 2 * x, 1),
                      concat(x, x * x, 0),
                      cumulative_sum(x, 1),
                      cumulative_sum(x, 0, {.reverse = true, .exclusive = true}),
                      sort(x),
                      sort(transpose(x), {.descending = true})};
};

constexpr auto positions = [](auto x, auto i) {
    return std::tuple{argsort(x),
                      argsort(x, 0),
                      argmax(x),
                      argmax(x, 1, {.keepdims = true}),
                      argmin(x, 0),
                      top_k(x, 2).indices,
                      tg::one_hot<double>(i, 6)};
};

template <class T>
constexpr tg::spec<T, tg::dyn, 3, 4> batch_of_matrices{};

// Operands that seal. C++ does not say in which order two of them are evaluated, but for one it need not.
constexpr auto nested = tg::value_and_gradient([](auto x) { return sum(square(softmax(x) + log_softmax(x))); });
constexpr auto nested_once = tg::value_and_gradient([](auto x) { return sum(square(softmax(x) + x) * x); });
constexpr auto named = tg::value_and_gradient([](auto x) {
    const auto p = softmax(x), q = log_softmax(x);
    return sum(square(p + q));
});

} // namespace

#define TG_SAME(batch, text) CHECK_MESSAGE((text).empty(), "batch " << (batch) << ": " << (text))

TEST_CASE("both modes: reductions") {
    both_modes values(reductions, batch_of_matrices<double>);
    both_modes gradients(gradient_loss(reductions), batch_of_matrices<double>);
    both_modes narrow(gradient_loss(reductions), batch_of_matrices<float>);
    for (std::int64_t n : {5, 1, 701, 2, 12000}) {
        TG_SAME(n, values.compare(drawn<double>({n, 3, 4}, 1)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 3, 4}, 1)));
        TG_SAME(n, narrow.compare(drawn<float>({n, 3, 4}, 1)));
    }
}

TEST_CASE("both modes: the softmax of an axis that turns out to be empty is empty") {
    constexpr auto rows = [](auto x) { return std::tuple{softmax(x), log_softmax(x), softmax(tg::cast<tg::half>(x))}; };
    both_modes values(rows, tg::spec<float, 3, tg::dyn>{});
    for (std::int64_t n : {2, 0, 3}) TG_SAME(n, values.compare(drawn<float>({3, n}, 1)));
    CHECK(softmax(tg::zeros<double>({2, 0, 3}), 1).shape() == tg::shape{2, 0, 3});
    CHECK(log_softmax(tg::zeros<double>({2, 0, 3}), 1).shape() == tg::shape{2, 0, 3});
}

TEST_CASE("both modes: reductions differentiated as a whole, order") {
    both_modes values(more_reductions, batch_of_matrices<double>);
    both_modes gradients(gradient_loss(more_reductions), batch_of_matrices<double>);
    for (std::int64_t n : {5, 1, 701, 12000}) {
        TG_SAME(n, values.compare(drawn<double>({n, 3, 4}, 1)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 3, 4}, 1)));
    }
}

TEST_CASE("both modes: contractions") {
    both_modes values(contractions, batch_of_matrices<float>, tg::spec<float, 4, 5>{}, tg::spec<float, 2, 1, 3, 4>{});
    both_modes gradients(gradient_loss(contractions), batch_of_matrices<double>, tg::spec<double, 4, 5>{},
                         tg::spec<double, 2, 1, 3, 4>{});
    for (std::int64_t n : {5, 1, 0, 61}) {
        TG_SAME(n, values.compare(drawn<float>({n, 3, 4}, 1), drawn<float>({4, 5}, 2), drawn<float>({2, 1, 3, 4}, 3)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 3, 4}, 1), drawn<double>({4, 5}, 2),
                                     drawn<double>({2, 1, 3, 4}, 3)));
    }
}

TEST_CASE("both modes: movement and order") {
    both_modes values(movement, tg::spec<float, tg::dyn, 4, 6>{}, tg::spec<float, 2, 1>{});
    both_modes gradients(gradient_loss(movement), tg::spec<double, tg::dyn, 4, 6>{}, tg::spec<double, 2, 1>{});
    for (std::int64_t n : {5, 1, 0, 90}) {
        TG_SAME(n, values.compare(drawn<float>({n, 4, 6}, 1), drawn<float>({2, 1}, 2)));
        TG_SAME(n, gradients.compare(drawn<double>({n, 4, 6}, 1), drawn<double>({2, 1}, 2)));
    }
}

TEST_CASE("both modes: indices") {
    const auto indices = [](std::int64_t n) {
        auto i = tg::tensor<std::int32_t>::uninitialized({n, 2});
        for (std::int64_t k = 0; k < 2 * n; ++k) i.mutable_data()[k] = static_cast<std::int32_t>(k * 7 % 6);
        return i;
    };
    both_modes values(positions, tg::spec<double, 6, 4>{}, tg::spec<std::int32_t, tg::dyn, 2>{});
    for (std::int64_t n : {4, 1, 300}) TG_SAME(n, values.compare(drawn<double>({6, 4}, 1), indices(n)));
    const auto rows = [](auto x) {
        return tg::value_and_gradient([](auto v) {
            const auto order = tg::argsort(v);
            const auto picked = tg::gather(v, order); // [6, 4, 4]: rows 0..3
            const auto first = sum(square(picked));
            const auto second = sum(square(tg::take_along(v, order)) * v);
            const auto third = sum(square(tg::scatter_add(picked, order, {6, 4})));
            return tg::eval(first + second + third);
        })(x);
    };
    both_modes gradients(rows, tg::spec<double, 6, 4>{});
    TG_SAME(6, gradients.compare(drawn<double>({6, 4}, 1)));
}

TEST_CASE("both modes: operands that seal, in the order in which they are named") {
    both_modes one(nested_once, tg::spec<float, tg::dyn, 9>{});
    both_modes two(named, tg::spec<float, tg::dyn, 9>{});
    both_modes unnamed(nested, tg::spec<double, tg::dyn, 9>{});
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
        TG_SAME(seed, one.compare(drawn<float>({7, 9}, seed)));
        TG_SAME(seed, two.compare(drawn<float>({7, 9}, seed)));
#ifdef __clang__ // evaluates operands from left to right, while compiling and while running
        TG_SAME(seed, unnamed.compare(drawn<double>({7, 9}, seed)));
#else
        CHECK(unnamed.distance(drawn<double>({7, 9}, seed)) < 1e-13);
#endif
    }
}

TEST_CASE("both modes: a symbol on every axis of rank 8") {
    constexpr auto all = [](auto x) { return std::tuple{mean(square(x)), flatten(x), sum(x * x, {0, 3})}; };
    both_modes gradients(gradient_loss(all),
                         tg::spec<double, tg::dyn, tg::dyn, tg::dyn, tg::dyn, tg::dyn, tg::dyn, tg::dyn, tg::dyn>{});
    TG_SAME(2, gradients.compare(drawn<double>({2, 1, 3, 2, 1, 2, 1, 2}, 1)));
    TG_SAME(1, gradients.compare(drawn<double>({1, 2, 1, 1, 3, 1, 2, 1}, 2)));
}

} // namespace operands_and_extents_test

#undef TG_SAME
