#pragma once

/// tg::profile, and the headers that show its result.

#include <tapegraph/profile/chrome_trace.hpp>
#include <tapegraph/profile/profile.hpp>
#include <tapegraph/profile/table.hpp>
