#pragma once

#include <tapegraph/graph/program.hpp>
#include <tapegraph/nn/session/parts.hpp>
#include <tapegraph/nn/variables.hpp>
#include <tapegraph/runtime/placement_log.hpp>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Programs in parts, each on its device: what sessions and compiled models run.

namespace tapegraph::detail {

/// A part of a program and what it is connected to; mostly it is all of it.
struct session_part {
    const ir::program_view* view = nullptr;
    int place = 0;
    std::unique_ptr<ir::program> program;
    std::vector<variable*> variables;
    std::vector<char> used;         ///< of each variable, whether this part does
    std::vector<char> written;      ///< of each variable, whether this program changes it where it stands
    std::vector<any_tensor> frozen; ///< copies of frozen variables
    struct transfer {
        int part, output, input;
    };
    std::vector<transfer> transfers;                ///< values that earlier parts compute
    std::vector<std::pair<int, variable*>> updates; ///< outputs that are variables' next values
};
struct part_programs {
    std::vector<session_part> parts;
    std::vector<std::pair<int, int>> results; ///< of each result, the part and which of its outputs
    bool logged = false;
};

/// "/cpu:1" is the machine's CPU; with `soft` a part is computed there, too, where there is no such GPU, after one line on stderr.
template <class = void>
runtime::device_runtime* device_of_place(int place, runtime::device_runtime* elsewhere, bool soft) {
    if (place == place::anywhere) return elsewhere;
    if (!place::is_gpu(place)) return nullptr;
    const device wanted = device::cuda(place::index(place));
    return runtime::runtime_for(soft ? available_or_cpu(wanted) : wanted);
}

/// The next part; `variable_of(i)` is the variable that the program calls number i.
template <class F>
void add_part(part_programs& p, const compiled_part& from, runtime::device_runtime* device, const F& variable_of) {
    const ir::program_view& view = *from.program;
    const int number = static_cast<int>(p.parts.size());
    session_part part;
    part.view = &view;
    part.place = from.place;
    part.program = std::make_unique<ir::program>(view, device);
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
                if (output.role == ir::output_role::value && output.number == node)
                    part.transfers.push_back({static_cast<int>(k), o, i});
            }
    }
    p.parts.push_back(std::move(part));
}

/// Values of earlier parts. Between GPUs they go by way of the CPU.
template <class = void>
void receive_values(part_programs& p, session_part& to) {
    for (const session_part::transfer& t : to.transfers) {
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

/// When all parts have run, variables change: those of which holds_still(variable) is false.
template <class F>
void apply_updates(part_programs& p, const F& holds_still) {
    for (session_part& part : p.parts)
        for (const auto& [output, target] : part.updates) {
            if (holds_still(*target)) continue;
            const device_scope on(part.program->device());
            const buffer_view from = part.program->device_output(output);
            const buffer_view to = target->own_data_on(part.program->device());
            if (part.program->device() == nullptr)
                std::memcpy(to.data, from.data, from.bytes());
            else
                part.program->device()->copy(to.data, from.data, from.bytes());
        }
}

} // namespace tapegraph::detail
