#pragma once

#include <simt/words.hpp>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

/// Shows that a kernel's checks bite: every barrier it comes to is left out in turn, every fragment's registers are exchanged, zeros
/// behind an operand's end are not written, and the result must go wrong.

namespace simt {

/// What settings a scope runs under.
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

/// How many greedy orders unnoticed_barriers looks at: TAPEGRAPH_MUTATION_SEEDS in the environment, or 4.
inline std::uint64_t mutation_seeds() {
    const char* const wish = std::getenv("TAPEGRAPH_MUTATION_SEEDS");
    if (wish == nullptr) return 4;
    std::uint64_t seeds = 0;
    const auto [end, status] = std::from_chars(wish, wish + std::strlen(wish), seeds);
    if (status != std::errc{} || *end != 0 || seeds == 0)
        throw error("TAPEGRAPH_MUTATION_SEEDS='" + std::string(wish) + "': expected a number from 1");
    return seeds;
}

/// `right()` launches kernels and says whether their results are right, which they must be under `seeds` greedy orders.
/// Returns the barriers whose absence was not noticed under any of these (none should be), and in `found` how many there are.
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

/// `right()` launches kernels that multiply on tensor cores and says whether their results are right, which they must be. Then, of one
/// call after the other, each register of an operand's fragment changes places with its neighbour, and with the one behind that.
/// Returns the exchanges that were not noticed, and in `found` how many calls there are.
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

/// The same of asynchronous copies behind the end of an operand, which write zeros: each in turn leaves what lay there.
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
