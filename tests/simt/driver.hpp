#pragma once

#include <simt/executor.hpp>

#include <tapegraph/core/error.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>

/// A device for tests without one: the functions of cuda/driver.cuh over host memory. Streams are in order and at once.
/// What it has is settable, and so is that it is not there. With `guarded` its memory can be touched by kernels and copies alone:
/// a host that looks into it crashes, as it would with a real one, and so does a kernel that goes beyond the end of a buffer.

namespace tapegraph::cuda::driver {

struct imitation {
    int devices = 1;
    std::size_t memory = std::size_t{1} << 30;
    std::size_t taken = 0; ///< by pools and plain allocations
    int allocations = 0, frees = 0;
    bool guarded = false;                           ///< set before the first allocation
    int resident_blocks = 1, resident_clusters = 1; ///< what kernels are told they fit
    int launches = 0;
    std::map<void*, std::size_t> live;
    std::vector<std::function<void()>>* recording = nullptr; ///< a graph that is being captured
    std::thread::id recorder;                                ///< who captures it

    /// Each thread's own.
    static int& current() {
        static thread_local int device = 0;
        return device;
    }
    /// What another thread gave now would become part of the graph.
    void refuse_strangers() const {
        if (recording != nullptr && recorder != std::this_thread::get_id())
            throw device_error("a thread uses a stream that another one is capturing");
    }
    static imitation& instance() {
        static imitation i;
        return i;
    }
    void* take(std::size_t bytes) {
        if (taken + bytes > memory) return nullptr;
        refuse_strangers();
        if (recording != nullptr) throw device_error("memory is allocated while a graph is captured");
        void* const at = guarded ? guarded_memory(bytes) : std::aligned_alloc(256, rounded(bytes, 256));
        std::memset(at, 0xFF, bytes); // fresh memory is no zeros
        if (guarded) allow(at, bytes, PROT_NONE);
        live[at] = bytes;
        taken += bytes;
        ++allocations;
        return at;
    }
    void give(void* at) {
        const auto found = live.find(at);
        if (found == live.end()) throw device_error("an address is freed that was not allocated");
        taken -= found->second;
        if (guarded)
            munmap(first_page(at, found->second), rounded(found->second, page) + page);
        else
            std::free(at);
        live.erase(found);
        ++frees;
    }
    void open(bool on) const {
        if (!guarded) return;
        for (const auto& [at, bytes] : live) allow(at, bytes, on ? PROT_READ | PROT_WRITE : PROT_NONE);
    }

private:
    // A guarded buffer ends, up to the 256 bytes that it is aligned to, where its last page does; the page behind is never open.
    static constexpr std::size_t page = 4096;
    static std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }
    static std::byte* first_page(void* at, std::size_t bytes) {
        return static_cast<std::byte*>(at) - (rounded(bytes, page) - rounded(bytes, 256));
    }
    static void* guarded_memory(std::size_t bytes) {
        void* const pages = mmap(nullptr, rounded(bytes, page) + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) throw device_error("no memory for the imitated device");
        void* const at = static_cast<std::byte*>(pages) + (rounded(bytes, page) - rounded(bytes, 256));
        allow(at, bytes, PROT_READ | PROT_WRITE);
        return at;
    }
    static void allow(void* at, std::size_t bytes, int rights) {
        if (bytes > 0) mprotect(first_page(at, bytes), rounded(bytes, page), rights);
    }
};

/// What the device does: at once, or later where a graph is being captured.
inline void enqueue(std::function<void()> work) {
    imitation& i = imitation::instance();
    i.refuse_strangers();
    if (i.recording != nullptr) {
        i.recording->push_back(std::move(work));
        return;
    }
    struct opened {
        opened() { imitation::instance().open(true); }
        ~opened() { imitation::instance().open(false); }
    } const while_working;
    work();
}

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
}
inline int current_device() { return imitation::current(); }

using stream = void*;
inline stream make_stream() { return new char; }
inline void destroy(stream s) { delete static_cast<char*>(s); }
inline void wait(stream) {
    if (imitation::instance().recording != nullptr) throw device_error("the host waits while a graph is captured");
}
using event = void*;
inline event make_event() { return new char; }
inline void destroy_event(event e) { delete static_cast<char*>(e); }
inline void record(event, stream) {}
inline void wait_for(event) {}
inline void wait_for(stream, event) {}

using graph = std::vector<std::function<void()>>*;
inline void begin_capture(stream) {
    imitation& i = imitation::instance();
    i.recorder = std::this_thread::get_id();
    i.recording = new std::vector<std::function<void()>>;
}
inline graph end_capture(stream) { return std::exchange(imitation::instance().recording, nullptr); }
inline void launch_graph(graph g, stream) {
    for (const auto& work : *g) enqueue(work);
}
inline void destroy_graph(graph g) { delete g; }

/// Runs a kernel at once.
struct launch_shape {
    simt::extent3 grid, block;
    std::size_t shared = 0;
    unsigned cluster = 1;
    bool cooperative = false;
};
template <class... P, class... A>
void launch(stream, const char* operation, const launch_shape& shape, void (*kernel)(P...), A&&... arguments) {
    if (shape.shared > 232448) throw device_error(std::string("launch of ") + operation + ": too much shared memory");
    ++imitation::instance().launches;
    enqueue([shape, kernel, values = std::tuple<P...>(static_cast<P>(std::forward<A>(arguments))...)] {
        std::apply(
            [&](const P&... each) {
                simt::executor::launch({shape.grid, shape.block, shape.shared, shape.cluster, shape.cooperative},
                                       kernel, each...);
            },
            values);
    });
}

template <class... P>
int resident_blocks(void (*)(P...), const launch_shape&) {
    return imitation::instance().resident_blocks;
}
template <class... P>
int resident_clusters(void (*)(P...), const launch_shape&) {
    return imitation::instance().resident_clusters;
}

/// Keeps what is freed, as the real one does: `reserved` falls only by trimming.
struct pool_state {
    std::size_t limit = 0, used = 0, reserved = 0;
};
using pool = pool_state*;
inline pool make_pool(int, std::size_t limit) { return new pool_state{limit, 0, 0}; }
inline void destroy(pool p) { delete p; }
inline std::map<void*, pool>& owners() {
    static std::map<void*, pool> o;
    return o;
}
inline void* allocate(pool p, std::size_t bytes, stream) {
    if (p->limit != 0 && p->used + bytes > p->limit) return nullptr;
    void* const at = imitation::instance().take(bytes);
    if (at == nullptr) return nullptr;
    owners()[at] = p;
    p->used += bytes;
    if (p->used > p->reserved) p->reserved = p->used;
    return at;
}
inline void release(void* at, stream) {
    const pool p = owners().at(at);
    p->used -= imitation::instance().live.at(at);
    owners().erase(at);
    imitation::instance().give(at);
}
inline void trim(pool p, std::size_t keep) {
    p->reserved = p->used > keep ? p->used : (p->reserved < keep ? p->reserved : keep);
}
inline std::size_t reserved(pool p) { return p->reserved; }
inline void* allocate_plain(std::size_t bytes) { return imitation::instance().take(bytes); }
inline void release_plain(void* at) { imitation::instance().give(at); }
inline std::size_t free_memory() { return imitation::instance().memory - imitation::instance().taken; }

inline void copy(void* to, const void* from, std::size_t bytes, stream) {
    enqueue([=] { std::memcpy(to, from, bytes); });
}
inline void fill(void* at, int byte, std::size_t bytes, stream) {
    enqueue([=] { std::memset(at, byte, bytes); });
}
inline void call_host(stream, void (*f)(void*), void* data) {
    enqueue([=] { f(data); });
}
inline void* allocate_pinned(std::size_t bytes) { return std::malloc(bytes); }
inline void release_pinned(void* at) { std::free(at); }

} // namespace tapegraph::cuda::driver
