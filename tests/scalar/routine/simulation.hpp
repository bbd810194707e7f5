#pragma once

#include "bodies.hpp"
#include "path.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

/// The motion of a mechanism: steps of Dormand and Prince with a controlled error, and what is asked about it.

namespace routine {

/// y' = f(t, y) from one time to another; steps are doubled and halved as the tolerance allows. on_step(t, h, y, y after) sees each.
template <class Number, class F, class OnStep>
std::vector<Number> integrate(const F& f, std::vector<Number> y, Number from, const Number& to, double tolerance,
                              const OnStep& on_step) {
    using std::abs, std::max, std::min, std::sqrt;
    constexpr double c[]{0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
    constexpr double a[7][6]{{},
                             {1.0 / 5},
                             {3.0 / 40, 9.0 / 40},
                             {44.0 / 45, -56.0 / 15, 32.0 / 9},
                             {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
                             {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
                             {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}};
    constexpr double e[]{71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
    const std::size_t size = y.size();
    std::array<std::vector<Number>, 7> slope;
    slope[0] = f(from, y);
    Number h = min(Number(1.0 / 1024), Number(to - from));
    while (from < to) {
        if (from + h > to) h = to - from;
        std::vector<Number> next;
        for (std::size_t stage = 1; stage < 7; ++stage) {
            next = y;
            for (std::size_t i = 0; i < size; ++i) {
                Number sum = 0;
                for (std::size_t k = 0; k < stage; ++k)
                    if (a[stage][k] != 0) sum += a[stage][k] * slope[k][i];
                next[i] += h * sum;
            }
            slope[stage] = f(Number(from + c[stage] * h), next);
        }
        Number error = 0;
        for (std::size_t i = 0; i < size; ++i) {
            Number sum = 0;
            for (std::size_t k = 0; k < 7; ++k) sum += e[k] * slope[k][i];
            const Number scaled = h * sum / (tolerance * (1 + max(Number(abs(y[i])), Number(abs(next[i])))));
            error += scaled * scaled;
        }
        error = sqrt(error / static_cast<double>(size));
        const bool accepted = error <= 1;
        if (accepted) {
            on_step(from, h, y, next);
            from += h;
            y = std::move(next);
            slope[0] = slope[6];
        }
        if (!accepted)
            h *= 0.5;
        else if (error < 0.01)
            h *= 2;
    }
    return y;
}

/// What a run gives.
template <class Number>
struct report {
    Number energy{}, work{}, highest{}, crossing{}, length{}, mean_height{}, sway{};
    point<Number> tip{};
    int steps = 0;
};

/// An arm of three bars, of which the second has a side bar; a motor at the shoulder follows a curve of moments.
/// Parameters: masses (4), lengths (4), friction of the shoulder (dry, sliding, oil), stiffness and damping of the floor,
/// moments of the motor (5).
template <class Number>
report<Number> simulate(const std::vector<Number>& p, double duration) {
    using std::sin;
    const auto make = [&](std::size_t i) {
        auto b = std::make_unique<bar<Number>>();
        b->mass = p[i];
        b->length = p[4 + i];
        b->friction = {Number(0.02), Number(0.01), Number(0.5), Number(0.05)};
        return b;
    };
    auto trunk = make(0);
    trunk->friction = {p[8], p[9], Number(0.8), p[10]};
    trunk->children.push_back(make(1));
    trunk->children.front()->children.push_back(make(2));
    trunk->children.front()->children.push_back(make(3));
    const mechanism<Number> arm(std::move(trunk), {Number(-1.6), p[11], p[12], Number(0.4)}, Number(9.81));
    const curve<Number> motor({0, 0.25, 0.5, 0.75, 1}, {p[13], p[14], p[15], p[16], p[17]});

    const std::size_t n = arm.count();
    const auto state_of = [n](const std::vector<Number>& y) {
        const auto middle = y.begin() + static_cast<std::ptrdiff_t>(n);
        return state<Number>{{y.begin(), middle}, {middle, middle + static_cast<std::ptrdiff_t>(n)}};
    };
    const auto slope = [&](const Number& t, const std::vector<Number>& y) {
        const state<Number> s = state_of(y);
        std::vector<Number> moments(n, Number(0));
        moments[0] = motor(t);
        moments[1] = 0.3 * sin(7 * t);
        std::vector<Number> result = s.rate;
        for (const Number& each : arm.accelerations(s, moments)) result.push_back(each);
        result.push_back(moments[0] * s.rate[0]); // the motor's work
        return result;
    };

    std::vector<Number> y(2 * n + 1, Number(0));
    y[0] = 0.9;
    y[1] = -0.4;
    y[3] = 0.7;
    report<Number> all;
    all.highest = -1e9;
    bool crossed = false;
    path<Number> way;
    way.add(Number(0), arm.tip(state_of(y)));
    const auto on_step = [&](const Number& t, const Number& h, const std::vector<Number>& before,
                             const std::vector<Number>& after) {
        ++all.steps;
        const point<Number> tip = arm.tip(state_of(after));
        if (tip.y > all.highest) all.highest = tip.y;
        way.add(t + h, tip);
        if (crossed || !(before[0] > 0 && after[0] <= 0)) return;
        crossed = true; // the shoulder hangs straight down for the first time
        const Number b = before[n], e = after[n];
        all.crossing = t + h * root<Number>(
                                   [&](const Number& u) {
                                       const Number v = 1 - u;
                                       return Number(before[0] * v * v * (1 + 2 * u) + after[0] * u * u * (3 - 2 * u) +
                                                     h * u * v * (b * v - e * u));
                                   },
                                   Number(0), Number(1));
    };
    y = integrate<Number>(slope, y, Number(0), Number(duration), 1e-7, on_step);
    const state<Number> last = state_of(y);
    all.energy = arm.energy(last);
    all.tip = arm.tip(last);
    all.work = y[2 * n];
    all.length = way.length();
    all.mean_height = way.mean_height();
    all.sway = way.sway(5);
    return all;
}

} // namespace routine
