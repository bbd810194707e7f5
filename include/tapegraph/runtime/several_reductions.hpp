#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/map.hpp>
#include <tapegraph/cpu/reduce.hpp>
#include <tapegraph/cpu/sum_columns.hpp>
#include <tapegraph/expr/region.hpp>

/// Several sums in one pass over their operands, optionally with values that are written: one
/// kernel for a region some of whose results are reduced over the same axes. It gives the bits of
/// the separate kernels, because tiles, tasks and lanes follow from the shape.

namespace tapegraph::runtime {

/// The sources of such a kernel's results. Its first `reduced` results are sums, the others are
/// written.
struct several_results {
    int reduced = 0, evaluated = 0;
    int place[cpu::most_results]{};   ///< for each result of the evaluated region, the index of the kernel's result
    int operand[cpu::most_reduced]{}; ///< for each sum, the operand that it adds up in place, or -1
    int result[cpu::most_reduced]{};  ///< for each sum, the written result that it adds up, or -1
};

/// A sum of an operand reads it in place, unless a result might overwrite it; a sum of a written
/// result reads that result.
constexpr several_results plan_of_several(int reduced, int operands, const int* registers, int count) {
    several_results p;
    p.reduced = reduced;
    for (int k = 0; k < count; ++k) {
        bool in_memory = false;
        if (k < reduced) {
            p.operand[k] = count == reduced && registers[k] < operands ? registers[k] : -1;
            p.result[k] = -1;
            for (int w = reduced; w < count; ++w)
                if (registers[w] == registers[k]) p.result[k] = w;
            in_memory = p.operand[k] >= 0 || p.result[k] >= 0;
        }
        if (!in_memory) p.place[p.evaluated++] = k;
    }
    return p;
}

/// Sums over call.domain the tiles that `evaluate` computes, as `p` says. Down columns, `columns`
/// adds them as it computes them; without it (null) tiles are added up as along rows, to the same
/// bits.
template <class T>
void run_several(const kernel_call& call, cpu::tile_function evaluate, cpu::columns_function columns,
                 const several_results& p) {
    struct state {
        cpu::region_reader reader;
        cpu::columns_function columns;
        int outputs;
        const several_results* plan;
        const buffer_view* out;
        std::int64_t sizes[cpu::most_results];
    };
    state producer{
        cpu::region_reader(evaluate, call), columns, call.outputs, &p, call.out, {}};
    for (int r = 0; r < p.evaluated; ++r)
        producer.sizes[r] = static_cast<std::int64_t>(size_of(call.out[p.place[r]].type));
    cpu::reduce_sources<T> source{p.reduced, {}, nullptr, &producer};
    source.produce = [](const void* opaque, std::int64_t begin, std::int64_t count, T* tiles) {
        const state& s = *static_cast<const state*>(opaque);
        void* targets[cpu::most_results];
        for (int r = 0; r < s.plan->evaluated; ++r) {
            const int k = s.plan->place[r];
            targets[r] = k < s.plan->reduced ? static_cast<void*>(tiles + k * cpu::reduce_detail::tile_elements)
                                             : static_cast<std::byte*>(s.out[k].data) + begin * s.sizes[r];
        }
        s.reader.read(begin, count, targets, s.sizes, s.plan->evaluated);
    };
    source.period = producer.reader.period();
    if (columns != nullptr) source.add_columns = [](const void* opaque, std::int64_t begin, std::int64_t rows, std::int64_t width,
                            std::int64_t stride, T* partial) {
        const state& s = *static_cast<const state*>(opaque);
        constexpr std::int64_t most = cpu::detail::tile_elements, lanes = 64 / sizeof(T);
        cpu::column_block block;
        block.rows = rows;
        block.written_stride = stride;
        // Every part is at least 64 bytes wide.
        for (std::int64_t done = 0; done < width; done += block.columns) {
            block.columns = width - done <= most ? width - done : most - lanes;
            s.reader.locate(begin + done, stride, block.in, block.stride);
            for (int k = 0; k < s.outputs; ++k)
                block.out[k] = k < s.plan->reduced
                                   ? static_cast<void*>(partial + k * cpu::reduce_detail::widest_partial + done)
                                   : static_cast<std::byte*>(s.out[k].data) +
                                         (begin + done) * static_cast<std::int64_t>(size_of(s.out[k].type));
            s.columns(block);
        }
    };
    T* out[cpu::most_reduced];
    for (int k = 0; k < p.reduced; ++k) {
        out[k] = call.out[k].as<T>();
        if (p.operand[k] >= 0) source.direct[k] = call.in[p.operand[k]].as<const T>();
        if (p.result[k] >= 0) source.direct[k] = call.out[p.result[k]].as<const T>();
    }
    cpu::reduce_several<reduction::sum>(call.domain.rank, call.domain.extents,
                                        static_cast<std::uint32_t>(call.attributes[0]), source, out, call.workspace);
}
TG_COMPILED(reduction, void run_several<float>(const kernel_call&, cpu::tile_function, cpu::columns_function,
                                               const several_results&))
TG_COMPILED(reduction, void run_several<double>(const kernel_call&, cpu::tile_function, cpu::columns_function,
                                                const several_results&))

template <class Region, int Reduced, class T>
struct several_kernel;
template <class Slots, int... Registers, class... Instructions, int Reduced, class T>
struct several_kernel<region<Slots, results<Registers...>, Instructions...>, Reduced, T> {
    static constexpr int registers[sizeof...(Registers)]{Registers...};
    static constexpr several_results plan =
        plan_of_several(Reduced, Slots::count, registers, static_cast<int>(sizeof...(Registers)));

    // A single result uses the same function as a kernel without sums.
    template <int... R>
    static constexpr cpu::tile_function evaluation(std::integer_sequence<int, R...>) {
        using evaluated = region<Slots, results<registers[plan.place[R]]...>, Instructions...>;
        if constexpr (sizeof...(R) == 1)
            return &cpu::evaluate_tile<evaluated>;
        else
            return &cpu::evaluate_merged_tile<evaluated>;
    }
    static void run(const kernel_call& call) {
        run_several<T>(call, evaluation(std::make_integer_sequence<int, plan.evaluated>{}),
                       &cpu::sum_columns<region<Slots, results<Registers...>, Instructions...>, Reduced>, plan);
    }
    static std::size_t workspace(const kernel_call& call) {
        return Reduced * cpu::reduce_workspace_bytes<T>(call.domain.rank, call.domain.extents,
                                                        static_cast<std::uint32_t>(call.attributes[0]));
    }
};

} // namespace tapegraph::runtime
