#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>

namespace tapegraph {

/// How a position on an axis of a result maps to one of an operand's axis of n elements. `amount`
/// is the number of positions before the operand's first element, or for `repeat` the number of
/// copies of each element.
enum class index_map : std::int64_t {
    keep,      ///< a b c
    reflect,   ///< c b | a b c | b a
    symmetric, ///< b a | a b c | c b
    edge,      ///< a a | a b c | c c
    wrap,      ///< b c | a b c | a b
    repeat     ///< a a b b c c
};

/// The text of a shape_error for an empty axis.
inline constexpr const char* nothing_to_repeat = "pad: an empty axis has nothing to repeat";

/// From a position on, the operand's elements from `first` follow for `count` positions: forwards
/// (1), backwards (-1), or one element repeatedly (0).
template <class Integer>
struct basic_index_run {
    Integer first, count;
    int direction;
};
using index_run = basic_index_run<std::int64_t>;

/// The rest of a / n that has n's sign, as Python's %.
template <class Integer>
constexpr Integer floor_modulo(Integer a, Integer n) {
    const Integer rest = a % n;
    return rest < 0 ? rest + n : rest;
}

/// The run that starts at `position` and ends at `limit` at the latest. n > 0. Integer must hold 2
/// n and position + amount.
template <class Integer>
constexpr basic_index_run<Integer> run_at(index_map map, Integer n, Integer amount, Integer position, Integer limit) {
    basic_index_run<Integer> r{position, limit - position, 1};
    const auto at_most = [&](Integer count) {
        if (count < r.count) r.count = count;
    };
    switch (map) {
    case index_map::keep: break;
    case index_map::wrap:
        r.first = floor_modulo<Integer>(position - amount, n);
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
        const bool twice = map == index_map::symmetric; // whether the borders occur twice
        if (n == 1) {
            r = {0, r.count, 0};
            break;
        }
        const Integer period = twice ? 2 * n : 2 * n - 2, q = floor_modulo<Integer>(position - amount, period);
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

/// The period of a rule in positions; 0 if it is not periodic.
constexpr std::int64_t period_of(index_map map, std::int64_t n) {
    if (map == index_map::wrap) return n;
    if (map == index_map::symmetric) return 2 * n;
    if (map == index_map::reflect) return n > 1 ? 2 * n - 2 : 1;
    return 0;
}

/// The positions of the result's axis that map to one element, in increasing order: two merged
/// arithmetic progressions.
struct index_positions {
    std::int64_t first, second; ///< the next position of each progression; none if not below `end`
    std::int64_t step, end;

    /// Whether there is no further position.
    constexpr bool done() const { return position() >= end; }
    /// The position, the lower of both sequences first.
    constexpr std::int64_t position() const { return first < second ? first : second; }
    /// Goes to the next position.
    constexpr void next() { (first < second ? first : second) += step; }
};

/// The positions that map to element j of n, among the first `limit` positions.
constexpr index_positions positions_of(index_map map, std::int64_t n, std::int64_t amount, std::int64_t j,
                                       std::int64_t limit) {
    const auto stretch = [&](std::int64_t from, std::int64_t to) {
        return index_positions{from, limit, 1, to < limit ? to : limit};
    };
    switch (map) {
    case index_map::keep: break;
    case index_map::wrap: return {floor_modulo(j + amount, n), limit, n, limit};
    case index_map::repeat: return stretch(j * amount, (j + 1) * amount);
    case index_map::edge: return stretch(j == 0 ? 0 : j + amount, j == n - 1 ? limit : j + amount + 1);
    case index_map::reflect:
    case index_map::symmetric: {
        const bool twice = map == index_map::symmetric;
        const std::int64_t period = period_of(map, n), mirrored = twice ? -1 - j : -j;
        const bool both = twice || (j != 0 && j != n - 1);
        return {floor_modulo(amount + j, period), both ? floor_modulo(amount + mirrored, period) : limit, period, limit};
    }
    }
    return stretch(j, j + 1);
}

/// Calls f(position) for each position.
template <class F>
constexpr void for_positions(index_map map, std::int64_t n, std::int64_t amount, std::int64_t j, std::int64_t limit,
                             const F& f) {
    for (auto at = positions_of(map, n, amount, j, limit); !at.done(); at.next()) f(at.position());
}

} // namespace tapegraph
