#include <nn/models.hpp>
#include <support/messages.hpp>

#include <tapegraph/traced.hpp>

#include <string>
#include <vector>

namespace traced_test {

/// What graphs made at run time take that a compiler does not: sizes, names and branches of the moment. And what they refuse.

using namespace nn_test;

namespace {

/// Its layers are data.
struct any_mlp {
    std::vector<int> units;
    bool normalized = false;

    auto operator()(auto scope, auto x) const {
        auto h = eval(x * 1);
        for (std::size_t i = 0; i < units.size(); ++i) {
            h = tg::dense(scope / ("layer_" + std::to_string(i + 1)), h, {.units = units[i]});
            if (normalized) h = tg::batch_normalization(scope / ("norm_" + std::to_string(i + 1)), h);
            h = tanh(h);
        }
        return tg::dense(scope / "out", h, {.units = 3});
    }
};

/// The same layers as a type.
struct fixed_mlp {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = eval(x * 1);
        h = tanh(tg::dense(scope / "layer_1", h, {.units = 5}));
        h = tanh(tg::dense(scope / "layer_2", h, {.units = 7}));
        return tg::dense(scope / "out", h, {.units = 3});
    }
};

constexpr auto normalized_products = [](auto x, auto w) {
    const auto centred = eval(x - mean(x, {1}, {.keepdims = true}));
    const auto scaled = eval(centred * rsqrt(mean(square(centred), {1}, {.keepdims = true}) + 1e-5));
    return std::tuple{eval(gelu(matmul(scaled, w))), eval(sum(softmax(matmul(x, w)) * x, {0}))};
};
constexpr auto loss = [](auto x, auto w) {
    const auto [a, b] = normalized_products(x, w);
    return sum(a * a) + sum(tanh(b)) + max(x);
};

const auto batch = [](std::int64_t size, std::uint64_t seed) {
    return std::pair(noise<float>({size, 6}, seed), classes(size, 3, seed));
};

struct tripled_op : tg::map_op<1> {
    static constexpr std::string_view name = "tripled";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return 3 * x;
    }
    static constexpr auto vjp(auto dy, auto, auto) { return 3 * dy; }
};

struct reversed_op : tg::custom_op<1> {
    static constexpr std::string_view name = "reversed";
    static constexpr void infer(const attributes&, tg::inference& io) { io.result = io.in[0].dims; }
    template <int I>
    static constexpr auto vjp(const attributes&, auto dy, auto, auto);
};
template <tg::handle X>
constexpr X reversed(const X& x, std::source_location where = std::source_location::current()) {
    return tg::invoke<reversed_op>({}, nullptr, where, x);
}
template <int I>
constexpr auto reversed_op::vjp(const attributes&, auto dy, auto, auto) {
    return tg::invoke<reversed_op>({}, nullptr, std::source_location::current(), dy); // reversed() asks for this type
}

} // namespace

} // namespace traced_test

template <class T>
struct tapegraph::runtime::kernel<traced_test::reversed_op, T> {
    static void run(const kernel_call& c) {
        const std::int64_t n = c.in[0].elements();
        for (std::int64_t i = 0; i < n; ++i) c.out[0].as<T>()[i] = c.in[0].as<const T>()[n - 1 - i];
    }
};

namespace traced_test {

TEST_CASE("run-time graphs: a model whose layers are data trains as the one that is a type") {
    auto traced = tg::compile<tg::traced>(any_mlp{{5, 7}}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                          tg::adam{}, {.seed = 4});
    auto compiled = tg::compile<tg::graph>(fixed_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                           tg::adam{}, {.seed = 4});
    CHECK(traced.summary() == compiled.summary());
    REQUIRE(first_difference(traced, compiled) == "");
    train_alike(traced, compiled, {4, 1, 700}, batch);
}

TEST_CASE("run-time graphs: equal types, other layers") {
    std::vector<std::int64_t> parameters;
    for (const auto& units : {std::vector<int>{}, {4}, {4, 4}, {4, 4, 4}})
        for (const bool normalized : {false, true}) {
            auto model = tg::compile<tg::traced>(any_mlp{units, normalized}, mlp_spec<float>{},
                                                 tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.05});
            const auto [x, y] = batch(16, 1);
            const double first = model.train_on_batch(x, y).loss;
            for (int i = 0; i < 20; ++i) model.train_on_batch(x, y);
            CHECK(model.evaluate(x, y).loss < first);
            parameters.push_back(model.parameter_count());
        }
    CHECK(parameters == std::vector<std::int64_t>{21, 21, 43, 59, 63, 95, 83, 131});
}

TEST_CASE("run-time graphs: a lambda that captures is a model") {
    const int units = 11;
    const bool gated = noise<float>({1}, 3).to_vector()[0] > -2; // known at run time
    auto model = tg::compile<tg::traced>(
        [&](auto scope, auto x) {
            auto h = tg::dense(scope / "in", x, {.units = units});
            h = gated ? eval(h * sigmoid(h)) : eval(relu(h));
            return tg::dense(scope / "out", h, {.units = 1});
        },
        tg::spec<float, tg::dyn, 6>{}, tg::mean_squared_error{}, tg::sgd{.learning_rate = 0.01});
    CHECK(model.parameter_count() == 6 * 11 + 11 + 11 + 1);
    const auto x = noise<float>({9, 6}, 1);
    const tg::tensor<float> y = tg::ones<float>({9, 1});
    const double before = model.train_on_batch(x, y).loss;
    CHECK(model.evaluate(x, y).loss < before);
}

TEST_CASE("run-time graphs: errors of shapes are those of the compiler") {
    const auto refused = [](auto model) {
        return support::message_of<tg::shape_error>([&] {
            static_cast<void>(
                tg::compile<tg::traced>(model, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{}));
        });
    };
    const std::string product = refused([](auto scope, auto x) {
        const auto h = tg::dense(scope / "hidden", x, {.units = 4});
        return tg::matmul(h, tg::transpose(tg::dense(scope / "block" / "other", x, {.units = 5})));
    });
    CHECK(product.find("matmul: inner extents differ: f32[?,4] and f32[5,?]") == 0);
    CHECK(product.find("traced_test.cpp:") != std::string::npos);
    const std::string units = refused([](auto scope, auto x) { return tg::dense(scope / "hidden", x, {.units = 0}); });
    CHECK(units.find("units") != std::string::npos);
    CHECK(units.find("in scope 'hidden'") != std::string::npos);
    const std::string path = refused([](auto scope, auto x) {
        return tg::dense(scope / "twice", tg::dense(scope / "twice", x, {.units = 6}), {.units = 3});
    });
    CHECK(path.find("already taken") != std::string::npos);
}

TEST_CASE("run-time graphs: inputs are checked as in the other modes") {
    auto model =
        tg::compile<tg::traced>(any_mlp{{4}}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    CHECK_THROWS_AS(model.predict(noise<float>({3, 5}, 1)), tg::shape_error);
    CHECK_THROWS_AS(model.train_on_batch(noise<float>({3, 6}, 1), classes(4, 3, 1)), tg::shape_error);
}

TEST_CASE("run-time graphs: predictions of the requested element types") {
    const auto classified = [](auto scope, auto x) {
        const auto scores = tg::dense(scope / "out", x, {.units = 3});
        return tg::outputs{tg::output<"class">(tg::argmax(scores, 1)), tg::output<"score">(tg::eval(max(scores, {1})))};
    };
    const auto sure = [](auto scope, auto x) {
        return tg::eval(max(tg::dense(scope / "out", x, {.units = 3}), {1}) > 0);
    };
    const auto model = tg::compile<tg::traced>(classified, mlp_spec<float>{}, {.seed = 3});
    const auto x = noise<float>({5, 6}, 1);
    const auto found = model.predict<std::int32_t, float>(x);
    const auto plain = model.predict_any(std::vector<tg::any_tensor>{x});
    CHECK(same_bits(found.get<"class">(), tg::tensor<std::int32_t>(plain[0])));
    CHECK(same_bits(found.get<"score">(), tg::tensor<float>(plain[1])));
    tg::data::dataset set;
    set.add("x", x.to_vector(), {6});
    CHECK(same_bits(model.predict<std::int32_t, float>(set, 2).get<"class">(), found.get<"class">()));
    CHECK_THROWS_WITH_AS(model.predict(x), doctest::Contains("would be a tensor of f32"), tg::dtype_error);
    CHECK_THROWS_WITH_AS((model.predict<std::int64_t, float>(x)), doctest::Contains("ask predict<T>"), tg::dtype_error);
    CHECK_THROWS_AS((model.predict<std::int32_t, float>(noise<float>({5, 7}, 1))), tg::shape_error);
    const auto one = tg::compile<tg::traced>(sure, mlp_spec<float>{}, {.seed = 3});
    const tg::tensor<bool> yes = one.predict<bool>(x);
    for (std::int64_t i = 0; i < 5; ++i) CHECK(yes(i) == (found.get<"score">()(i) > 0));
}

TEST_CASE("run-time functions: values and gradients have the bits of graph mode") {
    using spec = tg::spec<float, tg::dyn, 9>;
    auto graph = tg::function<tg::graph>(normalized_products, spec{}, tg::spec<float, 9, 9>{});
    auto traced = tg::function<tg::traced>(normalized_products, spec{}, tg::spec<float, 9, 9>{});
    auto graph_slope = tg::function<tg::graph>(tg::gradient(loss), spec{}, tg::spec<float, 9, 9>{});
    auto traced_slope = tg::function<tg::traced>(tg::gradient(loss), spec{}, tg::spec<float, 9, 9>{});
    for (const std::int64_t rows : {9, 1, 700}) {
        const auto x = noise<float>({rows, 9}, 5), w = noise<float>({9, 9}, 6);
        const auto [a, b] = graph(x, w);
        const auto [c, d] = traced(x, w);
        CHECK(same_bits(a, c));
        CHECK(same_bits(b, d));
        const auto [by_x, by_w] = graph_slope(x, w);
        const auto [traced_by_x, traced_by_w] = traced_slope(x, w);
        CHECK(same_bits(by_x, traced_by_x));
        CHECK(same_bits(by_w, traced_by_w));
    }
}

TEST_CASE("run-time functions: on a tape a call is one record, with the gradient that the function has") {
    auto f = tg::function<tg::traced>([](auto x) { return sum(x * x * x); }, tg::spec<double, tg::dyn>{});
    tg::tensor<double> x{1, 2, -3};
    tg::gradient_tape tape;
    tape.watch(x);
    const tg::tensor<double> y = f(x);
    CHECK(y.to_vector()[0] == -18);
    CHECK(tg::tensor<double>(tape.gradient(y, x)).to_vector() == std::vector<double>{3, 12, 27});
}

TEST_CASE("run-time graphs: a prediction on a tape has a gradient, also after the model is gone") {
    tg::tensor<float> x = noise<float>({3, 6}, 1);
    tg::gradient_tape tape;
    tape.watch(x);
    tg::tensor<float> y;
    {
        auto model = tg::compile<tg::traced>(any_mlp{{4}}, mlp_spec<float>{});
        y = sum(model.predict(x));
    }
    const tg::tensor<float> slope = tape.gradient(y, x);
    CHECK(slope.shape() == x.shape());
    for (const float each : slope.to_vector()) CHECK(each != 0);
}

TEST_CASE("run-time graphs: operations of a user's own take part by being used") {
    const auto f = [](auto x) { return tg::print<"x">(reversed(eval(tg::apply<tripled_op>(x) + 1))); };
    auto traced = tg::function<tg::traced>(f, tg::spec<float, tg::dyn>{});
    auto slope = tg::function<tg::traced>(tg::gradient([f](auto x) { return sum(f(x) * x); }), tg::spec<double, 3>{});
    CHECK(traced(tg::tensor<float>{1, 2, 3}).to_vector() == std::vector<float>{10, 7, 4});
    // d/dx sum(x_i (3 x_(n-i) + 1)) = 3 x_(n-i) + 1 + 3 x_(n-i)
    CHECK(slope(tg::tensor<double>{1, 2, 3}).to_vector() == std::vector<double>{19, 13, 7});
}

TEST_CASE("run-time graphs: what has no kernel is named") {
    const std::string text = support::message_of<tg::dtype_error>([] {
        static_cast<void>(tg::function<tg::traced>([](auto x) { return reversed(x); }, tg::spec<std::int32_t, 3>{}));
    });
    CHECK(text.find("reversed of i32") == 0);
    tg::register_kernels<reversed_op, std::int32_t>();
    auto f = tg::function<tg::traced>([](auto x) { return tg::cast<float>(reversed(x)); }, tg::spec<std::int32_t, 3>{});
    CHECK(f(tg::tensor<std::int32_t>{1, 2, 3}).to_vector() == std::vector<float>{3, 2, 1});
}

} // namespace traced_test
