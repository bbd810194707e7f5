#pragma once

#include <tapegraph/core/math/bits.hpp>
#include <tapegraph/core/math/division.hpp>
#include <tapegraph/core/math/error_function.hpp>
#include <tapegraph/core/math/exponential.hpp>
#include <tapegraph/core/math/hyperbolic.hpp>
#include <tapegraph/core/math/inverse_trigonometry.hpp>
#include <tapegraph/core/math/logarithm.hpp>
#include <tapegraph/core/math/power.hpp>
#include <tapegraph/core/math/root.hpp>
#include <tapegraph/core/math/rounding.hpp>
#include <tapegraph/core/math/trigonometry.hpp>

/// Elementary functions for float and double with equal bits everywhere: scalar code, vector lanes of every instruction
/// set, loop tails and constant evaluation (of arguments whose computation needs no infinity or NaN on the way).
/// Measured errors: docs/accuracy.md.
