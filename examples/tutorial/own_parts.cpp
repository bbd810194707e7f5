#include <tapegraph/tapegraph.hpp>

#include <array>
#include <cmath>
#include <cstdio>

// The third program of docs/tutorial.md: an operation, a layer, a loss and an optimizer that the library does not have.

namespace tg = tapegraph;

// The operation: snake(x, a) = x + sin(a x)^2 / a, which repeats itself as data with seasons do (Ziyin et al. 2020).
struct snake_op : tg::map_op<2> {
    static constexpr std::string_view name = "snake";

    template <class V>
    TG_HD static constexpr V value(V x, V a) {
        const V s = tg::math::sin(a * x);
        return x + s * s / a;
    }
    // dL/dx and dL/da from dL/dy; with s = sin(a x), c = cos(a x): dy/dx = 1 + 2 s c, dy/da = (2 a x s c - s^2) / a^2.
    template <int I>
    static constexpr auto vjp(auto dy, auto x, auto a, auto) {
        const auto s = tg::sin(a * x);
        const auto c = tg::cos(a * x);
        if constexpr (I == 0)
            return dy * (1 + 2 * s * c);
        else
            return dy * (2 * a * x * s * c - s * s) / (a * a);
    }
};

template <tg::operand X, tg::operand A>
constexpr auto snake(const X& x, const A& a) {
    return tg::apply<snake_op>(x, a);
}

// The layer: snake with a frequency for each feature, which training finds.
constexpr auto snake_layer(const auto& scope, const auto& x) {
    const auto input = tg::eval(x);
    const auto features = tg::shape_of(input)[tg::shape_of(input).rank() - 1].value;
    const auto frequency =
        scope.variable_like(input, "frequency", {features}, {.initializer = tg::init::uniform{1, 3}});
    return tg::eval(snake(input, frequency));
}

// The loss (Huber 1964): squares of small errors, distances of large ones, so that an outlier does not pull at the rest.
struct huber {
    constexpr auto operator()(auto output, auto labels) const {
        const auto distance = tg::eval(abs(output - labels));
        return mean(where(distance < 1, 0.5 * square(distance), distance - 0.5));
    }
    static constexpr tg::tensor_spec labels(tg::dtype type, const tg::shape& output) { return {type, output}; }
};

// The optimizer (RMSprop, Hinton 2012): m <- m + (1 - decay) (g^2 - m), w <- w - rate g / (sqrt(m) + 1e-7).
struct rmsprop {
    double learning_rate = 0.001, decay = 0.9;

    static constexpr int count = 2; // numbers that may change from step to step
    std::array<double, count> numbers(std::int64_t) const { return {learning_rate, 1 - decay}; }
    static constexpr void update(const auto& slots, const auto& w, const auto& g, const auto& n) {
        const auto average = slots.state(w, "average");
        const auto next = tg::eval(average + n[1] * (square(g) - average));
        slots.assign(average, next);
        slots.assign(w, w - n[0] * g / (sqrt(next) + 1e-7));
    }
};

struct network {
    constexpr auto operator()(auto scope, auto x) const { // [batch, 1] to [batch, 1]
        auto h = snake_layer(scope / "seasons", tg::dense(scope / "hidden", x, {.units = 16}));
        return tg::dense(scope / "sum", h, {.units = 1});
    }
};

// A season and a trend; every sixteenth measurement went wrong.
double season(double t) { return std::sin(2 * t) + 0.5 * t; }

template <class Mode>
void train(const char* name) {
    auto model = tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 1>{}, huber{}, rmsprop{.learning_rate = 0.005});
    tg::tensor<float> t = tg::random::uniform<float>({256, 1}, {.seed = 1}, -3, 3);
    std::vector<float> seen;
    for (const float at : t.values())
        seen.push_back(static_cast<float>(season(at)) + (seen.size() % 16 == 0 ? 5.f : 0.f));
    const tg::tensor<float> y = tg::from_range<float>(seen, {256, 1});
    for (int step = 1; step <= 600; ++step) {
        if (step == 400) model.optimizer().learning_rate = 0.001; // compiles nothing
        const double loss = model.train_on_batch(t, y).loss;
        if (step % 200 == 0) std::printf("%s, step %d: loss %.3f\n", name, step, loss);
    }
    const tg::tensor<float> at = tg::from_range<float>(std::array{-2, 0, 1}, {3, 1});
    const tg::tensor<float> found = model.predict(at);
    for (int i = 0; i < 3; ++i)
        std::printf("  at %4.1f: %5.2f, truly %5.2f\n", at(i, 0), found(i, 0), season(at(i, 0)));
}

int main() {
    // The operation on plain numbers, and its derivatives: computed by the compiler.
    static_assert(snake(0.0, 2.0) == 0);
    static_assert(tg::gradient([](auto x) { return snake(x, 2.0); })(0.0) == 1);

    // And on tensors, against differences of its values.
    const tg::tensor<double> x{-1, 0.5, 2}, a{1, 2, 3};
    const double e = 1e-6;
    const auto [dx, da] = tg::gradient([](auto x, auto a) { return sum(snake(x, a)); })(x, a);
    const tg::tensor<double> by_x = (snake(x + e, a) - snake(x - e, a)) / (2 * e);
    const tg::tensor<double> by_a = (snake(x, a + e) - snake(x, a - e)) / (2 * e);
    std::printf("derivatives and differences: %s\n",
                max(abs(dx - by_x)).item() + max(abs(da - by_a)).item() < 1e-8 ? "the same" : "not the same");

    train<tg::graph>("graph");
    train<tg::eager>("eager");
}
