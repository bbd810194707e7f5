#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/expr/region.hpp>

#include <cstddef>
#include <cstring>

/// Fused regions on the CPU: one vectorised loop per result over contiguous pieces ("tiles") of every operand. The driver,
/// which is the same for all regions, cuts the index space into tiles and lays broadcast operands out for them.

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
    T value;
};
template <int I, class T>
TG_INLINE constexpr T& at(reg<I, T>& r) {
    return r.value;
}

template <class Sequence, dtype... Types>
struct register_file;
template <int... I, dtype... Types>
struct register_file<std::integer_sequence<int, I...>, Types...> : reg<I, element_t<Types>>... {};

template <int R, class File, class Instruction>
struct execute;
template <int R, class File, class Op, dtype Result, int A>
struct execute<R, File, instruction<Op, Result, A, -1, -1, -1>> {
    TG_INLINE static void run(File& f) { at<R>(f) = Op::value(at<A>(f)); }
};
template <int R, class File, class Op, dtype Result, int A, int B>
    requires(B >= 0)
struct execute<R, File, instruction<Op, Result, A, B, -1, -1>> {
    TG_INLINE static void run(File& f) { at<R>(f) = Op::value(at<A>(f), at<B>(f)); }
};
template <int R, class File, class Op, dtype Result, int A, int B, int C>
    requires(C >= 0)
struct execute<R, File, instruction<Op, Result, A, B, C, -1>> {
    TG_INLINE static void run(File& f) { at<R>(f) = Op::value(at<A>(f), at<B>(f), at<C>(f)); }
};
template <int R, class File, class Op, dtype Result, int A, int B, int C, int D>
    requires(D >= 0)
struct execute<R, File, instruction<Op, Result, A, B, C, D>> {
    TG_INLINE static void run(File& f) { at<R>(f) = Op::value(at<A>(f), at<B>(f), at<C>(f), at<D>(f)); }
};

} // namespace detail

template <class Region>
struct region_body;

template <dtype... Slots, int... Results, class... Instructions>
struct region_body<region<slots<Slots...>, results<Results...>, Instructions...>> {
    static constexpr int slot_count = sizeof...(Slots);
    using file = detail::register_file<std::make_integer_sequence<int, slot_count + int(sizeof...(Instructions))>, Slots...,
                                       Instructions::result...>;

    template <int... S>
    struct pointers : detail::reg<S, const element_t<Slots>*>... {};

    // One element of one result. A function of its own: registers declared in the loop itself would become an array in
    // memory, one per lane, and the loop would stay scalar. What a result does not need, the compiler drops.
    template <int Register, int... S, int... I>
    TG_INLINE static auto element(const pointers<S...>& p, std::int64_t i, std::integer_sequence<int, I...>) {
        file f;
        ((detail::at<S>(f) = static_cast<const detail::reg<S, const element_t<Slots>*>&>(p).value[i]), ...);
        (detail::execute<slot_count + I, file, Instructions>::run(f), ...);
        return detail::at<Register>(f);
    }

    template <int Register, int... S, class Steps>
    TG_INLINE static void loop(const tile& t, void* target, std::integer_sequence<int, S...>, Steps steps) {
        using result = std::remove_reference_t<decltype(detail::at<Register>(std::declval<file&>()))>;
        const pointers<S...> p{{static_cast<const element_t<Slots>*>(t.in[S])}...};
        result* const out = static_cast<result*>(target);
        const std::int64_t count = t.count;
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) out[i] = element<Register>(p, i, steps);
    }

    template <class Isa>
    TG_INLINE static void run(const tile* t) {
        int k = 0;
        ((t->out[k] != nullptr
              ? loop<Results>(*t, t->out[k], std::make_integer_sequence<int, slot_count>{},
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
