#pragma once

#include <tapegraph/cluster/ranks/tree_sum.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/eager/numeric_check.hpp>
#include <tapegraph/ops/shards/shard_group.hpp>
#include <tapegraph/runtime/call_observer.hpp>
#include <tapegraph/runtime/device_runtime.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

/// Runs the shards of a process in turns, so that each can wait for values of the others.

namespace tapegraph::detail {

/// A shard that reaches sum_over_shards contributes its values and passes the turn to the next one;
/// the last one adds up all by the tree of the shards, also between ranks, and the first continues.
/// Every shard has a thread, of which one runs at a time: a kernel has all of the process's
/// threads, as usual, and nothing depends on their scheduling. Shards that never reach such a sum
/// run one after the other on the caller's thread.
class shard_turns final : public shard_group {
public:
    explicit shard_turns(distributed::exchange* ranks) : ranks_(ranks) {}
    shard_turns(const shard_turns&) = delete;
    shard_turns& operator=(const shard_turns&) = delete;
    ~shard_turns();

    /// Calls f(k) for k = 0, 1, ..., live.size() - 1, in turns. `live`: the indices of these shards
    /// among the process's `own`; the others, which have no records, contribute zeros. With `idle`
    /// it runs one whose values do not count, for the sake of other ranks. `device`: where the
    /// calls run, each of which has one turn of it; null for the CPU. An exception in one stops
    /// all, and is rethrown.
    template <class F>
    void run(int own, const std::vector<int>& live, bool idle, runtime::device_runtime* device, const F& f) {
        const auto call = [](const void* of, int k) { (*static_cast<const F*>(of))(k); };
        begin(own, live, idle, device, {call, &f});
    }
    /// Called by the thread that runs the current shard.
    void add(const buffer_view& in, const buffer_view& out) override;
    /// The number of sums that a shard of the last step reached.
    std::size_t sums() const { return number_; }
    std::size_t memory() const { return (slots_[0].size() + slots_[1].size()) * sizeof(double); }

private:
    struct job {
        void (*call)(const void* of, int k) = nullptr;
        const void* of = nullptr;
    };
    static constexpr runtime::call_label taken{"sum_over_shards, taken"};
    struct stopped {}; // thrown in shards that end because of another's error
    // Thread-local settings of the caller, for the shards' threads.
    struct settings {
        runtime::device_runtime* device;
        std::optional<math_mode> mode;
        runtime::call_observer* observer;
        bool check, layers;
    };

    void begin(int own, const std::vector<int>& live, bool idle, runtime::device_runtime* device, const job& work);
    void run_shard(int k);
    void pass(int to);
    void wait_for_turn(std::unique_lock<std::mutex>& lock, int k);
    void serve(int k);
    void check_alike(const buffer_view& in) const;
    void wait_for_others(const buffer_view& in, int k, runtime::call_observer* watching);
    // Alternates between two buffers: the first shard reaches the next sum before the last one has
    // read this one.
    std::vector<double>& slots(std::size_t number) { return slots_[number % 2]; }
    std::byte* slot(std::size_t number, int shard) {
        return reinterpret_cast<std::byte*>(slots(number).data()) + slot_bytes_ * static_cast<std::size_t>(shard);
    }
    template <class T>
    void fold(std::size_t count);
    void add_up(const buffer_view& in);

    distributed::exchange* ranks_;
    std::vector<std::unique_ptr<distributed::tree_sum>> over_ranks_; // by number of the sum in a step
    std::vector<distributed::sum_kind> kinds_;

    // State of a step. The thread that has the turn reads and writes it; mutex_ orders the
    // accesses.
    std::vector<int> live_;
    int own_ = 1, shards_ = 1, at_work_ = 0; // at_work_: the shard of this thread
    bool idle_ = false;
    runtime::device_runtime* device_ = nullptr;
    job job_;
    settings settings_{};
    std::exception_ptr error_;
    std::vector<char> ended_;
    std::size_t number_ = 0;       // number of finished sums
    int arrived_ = 0;              // shards that have reached the next one
    buffer_view first_{};          // the first shard's values
    std::vector<double> slots_[2]; // the values of each shard, aligned
    std::size_t slot_bytes_ = 0;

    std::mutex mutex_;
    std::condition_variable turned_;
    int turn_ = 0;
    bool quit_ = false, shared_ = false; // shared_: whether other threads have had turns in this step
    std::vector<std::thread> threads_;   // of shards 1, 2, ...
};

inline shard_turns::~shard_turns() {
    {
        const std::scoped_lock lock(mutex_);
        quit_ = true;
    }
    turned_.notify_all();
    for (std::thread& each : threads_) each.join();
}

inline void shard_turns::pass(int to) {
    turn_ = to;
    turned_.notify_all();
}

inline void shard_turns::wait_for_turn(std::unique_lock<std::mutex>& lock, int k) {
    turned_.wait(lock, [&] { return turn_ == k || quit_; });
    at_work_ = k;
}

template <class T>
void shard_turns::fold(std::size_t count) {
    for (int step = 1; step < own_; step *= 2)
        for (int s = 0; s < own_; s += 2 * step) {
            T* const to = reinterpret_cast<T*>(slot(number_, s));
            const T* const from = reinterpret_cast<const T*>(slot(number_, s + step));
            for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
        }
}

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void shard_turns::begin(int own, const std::vector<int>& live, bool idle, runtime::device_runtime* device,
                                      const job& work) {
    own_ = own;
    live_ = live;
    idle_ = idle;
    shards_ = idle ? 1 : static_cast<int>(live.size());
    device_ = device;
    job_ = work;
    settings_ = {runtime::current_runtime(), scoped_math_mode(), runtime::observer(), numeric_check::active(),
                 numeric_check::layers_wanted()};
    error_ = nullptr;
    ended_.assign(static_cast<std::size_t>(shards_), 0);
    number_ = 0;
    arrived_ = 0;
    shared_ = false;
    for (int k = 0; k < shards_ && !shared_; ++k) run_shard(k);
    if (shared_) {
        std::unique_lock lock(mutex_);
        pass(shards_ > 1 ? 1 : 0);
        wait_for_turn(lock, 0); // until the last shard ends
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// Runs on the thread of shard k, which has the turn.
TG_DEFINITION void shard_turns::run_shard(int k) {
    at_work_ = k;
    if (!error_) {
        try {
            const shard_scope in(this);
            job_.call(job_.of, k);
            if (arrived_ > 0)
                throw argument_error("sum_over_shards: shard " + std::to_string(k) +
                                     " of the step ended without sum number " + std::to_string(number_ + 1) +
                                     ", which others came to");
        } catch (const stopped&) {
        } catch (...) {
            error_ = std::current_exception();
        }
    }
    ended_[static_cast<std::size_t>(k)] = 1;
}

// The thread of shard k: runs in each step that has that many shards, once its first turn comes.
TG_DEFINITION void shard_turns::serve(int k) {
    std::unique_lock lock(mutex_);
    for (;;) {
        wait_for_turn(lock, k);
        if (quit_) return;
        lock.unlock();
        {
            const device_scope on(settings_.device);
            const math_mode_scope mode(settings_.mode);
            const numeric_check check(settings_.check);
            std::optional<runtime::observer_scope> watching;
            if (settings_.observer != nullptr) watching.emplace(*settings_.observer);
            numeric_check::layers_wanted() = settings_.layers;
            run_shard(k);
        }
        lock.lock();
        pass(k + 1 < shards_ ? k + 1 : 0);
    }
}

TG_DEFINITION void shard_turns::check_alike(const buffer_view& in) const {
    if (in.type == first_.type && in.bytes() == first_.bytes()) return;
    throw shape_error("sum_over_shards: " + std::string(name_of(first_.type)) +
                      to_string(shape(first_.rank, first_.extents)) + " and " + std::string(name_of(in.type)) +
                      to_string(shape(in.rank, in.extents)) + " of two shards");
}

// Called when all shards have arrived. Sums the rank's shards by the lower levels of the tree, then
// sums over all ranks.
TG_DEFINITION void shard_turns::add_up(const buffer_view& in) {
    const auto count = static_cast<std::size_t>(in.elements());
    in.type == dtype::f64 ? fold<double>(count) : fold<float>(count);
    if (ranks_ == nullptr || count == 0) return;
    const auto kind = in.type == dtype::f64 ? distributed::sum_of<double> : distributed::sum_of<float>;
    if (number_ == over_ranks_.size()) {
        over_ranks_.emplace_back();
        kinds_.push_back(kind);
    }
    auto& sum = over_ranks_[number_];
    if (!sum || sum->count() != count || kinds_[number_].bytes != kind.bytes) {
        sum = nullptr;
        sum = std::make_unique<distributed::tree_sum>(*ranks_, count, kind,
                                                      "sum over shards " + std::to_string(number_ + 1));
        kinds_[number_] = kind;
    }
    try {
        sum->start_all_reduce(slot(number_, 0));
        sum->wait();
    } catch (...) {
        sum->abandon();
        throw;
    }
}

TG_DEFINITION void shard_turns::add(const buffer_view& in, const buffer_view& out) {
    const int k = at_work_;
    if (std::find(ended_.begin(), ended_.end(), 1) != ended_.end())
        throw argument_error("sum_over_shards: shard " + std::to_string(k) + " of the step came to sum number " +
                             std::to_string(number_ + 1) + ", which another one ended without");
    if (arrived_ == 0) {
        first_ = in;
        slot_bytes_ = runtime::aligned(in.bytes() + 1);
        const std::size_t all = slot_bytes_ * static_cast<std::size_t>(own_) / sizeof(double);
        std::vector<double>& now = slots(number_);
        if (now.size() < all) now.resize(all);
        // The contribution of a shard without records, or of one that does not count.
        std::fill_n(now.begin(), all, 0.0);
    }
    check_alike(in);
    const std::size_t number = number_;
    if (!idle_ && in.bytes() > 0) std::memcpy(slot(number, live_[static_cast<std::size_t>(k)]), in.data, in.bytes());
    ++arrived_;
    // Reports the call of a waiting shard as ended, because others' calls come before it really
    // ends.
    runtime::call_observer* const watching = shards_ > 1 ? runtime::observer() : nullptr;
    wait_for_others(in, k, watching);
    if (error_) throw stopped();
    const kernel_call none;
    if (watching != nullptr)
        watching->begin({runtime::call_part::exchange, &none, this, static_cast<int>(number), taken});
    if (in.bytes() > 0) std::memcpy(out.data, slot(number, 0), in.bytes());
}

// After the last shard's values the turn returns to the first.
TG_DEFINITION void shard_turns::wait_for_others(const buffer_view& in, int k, runtime::call_observer* watching) {
    const runtime::device_pause others(device_);
    const bool last = arrived_ == shards_;
    if (last) {
        add_up(in);
        ++number_;
        arrived_ = 0;
        if (shards_ == 1) return;
    } else {
        while (static_cast<int>(threads_.size()) < shards_ - 1) {
            const int next = static_cast<int>(threads_.size()) + 1;
            threads_.emplace_back([this, next] { serve(next); });
        }
        shared_ = true;
    }
    if (watching != nullptr) watching->end();
    std::unique_lock lock(mutex_);
    pass(last ? 0 : k + 1);
    wait_for_turn(lock, k);
}

#endif

} // namespace tapegraph::detail
