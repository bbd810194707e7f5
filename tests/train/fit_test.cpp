#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/train/callbacks.hpp>

namespace fit_test {

using namespace nn_test;

namespace {

template <class Mode>
auto make(std::uint64_t seed = 2) {
    return tg::compile<Mode>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                             tg::sgd{.learning_rate = 0.1}, {.seed = seed});
}

/// Three classes that a linear model tells apart: the class is where the largest of the first three numbers stands.
tg::data::dataset records(int count, std::uint64_t seed) {
    const auto x = noise<float>({count, 6}, seed);
    std::vector<std::int32_t> labels;
    for (int i = 0; i < count; ++i) {
        int best = 0;
        for (int k = 1; k < 3; ++k)
            if (x(i, k) > x(i, best)) best = k;
        labels.push_back(best);
    }
    tg::data::dataset set;
    set.add("x", x.to_vector(), {6}).add("label", labels);
    return set;
}
template <class Labels>
tg::data::dataset columns(const std::vector<float>& x, std::vector<std::int64_t> shape, const std::vector<Labels>& y) {
    tg::data::dataset set;
    set.add("x", x, std::move(shape)).add("label", y);
    return set;
}

} // namespace

TEST_CASE("fit trains, and its history records it") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        const auto train = records(50, 1), validation = records(31, 2);
        const tg::history h =
            model.fit(train, {.epochs = 12, .batch_size = 16, .validation_data = validation, .verbose = false});
        REQUIRE(h.epochs.size() == 12);
        for (const tg::epoch_result& e : h.epochs) {
            CHECK(e.steps == 4); // 16, 16, 16, 2
            CHECK(e.records == 50);
            CHECK(e.seconds > 0);
            CHECK(e.ingestion_seconds >= 0);
            CHECK(e.ingestion_seconds <= e.seconds);
            CHECK(std::isfinite(e.loss));
        }
        CHECK(model.step() == 48);
        CHECK(h.epochs.back().loss < 0.8 * h.epochs.front().loss);
        CHECK(h.epochs.back().accuracy > h.epochs.front().accuracy);
        const tg::step_result last = model.evaluate(validation, 16);
        CHECK(h.epochs.back().validation_loss == last.loss);
        CHECK(h.epochs.back().validation_accuracy == last.accuracy);
        CHECK(last.accuracy > 0.5); // a guess would be right in a third
    });
}

TEST_CASE("fit takes tensors as it takes a data set of them") {
    each_mode([](auto mode) {
        const auto set = records(50, 1);
        auto by_set = make<decltype(mode)>(), by_tensors = make<decltype(mode)>();
        const auto x = noise<float>({50, 6}, 1);
        const tg::tensor<std::int32_t> y = argmax(slice(x, {tg::all, tg::range{0, 3}}), 1);
        tg::early_stopping never{.monitor = "loss", .patience = 50};
        const tg::fit_options options{.epochs = 3, .batch_size = 16, .validation_split = 0.2, .verbose = 0};
        const auto one = by_set.fit(set, options, never), other = by_tensors.fit(x, y, options, never);
        REQUIRE(other.epochs.size() == 3);
        for (std::size_t e = 0; e < 3; ++e) {
            CHECK(other.epochs[e].loss == one.epochs[e].loss);
            CHECK(other.epochs[e].validation_loss == one.epochs[e].validation_loss);
        }
        CHECK(first_difference(by_set, by_tensors) == "");
        by_tensors.fit(x, y, {.epochs = 1, .verbose = 0}); // options in place
        const tg::tensor<std::int32_t> few = slice(y, {tg::range{0, 49}});
        CHECK_THROWS_WITH_AS(by_tensors.fit(x, few),
                             "data set: column 'labels' holds 49 records, column 'input' holds 50", tg::shape_error);
        const tg::tensor<float> wide = noise<float>({50, 7}, 1);
        CHECK_THROWS_WITH_AS(by_tensors.fit(wide, y), "input has shape [32, 7], the model takes [?, 6]",
                             tg::shape_error);
        CHECK_THROWS_WITH_AS(by_tensors.fit(x, x),
                             "input 'labels of sparse_softmax_cross_entropy' is i32, fed with f32", tg::dtype_error);
        const tg::tensor<float> scalar(1.F);
        CHECK_THROWS_WITH_AS(by_tensors.fit(scalar, y),
                             "data set: column 'input' is a tensor of rank 0, it has no records", tg::shape_error);
    });
}

TEST_CASE("fit is the same in both modes, and depends on the seed alone") {
    const auto run = [](auto mode, std::uint64_t seed, std::int64_t prefetch) {
        auto model = make<decltype(mode)>(seed);
        const auto h =
            model.fit(records(50, 1), {.epochs = 3, .batch_size = 16, .verbose = false, .prefetch = prefetch});
        std::vector<double> losses;
        for (const auto& e : h.epochs) losses.push_back(e.loss);
        return losses;
    };
    const auto first = run(tg::graph{}, 2, 2);
    CHECK(first == run(tg::graph{}, 2, 2));
    CHECK(first == run(tg::graph{}, 2, 0));
    CHECK(first == run(tg::eager{}, 2, 2));
    CHECK(first != run(tg::graph{}, 3, 2));
    CHECK(first[0] != first[1]);
}

TEST_CASE("fit continues at a later epoch as if it had not stopped") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>(2), twin = make<decltype(mode)>(2);
        const auto set = records(50, 1);
        const auto whole = model.fit(set, {.epochs = 4, .batch_size = 16, .verbose = false});
        twin.fit(set, {.epochs = 1, .batch_size = 16, .verbose = false});
        const auto rest = twin.fit(set, {.epochs = 4, .initial_epoch = 1, .batch_size = 16, .verbose = false});
        REQUIRE(rest.epochs.size() == 3);
        for (std::size_t e = 0; e < 3; ++e) CHECK(rest.epochs[e].loss == whole.epochs[e + 1].loss);
        CHECK(first_difference(model, twin) == "");
        CHECK(twin.fit(set, {.epochs = 4, .initial_epoch = 4, .verbose = false}).epochs.empty());
    });
}

TEST_CASE("an epoch's loss is the mean over records, so the partial last batch counts less") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        auto twin = make<decltype(mode)>();
        const auto set = records(7, 4);
        const auto h = model.fit(set, {.epochs = 1, .batch_size = 4, .shuffle = false, .verbose = false});
        const auto x = noise<float>({7, 6}, 4);
        tg::data::loader all(set.batch(7));
        all.begin_epoch(0);
        const auto labels = all.next()->values<std::int32_t>(1);
        const auto part = [&](int first, int count) {
            return std::pair(
                tg::from_range<float>(
                    x.values().subspan(static_cast<std::size_t>(first) * 6, static_cast<std::size_t>(count) * 6),
                    {count, 6}),
                tg::from_range<std::int32_t>(
                    labels.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), {count}));
        };
        const auto [x1, y1] = part(0, 4);
        const auto [x2, y2] = part(4, 3);
        const tg::step_result one = twin.train_on_batch(x1, y1), two = twin.train_on_batch(x2, y2);
        CHECK(h.epochs[0].loss == (one.loss * 4 + two.loss * 3) / 7);
        CHECK(h.epochs[0].accuracy == (one.accuracy * 4 + two.accuracy * 3) / 7);
        CHECK(first_difference(model, twin) == "");

        // evaluate weights in the same way: batches of 4 and 3 give what all seven at once give.
        const tg::step_result parts = model.evaluate(set, 4),
                              whole = model.evaluate(x, tg::from_range<std::int32_t>(labels, {7}));
        CHECK(parts.loss == doctest::Approx(whole.loss).epsilon(1e-6));
        CHECK(parts.accuracy == doctest::Approx(whole.accuracy).epsilon(1e-6));
        CHECK(parts.loss == (model.evaluate(x1, y1).loss * 4 + model.evaluate(x2, y2).loss * 3) / 7);
    });
}

TEST_CASE("a batch of a loader trains as the tensors with its values do") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        auto twin = make<decltype(mode)>();
        const auto set = records(7, 4);
        tg::data::loader loader(set.shuffle(3).batch(4).prefetch(2));
        loader.begin_epoch(0);
        while (const tg::data::batch* b = loader.next()) {
            const tg::step_result one = model.train_on_batch(*b);
            const tg::step_result two =
                twin.train_on_batch(tg::from_range<float>(b->values<float>(0), {b->count(), 6}),
                                    tg::from_range<std::int32_t>(b->values<std::int32_t>(1), {b->count()}));
            CHECK(one.loss == two.loss);
            CHECK(one.accuracy == two.accuracy);
        }
        CHECK(model.step() == 2);
        CHECK(first_difference(model, twin) == "");

        tg::data::loader unlabelled(tg::data::dataset().add("x", std::vector<float>(12), {6}).batch(2));
        unlabelled.begin_epoch(0);
        const tg::data::batch* const b = unlabelled.next();
        CHECK_THROWS_WITH_AS(model.train_on_batch(*b),
                             "data set: an input column and a label column are needed, there are 1",
                             tg::argument_error);
    });
}

TEST_CASE("fit stops an epoch early on request") {
    auto model = make<tg::eager>();
    const auto set = records(50, 1);
    auto h = model.fit(set, {.epochs = 2, .batch_size = 8, .steps_per_epoch = 3, .verbose = false});
    CHECK(h.epochs[1].steps == 3);
    CHECK(h.epochs[1].records == 24);
    CHECK(model.step() == 6);
    h = model.fit(set, {.epochs = 1, .batch_size = 8, .steps_per_epoch = 99, .verbose = false});
    CHECK(h.epochs[0].steps == 7);
    h = model.fit(set, {.epochs = 1, .batch_size = 1000, .verbose = false});
    CHECK(h.epochs[0].steps == 1);
    CHECK(h.epochs[0].records == 50);
    CHECK(model.fit(set, {.epochs = 0, .verbose = false}).epochs.empty());
}

TEST_CASE("what cannot be trained on is refused with one clear line, and the model stays usable") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        const auto set = records(8, 1);
        const auto refused = [&]<class Error>(Error*, const auto& call, const char* part) {
            const std::string message = support::message_of<Error>(call);
            CAPTURE(message);
            CAPTURE(part);
            CHECK(support::contains(message, part));
            CHECK(!support::contains(message, "\n"));
            CHECK(model.step() == 0);
        };
        constexpr tg::argument_error* argument = nullptr;
        constexpr tg::shape_error* shape = nullptr;
        constexpr tg::dtype_error* type = nullptr;
        const auto fit = [&](const tg::data::dataset& data) {
            return [&model, data] { model.fit(data, {.batch_size = 4, .verbose = false}); };
        };
        refused(
            argument, [&] { model.fit(set, {.batch_size = 0, .verbose = false}); },
            "batch size must be at least 1, got 0");
        refused(
            argument, [&] { model.fit(set, {.batch_size = -3, .verbose = false}); },
            "batch size must be at least 1, got -3");
        refused(
            argument, [&] { model.fit(set, {.epochs = -1, .verbose = false}); }, "epochs is -1");
        refused(
            argument, [&] { model.fit(set, {.initial_epoch = -2, .verbose = false}); }, "initial_epoch is -2");
        refused(
            argument, [&] { model.evaluate(set, 0); }, "batch size must be at least 1, got 0");
        refused(argument, fit(tg::data::dataset().add("x", std::vector<float>(12), {6})), "label column");
        refused(argument, fit(columns<std::int32_t>({}, {6}, {})), "no records");
        refused(shape, fit(columns<std::int32_t>(std::vector<float>(20), {5}, {0, 1, 2, 0})),
                "input has shape [4, 5], the model takes [?, 6]");
        refused(shape, fit(columns<std::int32_t>(std::vector<float>(24), {3, 2}, {0, 1, 2, 0})), "rank 3");
        refused(type, fit(columns<float>(std::vector<float>(24), {6}, {0, 1, 2, 0})), "f32");
        refused(type, fit(columns<std::int64_t>(std::vector<float>(24), {6}, {0, 1, 2, 0})), "i64");

        const auto x = noise<float>({4, 6}, 1);
        refused(
            shape, [&] { model.train_on_batch(x, classes(3, 3, 1)); }, "");
        refused(
            shape,
            [&] {
                model.train_on_batch(x, tg::zeros<std::int32_t>({4, 1}));
            },
            "");
        refused(
            shape, [&] { model.evaluate(x, classes(5, 3, 1)); }, "");
        refused(
            shape,
            [&] {
                model.train_on_batch(noise<float>({4, 7}, 1), classes(4, 3, 1));
            },
            "[4, 7]");
        refused(
            shape, [&] { model.train_on_batch(noise<float>({4}, 1), classes(4, 3, 1)); }, "rank 1");
        refused(
            shape,
            [&] {
                model.train_on_batch(noise<float>({0, 6}, 1), classes(0, 3, 1));
            },
            "the batch is empty");
        refused(
            shape,
            [&] {
                model.predict(noise<float>({2, 5}, 1));
            },
            "[2, 5]");

        auto fresh = make<decltype(mode)>();
        CHECK(first_difference(model, fresh) == "");
        CHECK(model.train_on_batch(x, classes(4, 3, 1)).loss == fresh.train_on_batch(x, classes(4, 3, 1)).loss);
        CHECK(first_difference(model, fresh) == "");
    });
}

TEST_CASE("a loss that is not finite is reported with check_finite") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                                 tg::sgd{.learning_rate = 0.1}, {.seed = 2, .check_finite = true});
        auto x = noise<float>({4, 6}, 1);
        const auto y = classes(4, 3, 1);
        CHECK(std::isfinite(model.train_on_batch(x, y).loss));
        x.set(std::numeric_limits<float>::infinity(), 2, 3);
        const std::string message = support::message_of<tg::numeric_error>([&] { model.train_on_batch(x, y); });
        CAPTURE(message);
        CHECK(message.find("step 2: matmul: element ") == 0);
        CHECK(support::contains(message, "not finite"));
        CHECK(model.step() == 1); // a step that was not finished does not count
    });
}

TEST_CASE("predict is the forward pass of evaluation") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        model.fit(records(32, 1), {.epochs = 1, .batch_size = 8, .verbose = false});
        const auto x = noise<float>({9, 6}, 3);
        const tg::tensor<float> scores = model.predict(x);
        CHECK(same_bits(scores, model.predict(x))); // no dropout, no state
        tg::tensor<double> h = tg::tensor<double>(tanh(
            tg::cast<double>(tg::tensor<float>(matmul(x, model.variables()["hidden/kernel"].template value<float>()) +
                                               model.variables()["hidden/bias"].template value<float>()))));
        const auto w = model.variables()["out/kernel"].template value<float>();
        const auto b = model.variables()["out/bias"].template value<float>();
        for (int i = 0; i < 9; ++i)
            for (int k = 0; k < 3; ++k) {
                double sum = b(k);
                for (int j = 0; j < 9; ++j) sum += h(i, j) * w(j, k);
                CHECK(scores(i, k) == doctest::Approx(sum).epsilon(1e-5)); // float against double
            }
        const auto y = classes(9, 3, 3);
        const tg::tensor<float> loss = tg::sparse_softmax_cross_entropy{}(scores, y);
        CHECK(static_cast<double>(loss.item()) == model.evaluate(x, y).loss);
    });
}

} // namespace fit_test
