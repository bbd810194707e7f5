#include <tapegraph/cluster/rank_checkpoints.hpp>
#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/io/checkpoint_manager.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>
#include <tapegraph/nn/optimizers/weight_average.hpp>

#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <string>

/// Optimizers whose state ranks share out: the bits of those that have it whole, for any number of ranks.

namespace zero_redundancy_test {

using namespace nn_test;
using std::int64_t;
namespace td = tg::distributed;

namespace {

// Kernels of several buckets and pieces, biases of one element and of a prime number, rows, moving averages, a penalty of none.
template <bool Sparse>
struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::flatten(tg::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4, .sparse = Sparse}));
        h = tanh(tg::dense(scope / "wide", h, {.units = 1021}));
        h = tg::batch_normalization(scope / "norm", tg::dense(scope / "narrow", h, {.units = 331}));
        h = tg::dense(scope / "one", tg::dropout(scope / "drop", h, {.rate = 0.2}), {.units = 1});
        return tg::dense(scope / "score", h, {.units = 3});
    }
};

// As somebody would write it who has read nn/optimizers/basic.hpp: sign of an average, decayed
// weights.
struct own_optimizer {
    double learning_rate = 0.01;
    static constexpr int count = 2;
    std::array<double, count> numbers(int64_t step) const { return {learning_rate, step > 3 ? 0.5 : 0.9}; }
    static double first_value(std::string_view name) { return name == "level" ? 0.25 : 0; }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto level = slots.state(w, "level");
        const auto next = eval(n[1] * level + (1 - n[1]) * abs(g));
        slots.assign(level, next);
        slots.assign(w, w * 0.999 - n[0] * g / (next + 0.01));
    }
};

tg::data::dataset texts(int64_t count) {
    tg::data::dataset set;
    set.add("words", classes(count * 5, 11, 1).to_vector(), {5}).add("label", classes(count, 3, 2).to_vector());
    return set;
}

template <bool Sparse = true, class Optimizer>
auto made(const Optimizer& optimizer, td::exchange* ranks) {
    return tg::compile<tg::graph>(network<Sparse>{}, tg::spec<std::int32_t, tg::dyn, 5>{},
                                  tg::sparse_softmax_cross_entropy{}, optimizer,
                                  tg::metrics{tg::sparse_categorical_accuracy{}},
                                  tg::sharded{.shards = 8, .options = {.seed = 4}, .ranks = ranks});
}

template <class Model>
std::string bits_of(const Model& model) {
    std::string bits;
    for (const auto& v : model.variables())
        if (!v.metric_state()) bits.append(static_cast<const char*>(v.data().read()), v.data().outline_view().bytes());
    return bits;
}

// Batches of 16, 16 and 3: in the last one some shards, and with them ranks, have no records.
const tg::fit_options two_epochs{.epochs = 2, .batch_size = 16, .verbose = 0};

template <bool Sparse = true, class Optimizer>
void trains_alike(const Optimizer& optimizer) {
    const thread_limit one(1); // ranks are threads already
    const auto set = texts(35);
    auto whole = made<Sparse>(optimizer, nullptr);
    whole.variables().set_trainable("narrow/bias", false);
    const auto expected = whole.fit(set, two_epochs);
    const std::string bits = bits_of(whole);
    for (const int size : {1, 2, 4, 8}) {
        CAPTURE(size);
        td::run_ranks(size, [&](td::exchange& ranks) {
            auto model = made<Sparse>(tg::zero_redundancy{optimizer}, &ranks);
            model.variables().set_trainable("narrow/bias", false);
            const std::size_t all = model.optimizer_state_bytes();
            const auto h = model.fit(set, two_epochs);
            for (std::size_t e = 0; e < 2; ++e) {
                CHECK(h.epochs[e].loss == expected.epochs[e].loss);
                CHECK(h.epochs[e].metrics[0].value == expected.epochs[e].metrics[0].value);
            }
            // Nothing twice but the rows' state and what belongs to no variable; slices end where lines of the cache do, of two buckets and a few values each.
            std::uint64_t own[2]{model.optimizer_state_bytes(), 0};
            for (const auto& v : model.variables())
                if (v.optimizer_state() &&
                    (v.path().find('/') == std::string::npos || (Sparse && v.path().starts_with("words/"))))
                    own[1] += v.data().outline_view().bytes();
            const std::size_t rows = own[1], most = (all - rows) / static_cast<std::size_t>(size) + rows + 4096;
            CHECK(own[0] <= most);
            own[1] = 0;
            td::sum_over_ranks(ranks, std::span<std::uint64_t>(own), "bytes");
            CHECK(own[0] == all + static_cast<std::size_t>(size - 1) * rows);
            model.gather_optimizer_state();
            CHECK(model.optimizer_state_bytes() == all);
            CHECK(bits_of(model) == bits);
            model.gather_optimizer_state(); // nothing to do
            CHECK(bits_of(model) == bits);
        });
    }
}

} // namespace

TEST_CASE("slices: adam, dense and by rows, with a frozen variable") { trains_alike(tg::adam{.learning_rate = 0.01}); }
TEST_CASE("slices: stochastic gradient descent with momentum") {
    trains_alike(tg::nesterov_momentum{.learning_rate = 0.01});
}
TEST_CASE("slices: no state at all") { trains_alike(tg::sgd{.learning_rate = 0.01}); }
TEST_CASE("slices: an optimizer of one's own, whose state does not begin at zero") { trains_alike(own_optimizer{}); }

TEST_CASE("slices: the norm of all gradients, a scaled loss, averages of the weights") {
    trains_alike<false>(tg::chain{tg::loss_scaling{}, tg::clip_by_global_norm{.norm = 0.5},
                                  tg::adam{.learning_rate = 0.01}, tg::weight_average{.decay = 0.9}});
}

TEST_CASE("slices: variables of doubles, and gradients between steps") {
    const thread_limit one(1);
    const auto x = noise<double>({16, 6}, 1);
    const auto y = classes(16, 3, 2);
    const auto trained = [&](auto optimizer, td::exchange* ranks) {
        auto model =
            tg::compile<tg::graph>(small_mlp{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{}, optimizer,
                                   tg::sharded{.shards = 8, .options = {.seed = 4}, .ranks = ranks});
        std::string bits;
        for (int i = 0; i < 3; ++i) {
            model.train_on_batch(x, y);
            for (const tg::named_gradient& g : model.gradients(x, y))
                bits.append(static_cast<const char*>(g.value.read()), g.value.outline_view().bytes());
        }
        model.gather_optimizer_state();
        return bits + bits_of(model);
    };
    const std::string expected = trained(tg::adam{}, nullptr);
    CHECK(trained(tg::zero_redundancy{tg::adam{}}, nullptr) == expected);
    for (const int size : {2, 4, 8})
        td::run_ranks(size, [&](td::exchange& r) { CHECK(trained(tg::zero_redundancy{tg::adam{}}, &r) == expected); });
}

TEST_CASE("slices: a run is saved with four ranks and continues with two, with one, and with state that is whole") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const auto set = texts(35);
    const tg::adam optimizer{.learning_rate = 0.01};
    auto whole = made(optimizer, nullptr);
    whole.fit(set, two_epochs);
    const std::string half = bits_of(whole);
    whole.fit(set, two_epochs);
    const std::string expected = bits_of(whole);
    const auto file = (folder.path() / "run.safetensors").string();
    td::run_ranks(4, [&](td::exchange& ranks) {
        auto model = made(tg::zero_redundancy{optimizer}, &ranks);
        model.fit(set, two_epochs);
        model.save(file, {.optimizer_state = true}); // on every rank; the chief writes
        CHECK(bits_of(model) == half);
        model.fit(set, two_epochs); // with slices again
        model.gather_optimizer_state();
        CHECK(bits_of(model) == expected);
    });
    const auto goes_on = [&](auto with, td::exchange* ranks) {
        auto model = made(with, ranks);
        model.load(file);
        CHECK(bits_of(model) == half);
        model.fit(set, two_epochs);
        model.gather_optimizer_state();
        CHECK(bits_of(model) == expected);
        model.load(file); // in the place of slices
        CHECK(bits_of(model) == half);
    };
    td::run_ranks(2, [&](td::exchange& ranks) { goes_on(tg::zero_redundancy{optimizer}, &ranks); });
    td::run_ranks(2, [&](td::exchange& ranks) { goes_on(optimizer, &ranks); });
    goes_on(tg::zero_redundancy{optimizer}, nullptr);
}

TEST_CASE("slices: checkpoints hold the state whole") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const auto set = texts(35);
    const tg::adam optimizer{.learning_rate = 0.01};
    auto whole = made(optimizer, nullptr);
    whole.fit(set, two_epochs);
    td::run_ranks(4, [&](td::exchange& ranks) {
        auto model = made(tg::zero_redundancy{optimizer}, &ranks);
        tg::checkpoint_manager kept(folder.path() / "kept");
        model.fit(set, two_epochs);
        kept.save(model);
        kept.wait();
        td::barrier(ranks, "written");
        auto other = made(optimizer, &ranks);
        CHECK(tg::checkpoint_manager(folder.path() / "kept").restore_latest(other).has_value());
        CHECK(bits_of(other) == bits_of(whole));
    });
}

TEST_CASE("slices: a job continues with half its ranks, from checkpoints of one file and by rank") {
    const thread_limit one(1);
    const auto set = texts(64);
    const tg::adam optimizer{.learning_rate = 0.01};
    const tg::fit_options all{.epochs = 4, .batch_size = 16, .verbose = 0};
    auto whole = made(optimizer, nullptr);
    whole.fit(set, all);
    for (const bool by_rank : {false, true}) {
        CAPTURE(by_rank);
        const support::temporary_folder folder;
        const auto run = [&](td::exchange& ranks, const tg::fit_options& options) {
            auto model = made(tg::zero_redundancy{optimizer}, &ranks);
            tg::checkpoint_manager_options how;
            if (by_rank) how.parts = tg::by_rank(ranks);
            model.fit(set, options, tg::keep_checkpoints{.folder = folder.path(), .every_steps = 3, .options = how});
            model.gather_optimizer_state();
            return std::pair(bits_of(model), model.step());
        };
        td::run_ranks(4, [&](td::exchange& r) { run(r, {.epochs = 2, .batch_size = 16, .verbose = 0}); });
        td::run_ranks(2, [&](td::exchange& r) {
            const auto [bits, step] = run(r, all);
            CHECK(step == whole.step());
            CHECK(bits == bits_of(whole));
        });
    }
}

TEST_CASE("slices: averages that a rank has not are not exchanged with weights") {
    const thread_limit one(1);
    td::run_ranks(2, [&](td::exchange& ranks) {
        auto model = made(tg::zero_redundancy{tg::chain{tg::sgd{}, tg::weight_average{}}}, &ranks);
        model.fit(texts(16), {.batch_size = 16, .verbose = 0});
        std::string text;
        try {
            tg::averaged_weights exchanged(model.variables());
        } catch (const tg::argument_error& e) {
            text = e.what();
        }
        CHECK(text.find("one rank's slices; gather_optimizer_state() on every rank first") != std::string::npos);
        model.gather_optimizer_state();
        tg::averaged_weights exchanged(model.variables());
    });
}

} // namespace zero_redundancy_test
