#include <tapegraph/nn/layers/attention.hpp>

#include <nn/layer_bench.hpp>

#include <algorithm>
#include <cmath>

namespace attention_test {

using namespace nn_test;
using std::int64_t;

/// Attention in eager mode against loops in double, and the bits of both modes.

namespace {

/// Sums of at most a hundred products of numbers near one, four such sums in sequence.
constexpr double tolerance = 1e-12;

/// The layer's value at [n, t, out]; `seen(n, t, s)` says whether step t looks at step s.
template <class Seen>
double naive(layer_bench& b, const tg::tensor<double>& query, const tg::tensor<double>& value, bool bias, int64_t n,
             int64_t t, int64_t out, const Seen& seen) {
    const int64_t steps = value.shape()[1].value;
    const auto wo = b["a/attention_output/kernel"];
    const int64_t heads = wo.shape()[0].value, width = wo.shape()[1].value;
    const auto projected = [&](const char* what, const tg::tensor<double>& x, int64_t step, int64_t h, int64_t d) {
        const auto w = b[std::string("a/") + what + "/kernel"];
        double sum = bias ? b[std::string("a/") + what + "/bias"](h, d) : 0;
        for (int64_t f = 0; f < x.shape()[2].value; ++f) sum += x(n, step, f) * w(f, h, d);
        return sum;
    };
    const int64_t depth = b["a/query/kernel"].shape()[2].value;
    double result = bias ? b["a/attention_output/bias"](out) : 0;
    for (int64_t h = 0; h < heads; ++h) {
        std::vector<double> weights;
        double total = 0;
        bool any = false;
        for (int64_t s = 0; s < steps; ++s) any = any || seen(n, t, s);
        for (int64_t s = 0; s < steps; ++s) {
            double score = 0;
            for (int64_t d = 0; d < depth; ++d)
                score += projected("query", query, t, h, d) * projected("key", value, s, h, d);
            weights.push_back(!any ? 1 : seen(n, t, s) ? std::exp(score / std::sqrt(static_cast<double>(depth))) : 0);
            total += weights.back();
        }
        for (int64_t s = 0; s < steps; ++s)
            for (int64_t d = 0; d < width; ++d)
                result +=
                    weights[static_cast<std::size_t>(s)] / total * projected("value", value, s, h, d) * wo(h, d, out);
    }
    return result;
}

} // namespace

TEST_CASE("multi_head_attention: heads, masks and extents") {
    struct setting {
        int64_t time, steps, features, others;
        tg::multi_head_attention_options options;
        bool masked;
    };
    for (const setting& s :
         {setting{3, 4, 5, 2, {.num_heads = 2, .key_dim = 3}, false},
          setting{4, 4, 3, 3, {.num_heads = 3, .key_dim = 1, .use_causal_mask = true}, false},
          setting{2, 5, 3, 4, {.key_dim = 2, .value_dim = 4, .output_dim = 7, .use_bias = false}, true},
          setting{5, 3, 2, 2, {.num_heads = 2, .key_dim = 2, .use_causal_mask = true}, true},
          setting{1, 1, 1, 1, {}, false}}) {
        CAPTURE(s.time);
        const auto query = noise<double>({2, s.time, s.features}, 1), value = noise<double>({2, s.steps, s.others}, 2);
        // The first record's first step sees nothing.
        tg::tensor<bool> mask = tg::eval(noise<double>({2, s.time, s.steps}, 3) > 0);
        for (int64_t k = 0; k < s.steps; ++k) mask.set(false, 0, 0, k);
        layer_bench b;
        const auto run = [&]() -> tg::tensor<double> {
            if (s.masked)
                return tg::multi_head_attention(b.scope() / "a", query, value, s.options, tg::attention_mask{mask});
            return tg::multi_head_attention(b.scope() / "a", query, value, s.options);
        };
        run();
        b.fill();
        const auto y = run();
        const int64_t outputs = s.options.output_dim > 0 ? s.options.output_dim : s.features;
        const int64_t width = s.options.value_dim > 0 ? s.options.value_dim : s.options.key_dim;
        REQUIRE(y.shape() == tg::shape{2, s.time, outputs});
        REQUIRE(b["a/query/kernel"].shape() == tg::shape{s.features, s.options.num_heads, s.options.key_dim});
        REQUIRE(b["a/key/kernel"].shape() == tg::shape{s.others, s.options.num_heads, s.options.key_dim});
        REQUIRE(b["a/value/kernel"].shape() == tg::shape{s.others, s.options.num_heads, width});
        REQUIRE(b["a/attention_output/kernel"].shape() == tg::shape{s.options.num_heads, width, outputs});
        REQUIRE(b.variables.size() == (s.options.use_bias ? 8 : 4));
        const auto seen = [&](int64_t n, int64_t t, int64_t k) {
            return (!s.masked || mask(n, t, k)) && (!s.options.use_causal_mask || k <= t);
        };
        // What nobody sees is read as zeros by a step that sees nothing, and so weighs all alike.
        const tg::tensor<double> offered = s.masked ? tg::eval(where(expand_dims(any(mask, -2), -1), value, 0)) : value;
        for (int64_t n = 0; n < 2; ++n)
            for (int64_t t = 0; t < s.time; ++t)
                for (int64_t o = 0; o < outputs; ++o)
                    CHECK(std::abs(y(n, t, o) - naive(b, query, offered, s.options.use_bias, n, t, o, seen)) <
                          tolerance);
    }
}

TEST_CASE("multi_head_attention: dropout in training alone, and errors") {
    const auto x = noise<double>({2, 3, 4}, 1);
    layer_bench b;
    const auto run = [&](bool training, const tg::multi_head_attention_options& o) -> tg::tensor<double> {
        return tg::multi_head_attention(b.scope(training) / "a", x, x, o);
    };
    const auto plain = run(true, {.num_heads = 2, .key_dim = 2}).to_vector();
    CHECK(run(false, {.num_heads = 2, .key_dim = 2, .dropout = 0.5}).to_vector() == plain);
    CHECK(run(true, {.num_heads = 2, .key_dim = 2, .dropout = 0.5}).to_vector() != plain);
    CHECK_THROWS_WITH_AS(run(true, {.dropout = 1}), doctest::Contains("dropout must lie in [0, 1), in scope 'a'"),
                         tg::argument_error);
    for (const tg::multi_head_attention_options& o :
         {tg::multi_head_attention_options{.num_heads = 0}, tg::multi_head_attention_options{.output_dim = -1}})
        CHECK_THROWS_WITH_AS(run(true, o), doctest::Contains("num_heads and key_dim must be positive"),
                             tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::multi_head_attention(b.scope() / "a", x, noise<double>({2, 3}, 1), {}),
                         doctest::Contains("query and value must be [batch, time, features]"), tg::argument_error);
}

namespace {

struct attentive {
    constexpr auto operator()(auto scope, auto x) const {
        const auto seen = tg::eval(tg::expand_dims(tg::take(x, 0, -1), 1) > -0.5);
        const auto h = tg::multi_head_attention(
            scope / "look", x, x, {.num_heads = 2, .key_dim = 3, .use_causal_mask = true}, tg::attention_mask{seen});
        return tg::dense(scope / "score", mean(tanh(h), 1), {.units = 2});
    }
};

template <class Mode>
auto make() {
    return tg::compile<Mode>(attentive{}, tg::spec<double, tg::dyn, tg::dyn, 4>{}, tg::mean_squared_error{},
                             tg::sgd{.learning_rate = 0.5}, {.seed = 3});
}

} // namespace

TEST_CASE("multi_head_attention: both modes train alike, and gradients are central differences") {
    auto graph = make<tg::graph>();
    auto eager = make<tg::eager>();
    // Keras: 3 of 4 heads dim + heads dim, and heads dim 4 + 4
    const std::string summary = graph.summary();
    CAPTURE(summary);
    CHECK(summary.find("look (multi_head_attention)  [?, ?, 4]              118\n") != std::string::npos);
    train_alike(graph, eager, {5, 4, 3}, [](int size, std::uint64_t seed) {
        return std::pair{noise<double>({size, 7 - size, 4}, seed), noise<double>({size, 2}, seed)};
    });
    check_slopes(graph, eager, noise<double>({3, 5, 4}, 1), noise<double>({3, 2}, 2));
}

} // namespace attention_test
