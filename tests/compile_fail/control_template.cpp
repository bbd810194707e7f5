// expect: matmul: inner extents differ
// expect: static assertion failed
// A message inside a function template is reached although no code is generated.
template <class T>
void check(T) {
    static_assert(sizeof(T) == 0, "matmul: inner extents differ");
}

int main() { check(1); }
