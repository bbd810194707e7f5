#include <tapegraph/version.hpp>

#include <doctest/doctest.h>

// The preprocessor compares versions.
#if TAPEGRAPH_VERSION < 10000 || TAPEGRAPH_VERSION >= 20000
#error "this is a version 1"
#endif

TEST_CASE("a version is one number") {
    CHECK(TAPEGRAPH_VERSION / 10000 == TAPEGRAPH_VERSION_MAJOR);
    CHECK(TAPEGRAPH_VERSION / 100 % 100 == TAPEGRAPH_VERSION_MINOR);
    CHECK(TAPEGRAPH_VERSION % 100 == TAPEGRAPH_VERSION_PATCH);
}
