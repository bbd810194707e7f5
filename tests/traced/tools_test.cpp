#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <tapegraph/graph/explain.hpp>
#include <tapegraph/io/checkpoint_manager.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/mixed_precision.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>
#include <tapegraph/nn/sequential.hpp>
#include <tapegraph/profile/profile.hpp>
#include <tapegraph/traced.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace traced_tools_test {

/// What looks at a model, casts it, chains it or keeps it works alike for graphs of both kinds.

using namespace nn_test;

namespace {

struct data_mlp {
    std::vector<int> units;

    constexpr auto operator()(auto scope, auto x) const {
        auto h = eval(x * 1);
        for (std::size_t i = 0; i < units.size(); ++i)
            h = tanh(tg::dense(scope / "hidden" / static_cast<int>(i), h, {.units = units[i]}));
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
struct fixed_mlp {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::eval(tanh(tg::dense(scope / "hidden" / 0, eval(x * 1), {.units = 5})));
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
template <class Mode, class Model, class Optimizer = tg::adam>
auto made(const Model& model, const Optimizer& optimizer = tg::adam{.learning_rate = 0.01}) {
    return tg::compile<Mode>(model, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, optimizer, {.seed = 4});
}
const auto batch = [](std::int64_t size, std::uint64_t seed) {
    return std::pair(noise<float>({size, 6}, seed), classes(size, 3, seed));
};

} // namespace

TEST_CASE("run-time graphs: explain, summary and profile are those of a compiled one") {
    auto compiled = made<tg::graph>(fixed_mlp{});
    auto traced = made<tg::traced>(data_mlp{{5}});
    CHECK(traced.summary() == compiled.summary());
    // Fused kernels and lines of the sources apart, the plans are equal.
    const auto numbers_of = [](const auto& model) {
        return tg::explain(model.training_view(), {.batch_size = 3, .calls = 0});
    };
    CHECK(numbers_of(traced) == numbers_of(compiled));
    CHECK(tg::explain(traced.training_view(), {.batch_size = 3}).find("matmul") != std::string::npos);
    const auto records = batch(8, 1);
    tg::profile_options few;
    few.steps = 2;
    few.warm_up = 1;
    const auto profiled = [&](auto& model) {
        tg::profile_result r = tg::profile(model, records.first, records.second, few);
        std::stable_sort(r.calls.begin(), r.calls.end(),
                         [](const auto& p, const auto& q) { return p.number < q.number; });
        return r;
    };
    const tg::profile_result a = profiled(compiled), b = profiled(traced);
    REQUIRE(a.calls.size() == b.calls.size());
    for (std::size_t i = 0; i < a.calls.size(); ++i) {
        CAPTURE(i);
        CHECK(a.calls[i].layer == b.calls[i].layer);
        CHECK(a.calls[i].operation == b.calls[i].operation);
        CHECK(a.calls[i].flops == b.calls[i].flops);
        CHECK(a.calls[i].bytes == b.calls[i].bytes);
        CHECK((a.calls[i].phase == b.calls[i].phase));
    }
    CHECK(a.arena_bytes == b.arena_bytes);
    CHECK(traced.step() == 0); // a profile gives the model back as it was
    CHECK(first_difference(compiled, traced) == "");
}

TEST_CASE("run-time graphs: sequential takes layers that capture") {
    std::vector<int> units{5};
    units.push_back(3);
    const tg::sequential layers{[&](auto scope, auto x) { return tanh(tg::dense(scope, x, {.units = units[0]})); },
                                [](auto x) { return 2 * x; },
                                [&](auto scope, auto x) { return tg::dense(scope, x, {.units = units[1]}); }};
    const auto same = [](auto scope, auto x) {
        const auto h = tg::eval(2 * tanh(tg::dense(scope / 0, x, {.units = 5})));
        return tg::dense(scope / 2, h, {.units = 3});
    };
    auto a = made<tg::traced>(layers);
    auto b = made<tg::traced>(same);
    REQUIRE(first_difference(a, b) == "");
    train_alike(a, b, {4, 9}, batch);
}

TEST_CASE("run-time graphs: mixed precision has the bits of graph mode") {
    SUBCASE("bfloat16") {
        auto compiled = made<tg::graph>(tg::mixed<tg::bfloat16>(fixed_mlp{}));
        auto traced = made<tg::traced>(tg::mixed<tg::bfloat16>(data_mlp{{5}}));
        train_alike(traced, compiled, {8, 3, 8}, batch);
        for (const tg::variable& v : traced.variables()) CHECK(v.type() == tg::dtype::f32);
    }
    SUBCASE("half with a scaled loss") {
        const tg::chain optimizer{tg::loss_scaling{}, tg::sgd{.learning_rate = 0.1}};
        auto compiled = made<tg::graph>(tg::mixed<tg::half>(fixed_mlp{}), optimizer);
        auto traced = made<tg::traced>(tg::mixed<tg::half>(data_mlp{{5}}), optimizer);
        train_alike(traced, compiled, {8, 3, 8}, batch);
    }
}

TEST_CASE("run-time graphs: checkpoints of one kind are continued by the other") {
    const support::temporary_folder folder;
    tg::checkpoint_manager manager(folder.path(), {.max_to_keep = 2});
    auto traced = made<tg::traced>(data_mlp{{5}});
    const auto [x, y] = batch(9, 2);
    for (int i = 0; i < 3; ++i) {
        traced.train_on_batch(x, y);
        manager.save(traced);
    }
    manager.wait();
    auto compiled = made<tg::graph>(fixed_mlp{});
    const auto state = manager.restore_latest(compiled);
    REQUIRE(state);
    CHECK(state->step == 3);
    CHECK(compiled.train_on_batch(x, y).loss == traced.train_on_batch(x, y).loss);
    CHECK(first_difference(compiled, traced) == "");
    auto again = made<tg::traced>(data_mlp{{5}});
    manager.restore(again, 2);
    again.train_on_batch(x, y);
    again.train_on_batch(x, y);
    CHECK(first_difference(compiled, again) == "");
}

} // namespace traced_tools_test
