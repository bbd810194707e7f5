#pragma once

#include <tapegraph/distributed/parameter_service.hpp>
#include <tapegraph/nn/gradient_list.hpp>
#include <tapegraph/nn/history.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/parameter_servers/options.hpp>

#include <exception>
#include <memory>

namespace tapegraph {

namespace detail {

/// Whether an optimizer looks at all gradients at once (a global norm), which no server has.
template <class Optimizer>
constexpr bool looks_at_all_gradients() {
    return requires { Optimizer::shared; }
    || scales_loss<Optimizer>();
}

} // namespace detail

/// Variables of a model that tasks of job "ps" hold and update, with an optimizer there; tasks that compute pull them and push
/// gradients. Every task makes the same model, and this of it:
///
///     tg::server server(ranks, cluster);
///     auto model = tg::compile<tg::graph>(network{}, spec, loss, tg::adam{}, tg::sharded{.shards = 8, .ranks = server.workers()});
///     tg::parameter_servers servers(server, model, tg::adam{});
///     if (server.task().job == "ps") return server.join();
///     for (...) servers.train_on_batch(x, y);
///     servers.finish();
///
/// Synchronous steps need a model whose gradients are those of all workers' shards, as above, or a single worker. The optimizer that
/// the model was compiled with does nothing here. A worker that ends without finish() leaves when this ends.
template <class Model, class Optimizer>
class parameter_servers {
public:
    /// Throws argument_error for what the plan cannot hold (detail::plan_parameters), for synchronous steps of several workers whose
    /// model is not shared by them, and for an optimizer that looks at all gradients at once where there are several servers;
    /// exchange_error where tasks do not agree.
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
        for (const auto& held : plan_.held)
            for (const detail::held_variable& v : held)
                weights = distributed::hash_values(
                    {static_cast<const std::byte*>(variable_of(v).data().read()), v.bytes}, weights);
        distributed::agree(of.ranks(), {distributed::agreed_value("parameter servers", plan_.text),
                                        distributed::agreed_value("synchronous", options.synchronous ? "yes" : "no"),
                                        distributed::agreed_value("staleness", std::to_string(options.max_staleness)),
                                        distributed::agreed_field{"weights", weights}});
        if (of.task().job == "ps")
            of.serve([this, optimizer] { serve(optimizer); });
        else
            for (const std::size_t bytes : plan_.bytes) blocks_.emplace_back(bytes);
    }
    parameter_servers(const parameter_servers&) = delete;
    parameter_servers& operator=(const parameter_servers&) = delete;
    ~parameter_servers() {
        if (server_->task().job == "ps") server_->serve({});
        if (finished_ || !computes() || std::uncaught_exceptions() > 0) return;
        try {
            finish();
        } catch (...) { // whoever wants to know calls finish()
        }
    }

    /// A step on the present weights: pull, gradients, push. Tensors or a batch, as model.gradients takes them. Gives loss and accuracy
    /// before the update.
    template <class... T>
    step_result train_on_batch(const T&... batch) {
        pull();
        const gradient_list gradients = model_->gradients(batch...);
        push(gradients);
        return {gradients.loss, gradients.accuracy};
    }
    /// The model's variables become those of the servers: in synchronous steps those after all steps so far.
    void pull() {
        check_worker("pull");
        for (std::size_t p = 0; p < blocks_.size(); ++p) say(p, detail::parameter_request::pull);
        read_weights();
    }
    /// Gives gradients to the servers, which update; the model has made a step.
    void push(const gradient_list& gradients) {
        check_worker("push");
        ++pushed_;
        if (!options_.synchronous || server_->workers()->rank() == 0)
            for (std::size_t p = 0; p < blocks_.size(); ++p) {
                for (const detail::held_variable& v : plan_.held[p])
                    std::memcpy(blocks_[p].data() + v.offset, gradients[variable_of(v).path()].read(), v.bytes);
                say(p, detail::parameter_request::push);
                distributed::request sent =
                    ranks().start(server_->server_ranks()[p], blocks_[p], {}, detail::parameter_push_channel,
                                  "gradients to a parameter server");
                ranks().wait(sent);
            }
        model_->set_step(model_->step() + 1);
        ranks().set_step(model_->step());
    }
    /// The end of this worker's steps. Waits for the others, then the model has the last weights, the same on every worker.
    void finish() {
        check_worker("finish");
        finished_ = true;
        for (std::size_t p = 0; p < blocks_.size(); ++p) say(p, detail::parameter_request::leave);
        read_weights();
    }
    /// Who holds what: "hidden/kernel=0;out/kernel=1;", numbers of tasks of job "ps".
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
        if (finished_) throw argument_error(std::string("parameter_servers: ") + what + " behind finish");
    }
    void say(std::size_t p, detail::parameter_request what) {
        const detail::parameter_header header{what, pushed_};
        distributed::request sent = ranks().start(server_->server_ranks()[p], std::as_bytes(std::span(&header, 1)), {},
                                                  detail::parameter_header_channel, "a request to a parameter server");
        ranks().wait(sent);
    }
    void read_weights() {
        for (std::size_t p = 0; p < blocks_.size(); ++p) {
            distributed::request come = ranks().start(server_->server_ranks()[p], {}, blocks_[p],
                                                      detail::parameter_pull_channel, "weights of a parameter server");
            ranks().wait(come);
            put(p, blocks_[p]);
        }
    }
    void put(std::size_t p, std::span<const std::byte> block) const {
        for (const detail::held_variable& v : plan_.held[p])
            std::memcpy(variable_of(v).own_data(), block.data() + v.offset, v.bytes);
    }

    // On a server: variables of its own, which the optimizer updates.
    void serve(const Optimizer& optimizer) {
        std::size_t own = 0;
        while (server_->server_ranks()[own] != ranks().rank()) ++own;
        const auto& held = plan_.held[own];
        variable_list variables;
        std::vector<std::byte> weights(plan_.bytes[own]);
        for (const detail::held_variable& v : held) {
            const variable& from = variable_of(v);
            any_tensor copy = from.data();
            copy.unshare();
            std::memcpy(weights.data() + v.offset, from.data().read(), v.bytes);
            variables.add(from.path(), std::move(copy), true, false).set_rules(from.regularizer(), from.constraint());
        }
        applied<Optimizer> updates(optimizer, variables);
        std::vector<any_tensor> gradients;
        for (const detail::held_variable& v : held)
            gradients.emplace_back(variable_of(v).type(), variable_of(v).shape());
        detail::parameter_service service(
            ranks(), server_->worker_ranks(), std::move(weights), {options_.synchronous, options_.max_staleness},
            [&](std::span<const std::byte> pushed, std::span<std::byte> block) {
                for (std::size_t i = 0; i < held.size(); ++i)
                    std::memcpy(gradients[i].write(), pushed.data() + held[i].offset, held[i].bytes);
                updates.apply_gradients(gradients);
                for (std::size_t i = 0; i < held.size(); ++i)
                    std::memcpy(block.data() + held[i].offset, variables.at(static_cast<int>(i)).data().read(),
                                held[i].bytes);
                put(own, block);
            });
        service.run();
        model_->set_step(model_->step() + service.updates());
    }

    server* server_;
    Model* model_;
    parameter_options options_;
    detail::parameter_plan plan_;
    std::vector<std::vector<std::byte>> blocks_;
    std::int64_t pushed_ = 0;
    bool finished_ = false;
};

} // namespace tapegraph
