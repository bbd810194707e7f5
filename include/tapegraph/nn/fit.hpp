#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/nn/trainer.hpp>

/// Includes fit, evaluate and their parts. Programs that link the component do not compile them.

#if TG_DEFINES(nn) || defined(TG_CUDA)
#include <tapegraph/nn/fit_loop.hpp>
#else
namespace tapegraph::detail {
TG_COMPILED(nn, class basic_trainer<void>)
TG_COMPILED(nn, void weigh_by_class<void>(fit_sets&, const fit_options&, const mode_calls&, dtype))
} // namespace tapegraph::detail
#endif
