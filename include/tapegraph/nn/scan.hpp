#pragma once

#include <tapegraph/eager/scan.hpp>
#include <tapegraph/graph/scan.hpp>

/// tg::scan (ops/scan_over_time.hpp) in both modes. Not part of tapegraph.hpp: programs without it do not compile it.
