// expect: inner
// expect-lines: 1
static_assert(false, "inner");
