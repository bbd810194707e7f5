#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>

#include <cluster/error_on_ranks.hpp>
#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <string>

/// Models trained by several ranks, which are threads: as many as there are, the bits are those of one.

namespace ranks_test {

using namespace nn_test;
using distributed_test::error_on_ranks;
using std::int64_t;
namespace td = tg::distributed;

namespace {

struct words_and_norm {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::flatten(tg::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4, .sparse = true}));
        h = tg::dropout(scope / "drop", tg::batch_normalization(scope / "norm", h), {.rate = 0.2});
        return tg::dense(scope / "score", h, {.units = 3});
    }
};

tg::data::dataset texts(int64_t count) {
    tg::data::dataset set;
    set.add("words", classes(count * 5, 11, 1).to_vector(), {5}).add("label", classes(count, 3, 2).to_vector());
    return set;
}

template <class Mode>
auto made(td::exchange* ranks, int shards = 8) {
    return tg::compile<Mode>(words_and_norm{}, tg::spec<std::int32_t, tg::dyn, 5>{}, tg::sparse_softmax_cross_entropy{},
                             tg::adam{.learning_rate = 0.01}, tg::metrics{tg::sparse_categorical_accuracy{}},
                             tg::sharded{.shards = shards, .options = {.seed = 4}, .ranks = ranks});
}

struct outcome {
    std::string values; // of all variables and of the history
    bool operator==(const outcome&) const = default;
};
template <class Model>
outcome outcome_of(Model& model, const tg::history& h) {
    outcome o;
    const auto put = [&](const void* data, std::size_t bytes) {
        o.values.append(static_cast<const char*>(data), bytes);
    };
    for (const auto& v : model.variables()) put(v.data().read(), v.data().outline_view().bytes());
    for (const tg::epoch_result& e : h.epochs) {
        put(&e.loss, sizeof e.loss);
        put(&e.accuracy, sizeof e.accuracy);
        put(&e.metrics[0].value, sizeof(double));
        put(&e.records, sizeof e.records);
    }
    return o;
}

} // namespace

TEST_CASE("any number of ranks trains to the same bits") {
    const thread_limit one(1); // ranks are threads already
    // Batches of 16, 16, 16, 16 and 3: in the last one some shards, and with them ranks, have no records.
    const auto set = texts(67);
    const tg::fit_options options{.epochs = 4, .batch_size = 16, .verbose = 0};
    std::vector<outcome> all;
    const auto train = [&](auto mode) {
        using m = decltype(mode);
        auto alone = made<m>(nullptr);
        const auto history = alone.fit(set, options);
        CHECK(history.epochs.back().records == 67);
        const outcome expected = outcome_of(alone, history);
        all.push_back(expected);
        for (const int size : {1, 2, 4, 8}) {
            CAPTURE(size);
            std::vector<outcome> found(static_cast<std::size_t>(size));
            td::run_ranks(size, [&](td::exchange& ranks) {
                auto model = made<m>(&ranks);
                const auto h = model.fit(set, options);
                found[static_cast<std::size_t>(ranks.rank())] = outcome_of(model, h);
            });
            for (const outcome& each : found) CHECK(each == expected);
        }
    };
    train(tg::graph{});
    train(tg::eager{});
    CHECK(all[0] == all[1]);
}

TEST_CASE("a program without the loss's scale between two with it: each waits for its own sums") {
    const thread_limit one(1);
    const auto x = noise<float>({16, 6}, 1);
    const auto y = classes(16, 3, 2);
    const auto trained = [&](td::exchange* ranks) {
        auto model = tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                            tg::chain{tg::loss_scaling{}, tg::adam{.learning_rate = 0.01}},
                                            tg::sharded{.shards = 4, .options = {.seed = 4}, .ranks = ranks});
        std::string bits;
        for (int i = 0; i < 3; ++i) {
            model.train_on_batch(x, y);
            for (const tg::named_gradient& g : model.gradients(x, y))
                bits.append(static_cast<const char*>(g.value.read()), g.value.outline_view().bytes());
        }
        for (const auto& v : model.variables())
            bits.append(static_cast<const char*>(v.data().read()), v.data().outline_view().bytes());
        return bits;
    };
    const std::string expected = trained(nullptr);
    for (const int size : {1, 2, 4})
        td::run_ranks(size, [&](td::exchange& ranks) { CHECK(trained(&ranks) == expected); });
}

TEST_CASE("ranks that do not fit together are refused, on every rank alike") {
    const thread_limit one(1);
    CHECK(error_on_ranks(3, [](td::exchange& ranks) { made<tg::graph>(&ranks); }) ==
          "shards: 3 ranks cannot share 8 shards; expected a power of two from 1 to 8");
    CHECK(error_on_ranks(4, [](td::exchange& ranks) { made<tg::graph>(&ranks, 2); }) ==
          "shards: 4 ranks cannot share 2 shards; expected a power of two from 1 to 2");
    CHECK(error_on_ranks(2, [](td::exchange& ranks) {
              made<tg::graph>(&ranks).fit(texts(67), {.batch_size = 4, .verbose = 0});
          }) == "fit: batch_size is 4, less than the 8 shards that it is cut into");
    CHECK(error_on_ranks(2, [](td::exchange& ranks) {
              made<tg::graph>(&ranks, ranks.rank() == 0 ? 8 : 4).fit(texts(67), {.batch_size = 16, .verbose = 0});
          }) == "ranks do not agree: rank 1 has shards 4, rank 0 has 8");
    const std::string other_data = error_on_ranks(2, [](td::exchange& ranks) {
        made<tg::graph>(&ranks).fit(texts(60 + ranks.rank()), {.batch_size = 16, .verbose = 0});
    });
    CHECK(other_data.find("ranks do not agree: rank 1 has") == 0);
    CHECK(other_data.find("first batch") != std::string::npos);
}

TEST_CASE(
    "a job continues with half its ranks, from what rank 0 has kept, to the bits of one that was not interrupted") {
    const thread_limit one(1);
    const auto set = texts(64);
    auto whole = made<tg::graph>(nullptr);
    const auto history = whole.fit(set, {.epochs = 4, .batch_size = 16, .verbose = 0});
    const support::temporary_folder folder;
    const auto file = folder.path() / "half_way.safetensors";
    td::run_ranks(4, [&](td::exchange& ranks) {
        auto model = made<tg::graph>(&ranks);
        model.fit(set, {.epochs = 2, .batch_size = 16, .verbose = 0});
        if (ranks.rank() > 0) return;
        model.save(file, {.everything = true});
    });
    td::run_ranks(2, [&](td::exchange& ranks) {
        auto model = made<tg::graph>(&ranks);
        model.load(file, {.everything = true});
        model.fit(set, {.epochs = 4, .batch_size = 16, .verbose = 0, .resume = true});
        CHECK(model.step() == whole.step());
        CHECK(first_difference(model, whole) == "");
    });
    // The number of shards is part of what is computed.
    auto four = made<tg::graph>(nullptr, 4);
    four.load(file, {.everything = true});
    CHECK_THROWS_WITH_AS(four.fit(set, {.epochs = 4, .batch_size = 16, .verbose = 0, .resume = true}),
                         "fit: the run cut its batches into 8 shards, and another number gives other bits; this model "
                         "cuts them into 4 (set fit_options::shards if you mean it)",
                         tg::argument_error);
    CHECK(four.step() == 8);
    four.fit(set, {.epochs = 4, .batch_size = 16, .shards = 4, .verbose = 0, .resume = true});
    CHECK(four.step() == whole.step());
}

} // namespace ranks_test
