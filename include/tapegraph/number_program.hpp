#pragma once

/// Functions of numbers that are recorded once and run often, and sparse derivatives. docs/number_programs.md is their page.

#include <tapegraph/scalar/program/number_program.hpp>
#include <tapegraph/scalar/program/record.hpp>
#include <tapegraph/scalar/program/symbol.hpp>
#include <tapegraph/scalar/program/symbol_functions.hpp>
#include <tapegraph/scalar/sparse/bicolouring.hpp>
#include <tapegraph/scalar/sparse/colouring.hpp>
#include <tapegraph/scalar/sparse/pattern.hpp>
#include <tapegraph/scalar/sparse/sparse_derivatives.hpp>
