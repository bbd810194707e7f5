#include <support/graph_runner.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

namespace checkpoint_test {

/// Checkpoints: the same bits, less memory, in both modes.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using tg::tensor;

namespace {

constexpr int layers = 16;

// Four layers by four; a weight is used in each part and outside, so that adjoints meet from in- and outside.
template <bool Checkpointed>
struct deep {
    static constexpr auto part(const auto& h, const auto& w) {
        auto x = tg::eval(h);
        for (int i = 0; i < layers / 4; ++i) x = tanh(matmul(x, w));
        return x;
    }
    constexpr auto operator()(auto x, auto w) const {
        auto h = tg::eval(x);
        for (int i = 0; i < 4; ++i) {
            if constexpr (Checkpointed)
                h = tg::checkpoint([](auto a, auto b) { return part(a, b); })(h, w);
            else
                h = part(h, w);
        }
        return tg::eval(sum(square(h)) + sum(x) * sum(w));
    }
};
template <bool Checkpointed>
constexpr auto first_order = [](auto x, auto w) { return tg::value_and_gradient(deep<Checkpointed>{})(x, w); };

// Parts inside parts, and values from outside that the function captures.
template <bool Checkpointed>
struct nested {
    template <class F>
    static constexpr auto maybe(F f) {
        if constexpr (Checkpointed)
            return tg::checkpoint(f);
        else
            return f;
    }
    constexpr auto operator()(auto x, auto w) const {
        const auto inner = [w](auto h) { return tg::eval(tanh(matmul(h, w)) * 1.5); };
        const auto outer = [inner, x](auto h) {
            const auto a = maybe(inner)(h);
            const auto b = maybe(inner)(tg::eval(a * a + x));
            return tg::eval(b * tg::exp(-a));
        };
        const auto y = maybe(outer)(x);
        return tg::eval(sum(square(maybe(outer)(y))) + sum(y));
    }
};
template <class F>
constexpr auto second_order = [](auto x, auto w) {
    return tg::gradient([](auto a, auto b) {
        const auto [da, db] = tg::gradient(F{})(a, b);
        const auto first = sum(square(da));
        return tg::eval(first + sum(square(db)));
    })(x, w);
};

template <bool Checkpointed>
struct block_model {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::eval(x * 1);
        for (int i = 0; i < 3; ++i) {
            const auto block = [scope, i](auto in) {
                const auto normal = tg::batch_normalization(scope / "norm" / i, in);
                return tg::dropout(scope / "drop" / i, tanh(tg::dense(scope / "dense" / i, normal, {.units = 8})), {.rate = 0.3});
            };
            if constexpr (Checkpointed)
                h = tg::checkpoint(block)(h);
            else
                h = block(h);
            h = tg::dropout(scope / "between" / i, h, {.rate = 0.1});
        }
        return tg::dense(scope / "out", h, {.units = 1});
    }
};

} // namespace

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("checkpoint: a deep chain in graph mode, less memory and the same bits") {
    using x_spec = tg::spec<float, tg::dyn, 32>;
    using w_spec = tg::spec<float, 32, 32>;
    auto plain = tg::function<tg::graph>(first_order<false>, x_spec{}, w_spec{});
    auto saving = tg::function<tg::graph>(first_order<true>, x_spec{}, w_spec{});
    const auto x = drawn<float>({512, 32}, 1), w = drawn<float>({32, 32}, 2, -0.3, 0.3);
    TG_SAME(difference(flattened(saving(x, w)), flattened(plain(x, w))));
    // 16 activations against 4 kept, 4 computed again, and what the walk itself needs.
    const auto activation = static_cast<std::size_t>(x.size()) * sizeof(float);
    CHECK(plain.program().arena_bytes() > 16 * activation);
    CHECK(saving.program().arena_bytes() < 11 * activation);
    int products = 0;
    for (int s = 0; s < saving.view().steps.size(); ++s)
        products += saving.view().nodes[saving.view().steps[s].node].op == &tg::ir::descriptor_of<tg::matmul_op>;
    CHECK(products == 4 * layers); // forward, again, and two for the derivatives
}

TEST_CASE("checkpoint: a deep chain in eager mode, less memory and the same bits") {
    const auto x = drawn<float>({512, 32}, 1), w = drawn<float>({32, 32}, 2, -0.3, 0.3);
    const auto peak = [&](auto f) {
        f(x, w);
        const auto before = tg::eager_memory().in_use;
        tg::reset_peak_memory();
        f(x, w);
        return tg::eager_memory().peak - before;
    };
    const auto activation = x.size() * static_cast<std::int64_t>(sizeof(float));
    const auto all = peak(first_order<false>), some = peak(first_order<true>);
    CHECK(all > 16 * activation);
    CHECK(some < 14 * activation);
    TG_SAME(difference(flattened(first_order<true>(x, w)), flattened(first_order<false>(x, w))));
}

TEST_CASE("checkpoint: both modes, checkpoints in checkpoints, captured values, second derivatives") {
    const auto x = drawn<double>({5, 3}, 1), w = drawn<double>({3, 3}, 2);
    const tg::spec<double, tg::dyn, 3> x_spec;
    const tg::spec<double, 3, 3> w_spec;
    both_modes saving(tg::value_and_gradient(nested<true>{}), x_spec, w_spec);
    TG_SAME(saving.compare(x, w));
    TG_SAME(difference(saving.results(), flattened(tg::value_and_gradient(nested<false>{})(x, w))));
    both_modes twice(second_order<nested<true>>, x_spec, w_spec);
    CHECK(twice.distance(x, w) < 1e-13); // unfused in eager mode: other roundings
    both_modes plain(second_order<nested<false>>, x_spec, w_spec);
    plain.compare(x, w);
    // Second derivatives pass through copies by themselves, so their adjoints add in another order.
    const tensor<double> a(twice.results()[0]), b(plain.results()[0]);
    for (std::int64_t i = 0; i < a.size(); ++i) CHECK(a.data()[i] == doctest::Approx(b.data()[i]).epsilon(1e-13));
}

TEST_CASE("checkpoint: variables, dropout and moving averages of a model, in both modes") {
    const tg::compile_options options{.seed = 5};
    const auto x = drawn<float>({16, 6}, 1);
    const auto y = tensor<float>(tg::eval(tg::cast<float>(drawn<float>({16, 1}, 2) > 0)));
    const auto train = [&](auto model) {
        std::vector<tg::any_tensor> values;
        for (int step = 0; step < 3; ++step) {
            const auto result = model.train_step(x.view(), y.view());
            values.push_back(tensor<double>(result.loss));
        }
        for (const tg::variable& v : model.variables()) values.push_back(v.data().viewed(v.shape()));
        return values;
    };
    const auto compiled = [&]<class Mode, class Model>(Mode, Model) {
        return tg::compile<Mode>(Model{}, tg::spec<float, tg::dyn, 6>{}, tg::sigmoid_cross_entropy{}, tg::adam{}, options);
    };
    const auto expected = train(compiled(tg::graph{}, block_model<false>{}));
    TG_SAME(difference(train(compiled(tg::eager{}, block_model<false>{})), expected));
    TG_SAME(difference(train(compiled(tg::graph{}, block_model<true>{})), expected));
    TG_SAME(difference(train(compiled(tg::eager{}, block_model<true>{})), expected));
}

TEST_CASE("checkpoint: watched tensors that the function captures receive derivatives") {
    tensor<double> x{1, 2}, w{3, 4};
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x, w);
    const auto f = tg::checkpoint([w](auto v) { return v * v * w; });
    const tensor<double> y = f(x);
    for (int k = 0; k < 2; ++k) {
        const auto [dx, dw] = tape.gradient(y, x, w);
        CHECK(tg::to_string(dx) == "[ 6. 16.]");
        CHECK(tg::to_string(dw) == "[1. 4.]");
    }
    // What is not watched gets none, and functions that hand their operand through are still functions.
    const tensor<double> same = tg::checkpoint([](auto v) { return v; })(x);
    CHECK(tg::to_string(tape.gradient(same * x, x)) == "[2. 4.]");
}

TEST_CASE("checkpoint: an error inside leaves the tape as it was") {
    tensor<double> x{1, 2};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> wrong{1, 2, 3};
    CHECK_THROWS_AS(tg::checkpoint([wrong](auto v) { return v + wrong; })(x), tg::shape_error);
    const tensor<double> y = x * x;
    CHECK(tg::to_string(tape.gradient(y, x)) == "[2. 4.]");
}

} // namespace checkpoint_test
