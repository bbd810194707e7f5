#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace tg = tapegraph;
namespace data = tapegraph::data;

namespace pipeline_fit_test {

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dropout(scope / "drop", tanh(tg::dense(scope / "hidden", x, {.units = 4})), {.rate = 0.3});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};

template <class Mode>
auto make() {
    return tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 2>{}, tg::sparse_softmax_cross_entropy{},
                             tg::sgd{.learning_rate = 0.1f}, {.seed = 3});
}

constexpr int count = 23;
std::array<float, 2> image_of(std::int64_t i) { return {static_cast<float>(i % 7) - 3, static_cast<float>(i % 5) / 4}; }
std::int32_t label_of(std::int64_t i) { return static_cast<std::int32_t>(i * i % 3); }

/// The same records in columns.
data::dataset arrays() {
    std::vector<float> x;
    std::vector<std::int32_t> y;
    for (std::int64_t i = 0; i < count; ++i) {
        for (const float v : image_of(i)) x.push_back(v);
        y.push_back(label_of(i));
    }
    data::dataset set;
    set.add("x", x, {2}).add("label", y);
    return set;
}
auto records(int threads) {
    return data::range(count).shuffle(3).map([](std::int64_t i) { return std::tuple(image_of(i), label_of(i)); },
                                             {.threads = threads});
}
/// Nobody knows how many.
auto stream(int threads) {
    return records(threads).filter([](const auto&, const auto&) { return true; });
}

template <class Model>
std::vector<std::vector<float>> weights_of(const Model& m) {
    std::vector<std::vector<float>> all;
    for (const auto& v : m.variables()) all.push_back(v.template value<float>().to_vector());
    return all;
}
std::vector<double> losses(const tg::history& h) {
    std::vector<double> all;
    for (const auto& e : h.epochs) all.push_back(e.loss);
    return all;
}

} // namespace

TEST_CASE_TEMPLATE("a pipeline trains as the arrays do, bit for bit", Mode, tg::eager, tg::graph) {
    auto reference = make<Mode>();
    const auto expected = reference.fit(arrays(), {.epochs = 3, .batch_size = 4, .verbose = 0});
    const auto same = [&](const auto& set, const tg::fit_options& options) {
        auto m = make<Mode>();
        const auto got = m.fit(set, options);
        CHECK(losses(got) == losses(expected));
        CHECK(weights_of(m) == weights_of(reference));
        CHECK(got.epochs[2].steps == 6);
        CHECK(got.epochs[2].records == count);
    };
    const tg::fit_options options{.epochs = 3, .batch_size = 4, .verbose = 0};
    same(records(0), options); // fit makes the batches
    same(records(2), options);
    same(records(3).batch(4).prefetch(2), {.epochs = 3, .verbose = 0});
    same(stream(2).batch(4), {.epochs = 3, .verbose = 0, .prefetch = 0});
    same(stream(0), options);
}

TEST_CASE_TEMPLATE("what is measured and predicted", Mode, tg::eager, tg::graph) {
    auto m = make<Mode>();
    data::dataset plain = arrays();
    const auto unshuffled = data::range(count).map([](std::int64_t i) { return std::tuple(image_of(i), label_of(i)); });
    const auto expected = m.evaluate(plain, 5);
    for (const auto& got : {m.evaluate(unshuffled, 5), m.evaluate(unshuffled.batch(5).prefetch(1), 999),
                            m.evaluate(unshuffled.filter([](const auto&) { return true; }), 5)}) {
        CHECK(got.loss == expected.loss);
        CHECK(got.accuracy == expected.accuracy);
    }
    const auto rows = m.predict(plain, 5);
    for (const auto& got : {m.predict(unshuffled, 5), m.predict(unshuffled.batch(5), 999),
                            m.predict(unshuffled.batch(5).filter([](const auto&) { return true; }), 7)}) {
        REQUIRE(got.shape() == rows.shape());
        CHECK(got.to_vector() == rows.to_vector());
    }
    const auto h =
        m.fit(unshuffled, {.epochs = 2, .batch_size = 8, .validation_data = unshuffled.batch(5), .verbose = 0});
    CHECK(h.epochs[1].validation_loss == m.evaluate(plain, 5).loss);
}

TEST_CASE("columns by name") {
    auto m = tg::compile<tg::eager>(network{}, tg::inputs{tg::input<"x">(tg::spec<float, tg::dyn, 2>{})},
                                    tg::sparse_softmax_cross_entropy{}, tg::sgd{}, {.seed = 3});
    const auto set = data::range(count).map([](std::int64_t i) { return std::tuple(label_of(i), image_of(i)); });
    CHECK(m.evaluate(set.as<"label", "x">()).loss == m.evaluate(arrays()).loss);
    CHECK_THROWS_WITH_AS(m.evaluate(set.as<"label", "y">()), "data set: no column 'x', there are 'label', 'y'",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(m.evaluate(set.as<"label">()), "data set: 1 names are given for 2 columns",
                         tg::argument_error);
}

namespace {
/// Stops within an epoch.
struct stop_at {
    std::int64_t step = 0;
    void on_batch_end(tg::training_state& s) {
        if (s.step == step) s.interrupt("the test");
    }
};
} // namespace

TEST_CASE_TEMPLATE("a run that was stopped anywhere resumes exactly", Mode, tg::eager, tg::graph) {
    const auto run = [](const auto& set, const tg::fit_options& o) {
        auto reference = make<Mode>();
        const auto expected = reference.fit(set, o);
        for (std::int64_t step = 1; step <= 12; ++step) {
            auto m = make<Mode>();
            m.fit(set, o, stop_at{step});
            tg::fit_options more = o;
            more.resume = true;
            const auto got = m.fit(set, more);
            CHECK(losses(got) == losses(expected));
            CHECK(weights_of(m) == weights_of(reference));
        }
    };
    run(records(2), {.epochs = 2, .batch_size = 4, .verbose = 0});
    run(stream(2).shuffle(5, {.buffer = 6}).batch(4), {.epochs = 2, .verbose = 0});
}

TEST_CASE("an epoch is a number of steps, where the set has no end") {
    auto m = make<tg::eager>();
    const auto set = records(0).repeat().batch(4);
    const auto h = m.fit(set, {.epochs = 3, .steps_per_epoch = 5, .verbose = 0});
    CHECK(h.epochs.size() == 3);
    CHECK(h.epochs[2].steps == 5);
    CHECK(h.epochs[2].records == 20);
    // Each epoch goes on where the one before stopped.
    auto whole = make<tg::eager>();
    whole.fit(set.take(15), {.verbose = 0});
    CHECK(weights_of(m) == weights_of(whole));
    auto stopped = make<tg::eager>();
    stopped.fit(set, {.epochs = 3, .steps_per_epoch = 5, .verbose = 0}, stop_at{7});
    stopped.fit(set, {.epochs = 3, .steps_per_epoch = 5, .verbose = 0, .resume = true});
    CHECK(weights_of(stopped) == weights_of(whole));
    CHECK_THROWS_WITH_AS(m.fit(set, {.verbose = 0}),
                         "fit: the data set has no end; say how many steps_per_epoch it has", tg::argument_error);
    CHECK_THROWS_WITH_AS(m.evaluate(set), "evaluate: the data set has no end; take(n) of it, or say validation_steps",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(m.predict(set), "predict: the data set has no end; take(n) of it", tg::argument_error);
}

TEST_CASE("what cannot be") {
    auto m = make<tg::eager>();
    const auto set = records(0);
    CHECK_THROWS_WITH_AS(
        m.fit(set, {.validation_split = 0.5, .verbose = 0}),
        "fit: validation_split of a pipeline, whose order is its own; give set.take(n) as validation_data "
        "and train on set.skip(n)",
        tg::argument_error);
    CHECK_THROWS_WITH_AS(m.fit(set.take(0), {.verbose = 0}),
                         "data set: no records; the pipeline ends before its first one", tg::argument_error);
    data::dataset d = set;
    CHECK(d.size() == count);
    CHECK_THROWS_WITH_AS(
        d.shuffle(1), "dataset.shuffle: the set is a pipeline, whose records have no numbers; say it in the pipeline",
        tg::argument_error);
    CHECK_THROWS_AS(d.take(1), tg::argument_error);
    CHECK_THROWS_AS(d.add("more", std::vector<float>(23)), tg::argument_error);
    CHECK_THROWS_WITH_AS(data::loader{d}, "data set: no batch size; call batch(n)", tg::argument_error);
}

} // namespace pipeline_fit_test
