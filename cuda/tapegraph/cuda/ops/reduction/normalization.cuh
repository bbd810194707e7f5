#pragma once

#include <tapegraph/cuda/kernels/box.cuh>
#include <tapegraph/cuda/ops/reduction/softmax.cuh>
#include <tapegraph/ops/reduction/normalization_kernel.hpp>

/// Normalization and its derivatives. A block takes a group of a record, which it reads two or three
/// times, mostly from the L2 cache. Sums down the rows of all records take blocks of 32 channels by
/// eight rows, in parts whose number follows from the shape and which are then added up.

namespace tapegraph::cuda {

namespace kernels {

struct normalized_groups {
    cpu::normalized_shape shape;
    std::int64_t first; ///< group of all
};

/// x / by, in 32 bits where both fit.
__device__ inline std::int64_t divided(std::int64_t x, std::int64_t by) {
    return (x | by) >> 31 == 0 ? static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(by) : x / by;
}

/// Calls f(element, channel) for the elements of a group that the thread has; `x` is the group's
/// number, counted through examples and records.
template <class F>
__device__ void each_of_group(const cpu::normalized_shape& s, std::int64_t number, const F& f) {
    const std::int64_t group = number % s.groups, record = number / s.groups, channels = s.channels(),
                       begin = group * s.in_group, size = s.rows * s.in_group;
    if (s.rows == 1) { // a division of 64 bits takes a hundred instructions
        const std::int64_t at = record * channels + begin;
        for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) f(at + i, begin + i);
        return;
    }
    for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        const std::int64_t row = divided(i, s.in_group), channel = begin + (i - row * s.in_group);
        f((record * s.rows + row) * channels + channel, channel);
    }
}
__device__ inline std::int64_t parameters_of(const cpu::normalized_shape& s, std::int64_t number) {
    return number / s.groups / s.records / s.sharing * s.channels();
}
/// The place of a group's four numbers among the sums.
__device__ inline std::int64_t statistics_of(const cpu::normalized_shape& s, std::int64_t number) {
    const std::int64_t in_example = s.records * s.groups, example = number / in_example;
    return example * s.sums() + 2 * s.channels() + 4 * (number - example * in_example);
}

template <class T>
struct group_numbers {
    T mean, inverse;
};
template <class T>
__device__ group_numbers<T> numbers_of_group(const cpu::normalized_shape& s, std::int64_t number, const T* x,
                                             double* warps) {
    const double size = static_cast<double>(s.rows * s.in_group);
    T mean(0), total(0);
    if (s.centered) {
        each_of_group(s, number, [&](std::int64_t i, std::int64_t) { total += x[i]; });
        mean = static_cast<T>(of_block<false, false>(static_cast<double>(total), warps) / size);
    }
    total = T(0);
    each_of_group(s, number, [&](std::int64_t i, std::int64_t) {
        const T distance = x[i] - mean;
        total += distance * distance;
    });
    const double power = of_block<false, false>(static_cast<double>(total), warps) / size;
    return {mean, static_cast<T>(1 / math::sqrt(power + s.epsilon))};
}

template <class T>
__global__ void normalize(normalized_groups g, const T* x, const T* gamma, const T* beta, T* y) {
    __shared__ double warps[32];
    const std::int64_t number = g.first + blockIdx.x, parameters = parameters_of(g.shape, number);
    const group_numbers<T> of = numbers_of_group(g.shape, number, x, warps);
    each_of_group(g.shape, number, [&](std::int64_t i, std::int64_t c) {
        y[i] = (x[i] - of.mean) * (of.inverse * gamma[parameters + c]) + beta[parameters + c];
    });
}

template <class T>
__global__ void normalization_statistics(normalized_groups g, const T* dy, const T* x, const T* gamma, T* sums) {
    __shared__ double warps[32];
    const cpu::normalized_shape& s = g.shape;
    const std::int64_t number = g.first + blockIdx.x, parameters = parameters_of(s, number);
    const group_numbers<T> of = numbers_of_group(s, number, x, warps);
    T plain(0), product(0);
    each_of_group(s, number, [&](std::int64_t i, std::int64_t c) {
        const T slope = dy[i] * gamma[parameters + c];
        plain += slope;
        product += slope * ((x[i] - of.mean) * of.inverse);
    });
    const double size = static_cast<double>(s.rows * s.in_group);
    const double plain_mean = of_block<false, false>(static_cast<double>(plain), warps) / size;
    const double product_mean = of_block<false, false>(static_cast<double>(product), warps) / size;
    if (threadIdx.x != 0) return;
    T* const to = sums + statistics_of(s, number);
    const bool any = s.rows * s.in_group > 0; // otherwise there is no mean, and nobody reads it
    to[0] = any ? of.mean : T(0);
    to[1] = any ? of.inverse : T(0);
    to[2] = any && s.centered ? static_cast<T>(plain_mean) : T(0);
    to[3] = any ? static_cast<T>(product_mean) : T(0);
}

/// A block has 32 channels by eight of the rows of one part of an example's. `totals` has [2, channels] for each part.
template <class T>
__global__ void normalization_columns(cpu::normalized_shape s, std::int64_t parts, std::int64_t first_block,
                                      const T* dy, const T* x, const T* sums, double* totals) {
    __shared__ double products[8][32], plains[8][32];
    const std::int64_t channels = s.channels(), across = (channels + 31) / 32, block = first_block + blockIdx.x;
    const std::int64_t part = block / across, example = part / parts, rows = s.records * s.rows;
    const int lane = static_cast<int>(threadIdx.x) % 32, strip = static_cast<int>(threadIdx.x) / 32;
    const std::int64_t channel = block % across * 32 + lane, begin = rows * (part % parts) / parts,
                       end = rows * (part % parts + 1) / parts;
    double product = 0, plain = 0;
    if (channel < channels) {
        constexpr int ahead = 4; // rows in flight
        const T* const statistics = sums + example * s.sums() + 2 * channels + channel / s.in_group * 4;
        for (std::int64_t row = begin + strip; row < end; row += 8 * ahead) {
            T slope[ahead], normal[ahead];
            TG_UNROLL
            for (int k = 0; k < ahead; ++k) {
                const std::int64_t at = row + 8 * k < end ? row + 8 * k : row;
                const std::int64_t i = (example * rows + at) * channels + channel;
                const T* const of = statistics + (s.rows == 1 ? at : divided(at, s.rows)) * s.groups * 4;
                slope[k] = dy[i];
                normal[k] = (x[i] - of[0]) * of[1];
            }
            TG_UNROLL
            for (int k = 0; k < ahead; ++k) {
                if (row + 8 * k >= end) break;
                plain += static_cast<double>(slope[k]);
                product += static_cast<double>(slope[k] * normal[k]);
            }
        }
    }
    products[strip][lane] = product;
    plains[strip][lane] = plain;
    __syncthreads();
    if (strip != 0 || channel >= channels) return;
    for (int other = 1; other < 8; ++other) {
        product += products[other][lane];
        plain += plains[other][lane];
    }
    totals[part * 2 * channels + channel] = product;
    totals[part * 2 * channels + channels + channel] = plain;
}
/// Adds up the parts: a block has 32 columns, and eight strips of consecutive parts.
template <class T>
__global__ void normalization_join(cpu::normalized_shape s, std::int64_t parts, std::int64_t first_block,
                                   const double* totals, T* sums) {
    __shared__ double strips[8][32];
    const std::int64_t width = 2 * s.channels(), across = (width + 31) / 32, block = first_block + blockIdx.x,
                       example = block / across;
    const int lane = static_cast<int>(threadIdx.x) % 32, strip = static_cast<int>(threadIdx.x) / 32;
    const std::int64_t c = (block - example * across) * 32 + lane;
    double sum = 0;
    if (c < width)
        for (std::int64_t part = parts * strip / 8; part < parts * (strip + 1) / 8; ++part)
            sum += totals[(example * parts + part) * width + c];
    strips[strip][lane] = sum;
    __syncthreads();
    if (strip != 0 || c >= width) return;
    for (int other = 1; other < 8; ++other) sum += strips[other][lane];
    sums[example * s.sums() + c] = static_cast<T>(sum);
}

template <class T>
__global__ void normalization_gradient(normalized_groups g, const T* dy, const T* x, const T* gamma, const T* sums,
                                       T* dx) {
    const std::int64_t number = g.first + blockIdx.x, parameters = parameters_of(g.shape, number);
    const T* const of = sums + statistics_of(g.shape, number);
    const T mean = of[0], inverse = of[1], plain = of[2], product = of[3];
    each_of_group(g.shape, number, [&](std::int64_t i, std::int64_t c) {
        dx[i] = inverse * ((dy[i] * gamma[parameters + c] - plain) - (x[i] - mean) * inverse * product);
    });
}

} // namespace kernels

namespace detail {

/// Calls f(groups, launch shape) for all groups, a block each.
template <class F>
void for_groups(const cpu::normalized_shape& s, const F& f) {
    const std::int64_t size = s.rows * s.in_group;
    const unsigned threads = size <= 256 ? 32 : size <= 8192 ? 256 : 1024;
    for_pieces(s.examples * s.records * s.groups, [&](std::int64_t first, std::int64_t count) {
        f(kernels::normalized_groups{s, first}, driver::launch_shape{static_cast<unsigned>(count), threads});
    });
}
/// Parts of an example's rows: enough of them to keep a device busy with few channels.
inline std::int64_t normalization_parts(const cpu::normalized_shape& s) {
    return std::clamp<std::int64_t>(s.records * s.rows / 64, 1, 64);
}

} // namespace detail

template <std::floating_point T>
struct kernel<normalization_op, T> {
    static void run(const kernel_call& c) {
        const auto s = runtime::detail::normalized_shape_of(runtime::attributes_of<normalization_op>(c), c.in[0]);
        if (s.elements() == 0) return;
        detail::for_groups(s, [&](const kernels::normalized_groups& g, const driver::launch_shape& shape) {
            launch(c, "normalization", shape, kernels::normalize<T>, g, c.in[0].as<const T>(), c.in[1].as<const T>(),
                   c.in[2].as<const T>(), c.out[0].as<T>());
        });
    }
};

template <std::floating_point T>
struct kernel<normalization_sums_op, T> {
    static cpu::normalized_shape shape_of(const kernel_call& c) {
        return runtime::detail::normalized_shape_of(runtime::attributes_of<normalization_op>(c), c.in[1]);
    }
    static std::size_t workspace(const kernel_call& c) {
        const auto s = shape_of(c);
        return static_cast<std::size_t>(s.examples * detail::normalization_parts(s) * 2 * s.channels()) *
               sizeof(double);
    }
    static void run(const kernel_call& c) {
        const auto s = shape_of(c);
        const T *const dy = c.in[0].as<const T>(), *const x = c.in[1].as<const T>();
        T* const sums = c.out[0].as<T>();
        auto* const totals = static_cast<double*>(c.workspace);
        if (s.examples * s.records * s.groups > 0)
            detail::for_groups(s, [&](const kernels::normalized_groups& g, const driver::launch_shape& shape) {
                launch(c, "normalization_sums", shape, kernels::normalization_statistics<T>, g, dy, x,
                       c.in[2].as<const T>(), sums);
            });
        const std::int64_t parts = detail::normalization_parts(s), across = (s.channels() + 31) / 32;
        if (s.examples * across == 0) return;
        detail::for_pieces(s.examples * parts * across, [&](std::int64_t first, std::int64_t count) {
            launch(c, "normalization_sums", {static_cast<unsigned>(count), 256}, kernels::normalization_columns<T>, s,
                   parts, first, dy, x, static_cast<const T*>(sums), totals);
        });
        detail::for_pieces(s.examples * ((2 * s.channels() + 31) / 32), [&](std::int64_t first, std::int64_t count) {
            launch(c, "normalization_sums", {static_cast<unsigned>(count), 256}, kernels::normalization_join<T>, s,
                   parts, first, static_cast<const double*>(totals), sums);
        });
    }
};

template <std::floating_point T>
struct kernel<normalization_gradient_op, T> {
    static void run(const kernel_call& c) {
        const auto s = runtime::detail::normalized_shape_of(runtime::attributes_of<normalization_op>(c), c.in[1]);
        if (s.elements() == 0) return;
        detail::for_groups(s, [&](const kernels::normalized_groups& g, const driver::launch_shape& shape) {
            launch(c, "normalization_gradient", shape, kernels::normalization_gradient<T>, g, c.in[0].as<const T>(),
                   c.in[1].as<const T>(), c.in[2].as<const T>(), c.in[3].as<const T>(), c.out[0].as<T>());
        });
    }
};

} // namespace tapegraph::cuda
