#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <tapegraph/runtime/content_mark.hpp>

#include <doctest/doctest.h>

// Every test finds writers that do not say so.
[[maybe_unused]] static const bool marks_are_checked = tapegraph::runtime::content_mark::checked.exchange(true);
