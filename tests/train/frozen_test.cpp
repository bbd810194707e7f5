#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

#include <cmath>

namespace frozen_test {

/// Parts of a model that training leaves as they are, and what batch normalization does then.

using namespace nn_test;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "encoder" / 0, x, {.units = 5});
        h = tg::batch_normalization(scope / "encoder/norm", tanh(h));
        h = tg::dense(scope / "encoder" / 1, h, {.units = 4, .use_bias = false});
        h = tg::batch_normalization(scope / "norm", h, {.momentum = 0.75, .center = false, .scale = false});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
/// Its first values, frozen: mean 0, variance 1, gamma 1, beta 0.
struct without_statistics {
    constexpr auto operator()(auto scope, auto x) const {
        const double inverse = 0.99950037468777316; // 1 / sqrt(1.001)
        auto h = tg::dense(scope / "encoder" / 0, x, {.units = 5});
        h = tg::eval(tanh(h) * inverse);
        h = tg::dense(scope / "encoder" / 1, h, {.units = 4, .use_bias = false});
        return tg::dense(scope / "out", tg::eval(h * inverse), {.units = 3});
    }
};

template <class Mode, class Model = network>
auto make() {
    return tg::compile<Mode>(Model{}, mlp_spec<double>{}, tg::sparse_softmax_cross_entropy{},
                             tg::adam{.learning_rate = 0.05}, {.seed = 4});
}
const auto batch = [](std::int64_t size, std::uint64_t seed) {
    return std::pair(noise<double>({size, 6}, seed), classes(size, 3, seed + 1));
};

/// The values of all variables, optimizer state included, whose path begins so.
template <class Model>
std::vector<double> values(Model& model, const std::string& begin) {
    std::vector<double> all;
    for (const tg::variable& v : model.variables()) {
        if (v.path().rfind(begin, 0) != 0) continue;
        const auto more = v.template value<double>().to_vector();
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

} // namespace

TEST_CASE("a frozen scope stays as it is, its normalization uses the moving averages, both modes alike") {
    auto g = make<tg::graph>();
    auto e = make<tg::eager>();
    train_alike(g, e, {4, 7}, batch);
    for (const bool again : {false, true}) {
        CAPTURE(again);
        CHECK(g.variables().set_trainable("encoder", false) == 7);
        CHECK(e.variables().set_trainable("encoder/*", false) == 7);
        CHECK(g.trainable_parameter_count() == 4 * 3 + 3);
        const auto encoder = values(g, "encoder/"), moving = values(g, "norm/"), out = values(g, "out/");
        train_alike(g, e, {4, 3, 5}, batch);
        CHECK(values(g, "encoder/") == encoder);
        CHECK(values(g, "norm/") != moving);
        CHECK(values(g, "out/") != out);

        g.variables().set_trainable("encoder", true);
        e.variables().set_trainable("encoder", true);
        train_alike(g, e, {4, 6}, batch);
        CHECK(values(g, "encoder/norm/moving_mean") !=
              std::vector<double>(encoder.begin() + 105, encoder.begin() + 110));
        CHECK(values(g, "encoder/0") != encoder);
        CHECK(g.trainable_parameter_count() == 6 * 5 + 5 + 5 + 5 + 5 * 4 + 4 * 3 + 3);
    }
}

TEST_CASE("a step with frozen statistics computes what evaluation does") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        const auto [x, y] = batch(6, 3);
        for (int s = 0; s < 3; ++s) model.train_on_batch(x, y);
        CHECK(model.evaluate(x, y).loss != model.train_on_batch(x, y).loss);
        CHECK(model.variables().set_trainable("*/moving_*", false) == 4); // weights, gamma and beta go on
        const auto gamma = values(model, "encoder/norm/gamma"), moving = values(model, "norm/moving");
        const double evaluated = model.evaluate(x, y).loss;
        CHECK(model.train_on_batch(x, y).loss == evaluated);
        CHECK(values(model, "norm/moving") == moving);
        CHECK(values(model, "encoder/norm/gamma") != gamma);
    });
}

TEST_CASE("frozen statistics are constants of the gradient") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        auto same = make<decltype(mode), without_statistics>();
        model.variables().set_trainable("encoder/norm", false);
        model.variables().set_trainable("norm", false);
        for (int s = 0; s < 4; ++s) {
            const auto [x, y] = batch(5, 20 + static_cast<std::uint64_t>(s));
            CHECK(model.train_on_batch(x, y).loss == doctest::Approx(same.train_on_batch(x, y).loss).epsilon(1e-12));
        }
        for (const char* path : {"encoder/0/kernel", "encoder/0/bias", "encoder/1/kernel", "out/kernel"}) {
            const auto got = values(model, path), want = values(same, path);
            REQUIRE(got.size() == want.size());
            for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - want[i]) <= 1e-10);
        }
    });
}

TEST_CASE("with every variable frozen nothing moves, and predictions stay") {
    each_mode([](auto mode) {
        auto model = make<decltype(mode)>();
        const auto [x, y] = batch(6, 8);
        for (int s = 0; s < 2; ++s) model.train_on_batch(x, y);
        for (tg::variable& v : model.variables()) v.set_trainable(false);
        CHECK(model.trainable_parameter_count() == 0);
        const auto before = values(model, "");
        const auto predicted = model.predict(x);
        for (int s = 0; s < 3; ++s) model.train_on_batch(x, y);
        CHECK(values(model, "") == before);
        CHECK(same_bits(model.predict(x), predicted));
    });
}

TEST_CASE("patterns of paths") {
    using tg::detail::path_matches;
    CHECK(path_matches("a/b", "a/b"));
    CHECK(path_matches("a", "a/b"));
    CHECK(path_matches("a", "a/b/c"));
    CHECK(!path_matches("a", "ab/c"));
    CHECK(!path_matches("a/b", "a"));
    CHECK(!path_matches("b", "a/b"));
    CHECK(!path_matches("", "a"));
    CHECK(path_matches("*", "a/b"));
    CHECK(path_matches("*/b", "a/b"));
    CHECK(path_matches("*/b", "a/c/b"));
    CHECK(!path_matches("*/b", "a/bc"));
    CHECK(path_matches("a*", "abc/d"));
    CHECK(path_matches("block/*/norm", "block/1/norm/gamma"));
    CHECK(path_matches("*/norm", "block/norms/norm/gamma"));
    CHECK(!path_matches("block/*/norm", "block/1/normal/gamma"));
    CHECK(path_matches("*a*b*", "xaxxbx"));
    CHECK(!path_matches("*a*b", "xaxxbx"));

    auto model = make<tg::eager>();
    CHECK(support::contains(
        support::message_of<tg::argument_error>([&] { model.variables().set_trainable("encode", false); }),
        "no variable 'encode', there are 'encoder/0/kernel'"));
    CHECK(model.variables().set_trainable("norm", true) == 2); // they move already
    CHECK(!model.variables()["norm/moving_mean"].trainable());
}

} // namespace frozen_test
