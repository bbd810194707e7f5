#pragma once

#include <fuzz/program.hpp>

#include <functional>

namespace tapegraph::fuzz {

/// The smallest program found for which `fails` still answers true: instructions taken out or replaced by inputs or by
/// one another, inner marks dropped, extents, ranks and attributes lowered, until nothing of that keeps the failure.
/// `fails` is called at most `attempts` times; it may throw for programs that do not fit together, which counts as no.
program shrink(const program& p, const std::function<bool(program&)>& fails, int attempts = 4000);

} // namespace tapegraph::fuzz
