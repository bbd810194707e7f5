#include <tapegraph/graph/cost.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/layers/embedding.hpp>

#include <nn/layer_bench.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace sparse_embedding_test {

using namespace nn_test;
using std::int64_t;

/// Embeddings whose gradient is taken by the rows used, and optimizers that update these rows alone.

namespace {

constexpr int64_t rows = 23, width = 5;

/// Indices below `count`, [batch, time]; small counts repeat.
template <class T>
tg::tensor<T> words(int64_t batch, int64_t time, int count, std::uint64_t seed) {
    const auto from = classes(batch * time, count, seed);
    auto x = tg::tensor<T>::uninitialized({batch, time});
    for (int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = static_cast<T>(from.data()[i]);
    return x;
}

/// The rows themselves.
template <bool Sparse>
struct rows_model {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::embedding(scope / "e", x, {.input_dim = rows, .output_dim = width, .sparse = Sparse});
    }
};
/// sum(y z): labels are the gradient of each occurrence.
struct given_gradient {
    constexpr auto operator()(auto y, auto z) const { return sum(y * z); }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

/// A classifier of seven words.
template <int64_t Rows, bool Sparse>
struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::embedding(scope / "words", x, {.input_dim = Rows, .output_dim = 16, .sparse = Sparse});
        auto g = relu(tg::dense(scope / "hidden", tg::flatten(h), {.units = 4}));
        return tg::dense(scope / "score", g, {.units = 3});
    }
};
template <class T>
using seven_words = tg::spec<T, tg::dyn, 7>;

/// One table for two gathers: x and its mirror image, the latter three times.
template <bool Sparse>
struct twice_model {
    constexpr auto operator()(auto scope, auto x) const {
        const auto table = (scope / "e").template variable<double>("table", {rows, width});
        const auto at = eval(tg::cast<std::int32_t>(x)), mirrored = eval(rows - 1 - at);
        const auto pick = [&](const auto& from) {
            if constexpr (Sparse)
                return scope.gather_rows(table, from);
            else
                return eval(tg::gather(table, from, 0));
        };
        const auto here = pick(at); // one after the other: operands of + have no order
        const auto there = pick(mirrored);
        return eval(here + 3 * sum(there, 1, {.keepdims = true}));
    }
};

/// The layer within a function that is computed again for the derivative.
struct checkpointed_model {
    constexpr auto operator()(auto scope, auto x) const {
        const auto inner = tg::checkpoint([scope](auto a) {
            auto h = tg::embedding(scope / "a", a, {.input_dim = rows, .output_dim = width, .sparse = true});
            auto g = tg::embedding(scope / "b", eval(a / 2), {.input_dim = rows, .output_dim = width, .sparse = true});
            return eval(tanh(h) * g);
        });
        return inner(x);
    }
};

template <class Mode, class Model, class Spec, class Optimizer>
auto made(const Model& model, Spec spec, const Optimizer& optimizer) {
    return tg::compile<Mode>(model, spec, given_gradient{}, optimizer, {.seed = 4});
}

/// Whole numbers in [-8, 8): their sums are exact.
tg::tensor<double> whole(const tg::shape& dims, std::uint64_t seed) {
    auto z = noise<double>(dims, seed);
    for (int64_t i = 0; i < z.size(); ++i) z.mutable_data()[i] = std::floor(8 * z.data()[i]);
    return z;
}

} // namespace

TEST_CASE("a sparse embedding under sgd is the dense one, bit for bit") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        const tg::sgd sgd{.learning_rate = 0.1};
        const auto make = [&](auto model) {
            return tg::compile<m>(model, seven_words<float>{}, tg::sparse_softmax_cross_entropy{}, sgd, {.seed = 3});
        };
        auto sparse = make(classifier<rows, true>{});
        auto dense = make(classifier<rows, false>{});
        REQUIRE(first_difference(sparse, dense) == "");
        train_alike(sparse, dense, {4, 1, 9, 4, 300}, [](int64_t size, std::uint64_t seed) {
            return std::pair(words<float>(size, 7, rows, seed), classes(size, 3, seed));
        });
    });
}

TEST_CASE("sparse embeddings: both modes have the same bits, for each optimizer") {
    const auto check = [](auto optimizer, auto element) {
        using T = decltype(element);
        const auto make = [&](auto mode) {
            return tg::compile<decltype(mode)>(classifier<rows, true>{}, seven_words<T>{},
                                               tg::sparse_softmax_cross_entropy{}, optimizer, {.seed = 3});
        };
        for (const int threads : {1, 2}) {
            const thread_limit limit(threads);
            auto g = make(tg::graph{});
            auto e = make(tg::eager{});
            train_alike(g, e, {3, 3, 16, 1, 700, 3}, [](int64_t size, std::uint64_t seed) {
                return std::pair(words<T>(size, 7, rows, seed), classes(size, 3, seed));
            });
        }
    };
    SUBCASE("Adam") { check(tg::adam{.learning_rate = 0.01}, 0.0f); }
    SUBCASE("Nesterov, i32 indices") { check(tg::nesterov_momentum{.learning_rate = 0.01}, std::int32_t{}); }
    SUBCASE("sgd, i64 indices") { check(tg::sgd{.learning_rate = 0.1}, std::int64_t{}); }
}

TEST_CASE("Adam on the rows used: a reference in double") {
    each_mode([](auto mode) {
        const tg::adam adam{.learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7};
        auto model = made<decltype(mode)>(rows_model<true>{}, tg::spec<double, tg::dyn, tg::dyn>{}, adam);
        REQUIRE(model.variables().size() == 3);
        auto w = model.variables()["e/embeddings"].template value<double>().to_vector();
        std::vector<double> m(w.size(), 0.0), v = m;
        for (int step = 1; step <= 4; ++step) {
            CAPTURE(step);
            // 24 occurrences of at most 9 rows; the last step uses others
            auto x = words<double>(4, 6, 9, static_cast<std::uint64_t>(step));
            if (step == 4) x = tg::eval(x + 13.0);
            const auto z = noise<double>({4, 6, width}, 50 + static_cast<std::uint64_t>(step));
            model.train_on_batch(x, z);
            const double size = 0.1 * std::sqrt(1 - std::pow(0.99, step)) / (1 - std::pow(0.9, step));
            for (int64_t row = 0; row < rows; ++row)
                for (int64_t c = 0; c < width; ++c) {
                    double g = 0;
                    bool used = false;
                    for (int64_t i = 0; i < x.size(); ++i) {
                        if (x.data()[i] != static_cast<double>(row)) continue;
                        g += z.data()[i * width + c];
                        used = true;
                    }
                    if (!used) continue;
                    const auto at = static_cast<std::size_t>(row * width + c);
                    m[at] += (1 - 0.9) * (g - m[at]);
                    v[at] += (1 - 0.99) * (g * g - v[at]);
                    w[at] -= size * m[at] / (std::sqrt(v[at]) + 1e-7);
                }
            // A handful of roundings of numbers near one a step; m / sqrt(v) is at most 10 in these.
            const auto check = [&](const char* path, const std::vector<double>& expected) {
                const auto found = model.variables()[path].template value<double>();
                for (std::size_t i = 0; i < expected.size(); ++i)
                    CHECK(std::abs(found.data()[i] - expected[i]) < 1e-13);
            };
            check("e/embeddings", w);
            check("e/embeddings/adam_m", m);
            check("e/embeddings/adam_v", v);
        }
        // Rows that no step has used: as they were made, to the bit.
        auto fresh = made<decltype(mode)>(rows_model<true>{}, tg::spec<double, tg::dyn, tg::dyn>{}, adam);
        const auto now = model.variables()["e/embeddings"].template value<double>(),
                   then = fresh.variables()["e/embeddings"].template value<double>();
        for (int64_t row = 9; row < 13; ++row)
            for (int64_t c = 0; c < width; ++c) {
                CHECK(now(row, c) == then(row, c));
                CHECK(model.variables()["e/embeddings/adam_v"].template value<double>()(row, c) == 0);
            }
    });
}

TEST_CASE("a variable gathered twice: the rows of both uses meet in one update") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        using spec = tg::spec<double, tg::dyn, 3>;
        // Whole gradients, and a rate that is a power of two: no order of addition shows, so sgd has the dense one's bits.
        auto sparse = made<m>(twice_model<true>{}, spec{}, tg::sgd{.learning_rate = 0.25});
        auto dense = made<m>(twice_model<false>{}, spec{}, tg::sgd{.learning_rate = 0.25});
        for (std::uint64_t seed = 1; seed < 4; ++seed) {
            const auto x = words<double>(5, 3, rows, seed);
            const auto z = whole({5, 3, width}, seed);
            CHECK(sparse.train_on_batch(x, z).loss == dense.train_on_batch(x, z).loss);
            CHECK(first_difference(sparse, dense) == "");
        }
        // Under Adam in its first step every element that has a gradient moves by the rate towards its other sign.
        auto adam = made<m>(twice_model<true>{}, spec{}, tg::adam{.learning_rate = 0.5});
        const auto before = adam.variables()["e/table"].template value<double>();
        const auto x = tg::eval(tg::zeros<double>({1, 3}) + 2);
        adam.train_on_batch(x, tg::ones<double>({1, 3, width}));
        const auto after = adam.variables()["e/table"].template value<double>();
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t c = 0; c < width; ++c) {
                const bool used = row == 2 || row == rows - 3;
                // epsilon 1e-7 is divided by the root of v, sqrt(1e-3) of a gradient of 3 or 27
                CHECK(std::abs(after(row, c) - (before(row, c) - (used ? 0.5 : 0.0))) < 1e-6);
            }
    });
    auto g = made<tg::graph>(twice_model<true>{}, tg::spec<double, tg::dyn, 3>{}, tg::adam{});
    auto e = made<tg::eager>(twice_model<true>{}, tg::spec<double, tg::dyn, 3>{}, tg::adam{});
    train_alike(g, e, {2, 5, 1}, [](int64_t size, std::uint64_t seed) {
        return std::pair(words<double>(size, 3, rows, seed), noise<double>({size, 3, width}, seed));
    });
}

TEST_CASE("sparse embeddings within a checkpoint") {
    auto g = made<tg::graph>(checkpointed_model{}, tg::spec<double, tg::dyn, 3>{}, tg::adam{});
    auto e = made<tg::eager>(checkpointed_model{}, tg::spec<double, tg::dyn, 3>{}, tg::adam{});
    const auto before = e.variables()["b/embeddings"].value<double>();
    train_alike(g, e, {2, 5, 1}, [](int64_t size, std::uint64_t seed) {
        return std::pair(words<double>(size, 3, 8, seed), noise<double>({size, 3, width}, seed));
    });
    const auto after = e.variables()["b/embeddings"].value<double>();
    CHECK(after(1, 0) != before(1, 0));
    CHECK(after(4, 0) == before(4, 0)); // indices below 8, halved
}

TEST_CASE("a frozen table stays, with its state") {
    each_mode([](auto mode) {
        auto model = made<decltype(mode)>(rows_model<true>{}, tg::spec<double, tg::dyn, 4>{}, tg::adam{});
        const auto x = words<double>(2, 4, rows, 1);
        const auto z = noise<double>({2, 4, width}, 2);
        model.train_on_batch(x, z);
        std::vector<tg::tensor<double>> before;
        for (const tg::variable& v : model.variables()) before.push_back(v.template value<double>());
        model.variables()["e/embeddings"].set_trainable(false);
        model.train_on_batch(x, z);
        for (int i = 0; i < 3; ++i)
            CHECK(same_bits(model.variables().at(i).data(), before[static_cast<std::size_t>(i)]));
        model.variables()["e/embeddings"].set_trainable(true);
        model.train_on_batch(x, z);
        for (int i = 0; i < 3; ++i)
            CHECK(!same_bits(model.variables().at(i).data(), before[static_cast<std::size_t>(i)]));
    });
}

TEST_CASE("an index outside the table: an error, and nothing has been updated") {
    each_mode([](auto mode) {
        auto model = made<decltype(mode)>(rows_model<true>{}, tg::spec<std::int32_t, tg::dyn, 2>{}, tg::momentum{});
        const auto before = model.variables()["e/embeddings"].template value<float>();
        const tg::tensor<std::int32_t> bad{{0, 5}, {3, rows}};
        CHECK_THROWS_WITH_AS(model.train_on_batch(bad, tg::ones<float>({2, 2, width})),
                             doctest::Contains("gather: index 23 at position 3 is outside [0, 23)"), tg::range_error);
        CHECK(same_bits(model.variables()["e/embeddings"].data(), before));
        CHECK(model.step() == 0);
    });
    layer_bench b;
    const auto scope = b.scope();
    CHECK_THROWS_WITH_AS(scope.gather_rows(tg::ones<double>({3, 2}), tg::zeros<std::int32_t>({1})),
                         doctest::Contains("gather_rows: the table is not a variable"), tg::argument_error);
}

TEST_CASE("a step holds nothing of the table's size, and its bytes do not depend on it") {
    const auto cost_of = [](auto& model, std::size_t table) {
        const auto x = words<std::int32_t>(6, 7, 50, 1);
        model.train_on_batch(x, classes(6, 3, 1));
        const tg::ir::program& p = model.training_program();
        int written_over = 0;
        for (int s = 0; s < p.view().steps.size(); ++s) {
            const int node = p.view().steps[s].node;
            if (p.value_of(node).bytes() < table) continue;
            // what is as large as the table is the table, or its state, written where it stands
            CHECK(p.arena_slot_of(node).variable >= 0);
            CHECK(p.arena_slot_of(node).offset < 0);
            ++written_over;
        }
        CHECK(written_over == 3);
        CHECK(model.arena_bytes() < table);
        return tg::ir::cost_of(p).bytes;
    };
    const auto make = [](auto model) {
        return tg::compile<tg::graph>(model, seven_words<std::int32_t>{}, tg::sparse_softmax_cross_entropy{},
                                      tg::adam{}, {.seed = 3});
    };
    auto small = make(classifier<2000, true>{});
    auto large = make(classifier<40000, true>{});
    auto dense = make(classifier<2000, false>{});
    const double bytes = cost_of(small, 2000 * 16 * 4);
    CHECK(bytes == cost_of(large, 40000 * 16 * 4));
    const auto x = words<std::int32_t>(6, 7, 50, 1);
    dense.train_on_batch(x, classes(6, 3, 1));
    CHECK(tg::ir::cost_of(dense.training_program()).bytes > bytes + 6 * 2000 * 16 * 4); // w, m and v, read and written
}

TEST_CASE("weights and optimizer state in files: those of the dense model, and training continues where it stopped") {
    const auto path = std::filesystem::temp_directory_path() / "tapegraph_sparse_embedding.safetensors";
    const auto step = [](auto& model, std::uint64_t seed) {
        model.train_on_batch(words<double>(2, 4, rows, seed), noise<double>({2, 4, width}, seed));
    };
    using spec = tg::spec<double, tg::dyn, 4>;
    auto a = made<tg::graph>(rows_model<true>{}, spec{}, tg::adam{});
    step(a, 1);
    a.save(path, {.optimizer_state = true});
    auto b = made<tg::eager>(rows_model<true>{}, spec{}, tg::adam{});
    auto dense = made<tg::graph>(rows_model<false>{}, spec{}, tg::adam{});
    b.load(path);
    dense.load(path);
    std::filesystem::remove(path);
    CHECK(first_difference(a, dense) == "");
    step(a, 2);
    step(b, 2);
    CHECK(first_difference(a, b) == "");
    step(dense, 2);
    CHECK(first_difference(a, dense) != ""); // rows of the first step move on under dense Adam
}

} // namespace sparse_embedding_test
