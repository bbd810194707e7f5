#pragma once

#include <tapegraph/cluster/ranks/tree_sum.hpp>
#include <tapegraph/cluster/sharded/sums.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/runtime/call_observer.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// The upper levels of the tree of sums: sums over ranks of what shards have added up, by buckets.
/// The exchange of a bucket starts after the call that completes it, progresses between calls and
/// between a kernel's tasks, and is awaited before the update's first call that reads it.

namespace tapegraph {

/// A sum over ranks in a model's step.
struct exchange_report {
    std::string name;      ///< "bucket 2 (conv2/kernel), piece 1 of 5"
    std::size_t bytes = 0; ///< per rank
    /// The call of the shard's program that completes it; the number of calls if it starts after
    /// the last.
    int after_step = 0;
    double exposed = 0;     ///< seconds spent waiting for it, in all steps so far
    std::int64_t steps = 0; ///< number of exchanges
};

namespace detail {

/// All sums of a model over ranks.
class rank_sums {
public:
    explicit rank_sums(distributed::exchange& ranks) : ranks_(&ranks) {}

    /// Opens the exchanges of a layout, the first time; every rank must call it at the same point.
    void open(const shard_sums& sums);
    bool known() const { return opened_; }
    std::size_t size() const { return buckets_.size(); }
    void begin() { started_ = 0; }
    /// Whether sums leave each rank only its own slices of the buckets; `gather` reverses it.
    void leave_slices(bool alone) { scatters_ = alone; }
    /// This rank's own elements of a bucket.
    distributed::slice own(std::size_t number) const { return buckets_[number]->sum.own(); }
    /// Sends every rank's own slices to all.
    void gather(const shard_sums& sums) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            buckets_[i]->now = &buckets_[i]->names[2];
            buckets_[i]->sum.start_all_gather(sums.sum() + sums.parts()[i].begin);
        }
        wait_all(sums);
    }
    /// Folds and starts the buckets that nothing touches after step `step` of the last shard.
    void start_ready(const shard_sums& sums, int step) {
        for (; started_ < buckets_.size() && sums.parts()[started_].ready <= step; ++started_) {
            sums.fold(sums.parts()[started_]);
            start(sums, started_);
        }
    }
    /// Starts all remaining buckets, which are already folded.
    void start_all(const shard_sums& sums) {
        for (; started_ < buckets_.size(); ++started_) start(sums, started_);
    }
    void wait(const shard_sums& sums, std::size_t number);
    void wait_all(const shard_sums& sums) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) wait(sums, i);
    }
    /// After an error: cancels all exchanges in flight on this rank.
    void abandon() noexcept {
        for (const auto& each : buckets_) each->sum.abandon();
    }
    std::vector<exchange_report> reports(const shard_sums& sums) const {
        std::vector<exchange_report> all;
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            const sum_part& p = sums.parts()[i];
            all.push_back({p.name, p.end - p.begin, p.ready, buckets_[i]->exposed, buckets_[i]->turns});
        }
        return all;
    }
    distributed::exchange& ranks() const { return *ranks_; }

private:
    struct bucket {
        bucket(distributed::exchange& ranks, std::size_t count, distributed::sum_kind kind, const std::string& label)
            : sum(ranks, count, kind, label),
              names{"all-reduce " + label, "reduce-scatter " + label, "all-gather " + label} {}
        distributed::tree_sum sum;
        std::string names[3];
        const std::string* now = names;
        double exposed = 0;
        std::int64_t turns = 0;
    };
    void start(const shard_sums& sums, std::size_t number) {
        bucket& b = *buckets_[number];
        std::byte* const data = sums.sum() + sums.parts()[number].begin;
        b.now = &b.names[scatters_ ? 1 : 0];
        scatters_ ? b.sum.start_reduce_scatter(data) : b.sum.start_all_reduce(data);
        ++b.turns;
    }

    distributed::exchange* ranks_;
    std::vector<std::unique_ptr<bucket>> buckets_;
    std::size_t started_ = 0;
    bool opened_ = false, scatters_ = false;
};

/// While it lives, exchanges progress during the calls of a program: f is called before and after
/// each call, and messages are polled between the tasks of a kernel. The thread's previous observer
/// is notified as usual.
template <class F>
class exchange_watch final : public runtime::call_observer {
public:
    exchange_watch(distributed::exchange& ranks, const ir::program& p, const F& f)
        : ranks_(&ranks),
          program_(&p),
          f_(f),
          before_(runtime::observer()),
          last_(ranks.now()),
          scope_(*this),
          listen_(&exchange_watch::between_tasks, this) {}
    ~exchange_watch() = default;

    void begin(const runtime::observed_call& c) override {
        if (depth_++ == 0) {
            step_ = c.part == runtime::call_part::program && c.source == program_ ? c.number : -1;
            if (step_ >= 0) f_(step_, false);
        }
        if (before_ != nullptr) before_->begin(c);
    }
    void end() override {
        if (before_ != nullptr) before_->end();
        if (--depth_ > 0) return;
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        if (step_ >= 0) f_(step_, true);
        ranks_->progress();
    }

private:
    static constexpr double often = 50e-6; // seconds: about the duration of a message

    // No exception may leave a kernel's threads.
    static void between_tasks(void* of) noexcept {
        auto& mine = *static_cast<exchange_watch*>(of);
        if (mine.failure_ || mine.inside_) return;
        try {
            const double now = mine.ranks_->now();
            if (now - mine.last_ < often) return;
            mine.last_ = now;
            mine.inside_ = true;
            mine.ranks_->progress();
        } catch (...) {
            mine.failure_ = std::current_exception();
        }
        mine.inside_ = false;
    }

    distributed::exchange* ranks_;
    const ir::program* program_;
    const F& f_;
    runtime::call_observer* before_;
    std::exception_ptr failure_;
    int depth_ = 0, step_ = -1;
    bool inside_ = false;
    double last_;
    runtime::observer_scope scope_;
    cpu::listen_between_tasks listen_;
};

} // namespace detail
} // namespace tapegraph

namespace tapegraph::detail {

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void rank_sums::open(const shard_sums& sums) {
    if (opened_) return;
    opened_ = true;
    for (const sum_part& p : sums.parts()) {
        const std::size_t count = (p.end - p.begin) / size_of(p.type);
        const auto kind = p.type == dtype::f64 ? distributed::sum_of<double> : distributed::sum_of<float>;
        buckets_.push_back(std::make_unique<bucket>(*ranks_, count, kind, p.name));
    }
}

TG_DEFINITION void rank_sums::wait(const shard_sums& sums, std::size_t number) {
    bucket& b = *buckets_[number];
    if (b.sum.done()) return;
    const sum_part& p = sums.parts()[number];
    buffer_view v{};
    v.type = p.type;
    v.rank = 1;
    v.extents[0] = static_cast<std::int64_t>(b.sum.count());
    v.data = sums.sum() + p.begin;
    kernel_call call;
    call.out = &v;
    call.outputs = 1;
    call.domain = v;
    const double before = ranks_->now();
    runtime::observed(
        [&] {
            return runtime::observed_call{runtime::call_part::exchange, &call, this, static_cast<int>(number),
                                          runtime::call_label(*b.now)};
        },
        [&] { b.sum.wait(); });
    b.exposed += ranks_->now() - before;
}

#endif

} // namespace tapegraph::detail
