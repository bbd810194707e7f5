#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/expr/region.hpp>

#include <cstddef>
#include <cstring>

/// Fused regions on the CPU: one vectorised loop per result over contiguous pieces ("tiles") of every operand. The driver,
/// which is the same for all regions, cuts the index space into tiles and lays broadcast operands out for them.
///
/// Registers of a 16-bit type hold floats. What an instruction computes in float is rounded to the type at once, so the
/// bits do not depend on what is fused.

namespace tapegraph::cpu {

inline constexpr int most_slots = 24;
inline constexpr int most_results = 12;

/// A run of elements of the index space: every operand contiguous. Results may be null (not wanted) and may coincide
/// with operands at the same elements when there is one result.
struct tile {
    const void* in[most_slots];
    void* out[most_results];
    std::int64_t count;
};

using tile_function = void (*)(const tile&);

namespace detail {

template <int I, class T>
struct reg {
    using word = T; // as it lies in memory
    T value;

    TG_INLINE void put(T x) { value = x; }
    TG_INLINE void load(T x) { value = x; }
    TG_INLINE T stored() const { return value; }
};
// As bytes: g++ vectorises no loop that loads bool.
template <int I>
struct reg<I, bool> {
    using word = std::uint8_t;
    bool value;

    TG_INLINE void put(bool x) { value = x; }
    TG_INLINE void load(word x) { value = x != 0; }
    TG_INLINE word stored() const { return value ? 1 : 0; }
};
template <int I, storage_type T>
struct reg<I, T> {
    using word = std::uint16_t;
    float value;
    word bits;

    // A register is seldom both read and stored: the compiler drops one of them.
    TG_INLINE void put(float x) {
        bits = storage_bits<T>(x);
        value = rounded_to<T>(x);
    }
    TG_INLINE void put(T x) { load(x.bits); } // a conversion from another type
    TG_INLINE void load(word x) {
        bits = x;
        value = float_of<T>(x);
    }
    TG_INLINE word stored() const { return bits; }
};
template <int I, class T>
TG_INLINE constexpr reg<I, T>& reg_at(reg<I, T>& r) {
    return r;
}
template <int I, class T>
TG_INLINE constexpr auto& at(reg<I, T>& r) {
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
    TG_INLINE static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f))); }
};
template <int R, class File, class Op, dtype Result, int A, int B>
    requires(B >= 0)
struct execute<R, File, instruction<Op, Result, A, B, -1, -1>> {
    TG_INLINE static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f), at<B>(f))); }
};
template <int R, class File, class Op, dtype Result, int A, int B, int C>
    requires(C >= 0)
struct execute<R, File, instruction<Op, Result, A, B, C, -1>> {
    TG_INLINE static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f), at<B>(f), at<C>(f))); }
};
template <int R, class File, class Op, dtype Result, int A, int B, int C, int D>
    requires(D >= 0)
struct execute<R, File, instruction<Op, Result, A, B, C, D>> {
    TG_INLINE static void run(File& f) { reg_at<R>(f).put(Op::value(at<A>(f), at<B>(f), at<C>(f), at<D>(f))); }
};
template <int R, class File>
struct execute<R, File, void> { // not needed
    TG_INLINE static void run(File&) {}
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

} // namespace detail

template <class Region>
struct region_body;

template <dtype... Slots, int... Results, class... Instructions>
struct region_body<region<slots<Slots...>, results<Results...>, Instructions...>> {
    static constexpr int slot_count = sizeof...(Slots);
    using file = detail::register_file<std::make_integer_sequence<int, slot_count + int(sizeof...(Instructions))>,
                                       Slots..., Instructions::result...>;

    template <int Register>
    static constexpr detail::needed_registers<slot_count, Instructions...> needed{Register};

    template <int... S>
    struct pointers : detail::reg<S, const detail::word_t<Slots>*>... {};

    // One element of one result. A function of its own: registers declared in the loop itself would become an array in
    // memory, one per lane, and the loop would stay scalar. What a result does not need is left out here; the
    // compiler would drop it, too, but late.
    template <int Register, int... S, int... I>
    TG_INLINE static auto element(const pointers<S...>& p, std::int64_t i, std::integer_sequence<int, I...>) {
        file f;
        (detail::reg_at<S>(f).load(static_cast<const detail::reg<S, const detail::word_t<Slots>*>&>(p).value[i]), ...);
        (detail::execute<slot_count + I, file,
                         std::conditional_t<needed<Register>.at[slot_count + I], Instructions, void>>::run(f),
         ...);
        return detail::reg_at<Register>(f).stored();
    }

    template <int Register, int... S, class Steps>
    TG_INLINE static void loop(const tile& t, void* target, std::integer_sequence<int, S...>, Steps steps) {
        using result =
            typename std::remove_reference_t<decltype(detail::reg_at<Register>(std::declval<file&>()))>::word;
        const pointers<S...> p{{static_cast<const detail::word_t<Slots>*>(t.in[S])}...};
        result* const out = static_cast<result*>(target);
        const std::int64_t count = t.count;
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) out[i] = element<Register>(p, i, steps);
    }

    template <class Isa>
    TG_INLINE static void run(const tile* t) {
        int k = 0;
        ((t->out[k] != nullptr ? loop<Results>(*t, t->out[k], std::make_integer_sequence<int, slot_count>{},
                                               std::make_integer_sequence<int, int(sizeof...(Instructions))>{})
                               : void(),
          ++k),
         ...);
    }
};

/// Evaluates a region over one tile with the active instruction set.
template <class Region>
void evaluate_tile(const tile& t) {
    dispatch<region_body<Region>>(&t);
}

} // namespace tapegraph::cpu
