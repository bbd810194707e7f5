#pragma once

#include <tapegraph/core/random_laws.hpp>
#include <tapegraph/cpu/widen.hpp>
#include <tapegraph/ops/random/random.hpp>
#include <tapegraph/runtime/kernel.hpp>

namespace tapegraph::runtime {

/// Numbers of a distribution; of the truncated normal one those of the normal one, from which truncate_normal continues.
template <class T>
struct random_body {
    template <class Isa>
    TG_INLINE static void run(T* x, std::int64_t begin, std::int64_t count, const random_attributes* a,
                              const random_state* state) {
        const auto ordinal = static_cast<std::uint32_t>(a->ordinal);
        const auto law = static_cast<distribution>(a->law);
        const bool normal = law == distribution::normal || law == distribution::truncated_normal;
        if (normal)
            random::fill_normal<T>(x, begin, count, state->seed, state->step, ordinal);
        else
            random::fill_uniform<T>(x, begin, count, state->seed, state->step, ordinal);
        if (law == distribution::bernoulli) {
            const T probability = static_cast<T>(a->a);
            TG_SIMD
            for (std::int64_t i = 0; i < count; ++i) x[i] = random::bernoulli_of(x[i], probability);
            return;
        }
        if (law == distribution::exponential) {
            const T mean = static_cast<T>(1 / a->a);
            TG_SIMD
            for (std::int64_t i = 0; i < count; ++i) x[i] = random::exponential_of(x[i], mean);
            return;
        }
        if (law == distribution::truncated_normal) return;
        const random::scaling<T> scaled =
            normal ? random::normal_scaling<T>(a->a, a->b) : random::uniform_scaling<T>(a->a, a->b);
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) x[i] = scaled(x[i]);
    }
};

/// Draws what is too large once more, and scales all. Compiled for one instruction set, since most of its code is for few
/// numbers.
struct truncate_normal_body {
    template <class Isa, class T>
    TG_INLINE static void run(T* x, std::int64_t begin, std::int64_t count, const random_attributes* a,
                              const random_state* state) {
        const random::address address(state->seed, state->step, static_cast<std::uint32_t>(a->ordinal));
        const random::scaling<T> scaled = random::normal_scaling<T>(a->a, a->b);
        for (std::int64_t i = 0; i < count; ++i)
            if (!(x[i] >= T(-2) && x[i] <= T(2)))
                x[i] = random::truncated_normal_at<T>(address, static_cast<std::uint64_t>(begin + i));
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) x[i] = scaled(x[i]);
    }
};

template <class T>
void fill_part(T* x, std::int64_t begin, std::int64_t count, const random_attributes* a, const random_state* state) {
    cpu::dispatch<random_body<T>>(x, begin, count, a, state);
    if (static_cast<distribution>(a->law) == distribution::truncated_normal)
        cpu::on<cpu::baseline>::run<truncate_normal_body>(x, begin, count, a, state);
}

/// Calls fill(begin, count) for parts of `total` elements, in parallel above a certain size.
template <class F>
void in_parts(std::int64_t total, const F& fill) {
    constexpr std::int64_t chunk = 8192;
    cpu::parallel_for((total + chunk - 1) / chunk, total >= 2 * chunk, [&](std::int64_t task) {
        const std::int64_t begin = task * chunk;
        fill(begin, total - begin < chunk ? total - begin : chunk);
    });
}

/// Writes `count` numbers of a distribution; element i depends only on i.
template <class T>
void fill_random(T* out, std::int64_t count, const random_attributes& a, const random_state& state) {
    in_parts(count, [&](std::int64_t begin, std::int64_t size) { fill_part(out + begin, begin, size, &a, &state); });
}

struct standard_normal_body {
    template <class Isa, class T>
    TG_INLINE static void run(T* x, std::int64_t begin, std::int64_t count, std::uint32_t ordinal,
                              const random_state* state) {
        random::fill_normal<T>(x, begin, count, state->seed, state->step, ordinal);
        const random::scaling<T> scaled = random::normal_scaling<T>(0, 1);
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) x[i] = scaled(x[i]);
    }
};
/// Standard normal numbers, the same as those of fill_random, for uses that happen once: compiled
/// for one instruction set and without the other distributions, because the code for all of them is
/// long.
template <class T>
void fill_standard_normal(T* out, std::int64_t count, std::uint32_t ordinal, const random_state& state) {
    in_parts(count, [&](std::int64_t begin, std::int64_t size) {
        cpu::on<cpu::baseline>::run<standard_normal_body>(out + begin, begin, size, ordinal, &state);
    });
}

template <class T>
struct kernel<random_op<T>, T> {
    static void run(const kernel_call& call) {
        fill_random<T>(call.out[0].as<T>(), call.out[0].elements(), attributes_of<random_op<T>>(call), *call.random);
    }
};

template <storage_type T>
struct kernel<random_op<T>, T> {
    static void run(const kernel_call& c) {
        const typename random_op<T>::attributes& a = attributes_of<random_op<T>>(c);
        const random_op<float>::attributes wide{a.ordinal, a.law, a.a, a.b};
        const bool uniform = static_cast<distribution>(a.law) == distribution::uniform;
        const auto most = static_cast<float>(random::just_below(T(a.b)));
        constexpr std::int64_t piece = 2048;
        const std::int64_t count = c.out[0].elements();
        T* const out = c.out[0].as<T>();
        cpu::parallel_for((count + piece - 1) / piece, count >= 8 * piece, [&](std::int64_t task) {
            alignas(64) float numbers[piece];
            const std::int64_t begin = task * piece, size = std::min(piece, count - begin);
            fill_part(static_cast<float*>(numbers), begin, size, &wide, c.random);
            if (uniform) // rounding must not reach the excluded end
                for (std::int64_t i = 0; i < size; ++i) numbers[i] = numbers[i] < most ? numbers[i] : most;
            cpu::dispatch<cpu::detail::narrow_body<T>>(out + begin, static_cast<const float*>(numbers), size);
        });
    }
};

template <class T>
struct kernel<random_integer_op<T>, T> {
    static void run(const kernel_call& call) {
        const auto a = attributes_of<random_integer_op<T>>(call);
        const random::address address(call.random->seed, call.random->step, static_cast<std::uint32_t>(a.ordinal));
        const auto low = static_cast<std::uint64_t>(a.low), range = static_cast<std::uint64_t>(a.high) - low;
        T* const out = call.out[0].as<T>();
        in_parts(call.out[0].elements(), [&](std::int64_t begin, std::int64_t count) {
            for (std::int64_t i = begin; i < begin + count; ++i)
                out[i] = static_cast<T>(low + random::integer_at(address, static_cast<std::uint64_t>(i), range));
        });
    }
};

TG_COMPILED(random, void fill_random<float>(float*, std::int64_t, const random_attributes&, const random_state&))
TG_COMPILED(random, void fill_random<double>(double*, std::int64_t, const random_attributes&, const random_state&))
TG_COMPILED(random, void fill_standard_normal<double>(double*, std::int64_t, std::uint32_t, const random_state&))
} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
