#pragma once

/// Ordinary differential equations, and derivatives of their solutions. It needs nothing of tensors. docs/ode.md is its page.

#include <tapegraph/ode/derivatives.hpp>
#include <tapegraph/ode/solve.hpp>
#include <tapegraph/real.hpp>
