#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/nn/layers/masking.hpp>
#include <tapegraph/nn/layers/synchronized_normalization.hpp>
#include <tapegraph/nn/regularizer.hpp>
#include <tapegraph/profile.hpp>

#include <nn/models.hpp>

#include <algorithm>
#include <cmath>
#include <string>

/// Shards that wait for each other: statistics of the whole batch, means over all steps that count.

namespace synchronized_test {

using namespace nn_test;
using std::int64_t;
namespace td = tg::distributed;

namespace {

struct normalized {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::batch_normalization(scope / "first", tg::dense(scope / "in", x, {.units = 5}), {.momentum = 0.8},
                                         tg::synchronized);
        h = tg::batch_normalization(scope / "second", tanh(h), {.momentum = 0.8}, tg::synchronized);
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
struct normalized_apart {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::batch_normalization(scope / "first", tg::dense(scope / "in", x, {.units = 5}), {.momentum = 0.8});
        h = tg::batch_normalization(scope / "second", tanh(h), {.momentum = 0.8});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
/// Rows of a sparse gradient, dropout and a penalty beside the steps that count.
struct tagger {
    constexpr auto operator()(auto scope, auto words) const {
        auto h =
            tg::embedding(scope / "words", words, {.input_dim = 11, .output_dim = 4, .sparse = true}, tg::mask_zero);
        return tg::dense(scope / "tag", h, {.units = 3, .kernel_regularizer = tg::regularizers::l2{0.05}});
    }
};

/// Statistics of the steps that count.
template <bool Together>
struct normalized_steps {
    constexpr auto operator()(auto scope, auto words) const {
        auto h = tg::embedding(scope / "words", words, {.input_dim = 11, .output_dim = 4}, tg::mask_zero);
        const auto normal = [&] {
            if constexpr (Together)
                return tg::batch_normalization(scope / "norm", h, {}, tg::synchronized);
            else
                return tg::batch_normalization(scope / "norm", h);
        };
        return tg::dense(scope / "tag", normal(), {.units = 3});
    }
};

template <class Mode, class Model, class T>
auto made(Model model, tg::spec<T, tg::dyn, 6> spec, const auto& how) {
    return tg::compile<Mode>(model, spec, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01}, how);
}
const auto records = [](int64_t size, std::uint64_t seed) {
    return std::pair(noise<double>({size, 6}, seed), classes(size, 3, seed));
};
const auto float_records = [](int64_t size, std::uint64_t seed) {
    return std::pair(noise<float>({size, 6}, seed), classes(size, 3, seed));
};
// Texts of 0 to 7 words.
const auto texts = [](int64_t size, std::uint64_t seed) {
    auto x = tg::tensor<std::int32_t>::uninitialized({size, 7});
    const auto words = classes(size * 7, 10, seed), lengths = classes(size, 8, seed + 1);
    for (int64_t i = 0; i < x.size(); ++i)
        x.mutable_data()[i] = i % 7 < lengths.data()[i / 7] ? 1 + words.data()[i] : 0;
    const auto y = classes(size * 7, 3, seed + 2);
    return std::pair(x, reshape(y, {size, 7}));
};
using text_spec = tg::spec<std::int32_t, tg::dyn, 7>;
template <class Mode, class Model = tagger>
auto made_tagger(const auto& how) {
    return tg::compile<Mode>(Model{}, text_spec{}, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01},
                             how);
}

template <class T>
void check_close(const tg::gradient_list& a, const tg::gradient_list& b, double most_loss, double most) {
    CHECK(a.loss == doctest::Approx(b.loss).epsilon(most_loss));
    CHECK(a.accuracy == doctest::Approx(b.accuracy).epsilon(1e-6)); // float
    REQUIRE(a.size() == b.size());
    auto there = b.begin();
    for (const tg::named_gradient& each : a) {
        CAPTURE(each.path);
        const tg::tensor<T> p(each.value), q((there++)->value);
        double off = 0;
        for (int64_t i = 0; i < p.size(); ++i)
            off = std::max(off, std::abs(static_cast<double>(p.data()[i]) - static_cast<double>(q.data()[i])));
        CHECK(off < most);
    }
}

template <class Model>
std::string bits_of(const Model& model) {
    std::string bits;
    for (const auto& v : model.variables())
        bits.append(static_cast<const char*>(v.data().read()), v.data().outline_view().bytes());
    return bits;
}

} // namespace

TEST_CASE("synchronized normalization in shards is normalization of the whole batch") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        auto whole = made<m>(normalized_apart{}, mlp_spec<double>{}, tg::compile_options{.seed = 2});
        for (const int shards : {1, 2, 8}) {
            auto cut = made<m>(normalized{}, mlp_spec<double>{}, tg::sharded{.shards = shards, .options = {.seed = 2}});
            for (const int64_t size : {8, 13, 30}) {
                CAPTURE(shards);
                CAPTURE(size);
                const auto [x, y] = records(size, 3);
                // Sums of some tens of doubles near 1, divided by a deviation that is not small.
                check_close<double>(whole.gradients(x, y), cut.gradients(x, y), 1e-12, 1e-13);
            }
            auto again = made<m>(normalized_apart{}, mlp_spec<double>{}, tg::compile_options{.seed = 2});
            for (const int64_t size : {8, 13, 30}) {
                const auto [x, y] = records(size, 4);
                again.train_on_batch(x, y);
                cut.train_on_batch(x, y);
            }
            for (const char* const path : {"first/moving_mean", "first/moving_variance", "second/moving_variance"}) {
                CAPTURE(path);
                const auto a = again.variables()[path].template value<double>(),
                           b = cut.variables()[path].template value<double>();
                for (int64_t i = 0; i < a.size(); ++i)
                    CHECK(a.data()[i] == doctest::Approx(b.data()[i]).epsilon(1e-12));
            }
        }
    });
}

TEST_CASE("synchronized normalization of a whole batch has the bits of the other one") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        auto a = made<m>(normalized{}, mlp_spec<float>{}, tg::compile_options{.seed = 2});
        auto b = made<m>(normalized_apart{}, mlp_spec<float>{}, tg::compile_options{.seed = 2});
        train_alike(a, b, {8, 5, 1, 30}, float_records);
    });
}

TEST_CASE("shards that wait for each other: both modes have the same bits, on any number of threads") {
    for (const int threads : {1, 2}) {
        const thread_limit limit(threads);
        for (const int shards : {1, 4}) {
            CAPTURE(shards);
            const tg::sharded how{.shards = shards, .options = {.seed = 3}};
            auto g = made<tg::graph>(normalized{}, mlp_spec<float>{}, how);
            auto e = made<tg::eager>(normalized{}, mlp_spec<float>{}, how);
            train_alike(g, e, {8, 5, 13, 32}, float_records);
            const auto [x, y] = float_records(13, 9);
            const auto in_graph = g.gradients(x, y).assigned(), in_eager = e.gradients(x, y).assigned();
            g.train_on_batch(x, y);
            REQUIRE(in_graph.size() == 4);
            REQUIRE(in_eager.size() == 4);
            for (std::size_t i = 0; i < 4; ++i) {
                CHECK(in_graph[i].path == in_eager[i].path);
                CHECK(same_bits(in_graph[i].value, in_eager[i].value));
                CHECK(same_bits(in_graph[i].value, g.variables()[in_graph[i].path].data()));
            }
            auto gt = made_tagger<tg::graph>(how);
            auto et = made_tagger<tg::eager>(how);
            train_alike(gt, et, {8, 5, 13, 32}, texts);
        }
    }
}

TEST_CASE("masks in shards: the mean over the steps that count is that of the whole batch") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        auto whole = made_tagger<m>(tg::compile_options{.seed = 2});
        for (const int shards : {1, 2, 8}) {
            auto cut = made_tagger<m>(tg::sharded{.shards = shards, .options = {.seed = 2}});
            for (const int64_t size : {8, 13, 30}) {
                CAPTURE(shards);
                CAPTURE(size);
                const auto [x, y] = texts(size, 3);
                // float: sums of up to 210 losses near 1, of which each rounds by 6e-8
                check_close<float>(whole.gradients(x, y), cut.gradients(x, y), 2e-6, 1e-6);
            }
            // No step of one shard counts, and none at all.
            auto [x, y] = texts(8, 5);
            for (int i = 0; i < 7; ++i) x.mutable_data()[i] = 0;
            check_close<float>(whole.gradients(x, y), cut.gradients(x, y), 2e-6, 1e-6);
            for (int i = 0; i < 56; ++i) x.mutable_data()[i] = 0;
            check_close<float>(whole.gradients(x, y), cut.gradients(x, y), 2e-6, 1e-6);
        }
    });
}

TEST_CASE("synchronized normalization of the steps that count") {
    each_mode([](auto mode) {
        using m = decltype(mode);
        auto whole = made_tagger<m, normalized_steps<false>>(tg::compile_options{.seed = 2});
        auto cut = made_tagger<m, normalized_steps<true>>(tg::sharded{.shards = 4, .options = {.seed = 2}});
        for (const int64_t size : {8, 13, 30}) {
            CAPTURE(size);
            const auto [x, y] = texts(size, 3);
            // As above; the first values of the embedding are about 0.03, by whose deviation differences are divided.
            check_close<float>(whole.gradients(x, y), cut.gradients(x, y), 2e-6, 2e-4);
        }
    });
}

TEST_CASE("sum_over_shards where nothing is cut is the identity") {
    const tg::tensor<double> x{1, 2, 3};
    constexpr auto f = [](auto z) { return sum(square(tg::sum_over_shards(z * 3))); };
    CHECK(same_bits(tg::sum_over_shards(x), x));
    const tg::tensor<double> g = tg::gradient(f)(x), h = tg::hessian(f)(x);
    for (int i = 0; i < 3; ++i) {
        CHECK(g(i) == 18 * (i + 1));
        for (int k = 0; k < 3; ++k) CHECK(h(i, k) == (i == k ? 18 : 0));
    }
    auto compiled = tg::function<tg::graph>(tg::gradient(f), tg::spec<double, 3>{});
    CHECK(same_bits(compiled(x), g));
    const tg::tensor<double> rows{{1, 2, 3}, {4, 5, 6}}; // under vmap, and of scalars
    CHECK(same_bits(tg::vmap([](auto row) { return sum(tg::sum_over_shards(row)); })(rows), sum(rows, 1)));
    CHECK(same_bits(tg::vmap([](auto row) { return tg::sum_over_shards(sum(row)); })(rows), sum(rows, 1)));
    CHECK_THROWS_WITH_AS(tg::sum_over_shards(tg::tensor<std::int32_t>{1, 2}), doctest::Contains("must be f32 or f64"),
                         tg::shape_error);
}

namespace {

// Brings `value` to the others, as the kernel does.
double added(double value, int64_t count = 1) {
    std::vector<double> in(static_cast<std::size_t>(count), value), out(in.size());
    const auto view = [](std::vector<double>& values) {
        tapegraph::buffer_view v{};
        v.type = tg::dtype::f64;
        v.rank = 1;
        v.extents[0] = static_cast<int64_t>(values.size());
        v.data = values.data();
        return v;
    };
    tg::current_shards()->add(view(in), view(out));
    return out[0];
}

} // namespace

TEST_CASE("turns: sums in the order of a tree, and errors that end all shards") {
    tg::detail::shard_turns turns(nullptr);
    const std::vector<int> all{0, 1, 2, 3};
    std::vector<int> ended;
    turns.run(4, all, false, nullptr, [&](int k) {
        // (0.1 + 0.2) + (0.3 + 0.4) is not 0.1 + 0.2 + 0.3 + 0.4 in another order.
        CHECK(added(0.1 * (k + 1)) == (0.1 * 1 + 0.1 * 2) + (0.1 * 3 + 0.1 * 4));
        for (int i = 0; i < 50; ++i) CHECK(added(i * 10 + k) == 40 * i + 6);
        ended.push_back(k);
    });
    CHECK(ended == all);
    CHECK(turns.sums() == 51);
    turns.run(4, {1, 3}, false, nullptr, [&](int) { CHECK(added(0.5) == 1); }); // the others have no records
    turns.run(4, {}, true, nullptr, [&](int) { CHECK(added(0.5) == 0); });

    const auto thrown = [&](const auto& f) {
        try {
            turns.run(4, all, false, nullptr, f);
        } catch (const std::exception& e) {
            return std::string(e.what());
        }
        return std::string("nothing");
    };
    for (const int who : all)
        for (const int when : {0, 1, 2}) {
            CAPTURE(who);
            CAPTURE(when);
            CHECK(thrown([&](int k) {
                      for (int i = 0; i < 2; ++i) {
                          if (k == who && i == when) throw std::runtime_error("here");
                          added(1);
                      }
                      if (k == who && when == 2) throw std::runtime_error("here");
                  }) == "here");
        }
    CHECK(thrown([&](int k) {
              added(1);
              if (k != 2) added(1);
          }) == "sum_over_shards: shard 2 of the step ended without sum number 2, which others came to");
    CHECK(thrown([&](int k) {
              if (k > 0) added(1);
          }) == "sum_over_shards: shard 1 of the step came to sum number 1, which another one ended without");
    CHECK(thrown([&](int k) { added(1, k == 3 ? 2 : 1); }) == "sum_over_shards: f64[1] and f64[2] of two shards");
    turns.run(4, all, false, nullptr, [&](int) { CHECK(added(1) == 4); }); // none of that stays
}

TEST_CASE("a profile of shards that wait for each other counts no time twice") {
    each_mode([](auto mode) {
        auto model = made<decltype(mode)>(normalized{}, mlp_spec<float>{}, tg::sharded{.shards = 4});
        const auto [x, y] = float_records(64, 7);
        const auto found = tg::profile(model, x, y, {.steps = 3});
        double steps = 0, calls = 0;
        for (const auto& step : found.steps) steps += step.seconds;
        int sums = 0;
        for (const auto& each : found.calls) {
            sums += each.operation == "sum_over_shards" ? static_cast<int>(each.samples.size()) : 0;
            for (const auto& sample : each.samples) {
                calls += sample.seconds;
                CHECK(sample.seconds >= 0);
            }
        }
        CHECK(calls <= steps);
        CHECK(sums % (4 * 3) == 0); // as often in each shard
        CHECK(sums >=
              5 * 4 * 3); // of two layers: counts (in graph mode one), sums, squares and two derivatives of each
    });
}

TEST_CASE("shards that wait for each other have one process's bits on any number of ranks") {
    // Batches of 16, 16 and 3: in the last one some shards, and with them ranks, have no records.
    const tg::fit_options two_epochs{.epochs = 2, .batch_size = 16, .verbose = 0};
    const auto [words, tags] = texts(35, 7);
    const auto [x, y] = float_records(35, 7);
    each_mode([&](auto mode) {
        using m = decltype(mode);
        const auto run = [&](td::exchange* ranks) {
            const tg::sharded how{.shards = 8, .options = {.seed = 4}, .ranks = ranks};
            auto model = made<m>(normalized{}, mlp_spec<float>{}, how);
            const auto log = model.fit(x, y, two_epochs);
            auto tags_of = made_tagger<m>(how);
            tags_of.fit(words, tags, two_epochs);
            return bits_of(model) + bits_of(tags_of) + std::to_string(log["loss"].back());
        };
        const std::string alone = run(nullptr);
        for (const int ranks : {2, 4, 8}) {
            CAPTURE(ranks);
            td::run_ranks(ranks, [&](td::exchange& mine) {
                const bool same = run(&mine) == alone;
                CHECK(same);
            });
        }
    });
}

} // namespace synchronized_test
