#include <tapegraph/cpu/isa.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace isa_test {

/// Which instruction set is chosen. tests/ops/isa_test.cpp includes this file for a program compiled for one set only.

namespace cpu = tapegraph::cpu;

TEST_CASE("instruction sets: a choice is lowered to what is compiled and what the processor has") {
    std::vector<int> there; // compiled, and the processor's, from the least
    for (int set = 0; set <= static_cast<int>(cpu::processor_instruction_set()); ++set)
        if (TG_INSTRUCTION_SETS / (1 << set) % 2 != 0) there.push_back(set);
    REQUIRE(!there.empty());
    CHECK(static_cast<int>(cpu::supported_instruction_set()) == there.back());
    const auto before = cpu::active_instruction_set();
    for (int wish = 0; wish < 3; ++wish) {
        cpu::set_instruction_set(static_cast<cpu::instruction_set>(wish));
        const int active = static_cast<int>(cpu::active_instruction_set());
        CHECK(std::count(there.begin(), there.end(), active) == 1);
        // The highest up to the wish; above it only if there is none below.
        const int above = static_cast<int>(std::upper_bound(there.begin(), there.end(), wish) - there.begin());
        CHECK(active == (above > 0 ? there[static_cast<std::size_t>(above - 1)] : there.front()));
    }
    cpu::set_instruction_set(before);
}

} // namespace isa_test
