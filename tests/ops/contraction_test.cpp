#include <support/graph_runner.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

namespace contraction_test {

/// Contractions in graph mode: the same bits as in eager mode, values, gradients and second derivatives.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

// Adds in a fixed order: the operands of one + could be traced in another order than they run in.
constexpr auto total = [](auto first, auto... parts) {
    auto sum_of_parts = sum(square(first));
    ((sum_of_parts = tg::eval(sum_of_parts + sum(square(parts)))), ...);
    return sum_of_parts;
};

constexpr auto products = [](auto a, auto b, auto v) { // [n, 3, 4], [n, 4, 2], [4]
    return std::apply(total, std::tuple{einsum("bij,bjk->bki", a, b), einsum("bij,cjk->bc", a, b),
                                        einsum("bij,jk->ibk", a, einsum("bjk->jk", b)), einsum("...i,i", a, v),
                                        tensordot(a, b, {{2, 0}, {1, 0}}), matmul(a, v), matmul(v, b), tg::dot(a, v),
                                        outer(v, v)});
};
constexpr auto shared_factor = [](auto x, auto w) { // [n, t, 4], [4, 5]
    return std::apply(total, std::tuple{matmul(x, w), matmul(tanh(x), w), einsum("btc,bsc->bts", x, x)});
};
constexpr auto curvature = [](auto x, auto w) {
    const auto g = tg::value_and_gradient(shared_factor)(x, w).gradient;
    return std::apply(total, g);
};

} // namespace

TEST_CASE("both modes: einsum, tensordot, products of vectors") {
    both_modes wide(tg::value_and_gradient(products), tg::spec<double, tg::dyn, 3, 4>{}, tg::spec<double, tg::dyn, 4, 2>{},
                    tg::spec<double, 4>{});
    both_modes narrow(tg::value_and_gradient(products), tg::spec<float, tg::dyn, 3, 4>{}, tg::spec<float, tg::dyn, 4, 2>{},
                      tg::spec<float, 4>{});
    for (std::int64_t n : {3, 1, 0, 67}) {
        const std::string a =
            wide.compare(drawn<double>({n, 3, 4}, 1), drawn<double>({n, 4, 2}, 2), drawn<double>({4}, 3));
        const std::string b =
            narrow.compare(drawn<float>({n, 3, 4}, 1), drawn<float>({n, 4, 2}, 2), drawn<float>({4}, 3));
        CHECK_MESSAGE(a.empty(), "batch " << n << ": " << a);
        CHECK_MESSAGE(b.empty(), "batch " << n << ": " << b);
    }
}

TEST_CASE("both modes: one factor for all batches, second derivatives") {
    both_modes first(tg::value_and_gradient(shared_factor), tg::spec<double, tg::dyn, tg::dyn, 4>{},
                     tg::spec<double, 4, 5>{});
    // The interpreter of derivatives of derivatives adds in another order than fused kernels do.
    both_modes second(tg::value_and_gradient(curvature), tg::spec<double, tg::dyn, tg::dyn, 4>{},
                      tg::spec<double, 4, 5>{});
    for (auto [n, t] : {std::pair<std::int64_t, std::int64_t>{3, 7}, {1, 1}, {40, 5}}) {
        const auto x = drawn<double>({n, t, 4}, 1), w = drawn<double>({4, 5}, 2);
        const std::string text = first.compare(x, w);
        CHECK_MESSAGE(text.empty(), to_string(x.shape()) << ": " << text);
        CHECK(second.distance(x, w) < 1e-12);
    }
}

TEST_CASE("a shared factor's gradient is one product") {
    const auto f = tg::function<tg::graph>(tg::value_and_gradient([](auto x, auto w) { return sum(matmul(x, w)); }),
                                           tg::spec<float, tg::dyn, 3, 4>{}, tg::spec<float, 4, 5>{});
    int products_made = 0, sums = 0;
    for (const auto& step : f.view().steps) {
        const auto& node = f.view().nodes[step.node];
        products_made += node.op->name == "matmul";
        sums += node.op->name == "sum" && node.rank > 0;
    }
    CHECK(products_made == 3); // the value, by x, by w
    CHECK(sums == 0);          // nothing is summed over batches afterwards
}

} // namespace contraction_test
