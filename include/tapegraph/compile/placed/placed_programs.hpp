#pragma once

#include <tapegraph/compile/placed/part_programs.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/train/history.hpp>
#include <tapegraph/train/trainer.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

/// Compiled models whose parts are placed by scope.with_device: one program per part, as in a
/// session.

namespace tapegraph::detail {

/// Whether a trace has parts on other devices.
template <class Trace>
inline constexpr bool is_placed = anything_placed<ir::traced_stage<Trace>>();

/// The arguments of every run of a model's programs.
struct placed_run {
    variable_list& variables;
    runtime::device_runtime* device; ///< device of unplaced parts and of batches
    bool soft_placement, check, training;
    random_state random;
    task_group* tasks; ///< tasks of a cluster that share the parts; null: all are computed here
    std::int64_t step;
};

// Keeps the value of a frozen variable, and of its optimizer's state, in a step.
bool is_frozen(variable_list& variables, const variable& v);

/// Of the batch that a program's parts are given.
std::uint64_t hash_of_columns(batch_columns columns, const session_part& part, runtime::device_runtime* device);

/// Runs the parts, which are created at the first request; `prepare(program)` sets its numbers.
/// Variables change after all parts have run.
void run_parts(part_programs& p, std::span<const compiled_part> parts, const placed_run& run, batch_columns columns,
               function_reference<void(ir::program&)> prepare);

/// Copies results of a run into tensors on the same device.
void copy_results(const part_programs& p, std::span<any_tensor> to);

void change_variables(part_programs& p, const placed_run& run);

/// Loss and accuracy of a run, after which variables have changed.
step_result finish_parts(part_programs& p, const placed_run& run);

/// The data of a compiled model with placed parts, in addition to its variables.
struct placed_programs {
    part_programs training{}, evaluation{}, prediction{};
    std::unique_ptr<std::mutex> predicting = std::make_unique<std::mutex>(); ///< one at a time
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void run_parts(part_programs& p, std::span<const compiled_part> parts, const placed_run& run,
                             batch_columns columns, function_reference<void(ir::program&)> prepare) {
    static char unused[64]; // unused inputs still need an address
    if (p.parts.empty()) {
        part_programs made; // created completely, or not at all
        made.parts.reserve(parts.size());
        if (run.tasks != nullptr) made.tasks = run.tasks->transfers();
        for (const compiled_part& part : parts)
            add_part(
                made, part, [&] { return device_of_place(part.place, run.device, run.soft_placement); },
                [&](int i) -> variable& { return run.variables.at(i); });
        connect_tasks(made);
        p = std::move(made);
    }
    run_of_tasks between(p, run.random, run.step, [&] { return hash_of_columns(columns, p.parts[0], run.device); });
    std::vector<any_tensor> host_copies; // host copies of batches that another device cannot read
    for (session_part& part : p.parts) {
        if (part.program == nullptr) continue;
        ir::program& program = *part.program;
        batch_columns next = columns;
        for (int i = 0; i < part.view->inputs.size(); ++i) {
            if (part.view->inputs[i].scalar_parameter || part.view->inputs[i].from_part != 0) continue;
            buffer_view column = *next++;
            if (column.memory != 0 && program.device() != run.device) {
                const device_scope on(nullptr);
                any_tensor& copy = host_copies.emplace_back(column.type, shape(column.rank, column.extents));
                run.device->download(copy.write(), column.data, column.bytes());
                column = copy.view();
            }
            program.set_input(i, column);
        }
    }
    for (std::size_t k = 0; k < p.parts.size(); ++k) {
        session_part& part = p.parts[k];
        if (part.program == nullptr) continue;
        ir::program& program = *part.program;
        const device_scope on(program.device());
        receive_values(p, part);
        for (int i = 0; i < part.view->variables.size(); ++i) {
            const variable& v = run.variables.at(i);
            if (const int input = part.view->variables[i].frozen_input; input > 0)
                program.set_parameter(input - 1, v.frozen() ? 1 : 0);
            if (part.used[static_cast<std::size_t>(i)] == 0)
                program.set_variable(i, unused);
            else
                program.set_variable(i, v.data().view_on(program.device()).data, v.data().content());
        }
        prepare(program);
        program.run(run.random, run.check);
        between.sent(k);
    }
    between.end();
    p.logged = true;
}

TG_DEFINITION bool is_frozen(variable_list& variables, const variable& v) {
    if (!v.optimizer_state()) return v.frozen();
    const std::string_view path = v.path();
    const variable* const owner = variables.find(path.substr(0, path.rfind('/')));
    return owner != nullptr && owner->frozen();
}

TG_DEFINITION std::uint64_t hash_of_columns(batch_columns columns, const session_part& part,
                                            runtime::device_runtime* device) {
    std::uint64_t hash = 0;
    for (const ir::input_entry& input : part.view->inputs) {
        if (input.scalar_parameter || input.from_part != 0) continue;
        const buffer_view& column = *columns++;
        any_tensor copy(column.type, shape(column.rank, column.extents));
        if (column.memory != 0) device->download(copy.write(), column.data, column.bytes());
        const void* const at = column.memory != 0 ? copy.read() : column.data;
        hash = hash_values(
            {static_cast<const std::byte*>(at), column.bytes()},
            hash_values(std::as_bytes(std::span(column.extents, static_cast<std::size_t>(column.rank))), hash));
    }
    return hash;
}

TG_DEFINITION void copy_results(const part_programs& p, std::span<any_tensor> to) {
    for (std::size_t k = 0; k < to.size(); ++k) to[k] = result_of_parts(p, k);
}

TG_DEFINITION void change_variables(part_programs& p, const placed_run& run) {
    apply_updates(p, [&](const variable& v) { return run.training && is_frozen(run.variables, v); });
}

TG_DEFINITION step_result finish_parts(part_programs& p, const placed_run& run) {
    step_result result;
    for (std::size_t k = 0; k < p.results.size() && k < 2; ++k) {
        const session_part& part = p.parts[static_cast<std::size_t>(p.results[k].first)];
        const std::string_view name = part.view->outputs[p.results[k].second].name;
        double value = 0;
        if (part.program != nullptr) {
            const device_scope on(part.program->device());
            runtime::load_scalars(part.program->device(), &part.program->device_output(p.results[k].second), 1, &value);
        }
        if (p.tasks && part.rank >= 0) p.tasks->share(part.rank, value);
        if (k == 0)
            result.loss = value;
        else if (name == "accuracy")
            result.accuracy = value;
    }
    change_variables(p, run);
    return result;
}

#endif

} // namespace tapegraph::detail
