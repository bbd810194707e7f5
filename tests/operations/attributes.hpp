#pragma once

#include <support/finite_differences.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

/// The attributes of an operation of the table, and random choices of them.

namespace tapegraph::testing {

/// Axes, flags, extents; and numbers.
struct attributes {
    std::vector<std::int64_t> whole;
    std::vector<double> real;

    bool operator==(const attributes&) const = default;
};

/// All digits that a double needs to be read again.
inline std::string number_text(double value) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.17g", value);
    return buffer;
}

/// Numbers in [0, 1) and choices, reproducible from a seed.
class choices {
public:
    explicit choices(std::uint64_t seed) : numbers_(seed) {}
    double between(double low, double high) { return numbers_.between(low, high); }
    bool chance(double probability) { return numbers_.next() < probability; }
    /// A whole number of [low, high].
    std::int64_t whole(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(numbers_.next() * static_cast<double>(high - low + 1));
    }
    template <class List>
    const auto& pick(const List& list) {
        return list[static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(std::size(list)) - 1))];
    }

private:
    sequence numbers_;
};

} // namespace tapegraph::testing
