#include <tapegraph/graph/explain.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/grouped_attention.hpp>
#include <tapegraph/session/session.hpp>

#include <nn/layer_bench.hpp>

namespace generation_test {

/// A language model trained on whole sequences generates word by word from a cache what it generates from whole sequences,
/// in both modes, and so does a session that keeps the cache in variables.

using namespace nn_test;
using std::int64_t;

namespace {

constexpr tg::grouped_query_attention_options look{
    .head_dim = 4, .num_query_heads = 2, .num_key_value_heads = 1, .use_causal_mask = true, .rotary_wavelength = 100};

constexpr auto scores(auto scope, auto words, const auto& attend) {
    auto h = tg::embedding<double>(scope / "words", words, {.input_dim = 5, .output_dim = 6});
    h = tg::eval(h + attend(scope / "look", tg::rms_normalization(scope / "norm", h)));
    return tg::dense(scope / "score", h, {.units = 5});
}
struct whole {
    constexpr auto operator()(auto scope, auto words) const {
        return scores(scope, words, [](auto s, auto h) { return tg::grouped_query_attention(s, h, h, look); });
    }
};
template <class... InPlace>
struct step {
    constexpr auto operator()(auto scope, auto words, auto keys, auto values, auto position) const {
        tg::attention_cache cache{keys, values};
        const auto y = scores(scope, words, [&](auto s, auto h) {
            const auto next = tg::cached_attention(s, h, cache, position, look, InPlace{}...);
            cache = next.cache;
            return next.output;
        });
        return tg::outputs{tg::output<"scores">(y), tg::output<"keys">(cache.keys), tg::output<"values">(cache.values)};
    }
};
constexpr auto step_specs() {
    using cache = tg::spec<double, tg::dyn, 10, 1, 4>;
    return tg::inputs{tg::input<"words">(tg::spec<std::int32_t, tg::dyn, tg::dyn>{}), tg::input<"keys">(cache{}),
                      tg::input<"values">(cache{}), tg::input<"position">(tg::spec<std::int32_t>{})};
}
/// The same with the cache in variables: of two records, or with a place for each.
template <std::int64_t Places>
struct keeping {
    constexpr auto operator()(auto scope) const {
        const auto words = scope.template placeholder<std::int32_t>("words", {2, -1});
        const auto place =
            scope.template placeholder<std::int32_t>("position", Places == 0 ? tg::shape{} : tg::shape{Places});
        const auto zeros = [&](const char* name) {
            return scope.template variable<double>(
                name, {2, 10, 1, 4}, {.initializer = tg::init::zeros{}, .trainable = false, .collection = "local"});
        };
        const auto keys = zeros("kept_keys"), values = zeros("kept_values");
        tg::attention_cache cache{keys, values};
        const auto y = scores(scope, words, [&](auto s, auto h) {
            const auto next = tg::cached_attention(s, h, cache, place, look, tg::write_in_place);
            cache = next.cache;
            return next.output;
        });
        return tg::fetches{tg::fetch("scores", y), tg::fetch("kept", tg::group(tg::assign(keys, cache.keys),
                                                                               tg::assign(values, cache.values)))};
    }
};

/// The likeliest word to follow the last step, [batch, 1].
tg::tensor<std::int32_t> likeliest(const tg::tensor<double>& scores) {
    return tg::eval(tg::cast<std::int32_t>(tg::argmax(tg::slice(scores, {tg::all, {-1}}), -1)));
}

} // namespace

TEST_CASE("generation from a cache is generation by whole sequences") {
    auto model =
        tg::compile<tg::graph>(whole{}, tg::spec<double, tg::dyn, tg::dyn>{}, tg::sparse_softmax_cross_entropy{},
                               tg::adam{.learning_rate = 0.1}, {.seed = 2});
    for (std::uint64_t i = 0; i < 3; ++i)
        model.train_on_batch(tg::tensor<double>(tg::cast<double>(tg::reshape(classes(24, 5, i), {4, 6}))),
                             tg::tensor<std::int32_t>(tg::reshape(classes(24, 5, i + 9), {4, 6})));
    auto graph = tg::compile<tg::graph>(step<>{}, step_specs());
    auto eager = tg::compile<tg::eager>(step<>{}, step_specs());
    // The same where the cache is an input, which stays as it is.
    auto graph_in_place = tg::compile<tg::graph>(step<tg::write_in_place_tag>{}, step_specs());
    auto eager_in_place = tg::compile<tg::eager>(step<tg::write_in_place_tag>{}, step_specs());
    REQUIRE(graph.variables().size() == 12);
    for (auto* const stepper :
         {&graph.variables(), &eager.variables(), &graph_in_place.variables(), &eager_in_place.variables()})
        for (tg::variable& v : *stepper) v.assign(model.variables()[v.path()].data());

    tg::tensor<std::int32_t> words = tg::reshape(classes(6, 5, 4), {2, 3}), written = words;
    auto keys = tg::zeros<double>({2, 10, 1, 4}), values = keys;
    for (std::int32_t position = 0, n = 3; position < 9; position += n, n = 1) {
        CAPTURE(position);
        const tg::tensor<std::int32_t> place = position;
        const auto [y, k, v] = graph.predict(words, keys, values, place);
        const auto [eager_y, eager_k, eager_v] = eager.predict(words, keys, values, place);
        CHECK(same_bits(y, eager_y));
        CHECK(same_bits(k, eager_k));
        CHECK(same_bits(v, eager_v));
        const auto written_alike = [&](const auto& other) {
            const auto [other_y, other_k, other_v] = other;
            return same_bits(y, other_y) && same_bits(k, other_k) && same_bits(v, other_v);
        };
        CHECK(written_alike(graph_in_place.predict(words, keys, values, place)));
        CHECK(written_alike(eager_in_place.predict(words, keys, values, place)));
        keys = k, values = v;
        const tg::tensor<double> all = model.predict(tg::tensor<double>(tg::cast<double>(written)));
        const tg::tensor<double> last = tg::slice(all, {tg::all, {-1}}), mine = tg::slice(y, {tg::all, {-1}});
        for (int64_t i = 0; i < last.size(); ++i) // sums of a few products of numbers near one
            CHECK(std::abs(last.data()[i] - mine.data()[i]) < 1e-13);
        words = likeliest(y);
        written = tg::concat(written, words, 1);
    }
    CHECK(written.shape() == tg::shape{2, 10});
}

TEST_CASE("a session that writes into its cache generates the same bits") {
    auto reference = tg::compile<tg::graph>(step<>{}, step_specs(), {.seed = 5});
    tg::session<keeping<0>> session;
    tg::session<keeping<2>> each;
    const auto load = [&](auto& into) {
        into.initialize();
        for (const tg::variable& v : reference.variables()) into.variables()[v.path()].assign(v.data());
    };
    load(session), load(each);
    const std::string plan = tg::explain(session.view<"scores", "kept">(), {.details = true});
    CHECK(plan.find("in place") != plan.npos);
    CHECK(plan.find("copied at the end") == plan.npos);

    tg::tensor<std::int32_t> words = tg::reshape(classes(6, 5, 4), {2, 3});
    auto keys = tg::zeros<double>({2, 10, 1, 4}), values = keys;
    for (std::int32_t position = 0, n = 3; position < 10; position += n, n = 1) {
        CAPTURE(position);
        const tg::tensor<std::int32_t> place = position, places{position, position};
        const auto [y, k, v] = reference.predict(words, keys, values, place);
        const tg::tensor<double> kept = session.run<"scores", "kept">({{"words", words}, {"position", place}});
        CHECK(same_bits(y, kept));
        CHECK(same_bits(k, session.variables()["kept_keys"].value<double>()));
        CHECK(same_bits(v, session.variables()["kept_values"].value<double>()));
        const tg::tensor<double> of_each = each.run<"scores", "kept">({{"words", words}, {"position", places}});
        CHECK(same_bits(y, of_each));
        keys = k, values = v;
        words = likeliest(y);
    }
    // Nothing has room beyond the capacity, nor in the next record's part of it.
    const tg::tensor<std::int32_t> full = 10, before = -1;
    CHECK_THROWS_AS((session.run<"kept">({{"words", words}, {"position", full}})), tg::range_error);
    CHECK_THROWS_AS((session.run<"kept">({{"words", words}, {"position", before}})), tg::range_error);
    CHECK(same_bits(session.variables()["kept_keys"].value<double>(), keys));
}

} // namespace generation_test
