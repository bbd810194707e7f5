#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/nn/first_values.hpp>
#include <tapegraph/nn/session/fetches.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A session's variables and programs, of models of any type.

namespace tapegraph::detail {

/// A program of a session and what it is connected to.
struct session_program {
    const ir::program_view* view = nullptr;
    std::unique_ptr<ir::program> program;
    std::vector<variable*> variables;
    std::vector<char> written;            ///< of each variable, whether a run changes it
    std::vector<any_tensor> frozen, defaults; ///< copies of frozen variables; what unfed placeholders are
    int numbers = 0;                      ///< the first input that is an optimizer's number
};

template <class = void>
class basic_session {
public:
    /// Gives back all memory, of variables, too. Runs are refused from then on.
    void close() {
        programs_.clear();
        origins_.clear();
        variables_ = {};
        closed_ = true;
    }
    bool closed() const { return closed_; }
    /// Runs so far, from which random operations draw.
    std::uint64_t step() const { return step_; }

protected:
    basic_session(std::uint64_t seed, runtime::device_runtime* device) : seed_(seed), device_(device) {}

    void check_open() const {
        if (closed_) throw argument_error("session: it is closed");
    }
    session_program& program_of(const ir::program_view& view);
    void make_variables(const ir::program_view& view);
    void initialize_all();
    void execute(session_program& p, const std::vector<const feed*>& feeds, const double* numbers, int count);
    /// The count of an optimizer's steps: a variable, so that files hold it.
    variable& iterations_of(int training);

    std::uint64_t seed_ = 0, step_ = 0;
    runtime::device_runtime* device_;
    variable_list variables_;

private:
    variable& variable_of(const ir::program_view& view, int i);
    void connect(session_program& p, bool training);
    void feed_inputs(session_program& p, const std::vector<const feed*>& feeds);
    [[noreturn]] static void refuse_feed(const ir::program_view& view, std::string_view name);

    struct origin {
        variable* made;
        const ir::program_view* view; // null: an optimizer's count
        int index;
    };
    std::vector<origin> origins_;
    std::vector<std::unique_ptr<session_program>> programs_;
    bool closed_ = false;
};

template <class X>
session_program& basic_session<X>::program_of(const ir::program_view& view) {
    check_open();
    for (const auto& p : programs_)
        if (p->view == &view) return *p;
    auto made = std::make_unique<session_program>();
    made->view = &view;
    made->program = std::make_unique<ir::program>(view, device_);
    const auto count = static_cast<std::size_t>(view.variables.size());
    for (int i = 0; i < view.variables.size(); ++i) made->variables.push_back(&variable_of(view, i));
    made->written.resize(count);
    made->frozen.resize(count);
    for (const ir::assignment_entry& update : view.assignments)
        made->written[static_cast<std::size_t>(update.variable)] = 1;
    made->defaults.resize(static_cast<std::size_t>(view.inputs.size()));
    made->numbers = view.inputs.size();
    for (int i = view.inputs.size(); i-- > 0;) {
        const ir::input_entry& input = view.inputs[i];
        if (input.scalar_parameter && input.name == "optimizer") made->numbers = i;
        if (!input.has_default) continue;
        const ir::entry& e = view.nodes[input.node];
        any_tensor all(e.type, shape(e.rank, view.pool.begin() + e.dims));
        buffer_view one;
        one.type = e.type;
        one.data = all.write();
        for (std::int64_t k = 0; k < all.size(); ++k) {
            runtime::store_scalar(one, input.fallback);
            one.data = static_cast<std::byte*>(one.data) + size_of(e.type);
        }
        made->defaults[static_cast<std::size_t>(i)] = std::move(all);
    }
    return *programs_.emplace_back(std::move(made));
}

template <class X>
void basic_session<X>::make_variables(const ir::program_view& view) {
    check_open();
    for (int i = 0; i < view.variables.size(); ++i) variable_of(view, i);
}

template <class X>
variable& basic_session<X>::variable_of(const ir::program_view& view, int i) {
    std::string path = path_of_variable(view, i);
    if (variable* const known = variables_.find(path)) return *known;
    const device_scope on(nullptr); // first values come from the CPU on every device
    const ir::variable_entry& v = view.variables[i];
    variable& made = variables_.add(std::move(path), first_value(view, i, seed_), v.trainable, v.state);
    made.set_collection(std::string(v.collection));
    origins_.push_back({&made, &view, i});
    return made;
}

template <class X>
variable& basic_session<X>::iterations_of(int training) {
    const std::string path = "optimizer/" + std::to_string(training) + "/iterations";
    if (variable* const known = variables_.find(path)) return *known;
    any_tensor zero(dtype::f64, shape{});
    *static_cast<double*>(zero.write()) = 0;
    variable& made = variables_.add(path, std::move(zero), false, true);
    origins_.push_back({&made, nullptr, 0});
    return made;
}

template <class X>
void basic_session<X>::initialize_all() {
    const device_scope on(nullptr);
    for (const origin& each : origins_) {
        if (each.view != nullptr)
            each.made->assign(first_value(*each.view, each.index, seed_));
        else
            *static_cast<double*>(each.made->own_data()) = 0;
    }
}

template <class X>
void basic_session<X>::connect(session_program& p, bool training) {
    for (int i = 0; i < p.view->variables.size(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        variable& v = *p.variables[k];
        const int frozen_input = p.view->variables[i].frozen_input;
        if (frozen_input > 0) p.program->set_parameter(frozen_input - 1, v.frozen() ? 1 : 0);
        if (p.written[k] == 0) {
            p.program->set_variable(i, v.data().view_on(device_).data);
            continue;
        }
        const std::string_view path = v.path();
        const variable* owner = &v;
        for (std::size_t slash = path.rfind('/'); v.optimizer_state() && slash != path.npos;
             slash = slash == 0 ? path.npos : path.rfind('/', slash - 1))
            if (const variable* const found = variables_.find(path.substr(0, slash))) {
                owner = found;
                break;
            }
        if (!training || !owner->frozen()) {
            p.program->set_variable(i, v.own_data_on(device_).data);
            continue;
        }
        p.frozen[k] = v.data(); // shared until it is written to
        p.program->set_variable(i, p.frozen[k].write_on(device_).data);
    }
}

template <class X>
void basic_session<X>::feed_inputs(session_program& p, const std::vector<const feed*>& feeds) {
    const ir::program_view& view = *p.view;
    for (std::size_t k = 0; k < feeds.size(); ++k) {
        for (std::size_t other = 0; other < k; ++other)
            if (feeds[other]->name == feeds[k]->name)
                throw argument_error("session: '" + std::string(feeds[k]->name) + "' is fed twice");
        int index = -1;
        for (int i = 0; i < view.inputs.size(); ++i)
            if (!view.inputs[i].scalar_parameter && view.inputs[i].name == feeds[k]->name) index = i;
        if (index < 0) refuse_feed(view, feeds[k]->name);
        p.program->set_input(index, feeds[k]->value.view());
    }
    for (int i = 0; i < view.inputs.size(); ++i) {
        if (!view.inputs[i].has_default) continue;
        bool fed = false;
        for (const feed* each : feeds) fed = fed || each->name == view.inputs[i].name;
        if (!fed) p.program->set_input(i, p.defaults[static_cast<std::size_t>(i)].view());
    }
}

template <class X>
void basic_session<X>::refuse_feed(const ir::program_view& view, std::string_view name) {
    std::string text = "session: no placeholder '" + std::string(name) + "'";
    bool first = true;
    for (const ir::input_entry& input : view.inputs)
        if (!input.scalar_parameter)
            text.append(first ? ", there are '" : ", '").append(input.name).append("'"), first = false;
    throw argument_error(text + "; a value of the model is fed as given<\"" + std::string(name) + "\">(...)");
}

template <class X>
void basic_session<X>::execute(session_program& p, const std::vector<const feed*>& feeds, const double* numbers,
                               int count) {
    struct forget {
        ir::program& program;
        ~forget() { program.forget_inputs(); }
    } const afterwards{*p.program};
    feed_inputs(p, feeds);
    connect(p, count > 0);
    for (int i = 0; i < count; ++i) p.program->set_parameter(p.numbers + i, numbers[i]);
    const random_state random{seed_, step_};
    p.program->run(random);
    ++step_;
}

TG_COMPILED(nn, class basic_session<void>)

} // namespace tapegraph::detail
