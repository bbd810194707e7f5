#include <nn/models.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/optimizers/all.hpp>
#include <tapegraph/nn/regularizer.hpp>

namespace variable_gradients_test {

using namespace nn_test;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 5, .kernel_regularizer = tg::regularizers::l2{0.1}});
        static_cast<void>(tg::dense(scope / "beside", x, {.units = 2})); // the loss does not depend on it
        h = tg::batch_normalization(scope / "norm", tanh(h), {.momentum = 0.5});
        h = tg::dropout(scope / "drop", h, {.rate = 0.25});
        return tg::dense(scope / "out", h, {.units = 2});
    }
};
using spec = tg::spec<double, tg::dyn, 3>;

/// Rows of one table, twice.
template <bool Sparse>
struct words {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::embedding(scope / "words", x, {.input_dim = 6, .output_dim = 3, .sparse = Sparse});
    }
};

struct beside {
    constexpr auto operator()(auto scope, auto x) const {
        static_cast<void>(tg::dense(scope / "beside", x, {.units = 2}));
        return tg::dense(scope / "out", x, {.units = 2});
    }
};

template <class A, class B>
void check_same(const A& a, const B& b) {
    REQUIRE(a.size() == b.size());
    CHECK(a.loss == b.loss);
    for (const tg::named_gradient& each : a) {
        CAPTURE(each.path);
        CHECK(same_bits(each.value, b[each.path]));
    }
}

} // namespace

TEST_CASE("gradients by each variable are those of the next step, alike in both modes, and change nothing") {
    auto a = tg::compile<tg::graph>(network{}, spec{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.5});
    auto b = tg::compile<tg::eager>(network{}, spec{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.5});
    const auto x = noise<double>({6, 3}, 1), y = noise<double>({6, 2}, 2);
    for (int i = 0; i < 2; ++i) {
        const auto found = a.gradients(x, y);
        check_same(found, b.gradients(x, y));
        CHECK(first_difference(a, b) == "");
        CHECK(a.step() == i);
        CHECK(b.step() == i);
        REQUIRE(found.size() == 8);
        CHECK(same_bits(found["beside/kernel"], tg::zeros<double>({3, 2})));

        std::vector<tg::tensor<double>> before;
        for (const tg::named_gradient& each : found) before.push_back(a.variables()[each.path].value<double>());
        const auto assigned = found.assigned(), beside = b.gradients(x, y).assigned();
        REQUIRE(assigned.size() == 2); // moving averages
        REQUIRE(beside.size() == 2);
        CHECK(a.train_on_batch(x, y).loss == found.loss);
        b.train_on_batch(x, y);
        REQUIRE(first_difference(a, b) == "");
        for (std::size_t k = 0; k < 2; ++k) {
            CHECK(assigned[k].path == (k == 0 ? "norm/moving_mean" : "norm/moving_variance"));
            CHECK(beside[k].path == assigned[k].path);
            CHECK(same_bits(assigned[k].value, a.variables()[assigned[k].path].data()));
            CHECK(same_bits(beside[k].value, assigned[k].value));
        }
        std::size_t at = 0;
        for (const tg::named_gradient& each : found) {
            CAPTURE(each.path);
            const auto w = a.variables()[each.path].value<double>();
            const tg::tensor<double> g(each.value);
            for (std::int64_t k = 0; k < w.size(); ++k) // half of a number is exact, so only the difference is rounded
                CHECK(w.data()[k] == before[at].data()[k] - 0.5 * g.data()[k]);
            ++at;
        }
    }
    a.variables().set_trainable("norm", false);
    b.variables().set_trainable("norm", false);
    const auto rest = a.gradients(x, y);
    CHECK(rest.size() == 6);
    check_same(rest, b.gradients(x, y));
    CHECK_THROWS_WITH_AS(rest["norm/gamma"],
                         "gradients: no trainable variable 'norm/gamma', there are 'hidden/kernel', 'hidden/bias', "
                         "'beside/kernel', 'beside/bias', 'out/kernel', 'out/bias'",
                         tg::argument_error);
    CHECK_THROWS_AS(a.gradients(noise<double>({6, 4}, 1), y), tg::shape_error);
    CHECK_THROWS_AS(b.gradients(noise<double>({6, 4}, 1), y), tg::shape_error);
    CHECK(a.step() == 2);
    CHECK(b.step() == 2);
}

TEST_CASE("what the loss does not depend on is not updated, nor decays, in either mode") {
    auto a = tg::compile<tg::graph>(beside{}, spec{}, tg::mean_squared_error{}, tg::adamw{.weight_decay = 0.5});
    auto b = tg::compile<tg::eager>(beside{}, spec{}, tg::mean_squared_error{}, tg::adamw{.weight_decay = 0.5});
    const auto before = b.variables()["beside/kernel"].value<double>();
    a.train_on_batch(noise<double>({6, 3}, 1), noise<double>({6, 2}, 2));
    b.train_on_batch(noise<double>({6, 3}, 1), noise<double>({6, 2}, 2));
    CHECK(same_bits(before, b.variables()["beside/kernel"].data()));
    CHECK(first_difference(a, b) == "");
}

TEST_CASE("a gradient taken by rows is given as one by the whole table") {
    const auto of = [](auto model) {
        auto x = tg::zeros<std::int32_t>({2, 3});
        for (int i = 0; i < 6; ++i) x.set(std::array{4, 1, 4, 0, 4, 1}[static_cast<std::size_t>(i)], i / 3, i % 3);
        return model.gradients(x, noise<float>({2, 3, 3}, 3));
    };
    using tokens = tg::spec<std::int32_t, tg::dyn, 3>;
    const auto a = of(tg::compile<tg::graph>(words<true>{}, tokens{}, tg::mean_squared_error{}, tg::sgd{}));
    check_same(a, of(tg::compile<tg::eager>(words<true>{}, tokens{}, tg::mean_squared_error{}, tg::sgd{})));
    const auto right = of(tg::compile<tg::eager>(words<false>{}, tokens{}, tg::mean_squared_error{}, tg::sgd{}));
    REQUIRE(a.size() == 1);
    const tg::tensor<float> sparse(a["words/embeddings"]), dense(right["words/embeddings"]);
    REQUIRE(sparse.shape() == dense.shape());
    for (std::int64_t k = 0; k < dense.size(); ++k) // three floats below 1 in another order
        CHECK(std::abs(sparse.data()[k] - dense.data()[k]) < 1e-6);
}

} // namespace variable_gradients_test
