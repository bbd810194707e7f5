#pragma once

#include <simt/bound_kernel.hpp>
#include <simt/meeting.hpp>
#include <simt/shared_memory.hpp>
#include <simt/state.hpp>

#include <exception>
#include <utility>
#include <vector>

/// Runs CUDA kernels on the CPU, with one fibre per CUDA thread and blocks in sequence (those of a
/// cluster, or of a cooperative grid, together). For tests only: it finds mistakes and is not fast.
/// A launch throws simt::error for a deadlock, for threads of a block that wait at different
/// barriers, for lanes whose collectives do not agree, and for writes beyond the end of dynamic
/// shared memory. Kernels of clusters and cooperative grids keep what they share in dynamic shared
/// memory, since the static kind exists only once.

namespace simt {

class executor {
public:
    static executor*& active() {
        static thread_local executor* e = nullptr;
        return e;
    }
    static thread*& running() {
        static thread_local thread* t = nullptr;
        return t;
    }

    static void launch(const launch_config& config, const bound_kernel& kernel) { executor(config, kernel).run(); }

    const launch_config& config() const { return config_; }

    /// Suspends the running thread until the others have arrived.
    SIMT_UNWATCHED void wait(waiting what, const site& where) {
        thread& t = *running();
        t.waiting = what;
        t.where = where;
#ifdef SIMT_TSAN
        void* meeting = what == waiting::barrier      ? static_cast<void*>(t.owner)
                        : what == waiting::collective ? static_cast<void*>(t.owner->threads[t.warp() * 32].get())
                                                      : static_cast<void*>(this);
        __tsan_release(meeting);
#endif
        t.run.go(home_);
#ifdef SIMT_TSAN
        __tsan_acquire(meeting);
#endif
    }

    /// The halves of a cluster's barrier: the running thread arrives, and later waits until all
    /// have arrived. Waiting threads may continue as soon as the last one has arrived, whatever it
    /// does before it waits itself.
    void arrive_at_cluster() {
        const unwatched scope;
        thread& t = *running();
        if (t.owes_cluster_wait) throw error("a thread arrives twice at a cluster barrier without waiting");
        t.owes_cluster_wait = true;
        if (arrivals_.size() <= t.cluster_arrivals) arrivals_.resize(t.cluster_arrivals + 1);
#ifdef SIMT_TSAN
        __tsan_release(&arrivals_);
#endif
        const std::size_t phase = t.cluster_arrivals++;
        if (++arrivals_[phase] < team_.size()) return;
        for (thread* other : team_)
            if (other->waiting == waiting::cluster && other->cluster_arrivals == phase + 1)
                other->waiting = waiting::nothing;
    }
    void wait_for_cluster(const site& where) {
        if (waits_for_cluster()) wait(waiting::cluster, where);
#ifdef SIMT_TSAN
        __tsan_acquire(&arrivals_);
#endif
    }

    /// Lets threads in polling loops check again.
    bool give_turns() {
        const unwatched scope;
        bool any = false;
        for (thread* t : team_)
            if (t->waiting == waiting::turn) t->waiting = waiting::nothing, any = true;
        return any;
    }

    /// As if the running thread had waited.
    void forget_cluster_wait() {
        const unwatched scope;
        running()->owes_cluster_wait = false;
    }

    /// Another block of the running cluster.
    block& peer(unsigned rank) const {
        if (rank >= config_.cluster)
            throw error("a cluster of " + std::to_string(config_.cluster) + " has no block " + std::to_string(rank));
        if (config_.cluster < 2) throw error("a block that is no cluster sends to itself: an illegal instruction");
        return *pool()[rank];
    }

private:
    executor(const launch_config& config, const bound_kernel& kernel)
        : config_(config), kernel_(kernel), random_(current_settings().seed * 2654435769u + 12345) {
        if (config.block.count() == 0 || config.block.count() > 1024) throw error("a block has 1 to 1,024 threads");
        if (config.grid.count() == 0) throw error("a grid has at least one block");
        if (config.cluster == 0 || config.grid.x % config.cluster != 0)
            throw error("the cluster does not divide the grid");
        if (config.shared > 232448) throw error("more dynamic shared memory than any multiprocessor has");
        if (active() != nullptr) throw error("a kernel launched a kernel");
    }

    // Completes the arrivals that the running thread owes; returns whether others have yet to
    // arrive.
    bool waits_for_cluster() {
        const unwatched scope;
        thread& t = *running();
        if (!t.owes_cluster_wait) throw error("a thread waits for a cluster barrier at which it has not arrived");
        t.owes_cluster_wait = false;
        return arrivals_[t.cluster_arrivals - 1] < team_.size();
    }

    // Blocks, threads and their stacks are reused between launches.
    static std::vector<std::unique_ptr<block>>& pool() {
        static thread_local std::vector<std::unique_ptr<block>> p;
        return p;
    }

    std::uint32_t random(std::uint32_t below) { // xorshift is good enough for an order
        random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
        return static_cast<std::uint32_t>((random_ >> 32) * below >> 32);
    }

    void run() {
        struct scope {
            explicit scope(executor* e) {
                active() = e;
                race_detector_looks(false); // only at kernels: the switches order what the scheduler does
            }
            ~scope() {
                active() = nullptr, running() = nullptr;
                race_detector_looks(true);
            }
        } const entered(this);
        const unsigned total = config_.grid.count(), together = config_.cooperative ? total : config_.cluster;
        for (unsigned first = 0; first < total; first += together) run_team(first, together);
    }

    void run_team(unsigned first, unsigned count) {
        const settings& s = current_settings();
        if (s.poison) poison_shared_variables();
        while (pool().size() < count) pool().push_back(std::make_unique<block>());
        team_.clear();
        arrivals_.clear();
        for (unsigned i = 0; i < count; ++i) prepare(*pool()[i], first + i);
        schedule();
        for (unsigned i = 0; i < count; ++i) pool()[i]->publish(); // the end of a kernel publishes
        for (const thread* t : team_)
            if (t->linear == 0 && !t->owner->canary_intact(config_.shared))
                throw error("a write past the end of the dynamic shared memory of " + std::to_string(config_.shared) +
                            " bytes");
    }

    void prepare(block& b, unsigned number) {
        b.index = {number % config_.grid.x, number / config_.grid.x % config_.grid.y,
                   number / (config_.grid.x * config_.grid.y)};
        b.size = static_cast<int>(config_.block.count());
        b.prepare_dynamic(config_.shared, current_settings().poison);
        while (static_cast<int>(b.threads.size()) < b.size) b.threads.push_back(std::make_unique<thread>());
        for (int i = 0; i < b.size; ++i) {
            thread& t = *b.threads[static_cast<std::size_t>(i)];
            const auto n = static_cast<unsigned>(i);
            t.owner = &b;
            t.linear = i;
            t.index = {n % config_.block.x, n / config_.block.x % config_.block.y,
                       n / (config_.block.x * config_.block.y)};
            t.waiting = waiting::nothing;
            t.copies.clear();
            t.products.clear();
            t.cluster_arrivals = 0;
            t.owes_cluster_wait = false;
            t.run.start(&executor::enter);
            team_.push_back(&t);
        }
    }

    SIMT_UNWATCHED static void enter() {
        executor& e = *active();
        thread& t = *running();
        t.run.arrived();
#ifdef SIMT_TSAN
        __tsan_acquire(&e); // the host's writes before the launch
#endif
        try {
            e.kernel_.run();
        } catch (...) {
            e.failure_ = std::current_exception();
        }
        t.waiting = waiting::done;
#ifdef SIMT_TSAN
        __tsan_release(&e.finished_);
#endif
        t.run.go(e.home_, true);
    }

    void resume(thread& t) {
        running() = &t;
#ifdef SIMT_TSAN
        __tsan_release(this);
#endif
        home_.go(t.run);
        if (failure_ != nullptr) std::rethrow_exception(failure_);
        progress_ = progress_ || t.waiting != waiting::turn;
        if (t.waiting == waiting::collective) settle_collective(t);
        if (t.waiting == waiting::done) settle_without(t);
        if (t.waiting == waiting::barrier) check_barrier(t);
#ifdef SIMT_TSAN
        if (t.waiting == waiting::done) __tsan_acquire(&finished_);
#endif
    }

    void schedule() {
        for (;;) {
            bool any = false;
            switch (current_settings().order) {
            case order::forward:
                for (thread* t : team_)
                    if (t->waiting == waiting::nothing) resume(*t), any = true;
                break;
            case order::reverse:
                for (auto t = team_.rbegin(); t != team_.rend(); ++t)
                    if ((*t)->waiting == waiting::nothing) resume(**t), any = true;
                break;
            case order::random: {
                ready_.clear();
                for (thread* t : team_)
                    if (t->waiting == waiting::nothing) ready_.push_back(t);
                while (!ready_.empty()) { // threads that wake up meanwhile take part in the next round
                    const std::uint32_t k = random(static_cast<std::uint32_t>(ready_.size()));
                    thread* t = ready_[k];
                    ready_[k] = ready_.back(), ready_.pop_back();
                    if (t->waiting == waiting::nothing) resume(*t), any = true;
                }
                break;
            }
            case order::greedy:
                release_barriers(); // blocks drift apart, too
                any = run_one_warp();
                break;
            }
            if (any) continue;
            if (release_barriers() || release_turns()) continue;
            for (const thread* t : team_)
                if (t->waiting != waiting::done) throw error(deadlock(team_));
            return;
        }
    }

    // Runs a random warp that can continue, until none of its lanes can.
    bool run_one_warp() {
        ready_.clear();
        for (thread* t : team_) {
            if (t->waiting != waiting::nothing) continue;
            if (ready_.empty() || ready_.back()->owner != t->owner || ready_.back()->warp() != t->warp())
                ready_.push_back(t);
        }
        if (ready_.empty()) return false;
        const thread& chosen = *ready_[random(static_cast<std::uint32_t>(ready_.size()))];
        block& b = *chosen.owner;
        const int first = chosen.warp() * 32, last = first + 32 < b.size ? first + 32 : b.size;
        for (bool going = true; going;) {
            going = false;
            for (int i = first; i < last; ++i) {
                thread& t = *b.threads[static_cast<std::size_t>(i)];
                if (t.waiting == waiting::nothing) resume(t), going = true;
            }
        }
        return true;
    }

    // Completes a collective: when all lanes of the mask that still run have arrived, each gets its
    // result.
    void settle_collective(thread& t) {
        block& b = *t.owner;
        const int first = t.warp() * 32;
        const auto lane = [&](int i) -> thread* {
            return first + i < b.size ? b.threads[static_cast<std::size_t>(first + i)].get() : nullptr;
        };
        if ((t.mask >> t.lane() & 1) == 0)
            throw error("a lane is not in the mask of its own collective at " + t.where.text());
        bool complete = true;
        for (int i = 0; i < 32; ++i) {
            const thread* o = lane(i);
            if (o == nullptr || o->waiting == waiting::done) continue;
            const bool awaited = (t.mask >> i & 1) != 0;
            if (o->waiting != waiting::collective) {
                complete = complete && !awaited;
                continue;
            }
            if ((awaited || (o->mask >> t.lane() & 1) != 0) && (o->mask != t.mask || o->kind != t.kind))
                throw error("lanes of a warp disagree: " + t.where.text() + " and " + o->where.text());
        }
        if (!complete) return;
        exchange(t, lane);
    }

    // Stops waiting for a lane that has ended.
    void settle_without(const thread& ended) {
        block& b = *ended.owner;
        const int first = ended.warp() * 32;
        for (int i = first; i < first + 32 && i < b.size; ++i) {
            thread& o = *b.threads[static_cast<std::size_t>(i)];
            if (o.waiting == waiting::collective && (o.mask >> ended.lane() & 1) != 0) return settle_collective(o);
        }
    }

    void check_barrier(const thread& t) const {
        for (int i = 0; i < t.owner->size; ++i) {
            const thread& o = *t.owner->threads[static_cast<std::size_t>(i)];
            if (o.waiting == waiting::barrier && !(o.where == t.where))
                throw error("threads of a block wait at different barriers: " + t.where.text() + " and " +
                            o.where.text());
        }
    }

    bool release_barriers() {
        bool any = false;
        for (thread* leader : team_) {
            if (leader->linear != 0) continue;
            block& b = *leader->owner;
            int there = 0, done = 0, yes = 0;
            for (int i = 0; i < b.size; ++i) {
                const thread& t = *b.threads[static_cast<std::size_t>(i)];
                there += t.waiting == waiting::barrier;
                done += t.waiting == waiting::done;
                yes += t.waiting == waiting::barrier && t.predicate != 0;
            }
            if (there == 0 || there + done != b.size) continue;
            for (int i = 0; i < b.size; ++i) {
                thread& t = *b.threads[static_cast<std::size_t>(i)];
                if (t.waiting == waiting::barrier) t.passed = yes, t.waiting = waiting::nothing;
            }
            any = true;
        }
        return any || release_all(waiting::grid);
    }

    // Lets polling threads check again, unless nothing has happened since they last did.
    bool release_turns() {
        const bool any = progress_ && give_turns();
        progress_ = false;
        return any;
    }

    // A barrier across the team's blocks. Unlike a block's, it waits for threads that have ended,
    // which never arrive.
    bool release_all(waiting what) {
        for (const thread* t : team_)
            if (t->waiting != what) return false;
        for (thread* t : team_) t->waiting = waiting::nothing;
        return true;
    }

    launch_config config_;
    const bound_kernel& kernel_;
    std::uint64_t random_;
    fiber home_;
    std::vector<thread*> team_, ready_;
    std::exception_ptr failure_;
    std::vector<std::size_t> arrivals_; ///< at each of the cluster's barriers
    bool progress_ = true;              ///< some thread has done more than poll
#ifdef SIMT_TSAN
    char finished_ = 0; // an address for the race detector
#endif
};

/// Launches a kernel with the given blocks and threads.
template <class... P, class... A>
void launch(const launch_config& config, void (*kernel)(P...), A&&... arguments) {
    executor::launch(config, bound_kernel(kernel, std::forward<A>(arguments)...));
}

} // namespace simt
