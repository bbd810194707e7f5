#include <tapegraph/distributed.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/metrics/accuracy.hpp>
#include <tapegraph/nn/optimizers/loss_scaling.hpp>
#include <tapegraph/nn/regularizer.hpp>

#include <nn/models.hpp>

#include <cmath>

/// Steps that are cut into shards, on one process: both modes, against steps that are not, and what is refused.

namespace shards_test {

using namespace nn_test;
using std::int64_t;

namespace {

template <class Mode>
auto cnn_of(int shards) {
    return tg::compile<Mode>(small_cnn{}, cnn_spec<float>{}, tg::sigmoid_cross_entropy{},
                             tg::adam{.learning_rate = 0.01}, tg::sharded{.shards = shards, .options = {.seed = 5}});
}
const auto images = [](int64_t size, std::uint64_t seed) {
    return std::pair(noise<float>({size, 26, 26, 3}, seed), coin_flips<float>(size, seed));
};

/// Without what depends on the other records of a batch, or on random numbers.
struct plain_mlp {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tanh(tg::dense(scope / "hidden", x, {.units = 7, .kernel_regularizer = tg::regularizers::l2{0.05}}));
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
const auto records = [](int64_t size, std::uint64_t seed) {
    return std::pair(noise<double>({size, 6}, seed), classes(size, 3, seed));
};

struct normalized {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "out", tg::batch_normalization(scope / "norm", x), {.units = 3});
    }
};

template <bool Sparse>
struct word_model {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4, .sparse = Sparse});
        return tg::dense(scope / "score", tg::flatten(h), {.units = 3});
    }
};
using words_spec = tg::spec<std::int32_t, tg::dyn, 5>;
const auto texts = [](int64_t size, std::uint64_t seed) {
    auto x = tg::tensor<std::int32_t>::uninitialized({size, 5});
    const auto from = classes(size * 5, 11, seed);
    for (int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] = from.data()[i];
    return std::pair(x, classes(size, 3, seed));
};

template <class T>
tg::tensor<T> part(const tg::tensor<T>& whole, int64_t first, int64_t count) {
    tg::shape dims;
    dims.push_back(count);
    for (int i = 1; i < whole.shape().rank(); ++i) dims.push_back(whole.shape()[i]);
    auto t = tg::tensor<T>::uninitialized(dims);
    const int64_t record = whole.size() / whole.shape()[0].value;
    for (int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = whole.data()[first * record + i];
    return t;
}

} // namespace

TEST_CASE("shards: both modes have the same bits, on any number of threads") {
    for (const int threads : {1, 2}) {
        const thread_limit limit(threads);
        for (const int shards : {1, 2, 8}) {
            CAPTURE(shards);
            auto g = cnn_of<tg::graph>(shards);
            auto e = cnn_of<tg::eager>(shards);
            REQUIRE(first_difference(g, e) == "");
            train_alike(g, e, {16, 9, 8, 13, 16}, images);
        }
    }
}

TEST_CASE("one shard is the whole batch, bit for bit") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        auto whole = tg::compile<m>(small_cnn{}, cnn_spec<float>{}, tg::sigmoid_cross_entropy{},
                                    tg::adam{.learning_rate = 0.01}, {.seed = 5});
        auto one = cnn_of<m>(1);
        train_alike(whole, one, {16, 3, 1, 16}, images);
    });
}

TEST_CASE("shards of unequal size: the gradient is the mean over records, and penalties count once") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        const auto make = [](auto how) {
            return tg::compile<m>(plain_mlp{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{}, tg::sgd{0.1},
                                  how);
        };
        auto whole = make(tg::compile_options{.seed = 2});
        auto cut = make(tg::sharded{.shards = 4, .options = {.seed = 2}});
        for (const int64_t size : {4, 7, 16, 30}) {
            CAPTURE(size);
            const auto [x, y] = records(size, 3);
            const tg::gradient_list a = whole.gradients(x, y), b = cut.gradients(x, y);
            CHECK(a.loss == doctest::Approx(b.loss).epsilon(1e-12));        // doubles, some tens of terms
            CHECK(a.accuracy == doctest::Approx(b.accuracy).epsilon(1e-6)); // float
            REQUIRE(a.size() == b.size());
            auto there = b.begin();
            for (const tg::named_gradient& each : a) {
                CAPTURE(each.path);
                const tg::tensor<double> p(each.value), q((there++)->value);
                double most = 0;
                for (int64_t i = 0; i < p.size(); ++i) most = std::max(most, std::abs(p.data()[i] - q.data()[i]));
                CHECK(most < 1e-14);
            }
            const tg::step_result left = whole.train_on_batch(x, y), right = cut.train_on_batch(x, y);
            CHECK(left.loss == doctest::Approx(right.loss).epsilon(1e-12));
        }
    });
}

TEST_CASE("shards: the tree's order of sums, spelled out") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        const auto make = [](auto how) {
            return tg::compile<m>(plain_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::sgd{0.1},
                                  how);
        };
        auto whole = make(tg::compile_options{.seed = 2});
        auto cut = make(tg::sharded{.shards = 8, .options = {.seed = 2}});
        const auto x = noise<float>({32, 6}, 8);
        const auto y = classes(32, 3, 8);
        // Shards of equal size: a gradient times 1/8 is exact, so each is the shard's own.
        std::vector<tg::tensor<float>> parts;
        for (int64_t s = 0; s < 8; ++s)
            parts.emplace_back(tg::tensor<float>(whole.gradients(part(x, 4 * s, 4), part(y, 4 * s, 4))["out/kernel"]) *
                               0.125f);
        for (std::size_t step = 1; step < 8; step *= 2)
            for (std::size_t s = 0; s < 8; s += 2 * step) parts[s] = parts[s] + parts[s + step];
        CHECK(same_bits(cut.gradients(x, y)["out/kernel"], parts[0]));
    });
}

TEST_CASE("shards: moving averages are the means of the shards' own") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        const auto make = [](auto how) {
            return tg::compile<m>(normalized{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{}, tg::sgd{0},
                                  how);
        };
        auto cut = make(tg::sharded{.shards = 2, .options = {.seed = 2}});
        const auto [x, y] = records(7, 4); // shards of 3 and 4
        cut.train_on_batch(x, y);
        auto first = make(tg::compile_options{.seed = 2}), second = make(tg::compile_options{.seed = 2});
        first.train_on_batch(part(x, 0, 3), part(y, 0, 3));
        second.train_on_batch(part(x, 3, 4), part(y, 3, 4));
        for (const char* const path : {"norm/moving_mean", "norm/moving_variance"}) {
            const auto a = first.variables()[path].template value<double>(),
                       b = second.variables()[path].template value<double>(),
                       c = cut.variables()[path].template value<double>();
            for (int64_t i = 0; i < c.size(); ++i)
                CHECK(c.data()[i] == doctest::Approx((3 * a.data()[i] + 4 * b.data()[i]) / 7).epsilon(1e-14));
        }
        // Frozen ones stay as they are.
        cut.variables().set_trainable("norm", false);
        const auto before = cut.variables()["norm/moving_mean"].template value<double>();
        cut.train_on_batch(x, y);
        CHECK(same_bits(before, cut.variables()["norm/moving_mean"].data()));
    });
}

TEST_CASE("shards: rows of sparse gradients") {
    const auto make = [](auto mode, auto model, auto how) {
        return tg::compile<decltype(mode)>(model, words_spec{}, tg::sparse_softmax_cross_entropy{},
                                           tg::adam{.learning_rate = 0.01}, how);
    };
    const tg::sharded four{.shards = 4, .options = {.seed = 3}};
    SUBCASE("both modes have the same bits") {
        auto g = make(tg::graph{}, word_model<true>{}, four);
        auto e = make(tg::eager{}, word_model<true>{}, four);
        train_alike(g, e, {4, 16, 9, 300, 16}, texts);
    }
    each_mode([&](auto mode) {
        auto sparse = make(mode, word_model<true>{}, four);
        auto dense = make(mode, word_model<false>{}, tg::compile_options{.seed = 3});
        const auto [x, y] = texts(13, 5);
        const tg::gradient_list a = sparse.gradients(x, y), b = dense.gradients(x, y);
        const tg::tensor<float> p(a["words/embeddings"]), q(b["words/embeddings"]);
        for (int64_t i = 0; i < p.size(); ++i) CHECK(p.data()[i] == doctest::Approx(q.data()[i]).epsilon(1e-5));
    });
}

TEST_CASE("shards: scaled losses, metrics and weights of records") {
    const auto make = [](auto mode, auto how) {
        return tg::compile<decltype(mode)>(plain_mlp{}, mlp_spec<float>{},
                                           tg::weighted{tg::sparse_softmax_cross_entropy{}},
                                           tg::chain{tg::loss_scaling{}, tg::adam{.learning_rate = 0.01}},
                                           tg::metrics{tg::sparse_categorical_accuracy{}}, how);
    };
    const tg::sharded four{.shards = 4, .options = {.seed = 6}};
    auto g = make(tg::graph{}, four);
    auto e = make(tg::eager{}, four);
    auto whole = make(tg::graph{}, tg::compile_options{.seed = 6});
    for (std::uint64_t step = 0; step < 4; ++step) {
        const int64_t size = step == 1 ? 9 : 16;
        const auto x = noise<float>({size, 6}, step);
        const auto y = classes(size, 3, step);
        const tg::tensor<float> w = noise<float>({size}, step + 50) + 1.0f;
        const tg::step_result a = g.train_on_batch(x, y, w), b = e.train_on_batch(x, y, w);
        CHECK(a.loss == b.loss);
        CHECK(a.accuracy == b.accuracy);
        REQUIRE(first_difference(g, e) == "");
        CHECK(whole.train_on_batch(x, y, w).loss == doctest::Approx(a.loss).epsilon(1e-5)); // floats
        // A program without the scale's variables, between two with them.
        const tg::gradient_list p = g.gradients(x, y, w), q = e.gradients(x, y, w);
        CHECK(p.loss == q.loss);
        for (auto i = p.begin(), j = q.begin(); i != p.end(); ++i, ++j) CHECK(same_bits(i->value, j->value));
    }
    REQUIRE(g.metrics().size() == 1);
    CHECK(g.metrics()[0].value == doctest::Approx(whole.metrics()[0].value).epsilon(1e-6));
}

TEST_CASE("fit in shards: a last batch may be smaller than their number") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        const auto [x, y] = records(37, 9);
        tg::data::dataset set;
        set.add("x", x.to_vector(), {6}).add("label", y.to_vector());
        const auto make = [] {
            return tg::compile<m>(plain_mlp{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{},
                                  tg::sharded{.options = {.seed = 2}});
        };
        auto model = make();
        const auto history = model.fit(set, {.epochs = 2, .batch_size = 16, .shards = 8, .verbose = 0});
        CHECK(model.shards() == 8);
        CHECK(history.epochs.back().records == 37);
        CHECK(std::isfinite(history.epochs.back().loss));
        auto other = make();
        other.fit(set, {.epochs = 2, .batch_size = 16, .shards = 8, .verbose = 0});
        CHECK(first_difference(model, other) == "");
        CHECK_THROWS_WITH_AS(model.fit(set, {.batch_size = 16, .shards = 3, .verbose = 0}),
                             "shards is 3, not a power of two up to 32768", tg::argument_error);
        CHECK_THROWS_WITH_AS(model.fit(set, {.batch_size = 4, .shards = 8, .verbose = 0}),
                             "fit: batch_size is 4, less than the 8 shards that it is cut into", tg::argument_error);
        const auto [few, labels] = records(7, 1);
        CHECK_THROWS_WITH_AS(model.train_on_batch(few, labels),
                             "shards: a batch of 7 records cannot be cut into 8 shards", tg::argument_error);
        CHECK(first_difference(model, other) == "");
        auto whole = tg::compile<m>(plain_mlp{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
        CHECK_THROWS_WITH_AS(whole.fit(set, {.shards = 8, .verbose = 0}),
                             "fit: shards is 8, and this model is not compiled for shards: tg::compile<Mode>(..., "
                             "tg::sharded{}) of tapegraph/distributed.hpp",
                             tg::argument_error);
        CHECK_THROWS_WITH_AS(
            static_cast<void>(tg::compile<m>(plain_mlp{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{},
                                             tg::adam{}, tg::sharded{.shards = 6})),
            "shards is 6, not a power of two up to 32768", tg::argument_error);
    });
}

TEST_CASE("shards: the arena is that of a shard") {
    auto whole = tg::compile<tg::graph>(small_cnn{}, cnn_spec<float>{}, tg::sigmoid_cross_entropy{}, tg::adam{});
    auto cut = cnn_of<tg::graph>(8);
    const auto [x, y] = images(128, 1);
    whole.train_on_batch(x, y);
    cut.train_on_batch(x, y);
    CHECK(5 * cut.arena_bytes() < whole.arena_bytes());
}

} // namespace shards_test
