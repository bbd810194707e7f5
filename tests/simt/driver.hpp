#pragma once

#include <simt/executor.hpp>

#include <tapegraph/core/error.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

/// A device for tests without one: the functions of cuda/driver.cuh over host memory. Streams are in order and at once.
/// What it has is settable, and so is that it is not there.

namespace tapegraph::cuda::driver {

struct imitation {
    int devices = 1, current = 0;
    std::size_t memory = std::size_t{1} << 30;
    std::size_t taken = 0; ///< by pools and plain allocations
    int allocations = 0, frees = 0;
    std::map<void*, std::size_t> live;

    static imitation& instance() {
        static imitation i;
        return i;
    }
    void* take(std::size_t bytes) {
        if (taken + bytes > memory) return nullptr;
        void* const at = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        std::memset(at, 0xFF, bytes); // fresh memory is no zeros
        live[at] = bytes;
        taken += bytes;
        ++allocations;
        return at;
    }
    void give(void* at) {
        const auto found = live.find(at);
        if (found == live.end()) throw device_error("an address is freed that was not allocated");
        taken -= found->second;
        live.erase(found);
        std::free(at);
        ++frees;
    }
};

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
    imitation::instance().current = device;
}
inline int current_device() { return imitation::instance().current; }

using stream = void*;
inline stream make_stream() { return new char; }
inline void destroy(stream s) { delete static_cast<char*>(s); }
inline void wait(stream) {}

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
    simt::executor::launch({shape.grid, shape.block, shape.shared, shape.cluster, shape.cooperative}, kernel,
                           std::forward<A>(arguments)...);
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

inline void copy(void* to, const void* from, std::size_t bytes, stream) { std::memcpy(to, from, bytes); }
inline void fill(void* at, int byte, std::size_t bytes, stream) { std::memset(at, byte, bytes); }
inline void* allocate_pinned(std::size_t bytes) { return std::malloc(bytes); }
inline void release_pinned(void* at) { std::free(at); }

} // namespace tapegraph::cuda::driver
