#pragma once

#include <tapegraph/compile/placed/part_transfers.hpp>
#include <tapegraph/compile/placed/parts.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/hash.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/model/variables.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Programs in parts, each on its device, and with several tasks on its task, as sessions and
/// compiled models run them.

namespace tapegraph::detail {

/// A part of a program and its connections; usually it is the whole program.
struct session_part {
    const ir::program_view* view = nullptr;
    int place = 0;
    int rank = -1;                        ///< the task that computes it; -1: every one
    std::unique_ptr<ir::program> program; ///< null: another task computes it
    std::vector<variable*> variables;
    std::vector<char> used;         ///< per variable, whether this part uses it
    std::vector<char> written;      ///< per variable, whether this program changes it in place
    std::vector<any_tensor> frozen; ///< copies of frozen variables
    struct transfer {
        int part, output, input;
        int from_task = -1; ///< its number among values between tasks
    };
    std::vector<transfer> transfers;                ///< values computed by earlier parts
    std::vector<std::pair<int, variable*>> updates; ///< outputs that are variables' next values
};
struct part_programs {
    std::vector<session_part> parts;
    std::vector<std::pair<int, int>> results; ///< per result, the part and the index of its output
    bool logged = false, agreed = false;
    std::unique_ptr<part_transfers> tasks; ///< null: all is computed here

    part_programs();
    part_programs(part_programs&&) noexcept;
    part_programs& operator=(part_programs&&) noexcept;
    ~part_programs();
};

/// The device for a place. "/cpu:1" is the machine's CPU; with `soft` a part falls back to the CPU
/// where there is no such GPU, after one line on stderr.
runtime::device_runtime* device_of_place(int place, runtime::device_runtime* elsewhere, bool soft);

/// Adds the next part; `variable_of(i)` is the variable that the program calls number i, `device`
/// the part's device unless another task computes it. The chief computes unplaced parts, and every
/// task a whole program.
void add_part(part_programs& p, const compiled_part& from, function_reference<runtime::device_runtime*()> device,
              function_reference<variable&(int)> variable_of);

/// After all parts are added: determines which tasks use and change which variables.
void connect_tasks(part_programs& p);

/// A number by which tasks check that they have compiled the same program.
std::uint64_t hash_of_parts(const part_programs& p);

/// Begins a run; `inputs` is a hash of its inputs. At its end, all transfers in flight are finished
/// or abandoned.
class run_of_tasks {
public:
    run_of_tasks(part_programs& p, const random_state& random, std::int64_t step,
                 function_reference<std::uint64_t()> inputs);
    run_of_tasks(const run_of_tasks&) = delete;
    run_of_tasks& operator=(const run_of_tasks&) = delete;
    ~run_of_tasks();
    /// Called after part number `part` has run.
    void sent(std::size_t part);
    /// Called after all parts have run.
    void end();

private:
    part_programs& p_;
};

/// Fetches values of earlier parts. Between GPUs they go through the CPU.
void receive_values(part_programs& p, session_part& to);

/// After all parts have run, changes the variables for which is_frozen(variable) is false.
void apply_updates(part_programs& p, const held_variables& is_frozen);

/// Copies result `k` of a run into a tensor on the same device; for another task's part, into one
/// in the CPU's memory.
any_tensor result_of_parts(const part_programs& p, std::size_t k);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION part_programs::part_programs() = default;
TG_DEFINITION part_programs::part_programs(part_programs&&) noexcept = default;
TG_DEFINITION part_programs& part_programs::operator=(part_programs&&) noexcept = default;
TG_DEFINITION part_programs::~part_programs() = default;

TG_DEFINITION void add_part(part_programs& p, const compiled_part& from,
                            function_reference<runtime::device_runtime*()> device,
                            function_reference<variable&(int)> variable_of) {
    const ir::program_view& view = *from.program;
    const int number = static_cast<int>(p.parts.size());
    session_part part;
    part.view = &view;
    part.place = from.place;
    if (p.tasks && !from.whole)
        part.rank = from.task.empty() ? p.tasks->tasks().chief() : p.tasks->tasks().rank_of(from.task);
    if (!p.tasks || part.rank < 0 || part.rank == p.tasks->rank())
        part.program = std::make_unique<ir::program>(view, device());
    const auto count = static_cast<std::size_t>(view.variables.size());
    part.written.resize(count);
    part.frozen.resize(count);
    std::vector<char> used(static_cast<std::size_t>(view.nodes.size()));
    for (const int argument : view.arguments) used[static_cast<std::size_t>(argument)] = 1;
    for (int i = 0; i < view.outputs.size(); ++i) {
        const ir::output_entry& output = view.outputs[i];
        used[static_cast<std::size_t>(output.node)] = 1;
        if (output.role == ir::output_role::update) part.updates.emplace_back(i, &variable_of(output.number));
        if (output.role != ir::output_role::result) continue;
        const auto which = static_cast<std::size_t>(from.whole ? i : output.number);
        if (p.results.size() <= which) p.results.resize(which + 1);
        p.results[which] = {number, i};
    }
    for (const ir::assignment_entry& update : view.assignments) {
        part.written[static_cast<std::size_t>(update.variable)] = 1;
        used[static_cast<std::size_t>(view.variables[update.variable].node)] = 1;
        used[static_cast<std::size_t>(update.node)] = 1;
    }
    for (int i = 0; i < view.variables.size(); ++i) {
        part.variables.push_back(&variable_of(i));
        part.used.push_back(from.whole ? 1 : used[static_cast<std::size_t>(view.variables[i].node)]);
    }
    for (int i = 0; i < view.inputs.size(); ++i) {
        const int node = view.inputs[i].from_part - 1;
        for (std::size_t k = 0; node >= 0 && k < p.parts.size(); ++k)
            for (int o = 0; o < p.parts[k].view->outputs.size(); ++o) {
                const ir::output_entry& output = p.parts[k].view->outputs[o];
                if (output.role != ir::output_role::value || output.number != node) continue;
                const int from_part = static_cast<int>(k), from_rank = p.parts[k].rank;
                const dtype type = p.parts[k].view->nodes[output.node].type;
                part.transfers.push_back(
                    {from_part, o, i,
                     from_rank == part.rank ? -1 : p.tasks->connect(from_part, o, type, from_rank, part.rank)});
            }
    }
    p.parts.push_back(std::move(part));
}

TG_DEFINITION run_of_tasks::run_of_tasks(part_programs& p, const random_state& random, std::int64_t step,
                                         function_reference<std::uint64_t()> inputs)
    : p_(p) {
    if (!p.tasks) return;
    if (!p.agreed) p.tasks->agree(hash_of_parts(p), inputs(), random);
    p.agreed = true;
    p.tasks->begin(step);
}
TG_DEFINITION run_of_tasks::~run_of_tasks() {
    if (p_.tasks) p_.tasks->give_up();
}
TG_DEFINITION void run_of_tasks::sent(std::size_t part) {
    if (p_.tasks) p_.tasks->send(static_cast<int>(part), *p_.parts[part].program);
}
TG_DEFINITION void run_of_tasks::end() {
    if (p_.tasks) p_.tasks->finish_sends();
}

TG_DEFINITION void apply_updates(part_programs& p, const held_variables& is_frozen) {
    for (session_part& part : p.parts)
        for (const auto& [output, target] : part.updates) {
            if (part.program == nullptr || is_frozen(*target)) continue;
            const device_scope on(part.program->device());
            if (p.tasks) target->restore();
            const buffer_view from = part.program->device_output(output);
            const buffer_view to = target->own_data_on(part.program->device());
            if (part.program->device() == nullptr)
                std::memcpy(to.data, from.data, from.bytes());
            else
                part.program->device()->copy(to.data, from.data, from.bytes());
        }
    if (p.tasks) p.tasks->settle(is_frozen);
}

TG_DEFINITION runtime::device_runtime* device_of_place(int place, runtime::device_runtime* elsewhere, bool soft) {
    if (place == place::anywhere) return elsewhere;
    if (!place::is_gpu(place)) return nullptr;
    const device wanted = device::cuda(place::index(place));
    return runtime::runtime_for(soft ? available_or_cpu(wanted) : wanted);
}

TG_DEFINITION void connect_tasks(part_programs& p) {
    if (!p.tasks) return;
    struct use {
        variable* which;
        std::uint64_t by = 0;
        int changed_by = -1;
    };
    std::vector<use> uses;
    const auto use_of = [&](variable* v) -> use& {
        for (use& each : uses)
            if (each.which == v) return each;
        return uses.emplace_back(use{v});
    };
    for (const session_part& part : p.parts) {
        const std::uint64_t by = part.rank < 0 ? ~std::uint64_t{0} : std::uint64_t{1} << part.rank;
        for (std::size_t i = 0; i < part.variables.size(); ++i) {
            use& each = use_of(part.variables[i]);
            if (part.used[i] != 0) each.by |= by;
            if (part.written[i] != 0) each.changed_by = part_transfers::all_tasks;
        }
        for (const auto& [output, target] : part.updates) use_of(target).changed_by = part.rank;
    }
    for (const use& each : uses) p.tasks->add_variable(*each.which, each.by, each.changed_by);
    p.tasks->open();
}

TG_DEFINITION std::uint64_t hash_of_parts(const part_programs& p) {
    std::uint64_t hash = 0;
    for (const session_part& part : p.parts)
        for (const ir::entry& e : part.view->nodes) {
            hash = hash_text(e.op->name, hash);
            hash = hash_values(
                std::as_bytes(std::span(part.view->pool.begin() + e.dims, static_cast<std::size_t>(e.rank))), hash);
        }
    return hash;
}

TG_DEFINITION void receive_values(part_programs& p, session_part& to) {
    for (const session_part::transfer& t : to.transfers) {
        if (t.from_task >= 0) {
            const buffer_view value = p.tasks->receive(t.from_task).view_on(nullptr);
            to.program->set_input(t.input, value);
            if (!p.logged && runtime::placement_is_logged())
                std::fprintf(stderr, "tapegraph: copy %s%s from %s\n", name_of(value.type),
                             to_string(shape(value.rank, value.extents)).c_str(),
                             p.tasks->tasks().name_of(p.parts[static_cast<std::size_t>(t.part)].rank).c_str());
            continue;
        }
        session_part& from = p.parts[static_cast<std::size_t>(t.part)];
        const bool stays = from.program->device() == to.program->device();
        const buffer_view& value = stays ? from.program->device_output(t.output) : from.program->output(t.output);
        to.program->set_input(t.input, value);
        if (!p.logged && runtime::placement_is_logged())
            std::fprintf(stderr, "tapegraph: copy %s%s from %s to %s\n", name_of(value.type),
                         to_string(shape(value.rank, value.extents)).c_str(), place::text(from.place).c_str(),
                         place::text(to.place).c_str());
    }
}

TG_DEFINITION any_tensor result_of_parts(const part_programs& p, std::size_t k) {
    const session_part& part = p.parts[static_cast<std::size_t>(p.results[k].first)];
    const int output = p.results[k].second;
    any_tensor result;
    if (part.program != nullptr) result = output_copy(*part.program, output);
    if (p.tasks && part.rank >= 0)
        p.tasks->share(part.rank, part.view->nodes[part.view->outputs[output].node].type, result);
    return result;
}

#endif

} // namespace tapegraph::detail
