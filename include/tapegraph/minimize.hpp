#pragma once

/// `tg::minimize`: minima of functions of flat vectors, by derivatives that the library takes or that are given. It
/// needs nothing of tensors; <tapegraph/train/minimize.hpp> minimizes functions of tensors and of a model's variables.
/// docs/minimize.md is its page.

#include <tapegraph/minimizers/least_squares.hpp>
#include <tapegraph/minimizers/minimize.hpp>
#include <tapegraph/minimizers/newton_cg.hpp>
#include <tapegraph/real.hpp>
