#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/optimizers/all.hpp>

#include <nn/hand_gradients.hpp>

#include <limits>

/// Chains of gradient transformations, an optimizer and what happens to weights, against plain loops.

namespace optimizer_chains_test {

using namespace hand_gradients;

namespace {

/// A matrix "encoder/kernel" with gradient z, and "head/bias" with the sums of z's columns.
struct two_variables {
    constexpr auto operator()(auto scope, auto x) const {
        const auto kernel =
            (scope / "encoder").variable_like(x, "kernel", {3, 2}, {.initializer = tg::init::constant{0.5}});
        const auto bias = (scope / "head").variable_like(x, "bias", {2}, {.initializer = tg::init::constant{-0.25}});
        return eval(x + kernel + bias);
    }
};
using numbers = std::vector<double>;

template <class Mode, class Optimizer>
auto compiled(const Optimizer& optimizer, bool check = false) {
    return tg::compile<Mode>(two_variables{}, tg::spec<double, 3, 2>{}, given_gradient{}, optimizer,
                             {.check_finite = check});
}
/// A gradient of the kernel, the same for all who ask.
tg::tensor<double> gradient_of(int step) {
    auto z = tg::tensor<double>::uninitialized({3, 2});
    for (int i = 0; i < 6; ++i) z.mutable_data()[i] = ((7 * step + 5 * i) % 11 - 5) / 8.0;
    return z;
}
template <class Model>
void step_on(Model& model, const tg::tensor<double>& z) {
    model.train_on_batch(tg::zeros<double>({3, 2}), z);
}
template <class Model>
numbers values(Model& model, const char* path) {
    return model.variables()[path].template value<double>().to_vector();
}

/// The same by loops: `update(w, g, matrix, step)` of one variable.
struct by_loops {
    numbers kernel = numbers(6, 0.5), bias = numbers(2, -0.25);

    static std::pair<numbers, numbers> gradients(const tg::tensor<double>& z) {
        numbers g(z.data(), z.data() + 6), b(2);
        for (std::size_t i = 0; i < 6; ++i) b[i % 2] += g[i];
        return {g, b};
    }
};
// A handful of roundings of numbers below two a step.
void close(const numbers& found, const numbers& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(found[i] - expected[i]) < 1e-14);
    }
}

/// `steps` steps in both modes with the same bits; afterwards, and before each, `loop(step, z)` does the same and `check(model)`
/// compares.
template <class Optimizer, class Loop, class Check>
void compare(const Optimizer& optimizer, int steps, const Loop& loop, const Check& check) {
    auto graph = compiled<tg::graph>(optimizer, true);
    auto eager = compiled<tg::eager>(optimizer, true);
    for (int step = 1; step <= steps; ++step) {
        CAPTURE(step);
        const auto z = gradient_of(step);
        step_on(graph, z);
        step_on(eager, z);
        loop(step, z);
        REQUIRE(first_difference(graph, eager) == "");
        check(graph);
    }
}

} // namespace

TEST_CASE("decay by mask, a rate by path, weights kept within bounds") {
    const tg::chain chain{tg::basic_add_weight_decay<tg::except<"*/bias">>{.weight_decay = 0.5},
                          tg::rate_for<"encoder">{.factor = 0.25}, tg::momentum{.learning_rate = 0.25, .momentum = 0.5},
                          tg::basic_keep_within<tg::only<"head/bias">>{.low = -0.375, .high = 0.125}};
    by_loops r;
    numbers v(6), u(2);
    compare(
        chain, 6,
        [&](int, const auto& z) {
            auto [g, b] = by_loops::gradients(z);
            for (std::size_t i = 0; i < 6; ++i) {
                v[i] = 0.5 * v[i] - 0.25 * (g[i] + 0.5 * r.kernel[i]);
                r.kernel[i] += 0.25 * v[i];
            }
            for (std::size_t i = 0; i < 2; ++i) {
                u[i] = 0.5 * u[i] - 0.25 * b[i];
                r.bias[i] = std::min(std::max(r.bias[i] + u[i], -0.375), 0.125);
            }
        },
        [&](auto& model) {
            close(values(model, "encoder/kernel"), r.kernel);
            close(values(model, "head/bias"), r.bias);
        });
}

TEST_CASE("norms of columns, gradients less their means") {
    const tg::chain chain{tg::centralize_gradients{}, tg::sgd{.learning_rate = 0.5}, tg::limit_norm{.norm = 0.75}};
    by_loops r;
    compare(
        chain, 5,
        [&](int, const auto& z) {
            auto [g, b] = by_loops::gradients(z);
            for (std::size_t c = 0; c < 2; ++c) {
                double length = 0;
                for (std::size_t i = c; i < 6; i += 2) {
                    r.kernel[i] -= 0.5 * (g[i] - b[c] / 3);
                    length += r.kernel[i] * r.kernel[i];
                }
                length = std::sqrt(length);
                for (std::size_t i = c; i < 6; i += 2) r.kernel[i] *= std::min(length, 0.75) / (1e-7 + length);
                r.bias[c] -= 0.5 * b[c];
            }
        },
        [&](auto& model) {
            close(values(model, "encoder/kernel"), r.kernel);
            close(values(model, "head/bias"), r.bias);
        });
}

TEST_CASE("the mean of k gradients, clipped together; averages move with applied steps alone") {
    // check_finite finds nothing in steps that are held back. accumulate counts applied steps: the schedule has its first number in step 3, the second in step 6.
    const tg::chain chain{tg::accumulate{.steps = 3}, tg::clip_by_global_norm{.norm = 0.5},
                          tg::sgd{.learning_rate = [](std::int64_t step) { return step == 0 ? 1.0 : 0.5; }},
                          tg::weight_average{.decay = 0.75}};
    by_loops r;
    numbers sum_k(6), sum_b(2), average(6, std::numeric_limits<double>::quiet_NaN());
    compare(
        chain, 9,
        [&](int step, const auto& z) {
            auto [g, b] = by_loops::gradients(z);
            for (std::size_t i = 0; i < 6; ++i) sum_k[i] += g[i];
            for (std::size_t i = 0; i < 2; ++i) sum_b[i] += b[i];
            if (step % 3 != 0) return;
            double squares = 0;
            for (const double x : sum_k) squares += x / 3 * (x / 3);
            for (const double x : sum_b) squares += x / 3 * (x / 3);
            const double factor = std::min(1.0, 0.5 / std::sqrt(squares)), rate = step == 3 ? 1 : 0.5;
            for (std::size_t i = 0; i < 6; ++i) {
                r.kernel[i] -= rate * factor * sum_k[i] / 3;
                average[i] = step == 3 ? r.kernel[i] : 0.75 * average[i] + 0.25 * r.kernel[i];
            }
            for (std::size_t i = 0; i < 2; ++i) r.bias[i] -= rate * factor * sum_b[i] / 3;
            sum_k.assign(6, 0), sum_b.assign(2, 0);
        },
        [&](auto& model) {
            close(values(model, "encoder/kernel"), r.kernel);
            close(values(model, "head/bias"), r.bias);
            if (average[0] == average[0]) close(values(model, "encoder/kernel/average"), average);
        });
}

TEST_CASE("a step with a gradient that is not finite changes nothing but the count of steps") {
    const tg::chain chain{tg::skip_nonfinite{}, tg::adam{.learning_rate = 0.1}, tg::weight_average{.decay = 0.5}};
    each_mode([&](auto mode) {
        auto model = compiled<decltype(mode)>(chain);
        for (int step = 1; step <= 6; ++step) {
            auto z = gradient_of(step);
            const bool bad = step == 1 || step == 4;
            if (bad) z.set(step == 1 ? std::numeric_limits<double>::infinity() : std::nan(""), 2, 1);
            std::vector<tg::tensor<double>> before;
            for (tg::variable& v : model.variables()) before.push_back(v.value<double>());
            step_on(model, z);
            CHECK(model.step() == step);
            for (int i = 0; i < model.variables().size(); ++i)
                CHECK(same_bits(model.variables().at(i).data(), before[static_cast<std::size_t>(i)]) == bad);
        }
        for (const double x : values(model, "head/bias/average")) CHECK(tg::weight_average::is_set(x));
    });
}

TEST_CASE("a frozen variable does not count in the global norm") {
    const tg::chain chain{tg::clip_by_global_norm{.norm = 0.5}, tg::sgd{.learning_rate = 1}};
    auto graph = compiled<tg::graph>(chain);
    auto eager = compiled<tg::eager>(chain);
    for (const bool thawed : {false, true}) {
        graph.variables().set_trainable("encoder", thawed);
        eager.variables().set_trainable("encoder", thawed);
        const auto z = gradient_of(2);
        const auto [g, b] = by_loops::gradients(z);
        double squares = b[0] * b[0] + b[1] * b[1];
        for (const double x : g) squares += thawed ? x * x : 0;
        const auto before = values(graph, "head/bias"), kernel = values(graph, "encoder/kernel");
        step_on(graph, z);
        step_on(eager, z);
        CHECK(first_difference(graph, eager) == "");
        const double factor = std::min(1.0, 0.5 / std::sqrt(squares));
        close(values(graph, "head/bias"), {before[0] - factor * b[0], before[1] - factor * b[1]});
        CHECK((values(graph, "encoder/kernel") == kernel) == !thawed);
    }
}

TEST_CASE("averages in the place of weights, and back") {
    const tg::chain chain{tg::sgd{.learning_rate = 0.5}, tg::weight_average{.decay = 0.5}};
    each_mode([&](auto mode) {
        auto model = compiled<decltype(mode)>(chain);
        {
            const tg::averaged_weights scope(model.variables()); // before any step: the weights themselves
            CHECK(values(model, "encoder/kernel") == numbers(6, 0.5));
        }
        for (int step = 1; step <= 3; ++step) step_on(model, gradient_of(step));
        const auto weights = values(model, "encoder/kernel"), average = values(model, "encoder/kernel/average");
        REQUIRE(weights != average);
        const auto x = tg::zeros<double>({3, 2});
        const auto with_weights = model.predict(x);
        {
            const tg::averaged_weights scope(model.variables());
            CHECK(values(model, "encoder/kernel") == average);
            CHECK(!same_bits(model.predict(x), with_weights));
        }
        CHECK(values(model, "encoder/kernel") == weights);
        CHECK(values(model, "encoder/kernel/average") == average);
        CHECK(same_bits(model.predict(x), with_weights));
        tg::averaged_weights last(model.variables());
        last.keep();
        last.restore();
        CHECK(values(model, "encoder/kernel") == average);
    });
    auto none = compiled<tg::eager>(tg::sgd{});
    CHECK_THROWS_WITH_AS(tg::averaged_weights(none.variables()),
                         "averaged_weights: no variable has an average, is there a weight_average?",
                         tg::argument_error);
}

TEST_CASE("elements of a chain are reached by type and by place; numbers are theirs in order") {
    tg::chain chain{tg::clip_by_value{.value = 2}, tg::adamw{.learning_rate = 0.5, .weight_decay = 0.25},
                    tg::rate_for<"a">{.factor = 3}};
    static_assert(decltype(chain)::count == 7);
    chain.get<tg::adamw>().learning_rate *= 0.5;
    CHECK(chain.get<1>().learning_rate == 0.25);
    CHECK(chain.main().learning_rate == 0.25);
    chain.get<0>().value = 4;
    const auto n = chain.numbers(1);
    CHECK(n[0] == 4);
    CHECK(n[5] == 0.0625); // rate times decay
    CHECK(n[6] == 3);
    auto model = compiled<tg::graph>(chain);
    model.optimizer().get<tg::adamw>().learning_rate = 0;
    model.optimizer().get<tg::adamw>().weight_decay = 0;
    step_on(model, gradient_of(1));
    CHECK(values(model, "head/bias") == numbers(2, -0.25));
}

TEST_CASE("a chain on a network in float: the same bits in both modes") {
    const tg::chain chain{
        tg::skip_nonfinite{}, tg::clip_by_global_norm{.norm = 0.25},
        tg::basic_adamw<tg::except<"*/bias">>{.learning_rate = tg::linear_warmup{.steps = 3, .target = 0.1}.then(
                                                  tg::exponential_decay{.decay_steps = 2})},
        tg::rate_for<"hidden">{.factor = 0.5}, tg::weight_average{.decay = 0.5}};
    const auto make = [&](auto mode) {
        return tg::compile<decltype(mode)>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, chain,
                                           {.seed = 3});
    };
    auto graph = make(tg::graph{});
    auto eager = make(tg::eager{});
    train_alike(graph, eager, {4, 1, 9, 4, 70}, [](int size, std::uint64_t seed) {
        return std::pair(noise<float>({size, 6}, seed), classes(size, 3, seed));
    });
}

TEST_CASE("a chain is one kernel for each variable, and the norm reads a gradient once") {
    // What a step computes in memory, scalars aside: by elementwise kernels, and altogether.
    const auto calls = [](auto optimizer) {
        auto model = compiled<tg::graph>(optimizer);
        const tg::ir::program_view& view = model.training_view();
        std::pair<int, int> count;
        for (const tg::ir::step_entry& step : view.steps) {
            count.first += view.nodes[step.node].rank > 0 &&
                           view.kernels[step.kernel].kind == static_cast<int>(tg::ir::kernel_kind::region);
            count.second += view.nodes[step.domain].rank > 0;
        }
        return count;
    };
    const auto [regions, all] = calls(tg::sgd{}); // of two variables
    const auto chain = calls(tg::chain{tg::clip_by_global_norm{}, tg::adamw{}, tg::weight_average{}});
    CHECK(chain.first == regions);
    // A norm is a sum of squares and its length, which reads the gradient again only where that sum is out of range.
    CHECK(chain.second == all + 4);
}

TEST_CASE("a chain reads each of its tensors once and writes it once") {
    // Gradient, two moments, variable and average in; all but the gradient out. With the norm's, ten passes: nothing takes fewer.
    auto model = compiled<tg::graph>(tg::chain{tg::clip_by_global_norm{}, tg::adamw{}, tg::weight_average{}});
    const tg::ir::program_view& view = model.training_view();
    const auto extents = [&](int node) {
        const auto& n = view.nodes[node];
        return std::vector<std::int64_t>(view.pool.begin() + n.dims, view.pool.begin() + n.dims + n.rank);
    };
    int updates = 0;
    for (const tg::ir::step_entry& step : view.steps) {
        const bool sums = view.kernels[step.kernel].kind == static_cast<int>(tg::ir::kernel_kind::sums);
        if (step.outputs == 1 || sums) continue;
        int read = 0;
        // What is broadcast over the variable (of a gradient that is a number of each row by the input) is small beside it.
        for (int k = 0; k < step.inputs; ++k) read += extents(view.values[step.first_value + k]) == extents(step.node);
        CHECK(read == 5);
        CHECK(step.outputs == 4);
        ++updates;
    }
    CHECK(updates == 2);
}

namespace {
/// Words of a table of seven, five wide, whose gradient is taken by rows.
struct words {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::embedding(scope / "e", x, {.input_dim = 7, .output_dim = 5, .sparse = true});
    }
};
} // namespace

TEST_CASE("sparse rows: a chain touches the rows used, in both modes alike") {
    const tg::chain chain{tg::skip_nonfinite{}, tg::clip_by_value{.value = 0.5},
                          tg::basic_add_weight_decay<>{.weight_decay = 0.125}, tg::muon{.learning_rate = 0.25},
                          tg::weight_average{.decay = 0.5}};
    const auto make = [&](auto mode) {
        return tg::compile<decltype(mode)>(words{}, tg::spec<double, tg::dyn, 2>{}, given_gradient{}, chain);
    };
    auto graph = make(tg::graph{});
    auto eager = make(tg::eager{});
    const auto first = values(graph, "e/embeddings");
    for (int step = 1; step <= 4; ++step) {
        tg::tensor<double> x{{1, 3}, {3, 3}, {1, 4}};
        const auto z = noise<double>({3, 2, 5}, static_cast<std::uint64_t>(step));
        CHECK(graph.train_on_batch(x, z).loss == eager.train_on_batch(x, z).loss);
        REQUIRE(first_difference(graph, eager) == "");
    }
    const auto last = values(graph, "e/embeddings"), average = values(graph, "e/embeddings/average");
    for (std::size_t row = 0; row < 7; ++row)
        for (std::size_t c = row * 5; c < row * 5 + 5; ++c) {
            const bool used = row == 1 || row == 3 || row == 4;
            CHECK((first[c] != last[c]) == used);
            CHECK(tg::weight_average::is_set(average[c]) == used);
        }
    const tg::averaged_weights scope(graph.variables());
    for (const double w : values(graph, "e/embeddings")) CHECK(std::abs(w) < 10);
}

} // namespace optimizer_chains_test
