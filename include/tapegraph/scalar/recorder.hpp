#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/scalar/tape_number.hpp>

#include <cstddef>
#include <cstdint>

/// The recorder to which numbers write: one per thread and type of number. The active tape
/// (scalar/tape.hpp) provides the memory.

namespace tapegraph::scalars {

/// A recording number's place on the tape: the statement that computed it, counted from 1, and the
/// tape's number. A constant has neither.
struct place {
    std::uint32_t at = 0; ///< the statement
    std::uint32_t tape = 0;
};

/// The operands of statements, one after the other: of each the statement that computed it, and the derivative of the
/// statement by it. The first operand of a statement carries `begins`; statements are numbered by counting these.
/// Statements without operands are not kept, but inputs have one operand, statement 0, by which nothing passes.
template <class T>
struct operand_rows {
    static constexpr std::uint32_t begins = std::uint32_t{1} << 31;
    T* slopes = nullptr;
    std::uint32_t* statements = nullptr;
};

/// The end of the tape that records. `used + n <= room` says that a statement of n operands fits; while nothing is
/// recorded, room is 0, so every statement with operands takes the slow way.
template <class T>
struct recorder {
    operand_rows<T> rows;
    std::uint32_t used = 0, room = 0;
    std::uint32_t statements = 0; ///< the number of the last one
    std::uint32_t tape = 0;       ///< the number of this tape
    void* owner = nullptr;        ///< the tape; null when none is active
};
template <class T>
inline constinit thread_local recorder<T> recorder_of{};

/// Makes room for a statement of `count` operands in the active tape. False if nothing is recorded. Throws
/// argument_error if no tape is active and `on_a_tape`, and out_of_memory beyond the tape's limit. (scalar/tape.hpp)
template <class T>
bool make_room(std::uint32_t count, bool on_a_tape);

/// The operands of one statement while they are written. Constants are written as well, and the next
/// operand overwrites them: without a branch there is no misprediction.
template <class T>
struct operand_writer {
    operand_rows<T> rows;
    std::uint32_t at;
    std::uint32_t tapes = 0; ///< the numbers of all operands' tapes, joined by or

    TG_INLINE void operator()(place operand, const T& slope) {
        rows.slopes[at] = slope;
        rows.statements[at] = operand.at;
        tapes |= operand.tape;
        at += 1u - static_cast<std::uint32_t>(operand.at == 0);
    }
};

/// Records the statement `e`, of at most `count` operands, at least 1, and returns its place.
template <class T, class Statement>
TG_INLINE place record(const Statement& e, std::uint32_t count) {
    recorder<T>& end = recorder_of<T>;
    if (end.used + count > end.room) [[unlikely]] {
        if (!make_room<T>(count, e.on_a_tape())) return {};
    }
    const std::uint32_t begin = end.used, tape = end.tape;
    operand_writer<T> writer{end.rows, begin};
    e.write(writer, T(1));
    if ((writer.tapes & ~tape) != 0) [[unlikely]]
        refuse_operand();
    writer.rows.statements[begin] |= operand_rows<T>::begins; // of nothing, if there are only constants
    if (writer.at == begin) return {};
    end.used = writer.at;
    return {++end.statements, tape};
}

} // namespace tapegraph::scalars
