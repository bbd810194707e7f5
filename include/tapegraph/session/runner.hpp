#pragma once

#include <tapegraph/compile/placed/part_programs.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/model/first_values.hpp>
#include <tapegraph/session/fed_values.hpp>
#include <tapegraph/session/fetches.hpp>
#include <tapegraph/train/model_base.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A session's variables and programs, of models of any type.

namespace tapegraph::detail {

struct session_program : part_programs {
    const compiled_part* key = nullptr;
    std::vector<any_tensor> defaults;    ///< values of placeholders that are not fed
    std::vector<any_tensor> converted{}; ///< feeds converted from another type, during a run
    std::vector<int> numbers;            ///< inputs that are optimizers' numbers
};

class session_base {
public:
    /// Frees all memory, including variables. Later runs are refused.
    void close();
    bool closed() const { return closed_; }
    /// The number of runs so far, which random operations use.
    std::uint64_t step() const { return step_; }

protected:
    /// The initial value of an optimizer's state, given the index of the call of minimize and the
    /// name of the state.
    using first_state_function = double (*)(const session_base&, int which, std::string_view name);

    session_base(std::uint64_t seed, runtime::device_runtime* device, first_state_function first_state,
                 task_group* tasks = nullptr)
        : seed_(seed), device_(device), tasks_(tasks), first_state_(first_state) {}

    void check_open() const;
    session_program& program_of(const compiled_part* parts, int count);
    void make_variables(const ir::model_view& view);
    void initialize_all();
    /// Runs the program. Where there are several parts, variables have not changed yet.
    void execute(session_program& p, const std::vector<const feed*>& feeds, const double* numbers, int count);
    /// Changes variables, after results have been read.
    void finish(session_program& p, bool training);
    /// The step count of an optimizer: a variable, so that it is saved to files.
    variable& iterations_of(int training);

    std::uint64_t seed_ = 0, step_ = 0;
    runtime::device_runtime* device_;
    task_group* tasks_; // tasks that compute parts of the model; null: all is computed here
    variable_list variables_;
    bool soft_placement_ = true;
    first_state_function first_state_;

private:
    variable& variable_of(const ir::model_view& view, int i);
    bool is_frozen(const variable& v) const;
    void make_part(session_program& p, const compiled_part& from);
    void connect(session_part& p, bool training);
    void feed_inputs(session_program& p, session_part& part, const std::vector<const feed*>& feeds);
    [[noreturn]] static void refuse_feed(const ir::program_view& view, std::string_view name);

    struct origin {
        variable* made;
        const ir::model_view* view; // null: an optimizer's step count
        int index;
    };
    std::vector<origin> origins_;
    std::vector<std::unique_ptr<session_program>> programs_;
    bool closed_ = false;
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void session_base::close() {
    programs_.clear();
    origins_.clear();
    variables_ = {};
    closed_ = true;
}

TG_DEFINITION void session_base::check_open() const {
    if (closed_) throw argument_error("session: it is closed");
}

TG_DEFINITION session_program& session_base::program_of(const compiled_part* parts, int count) {
    check_open();
    for (const auto& p : programs_)
        if (p->key == parts) return *p;
    auto made = std::make_unique<session_program>();
    made->key = parts;
    const ir::program_view& first = *parts[0].program; // every part has the inputs of the whole, followed by its own
    made->defaults.resize(static_cast<std::size_t>(first.inputs.size()));
    for (int i = 0; i < first.inputs.size(); ++i) {
        const ir::input_entry& input = first.inputs[i];
        if (input.scalar_parameter && input.name == "optimizer") made->numbers.push_back(i);
        if (!input.has_default) continue;
        const ir::entry& e = first.nodes[input.node];
        any_tensor all_equal(e.type, shape(e.rank, first.pool.begin() + e.dims));
        buffer_view one;
        one.type = e.type;
        one.data = all_equal.write();
        for (std::int64_t k = 0; k < all_equal.size(); ++k) {
            runtime::store_scalar(one, input.fallback);
            one.data = static_cast<std::byte*>(one.data) + size_of(e.type);
        }
        made->defaults[static_cast<std::size_t>(i)] = std::move(all_equal);
    }
    made->parts.reserve(static_cast<std::size_t>(count));
    if (tasks_ != nullptr) made->tasks = tasks_->transfers();
    for (int k = 0; k < count; ++k) make_part(*made, parts[k]);
    connect_tasks(*made);
    return *programs_.emplace_back(std::move(made));
}

TG_DEFINITION void session_base::make_part(session_program& p, const compiled_part& from) {
    const ir::model_view& model = *from.model;
    make_variables(model);
    add_part(
        p, from, [&] { return device_of_place(from.place, device_, soft_placement_); },
        [&](int i) -> variable& { return variable_of(model, i); });
}

TG_DEFINITION void session_base::make_variables(const ir::model_view& view) {
    check_open();
    for (int i = 0; i < view.variables.size(); ++i) variable_of(view, i);
}

TG_DEFINITION variable& session_base::variable_of(const ir::model_view& view, int i) {
    std::string path = path_of_variable(view, i);
    if (variable* const known = variables_.find(path)) return *known;
    const device_scope on(nullptr); // initial values come from the CPU on every device
    const ir::variable_entry& entry = view.variables[i];
    const ir::variable_definition& v = view.definitions[i];
    variable& made = variables_.add(std::move(path), first_value(view, i, seed_), entry.trainable, v.state_of > 0);
    if (v.state_of > 0) fill_state(made, first_state_(*this, v.state_of - 1, entry.name));
    made.set_collection(std::string(v.collection));
    made.set_task(std::string(ir::task_of_variable(view, i)));
    origins_.push_back({&made, &view, i});
    return made;
}

TG_DEFINITION variable& session_base::iterations_of(int training) {
    const std::string path = "optimizer/" + std::to_string(training) + "/iterations";
    if (variable* const known = variables_.find(path)) return *known;
    any_tensor zero(dtype::f64, shape{});
    *static_cast<double*>(zero.write()) = 0;
    variable& made = variables_.add(path, std::move(zero), false, true);
    origins_.push_back({&made, nullptr, 0});
    return made;
}

TG_DEFINITION void session_base::initialize_all() {
    const device_scope on(nullptr);
    for (const origin& each : origins_) {
        if (each.view == nullptr) {
            *static_cast<double*>(each.made->overwrite()) = 0;
            continue;
        }
        each.made->restore(); // on every task
        each.made->held_by() = ~std::uint64_t{0};
        each.made->assign(first_value(*each.view, each.index, seed_));
        if (const int state_of = each.view->definitions[each.index].state_of; state_of > 0)
            fill_state(*each.made, first_state_(*this, state_of - 1, each.view->variables[each.index].name));
    }
}

// Whether a step of an optimizer keeps a variable: because it, or the variable that it is state of,
// is frozen.
TG_DEFINITION bool session_base::is_frozen(const variable& v) const {
    if (v.frozen() || !v.optimizer_state()) return v.frozen();
    std::string_view path = v.path();
    for (std::size_t slash = path.rfind('/'); slash != path.npos; slash = path.rfind('/')) {
        path = path.substr(0, slash);
        if (const variable* const owner = const_cast<variable_list&>(variables_).find(path)) return owner->frozen();
    }
    return false;
}

TG_DEFINITION void session_base::connect(session_part& p, bool training) {
    static char unused[64]; // unused inputs still need an address
    runtime::device_runtime* const on = p.program->device();
    for (int i = 0; i < p.view->variables.size(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        variable& v = *p.variables[k];
        const int frozen_input = p.view->variables[i].frozen_input;
        if (frozen_input > 0) p.program->set_parameter(frozen_input - 1, v.frozen() ? 1 : 0);
        if (p.used[k] == 0) {
            p.program->set_variable(i, unused);
        } else if (p.written[k] == 0) {
            p.program->set_variable(i, v.data().view_on(on).data, v.data().content());
        } else if (!training || !is_frozen(v)) {
            p.program->set_variable(i, v.own_data_on(on).data, v.data().content());
        } else {
            p.frozen[k] = v.data(); // shared until it is written to
            p.program->set_variable(i, p.frozen[k].write_on(on).data, p.frozen[k].content());
        }
    }
}

TG_DEFINITION void session_base::feed_inputs(session_program& p, session_part& part,
                                             const std::vector<const feed*>& feeds) {
    const ir::program_view& view = *part.view;
    for (std::size_t k = 0; k < feeds.size(); ++k) {
        for (std::size_t other = 0; other < k; ++other)
            if (feeds[other]->name == feeds[k]->name)
                throw argument_error("session: '" + std::string(feeds[k]->name) + "' is fed twice");
        int index = -1;
        for (int i = 0; i < view.inputs.size(); ++i)
            if (!view.inputs[i].scalar_parameter && view.inputs[i].from_part == 0 &&
                view.inputs[i].name == feeds[k]->name)
                index = i;
        if (index < 0) refuse_feed(view, feeds[k]->name);
        const any_tensor* value = &feeds[k]->value;
        if (const dtype type = view.nodes[view.inputs[index].node].type; is_fed_as(value->type(), type))
            value = &p.converted.emplace_back(fed_as(*value, type));
        part.program->set_input(index, value->view_on(part.program->device()));
    }
    for (int i = 0; i < view.inputs.size(); ++i) {
        if (!view.inputs[i].has_default) continue;
        bool fed = false;
        for (const feed* each : feeds) fed = fed || each->name == view.inputs[i].name;
        if (!fed) part.program->set_input(i, p.defaults[static_cast<std::size_t>(i)].view_on(part.program->device()));
    }
}

TG_DEFINITION void session_base::refuse_feed(const ir::program_view& view, std::string_view name) {
    std::string text = "session: no placeholder '" + std::string(name) + "'";
    bool first = true;
    for (const ir::input_entry& input : view.inputs)
        if (!input.scalar_parameter && input.from_part == 0)
            text.append(first ? ", there are '" : ", '").append(input.name).append("'"), first = false;
    throw argument_error(text + "; a value of the model is fed as given<\"" + std::string(name) + "\">(...)");
}

TG_DEFINITION void session_base::execute(session_program& p, const std::vector<const feed*>& feeds,
                                         const double* numbers, int count) {
    struct forget {
        session_program& whole;
        ~forget() {
            for (session_part& each : whole.parts)
                if (each.program != nullptr) each.program->forget_inputs();
            whole.converted.clear();
        }
    } const afterwards{p};
    const random_state random{seed_, step_};
    p.converted.reserve(feeds.size() * p.parts.size()); // reserved, so that they do not move
    run_of_tasks between(p, random, static_cast<std::int64_t>(step_), [&] {
        std::uint64_t hash = 0;
        for (const feed* each : feeds)
            hash = hash_values(bytes_of(each->value.view_on(nullptr)), hash_text(each->name, hash));
        return hash;
    });
    for (session_part& part : p.parts)
        if (part.program != nullptr) feed_inputs(p, part, feeds);
    for (std::size_t k = 0; k < p.parts.size(); ++k) {
        session_part& part = p.parts[k];
        if (part.program == nullptr) continue;
        const device_scope on(part.program->device());
        receive_values(p, part);
        connect(part, count > 0);
        for (int i = 0; i < count; ++i) part.program->set_parameter(p.numbers[static_cast<std::size_t>(i)], numbers[i]);
        part.program->run(random);
        between.sent(k);
    }
    between.end();
    p.logged = true;
    ++step_;
}

TG_DEFINITION void session_base::finish(session_program& p, bool training) {
    apply_updates(p, [&](const variable& v) { return training && is_frozen(v); });
}

#endif

} // namespace tapegraph::detail
