#pragma once

#include <tapegraph/core/error.hpp>

#include <simt/guarded_pages.hpp>
#include <simt/predecessors.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// The device that simt/driver.hpp imitates: its memory, its pending work, and what CUDA would
/// forbid.

namespace tapegraph::cuda::driver {

/// Work that runs in the order in which it was enqueued.
struct stream_state {
    int device = 0;
    std::deque<std::function<void()>> to_do; ///< empty unless imitation::late
};
/// A point in a stream.
struct event_state {
    int device = 0;
    stream_state* on = nullptr;
    std::shared_ptr<bool> reached; ///< null: never recorded
    std::shared_ptr<double> at{};  ///< when, on the device's clock
};

/// The device's properties can be set, including its absence. With `guarded` only kernels and
/// copies can access its memory: a host that reads it crashes, as it would with a real one, and so
/// does a kernel that reads beyond the end of a buffer. With `late` all work of a stream happens as
/// late as CUDA allows: when the host waits for it, or for another stream that waits for it.
struct imitation {
    int devices = 1;
    std::size_t memory = std::size_t{1} << 30;
    std::size_t taken = 0; ///< by pools and plain allocations
    int allocations = 0, frees = 0;
    bool guarded = false; ///< set before the first allocation
    bool late = false;    ///< see late_device
    /// Kernels that are launched early see memory as it was before the preceding work, until they
    /// wait.
    bool overlapping = false;
    bool pools = true; ///< whether it has stream-ordered memory
    struct residency {
        int blocks = 1, clusters = 1;
    };
    std::array<residency, 4> residents{};      ///< the residency that kernels are told, by device
    int launches = 0, early = 0;               ///< early: those that need not wait for their predecessors
    double clock = 0;                          ///< microseconds of completed work
    int questions = 0;                         ///< about residency
    int copies = 0;                            ///< in any direction
    int waits = 0;                             ///< of the host
    std::atomic<int> switches{0};              ///< of a thread's device
    std::map<void*, std::size_t> live, pinned; ///< device memory; host memory that copies need not wait for
    std::vector<stream_state*> streams;
    /// A graph that a thread captures on a stream; at most one per thread.
    struct capture {
        std::thread::id by;
        stream_state* on;
        std::vector<std::function<void()>> work{};
        std::string spoilt{}; ///< why it is invalid
    };
    std::list<capture> captures;
    std::recursive_mutex guard; ///< of all this

    static imitation& instance() {
        static imitation& i = *new imitation; // memory may be freed after main()
        return i;
    }

    /// The current device of each thread.
    static int& current() {
        static thread_local int device = 0;
        return device;
    }

    /// Reports what CUDA forbids to the thread that captures a stream, or what would not be in the
    /// graph. The error is no device_error, which a caller may be prepared for; where it is caught
    /// nevertheless, the end of the capture throws again.
    void not_in_capture(const char* what) {
        const std::lock_guard lock(guard);
        if (capture* const own = own_capture()) spoil(*own, what);
    }
    capture* own_capture() {
        for (capture& each : captures)
            if (each.by == std::this_thread::get_id()) return &each;
        return nullptr;
    }
    capture* capture_of(const stream_state* s) {
        for (capture& each : captures)
            if (each.on == s) return &each;
        return nullptr;
    }
    static void spoil(capture& which, const char* what) {
        which.spoilt = std::string(what) + " while a graph is captured";
        throw std::logic_error(which.spoilt);
    }

    void* take(std::size_t bytes) {
        const std::lock_guard lock(guard);
        not_in_capture("memory is allocated");
        if (taken + bytes > memory) return nullptr;
        void* const at =
            guarded ? guarded_pages::instance().take(bytes) : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        if (!guarded) std::memset(at, 0xFF, bytes); // fresh memory is not zero
        live[at] = bytes;
        taken += bytes;
        ++allocations;
        return at;
    }
    void give(void* at) {
        const std::lock_guard lock(guard);
        const auto found = live.find(at);
        if (found == live.end()) throw device_error("an address is freed that was not allocated");
        taken -= found->second;
        if (guarded)
            guarded_pages::instance().give(at);
        else
            std::free(at);
        live.erase(found);
        ++frees;
    }
    /// Whether the device can access all of it directly.
    bool reaches(const void* at, std::size_t bytes) const {
        return within(live, at, bytes) || within(pinned, at, bytes);
    }

    /// Runs work of the device, which alone may access its memory.
    void run(const std::function<void()>& work) {
        struct opening {
            imitation& i;
            explicit opening(imitation& it) : i(it) {
                if (i.opened_++ == 0 && i.guarded) guarded_pages::instance().open();
            }
            ~opening() {
                if (--i.opened_ == 0 && i.guarded) guarded_pages::instance().close();
            }
        } const while_working(*this);
        if (overlapping && opened_ == 1) before_last_ = std::exchange(before_, image());
        work();
    }
    /// Runs a kernel that is launched early.
    template <class F>
    void run_early(const char* operation, const F& kernel) {
        simt::predecessors in_front;
        if (overlapping) {
            restore(before_last_);
            in_front.finish = [this] { restore(before_); };
        }
        struct running {
            explicit running(simt::predecessors& p) { simt::predecessors::of_running() = &p; }
            ~running() { simt::predecessors::of_running() = nullptr; }
        } const now(in_front);
        kernel();
        if (!in_front.waited)
            throw std::logic_error(std::string(operation) + ": a kernel that is launched early has not waited");
    }
    /// Runs the first pending work of a stream.
    void step(stream_state* s) {
        const std::lock_guard lock(guard);
        const std::function<void()> work = std::move(s->to_do.front());
        s->to_do.pop_front();
        run(work);
    }
    void finish(stream_state* s) {
        const std::lock_guard lock(guard);
        while (s != nullptr && !s->to_do.empty()) step(s);
    }
    void finish_all() {
        const std::lock_guard lock(guard); // another thread may be making a stream
        for (stream_state* s : streams) finish(s);
    }

private:
    static bool within(const std::map<void*, std::size_t>& blocks, const void* at, std::size_t bytes) {
        auto next = blocks.upper_bound(const_cast<void*>(at));
        if (next == blocks.begin()) return false;
        const auto& [first, size] = *std::prev(next);
        return static_cast<const std::byte*>(at) + bytes <= static_cast<const std::byte*>(first) + size;
    }

    using memory_image = std::map<void*, std::vector<std::byte>>;
    memory_image image() const {
        memory_image all;
        for (const auto& [at, bytes] : live)
            all[at].assign(static_cast<const std::byte*>(at), static_cast<const std::byte*>(at) + bytes);
        return all;
    }
    void restore(const memory_image& all) const {
        for (const auto& [at, bytes] : all)
            if (const auto found = live.find(at); found != live.end() && found->second == bytes.size())
                std::memcpy(at, bytes.data(), bytes.size());
    }

    int opened_ = 0;
    memory_image before_last_, before_; ///< of the last work but one, and of the last
};

/// Runs work of the device: at once, or later where a graph is being captured or the device is
/// late. The default stream is never late.
inline void enqueue(stream_state* s, std::function<void()> work) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    imitation::capture *const own = i.own_capture(), *const of = i.capture_of(s);
    if (of != nullptr && of != own) i.spoil(*of, "another thread gives it work");
    if (own != nullptr && of != own) i.spoil(*own, "another stream is given work");
    if (own != nullptr) {
        own->work.push_back(std::move(work));
    } else if (i.late && s != nullptr) {
        s->to_do.push_back(std::move(work));
    } else {
        i.run(work);
    }
}

/// Makes the device late while it lives.
class late_device {
public:
    late_device() { imitation::instance().late = true; }
    late_device(const late_device&) = delete;
    late_device& operator=(const late_device&) = delete;
    ~late_device() {
        imitation::instance().late = false;
        imitation::instance().finish_all();
    }
};

} // namespace tapegraph::cuda::driver
