#pragma once

/// Graphs that are made at run time: tg::compile<tg::traced>, tg::compile_step<tg::traced>,
/// tg::function<tg::traced>. Link the component (docs/compile_time.md): without it every kernel of
/// the library is compiled here.

#include <tapegraph/compile/step/traced_step.hpp>
#include <tapegraph/compile/traced_function.hpp>
#include <tapegraph/session/traced_session.hpp>
#include <tapegraph/tapegraph.hpp>
