#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/scan_program.hpp>
#include <tapegraph/graph/scan_trace.hpp>

#include <memory>
#include <utility>
#include <vector>

/// The kernel of a scan: its step is compiled to a program of its own, which graph/scan_program.hpp runs over time.

namespace tapegraph::ir {

namespace detail {

#ifdef __CUDACC__ // three evaluations of small results instead of one with spare room, as in ir::stage
constexpr capacity sizes_of_step(const model_trace& t, const schedule& s, const scan_table&) { return sizes_of(t, s); }
constexpr scan_table table_of_step(const model_trace&, const schedule&, const scan_table& places) { return places; }
template <capacity C>
constexpr frozen<C> freeze_step(const model_trace& t, const schedule& s, const scan_table&) {
    return freeze<C>(t, s);
}
#endif

/// The step of node `Node` of a stage, with carries as variables that are updated at the end of the step.
template <class Builder, class Stage, int Node>
struct scan_program_stage {
    static constexpr void build(trace& t, schedule& s, scan_table& slots) {
        trace_scan_step(builder_of<Builder>, stage_view<Stage>(), Node, t, slots);
        simplify(t);
        fold_numbers(t);
        eliminate_common_subexpressions(t);
        eliminate_dead_nodes(t);
        fuse_epilogues(t);
        fuse_messages(t);
        join_pads(t);
        eliminate_dead_nodes(t);
        view_slices(t);
        snapshot_variables(t);
        s = make_schedule(t);
    }

private:
    struct result {
        frozen<widest> program;
        scan_table table;
    };

#ifdef __CUDACC__
    template <class Result>
    static constexpr Result run(Result (*finish)(const model_trace&, const schedule&, const scan_table&)) {
        model_trace t; // its record stays empty
        schedule s;
        scan_table places;
        build(t, s, places);
        return finish(t, s, places);
    }
    static constexpr capacity used = run(&sizes_of_step);

public:
    static constexpr scan_table table = run(&table_of_step);
    static constexpr frozen<used> value = run(&freeze_step<used>);
#else
    static constexpr result run() {
        model_trace t; // its record stays empty
        schedule s;
        scan_table places;
        build(t, s, places);
        return {freeze(t, s), places};
    }
    static constexpr result wide = run();

public:
    static constexpr scan_table table = wide.table;
    static constexpr auto value = trim<wide.program.used>(wide.program);
#endif
};

} // namespace detail

/// The kernel of node `Node` of a stage, on the CPU or, where all kernels of the step exist for the
/// device, in a device's stream. Each thread that runs it keeps the program with its plans, but not
/// its memory, for alternating extents.
template <class Builder, class Stage, int Node>
struct scan_kernel {
    static std::size_t workspace(const kernel_call& c) { return program(c).workspace_bytes(); }
    static void run(const kernel_call& c) { program(c).run_over_time(c); }
    static constexpr runtime::kernel_pair both() {
        if constexpr (runtime::has_backend)
            return runtime::on_both<scan_kernel>(has_device_half());
        else
            return {{&run, &workspace}, {}};
    }

private:
    using step = detail::scan_program_stage<Builder, Stage, Node>;
    static constexpr std::size_t most_plans = 8;

    static constexpr bool has_device_half() {
        bool all = true;
        for (const runtime::kernel_pair& kernel : lowered<step>::functions)
            all = all && kernel.on_device.run != nullptr;
        return all;
    }
    static scan_program<>& program(const kernel_call& c) {
        runtime::device_runtime* device = nullptr;
        if constexpr (runtime::has_backend)
            if (c.stream != nullptr) device = &runtime::runtime_of(tapegraph::device::cuda(c.out[0].memory - 1));
        static thread_local std::vector<std::unique_ptr<scan_program<>>> plans; // the most recent last
        for (const auto& plan : plans)
            if (plan->planned_for(c, device)) return *plan;
        auto made = std::make_unique<scan_program<>>(lowered<step>::view, step::table, c, device);
        if (plans.size() == most_plans) plans.erase(plans.begin());
        plans.push_back(std::move(made));
        return *plans.back();
    }
};

} // namespace tapegraph::ir
