#pragma once

#include <tapegraph/cpu/isa.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

/// What tests of the order of sums share: numbers whose sums round, and their sums as each instruction set adds.

namespace support {

template <class T>
std::vector<T> numbers_that_round(std::int64_t n, unsigned seed) {
    std::vector<T> all(static_cast<std::size_t>(n));
    for (auto& value : all) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<T>(static_cast<double>(seed) / 0x1p31 - 1);
    }
    return all;
}

/// sum + a * b as an instruction set computes it: fused where it can.
template <class T>
T added(T sum, T a, T b, bool fused) {
    if (fused) return std::fma(a, b, sum);
    const volatile T product = a * b; // so that it is rounded, whatever this file is compiled for
    return sum + product;
}

/// Calls f for each instruction set that this processor has, with whether it fuses.
template <class F>
void each_set(const F& f) {
    namespace cpu = tapegraph::cpu;
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        if (cpu::active_instruction_set() != set) continue;
        INFO("set " << static_cast<int>(set));
        f(set != cpu::instruction_set::baseline);
    }
    cpu::set_instruction_set(cpu::supported_instruction_set());
}

} // namespace support
