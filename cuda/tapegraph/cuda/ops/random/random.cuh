#pragma once

#include <tapegraph/cuda/kernels/random.cuh>
#include <tapegraph/cuda/region.cuh>
#include <tapegraph/ops/random/kernel.hpp>

/// Random numbers on the device, with the same bits as on the CPU.

namespace tapegraph::cuda {

namespace detail {

/// The parameters of a distribution in the form that its kernel expects.
template <class T>
kernels::random_arguments<T> random_arguments_of(const random_attributes& a, const random_state* state) {
    kernels::random_arguments<T> p{state, static_cast<std::uint32_t>(a.ordinal), static_cast<distribution>(a.law)};
    switch (p.law) {
    case distribution::uniform: p.scaled = random::uniform_scaling<T>(a.a, a.b); break;
    case distribution::normal:
    case distribution::truncated_normal: p.scaled = random::normal_scaling<T>(a.a, a.b); break;
    case distribution::exponential: p.number = static_cast<T>(1 / a.a); break;
    case distribution::bernoulli: p.number = static_cast<T>(a.a); break;
    }
    return p;
}

inline unsigned random_blocks(std::int64_t work) { return blocks_for(divide_up(work, kernels::random_threads)); }

} // namespace detail

template <class T>
struct kernel<random_op<T>, T> {
    using number = std::conditional_t<storage_type<T>, float, T>;

    static void run(const kernel_call& call) {
        constexpr int per = random::per_block<number>;
        const auto a = runtime::attributes_of<random_op<T>>(call);
        const std::int64_t count = call.out[0].elements();
        if (count == 0) return;
        auto arguments = detail::random_arguments_of<number>({a.ordinal, a.law, a.a, a.b}, call.random);
        if constexpr (storage_type<T>) // rounding must not reach the end that the distribution excludes
            if (arguments.law == distribution::uniform)
                arguments.scaled.most = static_cast<float>(random::just_below(T(a.b)));
        launch(call, "random numbers", {detail::random_blocks(detail::divide_up(count, per)), kernels::random_threads},
               kernels::random_numbers<number, T>, arguments, call.out[0].as<T>(), count, detail::is_aligned(call.out[0].data, sizeof(T) * per));
    }
};

template <class T>
struct kernel<random_integer_op<T>, T> {
    static void run(const kernel_call& call) {
        const auto a = runtime::attributes_of<random_integer_op<T>>(call);
        const auto low = static_cast<std::uint64_t>(a.low), range = static_cast<std::uint64_t>(a.high) - low;
        const std::int64_t count = call.out[0].elements();
        if (count == 0) return;
        launch(call, "random integers", {detail::random_blocks(count), kernels::random_threads},
               kernels::random_integers<T>, call.random, static_cast<std::uint32_t>(a.ordinal), low, range,
               call.out[0].as<T>(), count);
    }
};

} // namespace tapegraph::cuda
