#pragma once

#include <tapegraph/graph/traced_program.hpp>
#include <tapegraph/nn/compile.hpp>
#include <tapegraph/nn/compiled_traces.hpp>
#include <tapegraph/nn/function.hpp>
#include <tapegraph/nn/graph_trainer.hpp>
#include <tapegraph/nn/model.hpp>
#include <tapegraph/nn/model_verdict.hpp>
#include <tapegraph/nn/optimizers.hpp>
#include <tapegraph/nn/place.hpp>
#include <tapegraph/nn/training.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

/// Models and functions whose graph is made at run time: `compile<traced>` and `function<traced>`.

namespace tapegraph {

/// The mode of graphs that are made at run time. Models may have data members and captures, and may
/// loop and branch on values known at tracing. Each program calls them once, with nodes, as in
/// graph mode.
struct traced {};

namespace detail {

/// Gives builders a callable that exists only at run time. Only the thread that traces reads it,
/// while it traces.
template <class F>
struct at_run_time {
    static constexpr bool is_traced_at_run_time = true;
    static inline thread_local const F* current = nullptr;
    static const F& get() { return *current; }
    template <class... X>
    auto operator()(const X&... x) const {
        return (*current)(x...);
    }
};

/// Makes a callable the one that this thread traces, while it lives.
template <class F>
class traced_now {
public:
    explicit traced_now(const F& f) : before_(std::exchange(at_run_time<F>::current, &f)) {}
    traced_now(const traced_now&) = delete;
    traced_now& operator=(const traced_now&) = delete;
    ~traced_now() { at_run_time<F>::current = before_; }

private:
    const F* before_;
};

/// Makes a program on its first use.
template <class Builder, class F>
const ir::traced_program& made_once(std::unique_ptr<ir::traced_program>& program, const F& f) {
    if (!program) {
        const traced_now<F> now(f);
        program = ir::traced_program::of<Builder>();
    }
    return *program;
}

/// What calls on a tape keep: the derivative's program, and its instances.
struct traced_gradient {
    std::unique_ptr<ir::traced_program> program;
    program_pool pool;
    std::mutex making;

    /// The gradient of `forward`, the program that `Forward` makes of f.
    template <class Forward, class F>
    ir::input_gradient of(const ir::traced_program& forward, const F& f) {
        if (forward.traced().differentiated) return {nullptr, "it takes derivatives itself"};
        const std::lock_guard one_at_a_time(making);
        return {&made_once<ir::input_gradient_trace<Forward>>(program, f).view(), nullptr};
    }
    static std::shared_ptr<program_pool> pool_of(const std::shared_ptr<traced_gradient>& g) { return {g, &g->pool}; }
};

/// Returns a result as tensor<T>; `who` is for messages.
template <class T>
tensor<T> typed_result(any_tensor&& value, const char* who) {
    if (value.type() != dtype_of<T>)
        throw dtype_error(std::string(who) + ": the result is " + name_of(value.type()) + " and would be a tensor of " +
                          name_of(dtype_of<T>) + ": cast it in the model, or ask predict_any");
    return tensor<T>(std::move(value));
}
/// Returns all results in the structure in which the nodes are returned.
template <class Result, class T>
auto typed_results(std::vector<any_tensor> found, const char* who) {
    if constexpr (is_outputs<Result>) {
        return [&]<fixed_string... Names, class... Handles>(const outputs<named_output<Names, Handles>...>*) {
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return outputs{named_output<Names, tensor<T>>{typed_result<T>(std::move(found[I]), who)}...};
            }
            (std::index_sequence_for<Handles...>{});
        }
        (static_cast<const Result*>(nullptr));
    } else {
        return typed_result<T>(std::move(found[0]), who);
    }
}
/// Throws argument_error for parts that scope.with_device gives to another device or a task.
template <class = void>
void refuse_placement(const ir::model_view& traced, bool on_gpu) {
    for (const ir::entry& e : traced.nodes) {
        if (e.task == 0 && !place::is_gpu(e.place) && (e.place == place::anywhere || !on_gpu)) continue;
        const std::string scope = path_of(traced.scopes, e.scope);
        const std::string where = e.task > 0 ? std::string(traced.tasks[e.task - 1]) : place::text(e.place);
        throw argument_error(
            "with_device: " + std::string(e.op->name) + (scope.empty() ? "" : ", in scope '" + scope + "'") +
            ", is given to " + where +
            ", but a graph that is made when the program runs is computed as a whole; tg::graph and tg::eager place "
            "its parts");
    }
}
/// The functions that make the initial values of variables.
template <class Model>
first_value_functions first_values_at_run_time() {
    first_value_functions init;
    init.of_float = &initialize<float>;
    init.of_double = &initialize<double>;
    if constexpr (requires { sizeof(projections<Model>); }) init.project = projections<Model>::project;
    return init;
}

template <class T>
struct elements_at_run_time {
    template <int>
    static tensor<T> typed(any_tensor&& value) {
        return typed_result<T>(std::move(value), "function");
    }
};

} // namespace detail

/// A model whose graph is made at run time.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<traced, Model, Spec, Loss, Optimizer>
    : public trainable_model<compiled_model<traced, Model, Spec, Loss, Optimizer>, Spec, Loss,
                             detail::basic_graph_trainer<>> {
    using base = trainable_model<compiled_model, Spec, Loss, detail::basic_graph_trainer<>>;
    using model = detail::at_run_time<Model>;
    using training = ir::training_trace<model, Spec, Loss, Optimizer>;
    using prediction = ir::prediction_trace<model, Spec>;
    friend base;

public:
    compiled_model(const Model& m, const compile_options& options, const Loss& loss, const Optimizer& optimizer)
        : base(options, loss), model_(m), optimizer_(optimizer) {
        const detail::traced_now<Model> now(model_);
        const auto layers = ir::traced_program::of<ir::prediction_trace<model, Spec, true>>(false);
        constexpr bool trains = !std::is_same_v<Optimizer, none>;
        const auto whole = ir::traced_program::of<std::conditional_t<trains, training, prediction>>(false);
        detail::refuse_placement(layers->view(), this->device_ != nullptr);
        detail::model_base::read_traces(*this, layers->view(), whole->view(), detail::first_values_at_run_time<model>(),
                                        trains);
        this->set_first_values(optimizer_);
        this->gradients_ = detail::traced_gradient::pool_of(programs_->by_inputs);
    }

    Optimizer& optimizer() { return optimizer_; }
    const Model& definition() const { return model_; }
    /// Traces the prediction again, for the export (io/onnx.hpp).
    void trace_prediction(ir::model_trace& t) const {
        const detail::traced_now<Model> now(model_);
        static_assert(ir::detail::count_stages<prediction>() == 1);
        prediction::build(t);
        if (t.error.what != nullptr) throw shape_error(ir::detail::error_line(t));
    }
    /// Bytes of the training program's arena; known once a batch size is bound.
    std::size_t arena_bytes() const { return this->training_ ? this->training_->arena_bytes() : 0; }
    const ir::program_view& training_view() const {
        return detail::made_once<training>(programs_->training, model_).view();
    }
    /// Plans the training step for a batch size before the first step.
    ir::program& training_program() { return this->training_program_of(training_view()); }

private:
    using value_type = typename detail::value_type_of<Spec>::type;

    ir::program& next_step() {
        const auto numbers = optimizer_.numbers(this->step_);
        ir::program& p = this->prepared_step(training_view());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        base::set_numbers(p, "optimizer", numbers);
        return p;
    }
    step_result step_once(detail::batch_columns columns) { return this->run_step(next_step(), columns); }
    detail::launched_step launch_once(detail::batch_columns columns) { return this->launch_step(next_step(), columns); }
    step_result result_of(const detail::launched_step& s) { return this->published(s); }

    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        using gradients = ir::gradient_output_trace<model, Spec, Loss>;
        ir::program& p = this->gradient_program_of(detail::made_once<gradients>(programs_->gradients, model_).view());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->gradients_with(p, columns);
    }

    step_result measure_once(detail::batch_columns columns) {
        using evaluation = ir::evaluation_trace<model, Spec, Loss>;
        ir::program& p =
            this->evaluation_program_of(detail::made_once<evaluation>(programs_->evaluation, model_).view());
        base::set_numbers(p, "loss", this->numbers_of_loss());
        return this->measure_with(p, columns);
    }

    std::vector<any_tensor> predict_any_once(std::span<const any_tensor> x) const {
        const ir::program_view& view = predicting().view();
        typename base::prediction_calls calls{&view, nullptr, this};
        const auto floats = [](const any_tensor& each) { return is_floating(each.type()); };
        if (std::any_of(x.begin(), x.end(), floats))
            calls.gradient = [](const void* self) {
                const auto& m = *static_cast<const compiled_model*>(self);
                return m.programs_->by_inputs->template of<prediction>(m.predicting(), m.model_);
            };
        std::vector<any_tensor> results(static_cast<std::size_t>(view.outputs.size()));
        this->predict_with(calls, {x.begin(), x.end()}, results);
        return results;
    }
    template <class... T>
    auto predict_once(const tensor<T>&... x) const {
        const any_tensor inputs[]{x...};
        using result = decltype(ir::trace_model<model, Spec>(std::declval<ir::model_trace&>()));
        return detail::typed_results<result, value_type>(predict_any_once(inputs), "predict");
    }
    // Several threads may predict first.
    const ir::traced_program& predicting() const {
        const std::lock_guard one_at_a_time(programs_->predicting);
        return detail::made_once<prediction>(programs_->prediction, model_);
    }

    struct programs {
        std::unique_ptr<ir::traced_program> training, evaluation, prediction, gradients;
        std::shared_ptr<detail::traced_gradient> by_inputs = std::make_shared<detail::traced_gradient>();
        std::mutex predicting;
    };
    Model model_;
    Optimizer optimizer_;
    std::unique_ptr<programs> programs_ = std::make_unique<programs>(); // held by pointer, because views point into it
};

    /// A function whose graph is made at run time.
    template <class F, class... Specs>
    class traced_function {
        using trace = detail::function_trace<detail::at_run_time<F>, Specs...>;

    public:
        explicit traced_function(const F& f) : f_(std::make_unique<F>(f)) {
            program_ = std::make_unique<ir::program>(detail::made_once<trace>(traced_, *f_).view());
        }

        /// Runs the graph. Results are tensors of the arguments' floating type, in the structure in
        /// which the function returns nodes; on a gradient_tape as for graph_function.
        auto operator()(const tensor<typename Specs::element_type>&... arguments) {
            const device_scope on(program_->device());
            int index = 0;
            (program_->set_input(index++, arguments.view()), ...);
            const random_state random = random_.next();
            detail::call_results<> results(*program_);
            program_->run(random);
            const detail::tape_storage& tape = detail::tape_storage::instance();
            tape_index place;
            if constexpr (differentiable)
                if (tape.recording() && (tape.tracks(arguments) || ...)) place = record(random, {arguments...});
            return detail::returned<typename trace::result>::template rebuild<detail::elements_at_run_time<value_type>,
                                                                              0>(results, place);
        }

        /// Makes calls draw from this seed, counted from now, instead of the thread's
        /// (random::set_seed).
        void set_seed(std::uint64_t seed) { random_.set_seed(seed); }

        const ir::program_view& view() const { return program_->view(); }
        ir::program& program() { return *program_; }

    private:
        static constexpr bool differentiable = (is_floating(dtype_of<typename Specs::element_type>) || ...);
        static constexpr bool wide = (std::is_same_v<typename Specs::element_type, double> || ...);
        using value_type = std::conditional_t<wide, double, float>;

        tape_index record(const random_state& random, std::vector<any_tensor> arguments) {
            detail::taped_call call(*program_, random, std::move(arguments));
            if (!gradient_) gradient_ = std::make_shared<detail::traced_gradient>();
            call.gradient = gradient_->of<trace>(*traced_, *f_);
            call.programs = detail::traced_gradient::pool_of(gradient_);
            return detail::record_program(call);
        }

        std::unique_ptr<F> f_;
        std::unique_ptr<ir::traced_program> traced_;
        std::unique_ptr<ir::program> program_;
        std::shared_ptr<detail::traced_gradient> gradient_;
        detail::call_counter random_;
    };

} // namespace tapegraph
