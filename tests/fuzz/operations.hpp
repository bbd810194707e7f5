#pragma once

#include <fuzz/program.hpp>
#include <operations/builders.hpp>
#include <operations/formula.hpp>

/// The table of operations that random programs are made of.

namespace tapegraph::fuzz {

using testing::array;
using testing::braces;
using testing::domain;
using testing::formula;
using testing::make_operation;
using testing::mapped_together;
using testing::not_mapped;
using testing::operation;
using testing::plain_values;
using testing::real;

const std::vector<operation>& all_operations();
/// An operation that tests add to the table; it is drawn only if `weight` is positive. Replaces one of the same name.
void add_operation(const operation& added);
const operation& operation_named(const std::string& name);

} // namespace tapegraph::fuzz
