#pragma once

#include <tapegraph/cluster/parameter_servers/options.hpp>
#include <tapegraph/cluster/parameter_servers/pushed.hpp>
#include <tapegraph/cluster/ranks/parameter_service.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/model/gradient_list.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/train/history.hpp>
#include <tapegraph/train/traces.hpp>
#include <tapegraph/train/trainable_model.hpp>

#include <exception>
#include <memory>

namespace tapegraph {

namespace detail {

/// Whether a model has tables with sparse gradients.
template <class Model>
inline constexpr bool has_row_gradients = false;
template <class Mode, class Model, class Spec, class Loss, class Optimizer>
inline constexpr bool has_row_gradients<compiled_model<Mode, Model, Spec, Loss, Optimizer>> =
    ir::gathers_rows<Model, Spec, Loss>;

/// Whether an optimizer needs all gradients at once (a global norm), which no server has.
template <class Optimizer>
constexpr bool looks_at_all_gradients() {
    return requires { Optimizer::shared; }
    || scales_loss<Optimizer>();
}

} // namespace detail

/// Variables of a model that tasks of job "ps" hold and update with an optimizer; computing tasks
/// pull them and push gradients. Every task creates the same model, and this for it:
///
///     tg::server server(ranks, cluster);
///     auto model = tg::compile<tg::graph>(network{}, spec, loss, tg::adam{}, tg::sharded{.shards = 8, .ranks = server.workers()});
///     tg::parameter_servers servers(server, model, tg::adam{});
///     if (server.task().job == "ps") return server.join();
///     for (...) servers.train_on_batch(x, y);
///     servers.finish();
///
/// Synchronous steps need a model whose gradients are those of all workers' shards, as above, or a
/// single worker. The optimizer that the model was compiled with is not used. A worker that ends
/// without finish() leaves in the destructor.
template <class Model, class Optimizer>
class parameter_servers {
public:
    /// Throws argument_error for placements that are not possible (detail::plan_parameters), for
    /// synchronous steps of several workers whose model is not sharded over them, and for an
    /// optimizer that needs all gradients at once where there are several servers; exchange_error
    /// where tasks do not agree.
    template <class Mistake = no_such_option_in<parameter_options>>
    explicit parameter_servers(any_argument, Model&, const Optimizer&, ...) = delete;
    parameter_servers(server& of, Model& model, const Optimizer& optimizer, const parameter_options& options = {})
        : server_(&of),
          model_(&model),
          options_(options),
          plan_(detail::plan_parameters(model.variables(), of, options)) {
        if (detail::looks_at_all_gradients<Optimizer>() && of.server_ranks().size() > 1)
            throw argument_error("parameter_servers: the optimizer looks at all gradients at once; no one of " +
                                 std::to_string(of.server_ranks().size()) + " servers has them");
        if (of.worker_ranks().empty()) throw argument_error("parameter_servers: the cluster has no task that computes");
        check_shared();
        std::uint64_t weights = 0;
        for (const auto* const blocks : {&plan_.variables, &plan_.states})
            for (const detail::parameter_plan::block& each : *blocks)
                for (const detail::held_variable& v : each.held)
                    weights = distributed::hash_values(
                        {static_cast<const std::byte*>(variable_of(v).data().read()), v.bytes}, weights);
        distributed::agree(of.ranks(), {distributed::agreed_value("parameter servers", plan_.text),
                                        distributed::agreed_value("synchronous", options.synchronous ? "yes" : "no"),
                                        distributed::agreed_value("staleness", std::to_string(options.max_staleness)),
                                        distributed::agreed_value("step", std::to_string(model.step())),
                                        distributed::agreed_field{"weights", weights}});
        if (of.task().job == "ps")
            of.serve([this, optimizer] { serve(optimizer); });
        else
            for (const auto& each : plan_.variables) blocks_.emplace_back(each.bytes);
    }
    parameter_servers(const parameter_servers&) = delete;
    parameter_servers& operator=(const parameter_servers&) = delete;
    ~parameter_servers() {
        if (server_->task().job == "ps") server_->serve({});
        if (finished_ || !computes() || std::uncaught_exceptions() > 0) return;
        try {
            finish();
        } catch (...) { // callers that need the error call finish()
        }
    }

    /// A step on the current weights: pull, gradients, push. Takes tensors or a batch, like
    /// model.gradients. Returns loss and accuracy before the update.
    template <class... T>
    step_result train_on_batch(const T&... batch) {
        pull();
        const gradient_list gradients = model_->gradients(batch...);
        push(gradients);
        return {gradients.loss, gradients.accuracy};
    }
    /// Copies the servers' variables to the model: in synchronous steps those after all steps so
    /// far.
    void pull() {
        check_worker("pull");
        for (std::size_t p = 0; p < blocks_.size(); ++p) say(p, detail::parameter_request::pull);
        read_weights();
    }
    /// Copies the servers' optimizer state to the model, where it has the same optimizer: before
    /// saving with `{.everything = true}`. In synchronous steps that after all steps so far.
    /// finish() does it, too.
    void pull_state() {
        check_worker("pull_state");
        for (std::size_t p = 0; p < blocks_.size(); ++p) say(p, detail::parameter_request::state);
        read_state();
    }
    /// Sends gradients to the servers, which apply them, and the values that the step would assign;
    /// counts as a step of the model.
    void push(const gradient_list& gradients) {
        check_worker("push");
        ++pushed_;
        if (!options_.synchronous || server_->workers()->rank() == 0)
            for (std::size_t p = 0; p < blocks_.size(); ++p) {
                pushed_values_.begin();
                for (const detail::held_variable& v : plan_.variables[p].held) {
                    if (v.assigned) {
                        assigned_.resize(v.bytes);
                        put_assigned(v, gradients, assigned_.data());
                        pushed_values_.put(assigned_.data(), v.bytes);
                    } else {
                        pushed_values_.put(gradients.named(variable_of(v).path()));
                    }
                }
                const std::span<const std::byte> block = pushed_values_.bytes();
                say(p, detail::parameter_request::push, block.size());
                tell(p, block, detail::parameter_push_channel, "gradients to a parameter server");
            }
        model_->set_step(model_->step() + 1);
        ranks().set_step(model_->step());
    }
    /// Ends this worker's steps. Waits for the others; afterwards the model has the final weights
    /// and state, the same on every worker.
    void finish() {
        check_worker("finish");
        finished_ = true;
        for (std::size_t p = 0; p < blocks_.size(); ++p) say(p, detail::parameter_request::leave);
        read_weights();
        read_state();
    }
    /// The placement: "hidden/kernel=0;out/kernel=1;", with numbers of tasks of job "ps".
    const std::string& text() const { return plan_.text; }

private:
    distributed::exchange& ranks() const { return server_->ranks(); }
    bool computes() const { return server_->workers() != nullptr; }
    variable& variable_of(const detail::held_variable& v) const { return model_->variables().at(v.variable); }

    void check_shared() const {
        const auto workers = static_cast<int>(server_->worker_ranks().size());
        if (!options_.synchronous || workers == 1 || !computes()) return;
        int sharing = 1;
        if constexpr (requires(const Model& m) { m.rank_count(); }) sharing = model_->rank_count();
        if (sharing != workers)
            throw argument_error("parameter_servers: synchronous steps of " + std::to_string(workers) +
                                 " workers need a model compiled with tg::sharded{.ranks = server.workers()}");
    }
    void check_worker(const char* what) const {
        if (!computes())
            throw argument_error(std::string("parameter_servers: ") + what + " on " + server_->task().text() +
                                 ", which computes no steps");
        if (finished_) throw argument_error(std::string("parameter_servers: ") + what + " after finish");
    }
    void say(std::size_t p, detail::parameter_request what, std::size_t bytes = 0) {
        const detail::parameter_header header{what, pushed_, static_cast<std::int64_t>(bytes)};
        tell(p, std::as_bytes(std::span(&header, 1)), detail::parameter_header_channel,
             "a request to a parameter server");
    }
    void tell(std::size_t p, std::span<const std::byte> block, int channel, const char* what) {
        distributed::scoped_request sent(ranks(), ranks().start(server_->server_ranks()[p], block, {}, channel, what));
        sent.wait();
    }
    void read_weights() {
        for (std::size_t p = 0; p < blocks_.size(); ++p) {
            hear(p, blocks_[p], "weights of a parameter server");
            put(plan_.variables[p], blocks_[p]);
        }
    }
    void read_state() {
        for (std::size_t p = 0; p < blocks_.size(); ++p) {
            state_.resize(plan_.states[p].bytes);
            hear(p, state_, "the optimizer's state of a parameter server");
            put(plan_.states[p], state_);
        }
    }
    void hear(std::size_t p, std::span<std::byte> block, const char* what) {
        distributed::scoped_request come(
            ranks(), ranks().start(server_->server_ranks()[p], {}, block, detail::parameter_pull_channel, what));
        come.wait();
    }
    void put(const detail::parameter_plan::block& of, std::span<const std::byte> block) const {
        for (const detail::held_variable& v : of.held)
            std::memcpy(variable_of(v).overwrite(), block.data() + v.offset, v.bytes);
    }
    // Sends the assigned values of a step. Workers that do not wait for each other send
    // differences, like TensorFlow's moving averages.
    void put_assigned(const detail::held_variable& v, const gradient_list& gradients, std::byte* to) const {
        const any_tensor& before = variable_of(v).data();
        const any_tensor* after = &before;
        for (const assigned_value& each : gradients.assigned())
            if (each.path == variable_of(v).path()) after = &each.value;
        if (options_.synchronous || !is_floating(before.type())) {
            std::memcpy(to, after->read(), v.bytes);
            return;
        }
        const auto change = [&]<class T>(T) {
            const T *const a = static_cast<const T*>(before.read()), *const b = static_cast<const T*>(after->read());
            for (std::size_t i = 0; i < v.bytes / sizeof(T); ++i) reinterpret_cast<T*>(to)[i] = b[i] - a[i];
        };
        before.type() == dtype::f64 ? change(0.0) : change(0.0f);
    }
    void assign(variable& v, const std::byte* pushed, std::size_t bytes) const {
        if (options_.synchronous || !is_floating(v.type())) {
            std::memcpy(v.overwrite(), pushed, bytes);
            return;
        }
        const auto change = [&]<class T>(T) {
            for (std::size_t i = 0; i < bytes / sizeof(T); ++i)
                static_cast<T*>(v.overwrite())[i] += reinterpret_cast<const T*>(pushed)[i];
        };
        v.type() == dtype::f64 ? change(0.0) : change(0.0f);
    }

    // On a server: its variables, which the optimizer updates, and state, both initialized from the
    // model.
    void serve(const Optimizer& optimizer) {
        std::size_t own = 0;
        while (server_->server_ranks()[own] != ranks().rank()) ++own;
        const auto &held = plan_.variables[own].held, &states = plan_.states[own].held;
        const auto copy_of = [&](const detail::held_variable& v) {
            any_tensor copy = variable_of(v).data();
            copy.unshare();
            return copy;
        };
        variable_list variables;
        std::vector<std::byte> weights(plan_.variables[own].bytes);
        for (const detail::held_variable& v : held) {
            const variable& from = variable_of(v);
            std::memcpy(weights.data() + v.offset, from.data().read(), v.bytes);
            variables.add(from.path(), copy_of(v), !v.assigned, false).set_rules(from.regularizer(), from.constraint());
        }
        applied<Optimizer> updates(optimizer, variables);
        updates.set_step(model_->step());
        for (const detail::held_variable& v : states)
            updates.state().add(variable_of(v).path(), copy_of(v), false, true);
        std::vector<any_tensor> gradients, indices;
        for (const detail::held_variable& v : held)
            if (!v.assigned) gradients.emplace_back();
        indices.resize(gradients.size());
        const auto apply = [&](std::span<const std::byte> pushed, std::span<std::byte> block) {
            detail::pushed_values values(pushed);
            std::size_t next = 0;
            for (std::size_t i = 0; i < held.size(); ++i) {
                variable& v = variables.at(static_cast<int>(i));
                if (held[i].assigned) {
                    assign(v, values.take(held[i].bytes), held[i].bytes);
                } else {
                    values.take(v, gradients[next], indices[next]);
                    ++next;
                }
            }
            if constexpr (detail::has_row_gradients<Model>)
                updates.apply_rows(gradients, indices);
            else
                updates.apply_gradients(gradients);
            for (std::size_t i = 0; i < held.size(); ++i)
                std::memcpy(block.data() + held[i].offset, variables.at(static_cast<int>(i)).data().read(),
                            held[i].bytes);
            put(plan_.variables[own], block);
        };
        const auto state = [&](std::span<std::byte> block) {
            for (const detail::held_variable& v : states)
                std::memcpy(block.data() + v.offset, updates.state()[variable_of(v).path()].data().read(), v.bytes);
            put(plan_.states[own], block);
        };
        detail::parameter_service service(ranks(), server_->worker_ranks(), std::move(weights),
                                          {options_.synchronous, options_.max_staleness},
                                          {apply, state, plan_.states[own].bytes});
        service.run();
        model_->set_step(model_->step() + service.updates());
    }

    server* server_;
    Model* model_;
    parameter_options options_;
    detail::parameter_plan plan_;
    std::vector<std::vector<std::byte>> blocks_;
    detail::pushed_block pushed_values_;
    std::vector<std::byte> assigned_, state_;
    std::int64_t pushed_ = 0;
    bool finished_ = false;
};

} // namespace tapegraph
