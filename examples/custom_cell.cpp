#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstdio>
#include <utility>

// A recurrent layer that the library does not have, built with tg::scan:
// docs/operations/recurrent.md, "Custom cells".

namespace tg = tapegraph;

// Units that leak towards what drives them, each at a rate of its own (a continuous-time recurrent network, one Euler step
// per element of the sequence): v' = v + rate (tanh(x W + v R) - v), rate = sigmoid(a).
struct leaky_cell {
    constexpr auto operator()(auto v, auto x, auto kernel, auto recurrent, auto rate) const {
        const auto drive = tg::eval(tanh(matmul(x, kernel) + matmul(v, recurrent)));
        const auto next = tg::eval(v + tg::sigmoid(rate) * (drive - v));
        return std::pair{next, next}; // the state, and the output of this step
    }
};

// Maps [batch, time, 2] to [batch, 1]. The variables belong to the model; the cell receives their
// values.
struct adding_model {
    static constexpr std::int64_t units = 24;

    constexpr auto operator()(auto scope, auto x) const {
        const auto kernel = scope.variable_like(x, "kernel", {2, units}, {.initializer = tg::init::glorot_uniform{}});
        const auto recurrent =
            scope.variable_like(x, "recurrent", {units, units}, {.initializer = tg::init::orthogonal{}});
        const auto rate = scope.variable_like(x, "rate", {units}, {.initializer = tg::init::uniform{-2, 2}});
        tg::shape state;
        state.push_back(tg::shape_of(x)[0]);
        state.push_back(units);
        const auto [last, sequence] = tg::scan(leaky_cell{}, tg::fill<float>(x, state, 0), x, kernel, recurrent, rate);
        return tg::dense(scope / "sum", last, {.units = 1});
    }
};

// The adding problem (Hochreiter and Schmidhuber 1997): numbers in [0, 1], two of which are marked;
// the target is their sum.
void draw(std::uint64_t seed, std::int64_t time, tg::tensor<float>& x, tg::tensor<float>& y) {
    const std::int64_t batch = 64;
    const auto numbers = tg::random::uniform<float>({batch, time + 2}, {.seed = seed});
    x = tg::zeros<float>({batch, time, 2});
    y = tg::zeros<float>({batch, 1});
    for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t t = 0; t < time; ++t) x.set(numbers(b, t), b, t, 0);
        const std::int64_t half = time / 2;
        for (int k = 0; k < 2; ++k) {
            const auto t = k * half + static_cast<std::int64_t>(numbers(b, time + k) * static_cast<float>(half)) % half;
            x.set(1, b, t, 1);
            y.set(y(b, 0) + numbers(b, t), b, 0);
        }
    }
}

int main() {
    // Time is a symbol: the cell is compiled once, and the model takes sequences of any length.
    auto model = tg::compile<tg::graph>(adding_model{}, tg::spec<float, tg::dyn, tg::dyn, 2>{},
                                        tg::mean_squared_error{}, tg::adam{.learning_rate = 0.005});
    tg::tensor<float> x, y;
    double loss = 0;
    for (int step = 1; step <= 1500; ++step) {
        draw(static_cast<std::uint64_t>(step), 8 + step % 5, x, y);
        loss = 0.95 * loss + 0.05 * model.train_on_batch(x, y).loss;
        if (step % 500 == 0) std::printf("step %4d: mean squared error %.4f\n", step, loss);
    }
    draw(0, 14, x, y);
    const auto sums = model.predict(x);
    std::printf("14 steps, longer than any before: %.2f for %.2f, %.2f for %.2f\n", sums(0, 0), y(0, 0), sums(1, 0),
                y(1, 0));
}
