// expect: inner
constexpr int inner(int i) { return i > 0 ? inner(i - 1) : throw 1; }
static_assert(inner(13) == 0);
