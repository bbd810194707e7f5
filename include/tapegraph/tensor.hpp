#pragma once

/// Tensors, operations on them, the tape and derivatives of functions: for programs that compile no
/// models. It costs two thirds of <tapegraph/tapegraph.hpp>, which includes it and adds graph mode,
/// layers, optimizers, data sets and GPUs.

#include <tapegraph/core/device.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/eager/compiled_operations.hpp>
#include <tapegraph/ops/compiled_regions.hpp>
#include <tapegraph/eager/creators.hpp>
#include <tapegraph/eager/derivatives.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/eager/random.hpp>
#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/expr/derivatives.hpp>
#include <tapegraph/expr/differentiate.hpp>
#include <tapegraph/ops/ops.hpp>
#include <tapegraph/runtime/placement_log.hpp>
