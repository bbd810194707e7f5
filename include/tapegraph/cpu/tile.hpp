#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/vector.hpp>
#include <tapegraph/expr/registers.hpp>

#include <cstddef>
#include <utility>

/// Tiles, the pieces in which fused regions are evaluated, and their last elements, which fill no vector.
///
/// A loop over vectors leaves up to a vector less one element behind. Compilers add loops for them, of shorter vectors and of single
/// elements; a formula with an exponential has then three copies of hundreds of instructions, and 14 doubles take four turns where
/// two vectors would do. Here the loop takes whole vectors alone, and once more one vector in which the elements that are left
/// stand beside copies of their first: masked loads and stores, which cost a few instructions an operand.

namespace tapegraph::cpu {

inline constexpr int most_slots = 24;
inline constexpr int most_results = 12;

struct interpreted_region;

/// A run of elements of the index space: every operand contiguous. Results may be null (not wanted) and may coincide
/// with operands at the same elements when there is one result.
struct tile {
    const void* in[most_slots];
    void* out[most_results];
    std::int64_t count;
    const interpreted_region* region; ///< what an interpreter runs (cpu/interpreter.hpp); compiled regions do not look
};

using tile_function = void (*)(const tile&);

namespace detail {

// Indices as wide as the elements, and conditions instead of shorter loops: these become masks.
template <std::int64_t Lanes, class Word>
TG_INLINE const Word* beside_copies(const Word* from, std::int64_t count, std::byte* memory) {
    using index = integer_of_size<sizeof(Word)>;
    Word* const to = reinterpret_cast<Word*>(memory);
    const Word first = from[0];
#pragma omp simd
    for (index i = 0; i < static_cast<index>(Lanes); ++i) to[i] = i < static_cast<index>(count) ? from[i] : first;
    return to;
}
template <std::int64_t Lanes, class Word>
TG_INLINE void keep_first(const std::byte* memory, Word* to, std::int64_t count) {
    using index = integer_of_size<sizeof(Word)>;
    const Word* const from = reinterpret_cast<const Word*>(memory);
#pragma omp simd
    for (index i = 0; i < static_cast<index>(Lanes); ++i)
        if (i < static_cast<index>(count)) to[i] = from[i];
}

} // namespace detail

/// Runs `Body::run<Lanes>(tile)`, which leaves out what fills no vector of `Lanes` elements, over a whole tile; where that does not pay
/// `Body::run<1>`, which leaves out nothing.
template <class Body>
struct in_whole_vectors;

template <template <class> class Loops, dtype... Slots, int... Results, class... Instructions>
struct in_whole_vectors<Loops<region<slots<Slots...>, results<Results...>, Instructions...>>> {
    using body = Loops<region<slots<Slots...>, results<Results...>, Instructions...>>;
    using evaluator = machine::evaluator<region<slots<Slots...>, results<Results...>, Instructions...>>;
    template <int Register>
    using word = typename evaluator::template word<Register>;

    /// Elements that fill a vector of each type. 1 where the processor has no masks for them, and for short formulas: twelve vectors of
    /// a few instructions and three elements more took 5 % longer with masks (Zen 5).
    template <class Isa>
    static constexpr std::int64_t lanes = [] {
        if ((0 + ... + Instructions::operation::instructions) < 16) return std::int64_t{1};
        std::size_t least = 8;
        for (std::size_t size : {sizeof(machine::word_t<Slots>)..., sizeof(word<Results>)...})
            least = size < least ? size : least;
        const bool masks = Isa::vector_bytes == 64 || (Isa::vector_bytes == 32 && least >= 4);
        return masks ? Isa::vector_bytes / static_cast<std::int64_t>(least) : std::int64_t{1};
    }();

    template <class Isa>
    TG_INLINE static void run(const tile* t) {
        if constexpr (lanes<Isa> == 1)
            body::template run<1>(*t);
        else
            run<lanes<Isa>>(*t, std::make_integer_sequence<int, int(sizeof...(Slots))>{},
                            std::make_integer_sequence<int, int(sizeof...(Results))>{});
    }

private:
    template <std::int64_t Lanes, int... S, int... R>
    TG_INLINE static void run(const tile& t, std::integer_sequence<int, S...>, std::integer_sequence<int, R...>) {
        const std::int64_t rest = t.count % Lanes, whole = t.count - rest;
        alignas(64) std::byte in[sizeof...(S) + 1][Lanes * 8], out[sizeof...(R)][Lanes * 8];
        tile end;
        for (const tile* part = &t;; part = &end) { // the body stands here once
            body::template run<Lanes>(*part);
            if (rest == 0) return;
            if (part == &end) break;
            ((end.in[S] = detail::beside_copies<Lanes>(static_cast<const machine::word_t<Slots>*>(t.in[S]) + whole,
                                                       rest, in[S])),
             ...);
            ((end.out[R] = t.out[R] == nullptr ? nullptr : out[R]), ...);
            end.count = Lanes;
        }
        ((t.out[R] == nullptr ? void()
                              : detail::keep_first<Lanes>(out[R], static_cast<word<Results>*>(t.out[R]) + whole, rest)),
         ...);
    }
};

} // namespace tapegraph::cpu
