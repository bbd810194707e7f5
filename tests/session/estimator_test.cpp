#include <support/temporary_folder.hpp>

#include <tapegraph/data/synthetic.hpp>
#include <tapegraph/session/estimator.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace estimator_test {

/// Models in folders: what is written, what is kept, and that a training that was broken off goes on as if it had not been.

namespace {

namespace tg = tapegraph;

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dropout(scope / "drop", tg::dense(scope / "hidden", x, {.units = 4}), {.rate = 0.25});
        return tg::dense(scope / "score", relu(h), {.units = 2});
    }
};
auto compiled() {
    return tg::compile<tg::graph>(network{}, tg::spec<double, tg::dyn, 2>{}, tg::sparse_softmax_cross_entropy{},
                                  tg::adam{.learning_rate = 0.02}, {.seed = 4});
}

auto records() {
    tg::data::dataset set;
    std::vector<double> x;
    std::vector<std::int32_t> y;
    for (int i = 0; i < 30; ++i) {
        x.push_back(0.1 * (i % 7) - 0.3);
        x.push_back(0.1 * (i % 5) - 0.2);
        y.push_back(x[x.size() - 1] > x[x.size() - 2] ? 1 : 0);
    }
    set.add("x", std::move(x), {2});
    set.add("label", std::move(y));
    return set.shuffle(5).batch(8); // 4 batches per epoch
}

using estimator = tg::estimator<decltype(compiled())>;

std::vector<double> weights_of(estimator& e) {
    std::vector<double> all;
    for (const tg::variable& v : e.model().variables())
        for (const double number : v.value<double>().to_vector()) all.push_back(number);
    return all;
}

} // namespace

TEST_CASE("estimator: training that was broken off twice gives the bits of one that was not") {
    const support::temporary_folder one, other;
    estimator whole(compiled(), one.path());
    whole.train(records, 11);
    {
        estimator first(compiled(), other.path());
        first.train(records, 3);
    }
    {
        estimator second(compiled(), other.path());
        CHECK(second.step() == 3);
        second.train(records, 6); // ends within an epoch
    }
    estimator third(compiled(), other.path());
    third.train(records, 2);
    CHECK(third.step() == 11);
    CHECK(weights_of(third) == weights_of(whole));
}

TEST_CASE("estimator: keeps the newest checkpoints and the best") {
    const support::temporary_folder folder;
    estimator e(compiled(), folder.path(), {.every_steps = 2, .every_seconds = 0, .keep = 2, .best = "loss"});
    e.train(records, 7);
    CHECK(e.latest_checkpoint() == folder.path() / "model-7.safetensors");
    CHECK(!std::filesystem::exists(folder.path() / "model-4.safetensors"));
    CHECK(std::filesystem::exists(folder.path() / "model-6.safetensors"));
    CHECK(e.best_checkpoint().empty());
    const double loss = e.evaluate(records).loss;
    CHECK(e.best_checkpoint() == folder.path() / "best-7.safetensors");
    for (tg::variable& v : e.model().variables())
        if (v.path() == "score/kernel") v.assign(tg::full<double>(v.shape(), 9.0)); // worse
    e.train(records, 1);
    e.evaluate(records);
    CHECK(e.best_checkpoint() == folder.path() / "best-7.safetensors");
    estimator again(compiled(), folder.path(), {.best = "loss"});
    CHECK(again.step() == 8);
    again.evaluate(records);
    CHECK(again.best_checkpoint() == folder.path() / "best-7.safetensors"); // its value was kept, too
    again.load(again.best_checkpoint());
    CHECK(again.step() == 7);
    CHECK(again.evaluate(records).loss == loss);
}

TEST_CASE("estimator: train_and_evaluate does what is left") {
    const support::temporary_folder folder;
    int evaluations = 0;
    const auto held_out = [&] { return ++evaluations, records(); };
    {
        estimator e(compiled(), folder.path());
        tg::train_and_evaluate(e, tg::train_spec{&records, 5}, tg::eval_spec{held_out, 2});
        CHECK(e.step() == 5);
        CHECK(evaluations == 3); // after 2, 4 and 5
    }
    estimator e(compiled(), folder.path(), {.every_steps = 4});
    const auto last = tg::train_and_evaluate(e, tg::train_spec{&records, 9}, tg::eval_spec{held_out});
    CHECK(evaluations == 5); // after 8 and 9
    CHECK(last.loss == e.evaluate(records).loss);
    CHECK(e.predict(tg::zeros<double>({3, 2})).shape() == tg::shape{3, 2});
}

TEST_CASE("estimator: what is wrong names the file or the option") {
    const support::temporary_folder folder;
    const auto refusal = [&](const std::filesystem::path& where, const tg::checkpoint_options& options) {
        return support::message_of<tg::error>([&] { estimator(compiled(), where, options); });
    };
    CHECK(refusal(folder.path(), {.every_steps = -1}) == "estimator: every_steps is -1");
    CHECK(refusal(folder.path(), {.keep = -2}) == "estimator: keep is -2");
    CHECK(refusal(folder.path(), {.best = "f1"}) == "estimator: no metric 'f1', there are 'loss', 'accuracy'");
    const auto file = folder.write("taken", "no folder");
    CHECK(support::contains(refusal(file, {}), "taken': cannot be made a folder"));
    folder.write("broken/model-12.safetensors", "not a checkpoint");
    CHECK(support::contains(refusal(folder.path() / "broken", {}), "model-12.safetensors'"));
    estimator e(compiled(), folder.path() / "fine");
    CHECK_THROWS_WITH_AS(e.train(records, -1), "estimator: steps is -1", tg::argument_error);
}

} // namespace estimator_test
