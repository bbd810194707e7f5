#pragma once

#include <tapegraph/compile/placed/placed_programs.hpp>
#include <tapegraph/compile/placed/traced_parts.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/traced_program.hpp>
#include <tapegraph/model/first_values.hpp>
#include <tapegraph/model/outputs.hpp>
#include <tapegraph/model/taped_program.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// The mode of graphs that are made at run time, and what its models, functions, steps and sessions
/// share.

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

/// A program in parts on devices and tasks: what is traced, and what runs.
struct placed_part_programs {
    traced_parts traced;
    part_programs programs{};

    template <class Builder, class F>
    std::span<const compiled_part> of(const F& f) {
        if (!traced.made()) {
            const traced_now<F> now(f);
            traced = traced_parts(ir::traced_program::of<Builder>(false));
        }
        return traced.all();
    }
};

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
    static std::shared_ptr<traced_gradient> make();
    static std::shared_ptr<program_pool> pool_of(const std::shared_ptr<traced_gradient>& g);
};

/// The programs of a model, each made on its first use.
struct traced_model_programs {
    std::unique_ptr<ir::traced_program> training, evaluation, prediction, gradients;
    std::shared_ptr<traced_gradient> by_inputs = traced_gradient::make();
    placed_part_programs placed_training, placed_evaluation, placed_prediction;
    std::mutex predicting;

    traced_model_programs();
    traced_model_programs(const traced_model_programs&) = delete;
    traced_model_programs& operator=(const traced_model_programs&) = delete;
    ~traced_model_programs();
};

#if TG_DEFINES_FOR_HOST(nn)
TG_DEFINITION std::shared_ptr<traced_gradient> traced_gradient::make() { return std::make_shared<traced_gradient>(); }
TG_DEFINITION std::shared_ptr<program_pool> traced_gradient::pool_of(const std::shared_ptr<traced_gradient>& g) {
    return {g, &g->pool};
}
TG_DEFINITION traced_model_programs::traced_model_programs() = default;
TG_DEFINITION traced_model_programs::~traced_model_programs() = default;
#endif

/// Returns a result as tensor<T>; `who` is for messages.
template <class T>
tensor<T> typed_result(any_tensor&& value, const char* who) {
    if (value.type() != dtype_of<T>)
        throw dtype_error(std::string(who) + ": the result is " + name_of(value.type()) + " and would be a tensor of " +
                          name_of(dtype_of<T>) + ": cast it in the model, or ask predict<T>");
    return tensor<T>(std::move(value));
}
/// The element type of result I: its own one of several, or that of all.
template <std::size_t I, class... T>
using element_of_result = std::tuple_element_t<sizeof...(T) == 1 ? 0 : I, std::tuple<T...>>;
/// Returns all results in the structure in which the nodes are returned, of these element types.
template <class Result, class... T>
auto typed_results(std::vector<any_tensor> found, const char* who) {
    if constexpr (is_outputs<Result>) {
        return [&]<fixed_string... Names, class... Handles>(const outputs<named_output<Names, Handles>...>*) {
            static_assert(sizeof...(T) == 1 || sizeof...(T) == sizeof...(Handles),
                          "predict<T...>: one element type for all outputs, or one for each");
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return outputs{named_output<Names, tensor<element_of_result<I, T...>>>{
                    typed_result<element_of_result<I, T...>>(std::move(found[I]), who)}...};
            }
            (std::index_sequence_for<Handles...>{});
        }
        (static_cast<const Result*>(nullptr));
    } else {
        static_assert(sizeof...(T) == 1, "predict<T>: the model has one output");
        return typed_result<element_of_result<0, T...>>(std::move(found[0]), who);
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

} // namespace tapegraph
