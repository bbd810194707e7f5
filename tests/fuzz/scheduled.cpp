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

struct spelled {
    const int* words;
    int slot_count() const { return words[0]; }
    int instructions() const { return words[1]; }
    dtype slot_type(int s) const { return static_cast<dtype>(words[3 + s]); }
    const int* instruction(int i) const { return words + 3 + slot_count() + ir::words_per_instruction * i; }
    int result(int r) const { return words[3 + slot_count() + ir::words_per_instruction * instructions() + r]; }
    dtype type_of(int reg) const {
        return reg < slot_count() ? slot_type(reg) : static_cast<dtype>(instruction(reg - slot_count())[1]);
    }
};

/// Evaluates a spelled region, a few elements at a time in the order of the elements: a plan that lets a result
/// overwrite what is still to be read would show.
void run_region(const kernel_call& call, const spelled& region, const ir::operation* const* ops, void* target) {
    constexpr std::int64_t tile = 7;
    const int registers = region.slot_count() + region.instructions();
    const auto size = static_cast<std::int64_t>(size_of(region.type_of(region.result(0))));
    const std::int64_t count = call.domain.elements();
    std::vector<std::byte> file(static_cast<std::size_t>(registers) * tile * sizeof(double));
    const auto at = [&](int reg) { return file.data() + static_cast<std::ptrdiff_t>(reg) * tile * 8; };
    for (std::int64_t begin = 0; begin < count; begin += tile) {
        const std::int64_t now = std::min(tile, count - begin);
        for (int s = 0; s < region.slot_count(); ++s) {
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
            const int* const word = region.instruction(k);
            const ir::operation& op = *ops[word[0]];
            const void* in[4]{};
            int operands = 0;
            for (; operands < 4 && word[2 + operands] >= 0; ++operands) in[operands] = at(word[2 + operands]);
            const dtype common = region.type_of(word[2 + (op.conditions < operands ? op.conditions : 0)]);
            evaluate(op, common, in, operands, at(region.slot_count() + k), now);
        }
        std::memcpy(static_cast<std::byte*>(target) + begin * size, at(region.result(0)),
                    static_cast<std::size_t>(now * size));
    }
}

ir::kernel_entry running_kernel() { return running.view->kernels[running.view->steps[running.step].kernel]; }

void run_fused(const kernel_call& call) {
    const spelled region{running.view->kernel_words.begin() + running_kernel().first_word};
    run_region(call, region, running.view->ops.begin(), call.out[0].data);
}

void run_fused_reduction(const kernel_call& call) {
    const ir::kernel_entry entry = running_kernel();
    const spelled region{running.view->kernel_words.begin() + entry.first_word};
    any_tensor produced(region.type_of(region.result(0)), shape(call.domain.rank, call.domain.extents));
    run_region(call, region, running.view->ops.begin(), produced.write());
    const buffer_view in = produced.view();
    kernel_call reduce = call;
    reduce.in = &in;
    reduce.inputs = 1;
    kernel_of(*running.view->ops[entry.op], in.type).run(reduce);
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
            functions.push_back({&run_fused_reduction, kernel_of(*s.ops[k.op], type).workspace});
    }
    ir::program_view view;
#define TG_MEMBER(type, list, name, most) view.name = {list.begin(), list.size()};
    TG_FROZEN_LISTS(TG_MEMBER)
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
