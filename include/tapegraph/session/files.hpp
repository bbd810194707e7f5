#pragma once

#include <tapegraph/session/runner.hpp>
#include <tapegraph/train/model_base.hpp>

#include <utility>

namespace tapegraph {

/// A define-then-run model whose fetches are run by name: `session<model>` in graph mode
/// (session/session.hpp), `make_session<traced>(model)` where graphs are made at run time
/// (session/traced_session.hpp).
template <class Model, class Mode>
class session;

namespace detail {

inline constexpr const char* no_gradient_of_runs =
    "gradient_tape: a session's runs have no gradient on the tape; use tg::function, or take it inside the model";

/// What sessions of both modes do with their variables, which `Derived` provides.
template <class Derived>
class session_files : public session_base {
public:
    /// The model's variables; makes them if no run has.
    variable_list& variables() {
        make_variables(derived().variables_made_by_model());
        return variables_;
    }
    /// Writes all variables as safetensors, with optimizers' state. Needs #include
    /// <tapegraph/io/weights.hpp>; throws as model.save does. A session of the same seed that loads
    /// the file continues exactly where this one stopped.
    template <class Path>
    void save(const Path& path, const save_options& options = {.optimizer_state = true}) {
        static_assert(detail::weight_files_known<Path>(), "session.save needs #include <tapegraph/io/weights.hpp>");
        derived().make_everything();
        gather_variables();
        if (tasks_ != nullptr && tasks_->rank() != tasks_->chief()) return;
        if constexpr (detail::weight_files_known<Path>())
            detail::weight_file<Path>::save(
                path, detail::model_to_save{variables_, static_cast<std::int64_t>(step_), seed_, {}, true}, options);
    }
    /// Reads what `save` wrote. Throws as model.load does; then nothing has changed.
    template <class Path>
    load_report load(const Path& path, const load_options& options = {}) {
        static_assert(detail::weight_files_known<Path>(), "session.load needs #include <tapegraph/io/weights.hpp>");
        derived().make_everything();
        gather_variables();
        auto steps = static_cast<std::int64_t>(step_);
        detail::state_entries run; // for a model's fit; a session has none
        load_report report;
        if constexpr (detail::weight_files_known<Path>())
            report = detail::weight_file<Path>::load(path, detail::model_to_load{variables_, steps, seed_, run, true},
                                                     options);
        step_ = static_cast<std::uint64_t>(steps);
        return report;
    }

    // clang-format off
    no_such_option_in<save_options> save(any_argument, ...) TG_MISTAKE;
    no_such_option_in<load_options> load(any_argument, ...) TG_MISTAKE;
    // clang-format on

    /// If tasks compute parts of the model, gives all of them every variable until a run changes
    /// it. Call it on every task.
    void gather_variables() {
        if (tasks_ != nullptr) tasks_->gather(variables_);
    }

    /// Chooses whether the CPU computes parts of the model that are placed on a missing GPU (the
    /// default), or whether the first run throws device_error.
    void set_soft_placement(bool soft) { soft_placement_ = soft; }

    /// Gives all variables their initial values again, and resets optimizers.
    void initialize() {
        check_open();
        initialize_all();
    }

protected:
    using session_base::session_base;

private:
    Derived& derived() { return static_cast<Derived&>(*this); }
};

} // namespace detail
} // namespace tapegraph
