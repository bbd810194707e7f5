#pragma once

#include <tapegraph/ops/operation_list.hpp>

/// Includes every operation.
