#include <tapegraph/cluster/traced_sharded.hpp>
#include <tapegraph/distributed.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/synchronized_normalization.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <nn/models.hpp>
#include <support/messages.hpp>

#include <string>
#include <vector>

namespace traced_sharded_test {

/// Steps that are cut into shards, by graphs that are made when the program runs: the bits of graph mode, on any number of ranks.

using namespace nn_test;
using std::int64_t;
namespace td = tg::distributed;

namespace {

/// Gradients by rows, moving averages, random numbers.
struct words_and_norm {
    int units = 3;

    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::flatten(tg::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4, .sparse = true}));
        h = tg::dropout(scope / "drop", tg::batch_normalization(scope / "norm", h), {.rate = 0.2});
        return tg::dense(scope / "score", h, {.units = units});
    }
};
struct fixed_words {
    constexpr auto operator()(auto scope, auto x) const { return words_and_norm{}(scope, x); }
};
tg::data::dataset texts(int64_t count) {
    tg::data::dataset set;
    set.add("words", classes(count * 5, 11, 1).to_vector(), {5}).add("label", classes(count, 3, 2).to_vector());
    return set;
}
template <class Mode, class Model, class Optimizer>
auto made(const Model& model, const Optimizer& optimizer, td::exchange* ranks = nullptr, int shards = 8) {
    return tg::compile<Mode>(model, tg::spec<std::int32_t, tg::dyn, 5>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
                             tg::metrics{tg::sparse_categorical_accuracy{}},
                             tg::sharded{.shards = shards, .options = {.seed = 4}, .ranks = ranks});
}
const tg::adam adam{.learning_rate = 0.01};

/// All variables and the history of a fit, as bytes. Batches of 16, 16, 16, 16 and 3: in the last one some shards, and with them
/// ranks, have no records.
template <class Model>
std::string trained(Model&& model) {
    const tg::history h = model.fit(texts(67), {.epochs = 3, .batch_size = 16, .verbose = 0});
    std::string all;
    const auto put = [&](const void* data, std::size_t bytes) { all.append(static_cast<const char*>(data), bytes); };
    for (const tg::epoch_result& e : h.epochs) {
        put(&e.loss, sizeof e.loss);
        put(&e.metrics[0].value, sizeof(double));
        put(&e.records, sizeof e.records);
    }
    for (const tg::variable& v : model.variables())
        if (!v.optimizer_state()) put(v.data().read(), v.data().outline_view().bytes());
    return all;
}

/// Sums over all shards within a step, penalties; the loss is scaled.
struct waiting {
    int hidden = 7;

    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = hidden, .kernel_regularizer = tg::regularizers::l2{0.05}});
        h = tanh(tg::batch_normalization(scope / "norm", h, {}, tg::synchronized));
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
struct fixed_waiting {
    constexpr auto operator()(auto scope, auto x) const { return waiting{}(scope, x); }
};
template <class Mode, class Model>
auto scaled(const Model& model, int shards) {
    return tg::compile<Mode>(model, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                             tg::chain{tg::loss_scaling{}, tg::sgd{.learning_rate = 0.1}},
                             tg::sharded{.shards = shards, .options = {.seed = 2}});
}

} // namespace

TEST_CASE("run-time graphs in shards: a fit has the bits of graph mode, on any number of ranks") {
    const thread_limit one(1); // ranks are threads already
    const std::string right = trained(made<tg::graph>(fixed_words{}, adam));
    CHECK(trained(made<tg::traced>(words_and_norm{}, adam)) == right);
    for (const int size : {2, 8}) {
        CAPTURE(size);
        std::vector<std::string> found(static_cast<std::size_t>(size));
        td::run_ranks(size, [&](td::exchange& ranks) {
            found[static_cast<std::size_t>(ranks.rank())] = trained(made<tg::traced>(words_and_norm{}, adam, &ranks));
        });
        for (const std::string& each : found) CHECK((each == right));
    }
}

TEST_CASE("run-time graphs in shards: ranks that keep slices of the optimizer's state have its bits") {
    const thread_limit one(1);
    const std::string right = trained(made<tg::traced>(words_and_norm{}, adam));
    std::vector<std::string> found(4);
    td::run_ranks(4, [&](td::exchange& ranks) {
        found[static_cast<std::size_t>(ranks.rank())] =
            trained(made<tg::traced>(words_and_norm{}, tg::zero_redundancy{adam}, &ranks));
    });
    for (const std::string& each : found) CHECK((each == right));
}

TEST_CASE("run-time graphs in shards: shards that wait for each other, a scaled loss, gradients between steps") {
    for (const int shards : {1, 4}) {
        CAPTURE(shards);
        auto compiled = scaled<tg::graph>(fixed_waiting{}, shards);
        auto traced = scaled<tg::traced>(waiting{}, shards);
        REQUIRE(first_difference(compiled, traced) == "");
        for (const int64_t size : {16, 7, 9}) {
            const auto x = noise<float>({size, 6}, 1);
            const auto y = classes(size, 3, 2);
            const tg::gradient_list a = compiled.gradients(x, y), b = traced.gradients(x, y);
            CHECK(a.loss == b.loss);
            CHECK(same_bits(tg::tensor<float>(a["hidden/kernel"]), tg::tensor<float>(b["hidden/kernel"])));
            CHECK(compiled.train_on_batch(x, y).loss == traced.train_on_batch(x, y).loss);
            CHECK(same_bits(compiled.predict(x), traced.predict(x)));
            CHECK(compiled.evaluate(x, y).loss == traced.evaluate(x, y).loss);
            CHECK(compiled.arena_bytes() == traced.arena_bytes());
        }
        CHECK(first_difference(compiled, traced) == "");
    }
}

TEST_CASE("run-time graphs in shards: what cannot be cut is refused") {
    auto model = scaled<tg::traced>(waiting{5}, 4);
    CHECK_THROWS_WITH_AS(model.train_on_batch(noise<float>({3, 6}, 1), classes(3, 3, 1)),
                         doctest::Contains("a batch of 3 records cannot be cut into 4 shards"), tg::argument_error);
    CHECK_THROWS_AS(scaled<tg::traced>(waiting{}, 3), tg::argument_error);
    const auto placed = [](auto scope, auto x) {
        const auto on = scope.with_device("/cpu:1");
        return tg::dense(scope / "out", x, {.units = 3});
    };
    CHECK_THROWS_WITH_AS(scaled<tg::traced>(placed, 2), doctest::Contains("with_device cannot place parts of it"),
                         tg::argument_error);
}

} // namespace traced_sharded_test
