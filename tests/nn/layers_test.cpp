#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

#include <cmath>
#include <functional>

namespace layers_test {

using namespace nn_test;
using std::int64_t;

// Forward values in eager mode against loops in double. That graph mode computes the same bits, and that gradients are
// right, is shown by gradients_test, image_layers_test and the reference CNN.

namespace {

/// What a layer needs to run by itself.
struct bench {
    tg::variable_list variables{};
    tg::eager_context context{};
    explicit bench(bool training = true, tg::random_state state = {}) {
        context.variables = &variables;
        context.begin(training, state);
    }
    tg::eager_scope scope() { return tg::eager_scope(&context); }
    void next(bool training = true, tg::random_state state = {}) { context.begin(training, state); }
    tg::tensor<double> operator[](const char* path) { return variables[path].value<double>(); }
};

void fill(bench& b) { // so that biases are not zero
    for (int i = 0; i < b.variables.size(); ++i)
        b.variables.at(i).assign(noise<double>(b.variables.at(i).shape(), 500 + static_cast<std::uint64_t>(i)));
}

/// Sums of up to a few hundred products of numbers below one.
constexpr double tolerance = 1e-13;

/// TensorFlow's window arithmetic: output extent and padding in front.
struct window {
    int64_t output, front;
    window(int64_t input, int64_t kernel, int64_t stride, int64_t dilation, bool same) {
        const int64_t reach = (kernel - 1) * dilation + 1;
        output = same ? (input + stride - 1) / stride : (input - reach) / stride + 1;
        const int64_t total = std::max<int64_t>((output - 1) * stride + reach - input, 0);
        front = same ? total / 2 : 0;
    }
};

} // namespace

TEST_CASE("dense: x W + b over the last axis") {
    for (const tg::shape& dims : {tg::shape{1, 1}, tg::shape{7, 5}, tg::shape{2, 3, 11}}) {
        const auto x = noise<double>(dims, 1);
        const int64_t in = dims[dims.rank() - 1].value, rows = x.size() / in;
        bench b;
        tg::dense(b.scope() / "d", x, {.units = 3});
        fill(b);
        b.next();
        const tg::tensor<double> y = tg::dense(b.scope() / "d", x, {.units = 3});
        const auto w = b["d/kernel"], bias = b["d/bias"];
        REQUIRE(w.shape() == tg::shape{in, 3});
        REQUIRE(y.rank() == dims.rank());
        REQUIRE(y.size() == rows * 3);
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t u = 0; u < 3; ++u) {
                double sum = bias(u);
                for (int64_t k = 0; k < in; ++k) sum += x.data()[r * in + k] * w(k, u);
                CHECK(std::abs(y.data()[r * 3 + u] - sum) < tolerance);
            }
        b.next();
        const tg::tensor<double> plain = tg::dense(b.scope() / "d", x, {.units = 3, .use_bias = false});
        CHECK(std::abs(plain.data()[2] + bias(2) - y.data()[2]) < tolerance);
    }
}

TEST_CASE("conv1d: strides, dilation, groups and padding") {
    struct setting {
        int64_t width, channels, kernel, stride, dilation, groups;
        bool same;
    };
    for (const setting& s :
         {setting{9, 3, 3, 1, 1, 1, false}, setting{10, 4, 3, 2, 1, 2, true}, setting{11, 2, 2, 1, 3, 1, true},
          setting{7, 4, 4, 3, 1, 4, false}, setting{1, 1, 1, 1, 1, 1, false}}) {
        CAPTURE(s.width);
        const auto x = noise<double>({2, s.width, s.channels}, 3);
        const tg::conv1d_layer_options o{.filters = 4,
                                         .kernel_size = s.kernel,
                                         .stride = s.stride,
                                         .padding = s.same ? tg::padding::same() : tg::padding::valid(),
                                         .dilation = s.dilation,
                                         .groups = s.groups};
        bench b;
        tg::conv1d(b.scope() / "c", x, o);
        fill(b);
        b.next();
        const tg::tensor<double> y = tg::conv1d(b.scope() / "c", x, o);
        const auto w = b["c/kernel"], bias = b["c/bias"];
        const window at(s.width, s.kernel, s.stride, s.dilation, s.same);
        const int64_t in = s.channels / s.groups, out = 4 / s.groups;
        REQUIRE(w.shape() == tg::shape{s.kernel, in, 4});
        REQUIRE(y.shape() == tg::shape{2, at.output, 4});
        for (int64_t n = 0; n < 2; ++n)
            for (int64_t i = 0; i < at.output; ++i)
                for (int64_t f = 0; f < 4; ++f) {
                    double sum = bias(f);
                    for (int64_t u = 0; u < s.kernel; ++u) {
                        const int64_t from = i * s.stride + u * s.dilation - at.front;
                        if (from < 0 || from >= s.width) continue;
                        for (int64_t c = 0; c < in; ++c) sum += x(n, from, f / out * in + c) * w(u, c, f);
                    }
                    CHECK(std::abs(y(n, i, f) - sum) < tolerance);
                }
    }
}

TEST_CASE("conv1d: causal padding") {
    struct setting {
        int64_t width, kernel, stride, dilation, groups;
    };
    for (const setting& s : {setting{9, 3, 1, 1, 1}, setting{11, 3, 1, 4, 2}, setting{10, 4, 3, 2, 1},
                             setting{2, 5, 2, 1, 2}, setting{1, 7, 1, 3, 1}, setting{7, 1, 1, 1, 1}}) {
        CAPTURE(s.width);
        const auto x = noise<double>({2, s.width, 4}, 3);
        const tg::conv1d_layer_options o{.filters = 6,
                                         .kernel_size = s.kernel,
                                         .stride = s.stride,
                                         .padding = tg::padding::causal(),
                                         .dilation = s.dilation,
                                         .groups = s.groups};
        bench b;
        tg::conv1d(b.scope() / "c", x, o);
        fill(b);
        b.next();
        const tg::tensor<double> y = tg::conv1d(b.scope() / "c", x, o);
        const auto w = b["c/kernel"], bias = b["c/bias"];
        const int64_t in = 4 / s.groups, out = 6 / s.groups, steps = (s.width + s.stride - 1) / s.stride;
        REQUIRE(y.shape() == tg::shape{2, steps, 6});
        for (int64_t n = 0; n < 2; ++n)
            for (int64_t i = 0; i < steps; ++i)
                for (int64_t f = 0; f < 6; ++f) {
                    double sum = bias(f);
                    for (int64_t back = 0; back < s.kernel; ++back) { // the last tap sees step i * stride
                        const int64_t from = i * s.stride - back * s.dilation;
                        if (from < 0) continue;
                        for (int64_t c = 0; c < in; ++c)
                            sum += x(n, from, f / out * in + c) * w(s.kernel - 1 - back, c, f);
                    }
                    CHECK(std::abs(y(n, i, f) - sum) < tolerance);
                }
    }
}

TEST_CASE("conv2d: strides, dilation, groups and padding") {
    struct setting {
        int64_t h, w, channels, kernel[2], stride[2], dilation[2], groups;
        bool same;
    };
    for (const setting& s :
         {setting{6, 7, 3, {3, 3}, {1, 1}, {1, 1}, 1, false}, setting{8, 5, 4, {3, 2}, {2, 1}, {1, 1}, 2, true},
          setting{9, 9, 2, {2, 3}, {1, 2}, {3, 1}, 1, true}, setting{5, 6, 4, {5, 1}, {1, 1}, {1, 1}, 4, false},
          setting{1, 1, 1, {1, 1}, {1, 1}, {1, 1}, 1, false}}) {
        CAPTURE(s.h);
        const auto x = noise<double>({2, s.h, s.w, s.channels}, 4);
        tg::conv2d_layer_options o{
            .filters = 4, .padding = s.same ? tg::padding::same() : tg::padding::valid(), .groups = s.groups};
        for (int i = 0; i < 2; ++i)
            o.kernel_size[i] = s.kernel[i], o.stride[i] = s.stride[i], o.dilation[i] = s.dilation[i];
        bench b;
        tg::conv2d(b.scope() / "c", x, o);
        fill(b);
        b.next();
        const tg::tensor<double> y = tg::conv2d(b.scope() / "c", x, o);
        const auto w = b["c/kernel"], bias = b["c/bias"];
        const window rows(s.h, s.kernel[0], s.stride[0], s.dilation[0], s.same);
        const window columns(s.w, s.kernel[1], s.stride[1], s.dilation[1], s.same);
        const int64_t in = s.channels / s.groups, out = 4 / s.groups;
        REQUIRE(w.shape() == tg::shape{s.kernel[0], s.kernel[1], in, 4});
        REQUIRE(y.shape() == tg::shape{2, rows.output, columns.output, 4});
        for (int64_t n = 0; n < 2; ++n)
            for (int64_t i = 0; i < rows.output; ++i)
                for (int64_t j = 0; j < columns.output; ++j)
                    for (int64_t f = 0; f < 4; ++f) {
                        double sum = bias(f);
                        for (int64_t u = 0; u < s.kernel[0]; ++u)
                            for (int64_t v = 0; v < s.kernel[1]; ++v) {
                                const int64_t a = i * s.stride[0] + u * s.dilation[0] - rows.front;
                                const int64_t c = j * s.stride[1] + v * s.dilation[1] - columns.front;
                                if (a < 0 || a >= s.h || c < 0 || c >= s.w) continue;
                                for (int64_t k = 0; k < in; ++k) sum += x(n, a, c, f / out * in + k) * w(u, v, k, f);
                            }
                        CHECK(std::abs(y(n, i, j, f) - sum) < tolerance);
                    }
    }
}

TEST_CASE("windows: one number is height and width") {
    const auto x = noise<double>({2, 11, 13, 3}, 4);
    bench b;
    const tg::tensor<double> y = tg::conv2d(b.scope() / "c", x, {.filters = 2, .kernel_size = 5, .stride = 2});
    CHECK(b["c/kernel"].shape() == tg::shape{5, 5, 3, 2});
    CHECK(y.shape() == tg::shape{2, 4, 5, 2});
    const auto same = [](const tg::tensor<double>& a, const tg::tensor<double>& c) {
        return a.shape() == c.shape() && a.to_vector() == c.to_vector();
    };
    CHECK(same(max_pooling2d(x, {.pool_size = 3}), max_pooling2d(x, {.pool_size = {3, 3}, .stride = {3, 3}})));
    CHECK(same(average_pooling2d(x, {.pool_size = {2, 3}, .stride = 1}),
               average_pooling2d(x, {.pool_size = {2, 3}, .stride = {1, 1}})));
}

TEST_CASE("batch normalization: batch statistics in training, moving averages at its end, used in inference") {
    for (const tg::shape& dims : {tg::shape{5, 3}, tg::shape{1, 3}, tg::shape{2, 4, 5, 3}, tg::shape{3, 7, 3}}) {
        CAPTURE(tg::to_string(dims));
        const auto x = noise<double>(dims, 8);
        const int64_t count = x.size() / 3;
        bench b;
        const tg::batch_normalization_options o{.momentum = 0.75, .epsilon = 0.01};
        tg::batch_normalization(b.scope() / "n", x, o);
        REQUIRE(b["n/gamma"].to_vector() == std::vector<double>{1, 1, 1});
        REQUIRE(b["n/beta"].to_vector() == std::vector<double>{0, 0, 0});
        REQUIRE(b["n/moving_mean"].to_vector() == std::vector<double>{0, 0, 0}); // not before the end of the step
        REQUIRE(b["n/moving_variance"].to_vector() == std::vector<double>{1, 1, 1});
        CHECK(b.variables["n/gamma"].trainable());
        CHECK(!b.variables["n/moving_mean"].trainable());
        b.context.updates.clear();
        b.variables["n/gamma"].assign(tg::tensor<double>{2, 0.5, -1});
        b.variables["n/beta"].assign(tg::tensor<double>{0.25, -3, 1});
        const auto gamma = b["n/gamma"], beta = b["n/beta"];

        std::vector<double> moving_mean(3, 0.0), moving_variance(3, 1.0);
        for (int step = 0; step < 2; ++step) {
            b.next();
            const tg::tensor<double> y = tg::batch_normalization(b.scope() / "n", x, o);
            b.context.apply();
            for (int64_t c = 0; c < 3; ++c) {
                double mean = 0, variance = 0;
                for (int64_t i = 0; i < count; ++i) mean += x.data()[i * 3 + c] / static_cast<double>(count);
                for (int64_t i = 0; i < count; ++i)
                    variance += std::pow(x.data()[i * 3 + c] - mean, 2) / static_cast<double>(count);
                for (int64_t i = 0; i < count; ++i)
                    CHECK(std::abs(y.data()[i * 3 + c] -
                                   ((x.data()[i * 3 + c] - mean) / std::sqrt(variance + 0.01) * gamma(c) + beta(c))) <
                          tolerance);
                auto &m = moving_mean[static_cast<std::size_t>(c)], &v = moving_variance[static_cast<std::size_t>(c)];
                m = 0.75 * m + 0.25 * mean;
                v = 0.75 * v + 0.25 * variance;
                CHECK(std::abs(b["n/moving_mean"](c) - m) < tolerance);
                CHECK(std::abs(b["n/moving_variance"](c) - v) < tolerance);
            }
        }
        b.next(false);
        const tg::tensor<double> y = tg::batch_normalization(b.scope() / "n", x, o);
        CHECK(b.context.updates.empty());
        for (int64_t i = 0; i < x.size(); ++i) {
            const auto c = static_cast<std::size_t>(i % 3);
            const double expected =
                (x.data()[i] - moving_mean[c]) / std::sqrt(moving_variance[c] + 0.01) * gamma(static_cast<int>(c)) +
                beta(static_cast<int>(c));
            CHECK(std::abs(y.data()[i] - expected) < tolerance);
        }
    }
}

TEST_CASE("batch normalization without centre or scale has no such variables") {
    bench b;
    const auto x = noise<double>({4, 2}, 1);
    const tg::tensor<double> y = tg::batch_normalization(b.scope() / "n", x, {.center = false, .scale = false});
    CHECK(b.variables.size() == 2);
    CHECK(b.variables.find("n/gamma") == nullptr);
    CHECK(b.variables.find("n/beta") == nullptr);
    double mean = 0; // the output's mean is zero
    for (int i = 0; i < 4; ++i) mean += y(i, 0);
    CHECK(std::abs(mean) < tolerance);
}

TEST_CASE_TEMPLATE("dropout: rate, scale, and masks that are Philox's numbers", T, float, double) {
    const auto x = tg::full<T>({100, 201}, T(3));
    constexpr double rate = 0.3;
    bench b(true, {.seed = 6, .step = 9});
    const auto run = [&](const char* name) { return tg::tensor<T>(tg::dropout(b.scope() / name, x, {.rate = rate})); };
    const tg::tensor<T> first = run("a"), second = run("b");
    std::int64_t zeros = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const auto at = static_cast<std::uint64_t>(i);
        const T factor = static_cast<T>(1 / (1 - rate));
        REQUIRE(first.data()[i] == (tg::random::uniform_at<T>(6, 9, 0, at) >= T(rate) ? 3 * factor : T(0)));
        REQUIRE(second.data()[i] == (tg::random::uniform_at<T>(6, 9, 1, at) >= T(rate) ? 3 * factor : T(0)));
        zeros += first.data()[i] == T(0);
    }
    // 20,100 draws: the share deviates by sqrt(0.3 * 0.7 / 20100) = 0.0032.
    CHECK(std::abs(static_cast<double>(zeros) / 20100 - rate) < 0.016);
    CHECK(!same_bits(first, second));
    b.next(true, {.seed = 6, .step = 10});
    CHECK(!same_bits(first, run("a"))); // a new mask in every step
    b.next(true, {.seed = 6, .step = 9});
    CHECK(same_bits(first, run("a")));
    b.next(false, {.seed = 6, .step = 9});
    CHECK(same_bits(x, run("a")));
}

TEST_CASE("dropout of rate zero hands through; one of rate 1 or below 0 is refused") {
    bench b;
    const auto x = noise<double>({3, 3}, 1);
    CHECK(same_bits(x, tg::dropout(b.scope() / "a", x, {.rate = 0})));
    for (const double rate : {1.0, -0.1, 1.5}) {
        const std::string message =
            support::message_of<tg::argument_error>([&] { tg::dropout(b.scope() / "a", x, {.rate = rate}); });
        CHECK(support::contains(message, "dropout: rate must lie in [0, 1), in scope 'a'"));
    }
}

TEST_CASE("max pooling takes each window's maximum") {
    struct setting {
        int64_t h, w, pool[2], stride[2];
        bool same;
    };
    for (const setting& s : {setting{6, 8, {2, 2}, {2, 2}, false}, setting{7, 5, {2, 2}, {2, 2}, false},
                             setting{7, 5, {3, 2}, {2, 1}, true}, setting{1, 1, {1, 1}, {1, 1}, false}}) {
        CAPTURE(s.h);
        auto x = noise<double>({2, s.h, s.w, 3}, 12);
        for (std::int64_t i = 0; i < x.size(); ++i) x.mutable_data()[i] -= 2; // negative: padding must not win
        tg::pool2d_options o{.padding = s.same ? tg::padding::same() : tg::padding::valid()};
        for (int i = 0; i < 2; ++i) o.pool_size[i] = s.pool[i], o.stride[i] = s.stride[i];
        const tg::tensor<double> y = tg::max_pooling2d(x, o);
        const window rows(s.h, s.pool[0], s.stride[0], 1, s.same), columns(s.w, s.pool[1], s.stride[1], 1, s.same);
        REQUIRE(y.shape() == tg::shape{2, rows.output, columns.output, 3});
        for (int64_t n = 0; n < 2; ++n)
            for (int64_t i = 0; i < rows.output; ++i)
                for (int64_t j = 0; j < columns.output; ++j)
                    for (int64_t c = 0; c < 3; ++c) {
                        double best = -1e300;
                        for (int64_t u = 0; u < s.pool[0]; ++u)
                            for (int64_t v = 0; v < s.pool[1]; ++v) {
                                const int64_t a = i * s.stride[0] + u - rows.front,
                                              d = j * s.stride[1] + v - columns.front;
                                if (a >= 0 && a < s.h && d >= 0 && d < s.w) best = std::max(best, x(n, a, d, c));
                            }
                        CHECK(y(n, i, j, c) == best);
                    }
    }
}

TEST_CASE("flatten keeps the batch and the order") {
    const auto x = noise<double>({3, 2, 5, 7}, 2);
    const tg::tensor<double> y = tg::flatten(x);
    CHECK(y.shape() == tg::shape{3, 70});
    CHECK(y.to_vector() == x.to_vector());
}

TEST_CASE("a path cannot be requested twice, and only variables are assigned") {
    bench b;
    const auto x = noise<double>({2, 2}, 1);
    tg::dense(b.scope() / "d", x, {.units = 1});
    CHECK(
        support::contains(support::message_of<tg::argument_error>([&] { tg::dense(b.scope() / "d", x, {.units = 1}); }),
                          "variable 'd/kernel': this path is already taken (scope.reuse() shares it)"));
    CHECK(support::contains(support::message_of<tg::argument_error>([&] { b.scope().assign(x, x); }),
                            "assign: the target is not a variable"));
}

TEST_CASE("updates apply at the end of a step, and variables assigned from one tensor stay apart") {
    bench b;
    const auto scope = b.scope();
    const tg::tensor<double> first =
        scope.variable<double>("first", {2}, {.initializer = tg::init::zeros{}, .trainable = false});
    const tg::tensor<double> second =
        scope.variable<double>("second", {2}, {.initializer = tg::init::zeros{}, .trainable = false});
    const tg::tensor<double> value{3, 4};
    scope.assign(first, value);
    scope.assign(second, value);
    CHECK(b["first"].to_vector() == std::vector<double>{0, 0});
    b.context.apply();
    CHECK(b["first"].to_vector() == std::vector<double>{3, 4});
    b.variables["first"].assign(tg::tensor<double>{5, 6});
    CHECK(b["second"].to_vector() == std::vector<double>{3, 4});
    CHECK(value.to_vector() == std::vector<double>{3, 4});
}

} // namespace layers_test
