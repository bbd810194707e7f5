#include "fma_peak.hpp"

#include <tapegraph/cpu/region.hpp>
#include <tapegraph/ops/ops.hpp>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

/// Times elementwise functions in the loops that formulas of one operation become: nanoseconds per
/// element, 4096 elements that stay in cache, one thread, processor time, the best of many blocks.
/// There is a column for each instruction set that is compiled and that the processor has; CMake
/// compiles only the best unless TAPEGRAPH_INSTRUCTION_SETS=all.
/// Usage: functions [name]

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

constexpr std::int64_t count = 4096;

template <class Op, tg::dtype Type>
using loop_of_one =
    cpu::in_whole_vectors<cpu::region_body<tg::region<tg::slots<Type>, tg::results<1>, tg::instruction<Op, Type, 0>>>>;
template <class Op, tg::dtype Type>
using loop_of_two = cpu::in_whole_vectors<
    cpu::region_body<tg::region<tg::slots<Type, Type>, tg::results<2>, tg::instruction<Op, Type, 0, 1>>>>;

// Unordered: neighbours are far apart.
template <class T>
std::vector<T> numbers(double low, double high) {
    std::vector<T> x;
    for (std::int64_t i = 0; i < count; ++i)
        x.push_back(static_cast<T>(low + (high - low) * (static_cast<double>(i * 2531 % count) + 0.5) / count));
    return x;
}

// Nanoseconds per element under the active instruction set; a second operand is in [-2, 2].
template <class Loop, class T>
double measure(double low, double high) {
    const std::vector<T> x = numbers<T>(low, high), y = numbers<T>(-2, 2);
    std::vector<T> z(count);
    cpu::tile tile{};
    tile.in[0] = x.data(), tile.in[1] = y.data(), tile.out[0] = z.data(), tile.count = count;
    double best = 1e30;
    for (int block = 0; block < 300; ++block) {
        const double start = benchmarks::seconds_now();
        for (int repetition = 0; repetition < 5; ++repetition)
            cpu::dispatch<Loop>(static_cast<const cpu::tile*>(&tile));
        best = std::min(best, benchmarks::seconds_now() - start);
    }
    return best / 5 / count * 1e9;
}

std::vector<cpu::instruction_set> sets() {
    std::vector<cpu::instruction_set> there;
    for (int set = static_cast<int>(cpu::processor_instruction_set()); set >= 0; --set)
        if (cpu::is_compiled(static_cast<cpu::instruction_set>(set)))
            there.push_back(static_cast<cpu::instruction_set>(set));
    return there;
}

template <class Float, class Double>
void row(const char* name, double low, double high) {
    std::printf("| `%s` |", name);
    for (const bool is_double : {false, true})
        for (const cpu::instruction_set set : sets()) {
            cpu::set_instruction_set(set);
            std::printf(" %.2f |", is_double ? measure<Double, double>(low, high) : measure<Float, float>(low, high));
        }
    std::printf("\n");
    std::fflush(stdout);
}

} // namespace

#define ROW(name, loop, low, high)                                                                                     \
    if (argc < 2 || std::string_view(argv[1]) == #name)                                                                \
        row<loop<tg::name##_op, tg::dtype::f32>, loop<tg::name##_op, tg::dtype::f64>>(#name, low, high);

int main(int argc, char** argv) {
    benchmarks::processor_time() = true;
    const char* const names[]{"baseline", "AVX2", "AVX-512"};
    std::printf("| function |");
    for (const char* type : {"float", "double"})
        for (const cpu::instruction_set set : sets()) std::printf(" %s, %s |", type, names[static_cast<int>(set)]);
    std::printf("\n| --- |");
    for (std::size_t i = 0; i < 2 * sets().size(); ++i) std::printf(" ---: |");
    std::printf("\n");
    ROW(exp, loop_of_one, -10, 10)
    ROW(exp2, loop_of_one, -10, 10)
    ROW(expm1, loop_of_one, -10, 10)
    ROW(log, loop_of_one, 0.01, 100)
    ROW(log2, loop_of_one, 0.01, 100)
    ROW(log10, loop_of_one, 0.01, 100)
    ROW(log1p, loop_of_one, -0.9, 100)
    ROW(tanh, loop_of_one, -5, 5)
    ROW(sigmoid, loop_of_one, -10, 10)
    ROW(softplus, loop_of_one, -10, 10)
    ROW(erf, loop_of_one, -4, 4)
    ROW(erfc, loop_of_one, -4, 4)
    ROW(gelu, loop_of_one, -4, 4)
    ROW(detail::gelu_slope, loop_of_one, -4, 4)
    ROW(gelu_tanh, loop_of_one, -4, 4)
    ROW(detail::gelu_tanh_slope, loop_of_one, -4, 4)
    ROW(swish, loop_of_one, -4, 4)
    ROW(detail::swish_slope, loop_of_one, -4, 4)
    ROW(sinh, loop_of_one, -5, 5)
    ROW(cosh, loop_of_one, -5, 5)
    ROW(asinh, loop_of_one, -10, 10)
    ROW(acosh, loop_of_one, 1, 10)
    ROW(atanh, loop_of_one, -0.99, 0.99)
    ROW(sin, loop_of_one, -10, 10)
    ROW(cos, loop_of_one, -10, 10)
    ROW(tan, loop_of_one, -10, 10)
    ROW(asin, loop_of_one, -1, 1)
    ROW(acos, loop_of_one, -1, 1)
    ROW(atan, loop_of_one, -10, 10)
    ROW(atan2, loop_of_two, -2, 2)
    ROW(sqrt, loop_of_one, 0, 100)
    ROW(rsqrt, loop_of_one, 0.01, 100)
    ROW(cbrt, loop_of_one, -100, 100)
    ROW(hypot, loop_of_two, -2, 2)
    ROW(pow, loop_of_two, 0.01, 10)
    ROW(round, loop_of_one, -100, 100)
    ROW(floor, loop_of_one, -100, 100)
}
