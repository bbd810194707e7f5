// expect: some message
static_assert(sizeof(char) == 1);
