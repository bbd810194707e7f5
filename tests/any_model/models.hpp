#pragma once

#include <tapegraph/any_model/any_model.hpp>

#include <string>

namespace any_model_test {

/// A model by its line of a configuration: "traced 16 8", "graph", "eager". Throws argument_error for another one.
tapegraph::any_model made(const std::string& line, std::uint64_t seed);

} // namespace any_model_test
