#pragma once

#include <tapegraph/cpu/map.hpp>

/// Sums of a region's results down columns, added as they are computed: only the operands are read,
/// and those that broadcast over the rows stay in the L1 cache.

namespace tapegraph::cpu {

/// Rows of a domain whose columns are summed.
struct column_block {
    const void* in[most_slots];
    std::int64_t stride[most_slots]; ///< elements from row to row; 0 for an operand that is the same in every row
    void* out[most_results];         ///< the sums so far, then the written results
    std::int64_t rows, columns, written_stride;
};

/// out[k][c] += result k of row r, column c, for the first `Sums` results and r in order; the
/// others are written. As in `columns_body` (cpu/reduce_columns.hpp), sums of the last columns,
/// which fill no 64 bytes, are stored at the end of 64 bytes of their own.
template <class Region, int Sums>
struct sum_columns_body;

template <dtype... Slots, int... Results, class... Instructions, int Sums>
struct sum_columns_body<region<slots<Slots...>, results<Results...>, Instructions...>, Sums> {
    using evaluator = machine::evaluator<region<slots<Slots...>, results<Results...>, Instructions...>>;
    static constexpr int count = sizeof...(Results);
    static constexpr int registers[count]{Results...};
    template <int K>
    using word = typename evaluator::template word<registers[K]>;
    static constexpr std::int64_t lanes = 64 / static_cast<std::int64_t>(sizeof(word<0>));

    template <int... S>
    struct pointers : machine::reg<S, const machine::word_t<Slots>*>... {};
    template <int... K>
    struct targets : machine::reg<K, word<K>*>... {};

    template <int... S, int... K>
    TG_INLINE static void element(const pointers<S...>& p, const targets<K...>& to, std::int64_t i) {
        typename evaluator::file f;
        (machine::reg_at<S>(f).load(static_cast<const machine::reg<S, const machine::word_t<Slots>*>&>(p).value[i]),
         ...);
        evaluator::run(f);
        (put<K>(static_cast<const machine::reg<K, word<K>*>&>(to).value[i], machine::reg_at<registers[K]>(f).stored()),
         ...);
    }
    template <int K>
    TG_INLINE static void put(word<K>& to, word<K> value) {
        if constexpr (K < Sums)
            to = to + value;
        else
            to = value;
    }

    template <int... S, int... K>
    TG_INLINE static void run(const column_block& b, std::integer_sequence<int, S...>,
                              std::integer_sequence<int, K...>) {
        const std::int64_t whole = b.columns & -lanes, rest = b.columns - whole, back = b.columns - lanes;
        alignas(64) std::byte
            ends[count][lanes * 8]; // written results of the last lanes, some of which have been written before
        for (std::int64_t r = 0; r < b.rows; ++r) {
            const pointers<S...> p{{static_cast<const machine::word_t<Slots>*>(b.in[S]) + r * b.stride[S]}...};
            const targets<K...> to{{static_cast<word<K>*>(b.out[K]) + (K < Sums ? 0 : r * b.written_stride)}...};
            TG_SIMD
            for (std::int64_t i = 0; i < whole; ++i) element(p, to, i);
            if (rest == 0) continue;
            const pointers<S...> last{
                {static_cast<const machine::reg<S, const machine::word_t<Slots>*>&>(p).value + back}...};
            const targets<K...> end{{K < Sums ? static_cast<const machine::reg<K, word<K>*>&>(to).value + whole
                                              : reinterpret_cast<word<K>*>(ends[K])}...};
            TG_SIMD
            for (std::int64_t i = 0; i < lanes; ++i) element(last, end, i);
            (keep_last<K>(end, static_cast<const machine::reg<K, word<K>*>&>(to).value + back, rest), ...);
        }
    }
    template <int K, class Targets>
    TG_INLINE static void keep_last(const Targets& end, word<K>* to, std::int64_t kept) {
        if constexpr (K >= Sums) {
            using index = detail::integer_of_size<sizeof(word<K>)>;
            const word<K>* const from = static_cast<const machine::reg<K, word<K>*>&>(end).value;
            const auto skipped = static_cast<index>(lanes - kept);
            TG_SIMD
            for (index i = 0; i < static_cast<index>(lanes); ++i)
                if (i >= skipped) to[i] = from[i];
        }
    }

    template <class Isa>
    TG_INLINE static void run(const column_block* b) {
        run(*b, std::make_integer_sequence<int, evaluator::slot_count>{}, std::make_integer_sequence<int, count>{});
    }
};

using columns_function = void (*)(const column_block&);

template <class Region, int Sums>
void sum_columns(const column_block& b) {
    dispatch<sum_columns_body<Region, Sums>>(&b);
}

} // namespace tapegraph::cpu
