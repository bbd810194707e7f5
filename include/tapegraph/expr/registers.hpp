#pragma once

#include <tapegraph/expr/region.hpp>

#include <type_traits>
#include <utility>

/// The register machine that evaluates one element of a region, the same on every backend: one
/// register per slot and per instruction, each with a static type, so that the compiler turns the
/// instructions into straight-line code.
///
/// Registers of a 16-bit type hold floats. The result of each instruction is rounded to the type at
/// once, so the bits do not depend on fusion.

namespace tapegraph::machine {

template <int I, class T>
struct reg {
    using word = T; // the type in memory
    T value;

    TG_HD void put(T x) { value = x; }
    TG_HD void load(T x) { value = x; }
    TG_HD T stored() const { return value; }
};
// bool is loaded as a byte, because g++ does not vectorise loops that load bool.
template <int I>
struct reg<I, bool> {
    using word = std::uint8_t;
    bool value;

    TG_HD void put(bool x) { value = x; }
    TG_HD void load(word x) { value = x != 0; }
    TG_HD word stored() const { return value ? 1 : 0; }
};
template <int I, storage_type T>
struct reg<I, T> {
    using word = std::uint16_t;
    float value;
    word bits;

    // A register is seldom both read and stored, so the compiler drops one of the two values.
    TG_HD void put(float x) {
        bits = storage_bits<T>(x);
        value = rounded_to<T>(x);
    }
    TG_HD void put(T x) { load(x.bits); } // a conversion from another type
    TG_HD void load(word x) {
        bits = x;
        value = float_of<T>(x);
    }
    TG_HD word stored() const { return bits; }
};
template <int I, class T>
TG_HD constexpr reg<I, T>& reg_at(reg<I, T>& r) {
    return r;
}
template <int I, class T>
TG_HD constexpr auto& at(reg<I, T>& r) {
    return r.value;
}
template <dtype Type>
using word_t = typename reg<0, element_t<Type>>::word;

template <class Sequence, dtype... Types>
struct register_file;
template <int... I, dtype... Types>
struct register_file<std::integer_sequence<int, I...>, Types...> : reg<I, element_t<Types>>... {};

template <int R, class File, class Instruction>
struct execute;
template <int R, class File, class Op, dtype Result, int A>
struct execute<R, File, instruction<Op, Result, A, -1, -1, -1>> {
    TG_HD static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f))); }
};
template <int R, class File, class Op, dtype Result, int A, int B>
    requires(B >= 0)
struct execute<R, File, instruction<Op, Result, A, B, -1, -1>> {
    TG_HD static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f), at<B>(f))); }
};
template <int R, class File, class Op, dtype Result, int A, int B, int C>
    requires(C >= 0)
struct execute<R, File, instruction<Op, Result, A, B, C, -1>> {
    TG_HD static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f), at<B>(f), at<C>(f))); }
};
template <int R, class File, class Op, dtype Result, int A, int B, int C, int D>
    requires(D >= 0)
struct execute<R, File, instruction<Op, Result, A, B, C, D>> {
    TG_HD static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f), at<B>(f), at<C>(f), at<D>(f))); }
};

template <int R, class File>
struct execute<R, File, void> { // not needed
    TG_HD static void run(File&) {}
};

struct operand_registers {
    int of[4];
};
template <class Op, dtype Result, int A, int B, int C, int D>
constexpr operand_registers operands_of(instruction<Op, Result, A, B, C, D>) {
    return {{A, B, C, D}};
}
/// The registers of a region of `Slots` slots that the value of one of them depends on.
template <int Slots, class... Instructions>
struct needed_registers {
    bool at[Slots + int(sizeof...(Instructions)) + 1]{};

    explicit constexpr needed_registers(int result) {
        constexpr operand_registers operands[]{operands_of(Instructions{})..., {}};
        at[result] = true;
        for (int i = int(sizeof...(Instructions)); i-- > 0;)
            for (int operand : operands[i].of)
                if (at[Slots + i] && operand >= 0) at[operand] = true;
    }
};

/// A region's registers, and the evaluation of its instructions once the slots are loaded.
template <class Region>
struct evaluator;
template <dtype... Slots, class Results, class... Instructions>
struct evaluator<region<slots<Slots...>, Results, Instructions...>> {
    static constexpr int slot_count = sizeof...(Slots);
    using file = register_file<std::make_integer_sequence<int, slot_count + int(sizeof...(Instructions))>, Slots...,
                               Instructions::result...>;
    /// The type that register R has in memory.
    template <int R>
    using word = typename std::remove_reference_t<decltype(reg_at<R>(std::declval<file&>()))>::word;

    TG_HD static void run(file& f) { run(f, std::make_integer_sequence<int, int(sizeof...(Instructions))>{}); }
    /// Runs only the instructions that the value of register R depends on. A compiler would remove the others as well, but
    /// only after it has compiled them.
    template <int R>
    TG_HD static void run_for(file& f) {
        run_for<R>(f, std::make_integer_sequence<int, int(sizeof...(Instructions))>{});
    }

private:
    template <int... I>
    TG_HD static void run(file& f, std::integer_sequence<int, I...>) {
        (execute<slot_count + I, file, Instructions>::run(f), ...);
    }
    template <int R>
    static constexpr needed_registers<slot_count, Instructions...> needed{R};
    template <int R, int... I>
    TG_HD static void run_for(file& f, std::integer_sequence<int, I...>) {
        (execute<slot_count + I, file, std::conditional_t<needed<R>.at[slot_count + I], Instructions, void>>::run(f), ...);
    }
};

} // namespace tapegraph::machine
