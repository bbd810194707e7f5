#include <tapegraph/nn/optimizers/all.hpp>
#include <tapegraph/ops/gather/rows_kernel.hpp>

#include <nn/hand_gradients.hpp>

/// Optimizers in loops of one's own.

namespace applied_test {

using namespace hand_gradients;

namespace {

const tg::tensor<float> x{{1, 2}, {-1, 0.5}, {0.25, -2}}, y = tg::reshape(tg::tensor<float>{1, 0, -1}, {3, 1});

/// A linear regression, whose names are those of the model below.
struct line {
    constexpr auto operator()(auto scope, auto input) const { return tg::dense(scope / "line", input, {.units = 1}); }
};

} // namespace

TEST_CASE("minimize makes a model's steps, bit for bit") {
    const tg::chain chain{tg::clip_by_global_norm{.norm = 0.25},
                          tg::basic_adamw<tg::except<"*/bias">>{.learning_rate = 0.125},
                          tg::weight_average{.decay = 0.5}};
    auto model = tg::compile<tg::eager>(line{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, chain);
    auto w = model.variables()["line/kernel"].value<float>(), b = model.variables()["line/bias"].value<float>();
    tg::applied optimizer(chain, tg::named{"line/kernel", w}, tg::named{"line/bias", b});
    for (int step = 0; step < 6; ++step) {
        const double expected = model.train_on_batch(x, y).loss;
        const auto loss = optimizer.minimize([&] { return mean(square(matmul(x, w) + b - y)); });
        CHECK(loss.item() == expected);
        CHECK(same_bits(w, model.variables()["line/kernel"].data()));
        CHECK(same_bits(b, model.variables()["line/bias"].data()));
    }
    CHECK(optimizer.step() == 6);
    CHECK(optimizer.state().find("line/kernel/average") != nullptr);
}

TEST_CASE("compute_gradients and apply_gradients are minimize's two halves") {
    auto a = tg::ones<double>({2}), b = tg::ones<double>({2});
    tg::applied one(tg::momentum{.learning_rate = 0.25}, a), two(tg::momentum{.learning_rate = 0.25}, b);
    const tg::tensor<double> target{3, -1};
    for (int step = 0; step < 3; ++step) {
        one.minimize([&] { return sum(square(a - target)); });
        const auto gradients = two.compute_gradients([&] { return sum(square(b - target)); });
        REQUIRE(gradients.size() == 1);
        CHECK(tg::tensor<double>(gradients[0])(0) == 2 * (b(0) - 3));
        two.apply_gradients(gradients);
        CHECK(same_bits(a, b));
    }
    CHECK(a.tape_index().serial == 0);
    a.set(7, 0); // nothing follows it any more
    one.optimizer().learning_rate = 0;
    one.optimizer().momentum = 0;
    one.minimize([&] { return sum(square(a - target)); });
    CHECK(a(0) == 7);
}

TEST_CASE("tensors of both types, one without gradient, a second derivative around it") {
    tg::tensor<float> f{1, 2};
    tg::tensor<double> d{3}, idle{5};
    tg::applied optimizer(tg::chain{tg::clip_by_global_norm{.norm = 1}, tg::sgd{.learning_rate = 0.5}}, f, d, idle);
    optimizer.apply_gradients({tg::tensor<float>{3, 0}, tg::tensor<double>{4}, tg::any_tensor{}}); // of norm 5
    CHECK(std::abs(f(0) - 0.7f) < 1e-6f);
    CHECK(f(1) == 2);
    CHECK(std::abs(d(0) - 2.6) < 1e-12);
    CHECK(idle(0) == 5);
}

TEST_CASE("variables of a model: frozen ones stay") {
    auto model = tg::compile<tg::eager>(line{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{});
    tg::applied optimizer(tg::adagrad{.learning_rate = 1}, model.variables());
    model.variables().set_trainable("line/bias", false);
    const auto before = model.variables()["line/kernel"].value<float>();
    optimizer.apply_gradients({tg::ones<float>({2, 1}), tg::ones<float>({1})});
    CHECK(std::abs(model.variables()["line/kernel"].value<float>()(0, 0) - (before(0, 0) - 1 / std::sqrt(1.1f))) <
          1e-6f);
    CHECK(model.variables()["line/bias"].value<float>()(0) == 0);
}

TEST_CASE("rows of a table have the steps of a table of these rows; the others stay") {
    const tg::tensor<float> first{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}};
    const tg::tensor<std::int64_t> which{3, 0};
    tg::variable_list list;
    tg::variable& table = list.add("table", first, true, false);
    tg::variable& other = list.add("other", tg::tensor<float>{1, 2, 3}, true, false);
    auto some = tg::tensor<float>(gather(first, which, 0, 0)), rest = tg::tensor<float>{1, 2, 3};
    const tg::adam adam{.learning_rate = 0.5};
    tg::applied by_rows(adam, list), dense(adam, tg::named{"table", some}, tg::named{"other", rest});
    for (int step = 0; step < 3; ++step) {
        const tg::tensor<float> g{{0.5f, -1}, {2, float(step)}}, h{1, -1, 0.25f};
        by_rows.apply_rows({g, h}, {which, {}});
        dense.apply_gradients({g, h});
    }
    CHECK(same_bits(gather(table.value<float>(), which, 0, 0), some));
    CHECK(same_bits(other.data(), rest));
    const tg::tensor<std::int64_t> left{1, 2, 4};
    CHECK(same_bits(gather(table.value<float>(), left, 0, 0), tg::tensor<float>(gather(first, left, 0, 0))));
    const auto momentum = by_rows.state()["table/adam_m"].value<float>();
    CHECK(same_bits(gather(momentum, which, 0, 0), dense.state()["table/adam_m"].value<float>()));
    CHECK(same_bits(gather(momentum, left, 0, 0), tg::zeros<float>({3, 2})));
    by_rows.apply_rows({tg::zeros<float>({0, 2}), {}}, {tg::tensor<std::int64_t>::uninitialized({0}), {}}); // no row
    CHECK(same_bits(gather(table.value<float>(), which, 0, 0), some));

    const tg::tensor<float> g{{0.5f, -1}, {2, 1}};
    CHECK_THROWS_WITH_AS(by_rows.apply_rows({g, {}}, {which}), "apply_rows: 1 indices for 2 gradients",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(dense.apply_rows({g, {}}, {which, {}}),
                         "apply_rows: tensor 'table' has to be a variable, and its indices i64 [n]",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(by_rows.apply_rows({g, {}}, {left, {}}),
                         "apply_gradients: tensor 'table' has shape [3, 2], its gradient [2, 2]", tg::shape_error);
}

TEST_CASE("what does not fit is refused, and nothing has changed") {
    tg::tensor<double> w{1, 2};
    tg::applied optimizer(tg::adam{}, tg::named{"layer/w", w});
    CHECK_THROWS_WITH_AS(optimizer.apply_gradients({}), "apply_gradients: 0 gradients for 1 tensors",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(optimizer.apply_gradients({tg::tensor<double>{1}}),
                         "apply_gradients: tensor 'layer/w' has shape [2], its gradient [1]", tg::shape_error);
    CHECK_THROWS_AS(optimizer.apply_gradients({tg::tensor<float>{1, 2}}), tg::dtype_error);
    CHECK_THROWS_WITH_AS(optimizer.minimize([&] { return tg::eval(w * 2); }),
                         "minimize: the function must give a scalar, it gave shape [2]", tg::shape_error);
    optimizer.optimizer().learning_rate = -1;
    CHECK_THROWS_AS(optimizer.minimize([&] { return sum(w * 2); }), tg::argument_error);
    CHECK(optimizer.step() == 0);
    CHECK(w(0) == 1);
    CHECK_THROWS_WITH_AS(tg::applied(tg::sgd{}, tg::named{"a", w}, tg::named{"a", w}),
                         "applied: two tensors are called 'a'", tg::argument_error);
    tg::tensor<std::int32_t> n{1};
    CHECK_THROWS_AS(tg::applied(tg::sgd{}, n), tg::dtype_error);
}

} // namespace applied_test
