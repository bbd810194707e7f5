#include <tapegraph/tapegraph.hpp>

#include <cstdio>
#include <iostream>

// The first program of docs/tutorial.md: tensors, a tape, and the same function compiled.

namespace tg = tapegraph;

// How far the line w x + b lies from the points (x, y): the mean of the squared distances.
constexpr auto distance = [](auto x, auto y, auto w, auto b) { return mean(square(w * x + b - y)); };

int main() {
    // Temperatures: tens of degrees Celsius, and degrees Fahrenheit.
    const tg::tensor<float> x{-1, 0, 1, 2, 3, 4};
    const tg::tensor<float> y{14, 32, 50, 68, 86, 104};
    std::cout << "x " << x << ", shape " << to_string(x.shape()) << '\n';

    // Operations work on whole tensors; a number stands for a tensor of any shape.
    const tg::tensor<float> ratio = (y - 32) / 18;
    std::cout << "(y - 32) / 18 = " << ratio << '\n';
    const tg::tensor<float> table = tg::stack({x, y}, 1); // a row for each point
    std::cout << table << "\nits column means: " << mean(table, 0) << '\n';

    // What the tape watches, it can differentiate by.
    tg::tensor<float> w = 0, b = 0;
    {
        tg::gradient_tape tape;
        tape.watch(w, b);
        const tg::tensor<float> error = distance(x, y, w, b);
        const auto [dw, db] = tape.gradient(error, w, b);
        std::cout << "error " << error << ", by w " << dw << ", by b " << db << '\n';
    }

    // Downhill, step by step. A tape serves for one gradient, so each step has its own.
    for (int step = 1; step <= 200; ++step) {
        tg::gradient_tape tape;
        tape.watch(w, b);
        const tg::tensor<float> error = distance(x, y, w, b);
        const auto [dw, db] = tape.gradient(error, w, b);
        w = w - 0.1f * dw;
        b = b - 0.1f * db;
        if (step % 50 == 0) std::printf("step %3d: error %.4f\n", step, error.item());
    }
    std::printf("F = %.2f C / 10 + %.2f\n", w.item(), b.item());

    // The same function, compiled with its derivatives by all four arguments. `dyn`: an extent that the data decides.
    auto slope = tg::function<tg::graph>(tg::value_and_gradient(distance), tg::spec<float, tg::dyn>{},
                                         tg::spec<float, tg::dyn>{}, tg::spec<float>{}, tg::spec<float>{});
    w = 0, b = 0;
    for (int step = 1; step <= 200; ++step) {
        const auto [error, gradient] = slope(x, y, w, b);
        const auto& [dx, dy, dw, db] = gradient;
        w = w - 0.1f * dw;
        b = b - 0.1f * db;
    }
    std::printf("compiled: F = %.2f C / 10 + %.2f\n", w.item(), b.item());
}
