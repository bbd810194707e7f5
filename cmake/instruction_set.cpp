#include <tapegraph/cpu/isa.hpp>

/// Run while CMake configures: the best instruction set of this processor, as TG_INSTRUCTION_SETS has it.
int main() { return 1 << static_cast<int>(tapegraph::cpu::processor_instruction_set()); }
