#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

/// What a user reads when something does not fit: the culprit by its name, in both modes.

namespace messages_test {

using namespace nn_test;

namespace {

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "line", x, {.units = 1}); }
};
struct logarithm {
    constexpr auto operator()(auto scope, auto x) const {
        const auto slope = scope.variable_like(x, "slope", {2}, {.initializer = tg::init::ones{}});
        const auto h =
            tg::eval(log((scope / "inner").variable_like(x, "w", {2}, {.initializer = tg::init::ones{}}) * x));
        return tg::eval(h * slope);
    }
};

template <class Mode>
std::string not_finite() {
    auto model = tg::compile<Mode>(logarithm{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{},
                                   {.check_finite = true});
    auto x = tg::ones<float>({3, 2});
    x.mutable_data()[3] = -1;
    return support::message_of<tg::numeric_error>([&] { model.train_on_batch(x, tg::ones<float>({3, 2})); });
}

} // namespace

TEST_CASE("labels that do not fit name the loss") {
    each_mode([](auto mode) {
        auto model =
            tg::compile<decltype(mode)>(line{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{}, tg::sgd{});
        const auto x = tg::ones<float>({4, 2});
        CHECK(support::contains(support::message_of<tg::shape_error>([&] {
                                    model.train_on_batch(x, tg::ones<float>({4, 3}));
                                }),
                                "input 'labels of mean_squared_error'"));
        CHECK(support::contains(support::message_of<tg::shape_error>([&] { model.evaluate(x, tg::ones<float>({4})); }),
                                "input 'labels of mean_squared_error' has shape ["));
    });
}

TEST_CASE("what is not finite is named alike: operation, scope, line") {
    const std::string graph = not_finite<tg::graph>();
    CHECK(graph.find("step 1: log: element 3 of a result of shape [3, 2] is not finite, in scope 'inner' at "
                     "messages_test.cpp:") == 0);
    CHECK(not_finite<tg::eager>() == graph);
}

TEST_CASE("errors number the inputs of a function") {
    auto f = tg::function<tg::graph>([](auto a, auto b) { return a + b; }, tg::spec<float, tg::dyn, 3>{},
                                     tg::spec<float, tg::dyn, 3>{});
    CHECK(support::message_of<tg::shape_error>([&] {
              f(tg::ones<float>({2, 3}), tg::ones<float>({3}));
          }) == "input 'argument 2' has shape [?, 3], fed with [3]");
    CHECK(support::message_of<tg::shape_error>([&] {
              f(tg::ones<float>({2, 4}), tg::ones<float>({2, 4}));
          }) == "input 'argument 1': extent of axis 1 is 4, expected 3");
}

} // namespace messages_test
