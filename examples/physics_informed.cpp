#include <tapegraph/tapegraph.hpp>
#include <tapegraph/train/minimize.hpp>

#include <cmath>
#include <cstdio>

#include "study/svg_chart.hpp"

// A physics-informed network (Raissi, Perdikaris and Karniadakis 2019): it learns the motion of a damped oscillator,
// u'' + 2 d u' + w^2 u = 0 with u(0) = 1 and u'(0) = 0, from the equation alone, at 60 points of time.
//
//   physics_informed [CHART.svg]

namespace tg = tapegraph;

constexpr double damping = 0.3, frequency = 2, end = 8;
constexpr int units = 24;

// The net's numbers, one after the other: slopes a, offsets b, weights c. u(0) and u'(0) hold whatever they are:
// u(t) = 1 + t^2 sum of c tanh(a t + b). t: [points, 1].
constexpr auto motion = [](const auto& t, const auto& numbers) {
    const auto a = slice(numbers, {{0, units}}), b = slice(numbers, {{units, 2 * units}});
    const auto c = slice(numbers, {{2 * units, 3 * units}});
    return tg::eval(1 + square(t) * sum(c * tanh(a * t + b), 1, {.keepdims = true}));
};

int main(int argc, char** argv) {
    const tg::tensor<double> t = reshape(tg::linspace<double>(0, end, 60), {60, 1});
    const tg::tensor<double> one = tg::ones<double>({60, 1});

    // The equation's residual at all points, from the first and the second derivative by the time.
    const auto residual = [&](const tg::tensor<double>& numbers) {
        const auto u = [&](const auto& at) { return motion(at, numbers); };
        const auto speed = [&](const auto& at) { return tg::jvp(u)(at, one).tangent; };
        const auto [first, second] = tg::jvp(speed)(t, one);
        return tg::eval(mean(square(second + 2 * damping * first + frequency * frequency * u(t))));
    };
    const tg::tensor<double> start = tg::random::normal<double>({3 * units}, {.seed = 3});
    const auto found = tg::minimize(residual, start, tg::lbfgs{.history = 40}, {.max_iterations = 3000});

    const tg::tensor<double> u = motion(t, found.x);
    const double turning = std::sqrt(frequency * frequency - damping * damping);
    double worst = 0;
    study::chart chart{.title = "A damped oscillator, learned from its equation", .x_label = "time", .y_label = "u"};
    std::vector<double> learned, exact;
    for (int i = 0; i < 60; ++i) {
        const double time = t.data()[i];
        chart.x.push_back(time);
        learned.push_back(u.data()[i]);
        exact.push_back(std::exp(-damping * time) *
                        (std::cos(turning * time) + damping / turning * std::sin(turning * time)));
        worst = std::max(worst, std::abs(learned.back() - exact.back()));
    }
    std::printf("mean square of the residual %.1e, largest error of u %.4f\n", found.value, worst);
    if (argc > 1) {
        chart.series = {{.name = "the solution", .y = exact}, {.name = "the net", .y = learned}};
        study::write_svg_chart(argv[1], chart);
    }
}
