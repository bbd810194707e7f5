#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/nn/mixed_precision.hpp>
#include <tapegraph/nn/sequential.hpp>

#include <nn/layer_bench.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace masking_test {

using namespace nn_test;

/// Masks that flow from an embedding: Keras 3's numbers (torch backend), padding that changes nothing, both modes.

namespace {

/// Keras's weights were these, number by number in the order given.
void fill_as_keras(tg::variable_list& variables, const std::vector<std::string>& paths) {
    for (std::size_t n = 0; n < paths.size(); ++n) {
        tg::variable& v = variables[paths[n]];
        auto values = tg::tensor<double>::uninitialized(v.shape());
        for (std::int64_t k = 0; k < values.size(); ++k)
            values.mutable_data()[k] = 0.4 * std::sin(0.7 * static_cast<double>(k) + static_cast<double>(n));
        v.assign(values);
    }
}

// A model of doubles; indices are cast.
const tg::tensor<double> words{{3, 1, 4, 0, 0}, {2, 0, 5, 1, 3}, {0, 0, 0, 0, 0}, {5, 2, 0, 0, 0}};
const tg::tensor<std::int32_t> tags{{0, 1, 2, 0, 0}, {1, 1, 2, 0, 2}, {1, 2, 0, 1, 2}, {2, 0, 1, 1, 1}};

struct tagger {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::embedding(scope / "words", x, {.input_dim = 6, .output_dim = 3}, tg::mask_zero);
        h = tg::dropout(scope / "drop", h, {.rate = rate});
        h = tg::lstm(scope / "lstm", h, {.units = 4, .return_sequences = true});
        h = tg::layer_normalization(scope / "norm", h);
        return tg::dense(scope / "tag", tanh(h), {.units = 3});
    }
    static constexpr double rate = 0;
};
struct dropping_tagger {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::embedding(scope / "words", x, {.input_dim = 6, .output_dim = 3}, tg::mask_zero);
        h = tg::dropout(scope / "drop", h, {.rate = 0.5});
        h = tg::stacked(scope / "two", h,
                        std::tuple{tg::gru_layer_options{.units = 4},
                                   tg::lstm_layer_options{.units = 4, .return_sequences = true}});
        return tg::outputs{tg::output<"tags">(tg::dense(scope / "tag", h + h, {.units = 3})),
                           tg::output<"mean">(tg::dense(scope / "all", tg::global_average_pooling1d(h), {.units = 1}))};
    }
};
const std::vector<std::string> tagger_paths{"words/embeddings", "lstm/kernel", "lstm/recurrent_kernel",
                                            "lstm/bias",        "norm/gamma",  "norm/beta",
                                            "tag/kernel",       "tag/bias"};
using word_spec = tg::spec<double, tg::dyn, tg::dyn>;

struct looker {
    constexpr auto operator()(auto scope, auto x) const {
        const auto e = tg::embedding(scope / "words", x, {.input_dim = 6, .output_dim = 4}, tg::mask_zero);
        const auto h =
            tg::bidirectional(scope / "both", e, tg::gru_layer_options{.units = 3, .return_sequences = true});
        const auto a = tg::multi_head_attention(scope / "look", h, e, {.num_heads = 2, .key_dim = 3});
        return tg::dense(scope / "score", tg::global_average_pooling1d(h + a), {.units = 1});
    }
};
const std::vector<std::string> looker_paths{"words/embeddings",
                                            "both/forward_gru/kernel",
                                            "both/forward_gru/recurrent_kernel",
                                            "both/forward_gru/bias",
                                            "both/backward_gru/kernel",
                                            "both/backward_gru/recurrent_kernel",
                                            "both/backward_gru/bias",
                                            "look/query/kernel",
                                            "look/query/bias",
                                            "look/key/kernel",
                                            "look/key/bias",
                                            "look/value/kernel",
                                            "look/value/bias",
                                            "look/attention_output/kernel",
                                            "look/attention_output/bias",
                                            "score/kernel",
                                            "score/bias"};

struct stepper {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::masking(scope / "mask", x, {.mask_value = -1});
        auto deep =
            tg::time_distributed(scope / "each", h, [](auto s, auto y) { return tg::dense(s, y, {.units = 3}); });
        const auto last = tg::simple_rnn(scope / "rnn", deep, {.units = 3});
        return tg::dense(scope / "out", last, {.units = 2});
    }
};

tg::data::dataset tagged_words() {
    tg::data::dataset set;
    set.add("words", words.to_vector(), {5})
        .add("tags", tags.to_vector(), {5})
        .add("sample_weight", std::vector<double>(4, 1));
    return set;
}

// Sums of some hundred products near one.
constexpr double tolerance = 1e-12;
// Keras's torch backend multiplies matrices in float, whatever the weights are.
constexpr double tolerance_of_keras = 3e-7;
void check_near(const tg::tensor<double>& x, const std::vector<double>& wanted) {
    REQUIRE(x.size() == static_cast<std::int64_t>(wanted.size()));
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(x.data()[i] - wanted[i]) < tolerance_of_keras);
}

} // namespace

namespace {
template <class Mode>
auto compiled_tagger() {
    return tg::compile<Mode>(tagger{}, word_spec{}, tg::weighted{tg::sparse_softmax_cross_entropy{}}, tg::adam{},
                             tg::metrics{tg::sparse_top_k_categorical_accuracy<2>{}});
}
} // namespace

TEST_CASE_TEMPLATE("masks: a tagger's loss, accuracy, metrics and gradients are Keras's", Mode, tg::graph, tg::eager) {
    auto model = compiled_tagger<Mode>();
    fill_as_keras(model.variables(), tagger_paths);
    const tg::tensor<double> ones{1, 1, 1, 1};
    const auto result = model.evaluate(tagged_words());
    CHECK(std::abs(result.loss - 1.095363128942874) < tolerance_of_keras);
    CHECK(result.accuracy == doctest::Approx(4. / 9)); // of 9 steps that count
    CHECK(result["sparse_top_k_categorical_accuracy"] == doctest::Approx(6. / 9));
    // Weights of records multiply, and are not what is divided by.
    CHECK(std::abs(model.evaluate(words, tags, tg::tensor<double>{1, 2, 0.5, 3}).loss - 2.077314402962682) <
          tolerance_of_keras);
    const auto y = model.predict(words);
    const tg::tensor<double> first = y(tg::all, {0, 2});
    check_near(tg::gather(first, tg::tensor<std::int32_t>{0, 1, 3}),
               {0.12102916421438331, 0.1935859180472601, 0.17509625492957182, 0.09137738825822944, 0.19494596193058378,
                0.20682838199999876, 0.09501878501917, 0.18590384791118986, 0.18935541449454374, 0.09501878501917,
                0.18590384791118986, 0.18935541449454374, 0.09517505349660987, 0.18585816095096952, 0.1891292744722659,
                0.08290125014330024, 0.18219672212822324, 0.1958022379722888});
    const tg::gradient_list slopes = model.gradients(words, tags, ones);
    const double squares[]{4.064479152265815e-05, 0.00025726709693341674, 3.284457643028335e-05, 0.0005046390628395495,
                           0.0008235528336391152, 0.0005565929606773838,  0.01838602884687625,   0.024732764846921367};
    for (std::size_t n = 0; n < tagger_paths.size(); ++n) {
        CAPTURE(tagger_paths[n]);
        const tg::tensor<double> g(slopes[tagger_paths[n]]);
        CHECK(sum(square(g)).item() == doctest::Approx(squares[n]).epsilon(1e-5)); // of products of such numbers
    }
}

TEST_CASE_TEMPLATE("masks: both directions, attention and the mean over time are Keras's", Mode, tg::graph, tg::eager) {
    auto model = tg::compile<Mode>(looker{}, word_spec{}, tg::mean_squared_error{}, tg::sgd{});
    fill_as_keras(model.variables(), looker_paths);
    const auto y = model.predict(tg::gather(words, tg::tensor<std::int32_t>{0, 1, 3}));
    check_near(y, {0.4922556607531023, 0.4420900671289873, 0.3498989074037981});
    CHECK(std::isfinite(model.predict(words).data()[2])); // of padding alone
}

TEST_CASE_TEMPLATE("masks: of values, through time_distributed, used up by a last step", Mode, tg::graph, tg::eager) {
    auto model =
        tg::compile<Mode>(stepper{}, tg::spec<double, tg::dyn, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{});
    fill_as_keras(model.variables(), {"each/kernel", "each/bias", "rnn/kernel", "rnn/recurrent_kernel", "rnn/bias",
                                      "out/kernel", "out/bias"});
    const tg::tensor<double> x{{{1, 2}, {-1, -1}, {0.5, -1}, {3, 1}}, {{-1, -1}, {-1, -1}, {2, 1}, {-1, -1}}};
    check_near(model.predict(x),
               {-0.03942854951693989, 0.07770395733755883, -0.10123833518102146, 0.02043511428278741});
}

TEST_CASE_TEMPLATE("masks: padding changes nothing", Mode, tg::graph, tg::eager) {
    const tg::tensor<double> bare{{3, 1, 4}, {5, 2, 1}}, padded{{3, 1, 4, 0, 0, 0, 0}, {5, 2, 1, 0, 0, 0, 0}};
    const tg::tensor<std::int32_t> labels{{0, 1, 2}, {2, 0, 1}}, more{{0, 1, 2, 1, 1, 2, 0}, {2, 0, 1, 0, 0, 0, 0}};
    auto one = compiled_tagger<Mode>(), two = compiled_tagger<Mode>();
    const tg::tensor<double> ones{1, 1};
    for (int step = 0; step < 5; ++step) {
        const auto a = one.train_on_batch(bare, labels, ones);
        const auto b = two.train_on_batch(padded, more, ones);
        CHECK(std::abs(a.loss - b.loss) < tolerance); // sums over other numbers of terms
        CHECK(a.accuracy == doctest::Approx(b.accuracy));
    }
    for (const tg::variable& v : one.variables()) {
        CAPTURE(v.path());
        const tg::tensor<double> x = v.value<double>(), z = two.variables()[v.path()].template value<double>();
        // Adam divides by the root of a mean square: gradients of 1e-17 where a derivative is 0 become steps.
        CHECK(max(abs(x - z)).item() < 1e-6);
    }
    auto a = tg::compile<Mode>(looker{}, word_spec{}, tg::mean_squared_error{}, tg::sgd{});
    const auto y = a.predict(bare), z = a.predict(padded);
    CHECK(max(abs(y - z)).item() < tolerance);
}

TEST_CASE("masks: named outputs, and the same bits in both modes") {
    const auto losses =
        tg::losses{tg::on<"tags">(tg::sparse_softmax_cross_entropy{}), tg::on<"mean">(tg::mean_squared_error{})};
    const auto measured = tg::metrics{tg::on<"tags">(tg::sparse_categorical_accuracy{})};
    auto a = tg::compile<tg::graph>(dropping_tagger{}, word_spec{}, losses, tg::adam{}, measured);
    auto b = tg::compile<tg::eager>(dropping_tagger{}, word_spec{}, losses, tg::adam{}, measured);
    const tg::tensor<double> goal = noise<double>({4, 1}, 3);
    for (int step = 0; step < 3; ++step)
        CHECK(a.train_on_batch(words, tags, goal).loss == b.train_on_batch(words, tags, goal).loss);
    for (const tg::variable& v : a.variables())
        CHECK(same_bits(v.value<double>(), b.variables()[v.path()].value<double>()));
    tg::data::dataset set;
    set.add("words", words.to_vector(), {5}).add("tags", tags.to_vector(), {5}).add("mean", goal.to_vector(), {1});
    const auto x = a.evaluate(set), y = b.evaluate(set);
    CHECK(x["tags_loss"] == y["tags_loss"]);
    CHECK(x["tags_accuracy"] == doctest::Approx(x["tags_sparse_categorical_accuracy"]));
    CHECK(x["tags_accuracy"] == y["tags_accuracy"]);
    CHECK(same_bits(a.predict(words).get<"tags">(), b.predict(words).get<"tags">()));
}

TEST_CASE("masks: formulas, pooling and means by hand") {
    const tg::tensor<double> x{{{1, -2}, {3, 4}, {100, -100}}, {{5, 6}, {7, 8}, {9, 10}}};
    const tg::tensor<bool> one{{true, true, false}, {true, true, true}}, two{{true, false, false}, {true, false, true}};
    const auto a = tg::with_mask(x, one), b = tg::with_mask(x, two);
    const auto both = tg::eval(relu(a) + 2 * b - x);
    CHECK(both.value(1, 2, 0) == 9 + 18 - 9);
    CHECK(both.value(0, 1, 0) == 3 + 0 - 3); // b is 0 where it does not count
    CHECK(both.mask.to_vector() == std::vector<bool>{true, false, false, true, false, true});
    CHECK(tg::eval(a.map([](auto h) { return clip(h, 0, 1); }) * a).mask.to_vector() == one.to_vector());
    CHECK(tg::global_average_pooling1d(a).to_vector() == std::vector<double>{2, 1, 7, 8});
    CHECK(tg::global_max_pooling1d(a).to_vector() == std::vector<double>{3, 4, 9, 10});
    const auto none = tg::with_mask(x, tg::tensor<bool>{{false, false, false}, {true, true, true}});
    CHECK(tg::global_average_pooling1d(none).to_vector() == std::vector<double>{0, 0, 7, 8});
    CHECK(tg::global_max_pooling1d(none).data()[0] == -std::numeric_limits<double>::infinity());
    CHECK(tg::masked_mean(sum(x, -1), a).item() == (-1 + 7 + 11 + 15 + 19) / 5.);
    CHECK(tg::masked_mean(sum(x, -1), tg::with_mask(x, tg::zeros<bool>({2, 3}))).item() == 0);
    CHECK(softmax(a, -1).mask.to_vector() == one.to_vector());
}

TEST_CASE("masks: states, directions and chains") {
    layer_bench bench;
    const auto scope = bench.scope(false);
    const tg::tensor<double> x = noise<double>({2, 4, 3}, 9);
    const tg::tensor<bool> counts{{true, true, false, false}, {true, true, true, false}};
    const auto given = tg::with_mask(x, counts);
    const auto [output, hidden, cell] = tg::lstm_with_state(scope / "a", given, {.units = 2, .return_sequences = true});
    CHECK(output.has_mask);
    CHECK(output.value(0, 3, 1) == hidden(0, 1));
    const auto backwards = tg::gru(scope / "b", output, {.units = 2, .return_sequences = true, .go_backwards = true});
    CHECK(backwards.mask.to_vector() == std::vector<bool>{false, false, true, true, false, true, true, true});
    const auto last = tg::gru(scope / "c", backwards, {.units = 2});
    CHECK(!last.has_mask);
    const auto after = tg::dense(scope / "d", last, {.units = 1});
    CHECK(!after.has_mask);
    CHECK(after.value.shape().rank() == 2);
}

TEST_CASE("masks: an output without time") {
    const auto x = tg::with_mask(tg::tensor<double>{1, 2}, tg::tensor<bool>{{true}, {false}});
    CHECK_THROWS_WITH_AS(tg::masked_mean(x.value, x), doctest::Contains("mask: it has more axes than what it masks"),
                         tg::shape_error);
}

TEST_CASE_TEMPLATE("masks: in a chain and with mixed precision", Mode, tg::graph, tg::eager) {
    constexpr tg::sequential chain{
        [](auto scope, auto x) { return tg::embedding(scope, x, {.input_dim = 6, .output_dim = 3}, tg::mask_zero); },
        [](auto scope, auto x) { return tg::lstm(scope, x, {.units = 4, .return_sequences = true}); },
        [](auto scope, auto x) { return tg::dense(scope, x, {.units = 3}); }};
    auto model = tg::compile<Mode>(tg::mixed<tg::bfloat16>(chain), tg::spec<std::int32_t, tg::dyn, 5>{},
                                   tg::sparse_softmax_cross_entropy{}, tg::adam{});
    const tg::tensor<std::int32_t> indices = tg::cast<std::int32_t>(words);
    const double before = model.evaluate(indices, tags).loss;
    for (int step = 0; step < 5; ++step) model.train_on_batch(indices, tags);
    CHECK(model.evaluate(indices, tags).loss < before);
    const tg::tensor<std::int32_t> other{{0, 1, 2, 2, 1}, {1, 2, 2, 0, 2}, {0, 0, 0, 0, 0}, {2, 0, 2, 2, 2}};
    CHECK(model.evaluate(indices, other).loss == model.evaluate(indices, tags).loss); // labels of padding do not count
}

} // namespace masking_test
