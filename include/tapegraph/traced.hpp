#pragma once

/// Graphs that are made when the program runs: tg::compile<tg::traced>, tg::function<tg::traced>. Link the component
/// (docs/compile_time.md): without it every kernel of the library is compiled here.

#include <tapegraph/nn/traced_model.hpp>
#include <tapegraph/tapegraph.hpp>
