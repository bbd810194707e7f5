#pragma once

#include <tapegraph/core/error.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

/// The few calls to the CUDA runtime that everything else is built on, each checked. Tests on the CPU replace this header
/// by simt/driver.hpp, which offers the same functions.

namespace tapegraph::cuda::driver {

/// Throws device_error with the call, what it was for, and CUDA's own words.
inline void check(cudaError_t status, const char* call, const std::string& purpose = {}) {
    if (status == cudaSuccess) return;
    cudaGetLastError(); // a sticky error would be reported again by the next call, too
    throw device_error(std::string(call) + (purpose.empty() ? "" : " for " + purpose) + ": " +
                       cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")");
}

struct device_properties {
    std::string name;
    std::size_t memory = 0;   ///< bytes
    int major = 0, minor = 0; ///< compute capability
    int multiprocessors = 0;
    std::size_t shared_per_block = 0; ///< bytes, as much as a kernel may ask for
};

/// 0 without a driver or a device.
inline int device_count() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return count;
}
/// Why device_count() is 0, in CUDA's words; empty if it is not.
inline std::string why_no_device() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess) return count > 0 ? "" : "no CUDA device is visible";
    cudaGetLastError();
    return cudaGetErrorString(status);
}
inline device_properties properties(int device) {
    cudaDeviceProp p{};
    check(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties");
    return {p.name, p.totalGlobalMem, p.major, p.minor, p.multiProcessorCount, p.sharedMemPerBlockOptin};
}
inline void use(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }
/// This thread's device.
inline int current_device() {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    return device;
}

using stream = cudaStream_t;
inline stream make_stream() {
    stream s = nullptr;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return s;
}
inline void destroy(stream s) { cudaStreamDestroy(s); } // on the way out nobody can use an error
inline void wait(stream s) { check(cudaStreamSynchronize(s), "cudaStreamSynchronize"); }

/// How a kernel is launched.
struct launch_shape {
    dim3 grid, block;
    std::size_t shared = 0;   ///< bytes of dynamic shared memory
    unsigned cluster = 1;     ///< blocks along x that run together (sm_90 and later)
    bool cooperative = false; ///< the whole grid runs together
};
/// Launches a kernel, in order with what the stream has been given. Throws device_error with the operation's name.
template <class... P, class... A>
void launch(stream s, const char* operation, const launch_shape& shape, void (*kernel)(P...), A&&... arguments) {
    if (shape.shared > 48 * 1024) // more than that must be asked for
        check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shape.shared)),
              "cudaFuncSetAttribute", operation);
    cudaLaunchConfig_t config{};
    config.gridDim = shape.grid, config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared;
    config.stream = s;
    cudaLaunchAttribute attributes[2];
    unsigned count = 0;
    if (shape.cluster > 1) {
        attributes[count].id = cudaLaunchAttributeClusterDimension;
        attributes[count].val.clusterDim.x = shape.cluster;
        attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
        ++count;
    }
    if (shape.cooperative) {
        attributes[count].id = cudaLaunchAttributeCooperative;
        attributes[count].val.cooperative = 1;
        ++count;
    }
    config.attrs = attributes, config.numAttrs = count;
    std::tuple<P...> values(static_cast<P>(std::forward<A>(arguments))...);
    std::apply(
        [&](P&... each) { check(cudaLaunchKernelEx(&config, kernel, each...), "cudaLaunchKernelEx", operation); },
        values);
}

/// Stream-ordered memory of a device. The pool keeps what is freed until it is trimmed.
using pool = cudaMemPool_t;
inline pool make_pool(int device, std::size_t limit) {
    cudaMemPoolProps p{};
    p.allocType = cudaMemAllocationTypePinned;
    p.location.type = cudaMemLocationTypeDevice;
    p.location.id = device;
    p.maxSize = limit;
    pool made = nullptr;
    check(cudaMemPoolCreate(&made, &p), "cudaMemPoolCreate");
    unsigned long long keep = ~0ULL;
    check(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    return made;
}
inline void destroy(pool p) { cudaMemPoolDestroy(p); }
/// Null when there is not enough memory.
inline void* allocate(pool p, std::size_t bytes, stream s) {
    void* at = nullptr;
    const cudaError_t status = cudaMallocFromPoolAsync(&at, bytes, p, s);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return nullptr;
    }
    check(status, "cudaMallocFromPoolAsync");
    return at;
}
inline void release(void* at, stream s) { cudaFreeAsync(at, s); }
inline void trim(pool p, std::size_t keep) { check(cudaMemPoolTrimTo(p, keep), "cudaMemPoolTrimTo"); }
inline std::size_t reserved(pool p) {
    unsigned long long bytes = 0;
    check(cudaMemPoolGetAttribute(p, cudaMemPoolAttrReservedMemCurrent, &bytes), "cudaMemPoolGetAttribute");
    return bytes;
}
/// Memory that is not from a pool: for compute-sanitizer, which then sees every buffer's end.
inline void* allocate_plain(std::size_t bytes) {
    void* at = nullptr;
    const cudaError_t status = cudaMalloc(&at, bytes);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return nullptr;
    }
    check(status, "cudaMalloc");
    return at;
}
inline void release_plain(void* at) { cudaFree(at); }
inline std::size_t free_memory() {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return available;
}

inline void copy(void* to, const void* from, std::size_t bytes, stream s) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s), "cudaMemcpyAsync");
}
inline void fill(void* at, int byte, std::size_t bytes, stream s) {
    check(cudaMemsetAsync(at, byte, bytes, s), "cudaMemsetAsync");
}

/// Host memory that copies do not wait for.
inline void* allocate_pinned(std::size_t bytes) {
    void* at = nullptr;
    check(cudaHostAlloc(&at, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    return at;
}
inline void release_pinned(void* at) { cudaFreeHost(at); }

} // namespace tapegraph::cuda::driver
