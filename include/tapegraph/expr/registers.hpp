#pragma once

#include <tapegraph/expr/region.hpp>

#include <type_traits>
#include <utility>

/// The register machine that evaluates one element of a region, the same on every backend: a register per slot and per
/// instruction, all known by type, so that a compiler turns a run through the instructions into straight-line code.
///
/// Registers of a 16-bit type hold floats. What an instruction computes in float is rounded to the type at once, so the
/// bits do not depend on what is fused.

namespace tapegraph::machine {

template <int I, class T>
struct reg {
    using word = T; // as it lies in memory
    T value;

    TG_HD void put(T x) { value = x; }
    TG_HD void load(T x) { value = x; }
    TG_HD T stored() const { return value; }
};
// As bytes: g++ vectorises no loop that loads bool.
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

    // A register is seldom both read and stored: the compiler drops one of them.
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

/// A region's registers, and the run through its instructions once the slots are loaded.
template <class Region>
struct evaluator;
template <dtype... Slots, class Results, class... Instructions>
struct evaluator<region<slots<Slots...>, Results, Instructions...>> {
    static constexpr int slot_count = sizeof...(Slots);
    using file = register_file<std::make_integer_sequence<int, slot_count + int(sizeof...(Instructions))>, Slots...,
                               Instructions::result...>;
    /// How register R lies in memory.
    template <int R>
    using word = typename std::remove_reference_t<decltype(reg_at<R>(std::declval<file&>()))>::word;

    TG_HD static void run(file& f) { run(f, std::make_integer_sequence<int, int(sizeof...(Instructions))>{}); }

private:
    template <int... I>
    TG_HD static void run(file& f, std::integer_sequence<int, I...>) {
        (execute<slot_count + I, file, Instructions>::run(f), ...);
    }
};

} // namespace tapegraph::machine
