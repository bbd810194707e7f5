#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/positions.hpp>
#include <tapegraph/nn/layers/sequence.hpp>

#include <nn/layer_bench.hpp>

namespace sequence_positions_test {

/// Positions, attention with shared heads and its cache, stacked recurrent layers: against loops in double, against one another, and
/// in both modes.

using namespace nn_test;
using std::int64_t;

namespace {

tg::tensor<std::int32_t> integers(const tg::shape& dims, const std::vector<std::int32_t>& values) {
    auto t = tg::tensor<std::int32_t>::uninitialized(dims);
    for (int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = values[static_cast<std::size_t>(i)];
    return t;
}

double largest_difference(const tg::tensor<double>& a, const tg::tensor<double>& b) {
    REQUIRE(a.shape() == b.shape());
    double largest = 0;
    for (int64_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.data()[i] - b.data()[i]));
    return largest;
}

} // namespace

TEST_CASE("rotary and sinusoidal positions are their formulas, from any place on") {
    // Angles near a thousand, which carry an error of a thousand epsilons.
    constexpr double tolerance = 1e-12;
    const auto x = noise<double>({2, 5, 3, 6}, 1);
    const std::vector<std::int32_t> starts{7, 1000};
    const tg::tensor<double> turned = tg::rotary_positions(x), shifted = tg::rotary_positions(x, integers({2}, starts));
    const tg::tensor<double> from_seven = tg::rotary_positions(x, integers({}, {7}), {.max_wavelength = 100});
    for (int64_t n = 0; n < 2; ++n)
        for (int64_t t = 0; t < 5; ++t)
            for (int64_t h = 0; h < 3; ++h)
                for (int64_t k = 0; k < 3; ++k) {
                    const auto check = [&](const tg::tensor<double>& y, double place, double wavelength) {
                        const double angle = place * std::pow(wavelength, -2.0 * static_cast<double>(k) / 6);
                        const double a = x(n, t, h, k), b = x(n, t, h, k + 3);
                        CHECK(std::abs(y(n, t, h, k) - (a * std::cos(angle) - b * std::sin(angle))) < tolerance);
                        CHECK(std::abs(y(n, t, h, k + 3) - (b * std::cos(angle) + a * std::sin(angle))) < tolerance);
                    };
                    check(turned, static_cast<double>(t), 10000);
                    check(shifted, static_cast<double>(t + starts[static_cast<std::size_t>(n)]), 10000);
                    check(from_seven, static_cast<double>(t + 7), 100);
                }
    const auto sequence = noise<double>({2, 4, 5}, 2); // an odd number of features
    const tg::tensor<double> waves = tg::sinusoidal_positions(sequence);
    const tg::tensor<double> later = tg::sinusoidal_positions(sequence, integers({2}, starts), {.max_wavelength = 50});
    REQUIRE(waves.shape() == tg::shape{1, 4, 5});
    REQUIRE(later.shape() == tg::shape{2, 4, 5});
    for (int64_t t = 0; t < 4; ++t)
        for (int64_t k = 0; k < 5; ++k) {
            const auto wave = [&](double place, double wavelength) {
                const double angle = place * std::pow(wavelength, -2.0 * static_cast<double>(k / 2) / 5);
                return k % 2 == 0 ? std::sin(angle) : std::cos(angle);
            };
            CHECK(std::abs(waves(0, t, k) - wave(static_cast<double>(t), 10000)) < tolerance);
            for (int64_t n = 0; n < 2; ++n)
                CHECK(std::abs(later(n, t, k) -
                               wave(static_cast<double>(t + starts[static_cast<std::size_t>(n)]), 50)) < tolerance);
        }
    CHECK_THROWS_WITH_AS(tg::rotary_positions(noise<double>({1, 2, 3}, 1)),
                         doctest::Contains("an even known number of features"), tg::shape_error);
}

TEST_CASE("cached attention, step by step, is causal attention over the whole sequence") {
    const tg::grouped_query_attention_options o{.head_dim = 4,
                                                .num_query_heads = 4,
                                                .num_key_value_heads = 2,
                                                .use_causal_mask = true,
                                                .rotary_wavelength = 100};
    const auto x = noise<double>({2, 6, 5}, 1);
    layer_bench b;
    tg::grouped_query_attention(b.scope() / "a", x, x, o);
    b.fill();
    const tg::tensor<double> whole = tg::grouped_query_attention(b.scope() / "a", x, x, o);
    // A prompt of three steps, then one at a time; the capacity is larger than the sequence.
    auto cache = tg::empty_attention_cache(x, 9, o);
    for (int64_t at = 0, n = 3; at < 6; at += n, n = 1) {
        const tg::tensor<double> part = tg::slice(x, {tg::all, {at, at + n}});
        const auto step =
            tg::cached_attention(b.scope(false) / "a", part, cache, integers({}, {static_cast<std::int32_t>(at)}), o);
        CHECK(largest_difference(step.output, tg::slice(whole, {tg::all, {at, at + n}})) < 1e-13);
        cache = step.cache;
    }
    // Each record at a place of its own: the second one is two steps behind.
    auto other = tg::empty_attention_cache(x, 6, o);
    for (std::int32_t t = 0; t < 6; ++t) {
        const std::int32_t late = std::max(t - 2, 0);
        const auto both = tg::concat(tg::slice(x, {{0, 1}, {t, t + 1}}), tg::slice(x, {{1, 2}, {late, late + 1}}), 0);
        const auto step = tg::cached_attention(b.scope(false) / "a", both, other, integers({2}, {t, late}), o);
        other = step.cache;
        for (int64_t k = 0; k < 5; ++k) {
            CHECK(std::abs(step.output(0, 0, k) - whole(0, t, k)) < 1e-13);
            CHECK(std::abs(step.output(1, 0, k) - whole(1, late, k)) < 1e-13);
        }
    }
    CHECK_THROWS_WITH_AS(tg::cached_attention(b.scope() / "a", x, tg::attention_cache{x, x}, integers({}, {0}), o),
                         doctest::Contains("keys and values must be [batch, capacity, num_key_value_heads, head_dim]"),
                         tg::argument_error);
}

TEST_CASE("cached attention uses the variables of multi_head_attention") {
    const auto x = noise<double>({1, 4, 3}, 1);
    layer_bench b;
    tg::multi_head_attention(b.scope() / "a", x, x, {.num_heads = 2, .key_dim = 3});
    b.fill();
    const tg::tensor<double> whole =
        tg::multi_head_attention(b.scope() / "a", x, x, {.num_heads = 2, .key_dim = 3, .use_causal_mask = true});
    const tg::grouped_query_attention_options o{.head_dim = 3, .num_query_heads = 2};
    const auto all = tg::cached_attention(b.scope() / "a", x, tg::empty_attention_cache(x, 4, o), integers({}, {0}), o);
    CHECK(b.variables.size() == 8);
    CHECK(largest_difference(all.output, whole) < 1e-13);
}

namespace {

/// Its second half goes through the cache in two calls, so that both modes run it and its derivative.
struct sequence_model {
    constexpr auto operator()(auto scope, auto ids) const { // [batch, 5]
        auto h = tg::token_and_position_embedding(scope / "words", ids,
                                                  {.vocabulary_size = 7, .sequence_length = 6, .embedding_dim = 4});
        h = tg::rms_normalization(scope / "norm", tg::eval(h + tg::sinusoidal_positions(h)));
        constexpr tg::grouped_query_attention_options o{.head_dim = 2,
                                                        .num_query_heads = 2,
                                                        .num_key_value_heads = 1,
                                                        .use_causal_mask = true,
                                                        .rotary_wavelength = 10};
        h = tg::grouped_query_attention(scope / "look", h, h, o);
        const auto first = slice(h, {tg::all, {0, 2}}), rest = slice(h, {tg::all, {2, 3}});
        const auto begun = tg::cached_attention(scope / "early", first, tg::empty_attention_cache(h, 3, o),
                                                tg::fill<std::int32_t>(h, {}, 0), o);
        const auto step = tg::cached_attention(scope / "late", rest, begun.cache, tg::fill<std::int32_t>(h, {}, 2), o);
        auto y = tg::stacked(scope / "steps", h,
                             std::tuple{tg::lstm_layer_options{.units = 3}, tg::gru_layer_options{.units = 2}});
        return tg::eval(
            y + tg::dense(scope / "score", tg::eval(squeeze(step.output, 1) + mean(begun.output, 1)), {.units = 2}));
    }
};

template <class Mode>
auto make() {
    return tg::compile<Mode>(sequence_model{}, tg::spec<double, tg::dyn, 5>{}, tg::mean_squared_error{},
                             tg::sgd{.learning_rate = 0.3}, {.seed = 5});
}

tg::tensor<double> words(int64_t size, std::uint64_t seed) {
    return tg::eval(floor(noise<double>({size, 5}, seed) * 3.5 + 3.5));
}

} // namespace

TEST_CASE("layers of sequences: both modes train alike, gradients are central differences") {
    auto graph = make<tg::graph>();
    auto eager = make<tg::eager>();
    const std::string summary = graph.summary();
    CAPTURE(summary);
    for (const char* row : {"words (token_and_position_embedding)", "norm (rms_normalization)",
                            "look (grouped_query_attention)", "early (cached_attention)", "steps (stacked)"})
        CHECK(summary.find(row) != std::string::npos);
    CHECK(graph.variables()["words/position_embedding/embeddings"].shape() == tg::shape{6, 4});
    CHECK(graph.variables()["steps/1/kernel"].shape() == tg::shape{3, 6});
    train_alike(graph, eager, {4, 3}, [](int size, std::uint64_t seed) {
        return std::pair{words(size, seed), noise<double>({size, 2}, seed)};
    });
    check_slopes(graph, eager, words(3, 1), noise<double>({3, 2}, 2));
}

} // namespace sequence_positions_test
