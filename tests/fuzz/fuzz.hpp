#pragma once

#include <fuzz/check.hpp>
#include <fuzz/generator.hpp>

#include <string>

namespace tapegraph::fuzz {

struct campaign {
    std::uint64_t first_seed = 1;
    std::int64_t count = 1000; ///< programs; 0: until the time is up
    double seconds = 0;        ///< 0: no limit
    int most_failures = 3;     ///< then it stops
    generator_options programs{};
    check_options checks{};
};

struct outcome {
    statistics counts;
    std::vector<std::string> failures; ///< each what a developer needs: seed, program, smallest program, C++
    std::vector<std::string> unused;   ///< operations that no program had
    double seconds = 0;
};

/// Generates, checks and, where something is found, shrinks.
outcome run(const campaign& c);

/// The smallest program in which the same kind of thing is found.
program shrink_failure(const program& p, const finding& found, const check_options& options = {});

} // namespace tapegraph::fuzz
