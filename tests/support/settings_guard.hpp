#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>

namespace support {

/// Restores the process-wide settings that a test has changed, when the test ends.
struct settings_guard {
    ~settings_guard() {
        tapegraph::cpu::set_instruction_set(tapegraph::cpu::supported_instruction_set());
        tapegraph::set_thread_count(0);
    }
};

} // namespace support
