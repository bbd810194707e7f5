#pragma once

#include <simt/words.hpp>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

/// Shows that tests of kernels can fail: every barrier that a kernel reaches is left out in turn,
/// every fragment's registers are swapped, zeros after an operand's end are not written, and the
/// result must go wrong.

namespace simt {

/// Changes the settings for a scope.
class with_settings {
public:
    explicit with_settings(order o, std::uint64_t seed = 1) : before_(current_settings()) {
        current_settings() = {};
        current_settings().order = o;
        current_settings().seed = seed;
    }
    with_settings(const with_settings&) = delete;
    with_settings& operator=(const with_settings&) = delete;
    ~with_settings() { current_settings() = before_; }

private:
    settings before_;
};

/// The number of greedy orders that unnoticed_barriers tries: TAPEGRAPH_MUTATION_SEEDS in the
/// environment, or 4.
inline std::uint64_t mutation_seeds() {
    const char* const wish = std::getenv("TAPEGRAPH_MUTATION_SEEDS");
    if (wish == nullptr) return 4;
    std::uint64_t seeds = 0;
    const auto [end, status] = std::from_chars(wish, wish + std::strlen(wish), seeds);
    if (status != std::errc{} || *end != 0 || seeds == 0)
        throw error("TAPEGRAPH_MUTATION_SEEDS='" + std::string(wish) + "': expected a number from 1");
    return seeds;
}

/// `right()` launches kernels and returns whether their results are right, which they must be under
/// `seeds` greedy orders. Returns the barriers whose absence was not noticed under any of these
/// (there should be none), and sets `found` to the number of barriers.
template <class F>
std::vector<std::string> unnoticed_barriers(const F& right, std::size_t& found,
                                            std::uint64_t seeds = mutation_seeds()) {
    std::set<site> sites;
    {
        const with_settings set(order::forward);
        current_settings().visited = &sites;
        if (!right()) return {"wrong before anything was left out"};
    }
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const with_settings set(order::greedy, seed);
        if (!right()) return {"wrong in greedy order " + std::to_string(seed) + " before anything was left out"};
    }
    found = sites.size();
    std::vector<std::string> unnoticed;
    for (const site& where : sites) {
        bool caught = false;
        for (std::uint64_t seed = 1; seed <= seeds && !caught; ++seed) {
            const with_settings set(order::greedy, seed);
            current_settings().skipped = where;
            try {
                caught = !right();
            } catch (const error&) {
                caught = true;
            }
        }
        if (!caught) unnoticed.push_back(where.text());
    }
    return unnoticed;
}

/// `right()` launches kernels that multiply on tensor cores and returns whether their results are
/// right, which they must be. Then, for one call after the other, each register of an operand's
/// fragment is swapped with its neighbour, and with the one after that. Returns the swaps that were
/// not noticed, and sets `found` to the number of calls.
template <class F>
std::vector<std::string> unnoticed_swaps(const F& right, std::size_t& found) {
    std::set<site> calls;
    {
        const with_settings set(order::forward);
        current_settings().multiplied = &calls;
        if (!right()) return {"wrong before anything was swapped"};
    }
    found = calls.size();
    std::vector<std::string> unnoticed;
    for (const site& where : calls)
        for (const int swap : {1, 2, 3, 5}) { // of four registers of a, of two of b
            const with_settings set(order::forward);
            current_settings().swapped = where;
            current_settings().swap = swap;
            if (right()) unnoticed.push_back(where.text() + " swap " + std::to_string(swap));
        }
    return unnoticed;
}

/// The same for asynchronous copies beyond the end of an operand, which write zeros: each in turn
/// leaves the old contents.
template <class F>
std::vector<std::string> unnoticed_ends(const F& right, std::size_t& found) {
    std::set<site> copies;
    {
        const with_settings set(order::forward);
        current_settings().filled = &copies;
        if (!right()) return {"wrong before anything was left"};
    }
    found = copies.size();
    std::vector<std::string> unnoticed;
    for (const site& where : copies) {
        const with_settings set(order::forward);
        current_settings().unfilled = where;
        if (right()) unnoticed.push_back(where.text());
    }
    return unnoticed;
}

} // namespace simt
