#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/map.hpp>
#include <tapegraph/cpu/widen.hpp>

#include <memory>
#include <vector>

/// An interpreter of fused regions: the instructions of a region are data, and each is one call for
/// a run of elements whose registers stay in the L1 cache. Graphs made at run time use it
/// (graph/traced_program.hpp).
///
/// Every instruction is rounded by itself, also in compiled regions, so both give the same bits.

namespace tapegraph::cpu {

struct interpreted_region {
    /// One instruction. An index below `slots` is an operand of the region, any other a register.
    /// An instruction without a function copies its operand.
    struct step {
        tile_function run = nullptr; ///< a compiled region of this instruction alone
        /// Used where `run` is null: the operation's own function (ir::operation::evaluate).
        bool (*evaluate)(dtype common, const void* const* in, void* out, std::int64_t count) = nullptr;
        dtype common{}; ///< element type of the operands that are not conditions
        dtype result{};
        int conditions = 0, operands = 0;
        int operand[4]{};
        int target = 0; ///< a register
    };

    /// The region compiled as a whole, where the component has it; there are then no steps.
    tile_function whole = nullptr;
    int slots = 0, registers = 0;
    std::int64_t slot_sizes[most_slots]{}; ///< bytes of an element
    std::int64_t register_bytes = 0;       ///< of a run of `elements`
    std::int64_t elements = 0;             ///< number of elements computed at once
    std::vector<step> steps;
    int results = 0;
    int result[most_results]{}; ///< the index of each result
    std::int64_t result_sizes[most_results]{};
    int direct = -1; ///< the result that the last instruction writes directly to its destination
};

/// Evaluates `t.region` over a tile. Results may be null, and may overlap operands.
void interpret_tile(const tile& t);

namespace detail {

/// The registers of this thread, kept between calls.
inline std::byte* interpreter_registers(std::size_t bytes) {
    constexpr std::size_t line = 64;
    thread_local std::unique_ptr<std::byte[]> memory;
    thread_local std::size_t size = 0;
    if (size < bytes) {
        memory = std::make_unique<std::byte[]>(bytes + line);
        size = bytes;
    }
    void* at = memory.get();
    std::size_t room = size + line;
    return static_cast<std::byte*>(std::align(line, bytes, at, room));
}

/// Runs an instruction by its operation's own function, which takes no 16-bit types: operands are
/// widened to float, and the value is rounded.
void evaluate_step(const interpreted_region::step& s, const void* const* in, void* out, std::int64_t count);

} // namespace detail

#if TG_DEFINES(runtime)
TG_DEFINITION void detail::evaluate_step(const interpreted_region::step& s, const void* const* in, void* out,
                                         std::int64_t count) {
    if (!is_storage_type(s.common)) {
        s.evaluate(s.common, in, out, count);
        return;
    }
    constexpr std::int64_t most = 256;
    float wide[4][most], value[most];
    const auto size = static_cast<std::int64_t>(size_of(s.result));
    for (std::int64_t begin = 0; begin < count; begin += most) {
        const std::int64_t now = count - begin < most ? count - begin : most;
        const void* from[4]{};
        for (int k = 0; k < s.operands; ++k) {
            const auto* const operand = static_cast<const std::byte*>(in[k]);
            if (k < s.conditions) {
                from[k] = operand + begin;
                continue;
            }
            storage_types::visit(
                s.common, [&]<class T>(std::type_identity<T>) { widen_tile<T>(operand + begin * 2, wide[k], now); });
            from[k] = wide[k];
        }
        std::byte* const to = static_cast<std::byte*>(out) + begin * size;
        if (s.result != s.common) { // a comparison, or a cast
            s.evaluate(dtype::f32, from, to, now);
        } else {
            s.evaluate(dtype::f32, from, value, now);
            narrow(s.result, to, value, now);
        }
    }
}

TG_DEFINITION void interpret_tile(const tile& t) {
    const interpreted_region& r = *t.region;
    if (r.whole != nullptr) return r.whole(t);
    std::byte* const registers = detail::interpreter_registers(static_cast<std::size_t>(r.registers) *
                                                               static_cast<std::size_t>(r.register_bytes));
    tile one;
    for (std::int64_t begin = 0; begin < t.count; begin += r.elements) {
        one.count = t.count - begin < r.elements ? t.count - begin : r.elements;
        const auto at = [&](int place) -> const void* {
            if (place < r.slots) return static_cast<const std::byte*>(t.in[place]) + begin * r.slot_sizes[place];
            return registers + (place - r.slots) * r.register_bytes;
        };
        const auto wanted = [&](int k) { return static_cast<std::byte*>(t.out[k]) + begin * r.result_sizes[k]; };
        const bool direct = r.direct >= 0 && t.out[r.direct] != nullptr;
        const std::size_t count = r.steps.size();
        for (std::size_t i = 0; i < count; ++i) {
            const interpreted_region::step& s = r.steps[i];
            for (int k = 0; k < s.operands; ++k) one.in[k] = at(s.operand[k]);
            one.out[0] = direct && i + 1 == count ? wanted(r.direct) : registers + s.target * r.register_bytes;
            if (s.run != nullptr)
                s.run(one);
            else if (s.evaluate != nullptr)
                detail::evaluate_step(s, one.in, one.out[0], one.count);
            else
                std::memcpy(one.out[0], one.in[0], static_cast<std::size_t>(one.count) * size_of(s.result));
        }
        for (int k = 0; k < r.results; ++k)
            if (t.out[k] != nullptr && !(direct && k == r.direct))
                std::memmove(wanted(k), at(r.result[k]), static_cast<std::size_t>(one.count * r.result_sizes[k]));
    }
}
#endif

/// Stands for an interpreted region where templates expect a region's type.
struct any_region;
template <>
inline void evaluate_tile<any_region>(const tile& t) {
    interpret_tile(t);
}

} // namespace tapegraph::cpu
