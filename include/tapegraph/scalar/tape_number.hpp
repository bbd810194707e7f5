#pragma once

#include <tapegraph/core/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

/// Numbers of tapes, and errors of numbers that are not where they belong.

namespace tapegraph::scalars {

/// The next number with as many ones in its digits, which are half of all. No such number's ones are a part of
/// another's, so the or of all operands' numbers is the active tape's only if each is that or 0. There are 601,080,390
/// of them; then the first comes again.
constexpr std::uint32_t next_balanced(std::uint32_t x) {
    const std::uint32_t low = x & (0u - x), up = x + low;
    return up == 0 ? 0xFFFFu : ((((x ^ up) >> 2) / low) | up);
}
inline std::uint32_t new_tape_number() {
    static std::atomic<std::uint32_t> next{0xFFFFu};
    std::uint32_t taken = next.load(std::memory_order_relaxed);
    while (!next.compare_exchange_weak(taken, next_balanced(taken), std::memory_order_relaxed)) {}
    return taken;
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_operand() {
    throw argument_error(
        "tg::real: an operand was recorded by another tape than the active one, or before this one was "
        "cleared; a constant is x.value()");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_ended() {
    throw argument_error("tg::real: an operand was recorded by a tape that has ended; a constant is x.value()");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_foreign(const char* where) {
    throw argument_error(std::string(where) +
                         ": the number was recorded by another tape, or before this one was cleared");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_constant(const char* where) {
    throw argument_error(std::string(where) + ": the number is a constant of this tape; watch it before it is used");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_position() {
    throw argument_error(
        "real_tape::rewind: the position is of another tape, from before this one was cleared, or past "
        "its end");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_inactive(const char* where) {
    throw argument_error(std::string(where) + ": another tape is active in this thread");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_slopes(std::size_t operands, std::size_t slopes) {
    throw argument_error("real_tape::statement: " + std::to_string(operands) + " operands and " +
                         std::to_string(slopes) + " derivatives");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_length() {
    throw range_error("real_tape: more than 2147483647 statements");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_lanes() {
    throw argument_error("adjoint_lanes: the tape has grown or was rewound since; call clear()");
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_thread() {
    throw argument_error("real_tape: the tape was made by another thread, and only numbers of that thread are on it");
}

} // namespace tapegraph::scalars
