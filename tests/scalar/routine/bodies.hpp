#pragma once

#include "algebra.hpp"

#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

/// A tree of rigid bars in a plane, joined by hinges, with motors, friction and a floor.

namespace routine {

/// Friction of a hinge: dry friction that falls off to its sliding value, and oil.
template <class Number>
struct hinge {
    Number dry{}, sliding{}, speed{1}, oil{};

    Number moment(const Number& rate) const {
        using std::exp, std::tanh, std::fabs;
        const Number falling = exp(-(rate / speed) * (rate / speed));
        const Number size = sliding + (dry - sliding) * falling;
        if (fabs(rate) > 50 * speed) return rate > 0 ? Number(-size - oil * rate) : Number(size - oil * rate);
        return -size * tanh(10 * rate / speed) - oil * rate;
    }
};

/// A floor that pushes back where something is below it, with a damper that never pulls.
template <class Number>
struct floor_of {
    Number height{}, stiffness{}, damping{}, grip{};

    point<Number> push(const point<Number>& at, const point<Number>& velocity) const {
        using std::max, std::pow, std::sqrt;
        const Number depth = height - at.y;
        if (depth <= 0) return {};
        const Number spring = stiffness * pow(depth, 1.5);
        const Number normal = max(Number(0), Number(spring - damping * depth * velocity.y));
        const Number slip = velocity.x;
        const Number along = -grip * normal * slip / sqrt(slip * slip + 1e-4);
        return {along, normal};
    }
};

/// A bar with what hangs at its end.
template <class Number>
struct bar {
    Number mass{1}, length{1};
    hinge<Number> friction;
    std::size_t index = 0; ///< of its angle, measured from the direction of the bar before
    std::vector<std::unique_ptr<bar>> children;
};

template <class Number>
struct state {
    std::vector<Number> angle, rate;
};

/// Forces on all bars, and the inertia that resists, for the generalised accelerations of the hinges.
template <class Number>
class mechanism {
public:
    mechanism(std::unique_ptr<bar<Number>> trunk, floor_of<Number> ground, Number gravity)
        : trunk_(std::move(trunk)), ground_(std::move(ground)), gravity_(std::move(gravity)) {
        count_ = number(*trunk_, 0);
    }

    std::size_t count() const { return count_; }

    std::vector<Number> accelerations(const state<Number>& s, const std::vector<Number>& motors) const {
        std::vector<place> path;
        system all{matrix<Number>(count_), motors};
        visit(*trunk_, s, {}, path, all);
        return all.inertia.solve(all.moments);
    }

    Number energy(const state<Number>& s) const { return energy_of(*trunk_, s, {}); }
    point<Number> tip(const state<Number>& s) const { return tip_of(*trunk_, s, {}); }

private:
    // Where a bar begins, in which direction it points, and how both move.
    struct place {
        std::size_t index = 0;
        point<Number> at{}, velocity{}, bias{}; // bias: acceleration if no rate changed
        Number direction{}, rate{};
    };
    struct system {
        matrix<Number> inertia;
        std::vector<Number> moments;
    };

    static std::size_t number(bar<Number>& b, std::size_t next) {
        b.index = next++;
        for (auto& child : b.children) next = number(*child, next);
        return next;
    }
    static point<Number> heading(const Number& direction) {
        using std::cos, std::sin;
        return {sin(direction), -cos(direction)};
    }
    static place enter(const bar<Number>& b, const state<Number>& s, place from) {
        from.index = b.index;
        from.direction += s.angle[b.index];
        from.rate += s.rate[b.index];
        return from;
    }
    // The place of the end of a bar: the next ones begin there.
    static place leave(const bar<Number>& b, const place& p, const Number& share) {
        place end = p;
        const point<Number> arm = share * b.length * heading(p.direction);
        end.at += arm;
        end.velocity += p.rate * perpendicular(arm);
        end.bias += -p.rate * p.rate * arm;
        return end;
    }

    void visit(const bar<Number>& b, const state<Number>& s, const place& from, std::vector<place>& path,
               system& all) const {
        const place p = enter(b, s, from);
        path.push_back(p);
        const place middle = leave(b, p, Number(0.5)), end = leave(b, p, Number(1));
        const Number turning = b.mass * b.length * b.length / 12;
        const point<Number> weight{Number(0), -b.mass * gravity_};
        const point<Number> push = ground_.push(end.at, end.velocity);
        all.moments[b.index] += b.friction.moment(s.rate[b.index]);
        for (const place& i : path) {
            const point<Number> arm = perpendicular(middle.at - i.at), to_end = perpendicular(end.at - i.at);
            all.moments[i.index] += dot(arm, weight) + dot(to_end, push) - b.mass * dot(arm, middle.bias);
            for (const place& k : path)
                all.inertia(i.index, k.index) += b.mass * dot(arm, perpendicular(middle.at - k.at)) + turning;
        }
        for (const auto& child : b.children) visit(*child, s, end, path, all);
        path.pop_back();
    }
    Number energy_of(const bar<Number>& b, const state<Number>& s, const place& from) const {
        const place p = enter(b, s, from), middle = leave(b, p, Number(0.5));
        Number sum = b.mass * gravity_ * middle.at.y + 0.5 * b.mass * dot(middle.velocity, middle.velocity) +
                     b.mass * b.length * b.length / 24 * p.rate * p.rate;
        for (const auto& child : b.children) sum += energy_of(*child, s, leave(b, p, Number(1)));
        return sum;
    }
    point<Number> tip_of(const bar<Number>& b, const state<Number>& s, const place& from) const {
        const place end = leave(b, enter(b, s, from), Number(1));
        return b.children.empty() ? end.at : tip_of(*b.children.front(), s, end);
    }

    std::unique_ptr<bar<Number>> trunk_;
    floor_of<Number> ground_;
    Number gravity_;
    std::size_t count_ = 0;
};

} // namespace routine
