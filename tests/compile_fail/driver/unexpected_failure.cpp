// expect-success
static_assert(sizeof(char) == 2, "bytes");
