#include <tapegraph/tapegraph.hpp>

#include <tapegraph/io/eager_dot.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>

namespace eager_dot_test {

namespace tg = tapegraph;

namespace {

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = relu(tg::dense(scope / "block" / 0 / "first", x, {.units = 8}));
        const auto k = tg::dense(scope / "block" / 1 / "second", h, {.units = 8});
        return tg::dense(scope / "out", h + k, {.units = 3});
    }
};

} // namespace

TEST_CASE("an eager model is drawn as the same model in graph mode") {
    using spec = tg::spec<float, tg::dyn, 5>;
    const auto trained = tg::to_dot(tg::compile<tg::eager>(net{}, spec{}, tg::softmax_cross_entropy{}, tg::adam{}));
    CHECK(trained == tg::to_dot(tg::compile<tg::graph>(net{}, spec{}, tg::softmax_cross_entropy{}, tg::adam{})));
    // Of a model that only predicts, the outputs alone.
    const auto prediction = tg::to_dot(tg::compile<tg::eager>(net{}, spec{}));
    CHECK(prediction.size() < trained.size() / 2);
    for (const char* name : {"block/0/first", "block/1/second", "out"}) CHECK(support::contains(prediction, name));
}

} // namespace eager_dot_test
