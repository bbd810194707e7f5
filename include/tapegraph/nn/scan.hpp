#pragma once

#include <tapegraph/eager/scan.hpp>
#include <tapegraph/graph/scan.hpp>

/// tg::scan (ops/scan/scan.hpp) in both modes. Not part of tapegraph.hpp: programs without it do not compile it.
