#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/cpu/callers.hpp>
#include <tapegraph/graph/compile.hpp>
#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/model/first_values.hpp>
#include <tapegraph/model/model_signature.hpp>
#include <tapegraph/model/state_archive.hpp>
#include <tapegraph/model/task_group.hpp>
#include <tapegraph/model/weight_options.hpp>
#include <tapegraph/train/summary.hpp>
#include <tapegraph/train/traces.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph {

/// Options of compile.
struct compile_options {
    std::uint64_t seed = 0; ///< for variables' initial values, random operations and shuffling
    /// Checks after every step whether all values are finite; throws numeric_error that names the
    /// step and the first operation.
    bool check_finite = false;
    /// The device on which the model computes, as device_scope chooses it; by default that of the
    /// thread.
    std::optional<tapegraph::device> device{};
    /// How a GPU multiplies floats for this model (core/math_mode.hpp) and for its gradients; by
    /// default the process's math_mode.
    std::optional<tapegraph::math_mode> math_mode{};
    /// Variables of another model or step that this one shares: those of equal paths become one
    /// variable. The other one's paths begin with `shared_scope`, if that is not empty. Optimizers'
    /// state is not shared.
    variable_list* shared{};
    std::string_view shared_scope{};
    /// The tasks of a cluster that compute the parts that scope.with_device gives them by name,
    /// "/job:worker/task:1", and hold their variables: `server.tasks()`
    /// (tapegraph/distributed.hpp), which must outlive the model. Every task makes the model and
    /// trains it on the same batches. Null: everything is computed here.
    task_group* tasks = nullptr;
    /// The CPU computes parts that scope.with_device places on a missing GPU, after a line on
    /// stderr; if false, they are a device_error.
    bool soft_placement = true;
};

namespace detail {

/// Sets all elements of a variable, float or double.
void fill_state(variable& v, double value);

/// Weights in files. Defined in tapegraph/io/weights.hpp.
template <class Path>
struct weight_file;
template <class Path>
constexpr bool weight_files_known() {
    return requires { sizeof(weight_file<Path>); };
}

/// The parts of a model that files hold.
template <class Variables, class Step, class Seed, class Run>
struct stored_model {
    Variables& variables;
    Step& step;
    Seed& seed;
    Run& run; ///< where its last fit stopped
    bool trains;
};
using model_to_save = stored_model<const variable_list, const std::int64_t, const std::uint64_t, const state_entries>;
using model_to_load = stored_model<variable_list, std::int64_t, std::uint64_t, state_entries>;

/// Everything about a model that does not depend on its mode.
class model_base {
public:
    /// While it lives, this thread computes on the model's device and in its math_mode. `works`:
    /// whether the thread computes all the time, and does not wait for batches meanwhile.
    struct computing {
        device_scope where;
        math_mode_scope how;
        cpu::at_work working;
        explicit computing(const model_base& m, bool works = true)
            : where(m.device_), how(m.options_.math_mode), working(works && m.device_ == nullptr) {}
    };

    /// Writes the model's variables by path as safetensors; an older file is replaced only by a
    /// complete new one. Needs #include <tapegraph/io/weights.hpp>. Throws data_error if writing
    /// fails, and argument_error for {.everything = true} in a hook of fit other than
    /// on_checkpoint. Among ranks that train together only the chief writes: the others' calls do
    /// nothing.
    template <class Path>
    void save(const Path& path, const save_options& options = {}) const {
        static_assert(weight_files_known<Path>(), "model.save needs #include <tapegraph/io/weights.hpp>");
        if constexpr (weight_files_known<Path>()) {
            if (options.everything && fitting_)
                throw argument_error("save: in the middle of fit, what resumes it is saved in on_checkpoint, which "
                                     "request_checkpoint() asks for");
            if (options.optimizer_state || options.everything) gather_optimizer_state();
            gather_variables();
            if (!writes_files_ && !requires { Path::of_every_rank; }) return;
            weight_file<Path>::save(path, model_to_save{variables_, step_, options_.seed, run_, trains_}, options);
        }
    }
    /// Reads what `save` wrote, in either mode, or any safetensors file of the same names. Throws
    /// data_error for a tensor that is missing or unknown to the model, shape_error and dtype_error
    /// for one that does not fit, and argument_error for a pattern, prefix or name that nothing
    /// matches; then nothing of the model has changed. Needs #include <tapegraph/io/weights.hpp>.
    template <class Path>
    load_report load(const Path& path, const load_options& options = {}) {
        static_assert(weight_files_known<Path>(), "model.load needs #include <tapegraph/io/weights.hpp>");
        gather_optimizer_state();
        gather_variables();
        if constexpr (weight_files_known<Path>())
            return weight_file<Path>::load(path, model_to_load{variables_, step_, options_.seed, run_, trains_},
                                           options);
        else
            return {};
    }

    // clang-format off
    no_such_option_in<save_options> save(any_argument, ...) const TG_MISTAKE;
    no_such_option_in<load_options> load(any_argument, ...) TG_MISTAKE;
    // clang-format on

    /// Whether `save` and the callbacks of fit write: among ranks that train together only the
    /// chief does.
    bool writes_files() const { return writes_files_; }

    /// If ranks keep slices of the optimizer's state (zero_redundancy), gives all of them the whole
    /// state until the next step. Call it on every rank.
    void gather_optimizer_state() const {
        if (gather_state_ != nullptr) gather_state_(const_cast<model_base&>(*this));
    }

    /// If tasks compute parts of the model, gives all of them every variable until the next step.
    /// Call it on every task. `save` and `load` do it themselves.
    void gather_variables() const {
        if (options_.tasks != nullptr) options_.tasks->gather(const_cast<variable_list&>(variables_));
    }

    /// The model's variables, followed by the optimizer's.
    variable_list& variables() { return variables_; }
    const variable_list& variables() const { return variables_; }
    /// Steps trained so far.
    std::int64_t step() const { return step_; }
    /// For steps that are taken elsewhere, from `gradients`: sets the number of steps trained.
    /// Throws argument_error below 0.
    void set_step(std::int64_t step);
    /// The layer table as text: type, output shape and parameters of each layer, and totals.
    std::string summary() const;
    /// Numbers in the model's variables, without the optimizer's.
    std::int64_t parameter_count() const { return summary_.parameters; }
    /// Names, element types and shapes of the model's inputs, labels and outputs.
    const model_signature& signature() const { return signature_; }
    /// Whether it was compiled with a loss.
    bool trains() const { return trains_; }
    /// Numbers that training changes; frozen variables do not count.
    std::int64_t trainable_parameter_count() const;

protected:
    explicit model_base(const compile_options& options);
    model_base(model_base&&) = default;
    model_base& operator=(model_base&&) = default;
    ~model_base();

    // Variables and the layer table come from traces made by the compiler, so both modes hold the
    // same variables in the same order with the same initial values. `all` also has the optimizer's
    // state, after the model's variables.
    template <class Model, class Spec, class AllTrace>
    void set_up() {
        set_up_traces<ir::prediction_trace<Model, Spec, true>, AllTrace>(
            !std::is_same_v<AllTrace, ir::prediction_trace<Model, Spec>>);
    }
    template <class ModelTrace, class AllTrace>
    void set_up_traces(bool trains) {
        constexpr ir::model_view model = ir::stage_view<ir::traced_stage<ModelTrace>>();
        constexpr ir::model_view all = ir::stage_view<ir::traced_stage<AllTrace>>();
        first_value_functions init;
        if constexpr (ir::has_variable_of(all, dtype::f32)) init.of_float = &initialize<float>;
        if constexpr (ir::has_variable_of(all, dtype::f64)) init.of_double = &initialize<double>;
        if constexpr (all.constraints.size() > 0) init.project = projections<AllTrace>::project;
        read_traces(*this, model, all, init, trains);
    }

    // The optimizer's state begins at zero, or at what the optimizer defines.
    template <class Optimizer>
    void set_first_values(const Optimizer& optimizer) {
        if constexpr (requires { optimizer.first_value(std::string_view()); })
            for (variable& v : variables_)
                if (v.optimizer_state())
                    fill_state(v, optimizer.first_value(std::string_view(v.path()).substr(v.path().rfind('/') + 1)));
    }

    static void read_traces(model_base& m, const ir::model_view& model, const ir::model_view& all,
                            const first_value_functions& init, bool trains);

    compile_options options_;
    runtime::device_runtime* device_; // null: the CPU
    variable_list variables_;
    model_summary summary_;
    model_signature signature_;
    std::int64_t step_ = 0;
    state_entries run_;    // where the last fit, or the one of the loaded file, stopped
    bool fitting_ = false; // in which case `run_` is out of date
    bool trains_ = true;   // false: made for prediction alone
    bool writes_files_ = true;
    bool reads_part_ = false; // fit was given the part of a data set that one rank reads
    int rank_ = 0, rank_count_ = 1;
    void (*gather_state_)(model_base&) = nullptr;
};

#if TG_DEFINES_FOR_HOST(nn)
TG_DEFINITION model_base::model_base(const compile_options& options)
    : options_(options), device_(runtime::current_runtime()) {
    if (options.device) device_ = runtime::runtime_for(*options.device);
    if (options.tasks != nullptr) writes_files_ = options.tasks->rank() == options.tasks->chief();
}
TG_DEFINITION model_base::~model_base() = default;
#endif

/// Reads the signature off a model's trace. `all`: a trace that also has labels, after its inputs.
model_signature signature_of(const ir::program_view& model, const ir::program_view& all);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void fill_state(variable& v, double value) {
    if (value == 0) return;
    void* const to = v.overwrite();
    if (v.type() == dtype::f64)
        std::fill_n(static_cast<double*>(to), v.size(), value);
    else
        std::fill_n(static_cast<float*>(to), v.size(), static_cast<float>(value));
}

TG_DEFINITION std::string model_base::summary() const {
    model_summary s = summary_;
    s.trainable = trainable_parameter_count();
    return s.text();
}

TG_DEFINITION model_signature signature_of(const ir::program_view& model, const ir::program_view& all) {
    model_signature s;
    const auto add = [](std::vector<tensor_signature>& to, const ir::program_view& v, std::string_view name, int node) {
        const ir::entry& e = v.nodes[node];
        to.push_back({std::string(name), e.type, {}});
        for (int i = 0; i < e.rank; ++i)
            to.back().shape.push_back(std::max<std::int64_t>(v.pool[e.dims + i], -1)); // lower values are other symbols
    };
    for (const ir::input_entry& input : model.inputs)
        if (!input.scalar_parameter) add(s.inputs, model, input.name, input.node);
    std::size_t before = s.inputs.size();
    for (const ir::input_entry& input : all.inputs) {
        if (input.scalar_parameter || (before > 0 && before-- > 0)) continue;
        add(s.labels, all, input.name.starts_with(ir::labels_prefix::name) ? "labels" : input.name, input.node);
    }
    for (const ir::output_entry& output : model.outputs) add(s.outputs, model, output.name, output.node);
    return s;
}

TG_DEFINITION void model_base::read_traces(model_base& m, const ir::model_view& model, const ir::model_view& all,
                                           const first_value_functions& init, bool trains) {
    m.trains_ = trains;
    const device_scope on(nullptr); // initial values come from the CPU on every device
    m.summary_ = describe_model(model);
    m.signature_ = signature_of(model, all);
    for (int i = 0; i < all.variables.size(); ++i) {
        const ir::variable_entry& v = all.variables[i];
        std::string path = path_of_variable(all, i);
        any_tensor data = first_value(all, i, m.options_.seed, init);
        const bool state = i >= m.summary_.variables && !path.starts_with("__metrics__/");
        if (m.options_.shared != nullptr && i < m.summary_.variables &&
            m.variables_.share(*m.options_.shared, m.options_.shared_scope, path, data, v.trainable))
            continue;
        variable& made = m.variables_.add(std::move(path), std::move(data), v.trainable, state);
        regularizer r;
        constraint c;
        for (const ir::weight_rule& rule : all.regularizers)
            if (rule.variable == i) r = {static_cast<regularizer_kind>(rule.kind), rule.a, rule.b};
        for (const ir::weight_rule& rule : all.constraints)
            if (rule.variable == i)
                c = {static_cast<constraint_kind>(rule.kind), rule.a, rule.b, rule.c, rule.along, init.project};
        made.set_rules(r, c);
        made.set_collection(std::string(all.definitions[i].collection));
        made.set_task(std::string(ir::task_of_variable(all, i)));
    }
}

#endif

} // namespace detail

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::int64_t detail::model_base::trainable_parameter_count() const {
    std::int64_t count = 0;
    for (const variable& v : variables_)
        if (v.trainable()) count += v.size();
    return count;
}

TG_DEFINITION void detail::model_base::set_step(std::int64_t step) {
    if (step < 0) throw argument_error("set_step: " + std::to_string(step));
    step_ = step;
}

#endif

} // namespace tapegraph
