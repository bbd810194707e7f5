#include <tapegraph/ops/product/blas.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// One of the two objects of a program (-DPROGRAM is that with main), or all of a shared library.

[[maybe_unused]] static int sum_of_squares(int count) {
    int squares[100];
    tapegraph::cpu::parallel_for(count, true, [&](std::int64_t i) { squares[i] = static_cast<int>(i * i); });
    int sum = 0;
    for (int i = 0; i < count; ++i) sum += squares[i];
    return tapegraph::cpu::is_compiled(tapegraph::cpu::active_instruction_set()) ? sum : -1;
}

__attribute__((visibility("default"))) int of_the_other();
#ifdef PROGRAM
int main() { return sum_of_squares(100) == 328350 && of_the_other() == 285 ? 0 : 1; }
#else
int of_the_other() { return sum_of_squares(10); }
#endif
