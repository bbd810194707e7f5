#pragma once

#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/vector.hpp>
#include <tapegraph/expr/registers.hpp>

#include <cstddef>
#include <utility>

/// Tiles, the pieces in which fused regions are evaluated, and their remainders, which do not fill
/// a vector.
///
/// A loop over vectors leaves a remainder of less than one vector. Compilers add loops of shorter
/// vectors and of single elements for it; a formula with an exponential then has three copies of
/// hundreds of instructions, and 14 doubles take four iterations where two vectors would do. Here
/// the loop processes whole vectors only, followed by one vector that holds the remainder padded
/// with copies of its first element, by masked loads and stores, which cost a few instructions per
/// operand.

namespace tapegraph::cpu {

inline constexpr int most_slots = 24;
inline constexpr int most_results = 12;

struct interpreted_region;

/// A run of elements of the index space, in which every operand is contiguous. Results may be null
/// (not wanted), and a single result may overwrite operands at the same elements.
struct tile {
    const void* in[most_slots];
    void* out[most_results];
    std::int64_t count;
    /// The instructions for an interpreter (cpu/interpreter.hpp); compiled regions ignore it
    const interpreted_region* region;
};

using tile_function = void (*)(const tile&);

namespace detail {

// Uses indices as wide as the elements, and conditions instead of shorter loops: these compile to
// masks.
template <std::int64_t Lanes, class Word>
TG_INLINE const Word* beside_copies(const Word* from, std::int64_t count, std::byte* memory) {
    using index = integer_of_size<sizeof(Word)>;
    Word* const to = reinterpret_cast<Word*>(memory);
    const Word first = from[0];
    TG_SIMD
    for (index i = 0; i < static_cast<index>(Lanes); ++i) to[i] = i < static_cast<index>(count) ? from[i] : first;
    return to;
}
template <std::int64_t Lanes, class Word>
TG_INLINE void keep_first(const std::byte* memory, Word* to, std::int64_t count) {
    using index = integer_of_size<sizeof(Word)>;
    const Word* const from = reinterpret_cast<const Word*>(memory);
    TG_SIMD
    for (index i = 0; i < static_cast<index>(Lanes); ++i)
        if (i < static_cast<index>(count)) to[i] = from[i];
}

} // namespace detail

/// Runs `Body::run<Lanes>(tile)`, which skips a remainder that fills no vector of `Lanes` elements,
/// over a whole tile; where masks do not pay, `Body::run<1>`, which skips nothing.
template <class Body>
struct in_whole_vectors;

template <template <class> class Loops, dtype... Slots, int... Results, class... Instructions>
struct in_whole_vectors<Loops<region<slots<Slots...>, results<Results...>, Instructions...>>> {
    using body = Loops<region<slots<Slots...>, results<Results...>, Instructions...>>;
    using evaluator = machine::evaluator<region<slots<Slots...>, results<Results...>, Instructions...>>;
    template <int Register>
    using word = typename evaluator::template word<Register>;

    /// Elements per vector of each type. 1 where the processor has no masks for them, and for short
    /// formulas: twelve vectors of a few instructions and three more elements took 5 % longer with
    /// masks (Zen 5).
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
        for (const tile* part = &t;; part = &end) { // a single call site, so that the body is inlined once
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
