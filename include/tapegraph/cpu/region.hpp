#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/tile.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Fused regions on the CPU: one vectorised loop per result over contiguous tiles of every operand.
/// The driver, shared by all regions, cuts the index space into tiles and stages broadcast operands
/// for them.

namespace tapegraph::cpu {

template <class Region>
struct region_body;

template <dtype... Slots, int... Results, class... Instructions>
struct region_body<region<slots<Slots...>, results<Results...>, Instructions...>> {
    using evaluator = machine::evaluator<region<slots<Slots...>, results<Results...>, Instructions...>>;

    template <int... S>
    struct pointers : machine::reg<S, const machine::word_t<Slots>*>... {};

    // One element of one result. It is a function of its own, because registers declared in the
    // loop itself would become an array in memory, one per lane, and the loop would stay scalar.
    // Instructions that the result does not need are left out.
    template <int Register, int... S>
    TG_INLINE static auto element(const pointers<S...>& p, std::int64_t i) {
        typename evaluator::file f;
        (machine::reg_at<S>(f).load(static_cast<const machine::reg<S, const machine::word_t<Slots>*>&>(p).value[i]),
         ...);
        evaluator::template run_for<Register>(f);
        return machine::reg_at<Register>(f).stored();
    }

    template <std::int64_t Lanes, int Register, int... S>
    TG_INLINE static void loop(const tile& t, void* target, std::integer_sequence<int, S...>) {
        using result = typename evaluator::template word<Register>;
        const pointers<S...> p{{static_cast<const machine::word_t<Slots>*>(t.in[S])}...};
        result* const out = static_cast<result*>(target);
        const std::int64_t count = t.count & -Lanes;
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) out[i] = element<Register>(p, i);
    }

    template <std::int64_t Lanes>
    TG_INLINE static void run(const tile& t) {
        int k = 0;
        ((t.out[k] != nullptr
              ? loop<Lanes, Results>(t, t.out[k], std::make_integer_sequence<int, evaluator::slot_count>{})
              : void(),
          ++k),
         ...);
    }
};

/// All results of an element at once: common subexpressions are computed once, and a result may
/// overwrite an operand.
template <class Region>
struct merged_region_body;

template <dtype... Slots, int... Results, class... Instructions>
struct merged_region_body<region<slots<Slots...>, results<Results...>, Instructions...>> {
    using evaluator = machine::evaluator<region<slots<Slots...>, results<Results...>, Instructions...>>;

    template <int... S>
    struct pointers : machine::reg<S, const machine::word_t<Slots>*>... {};
    template <int... R>
    struct targets : machine::reg<R, typename evaluator::template word<Results>*>... {};

    template <int... S, int... R>
    TG_INLINE static void element(const pointers<S...>& p, const targets<R...>& to, std::int64_t i) {
        typename evaluator::file f;
        (machine::reg_at<S>(f).load(static_cast<const machine::reg<S, const machine::word_t<Slots>*>&>(p).value[i]),
         ...);
        evaluator::run(f);
        ((static_cast<const machine::reg<R, typename evaluator::template word<Results>*>&>(to).value[i] =
              machine::reg_at<Results>(f).stored()),
         ...);
    }

    template <std::int64_t Lanes, int... S, int... R>
    TG_INLINE static void loop(const tile& t, std::integer_sequence<int, S...>, std::integer_sequence<int, R...>) {
        const pointers<S...> p{{static_cast<const machine::word_t<Slots>*>(t.in[S])}...};
        const targets<R...> to{{static_cast<typename evaluator::template word<Results>*>(t.out[R])}...};
        const std::int64_t count = t.count & -Lanes;
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) element(p, to, i);
    }

    /// Whether no result overwrites an operand.
    template <int... S, int... R>
    static bool apart(const tile& t, std::integer_sequence<int, S...>, std::integer_sequence<int, R...>) {
        const auto elements = static_cast<std::size_t>(t.count);
        const auto missed = [&](const void* out, std::size_t width, const void* in, std::size_t read) {
            const auto first = reinterpret_cast<std::uintptr_t>(out), second = reinterpret_cast<std::uintptr_t>(in);
            return first + elements * width <= second || second + elements * read <= first;
        };
        const auto result_missed = [&](const void* out, std::size_t width) {
            return (missed(out, width, t.in[S], sizeof(machine::word_t<Slots>)) && ...);
        };
        return (result_missed(t.out[R], sizeof(typename evaluator::template word<Results>)) && ...);
    }

    template <std::int64_t Lanes>
    TG_INLINE static void run(const tile& t) {
        constexpr auto operands = std::make_integer_sequence<int, evaluator::slot_count>{};
        constexpr auto all = std::make_integer_sequence<int, int(sizeof...(Results))>{};
        // GCC keeps a loop scalar that has comparisons and selections for several results. A loop
        // for each result is vectorised.
        if constexpr (((Instructions::result == dtype::boolean) || ...)) {
            if (apart(t, operands, all)) {
                region_body<region<slots<Slots...>, results<Results...>, Instructions...>>::template run<Lanes>(t);
                return;
            }
        }
        loop<Lanes>(t, operands, all);
    }
};

/// Evaluates a region over one tile with the active instruction set.
template <class Region>
void evaluate_tile(const tile& t) {
    dispatch<in_whole_vectors<region_body<Region>>>(&t);
}

/// The same for a merged region, none of whose results is null.
template <class Region>
void evaluate_merged_tile(const tile& t) {
    dispatch<in_whole_vectors<merged_region_body<Region>>>(&t);
}

} // namespace tapegraph::cpu
