// expect-success
#include <tapegraph/core/config.hpp>

// The language and the include path are right: without this, every other file could fail for the wrong reason.
template <class T>
concept thing = requires(T t) { t + t; };
static_assert(thing<int>);
