#include <nn/models.hpp>
#include <tapegraph/compile/features.hpp>
#include <tapegraph/compile/instance.hpp>
#include <tapegraph/nn/layers/layer.hpp>

namespace features_test {

using namespace nn_test;

namespace {

struct network {
    int blocks = 2;
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "in", x, {.units = 5});
        for (int i = 0; i < blocks; ++i) {
            h = tg::layer(scope / "block" / i, "block", h, [](auto s, auto y) { // its own path, and one below
                return tanh(tg::dense(s, tg::dropout(s / "drop", y, {.rate = 0.5}), {.units = 4}));
            });
            h = (scope / "block" / i).named("half", 0.5 * h);
        }
        const auto last = tg::batch_normalization(scope / "norm", h);
        if (scope.training()) scope.add_loss(mean(square(last)));
        return tg::dense(scope / "out", last, {.units = 2});
    }
};
struct two_blocks {
    constexpr auto operator()(auto scope, auto x) const { return network{}(scope, x); }
};
/// Classes of another model's features.
struct head {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::features<"block/1">(two_blocks{})(scope / "body", x);
        return tg::dense(scope / "head", h, {.units = 3});
    }
};
using spec = tg::spec<double, tg::dyn, 3>;

/// A dense layer by loops, in the order of no kernel: so with a tolerance.
std::vector<double> dense_by_hand(const std::vector<double>& x, std::int64_t rows, tg::variable_list& v,
                                  const std::string& path) {
    const auto w = v[path + "/kernel"].value<double>(), b = v[path + "/bias"].value<double>();
    const std::int64_t in = w.shape()[0].value, out = w.shape()[1].value;
    std::vector<double> y(static_cast<std::size_t>(rows * out));
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t o = 0; o < out; ++o) {
            double sum = b(o);
            for (std::int64_t i = 0; i < in; ++i) sum += x[static_cast<std::size_t>(r * in + i)] * w(i, o);
            y[static_cast<std::size_t>(r * out + o)] = sum;
        }
    return y;
}

} // namespace

TEST_CASE("what a trained model computes inside, by path, is a model that shares its variables") {
    const auto x = noise<double>({5, 3}, 1), y = noise<double>({5, 2}, 2);
    const auto of = [&](auto mode) {
        using m = decltype(mode);
        auto model = tg::compile<m>(two_blocks{}, spec{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.1});
        auto inside = tg::compile<m>(tg::features<"block/0", "block/1/half", "in">(two_blocks{}), spec{},
                                     {.shared = &model.variables()});
        auto one =
            tg::compile<m>(tg::features<network{.blocks = 1}, "block/0">(), spec{}, {.shared = &model.variables()});
        for (int i = 0; i < 2; ++i) model.train_on_batch(x, y);

        // What comes after the cut has no variables here.
        std::vector<std::string> paths;
        for (const tg::variable& v : one.variables()) paths.push_back(v.path());
        CHECK(paths == std::vector<std::string>{"in/kernel", "in/bias", "block/0/kernel", "block/0/bias"});
        CHECK(inside.variables().size() == 6);

        const auto [block, half, in] = inside.predict(x);
        CHECK(same_bits(one.predict(x), block));
        auto right = dense_by_hand(std::vector<double>(x.data(), x.data() + 15), 5, model.variables(), "in");
        for (std::size_t i = 0; i < right.size(); ++i)
            CHECK(std::abs(in.data()[i] - right[i]) < 1e-14); // 3 products below 1
        right = dense_by_hand(right, 5, model.variables(), "block/0");
        for (std::size_t i = 0; i < right.size(); ++i) {
            right[i] = std::tanh(right[i]); // of the outer layer; the inner one of the same path is in front of tanh
            CHECK(std::abs(block.data()[i] - right[i]) < 1e-13);
            right[i] *= 0.5;
        }
        right = dense_by_hand(right, 5, model.variables(), "block/1");
        for (std::size_t i = 0; i < right.size(); ++i)
            CHECK(std::abs(half.data()[i] - 0.5 * std::tanh(right[i])) < 1e-13);
        return inside.predict(x);
    };
    const auto a = of(tg::graph{}), b = of(tg::eager{});
    CHECK(same_bits(a.get<0>(), b.get<0>()));
    CHECK(same_bits(a.get<1>(), b.get<1>()));
    CHECK(same_bits(a.get<2>(), b.get<2>()));
}

TEST_CASE("features are layers of another model, trained alike in both modes, without what comes after them") {
    auto a = tg::compile<tg::graph>(head{}, spec{}, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.1});
    auto b = tg::compile<tg::eager>(head{}, spec{}, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.1});
    CHECK(a.variables().find("body/out/kernel") == nullptr);
    CHECK(a.variables().find("body/norm/gamma") == nullptr); // nor its loss
    train_alike(a, b, {6, 3}, [](int size, std::uint64_t seed) {
        return std::pair{noise<double>({size, 3}, seed), classes(size, 3, seed)};
    });
}

TEST_CASE("features under a tape, and a path that is none") {
    auto net = tg::instance(tg::features<"block/0">(two_blocks{}), spec{});
    const auto x = noise<double>({5, 3}, 1);
    tg::gradient_tape tape;
    const auto flows = net.gradients(tape, sum(net(x)));
    REQUIRE(flows.size() == 4);
    for (const auto& each : flows) CHECK(each.has_storage());

    // Compiled models say so while the program is compiled: tests/compile_fail/features_path.cpp.
    tg::variable_list variables;
    tg::eager_context context;
    context.variables = &variables;
    context.begin(false, {});
    CHECK_THROWS_WITH_AS(
        tg::features<"block/7">(two_blocks{})(tg::eager_scope(&context) / "a", x),
        "features: the model has no layer and no named value 'a/block/7', there are 'a/in', 'a/block/0/drop', "
        "'a/block/0', 'a/block/0/half', 'a/block/1/drop', 'a/block/1', 'a/block/1/half', 'a/norm', 'a/out'",
        tg::argument_error);
    CHECK(context.search == nullptr);
}

} // namespace features_test
