#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

namespace tapegraph {

/// How a position on an axis of a result leads to one of an operand's axis of n elements. `amount` is the number of positions
/// in front of the operand's first element, for `repeat` how often each element stands.
enum class index_map : std::int64_t {
    keep,      ///< a b c
    reflect,   ///< c b | a b c | b a
    symmetric, ///< b a | a b c | c b
    edge,      ///< a a | a b c | c c
    wrap,      ///< b c | a b c | a b
    repeat     ///< a a b b c c
};

/// From a position on, the operand's elements from `first` stand next to one another for `count` positions: forwards (1),
/// backwards (-1), or one element again and again (0).
struct index_run {
    std::int64_t first, count;
    int direction;
};

constexpr std::int64_t floor_modulo(std::int64_t a, std::int64_t n) {
    const std::int64_t rest = a % n;
    return rest < 0 ? rest + n : rest;
}

/// The run that starts at `position`, not beyond `limit`. n > 0.
constexpr index_run run_at(index_map map, std::int64_t n, std::int64_t amount, std::int64_t position, std::int64_t limit) {
    index_run r{position, limit - position, 1};
    const auto at_most = [&](std::int64_t count) {
        if (count < r.count) r.count = count;
    };
    switch (map) {
    case index_map::keep: break;
    case index_map::wrap:
        r.first = floor_modulo(position - amount, n);
        at_most(n - r.first);
        break;
    case index_map::edge:
        if (position < amount) {
            r = {0, r.count, 0};
            at_most(amount - position);
        } else if (position < amount + n) {
            r.first = position - amount;
            at_most(amount + n - position);
        } else {
            r = {n - 1, r.count, 0};
        }
        break;
    case index_map::repeat:
        r = {position / amount, r.count, 0};
        at_most(amount - position % amount);
        break;
    case index_map::reflect:
    case index_map::symmetric: {
        const bool twice = map == index_map::symmetric; // whether the borders stand twice
        if (n == 1) {
            r = {0, r.count, 0};
            break;
        }
        const std::int64_t period = twice ? 2 * n : 2 * n - 2, q = floor_modulo(position - amount, period);
        if (q < n) {
            r.first = q;
            at_most(n - q);
        } else {
            r.first = (twice ? period - 1 : period) - q;
            r.direction = -1;
            at_most(period - q);
        }
        break;
    }
    }
    return r;
}

/// After how many positions a rule repeats itself; 0: never.
constexpr std::int64_t period_of(index_map map, std::int64_t n) {
    if (map == index_map::wrap) return n;
    if (map == index_map::symmetric) return 2 * n;
    if (map == index_map::reflect) return n > 1 ? 2 * n - 2 : 1;
    return 0;
}

/// Calls f(position) for every position of the result's axis (`limit` of them) that leads to element j.
template <class F>
constexpr void for_positions(index_map map, std::int64_t n, std::int64_t amount, std::int64_t j, std::int64_t limit,
                             const F& f) {
    const auto steps = [&](std::int64_t from, std::int64_t step) {
        for (std::int64_t p = from; p < limit; p += step) f(p);
    };
    const auto stretch = [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t p = from; p < to && p < limit; ++p) f(p);
    };
    switch (map) {
    case index_map::keep: f(j); break;
    case index_map::wrap: steps(floor_modulo(j + amount, n), n); break;
    case index_map::repeat: stretch(j * amount, (j + 1) * amount); break;
    case index_map::edge:
        if (j == 0) stretch(0, amount);
        if (j + amount < limit) f(j + amount);
        if (j == n - 1) stretch(amount + n, limit);
        break;
    case index_map::reflect:
    case index_map::symmetric: {
        const bool twice = map == index_map::symmetric;
        const std::int64_t period = period_of(map, n);
        steps(floor_modulo(amount + j, period), period);
        const std::int64_t mirrored = twice ? -1 - j : -j;
        if (twice || (j != 0 && j != n - 1)) steps(floor_modulo(amount + mirrored, period), period);
        break;
    }
    }
}

} // namespace tapegraph
