#include <fuzz/evaluate.hpp>
#include <fuzz/kernels.hpp>

#include <tapegraph/graph/program.hpp>

#include <algorithm>
#include <cstring>

/// Schedules run by the library's program, with the fused kernels' words interpreted.

namespace tapegraph::fuzz {

namespace {

// Kernels are functions without state; which step runs is told to the fused ones on the side.
struct running_step {
    const ir::program_view* view = nullptr;
    int step = 0;
};
thread_local running_step running;

/// Evaluates a region, result k into targets[k], a few elements at a time in the order of the elements: a plan that lets a result
/// overwrite what is still to be read would show.
void run_region(const kernel_call& call, const ir::region_view& region, const ir::operation* const* ops,
                void* const* targets) {
    constexpr std::int64_t tile = 7;
    const int registers = region.slots() + region.instructions();
    const std::int64_t count = call.domain.elements();
    std::vector<std::byte> file(static_cast<std::size_t>(registers) * tile * sizeof(double));
    const auto at = [&](int reg) { return file.data() + static_cast<std::ptrdiff_t>(reg) * tile * 8; };
    for (std::int64_t begin = 0; begin < count; begin += tile) {
        const std::int64_t now = std::min(tile, count - begin);
        for (int s = 0; s < region.slots(); ++s) {
            const buffer_view& v = call.in[s];
            const auto bytes = static_cast<std::int64_t>(size_of(region.slot_type(s)));
            for (std::int64_t i = 0; i < now; ++i) {
                std::int64_t rest = begin + i, from = 0, stride = 1;
                for (int axis = call.domain.rank - 1; axis >= 0; --axis) {
                    const std::int64_t index = rest % call.domain.extents[axis];
                    rest /= call.domain.extents[axis];
                    const int own = axis - (call.domain.rank - v.rank);
                    const std::int64_t extent = own >= 0 ? v.extents[own] : 1;
                    if (extent != 1) from += index * stride;
                    stride *= extent;
                }
                std::memcpy(at(s) + i * bytes, static_cast<const std::byte*>(v.data) + from * bytes,
                            static_cast<std::size_t>(bytes));
            }
        }
        for (int k = 0; k < region.instructions(); ++k) {
            const ir::region_instruction step = region.instruction(k);
            const ir::operation& op = *ops[step.op];
            const int operands = step.operands();
            const void* in[4]{};
            for (int i = 0; i < operands; ++i) in[i] = at(step.operand[i]);
            const dtype common = region.type_of(step.operand[op.conditions < operands ? op.conditions : 0]);
            evaluate(op, common, in, operands, at(region.slots() + k), now);
        }
        for (int k = 0; k < region.results(); ++k) {
            const auto size = static_cast<std::int64_t>(size_of(region.type_of(region.result(k))));
            std::memcpy(static_cast<std::byte*>(targets[k]) + begin * size, at(region.result(k)),
                        static_cast<std::size_t>(now * size));
        }
    }
}

ir::kernel_entry running_kernel() { return running.view->kernels[running.view->steps[running.step].kernel]; }

void run_fused(const kernel_call& call) {
    std::vector<void*> targets;
    for (int k = 0; k < call.outputs; ++k) targets.push_back(call.out[k].data);
    run_region(call, running.view->region_of(running_kernel()), running.view->ops.begin(), targets.data());
}

/// What is reduced is computed first, each by itself, and then reduced by the operation's own kernel.
void run_fused_reductions(const kernel_call& call) {
    const ir::kernel_entry entry = running_kernel();
    const ir::region_view region = running.view->region_of(entry);
    const int reduced = ir::reductions_of(entry, running.view->kernel_words.begin());
    std::vector<any_tensor> produced;
    std::vector<void*> targets;
    for (int k = 0; k < region.results(); ++k) {
        if (k < reduced)
            produced.emplace_back(region.type_of(region.result(k)), shape(call.domain.rank, call.domain.extents));
        targets.push_back(k < reduced ? produced.back().write() : call.out[k].data);
    }
    run_region(call, region, running.view->ops.begin(), targets.data());
    for (int k = 0; k < reduced; ++k) {
        const buffer_view in = produced[static_cast<std::size_t>(k)].view();
        kernel_call reduce = call;
        reduce.in = &in;
        reduce.inputs = 1;
        reduce.out = call.out + k;
        reduce.outputs = 1;
        kernel_of(*running.view->ops[entry.op], in.type).run(reduce);
    }
}

} // namespace

results run_schedule(ir::trace& t, ir::schedule& s, const std::vector<any_tensor>& feeds, const program& p) {
    std::vector<runtime::kernel_pair> functions;
    for (const ir::kernel_entry& k : s.kernels) {
        const auto type = static_cast<dtype>(k.type);
        if (k.kind == static_cast<int>(ir::kernel_kind::operation))
            functions.push_back(kernel_of(*s.ops[k.op], type));
        else if (k.kind == static_cast<int>(ir::kernel_kind::region))
            functions.push_back({&run_fused, &runtime::no_workspace});
        else
            functions.push_back({&run_fused_reductions, kernel_of(*s.ops[k.op], type).workspace});
    }
    ir::program_view view;
#define TG_MEMBER(type, list, name, most) view.name = {list.begin(), list.size()};
    TG_GRAPH_LISTS(TG_MEMBER)
    TG_SCHEDULE_LISTS(TG_MEMBER)
#undef TG_MEMBER
    view.functions = {functions.data(), static_cast<int>(functions.size())};
    ir::program run(view);
    for (std::size_t i = 0; i < feeds.size(); ++i) run.set_input(static_cast<int>(i), feeds[i].view());
    run.run_each({}, [&](int step, const auto& step_function) {
        running = {&view, step};
        step_function();
    });
    std::vector<any_tensor> outputs;
    for (int i = 0; i < t.outputs.size(); ++i) {
        const buffer_view& v = run.output(i);
        any_tensor copy(v.type, shape(v.rank, v.extents));
        if (v.bytes() > 0) std::memcpy(copy.write(), v.data, v.bytes());
        outputs.push_back(copy);
    }
    return sorted_out(outputs, p);
}

} // namespace tapegraph::fuzz
