#pragma once

#include <tapegraph/cluster/ranks/nccl_exchange.hpp>
#include <tapegraph/cuda/device_elements.hpp>
#include <tapegraph/cuda/kernels/add.cuh>

#include <algorithm>
#include <cstddef>
#include <string>

/// Adapts a GPU of the library for NCCL's exchange. Compiled by nvcc; no header of the library
/// includes this.

namespace tapegraph::cuda {

namespace detail {

template <class T>
void add_on(driver::stream stream, void* sum, const void* left, const void* right, std::size_t count) {
    if (count == 0) return;
    constexpr std::size_t threads = 256, most_blocks = 4096; // at least a full wave on every device there is
    driver::launch_shape shape;
    shape.grid.x = static_cast<unsigned>(std::min((count + threads - 1) / threads, most_blocks));
    shape.block.x = static_cast<unsigned>(threads);
    driver::launch(stream, "sum over ranks", shape, &kernels::add<T>, static_cast<const T*>(left),
                   static_cast<const T*>(right), static_cast<std::int64_t>(count), static_cast<T*>(sum));
}

} // namespace detail

/// Provides the library's stream, its pool and an adding kernel: sums over ranks run in order with
/// the computation of tensors, and a captured graph may contain them (except for the first, which
/// allocates memory).
///
///     distributed::nccl_exchange gpus(ranks, tg::cuda::nccl_device_of(tg::device::cuda(0)), library);
///
/// `where` must be the thread's device while the exchange is made and used (tg::device_scope).
/// Throws device_error where it is the CPU or not present; adding throws argument_error for
/// elements that have no kernel.
inline distributed::nccl_device nccl_device_of(tapegraph::device where = current_device()) {
    runtime::device_runtime* const gpu = &detail::gpu_of("nccl_device_of", where);
    const driver::stream stream = stream_of(where);
    distributed::nccl_device d;
    d.stream = stream;
    d.finished = [stream](void*) { return driver::is_finished(stream); };
    d.allocate = [gpu](std::size_t bytes) { return gpu->allocate(bytes, "sums over ranks"); };
    d.release = [gpu](void* at) { gpu->release(at); };
    d.add = [gpu, stream](const distributed::sum_kind& kind, void* sum, const void* left, const void* right,
                          std::size_t count, void*) {
        const runtime::device_turn turn(gpu);
        gpu->enter();
        const bool known = number_types::visit(
            kind.type, [&]<class T>(std::type_identity<T>) { detail::add_on<T>(stream, sum, left, right, count); });
        if (!known)
            throw argument_error(std::string("nccl_device_of: sums of ") + name_of(kind.type) + " have no kernel");
    };
    return d;
}

} // namespace tapegraph::cuda
