#pragma once

#include <simt/executor.hpp>
#include <simt/imitation.hpp>
#include <simt/words.hpp>

#include <tapegraph/cuda/kernels/dependent.cuh>
#include <tapegraph/cuda/programmatic_launch.hpp>

/// Imitates a device for tests without one: the functions of cuda/driver.cuh over host memory
/// (simt/imitation.hpp). They refuse what CUDA refuses: launches beyond a device's limits and,
/// while a stream is captured, work that must not or cannot be in a graph.

namespace tapegraph::cuda::driver {

struct device_properties {
    std::string name;
    std::size_t memory = 0;
    int major = 0, minor = 0;
    int multiprocessors = 0;
    std::size_t shared_per_block = 0;
};
inline int device_count() { return imitation::instance().devices; }
inline std::string why_no_device() { return device_count() > 0 ? "" : "no device is imitated"; }
inline device_properties properties(int device) {
    return {"imitated device " + std::to_string(device), imitation::instance().memory, 9, 0, 4, 232448};
}
inline void use(int device) {
    if (device < 0 || device >= device_count()) throw device_error("cudaSetDevice: invalid device ordinal");
    imitation::current() = device;
    ++imitation::instance().switches;
}
inline int current_device() { return imitation::current(); }

using stream = stream_state*;
inline stream make_stream() {
    const std::lock_guard lock(imitation::instance().guard);
    return imitation::instance().streams.emplace_back(new stream_state{imitation::current(), {}});
}
inline void destroy(stream s) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    i.finish(s);
    std::erase(i.streams, s);
    delete s;
}
inline void wait(stream s) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    i.not_in_capture("the host waits");
    if (imitation::capture* const of = i.capture_of(s)) i.spoil(*of, "another thread waits for the stream");
    ++i.waits;
    i.finish(s);
}
/// Each query lets a late device make one step of progress.
inline bool is_finished(stream s) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    i.not_in_capture("the host asks");
    if (s->to_do.empty()) return true;
    i.step(s);
    return false;
}

using event = event_state*;
inline event make_event() { return new event_state{imitation::current(), nullptr, nullptr}; }
inline void destroy_event(event e) { delete e; }
inline void record(event e, stream s) {
    const std::lock_guard lock(imitation::instance().guard);
    imitation::instance().not_in_capture("an event is recorded");
    if (s != nullptr && s->device != e->device) throw device_error("cudaEventRecord: the stream is another device's");
    *e = {e->device, s, std::make_shared<bool>(false), std::make_shared<double>(0)};
    enqueue(s, [reached = e->reached, at = e->at] {
        *reached = true;
        *at = imitation::instance().clock;
    });
}
inline event make_timed_event() { return make_event(); }
inline double microseconds(event from, event to) {
    if (from->at == nullptr || to->at == nullptr || !*from->reached || !*to->reached)
        throw device_error("cudaEventElapsedTime: an event has not been reached");
    return *to->at - *from->at;
}
inline void wait_for(event e) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    i.not_in_capture("the host waits");
    ++i.waits;
    while (e->reached != nullptr && !*e->reached) i.step(e->on);
}
inline void wait_for(stream s, event e) {
    const std::lock_guard lock(imitation::instance().guard);
    imitation::instance().not_in_capture("a stream waits for an event");
    if (e->reached == nullptr) return;
    enqueue(s, [before = *e] {
        while (!*before.reached) imitation::instance().step(before.on);
    });
}

using graph = std::vector<std::function<void()>>*;
inline void begin_capture(stream s) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    i.not_in_capture("another capture begins");
    i.captures.push_back({std::this_thread::get_id(), s});
}
inline graph end_capture(stream) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    imitation::capture* const own = i.own_capture();
    if (own == nullptr) throw std::logic_error("the end of a capture that this thread has not begun");
    const imitation::capture ended = std::move(*own);
    i.captures.remove_if([&](const imitation::capture& each) { return &each == own; });
    if (!ended.spoilt.empty()) throw std::logic_error(ended.spoilt);
    return new std::vector<std::function<void()>>(ended.work);
}
inline void launch_graph(graph g, stream s) {
    imitation::instance().not_in_capture("a graph is launched");
    for (const auto& work : *g) enqueue(s, work);
}
inline void destroy_graph(graph g) { delete g; }

struct launch_shape {
    simt::extent3 grid, block;
    std::size_t shared = 0;
    unsigned cluster = 1;
    bool cooperative = false;
};
/// Throws device_error for launches that cudaLaunchKernelEx refuses on every device so far.
inline void check_launch(const char* operation, const launch_shape& shape) {
    const auto refuse = [&](const char* what, const simt::extent3& e) {
        throw device_error(std::string("launch of ") + operation + ": " + what + " of " + std::to_string(e.x) + " by " +
                           std::to_string(e.y) + " by " + std::to_string(e.z));
    };
    const auto beyond = [](const simt::extent3& e, unsigned x, unsigned y, unsigned z) {
        return e.x < 1 || e.y < 1 || e.z < 1 || e.x > x || e.y > y || e.z > z;
    };
    if (beyond(shape.grid, 0x7FFFFFFFu, 65535, 65535)) refuse("a grid", shape.grid);
    if (beyond(shape.block, 1024, 1024, 64) || shape.block.count() > 1024) refuse("a block", shape.block);
    if (shape.shared > 232448) throw device_error(std::string("launch of ") + operation + ": too much shared memory");
    if (shape.cluster < 1 || shape.cluster > 16 || shape.grid.x % shape.cluster != 0)
        refuse("clusters that the grid is not made of, or of more than 16 blocks: a grid", shape.grid);
}
/// Settings of launches for tests.
struct launch_rules {
    struct launched {
        const char* operation;
        const launch_shape& shape;
        const void* kernel;
    };
    std::function<double(const launched&)> cost; ///< microseconds; one where it is not set
    std::function<bool(const launched&)> wrong;  ///< launches without effect, as if the device got a kernel wrong
};
inline launch_rules& rules() {
    static launch_rules& r = *new launch_rules; // like imitation::instance()
    return r;
}
/// Runs a kernel; `waits`: it may be launched early and then waits for what runs before it.
inline void launch_bound(stream s, const char* operation, const launch_shape& shape, bool waits,
                         simt::bound_kernel kernel) {
    check_launch(operation, shape);
    if (s != nullptr && s->device != current_device())
        throw device_error(std::string("launch of ") + operation + ": the stream is another device's");
    const std::lock_guard lock(imitation::instance().guard);
    ++imitation::instance().launches;
    const launch_rules::launched it{operation, shape, kernel.address()};
    const double cost = rules().cost ? rules().cost(it) : 1;
    const bool wrong = rules().wrong && rules().wrong(it);
    const bool early = waits && programmatic_launches();
    if (early) ++imitation::instance().early;
    enqueue(s, [operation, shape, cost, wrong, early, kernel = std::move(kernel)] {
        imitation::instance().clock += cost;
        if (wrong) return;
        const auto run = [&] {
            simt::executor::launch({shape.grid, shape.block, shape.shared, shape.cluster, shape.cooperative}, kernel);
        };
        early ? imitation::instance().run_early(operation, run) : run();
    });
}
template <class... P, class... A>
void launch(stream s, const char* operation, const launch_shape& shape, void (*kernel)(P...), A&&... arguments) {
    launch_bound(s, operation, shape, kernels::waits_for_predecessors<P...>,
                 simt::bound_kernel(kernel, std::forward<A>(arguments)...));
}

inline const imitation::residency& residents() {
    const std::lock_guard lock(imitation::instance().guard);
    ++imitation::instance().questions;
    return imitation::instance().residents.at(static_cast<std::size_t>(imitation::current()));
}
template <class... P>
int resident_blocks(void (*)(P...), const launch_shape&) {
    return residents().blocks;
}
template <class... P>
int resident_clusters(void (*)(P...), const launch_shape&) {
    return residents().clusters;
}

/// Keeps freed memory, as the real pool does: `reserved` falls only by trimming.
struct pool_state {
    std::size_t used = 0, reserved = 0;
};
using pool = pool_state*;
inline bool has_pools(int) { return imitation::instance().pools; }
inline pool make_pool(int) { return new pool_state; }
inline void destroy(pool p) { delete p; }
inline std::map<void*, pool>& owners() {
    static std::map<void*, pool>& o = *new std::map<void*, pool>; // like imitation::instance()
    return o;
}
inline void* allocate(pool p, std::size_t bytes, stream) {
    const std::lock_guard lock(imitation::instance().guard);
    void* const at = imitation::instance().take(bytes);
    if (at == nullptr) return nullptr;
    owners()[at] = p;
    p->used += bytes;
    if (p->used > p->reserved) p->reserved = p->used;
    return at;
}
inline void release(void* at, stream s) {
    const std::lock_guard lock(imitation::instance().guard);
    imitation::instance().not_in_capture("memory is freed");
    owners().at(at)->used -= imitation::instance().live.at(at);
    owners().erase(at);
    enqueue(s, [at] { imitation::instance().give(at); });
}
inline void trim(pool p, std::size_t keep) {
    const std::lock_guard lock(imitation::instance().guard);
    imitation::instance().not_in_capture("a pool is trimmed");
    p->reserved = p->used > keep ? p->used : (p->reserved < keep ? p->reserved : keep);
}
inline std::size_t reserved(pool p) { return p->reserved; }
inline void* allocate_plain(std::size_t bytes) { return imitation::instance().take(bytes); }
/// Waits for the device, as cudaFree does.
inline void release_plain(void* at) {
    imitation& i = imitation::instance();
    i.not_in_capture("memory is freed");
    i.finish_all();
    if (at != nullptr) i.give(at);
}
inline std::size_t free_memory() {
    const std::lock_guard lock(imitation::instance().guard);
    return imitation::instance().memory - imitation::instance().taken;
}

/// A copy from memory that the device cannot reach has read everything when it returns, and a copy
/// to such memory has written everything.
inline void copy(void* to, const void* from, std::size_t bytes, stream s) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    ++i.copies;
    const bool from_host = bytes > 0 && !i.reaches(from, bytes), to_host = bytes > 0 && !i.reaches(to, bytes);
    if (from_host || to_host) i.not_in_capture("pageable memory is copied");
    if (i.late && from_host && !to_host) {
        const auto* const first = static_cast<const std::byte*>(from);
        return enqueue(s, [to, staged = std::vector<std::byte>(first, first + bytes)] {
            std::memcpy(to, staged.data(), staged.size());
        });
    }
    if (to_host) i.finish(s);
    const auto work = [=] { std::memcpy(to, from, bytes); };
    to_host ? i.run(work) : enqueue(s, work);
}
inline void fill(void* at, int byte, std::size_t bytes, stream s) {
    enqueue(s, [=] { std::memset(at, byte, bytes); });
}
inline void call_host(stream s, void (*f)(void*), void* data) {
    enqueue(s, [=] { f(data); });
}
inline void* allocate_pinned(std::size_t bytes) {
    const std::lock_guard lock(imitation::instance().guard);
    void* const at = std::malloc(bytes);
    imitation::instance().pinned[at] = bytes;
    return at;
}
/// Waits for the device, as cudaFreeHost does.
inline void release_pinned(void* at) {
    imitation& i = imitation::instance();
    const std::lock_guard lock(i.guard);
    i.not_in_capture("pinned memory is freed");
    i.finish_all();
    i.pinned.erase(at);
    std::free(at);
}

} // namespace tapegraph::cuda::driver
