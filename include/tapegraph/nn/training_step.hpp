#pragma once

#include <tapegraph/graph/compile.hpp>
#include <tapegraph/graph/input_rules.hpp>
#include <tapegraph/nn/eager_model.hpp>
#include <tapegraph/nn/graph_trainer.hpp>
#include <tapegraph/nn/graph_updates.hpp>
#include <tapegraph/nn/model.hpp>
#include <tapegraph/nn/placed_programs.hpp>

#include <array>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Training steps of one's own: several models, losses and optimizers in one compiled step. Not part of tapegraph.hpp.
///
///     struct gan {
///         constexpr auto operator()(auto step, auto images) const {
///             ...
///             step.template minimize<0>(d_loss, "discriminator");
///             step.template minimize<1>(g_loss, "generator");
///             return tg::outputs{tg::output<"d_loss">(d_loss), tg::output<"g_loss">(g_loss)};
///         }
///     };
///     auto train = tg::compile_step<tg::graph>(gan{}, spec, tg::optimizers{tg::adam{}, tg::adam{}});
///     const auto [d_loss, g_loss] = train(images);

namespace tapegraph {

/// The optimizers of a step, which `minimize` names by their numbers.
template <class... Each>
struct optimizers {
    std::tuple<Each...> each;
    constexpr explicit optimizers(const Each&... them) : each(them...) {}

    /// A bit for each that scales its losses.
    static constexpr std::uint64_t scaled = [] {
        std::uint64_t mask = 0, bit = 1;
        ((mask |= detail::scales_loss<Each>() ? bit : 0, bit <<= 1), ...);
        return mask;
    }();
};

/// What a step is given in graph mode: a scope that can minimize.
class graph_step : public graph_scope {
public:
    constexpr explicit graph_step(ir::trace* t) : graph_scope(t, 0) {}

    /// Makes a scalar loss smaller by optimizer number `Optimizer`, changing the trainable variables whose path, or a scope's above it, the
    /// pattern is. All losses and gradients of a step are of the variables before it; updates apply at its end. A pattern that matches
    /// nothing and a variable that two losses would change are errors.
    template <int Optimizer = 0, tensor_like E>
    constexpr void minimize(const E& loss, std::string_view variables = "*",
                            std::source_location where = std::source_location::current()) const {
        const graph_node node = eval(loss, where);
        ir::trace& t = owner();
        const operand_info given = t.info(node.id());
        for (int i = 0; i < given.dims.rank(); ++i)
            if (given.dims[i].value != 1)
                return t.fail("minimize: a loss must be a scalar (reduce it, say with mean)", &given, 1);
        t.minimizations.push_back({node.id(), Optimizer, t.intern(where), variables});
    }
};

namespace detail {

/// A loss that a step in eager mode minimizes.
struct eager_minimization {
    any_tensor loss;
    int optimizer;
    std::string variables;
};

} // namespace detail

/// What a step is given in eager mode.
class eager_step : public eager_scope {
public:
    eager_step(eager_context* context, std::vector<detail::eager_minimization>* found)
        : eager_scope(context), found_(found) {}

    template <int Optimizer = 0, tensor_like E>
    void minimize(const E& loss, std::string_view variables = "*",
                  std::source_location where = std::source_location::current()) const {
        found_->push_back({eval(loss, where), Optimizer, std::string(variables)});
    }

private:
    std::vector<detail::eager_minimization>* found_;
};

namespace ir {

/// What a step computes, without its updates.
template <class Step, class Spec>
struct step_trace {
    static constexpr auto call(trace& t) {
        const auto x = tapegraph::detail::input_pack<Spec>::map([&](auto spec, std::string_view name) {
            using T = typename decltype(spec)::element_type;
            return graph_node(&t, t.input(name, dtype_of<T>, spec.dims(t.extents)));
        });
        return std::apply(
            [&](const auto&... each) { return tapegraph::detail::sealed_result(Step::get()(graph_step(&t), each...)); },
            x);
    }
    using result = decltype(call(std::declval<trace&>()));
    static constexpr void build(trace& t) {
        t.training = true;
        const auto y = call(t);
        using pack = tapegraph::detail::output_pack<result>;
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (t.outputs.push_back({pack::names[I], pack::template get<I>(y).id()}), ...);
        }
        (std::make_index_sequence<pack::count>{});
        t.scope = 0;
        if (t.added_losses.size() > 0)
            t.fail("add_loss: in a step, somebody has to take it, by step.with_added_losses(loss)");
        if (t.minimizations.size() == 0) t.fail("a step minimizes nothing: step.minimize(loss, \"variables\")");
    }
};

/// Where a step's optimizer has its scale of the loss: a step with one has it where a model has it.
constexpr int step_scale_scope(trace& t, int optimizer) { return optimizer == 0 ? 0 : optimizer_scope(t, optimizer); }

/// The gradient of each loss by the variables that it names. `Scaled`: a bit for each optimizer that scales its losses.
template <class Step, class Spec, std::uint64_t Scaled>
struct step_gradients {
    using previous = step_trace<Step, Spec>;
    static constexpr void build(trace& t) {
        if (t.row_uses.size() > 0) return t.fail("embeddings with sparse gradients are not for steps of one's own");
        list<int> taken(t.variables.size(), 0);
        int number = 0;
        for (const minimization_entry& m : t.minimizations) {
            t.line = m.line;
            t.scope = 0;
            list<int> nodes, indices;
            for (int i = 0; i < t.variables.size(); ++i) {
                if (!t.variables[i].trainable) continue;
                const list<char> path = detail::path_text(t, i);
                if (!tapegraph::detail::path_matches(m.variables,
                                                     {path.begin(), static_cast<std::size_t>(path.size())}))
                    continue;
                nodes.push_back(t.variables[i].node);
                indices.push_back(i);
            }
            if (nodes.size() == 0) return t.fail("minimize: no trainable variable has a path of this pattern");
            const auto scaled = [&](int loss) {
                if ((Scaled >> m.optimizer & 1) == 0) return loss;
                using T = typename tapegraph::detail::value_type_of<Spec>::type;
                const graph_scope own(&t, step_scale_scope(t, m.optimizer));
                return scaled_loss<T>(t, graph_node(&t, loss), own, m.optimizer + 1).id();
            };
            list<int> found = gradient(t, scaled(m.node), nodes);
            if (t.regularizers.size() > 0) { // penalties go with the loss that changes the variable
                list<int> changed(t.variables.size(), 0);
                for (int k = 0; k < found.size(); ++k)
                    if (found[k] >= 0) changed[indices[k]] = 1;
                const int penalized = with_penalties<Step>(t, m.node, changed);
                if (penalized != m.node) found = gradient(t, scaled(penalized), nodes);
            }
            for (int k = 0; k < found.size(); ++k) {
                if (found[k] < 0) continue; // the loss does not depend on it
                if (taken[indices[k]] != 0) return t.fail("minimize: two losses of one step change the same variable");
                taken[indices[k]] = 1;
                t.gradients.push_back({indices[k], found[k], -1, m.optimizer, 0, false, number});
            }
            ++number;
        }
        t.minimizations.clear();
    }
};

/// The updates.
template <class Step, class Spec, class Optimizers>
struct step_updates;
template <class Step, class Spec, class... Each>
struct step_updates<Step, Spec, optimizers<Each...>> {
    using previous = step_gradients<Step, Spec, optimizers<Each...>::scaled>;
    static constexpr void build(trace& t) {
        for (const gradient_entry& g : t.gradients)
            if (g.optimizer < 0 || g.optimizer >= static_cast<int>(sizeof...(Each)))
                return t.fail("minimize: the step has no optimizer of this number");
        int number = 0;
        (update<Each>(t, number++), ...);
        t.gradients.clear();
        apply_constraints<Step>(t);
    }

private:
    template <class Optimizer>
    static constexpr void update(trace& t, int number) {
        list<gradient_entry> own;
        for (const gradient_entry& g : t.gradients)
            if (g.optimizer == number) own.push_back(g);
        const bool scales = tapegraph::detail::scales_loss<Optimizer>();
        trace_updates<Optimizer>(t, graph_gradients(&t, own, scales ? step_scale_scope(t, number) : 0));
    }
};

} // namespace ir

/// A step of the user's own, in one of the two modes.
template <class Mode, class Step, class Spec, class Optimizers>
class compiled_step;

namespace detail {

template <class Step>
struct step_type {
    static constexpr Step get() { return Step{}; }
};

/// What both modes do alike. `Elements`: a tuple of the inputs' element types.
template <class Derived, class Spec, class Optimizers, class Trainer,
          class Elements = typename input_pack<Spec>::element_types>
class trainable_step;

template <class Derived, class Spec, class... Each, class Trainer, class... Elements>
class trainable_step<Derived, Spec, optimizers<Each...>, Trainer, std::tuple<Elements...>> : public Trainer {
public:
    trainable_step(const compile_options& options, const optimizers<Each...>& them)
        : Trainer(options), optimizers_(them) {}

    /// One step. Gives what the step returns, of the variables before it. Throws shape_error or dtype_error for inputs that do not fit;
    /// then nothing has changed.
    auto operator()(const tensor<Elements>&... x) {
        const device_scope on(this->device_);
        const buffer_view columns[]{x.outline_view()...};
        Trainer::check_batch({input_table<Spec>::rows, sizeof...(Elements)}, columns);
        ++this->step_;
        try {
            return static_cast<Derived&>(*this).step_once(x...);
        } catch (...) {
            --this->step_;
            throw;
        }
    }
    /// Optimizer number I, to change its numbers.
    template <int I = 0>
    auto& optimizer() {
        return std::get<I>(optimizers_.each);
    }

protected:
    // The numbers of all optimizers for the next step.
    auto next_numbers() const {
        std::array<double, (0 + ... + Each::count)> them{};
        std::size_t at = 0;
        std::apply(
            [&](const auto&... each) {
                const auto write = [&](const auto& numbers) {
                    for (const double n : numbers) them[at++] = n;
                };
                (write(each.numbers(this->step_)), ...);
            },
            optimizers_.each);
        return them;
    }
    // Each optimizer says what its own state begins with.
    void set_first_values_of_all(const ir::program_view& view) {
        int number = 0;
        const auto set = [&](const auto& optimizer) {
            ++number;
            if constexpr (requires { optimizer.first_value(std::string_view()); })
                for (int i = 0; i < view.variables.size(); ++i)
                    if (view.variables[i].state_of == number)
                        detail::fill_state(this->variables_.at(i), optimizer.first_value(view.variables[i].name));
        };
        std::apply([&](const auto&... each) { (set(each), ...); }, optimizers_.each);
    }

    optimizers<Each...> optimizers_;
};

} // namespace detail

template <class Step, class Spec, class Optimizers>
class compiled_step<graph, Step, Spec, Optimizers>
    : public detail::trainable_step<compiled_step<graph, Step, Spec, Optimizers>, Spec, Optimizers,
                                    detail::basic_graph_trainer<>> {
    using base = detail::trainable_step<compiled_step, Spec, Optimizers, detail::basic_graph_trainer<>>;
    using forward = ir::step_trace<Step, Spec>;
    using training = ir::step_updates<Step, Spec, Optimizers>;

public:
    compiled_step(const compile_options& options, const Optimizers& them) : base(options, them) {
        this->template set_up_traces<forward, training>(true);
        this->set_first_values_of_all(ir::stage_view<ir::traced_stage<training>>());
    }
    const ir::program_view& training_view() const { return ir::compile_program<training>(); }

private:
    friend base;
    template <class... T>
    auto step_once(const tensor<T>&... x) {
        using stage = ir::compile_stage<ir::detail::traced<forward>>;
        const buffer_view columns[]{x.view()...};
        if constexpr (detail::is_placed<training>) {
            const detail::placed_run run{this->variables_,
                                         this->device_,
                                         this->options_.soft_placement,
                                         this->options_.check_finite,
                                         true,
                                         {this->options_.seed, static_cast<std::uint64_t>(this->step_)}};
            detail::run_parts(placed_, detail::parts_of<training>::all, run, columns,
                              [&](ir::program& p) { base::set_numbers(p, "optimizer", this->next_numbers()); });
            auto results = detail::result_tensors<typename forward::result, stage>(
                [&](std::span<any_tensor> to) { detail::copy_results(placed_, to); });
            detail::change_variables(placed_, run);
            return results;
        } else {
            return step_on_one_device<stage>(columns);
        }
    }
    template <class Stage>
    auto step_on_one_device(detail::batch_columns columns) {
        using stage = Stage;
        ir::program& p = this->prepared_step(ir::compile_program<training>());
        base::set_numbers(p, "optimizer", this->next_numbers());
        this->launch(p, columns, this->options_.check_finite);
        return detail::result_tensors<typename forward::result, stage>([&](std::span<any_tensor> to) {
            for (std::size_t k = 0; k < to.size(); ++k) to[k] = detail::output_copy(p, static_cast<int>(k));
        });
    }

    std::conditional_t<detail::is_placed<training>, detail::part_programs, none> placed_;
};

template <class Step, class Spec, class Optimizers>
class compiled_step<eager, Step, Spec, Optimizers>
    : public detail::trainable_step<compiled_step<eager, Step, Spec, Optimizers>, Spec, Optimizers,
                                    detail::basic_trainer<>> {
    using base = detail::trainable_step<compiled_step, Spec, Optimizers, detail::basic_trainer<>>;
    using value = typename detail::value_type_of<Spec>::type;
    using training = ir::step_updates<Step, Spec, Optimizers>;
    struct forward { // what the step has
        static constexpr auto used = ir::traced_stage<ir::step_trace<Step, Spec>>::value.used;
    };

public:
    compiled_step(const compile_options& options, const Optimizers& them) : base(options, them) {
        this->template set_up_traces<ir::step_trace<Step, Spec>, training>(true);
        this->set_first_values_of_all(ir::stage_view<ir::traced_stage<training>>());
    }

private:
    friend base;
    template <class... T>
    auto step_once(const tensor<T>&... x) {
        static const ir::input_rules rules(ir::stage_view<ir::traced_stage<training>>());
        const buffer_view columns[]{x.outline_view()...};
        rules.check(columns);
        const detail::numeric_check check(this->options_.check_finite);
        context_.variables = &this->variables_;
        context_.begin(true, random_state{this->options_.seed, static_cast<std::uint64_t>(this->step_)});
        const detail::random_scope draws(context_.random);
        std::vector<detail::eager_minimization> found;
        gradient_tape tape({.persistent = true});
        auto result = detail::sealed_result(Step::get()(eager_step(&context_, &found), x...));
        if constexpr (forward::used.regularizers > 0)
            for (std::size_t k = 0; k < found.size(); ++k)
                found[k].loss = detail::penalties<Step>::template added_to<value>(
                    context_, tensor<value>(found[k].loss), [&](const variable& v) { return changes(k, v); });
        if constexpr (Optimizers::scaled != 0)
            for (detail::eager_minimization& m : found)
                if ((Optimizers::scaled >> m.optimizer & 1) != 0) m.loss = scaled(m);
        tape.stop_recording();
        std::vector<updates> them(found.size());
        for (std::size_t k = 0; k < found.size(); ++k) them[k] = differentiate(tape, found[k], k);
        int number = 0;
        std::apply(
            [&](const auto&... each) { (update<std::remove_cvref_t<decltype(each)>>(them, each, number++), ...); },
            this->optimizers_.each);
        them.clear();
        if constexpr (forward::used.constraints > 0) detail::projections<Step>::template apply<value>(context_);
        context_.apply();
        return off_tape(std::move(result));
    }

    struct updates {
        std::vector<variable*> targets;
        std::vector<any_tensor> sources, gradients;
        int optimizer = 0;
    };
    // Whether loss number k changes a variable, as the trace has found out.
    bool changes(std::size_t k, const variable& v) const {
        using stage = ir::traced_stage<ir::step_gradients<Step, Spec, Optimizers::scaled>>;
        for (int i = 0; i < stage::value.used.gradients; ++i)
            if (const ir::gradient_entry& g = stage::value.gradients[i]; &this->variables_.at(g.variable) == &v)
                return g.loss == static_cast<int>(k);
        return false;
    }
    // Where an optimizer has its scale of the loss; see ir::step_scale_scope.
    static std::string scale_path(int optimizer) {
        return optimizer == 0 ? std::string() : "optimizer/" + std::to_string(optimizer) + "/";
    }
    any_tensor scaled(const detail::eager_minimization& m) {
        const variable& scale = this->variables_[scale_path(m.optimizer) + std::string(detail::loss_scale_name)];
        const auto times = [&](const auto& loss) {
            return any_tensor(eval(loss * detail::as_type_of(loss, tensor<value>(scale.data()))));
        };
        return m.loss.type() == dtype::f64 ? times(tensor<double>(m.loss)) : times(tensor<float>(m.loss));
    }
    updates differentiate(gradient_tape& tape, const detail::eager_minimization& m, std::size_t k) {
        updates u;
        u.optimizer = m.optimizer;
        for (const auto& used : context_.used) {
            if (!detail::tape_storage::instance().knows(used.handle.tape_index()) || !changes(k, *used.target))
                continue;
            u.sources.push_back(used.handle);
            u.targets.push_back(used.target);
        }
        u.gradients = tape.gradient(m.loss, u.sources);
        return u;
    }
    // Gradients in the order of the losses, each with the variables in theirs: the order of graph mode.
    template <class Optimizer>
    void update(std::vector<updates>& them, const Optimizer& optimizer, int number) {
        const auto numbers = optimizer.numbers(this->step_);
        std::array<typed_number<value>, static_cast<std::size_t>(Optimizer::count)> n;
        for (std::size_t i = 0; i < n.size(); ++i) n[i] = {static_cast<value>(numbers[i])};
        updates own;
        for (updates& u : them) {
            if (u.optimizer != number) continue;
            for (std::size_t k = 0; k < u.targets.size(); ++k) {
                own.targets.push_back(u.targets[k]);
                own.sources.push_back(std::move(u.sources[k]));
                own.gradients.push_back(std::move(u.gradients[k]));
            }
        }
        if (own.targets.empty()) return;
        const std::string common = scale_path(number);
        const detail::eager_gradients<value, false> step{
            detail::eager_slots(&this->variables_, &context_.updates, common), &own.targets, &own.sources,
            &own.gradients, &context_.row_uses};
        detail::update_all<Optimizer>(step, n);
    }
    template <class R>
    static R off_tape(R result) {
        if constexpr (detail::is_outputs<R>)
            std::apply([](auto&... each) { (each.value.set_tape_index({}), ...); }, result.items);
        else
            result.set_tape_index({});
        return result;
    }

    eager_context context_;
};

/// Compiles a step of one's own: an empty type whose call takes a step (a scope that can minimize) and the inputs, and returns a tensor or
/// `outputs`, such as the losses. `spec` and `options` as of tg::compile; models that predict with the variables of a step share them:
/// `tg::compile<graph>(generator{}, spec, {.shared = &train.variables(), .shared_scope = "generator"})`.
template <class Mode, class Step, detail::input_spec_like Spec, class... Each>
auto compile_step(const Step&, Spec, const optimizers<Each...>& them, const compile_options& options = {}) {
    static_assert(std::is_empty_v<Step>, "a step has no data members: a compiled graph would ignore them");
    using step = detail::step_type<Step>;
    using training = ir::step_updates<step, Spec, optimizers<Each...>>;
    if constexpr (!ir::well_formed<ir::traced_stage<training>>) ir::refuse<ir::traced_stage<training>>();
    return compiled_step<Mode, step, Spec, optimizers<Each...>>(options, them);
}
template <class Mode, class Step, detail::input_spec_like Spec, class Optimizer>
auto compile_step(const Step& step, Spec spec, const Optimizer& optimizer, const compile_options& options = {}) {
    return compile_step<Mode>(step, spec, optimizers{optimizer}, options);
}

} // namespace tapegraph
