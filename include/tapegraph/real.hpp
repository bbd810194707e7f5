#pragma once

/// A number that records: `tg::real<>` takes the place of double in code that is a template of its number's type, and
/// gives derivatives by a tape. It needs nothing of tensors. docs/scalars.md is its page.

#include <tapegraph/scalar/block.hpp>
#include <tapegraph/scalar/checkpoints.hpp>
#include <tapegraph/scalar/functions.hpp>
#include <tapegraph/scalar/jet.hpp>
#include <tapegraph/scalar/lanes.hpp>
#include <tapegraph/scalar/limits.hpp>
#include <tapegraph/scalar/number.hpp>
#include <tapegraph/scalar/rounding.hpp>
#include <tapegraph/scalar/tape.hpp>
#include <tapegraph/scalar/taylor.hpp>
#include <tapegraph/scalar/transforms.hpp>
