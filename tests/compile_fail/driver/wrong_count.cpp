// expect: no such name
// expect-errors: 2
static_assert(false, "no such name");
