#include <nn/models.hpp>
#include <tapegraph/nn/optimizers/all.hpp>

#include <support/temporary_folder.hpp>

namespace objectives_test {

using namespace nn_test;

namespace {

/// Two inputs, two outputs.
struct two_headed {
    constexpr auto operator()(auto scope, auto image, auto words) const {
        const auto a = tg::dense(scope / "image", image, {.units = 4});
        const auto b = tg::dense(scope / "words", words, {.units = 4});
        const auto h = tg::eval(tanh(a + b));
        return tg::outputs{tg::output<"class">(tg::dense(scope / "class", h, {.units = 3})),
                           tg::output<"box">(tg::dense(scope / "box", h, {.units = 2}))};
    }
};
template <class T>
constexpr auto two_specs() {
    return tg::inputs{tg::input<"image">(tg::spec<T, tg::dyn, 5>{}), tg::input<"words">(tg::spec<T, tg::dyn, 2>{})};
}

/// The mean of |x - z| beyond a threshold: a loss with a number.
struct beyond {
    double threshold = 0.5;
    static constexpr int count = 1;
    std::array<double, count> numbers() const { return {threshold}; }
    constexpr auto per_record(auto x, auto z, const auto& n) const {
        return mean(where(abs(x - z) > n[0], abs(x - z) - n[0], 0), -1);
    }
    constexpr auto operator()(auto x, auto z, const auto& n) const { return mean(per_record(x, z, n)); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};
struct squares {
    constexpr auto per_record(auto x, auto z) const { return mean(square(x - z), -1); }
    constexpr auto operator()(auto x, auto z) const { return mean(square(x - z)); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

/// The share of elements that are further than a number from their labels.
struct far_off {
    double limit = 0.25;
    static constexpr std::string_view name = "far_off";
    static constexpr int count = 1;
    std::array<double, count> numbers() const { return {limit}; }
    static constexpr void update(const auto& state, const auto& x, const auto& z, const auto&, const auto& n) {
        const auto hits = tg::eval(tg::cast<double>(abs(x - z) > n[0]));
        state.add("far", {}, sum(hits));
        state.add("all", {}, sum(tg::eval(hits * 0 + 1)));
        state.add("columns", {2}, sum(hits, 0));
    }
    double result(const tg::metric_values& v) const { return v["far"] / v["all"]; }
};

struct pair_model {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 2}); }
};

} // namespace

TEST_CASE("two inputs and two outputs: the sum of the losses is trained, in both modes alike") {
    const auto losses = tg::losses{tg::on<"class">(tg::sparse_softmax_cross_entropy{}), tg::on<"box">(beyond{}, 0.5)};
    auto a = tg::compile<tg::graph>(two_headed{}, two_specs<double>(), losses, tg::momentum{});
    auto b = tg::compile<tg::eager>(two_headed{}, two_specs<double>(), losses, tg::momentum{});
    const auto image = noise<double>({7, 5}, 1), words = noise<double>({7, 2}, 2), box = noise<double>({7, 2}, 3);
    const auto labels = classes(7, 3, 4);
    for (int step = 0; step < 3; ++step) {
        CAPTURE(step);
        if (step == 1) std::get<1>(a.loss().parts).weight = std::get<1>(b.loss().parts).weight = 2;
        if (step == 2) std::get<1>(a.loss().parts).part.threshold = std::get<1>(b.loss().parts).part.threshold = 0.1;
        const auto before = a.predict(image, words);
        const auto left = a.train_on_batch(image, words, labels, box),
                   right = b.train_on_batch(image, words, labels, box);
        CHECK(left.loss == right.loss);
        CHECK(first_difference(a, b) == "");
        // The loss, from the predictions before the step; a handful of roundings of numbers near one.
        double expected = 0;
        for (int i = 0; i < 7; ++i) {
            double sum = 0;
            for (int k = 0; k < 3; ++k) sum += std::exp(before.get<"class">()(i, k));
            expected += (std::log(sum) - before.get<"class">()(i, labels(i))) / 7;
            for (int k = 0; k < 2; ++k) {
                const double off = std::abs(before.get<"box">()(i, k) - box(i, k)), limit = step == 2 ? 0.1 : 0.5;
                if (off > limit) expected += (step == 0 ? 0.5 : 2) * (off - limit) / 14;
            }
        }
        CHECK(std::abs(left.loss - expected) < 1e-13);
    }
    auto outside = labels;
    outside.set(7, 4);
    for (const auto& refused :
         {support::message_of<tg::range_error>([&] { a.train_on_batch(image, words, outside, box); }),
          support::message_of<tg::range_error>([&] { b.train_on_batch(image, words, outside, box); }),
          support::message_of<tg::range_error>([&] { a.evaluate(image, words, outside, box); }),
          support::message_of<tg::range_error>([&] { b.evaluate(image, words, outside, box); })}) {
        CAPTURE(refused);
        CHECK(refused.starts_with("labels 'class': "));
        CHECK(refused.ends_with(": index 7 at position 4 is outside [0, 3)"));
    }
    CHECK(a.step() == 3);
    const auto [classes_a, boxes_a] = a.predict(image, words);
    const auto [classes_b, boxes_b] = b.predict(image, words);
    CHECK(same_bits(classes_a, classes_b));
    CHECK(same_bits(boxes_a, boxes_b));
    REQUIRE(a.metrics().size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(a.metrics()[i].name == (i == 0 ? "class_loss" : i == 1 ? "class_accuracy" : "box_loss"));
        CHECK(a.metrics()[i].value == b.metrics()[i].value);
    }
}

TEST_CASE("columns of a data set find inputs and outputs by their names") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(
            two_headed{}, two_specs<float>(),
            tg::losses{tg::on<"class">(tg::sparse_softmax_cross_entropy{}), tg::on<"box">(tg::mean_squared_error{})},
            tg::sgd{.learning_rate = 0.1});
        const auto image = noise<float>({9, 5}, 1), words = noise<float>({9, 2}, 2), box = noise<float>({9, 2}, 3);
        const auto labels = classes(9, 3, 4);
        const auto column = [](const auto& t) {
            using T = typename std::remove_cvref_t<decltype(t)>::element_type;
            return std::vector<T>(t.data(), t.data() + t.size());
        };
        tg::data::dataset set; // in another order
        set.add("box", column(box), {2}).add("class", column(labels)).add("words", column(words), {2});
        CHECK_THROWS_WITH_AS(model.evaluate(set), "data set: no column 'image', there are 'box', 'class', 'words'",
                             tg::argument_error);
        set.add("image", column(image), {5});
        const tg::measured_result whole = model.evaluate(set, 4);
        const tg::step_result batch = model.evaluate(image, words, labels, box);
        CHECK(whole.loss == doctest::Approx(batch.loss).epsilon(1e-6)); // sums of floats in another order
        CHECK(whole["class_loss"] + whole["box_loss"] == doctest::Approx(whole.loss).epsilon(1e-6));
        CHECK_THROWS_WITH_AS(whole["loss"], "no metric 'loss', there are 'class_loss', 'class_accuracy', 'box_loss'",
                             tg::argument_error);
        const auto history = model.fit(set, {.epochs = 2, .batch_size = 4, .verbose = false});
        CHECK(history.epochs[1].loss < history.epochs[0].loss);
        REQUIRE(history.epochs[1].metrics.size() == 3);
        set.add("more", column(labels));
        CHECK_THROWS_WITH_AS(model.evaluate(set),
                             "data set: column 'more' is neither an input of the model nor a label",
                             tg::argument_error);
    });
}

TEST_CASE("weighted: records count by the third column") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(pair_model{}, tg::spec<double, tg::dyn, 3>{}, tg::weighted{squares{}},
                                                 tg::sgd{.learning_rate = 1});
        const auto x = noise<double>({5, 3}, 1), z = noise<double>({5, 2}, 2);
        const tg::tensor<double> weights{1, 0, 2.5, 0.125, 3};
        const auto y = model.predict(x);
        double expected = 0;
        for (int i = 0; i < 5; ++i)
            for (int k = 0; k < 2; ++k) expected += weights(i) * (y(i, k) - z(i, k)) * (y(i, k) - z(i, k)) / 10;
        CHECK(std::abs(model.train_on_batch(x, z, weights).loss - expected) < 1e-14);
        // A record of weight 0 does not matter.
        auto other = tg::compile<decltype(mode)>(pair_model{}, tg::spec<double, tg::dyn, 3>{}, tg::weighted{squares{}},
                                                 tg::sgd{.learning_rate = 1});
        auto changed = z;
        changed.set(1e6, 1, 0);
        other.train_on_batch(x, changed, weights);
        CHECK(first_difference(model, other) == "");
    });
}

TEST_CASE("a weighted output of several, a clipped gradient and predictions over a data set, alike in both modes") {
    const auto losses =
        tg::losses{tg::on<"class">(tg::weighted{tg::sparse_softmax_cross_entropy{}}), tg::on<"box">(squares{})};
    const tg::chain chain{tg::clip_by_global_norm{.norm = 0.1}, tg::momentum{.learning_rate = 0.5}};
    auto a = tg::compile<tg::graph>(two_headed{}, two_specs<double>(), losses, chain);
    auto b = tg::compile<tg::eager>(two_headed{}, two_specs<double>(), losses, chain);
    const auto image = noise<double>({7, 5}, 1), words = noise<double>({7, 2}, 2), box = noise<double>({7, 2}, 3);
    const auto labels = classes(7, 3, 4);
    const tg::tensor<double> weights{1, 0, 2.5, 0.125, 3, 1, 1};
    const auto flows = a.gradients(image, words, labels, weights, box);
    double norm = 0, moved = 0; // of the gradient, and of the first step
    for (const tg::named_gradient& each : flows)
        for (const double g : tg::tensor<double>(each.value).to_vector()) norm += g * g;
    CHECK(std::sqrt(norm) > 0.1); // clipped, therefore
    std::vector<tg::tensor<double>> before;
    for (const tg::named_gradient& each : flows) before.push_back(a.variables()[each.path].value<double>());
    for (int step = 0; step < 2; ++step) {
        CHECK(a.train_on_batch(image, words, labels, weights, box).loss ==
              b.train_on_batch(image, words, labels, weights, box).loss);
        REQUIRE(first_difference(a, b) == "");
        for (std::size_t i = 0; step == 0 && i < before.size(); ++i) {
            const auto now = a.variables()[flows.begin()[static_cast<std::ptrdiff_t>(i)].path].value<double>();
            for (std::int64_t k = 0; k < now.size(); ++k)
                moved += (now.data()[k] - before[i].data()[k]) * (now.data()[k] - before[i].data()[k]);
        }
    }
    CHECK(std::abs(std::sqrt(moved) - 0.05) < 1e-12); // rounding of numbers below 1

    tg::data::dataset set;
    set.add("words", words.to_vector(), {2}).add("image", image.to_vector(), {5});
    set.add("class", labels.to_vector()).add("box", box.to_vector(), {2}).add("sample_weight", weights.to_vector());
    const auto rows = a.predict(set, 3), whole = a.predict(image, words), other = b.predict(set, 3);
    CHECK(same_bits(rows.get<"class">(), other.get<"class">()));
    CHECK(same_bits(rows.get<"box">(), other.get<"box">()));
    for (std::int64_t k = 0; k < 21; ++k) // four products below 1, by another batch size in another order
        CHECK(std::abs(rows.get<"class">().data()[k] - whole.get<"class">().data()[k]) < 1e-14);
    CHECK(a.fit(set, {.epochs = 2, .batch_size = 3, .verbose = false})["loss"] ==
          b.fit(set, {.epochs = 2, .batch_size = 3, .verbose = false})["loss"]);
    CHECK_THROWS_WITH_AS(a.fit(set, {.class_weight = {1, 2, 3}, .verbose = false}),
                         "fit: class_weight is of models with one output", tg::argument_error);
}

TEST_CASE("metrics accumulate over batches of unequal size, start anew, and leave the model as it is") {
    each_mode([](auto mode) {
        auto model = tg::compile<decltype(mode)>(pair_model{}, tg::spec<float, tg::dyn, 3>{}, tg::mean_squared_error{},
                                                 tg::sgd{}, tg::metrics{far_off{.limit = 0.5}});
        const auto x = noise<float>({7, 3}, 1), z = noise<float>({7, 2}, 2);
        const auto y = model.predict(x);
        int far = 0;
        for (int i = 0; i < 7; ++i)
            for (int k = 0; k < 2; ++k) far += std::abs(y(i, k) - z(i, k)) > 0.5f;
        tg::data::dataset set;
        set.add("x", std::vector<float>(x.data(), x.data() + 21), {3});
        set.add("z", std::vector<float>(z.data(), z.data() + 14), {2});
        const auto result = model.evaluate(set, 3); // 3, 3 and 1
        CHECK(result["far_off"] == far / 14.0);
        CHECK(model.evaluate(set, 7)["far_off"] == far / 14.0);
        CHECK(model.parameter_count() == 8);
        CHECK_THROWS_AS(model.variables().set_trainable("__metrics__", false), tg::argument_error);
        model.reset_metrics();
        model.train_on_batch(x, z);
        model.evaluate(x, z); // goes on: the step above was on the same predictions
        REQUIRE(model.metrics().size() == 1);
        CHECK(model.metrics()[0].name == "far_off");
    });
}

namespace {
/// A penalty of the second layer's weights, and nothing else.
struct penalized {
    constexpr auto operator()(auto scope, auto x) const {
        const auto kernel = scope.variable_like(x, "w", {3, 2}, {.initializer = tg::init::ones{}});
        scope.add_loss(0.5 * sum(square(kernel)));
        return matmul(x, kernel);
    }
};
} // namespace

TEST_CASE("add_loss: what a model adds is trained and evaluated, with a loss or alone") {
    each_mode([](auto mode) {
        const auto x = noise<double>({4, 3}, 1), z = noise<double>({4, 2}, 2);
        auto both = tg::compile<decltype(mode)>(penalized{}, tg::spec<double, tg::dyn, 3>{}, tg::mean_squared_error{},
                                                tg::sgd{.learning_rate = 0.5});
        double squared = 0;
        const auto y = both.predict(x);
        for (int i = 0; i < 4; ++i)
            for (int k = 0; k < 2; ++k) squared += (y(i, k) - z(i, k)) * (y(i, k) - z(i, k)) / 8;
        CHECK(std::abs(both.evaluate(x, z).loss - (squared + 3)) < 1e-14);
        auto alone = tg::compile<decltype(mode)>(penalized{}, tg::spec<double, tg::dyn, 3>{}, tg::added_losses{},
                                                 tg::sgd{.learning_rate = 0.5});
        CHECK(alone.train_on_batch(x).loss == 3);
        CHECK(alone.variables()["w"].template value<double>()(0, 0) == 0.5); // 1 - 0.5 w
        CHECK(alone.train_on_batch(x).loss == 0.75);
    });
}

namespace {
/// One layer on both inputs (a Siamese network).
struct siamese {
    constexpr auto operator()(auto scope, auto a, auto b) const {
        const auto tower = (scope / "tower").reuse();
        const auto left = tg::dense(tower, a, {.units = 4}), right = tg::dense(tower, b, {.units = 4});
        return tg::eval(sum(left * right, -1));
    }
};
} // namespace

TEST_CASE("reuse: a layer called twice has one set of weights, whose gradient is the sum") {
    const auto specs =
        tg::inputs{tg::input<"a">(tg::spec<double, tg::dyn, 3>{}), tg::input<"b">(tg::spec<double, tg::dyn, 3>{})};
    each_mode([&](auto mode) {
        auto model =
            tg::compile<decltype(mode)>(siamese{}, specs, tg::mean_squared_error{}, tg::sgd{.learning_rate = 1});
        CHECK(model.parameter_count() == 16);
        const auto a = noise<double>({5, 3}, 1), b = noise<double>({5, 3}, 2);
        const auto z = noise<double>({5}, 3);
        const auto w = model.variables()["tower/kernel"].template value<double>();
        const auto loss = [&](double at) {
            auto moved = w;
            moved.set(w(1, 2) + at, 1, 2);
            model.variables()["tower/kernel"].assign(moved);
            return model.evaluate(a, b, z).loss;
        };
        const double difference = (loss(1e-5) - loss(-1e-5)) / 2e-5;
        model.variables()["tower/kernel"].assign(w);
        model.train_on_batch(a, b, z);
        const double step = w(1, 2) - model.variables()["tower/kernel"].template value<double>()(1, 2);
        CHECK(step == doctest::Approx(difference).epsilon(1e-8)); // central differences of a quartic: h^2 and rounding
    });
}

} // namespace objectives_test
