#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/half.hpp>
#include <tapegraph/core/random_laws.hpp>
#include <tapegraph/cuda/kernels/region.cuh>

/// Random numbers: a thread computes one block of Philox's output, 16 bytes of float or double, and
/// writes it at once. Element i depends on i alone, so it does not matter how blocks are assigned
/// to threads. The seed and the step are read from device memory when the kernel runs: a captured
/// graph draws new numbers in every replay.

namespace tapegraph::cuda::kernels {

inline constexpr int random_threads = 256;

/// `scaled` is for uniform and normal numbers. `number` is the mean of exponential ones, the
/// probability of bernoulli's.
template <class T>
struct random_arguments {
    const random_state* state = nullptr;
    std::uint32_t ordinal = 0;
    distribution law = distribution::uniform;
    random::scaling<T> scaled{};
    T number{};
};

/// `Element` is T, or the 16-bit type that its numbers are rounded to. One-dimensional blocks, any
/// number of them.
template <class T, class Element>
__global__ void __launch_bounds__(random_threads)
    random_numbers(const __grid_constant__ random_arguments<T> p, Element* out, std::int64_t count, bool aligned) {
    using word = machine::word_t<dtype_of<Element>>;
    constexpr int per = random::per_block<T>;
    const random::address address(p.state->seed, p.state->step, p.ordinal);
    const bool normal = p.law == distribution::normal || p.law == distribution::truncated_normal;
    const std::int64_t blocks = (count + per - 1) / per;
    for (std::int64_t block = std::int64_t{blockIdx.x} * random_threads + threadIdx.x; block < blocks;
         block += std::int64_t{gridDim.x} * random_threads) {
        T x[per];
        random::detail::block_numbers(address, static_cast<std::uint64_t>(block), x);
        word y[per];
        TG_UNROLL
        for (int k = 0; k < per; k += 2)
            if (normal) random::detail::normal::run(x[k], x[k + 1]);
        TG_UNROLL
        for (int k = 0; k < per; ++k) {
            T number = x[k];
            if (p.law == distribution::truncated_normal && !(number >= T(-2) && number <= T(2)))
                number = random::truncated_normal_at<T>(address, static_cast<std::uint64_t>(block * per + k));
            if (p.law == distribution::bernoulli)
                number = random::bernoulli_of(number, p.number);
            else if (p.law == distribution::exponential)
                number = random::exponential_of(number, p.number);
            else
                number = p.scaled(number);
            if constexpr (storage_type<Element>)
                y[k] = storage_bits<Element>(number);
            else
                y[k] = number;
        }
        const std::int64_t left = count - block * per;
        store_lanes(reinterpret_cast<word*>(out) + block * per, left < per ? static_cast<int>(left) : per,
                    aligned && left >= per, y);
    }
}

/// Integers in [low, low + range), two per block of Philox.
template <class T>
__global__ void __launch_bounds__(random_threads)
    random_integers(const random_state* state, std::uint32_t ordinal, std::uint64_t low, std::uint64_t range, T* out,
                    std::int64_t count) {
    const random::address address(state->seed, state->step, ordinal);
    for (std::int64_t i = std::int64_t{blockIdx.x} * random_threads + threadIdx.x; i < count;
         i += std::int64_t{gridDim.x} * random_threads)
        out[i] = static_cast<T>(low + random::integer_at(address, static_cast<std::uint64_t>(i), range));
}

} // namespace tapegraph::cuda::kernels
