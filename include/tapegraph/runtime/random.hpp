#pragma once

#include <tapegraph/core/philox.hpp>
#include <tapegraph/ops/random.hpp>
#include <tapegraph/runtime/kernel.hpp>

namespace tapegraph::runtime {

template <class T>
struct random_body {
    template <class Isa>
    TG_INLINE static void run(T* x, std::int64_t begin, std::int64_t count, const typename random_op<T>::attributes* a,
                              const random_state* state) {
        const auto ordinal = static_cast<std::uint32_t>(a->ordinal);
        const bool normal = a->law == static_cast<std::int64_t>(distribution::normal);
        if (normal)
            random::fill_normal<T>(x, begin, count, state->seed, state->step, ordinal);
        else
            random::fill_uniform<T>(x, begin, count, state->seed, state->step, ordinal);
        const T slope = static_cast<T>(normal ? a->b : a->b - a->a), offset = static_cast<T>(a->a);
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] * slope + offset;
    }
};

/// Writes `count` numbers of a law, in parallel above a size; element i depends on i alone.
template <class T>
void fill_random(T* out, std::int64_t count, const typename random_op<T>::attributes& a, const random_state& state) {
    constexpr std::int64_t chunk = 8192;
    cpu::parallel_for((count + chunk - 1) / chunk, count >= 2 * chunk, [&](std::int64_t task) {
        const std::int64_t begin = task * chunk, size = count - begin < chunk ? count - begin : chunk;
        cpu::dispatch<random_body<T>>(out + begin, begin, size, &a, &state);
    });
}

template <class T>
struct kernel<random_op<T>, T> {
    static void run(const kernel_call& call) {
        fill_random<T>(call.out[0].as<T>(), call.out[0].elements(), attributes_of<random_op<T>>(call), *call.random);
    }
};

} // namespace tapegraph::runtime
