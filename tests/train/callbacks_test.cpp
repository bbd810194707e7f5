#include <tapegraph/train/callbacks.hpp>

#include <nn/models.hpp>

#include <support/captured_stderr.hpp>
#include <support/temporary_folder.hpp>

namespace callbacks_test {

using namespace nn_test;

namespace {

using state = tg::training_state;

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "line", x, {.units = 1}); }
};

template <class Mode>
auto make(double rate = 0.1) {
    return tg::compile<Mode>(line{}, tg::spec<double, tg::dyn, 2>{}, tg::mean_squared_error{},
                             tg::sgd{.learning_rate = rate});
}
tg::data::dataset records(int count) {
    const auto x = noise<double>({count, 2}, 1);
    std::vector<double> y;
    for (int i = 0; i < count; ++i) y.push_back(x(i, 0) - 2 * x(i, 1));
    tg::data::dataset set;
    set.add("x", x.to_vector(), {2}).add("y", y, {1});
    return set;
}

/// (x - z)^2 of one output and int labels.
struct square_of_classes {
    constexpr auto per_record(auto x, auto z) const {
        const auto d = tg::eval(tg::squeeze(x, -1) - tg::cast<double>(z));
        return d * d;
    }
    constexpr auto operator()(auto x, auto z) const { return mean(per_record(x, z)); }
    static constexpr tg::tensor_spec labels(tg::dtype, const tg::shape& output) {
        return {tg::dtype::i32, tg::shape(output.rank() - 1, output.data())};
    }
};

/// Sets "score" of each epoch, so that a callback's decisions are known beforehand.
auto scores(std::vector<double> values) {
    return tg::on_epoch_end([values](state& s) { s.logs.set("score", values[static_cast<std::size_t>(s.epoch)]); });
}

/// All hooks, noted.
struct notes {
    std::string text{};
    void on_train_begin(state&) { text += "T"; }
    void on_train_end(state&) { text += "t"; }
    void on_epoch_begin(state& s) { text += "E" + std::to_string(s.epoch); }
    void on_epoch_end(state& s) { text += "e" + std::to_string(s.batch); }
    void on_batch_begin(state& s) { text += "B" + std::to_string(s.next_step); }
    void on_batch_end(state& s) { text += "b" + std::to_string(s.step); }
    void on_test_begin(state& s) { text += s.logs.find("val_loss") == nullptr ? "V" : "?"; }
    void on_test_end(state& s) { text += s.logs.find("val_loss") != nullptr ? "v" : "?"; }
};

} // namespace

TEST_CASE("hooks come in Keras's order, and only those that a callback has") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        notes n;
        int only = 0;
        const auto h =
            model.fit(records(5),
                      {.epochs = 2, .batch_size = 3, .validation_data = records(2), .validation_freq = 2, .verbose = 0},
                      n, tg::on_epoch_end([&](state&) { ++only; }));
        CHECK(n.text == "TE0B1b1B2b2e2E1B3b3B4b4Vve2t");
        CHECK(only == 2);
        CHECK(h.epochs[0].logs.find("val_loss") == nullptr);
        CHECK(std::isnan(h["val_loss"][0]));
        CHECK(h["val_loss"][1] == h.epochs[1].validation_loss);
        CHECK(h.best_epoch() == 1);
        CHECK(h["loss"] == std::vector<double>{h.epochs[0].loss, h.epochs[1].loss});
        CHECK(support::message_of<tg::argument_error>([&] { h["lost"]; }) ==
              "history: no value 'lost', there are 'loss', 'accuracy', 'val_loss', 'val_accuracy'");
        CHECK(h.csv().starts_with("epoch,loss,accuracy,val_loss,val_accuracy,seconds\n1,"));
        CHECK(h.text().starts_with("epoch      loss  accuracy  val_loss  val_accuracy   seconds\n    1"));
    });
}

TEST_CASE("the last share of a data set is held out, before it is shuffled") {
    auto model = make<tg::eager>(), twin = make<tg::eager>();
    const auto all = records(10);
    std::vector<std::int64_t> first{0, 1, 2, 3, 4, 5, 6}, last{7, 8, 9};
    const auto a = model.fit(
        all, {.epochs = 2, .batch_size = 4, .validation_split = 0.25, .verbose = 0}); // floor(10 * 0.75) are kept
    const auto b =
        twin.fit(all.subset(first), {.epochs = 2, .batch_size = 4, .validation_data = all.subset(last), .verbose = 0});
    CHECK(a["val_loss"] == b["val_loss"]);
    CHECK(first_difference(model, twin) == "");
    // Two records of three: a batch of them.
    const auto c = model.fit(all, {.batch_size = 4,
                                   .validation_data = all.subset(last),
                                   .validation_batch_size = 2,
                                   .validation_steps = 1,
                                   .verbose = 0});
    CHECK(c.epochs[0].validation_loss == model.evaluate(all.subset(std::vector<std::int64_t>{7, 8})).loss);

    const auto refused = [&](const tg::fit_options& o) {
        return support::message_of<tg::argument_error>([&] { model.fit(all, o); });
    };
    CHECK(refused({.validation_split = 1}) == "fit: validation_split is 1, not at least 0 and below 1");
    CHECK(support::contains(refused({.validation_split = std::nan("")}), "validation_split is nan"));
    CHECK(refused({.validation_data = all, .validation_split = 0.5}) ==
          "fit: both validation_data and validation_split are given; one of them says on what to validate");
    CHECK(support::contains(refused({.validation_split = 0.95}), "of 10 records leaves none to train on"));
    CHECK(refused({.validation_freq = 0}) == "fit: validation_freq is 0, not at least 1");
    CHECK(refused({.steps_per_epoch = -1}) == "fit: steps_per_epoch is -1");
    CHECK(refused({.verbose = 3}) == "fit: verbose is 3, not 0, 1 or 2");
}

TEST_CASE("class weights multiply the weights of records") {
    each_mode([](auto mode) {
        const auto build = [] {
            return tg::compile<decltype(mode)>(line{}, tg::spec<double, tg::dyn, 2>{},
                                               tg::weighted{square_of_classes{}}, tg::sgd{});
        };
        auto model = build(), twin = build();
        const auto x = noise<double>({7, 2}, 1).to_vector();
        const std::vector<std::int32_t> y{0, 1, 2, 2, 1, 0, 1};
        const std::vector<double> own{1, 2, 0.5, 1, 1, 3, 1}, by_class{0.5, 2, 3};
        std::vector<double> product;
        for (std::size_t i = 0; i < y.size(); ++i) product.push_back(own[i] * by_class[static_cast<std::size_t>(y[i])]);
        tg::data::dataset plain, weighted, all;
        plain.add("x", x, {2}).add("y", y);
        weighted.add("x", x, {2}).add("y", y).add("sample_weight", own);
        all.add("x", x, {2}).add("y", y).add("sample_weight", product);
        const tg::fit_options o{.epochs = 2, .batch_size = 3, .verbose = 0};
        auto with = o;
        with.class_weight = by_class;
        CHECK(model.fit(weighted, with)["loss"] == twin.fit(all, o)["loss"]);
        CHECK(first_difference(model, twin) == "");
        with.validation_data = plain; // counts one each, as in Keras
        const auto h = model.fit(plain, with);
        CHECK(h.epochs[0].validation_loss > 0);

        const auto refused = [&](auto& m, std::vector<double> weights) {
            with.class_weight = weights;
            return support::message_of<tg::error>([&] { m.fit(plain, with); });
        };
        CHECK(support::contains(refused(model, {1, 2}), "is of class 2, and there are weights of 2 classes"));
        CHECK(refused(model, {1, -2, 1}) == "class_weight: the weight of class 1 is -2");
        auto bare = make<decltype(mode)>();
        CHECK(refused(bare, {1, 1}) ==
              "fit: class_weight is given, and the model's loss takes no weights; compile it with tg::weighted{loss}");
    });
}

TEST_CASE("predict and evaluate take data sets") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        const auto set = records(7), other = records(4);
        const auto y = model.predict(set, 3);
        CHECK(y.shape() == tg::shape{7, 1});
        CHECK(same_bits(y, model.predict(noise<double>({7, 2}, 1))));
        CHECK(same_bits(y, model.predict(set)));
        tg::data::dataset inputs; // labels are not needed
        inputs.add("x", noise<double>({7, 2}, 1).to_vector(), {2});
        CHECK(same_bits(y, model.predict(inputs, 2)));
        const auto both = model.evaluate({set, other}, 3);
        REQUIRE(both.size() == 2);
        CHECK(both[1].loss == model.evaluate(other, 3).loss);
        tg::data::dataset wrong;
        wrong.add("x", std::vector<float>(4), {2});
        CHECK(support::message_of<tg::dtype_error>([&] { model.predict(wrong); }) ==
              "input is f32, the model takes f64");
    });
}

TEST_CASE("early_stopping stops, and restores, as Keras's does") {
    const auto set = records(4);
    // From Keras 3's rules by hand: less is better, waits for epochs 3 and 4 after the best, epoch 2.
    auto model = make<tg::graph>();
    tg::tensor<double> best;
    tg::early_stopping stop{.monitor = "score", .patience = 2, .restore_best_weights = true};
    auto h = model.fit(set, {.epochs = 9, .batch_size = 4, .verbose = 0}, scores({5, 4, 3, 3, 6, 1, 1, 1, 1}), stop,
                       tg::on_epoch_end([&](state& s) {
                           if (s.epoch == 2) best = s.model().variables()["line/kernel"].template value<double>();
                       }));
    CHECK(h.epochs.size() == 5);
    CHECK(stop.best == 3);
    CHECK(stop.best_epoch == 2);
    CHECK(h.stopped_by.starts_with("early_stopping: score has not become better than 3"));
    CHECK(!h.interrupted);
    CHECK(same_bits(model.variables()["line/kernel"].data(), best));

    const auto epochs = [&](tg::early_stopping e, std::vector<double> values) {
        e.monitor = "score";
        auto fresh = make<tg::eager>();
        return fresh
            .fit(set, {.epochs = static_cast<std::int64_t>(values.size()), .batch_size = 4, .verbose = 0},
                 scores(values), e)
            .epochs.size();
    };
    CHECK(epochs({.patience = 0}, {3, 3, 3, 3}) == 2);
    CHECK(epochs({.patience = 1, .mode = tg::better::more}, {1, 2, 3, 2, 9}) == 4);
    CHECK(epochs({.min_delta = 0.5, .patience = 1}, {3, 2.9, 2.8, 2.7}) == 2);
    CHECK(epochs({.patience = 1, .start_from_epoch = 2}, {1, 2, 3, 4, 5}) == 4);
    CHECK(epochs({.patience = 2, .baseline = 1}, {5, 4, 3, 2, 1}) == 5); // an epoch that is the best does not stop
    CHECK(epochs({.patience = 2, .baseline = 1}, {5, 4, 4, 3, 3}) ==
          3); // but its wait goes on where it does not reach the baseline
    const double nan = std::nan("");
    CHECK(epochs({.patience = 1}, {nan, nan, nan}) == 2);

    auto fresh = make<tg::eager>();
    const auto refused = [&](tg::early_stopping e) {
        return support::message_of<tg::argument_error>([&] { fresh.fit(set, {.epochs = 2, .verbose = 0}, e); });
    };
    CHECK(refused({}) == "early_stopping: no value 'val_loss', there are 'loss', 'accuracy'");
    CHECK(refused({.patience = -1}) == "early_stopping: patience is -1, not at least 0");
    CHECK(support::contains(refused({.min_delta = -1}), "min_delta is -1"));
}

TEST_CASE("learning rates change by schedule and on a plateau") {
    each_mode([](auto mode) {
        const auto set = records(4);
        auto model = make<decltype(mode)>(1.0);
        auto h = model.fit(
            set, {.epochs = 3, .batch_size = 4, .verbose = 0},
            tg::learning_rate_scheduler([](std::int64_t epoch, double rate) { return epoch == 0 ? rate : rate / 2; }));
        CHECK(h["learning_rate"] == std::vector<double>{1, 0.5, 0.25});
        CHECK(model.optimizer().learning_rate == 0.25);
        h = model.fit(
            set, {.epochs = 2, .batch_size = 4, .verbose = 0},
            tg::learning_rate_scheduler([](std::int64_t epoch) { return 0.125 * static_cast<double>(epoch + 1); }));
        CHECK(h["learning_rate"] == std::vector<double>{0.125, 0.25});
        // Patience 2: epochs 1 and 2 are no better than epoch 0, so the rate halves after epoch 2. Then follows one epoch of
        // cooldown, at whose end waiting starts again, and so on; the rate stays at min_lr at least.
        model.optimizer().learning_rate = 1;
        h = model.fit(
            set, {.epochs = 8, .batch_size = 4, .verbose = 0}, scores({3, 3, 3, 3, 3, 3, 3, 3}),
            tg::reduce_lr_on_plateau{.monitor = "score", .factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.3});
        CHECK(h["learning_rate"] == std::vector<double>{1, 1, 1, 0.5, 0.5, 0.3, 0.3, 0.3});
        CHECK(support::message_of<tg::argument_error>([&] {
                  model.fit(set, {.verbose = 0}, tg::learning_rate_scheduler([](std::int64_t) { return -1.0; }));
              }) == "learning rate: -1 at epoch 0");
        CHECK(support::contains(support::message_of<tg::argument_error>(
                                    [&] { model.fit(set, {.verbose = 0}, tg::reduce_lr_on_plateau{.factor = 1}); }),
                                "factor is 1, not below 1"));
    });
}

TEST_CASE("training ends at a loss that is not a number, after a time, or on request") {
    const auto set = records(6);
    auto model = make<tg::graph>(1e300); // the second loss is its square, which is infinite
    auto h = model.fit(set, {.epochs = 3, .batch_size = 2, .verbose = 0}, tg::terminate_on_nan{});
    CHECK(h.epochs.size() == 1); // the epoch ends after that step
    CHECK(h.epochs[0].steps == 2);
    CHECK(h.stopped_by.starts_with("terminate_on_nan: the loss of step 2 is "));
    auto other = make<tg::graph>();
    h = other.fit(set, {.epochs = 3, .batch_size = 2, .verbose = 0}, tg::time_limit{.seconds = 0});
    CHECK(h.interrupted);
    CHECK(other.step() == 1);
    CHECK(h.epochs.empty());
    CHECK(support::contains(
        support::message_of<tg::argument_error>([&] { other.fit(set, {.verbose = 0}, tg::time_limit{.seconds = -1}); }),
        "time_limit: seconds is -1"));
}

TEST_CASE("csv_logger writes epochs as they end, and appends to an existing file with `append`") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "log.csv").string();
    const auto set = records(4);
    auto model = make<tg::eager>();
    auto h = model.fit(set, {.epochs = 2, .batch_size = 4, .validation_split = 0.5, .validation_freq = 2, .verbose = 0},
                       tg::csv_logger{.path = path});
    const std::string first = support::read_text(path);
    CHECK(first == "epoch,loss,accuracy,val_loss,val_accuracy\n1," + tg::number_text(h["loss"][0]) + ",0,,\n2," +
                       tg::number_text(h["loss"][1]) + ",0," + tg::number_text(h["val_loss"][1]) + ",0\n");
    h = model.fit(
        set,
        {.epochs = 3, .initial_epoch = 2, .batch_size = 4, .validation_split = 0.5, .validation_freq = 3, .verbose = 0},
        tg::csv_logger{.path = path, .append = true});
    CHECK(support::read_text(path).starts_with(first + "3,"));
    CHECK(support::contains(support::message_of<tg::data_error>([&] {
                                model.fit(set, {.verbose = 0},
                                          tg::csv_logger{.path = (folder.path() / "no" / "x.csv").string()});
                            }),
                            "x.csv' cannot be written: No such file or directory"));
}

TEST_CASE("progress is a line per epoch, or nothing, as `verbose` says") {
    const auto set = records(4);
    const auto shown = [&](int verbose) {
        auto model = make<tg::eager>();
        return test::captured_stderr([&] { model.fit(set, {.epochs = 2, .batch_size = 2, .verbose = verbose}); });
    };
    CHECK(shown(0).empty());
    const std::string two = shown(2);
    CHECK(std::count(two.begin(), two.end(), '\n') == 2);
    CHECK(!support::contains(two, "\r"));
    CHECK(support::contains(two, "epoch 2/2 "));
}

} // namespace callbacks_test
