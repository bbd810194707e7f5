#pragma once

#include <tapegraph/cuda/kernels/compact_reduction.cuh>
#include <tapegraph/cuda/kernels/reduction.cuh>
#include <tapegraph/cuda/library_reduction.hpp>
#include <tapegraph/cuda/reduction_plan.cuh>
#include <tapegraph/cuda/region.cuh>
#include <tapegraph/ops/reduction/kernel.hpp>

#include <bit>
#include <limits>

/// Reductions on the device, fused with the region that produces their values. Sums and products
/// may differ from the CPU's bits, since they are folded in another order; other reductions have
/// the same bits except for the sign of a zero. Integer reductions of whole tensors go to a library
/// where it is linked.

namespace tapegraph::cuda {

namespace detail {

/// Whether an operand has the same elements everywhere along some axes of a domain that it is
/// broadcast over.
inline bool is_repeated(const buffer_view& operand, const buffer_view& domain, std::uint32_t axes) {
    for (int a = 0; a < domain.rank; ++a) {
        const int own = a - (domain.rank - operand.rank);
        if ((axes >> a & 1) != 0 && domain.extents[a] > 1 && own >= 0 && operand.extents[own] > 1) return false;
    }
    return true;
}

/// Sets how columns are spread over blocks; for `steady` see column_arguments.
template <class Source>
void spread_columns(kernels::column_arguments<Source>& p, const reduction_geometry& g, const column_plan& plan,
                    [[maybe_unused]] bool steady) {
    p.columns = plan.columns, p.length = plan.length, p.parts = plan.parts;
    p.reduced = g.reduced;
    if (plan.rows > 1) {
        p.reduced = {};
        p.reduced.add(plan.length, &plan.columns);
    }
    p.wide = kernels::divisor(static_cast<std::uint32_t>(plan.wide));
    p.box = kernels::divisor(static_cast<std::uint32_t>(plan.wide * plan.high));
    p.by_high = kernels::divisor(static_cast<std::uint32_t>(plan.high));
    p.high = plan.high;
    p.y = static_cast<int>(std::bit_width(static_cast<unsigned>(plan.high - 1)));
    p.across = kernels::divisor(static_cast<std::uint32_t>(plan.across));
    p.down = kernels::divisor(static_cast<std::uint32_t>(plan.down));
    p.steady = steady && p.reduced.rank <= 1 && plan.columns % Source::lanes == 0;
}

/// Launches one kernel over `source`. Results have type T, or are totals if the plan leaves several
/// per result.
template <class Fold, class T, class Source>
void reduce_once(const kernel_call& call, const char* name, const Source& source, const reduction_geometry& g,
                 void* out, bool cut, bool steady, std::int64_t blocks) {
    if constexpr (kernels::is_compact<Source>) {
        kernels::compact_arguments<Source> p;
        p.source = source, p.kept = g.kept, p.units = g.kept.size, p.out = out;
        p.by_rows = g.by_rows;
        std::int64_t work;
        if (g.by_rows) {
            const row_plan plan(g, Source::lanes, cut);
            p.reduced = g.reduced, p.length = g.reduced.size, p.parts = plan.parts;
            p.y = plan.width, p.high = 1 << plan.width;
            p.box = p.by_high = kernels::divisor(static_cast<std::uint32_t>(p.high));
            p.down =
                kernels::divisor(static_cast<std::uint32_t>(divide_up(p.units, kernels::reduce_threads >> plan.width)));
            work = p.down.value * p.parts;
        } else {
            const column_plan plan(g, Source::lanes, cut);
            spread_columns(p, g, plan, steady);
            work = plan.tiles();
        }
        launch(call, name, {blocks_for(work, blocks), kernels::reduce_threads},
               kernels::reduce_compact<Fold, T, Source>, p);
    } else if (g.by_rows) {
        const row_plan plan(g, Source::lanes, cut);
        const kernels::row_arguments<Source> p{source,         g.kept,     g.reduced,  g.kept.size,
                                               g.reduced.size, plan.parts, plan.width, out};
        launch(call, name, {blocks_for(plan.blocks, blocks), kernels::reduce_threads},
               kernels::reduce_rows<Fold, T, Source>, p);
    } else {
        const column_plan plan(g, Source::lanes, cut);
        kernels::column_arguments<Source> p;
        p.source = source, p.kept = g.kept, p.units = g.kept.size, p.out = out;
        spread_columns(p, g, plan, steady);
        const driver::launch_shape grid{blocks_for(plan.tiles(), blocks), kernels::reduce_threads};
        if constexpr (requires { typename Source::access; })
            if (p.steady) {
                launch(call, name, grid, kernels::reduce_columns<Fold, T, true, Source>, p);
                return;
            }
        launch(call, name, grid, kernels::reduce_columns<Fold, T, false, Source>, p);
    }
}

/// The number of totals that the first launch leaves per result; 1: the results themselves.
template <class Source>
std::int64_t parts_of(const reduction_geometry& g) {
    if (g.by_rows) return row_plan(g, Source::lanes, true).parts;
    const column_plan plan(g, Source::lanes, true);
    return plan.parts * plan.rows;
}

/// Bytes of totals between the two launches of a reduction; 0 if one launch is enough.
template <class Fold, class Source>
std::size_t reduction_bytes(const buffer_view& domain, std::uint32_t axes) {
    if (domain.elements() == 0) return 0;
    const reduction_geometry g(domain, axes);
    const std::int64_t parts = parts_of<Source>(g);
    return parts == 1 ? 0 : static_cast<std::size_t>(parts * g.outputs()) * sizeof(typename Fold::total);
}

/// Scratch memory of a library that reduces all elements of a tensor of integers in memory; 0 if
/// our kernels are chosen. The library reads the elements once in a launch that leaves less than 8
/// KiB of totals, and folds these in a second launch, as our kernels do where they take two
/// launches; where ours take one, for up to 16,383 elements, the library may take two. Floats
/// always use our kernels: among zeros of both signs the result is the first or the last in our
/// order, in both modes, and CUB guarantees no order.
template <class Element, class Source>
std::size_t library_reduction_bytes(const kernel_call& call, reduction kind, std::uint32_t axes) {
    const std::int64_t count = call.domain.elements();
    if (reduction_of_library<Element>.reduce == nullptr || count == 0 ||
        count > std::numeric_limits<std::int32_t>::max() || call.in[0].elements() != count)
        return 0;
    const reduction_geometry g(call.domain, axes);
    if (g.outputs() != 1 || parts_of<Source>(g) == 1) return 0;
    use_device_of(call);
    return reduction_of_library<Element>.scratch_bytes(kind, count);
}

/// Reduces the values of `source` over a domain that is not empty. `Joining` folds totals. For
/// `blocks` see run_region.
template <class Fold, class Joining, class T, class Source>
void reduce_source(const kernel_call& call, const char* name, const Source& source, std::uint32_t axes,
                   std::int64_t blocks = most_blocks) {
    const reduction_geometry g(call.domain, axes);
    const std::int64_t parts = parts_of<Source>(g);
    bool steady = true;
    if constexpr (requires { typename Source::access; })
        for (int s = 0; s < Source::access::slot_count; ++s)
            steady = steady && ((source.in.in_order >> s & 1) != 0
                                    ? is_aligned(call.in[s].data, Source::access::slot_alignment[s])
                                    : is_repeated(call.in[s], call.domain, axes));
    reduce_once<Fold, T>(call, name, source, g, parts == 1 ? call.out[0].data : call.workspace, true, steady, blocks);
    if (parts == 1) return;
    using totals = kernels::memory_source<typename Fold::total>;
    buffer_view partial;
    partial.rank = 2;
    partial.extents[g.by_rows ? 1 : 0] = parts;
    partial.extents[g.by_rows ? 0 : 1] = g.outputs();
    reduce_once<Joining, T>(call, name, totals{static_cast<const typename Fold::total*>(call.workspace)},
                            reduction_geometry(partial, g.by_rows ? 2u : 1u), call.out[0].data, false, false, blocks);
}

template <class Word>
void fill(const kernel_call& call, const char* name, Word value, std::int64_t count) {
    if (count > 0)
        launch(call, name, {blocks_for(divide_up(count, kernels::reduce_threads)), kernels::reduce_threads},
               kernels::fill_words<Word>, call.out[0].as<Word>(), value, count);
}

template <class Op, class Region, class T, class Source = kernels::region_source<Region>>
struct fused_reduction {
    static constexpr auto kind = Op::combines;
    using element =
        typename std::conditional_t<storage_type<T>, std::type_identity<float>, runtime::reduced_element<Op, T>>::type;
    using fold = kernels::value_fold<kind, element>;
    using joining = kernels::value_fold<kind, typename fold::total>;

    static constexpr bool for_library = std::is_integral_v<element> && runtime::reads_in_place<Region>;

    static std::uint32_t axes(const kernel_call& call) { return static_cast<std::uint32_t>(call.attributes[0]); }

    /// `wanted` is the index of the result of a source that has several.
    static void run(const kernel_call& call, std::int64_t blocks = most_blocks, [[maybe_unused]] int wanted = 0) {
        if (call.domain.elements() == 0) return run_empty(call);
        if constexpr (for_library)
            if (const std::size_t bytes = library_reduction_bytes<element, Source>(call, kind, axes(call)); bytes > 0)
                return reduction_of_library<element>.reduce(Op::name.data(), call.stream, kind,
                                                            call.in[0].as<const element>(), call.out[0].as<element>(),
                                                            call.domain.elements(), call.workspace, bytes);
        Source source{operands_of<typename Source::access>(call)};
        if constexpr (kernels::is_compact<Source>) source.wanted = wanted;
        reduce_source<fold, joining, T>(call, Op::name.data(), source, axes(call), blocks);
    }
    static void run_empty(const kernel_call& call) {
        const char* const name = Op::name.data();
        if constexpr (std::is_same_v<T, bool>) { // any and all are defined for empty domains
            fill<std::uint8_t>(call, name, kind == reduction::minimum, call.out[0].elements());
        } else {
            const buffer_view& d = call.domain;
            const bool allowed = (call.attributes[1] & reduce_op::empty_allowed) != 0;
            const std::int64_t count = allowed
                                           ? call.out[0].elements()
                                           : tapegraph::detail::results_of_nothing(kind, d.rank, d.extents, axes(call));
            constexpr element value = tapegraph::detail::identity<kind, element>;
            if constexpr (storage_type<T>)
                fill<std::uint16_t>(call, name, storage_bits<T>(value), count);
            else
                fill<element>(call, name, value, count);
        }
    }
    static std::size_t workspace(const kernel_call& call) {
        if constexpr (for_library)
            if (const std::size_t bytes = library_reduction_bytes<element, Source>(call, kind, axes(call)); bytes > 0)
                return bytes;
        return reduction_bytes<fold, Source>(call.domain, axes(call));
    }
};

} // namespace detail

template <class Op, class Region, class T>
struct reduction_kernel {
    using work = detail::fused_reduction<Op, Region, T>;
    static void run(const kernel_call& call) { work::run(call); }
    static std::size_t workspace(const kernel_call& call) { return work::workspace(call); }
};

namespace detail {

/// The registers that a region's results are made of.
template <class Region>
struct result_registers;
template <class Slots, int... Results, class... Instructions>
struct result_registers<region<Slots, results<Results...>, Instructions...>> {
    static constexpr int slot_count = Slots::count, result_count = sizeof...(Results);

    /// Bit masks of the slots that each result depends on.
    struct slot_bits {
        std::uint32_t of[result_count]{};

        constexpr slot_bits() {
            constexpr int registers[]{Results...};
            for (int k = 0; k < result_count; ++k) {
                const machine::needed_registers<slot_count, Instructions...> needed(registers[k]);
                for (int s = 0; s < slot_count; ++s)
                    if (needed.at[s]) of[k] |= 1u << s;
            }
        }
    };
    /// The registers of a type that are results, each once, and the index among them of each
    /// result.
    struct typed {
        int at[result_count]{}, place[result_count]{}, count = 0;

        constexpr explicit typed(dtype type) {
            constexpr int registers[]{Results...};
            constexpr dtype computed[]{Instructions::result..., dtype::f32};
            for (int k = 0; k < result_count; ++k) {
                const int r = registers[k];
                if ((r < slot_count ? Slots::types[r] : computed[r - slot_count]) != type) continue;
                while (place[k] < count && at[place[k]] != r) ++place[k];
                if (place[k] == count) at[count++] = r;
            }
        }
    };
    template <dtype Type, int... I>
    static auto narrowed(std::integer_sequence<int, I...>)
        -> region<Slots, results<typed(Type).at[I]...>, Instructions...>;
    /// The region with only those registers as results.
    template <dtype Type>
    using only = decltype(narrowed<Type>(std::make_integer_sequence<int, typed(Type).count>{}));
};

} // namespace detail

/// The sum over some axes of one of a region's results, selected when the kernel runs, so that one
/// kernel serves all results of a type. Attributes: the axes, and the index of the result in the
/// region.
template <class Region>
struct result_sum {
    static void run(const kernel_call& call) { run(call, detail::most_blocks); }
    static void run(const kernel_call& call, std::int64_t blocks) {
        constexpr typename registers::slot_bits slots_read;
        const auto result = static_cast<int>(call.attributes[1]);
        // An operand that the result does not depend on is read as a single element, broadcast.
        buffer_view in[registers::slot_count + 1];
        for (int s = 0; s < registers::slot_count; ++s) {
            in[s] = call.in[s];
            if ((slots_read.of[result] >> s & 1) == 0) in[s].rank = 0;
        }
        kernel_call one = call;
        one.in = in;
        const typename registers::typed results(call.out[0].type);
        by_type(call.out[0].type, [&](auto work) { decltype(work)::run(one, blocks, results.place[result]); });
    }
    static std::size_t workspace(const kernel_call& call) {
        std::size_t bytes = 0;
        by_type(call.out[0].type, [&](auto work) { bytes = decltype(work)::workspace(call); });
        return bytes;
    }

private:
    using registers = detail::result_registers<Region>;

    template <class T, class F>
    static void for_type(const F& f) {
        if constexpr (typename registers::typed(dtype_of<T>).count > 0) {
            using only = typename registers::template only<dtype_of<T>>;
            if constexpr (runtime::reads_in_place<only>) // a sum of a tensor; every program has its kernels
                f(detail::fused_reduction<sum_op, only, T>{});
            else
                f(detail::fused_reduction<sum_op, only, T, kernels::compact_source<only>>{});
        }
    }
    template <class F>
    static void by_type(dtype type, const F& f) {
        floating_types::visit(type, [&]<class T>(std::type_identity<T>) { for_type<T>(f); });
    }
};

/// A reduction of a tensor in memory, without a fused producer.
template <class Op, class T>
    requires whole_reduction<Op>
struct kernel<Op, T> {
    using fused = reduction_kernel<Op, region<slots<dtype_of<T>>, results<0>>, T>;
    static kernel_call over_operand(kernel_call call) {
        call.domain = call.in[0];
        return call;
    }
    static void run(const kernel_call& call) { fused::run(over_operand(call)); }
    static std::size_t workspace(const kernel_call& call) { return fused::workspace(over_operand(call)); }
};

} // namespace tapegraph::cuda
