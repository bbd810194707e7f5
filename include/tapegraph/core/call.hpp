#pragma once

#include <tapegraph/core/dtype.hpp>
#include <tapegraph/core/shape.hpp>

#include <cstddef>
#include <cstdint>

namespace tapegraph {

namespace runtime {
class kept_memory;
struct continuation;
} // namespace runtime
namespace cpu {
struct interpreted_region;
} // namespace cpu

/// A tensor as kernels see it: contiguous elements, row-major, extents known.
struct buffer_view {
    void* data = nullptr;
    dtype type = dtype::f32;
    std::int8_t memory = 0;  ///< whose memory `data` is: 0 the CPU's, n + 1 that of GPU n
    std::int16_t copies = 1; ///< copies of a scalar's element that are stored, one after the other
    int rank = 0;
    std::int64_t extents[max_rank]{};

    /// The elements as a T*, which must be of the view's type.
    template <class T>
    T* as() const {
        return static_cast<T*>(data);
    }
    /// The product of the extents; 1 for a scalar.
    std::int64_t elements() const {
        std::int64_t product = 1;
        for (int i = 0; i < rank; ++i) product *= extents[i];
        return product;
    }
    /// Bytes of all elements, without gaps.
    std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(type); }
};

/// State of random kernels: a value is a pure function of (seed, step, the node's ordinal, the
/// element).
struct random_state {
    std::uint64_t seed = 0;
    std::uint64_t step = 0;
};

/// One call of a kernel, the same in both modes: operands, results, the operation's attributes and scratch memory.
struct kernel_call {
    const buffer_view* in = nullptr;
    int inputs = 0;
    const buffer_view* out = nullptr;
    int outputs = 0;
    const std::int64_t* attributes = nullptr;
    buffer_view domain; ///< the index space of an elementwise producer (its data is not used)
    void* workspace = nullptr;
    const random_state* random = nullptr;
    /// Where a device's kernels record errors, since they cannot throw; null on the CPU.
    void* fault = nullptr;
    /// A device's stream: everything above lies in that device's memory (`random` too); null on the
    /// CPU.
    void* stream = nullptr;
    /// Values of the program's symbolic extents, in the CPU's memory; null in eager mode.
    const std::int64_t* symbols = nullptr;
    /// Where a kernel may keep what it derives from a variable until the next run
    /// (runtime/kept_memory.hpp). Null on a device, in eager mode, and where the program updates all
    /// variables that the call reads.
    runtime::kept_memory* kept = nullptr;
    /// The instructions of an interpreted fused kernel (cpu/interpreter.hpp); null where it was
    /// compiled to a function.
    const cpu::interpreted_region* region = nullptr;
    /// The next call, elementwise, which this kernel may run on each part of its result as soon as that is complete; null
    /// where there is none. The kernel says so if it has (runtime/continuation.hpp).
    runtime::continuation* next = nullptr;
};

using kernel_function = void (*)(const kernel_call&);
using workspace_function = std::size_t (*)(const kernel_call&);
using cost_function = double (*)(const kernel_call&);

} // namespace tapegraph
