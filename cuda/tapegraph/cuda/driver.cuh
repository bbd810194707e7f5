#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cuda/kernel_memory.hpp>
#include <tapegraph/cuda/kernels/dependent.cuh>
#include <tapegraph/cuda/programmatic_launch.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

/// Wraps the few calls to the CUDA runtime that everything else is built on and checks each of
/// them. Tests on the CPU replace this header by simt/driver.hpp, which offers the same functions.

namespace tapegraph::cuda::driver {

/// Throws device_error with the call, its purpose and CUDA's error text.
inline void check(cudaError_t status, const char* call, std::string_view purpose = {}) {
    if (status == cudaSuccess) return;
    cudaGetLastError(); // otherwise the next call would report the error again
    const bool foreign = status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion;
    throw device_error(
        std::string(call) + (purpose.empty() ? "" : " for " + std::string(purpose)) + ": " + cudaGetErrorName(status) +
        " (" + cudaGetErrorString(status) + ")" +
        (foreign ? "; the program was not compiled for this device (nvcc -arch, CMAKE_CUDA_ARCHITECTURES)" : ""));
}

struct device_properties {
    std::string name;
    std::size_t memory = 0;   ///< bytes
    int major = 0, minor = 0; ///< compute capability
    int multiprocessors = 0;
    std::size_t shared_per_block = 0; ///< bytes, the most that a kernel may request
};

/// The number of devices; 0 without a driver or a device.
inline int device_count() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return count;
}
/// The reason why device_count() is 0, in CUDA's words; empty otherwise.
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
/// The current device of this thread.
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
inline void destroy(stream s) { cudaStreamDestroy(s); } // at exit nobody can handle an error
inline void wait(stream s) { check(cudaStreamSynchronize(s), "cudaStreamSynchronize"); }
/// Whether the stream has finished all its work; does not wait.
inline bool is_finished(stream s) {
    const cudaError_t status = cudaStreamQuery(s);
    if (status == cudaErrorNotReady) return false;
    check(status, "cudaStreamQuery");
    return true;
}

/// A point in a stream.
using event = cudaEvent_t;
inline event make_event() {
    event e = nullptr;
    check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return e;
}
/// An event that also records when it was reached.
inline event make_timed_event() {
    event e = nullptr;
    check(cudaEventCreate(&e), "cudaEventCreate");
    return e;
}
inline void destroy_event(event e) { cudaEventDestroy(e); }
inline void record(event e, stream s) { check(cudaEventRecord(e, s), "cudaEventRecord"); }
/// Makes the host, or a stream, wait for an event.
inline void wait_for(event e) { check(cudaEventSynchronize(e), "cudaEventSynchronize"); }
inline void wait_for(stream s, event e) { check(cudaStreamWaitEvent(s, e, 0), "cudaStreamWaitEvent"); }
/// The time from one timed event to a later one; both must have been waited for.
inline double microseconds(event from, event to) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from, to), "cudaEventElapsedTime");
    return 1000.0 * static_cast<double>(milliseconds);
}

/// Work enqueued on the stream between begin and end of a capture is recorded instead of run. Only
/// calls of this thread are recorded.
using graph = cudaGraphExec_t;
inline void begin_capture(stream s) {
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}
/// Null where something was enqueued that a graph cannot hold.
inline graph end_capture(stream s) {
    cudaGraph_t recorded = nullptr;
    if (cudaStreamEndCapture(s, &recorded) != cudaSuccess || recorded == nullptr) {
        cudaGetLastError();
        return nullptr;
    }
    graph ready = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&ready, recorded, 0);
    cudaGraphDestroy(recorded);
    check(status, "cudaGraphInstantiate");
    return ready;
}
inline void launch_graph(graph g, stream s) { check(cudaGraphLaunch(g, s), "cudaGraphLaunch"); }
inline void destroy_graph(graph g) { cudaGraphExecDestroy(g); }

/// The launch configuration of a kernel.
struct launch_shape {
    dim3 grid, block;
    std::size_t shared = 0;   ///< bytes of dynamic shared memory
    unsigned cluster = 1;     ///< blocks along x that form a cluster (sm_90 and later)
    bool cooperative = false; ///< all blocks of the grid are resident at once
};
/// Sets the attributes that a kernel needs before a launch of this shape.
template <class... P>
void allow(const char* operation, const launch_shape& shape, void (*kernel)(P...)) {
    const bool much = shape.shared > 48 * 1024, wide = shape.cluster > 8;
    if (!much && !wide) return;
    const void* const function = reinterpret_cast<const void*>(kernel);
    const auto set = [&](cudaFuncAttribute attribute, std::size_t value) {
        check(cudaFuncSetAttribute(function, attribute, static_cast<int>(value)), "cudaFuncSetAttribute", operation);
    };
    cuda::detail::known_allowances()(
        current_device(), function, much ? shape.shared : 0, wide,
        [&](std::size_t bytes) { set(cudaFuncAttributeMaxDynamicSharedMemorySize, bytes); },
        [&] { set(cudaFuncAttributeNonPortableClusterSizeAllowed, 1); });
}
/// Whether a kernel was compiled for devices that support programmatic dependent launch. Compiled
/// for others, its wait for the preceding kernel would do nothing.
template <class P>
bool is_compiled_to_wait(void (*kernel)(P)) {
    const void* const function = reinterpret_cast<const void*>(kernel);
    return cuda::detail::known_waits()({current_device(), function}, [&] {
               cudaFuncAttributes compiled{};
               check(cudaFuncGetAttributes(&compiled, function), "cudaFuncGetAttributes");
               return compiled.ptxVersion >= 90 ? 1 : 0;
           }) == 1;
}
/// Launches a kernel on the stream. Throws device_error with the operation's name.
template <class... P, class... A>
void launch(stream s, const char* operation, const launch_shape& shape, void (*kernel)(P...), A&&... arguments) {
    allow(operation, shape, kernel);
    cudaLaunchConfig_t config{};
    config.gridDim = shape.grid, config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared;
    config.stream = s;
    cudaLaunchAttribute attributes[3];
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
    if constexpr (kernels::waits_for_predecessors<P...>)
        if (programmatic_launches() && is_compiled_to_wait(kernel)) {
            attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
            attributes[count].val.programmaticStreamSerializationAllowed = 1;
            ++count;
        }
    config.attrs = attributes, config.numAttrs = count;
    std::tuple<P...> values(static_cast<P>(std::forward<A>(arguments))...);
    std::apply(
        [&](P&... each) { check(cudaLaunchKernelEx(&config, kernel, each...), "cudaLaunchKernelEx", operation); },
        values);
}

/// Whether a device can run a kernel of this shape at all: some refuse clusters of more than 8
/// blocks, or so much shared memory.
template <class... P>
bool takes(void (*kernel)(P...), const launch_shape& shape) {
    return cuda::detail::is_granted([&] { allow("a question of what fits", shape, kernel); });
}
/// How many blocks of a kernel one multiprocessor holds at once; 0 where the device cannot run it.
template <class... P>
int resident_blocks(void (*kernel)(P...), const launch_shape& shape) {
    if (!takes(kernel, shape)) return 0;
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(shape.block.x), shape.shared),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks;
}
/// How many clusters the device holds at once; 0 if it supports none of that size, or if the kernel
/// was compiled for devices without clusters.
template <class... P>
int resident_clusters(void (*kernel)(P...), const launch_shape& shape) {
    cudaFuncAttributes compiled{};
    check(cudaFuncGetAttributes(&compiled, reinterpret_cast<const void*>(kernel)), "cudaFuncGetAttributes");
    if (compiled.ptxVersion < 90) return 0;
    if (!takes(kernel, shape)) return 0;
    cudaLaunchConfig_t config{};
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = shape.cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    config.gridDim = shape.grid, config.blockDim = shape.block, config.dynamicSmemBytes = shape.shared;
    config.attrs = &attribute, config.numAttrs = 1;
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, reinterpret_cast<const void*>(kernel), &config) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return clusters;
}

/// Stream-ordered memory of a device. The pool keeps freed memory until it is trimmed.
using pool = cudaMemPool_t;
/// Whether the device has memory pools; some virtual GPUs do not.
inline bool has_pools(int device) {
    int has = 0;
    check(cudaDeviceGetAttribute(&has, cudaDevAttrMemoryPoolsSupported, device), "cudaDeviceGetAttribute");
    return has != 0;
}
/// Creates a pool without a limit of its own: pools grow by pieces of megabytes, so it would reach
/// a limit before the bytes in use do.
inline pool make_pool(int device) {
    cudaMemPoolProps p{};
    p.allocType = cudaMemAllocationTypePinned;
    p.location.type = cudaMemLocationTypeDevice;
    p.location.id = device;
    pool made = nullptr;
    check(cudaMemPoolCreate(&made, &p), "cudaMemPoolCreate");
    unsigned long long keep = ~0ULL;
    check(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    return made;
}
inline void destroy(pool p) { cudaMemPoolDestroy(p); }
/// Returns null when there is not enough memory.
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
/// Allocates outside the pools, so that compute-sanitizer sees the end of every buffer.
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
/// Calls f(data) on one of CUDA's threads, in order with the stream's work. f must not call CUDA or
/// throw.
inline void call_host(stream s, void (*f)(void*), void* data) {
    check(cudaLaunchHostFunc(s, f, data), "cudaLaunchHostFunc");
}

/// Pinned host memory, which asynchronous copies need. May be allocated while a stream is being
/// captured.
inline void* allocate_pinned(std::size_t bytes) {
    void* at = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    const cudaError_t status = cudaHostAlloc(&at, bytes, cudaHostAllocDefault);
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    check(status, "cudaHostAlloc");
    return at;
}
inline void release_pinned(void* at) { cudaFreeHost(at); }

} // namespace tapegraph::cuda::driver
