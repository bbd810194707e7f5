#pragma once

/// Numbers that record and tensors in one program: tensors whose elements are such numbers, functions of tensors in code of
/// numbers, and functions of numbers in code of tensors. docs/number_tensors.md is its page.

#include <tapegraph/real.hpp>
#include <tapegraph/scalar/tensors/number_tensor.hpp>
#include <tapegraph/scalar/tensors/with_numbers.hpp>
#include <tapegraph/scalar/tensors/with_tensors.hpp>
