#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>
#include <tapegraph/core/component.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

/// The protocol between a worker and a parameter server, and the server's loop. Messages are pairs
/// of the exchange: a worker's header announces the content and its length; other blocks have a
/// length that both know.

namespace tapegraph::detail {

enum class parameter_request : std::int64_t { pull = 1, push = 2, leave = 3, state = 4 };

struct parameter_header {
    parameter_request what = parameter_request::pull;
    std::int64_t step = 0;  ///< number of steps that this worker has pushed
    std::int64_t bytes = 0; ///< size of the current push
};

/// Channels of headers, of workers' pushes and of their pulls. Groups of ranks use those from 1,024
/// on.
inline constexpr int parameter_header_channel = 900, parameter_push_channel = 901, parameter_pull_channel = 902;

/// The server's side. It holds the block that it sends out, and for each worker a received one and
/// one in flight.
class parameter_service {
public:
    struct rules {
        bool synchronous = true;
        std::int64_t max_staleness = -1;
    };
    struct functions {
        /// Applies an update: takes the pushed data, fills the block with the new weights.
        std::function<void(std::span<const std::byte>, std::span<std::byte>)> apply;
        /// Fills a block with the optimizer's state.
        std::function<void(std::span<std::byte>)> state;
        std::size_t state_bytes = 0;
    };
    /// `weights`: the result of the first pull.
    parameter_service(distributed::exchange& ranks, std::vector<int> workers, std::vector<std::byte> weights, rules how,
                      functions calls)
        : ranks_(&ranks), how_(how), weights_(std::move(weights)), calls_(std::move(calls)), clients_(workers.size()) {
        for (std::size_t w = 0; w < workers.size(); ++w) {
            clients_[w].rank = workers[w];
            clients_[w].given.resize(std::max(weights_.size(), calls_.state_bytes));
        }
    }
    parameter_service(const parameter_service&) = delete;
    parameter_service& operator=(const parameter_service&) = delete;
    ~parameter_service() {
        for (client& each : clients_)
            for (distributed::request* r : {&each.heard, &each.block, &each.reply}) ranks_->cancel(*r);
    }

    /// Serves until every worker has left; then all get the final weights and the state. Throws
    /// exchange_error if nothing arrives within the exchange's deadline.
    void run();
    std::int64_t updates() const { return updates_; }

private:
    struct client {
        int rank = 0;
        parameter_header header;
        distributed::request heard, block, reply;
        std::vector<std::byte> pushed, given;
        std::int64_t steps = 0; ///< steps pushed so far
        bool waits = false, wants_state = false, left = false;
    };
    // Names in the error at the deadline the first worker that is still expected to send.
    template <class Done>
    void await(const Done& done) {
        struct expected final : distributed::operation {
            const parameter_service* self;
            explicit expected(const parameter_service* s) : self(s) {}
            bool advance() override { return false; }
            distributed::request pending() const override {
                for (const client& each : self->clients_)
                    for (const distributed::request* r : {&each.block, &each.heard, &each.reply})
                        if (r->valid()) return *r;
                return {};
            }
        } const any(this);
        ranks_->wait(any, done);
    }
    void listen(client& c) {
        c.heard = ranks_->start(c.rank, {}, std::as_writable_bytes(std::span(&c.header, 1)), parameter_header_channel,
                                "parameter server, what a worker wants");
    }
    void give(client& c) {
        if (!weights_.empty()) std::memcpy(c.given.data(), weights_.data(), weights_.size());
        c.waits = false;
        c.reply = ranks_->start(c.rank, {c.given.data(), weights_.size()}, {}, parameter_pull_channel,
                                "parameter server, weights");
    }
    void give_state(client& c) {
        const std::span<std::byte> state(c.given.data(), calls_.state_bytes);
        calls_.state(state);
        c.waits = c.wants_state = false;
        c.reply = ranks_->start(c.rank, state, {}, parameter_pull_channel, "parameter server, the optimizer's state");
    }
    bool all_left() const {
        for (const client& each : clients_)
            if (!each.left) return false;
        return true;
    }
    bool all_replied() {
        bool all = true;
        for (client& each : clients_) all = ranks_->test(each.reply) && all;
        return all;
    }
    // One worker pushes a common step; a pull waits for the update of the step before it.
    bool may_have(const client& c) const;
    void update(client& c) {
        calls_.apply(c.pushed, weights_);
        ++updates_;
        ++c.steps;
        ranks_->set_step(updates_);
    }
    // Polls all workers; returns whether anything happened. Each time it starts with another
    // worker.
    bool look();
    void hear(client& c);

    distributed::exchange* ranks_;
    rules how_;
    std::vector<std::byte> weights_;
    functions calls_;
    std::vector<client> clients_;
    std::int64_t updates_ = 0;
    std::size_t first_ = 0;
};

#if TG_DEFINES(cluster)

TG_DEFINITION void parameter_service::run() {
    for (client& each : clients_) listen(each);
    while (!all_left()) await([this] { return look(); });
    await([this] { return all_replied(); });
    for (client& each : clients_) give(each);
    await([this] { return all_replied(); });
    for (client& each : clients_) give_state(each);
    await([this] { return all_replied(); });
}

TG_DEFINITION bool parameter_service::may_have(const client& c) const {
    if (how_.synchronous) return updates_ >= c.header.step;
    if (how_.max_staleness < 0) return true;
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    for (const client& each : clients_)
        if (!each.left) slowest = std::min(slowest, each.steps);
    return c.header.step - slowest <= how_.max_staleness;
}

TG_DEFINITION bool parameter_service::look() {
    bool something = false;
    for (std::size_t k = 0; k < clients_.size(); ++k) {
        client& c = clients_[(first_ + k) % clients_.size()];
        if (c.reply.valid() && ranks_->test(c.reply)) something = true;
        if (c.block.valid() && ranks_->test(c.block)) {
            update(c);
            listen(c);
            something = true;
        }
        if (c.heard.valid() && ranks_->test(c.heard)) {
            hear(c);
            something = true;
        }
        if (c.waits && !c.reply.valid() && may_have(c)) {
            c.wants_state ? give_state(c) : give(c);
            listen(c);
            something = true;
        }
    }
    first_ = (first_ + 1) % clients_.size();
    return something;
}

TG_DEFINITION void parameter_service::hear(client& c) {
    switch (c.header.what) {
    case parameter_request::pull: c.waits = true; break;
    case parameter_request::state: c.waits = c.wants_state = true; break;
    case parameter_request::push:
        c.pushed.resize(static_cast<std::size_t>(c.header.bytes));
        c.block = ranks_->start(c.rank, {}, c.pushed, parameter_push_channel, "parameter server, gradients");
        break;
    case parameter_request::leave: c.left = true; break;
    default:
        throw exchange_error("parameter_servers: rank " + std::to_string(c.rank) + " asks for " +
                             std::to_string(static_cast<std::int64_t>(c.header.what)) + "; it speaks another version");
    }
}

#endif

} // namespace tapegraph::detail
