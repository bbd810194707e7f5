#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/weight_normalization.hpp>
#include <tapegraph/nn/mixed_precision.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>

#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

#include <limits>

/// Mixed precision by a policy, against the same model with casts by hand; scaling of the loss.

namespace mixed_precision_test {

using namespace nn_test;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dense(scope / "hidden", x, {.units = 6});
        const auto n = tg::batch_normalization(scope / "norm", h);
        const auto d = tg::dropout(scope / "drop", tanh(n), {.rate = 0.25});
        return tg::dense(tg::in_float(scope / "out"), d, {.units = 3});
    }
};

/// A model with a member, of integers, with two outputs and a loss of its own; a type per layer.
struct words {
    std::int64_t units;
    constexpr auto operator()(auto scope, auto x) const {
        const auto rows = tg::embedding(scope / "words", x, {.input_dim = 4, .output_dim = 5, .sparse = true});
        const auto h = tg::dense(tg::weight_normalized(scope / "hidden"), tg::flatten(rows), {.units = units});
        scope.add_loss(mean(square(h)));
        const auto y = tg::dense(tg::computed_in<tg::half>(scope / "score"), tanh(h), {.units = 1});
        return tg::outputs{tg::output<"score">(y), tg::output<"hidden">(h)};
    }
};

/// The same as `network` with variables and casts by hand.
template <class C>
struct cast_by_hand {
    static constexpr auto layer(auto scope, auto x, std::int64_t in, std::int64_t units, auto type) {
        using T = decltype(type);
        const auto w =
            scope.template variable<float>("kernel", {in, units}, {.initializer = tg::init::glorot_uniform{}});
        const auto b = scope.template variable<float>("bias", {units}, {.initializer = tg::init::zeros{}});
        if constexpr (std::is_same_v<T, float>)
            return eval(matmul(x, w) + b);
        else
            return eval(matmul(x, eval(tg::cast<T>(w))) + eval(tg::cast<T>(b)));
    }
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = layer(scope / "hidden", eval(tg::cast<C>(x)), 6, 6, C{});
        const auto n = eval(tg::cast<C>(tg::batch_normalization(scope / "norm", eval(tg::cast<float>(h)))));
        const auto d = tg::dropout(scope / "drop", tanh(n), {.rate = 0.25});
        return layer(scope / "out", eval(tg::cast<float>(d)), 6, 3, 0.f);
    }
};

template <class Mode>
auto make(const auto& model) {
    return tg::compile<Mode>(model, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                             tg::adam{.learning_rate = 0.02}, {.seed = 3});
}

/// y = x w in half, and w alone.
struct line {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "line", x,
                         {.units = 1, .use_bias = false, .kernel_initializer = tg::init::constant{0.5}});
    }
};
/// The labels are the gradient by y.
struct given_gradient {
    constexpr auto operator()(auto x, auto z) const { return sum(x * z); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};
template <class Mode, class Optimizer>
auto make_line(const Optimizer& optimizer) {
    return tg::compile<Mode>(tg::mixed<tg::half>(line{}), tg::spec<float, 1, 1>{}, given_gradient{}, optimizer);
}
void step_on(auto& model, float gradient) {
    model.train_on_batch(tg::ones<float>({1, 1}), tg::tensor<float>(gradient * tg::ones<float>({1, 1})));
}
float value_of(auto& model, const char* path) { return model.variables()[path].template value<float>().to_vector()[0]; }

} // namespace

TEST_CASE_TEMPLATE("a policy is what casts by hand are, in both modes, and weights stay float", C, tg::bfloat16,
                   tg::half) {
    auto graph = make<tg::graph>(tg::mixed<C>(network{}));
    auto eager = make<tg::eager>(tg::mixed<C>(network{}));
    auto by_hand = make<tg::eager>(cast_by_hand<C>{});
    double first = 0, last = 0;
    for (int step = 0; step < 60; ++step) {
        const auto x = noise<float>({8, 6}, 30 + static_cast<std::uint64_t>(step % 2));
        const auto z = classes(8, 3, static_cast<std::uint64_t>(step % 2));
        last = graph.train_on_batch(x, z).loss;
        CHECK(last == eager.train_on_batch(x, z).loss);
        CHECK(last == by_hand.train_on_batch(x, z).loss);
        if (step == 0) first = last;
    }
    CHECK(first_difference(graph, eager) == "");
    CHECK(first_difference(graph, by_hand) == "");
    CHECK(last < 0.5 * first); // sixteen records by heart
    for (const tg::variable& v : graph.variables()) CHECK(v.type() == tg::dtype::f32);
    const auto x = noise<float>({8, 6}, 5);
    CHECK(same_bits(graph.predict(x), eager.predict(x)));
    static_assert(std::is_same_v<decltype(graph.predict(x)), tg::tensor<float>>);
}

TEST_CASE(
    "integers, several outputs, losses added by the model and layers of another policy are the same in both modes") {
    const auto made = [](auto mode) {
        return tg::compile<decltype(mode), tg::mixed<tg::bfloat16>(words{.units = 4})>(
            tg::spec<std::int32_t, tg::dyn, 3>{},
            tg::losses{tg::on<"score">(tg::mean_squared_error{}), tg::on<"hidden">(tg::none{})}, tg::adam{});
    };
    auto graph = made(tg::graph{});
    auto eager = made(tg::eager{});
    const tg::tensor<std::int32_t> x{{1, 2, 3}, {0, 2, 2}};
    for (int step = 0; step < 4; ++step)
        CHECK(graph.train_on_batch(x, tg::ones<float>({2, 1})).loss ==
              eager.train_on_batch(x, tg::ones<float>({2, 1})).loss);
    CHECK(first_difference(graph, eager) == "");
    const auto [score, hidden] = eager.predict(x);
    CHECK(same_bits(graph.predict(x).template get<"hidden">(), hidden));
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(hidden)>, tg::tensor<float>>);
    for (const float value : hidden.to_vector()) CHECK(value == static_cast<float>(tg::bfloat16(value))); // was one
}

TEST_CASE("a gradient below half's smallest number arrives with a scaled loss") {
    const auto small = 1e-8f; // half rounds it to 0
    each_mode([&](auto mode) {
        auto plain = make_line<decltype(mode)>(tg::sgd{.learning_rate = 1e6});
        step_on(plain, small);
        CHECK(value_of(plain, "line/kernel") == 0.5f);
        auto scaled = make_line<decltype(mode)>(tg::chain{tg::loss_scaling{}, tg::sgd{.learning_rate = 1e6}});
        step_on(scaled, small);
        // 1e-8 2^15 has half's 11 bits.
        CHECK(value_of(scaled, "line/kernel") == doctest::Approx(0.49).epsilon(1e-5));
    });
}

TEST_CASE("the scale halves where a gradient overflows, which changes nothing else, and doubles after good steps") {
    const tg::chain chain{tg::loss_scaling{.initial_scale = 32768, .growth_steps = 3},
                          tg::clip_by_global_norm{.norm = 4}, tg::adam{.learning_rate = 0.125}};
    auto graph = make_line<tg::graph>(chain);
    auto eager = make_line<tg::eager>(chain);
    // 3 times 2^15 is beyond 65504, 3 times 2^14 is not; NaN never passes.
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float gradients[]{1, 3, 3, 3, 0.5, nan, 1, 1, 1, 3};
    const float scales[]{32768, 16384, 16384, 16384, 32768, 16384, 16384, 16384, 32768, 16384};
    const float good[]{1, 0, 1, 2, 0, 0, 1, 2, 0, 0};
    for (std::size_t i = 0; i < std::size(gradients); ++i) {
        CAPTURE(i);
        const bool skipped = i == 1 || i == 5 || i == 9;
        std::vector<tg::tensor<float>> before;
        for (tg::variable& v : graph.variables()) before.push_back(v.value<float>());
        step_on(graph, gradients[i]);
        step_on(eager, gradients[i]);
        REQUIRE(first_difference(graph, eager) == "");
        CHECK(value_of(graph, "loss_scale") == scales[i]);
        CHECK(value_of(graph, "loss_scale_good_steps") == good[i]);
        for (const char* path : {"line/kernel", "line/kernel/adam_m", "line/kernel/adam_v"})
            for (int k = 0; k < graph.variables().size(); ++k)
                if (graph.variables().at(k).path() == path)
                    CHECK(same_bits(graph.variables().at(k).data(), before[static_cast<std::size_t>(k)]) == skipped);
    }
    CHECK(graph.variables()["loss_scale"].optimizer_state());

    const support::temporary_folder folder;
    const auto path = folder.path() / "scaled.safetensors";
    graph.save(path, {.optimizer_state = true});
    auto resumed = make_line<tg::eager>(chain);
    resumed.load(path);
    CHECK(value_of(resumed, "loss_scale") == 16384);
    for (const float g : {1.f, 3.f, 1.f}) {
        step_on(graph, g);
        step_on(resumed, g);
    }
    CHECK(first_difference(graph, resumed) == "");
    CHECK(value_of(resumed, "loss_scale") == 32768);
}

TEST_CASE("a scale that is a power of two changes no bit of a float model, and stops at 1") {
    const auto made = [](auto mode, const auto& optimizer) {
        return tg::compile<decltype(mode)>(line{}, tg::spec<double, 1, 1>{}, given_gradient{}, optimizer);
    };
    each_mode([&](auto mode) {
        auto plain = made(mode, tg::adam{.learning_rate = 0.1});
        auto scaled = made(
            mode, tg::chain{tg::loss_scaling{.initial_scale = 2, .growth_steps = 4}, tg::adam{.learning_rate = 0.1}});
        const auto step = [](auto& model, double gradient) {
            return model
                .train_on_batch(tg::ones<double>({1, 1}), tg::tensor<double>(gradient * tg::ones<double>({1, 1})))
                .loss;
        };
        for (const double g : {0.3, -1.7, 2.2, 0.9, 1.1}) CHECK(step(plain, g) == step(scaled, g));
        const auto scale = [&] { return scaled.variables()["loss_scale"].template value<double>().to_vector()[0]; };
        CHECK(same_bits(plain.variables()["line/kernel"].data(), scaled.variables()["line/kernel"].data()));
        CHECK(scale() == 4);
        for (int i = 0; i < 4; ++i) step(scaled, std::numeric_limits<double>::infinity());
        CHECK(scale() == 1);
    });
}

TEST_CASE("numbers of loss_scaling that make no sense are refused") {
    auto zero = make_line<tg::eager>(tg::chain{tg::loss_scaling{.initial_scale = 0}, tg::sgd{}});
    CHECK_THROWS_WITH_AS(step_on(zero, 1), "loss_scaling: initial_scale must lie in [1, 2^64], given 0",
                         tg::argument_error);
    auto never = make_line<tg::eager>(tg::chain{tg::loss_scaling{.growth_steps = 0}, tg::sgd{}});
    CHECK_THROWS_WITH_AS(step_on(never, 1), "loss_scaling: growth_steps must be positive, given 0", tg::argument_error);
}

} // namespace mixed_precision_test
