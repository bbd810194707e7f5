#pragma once

#include <fuzz/program.hpp>

namespace tapegraph::fuzz {

/// The program as C++: a structure template `name<Sealed>` whose call takes the inputs and returns the outputs as a
/// tuple. Inner instructions stay unsealed formulas; with Sealed they are given values, too. Numbers of the element
/// type are `element`, which the surrounding source names.
std::string to_structure(const program& p, const std::string& name);

/// The types of the inputs: "tg::spec<element, tg::dyn, 3>{}, ..."; with `batch`, extents of axis 0 that equal the
/// first input's are known only at run time.
std::string specs_of(const program& p, bool batch);
/// The inputs' values: "leaf<element>(\"input\", {7, 2, 3}, {-2, 2}), ...".
std::string values_of(const program& p);

/// A test case to paste: what is found when a fuzzed program fails.
std::string to_test_case(const program& p, std::uint64_t seed, const std::string& what);

/// A whole source: a test program of many functions, compiled in both modes.
std::string to_source(std::uint64_t first_seed, int count);

} // namespace tapegraph::fuzz
