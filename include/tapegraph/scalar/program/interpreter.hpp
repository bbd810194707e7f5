#pragma once

#include <tapegraph/core/math/bits.hpp>
#include <tapegraph/cpu/isa.hpp>
#include <tapegraph/cpu/vector.hpp>
#include <tapegraph/scalar/program/program_code.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

/// Runs compiled programs: for one input, with the standard library's functions, and for a block of inputs in lanes, with
/// the library's own.

namespace tapegraph::scalars {

/// The first guard, in the order of the recorded code, that did not hold, and the values that it compared.
template <class T>
struct broken_guard {
    static constexpr std::uint32_t none = 0xFFFFFFFFu;
    std::uint32_t guard = none;
    T left = T(0), right = T(0);
    explicit operator bool() const { return guard != none; }
};

/// Memory for slots, kept by each thread for its next run.
template <class T>
T* slots_of_thread(std::size_t count) {
    struct release {
        void operator()(T* p) const { ::operator delete (p, std::align_val_t{program_block_bytes}); }
    };
    static thread_local std::unique_ptr<T, release> kept;
    static thread_local std::size_t size = 0;
    if (count > size) {
        kept.reset();
        size = 0;
        kept.reset(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{program_block_bytes})));
        size = count;
    }
    return kept.get();
}

/// Runs a program whose inputs and constants are in their slots.
template <class T>
broken_guard<T> run_program(const compiled_program<T>& p, T* s) {
    using tapegraph::math::detail::product;
    using enum program_code;
    broken_guard<T> broken;
    const operation_row<T>* const* const functions = p.functions.data();
    // Equal instructions run in a loop. The last result stays in a register, for instructions that read it at once: a load
    // just after the store to the same place takes longer than most operations. Which operand that is, is a part of the
    // instruction's entry.
#define TG_READS(word, from, u, v, w, x, ...)                                                                          \
    case program_entry(word, from):                                                                                    \
        do {                                                                                                           \
            [[maybe_unused]] const T a = u, b = v, c = w, d = x;                                                       \
            last = __VA_ARGS__;                                                                                        \
            s[i->out] = last;                                                                                          \
            ++i;                                                                                                       \
        } while (i->entry == program_entry(word, from));                                                               \
        break;
#define TG_ONE(word, ...)                                                                                              \
    TG_READS(word, 0, s[i->a], T(0), T(0), T(0), __VA_ARGS__)                                                          \
    TG_READS(word, 1, last, T(0), T(0), T(0), __VA_ARGS__)
#define TG_TWO(word, ...)                                                                                              \
    TG_READS(word, 0, s[i->a], s[i->b], T(0), T(0), __VA_ARGS__)                                                       \
    TG_READS(word, 1, last, s[i->b], T(0), T(0), __VA_ARGS__)                                                          \
    TG_READS(word, 2, s[i->a], last, T(0), T(0), __VA_ARGS__)
#define TG_THREE(word, ...)                                                                                            \
    TG_READS(word, 0, s[i->a], s[i->b], s[i->c], T(0), __VA_ARGS__)                                                    \
    TG_READS(word, 1, last, s[i->b], s[i->c], T(0), __VA_ARGS__)                                                       \
    TG_READS(word, 2, s[i->a], last, s[i->c], T(0), __VA_ARGS__)                                                       \
    TG_READS(word, 3, s[i->a], s[i->b], last, T(0), __VA_ARGS__)
#define TG_FOUR(word, ...)                                                                                             \
    TG_READS(word, 0, s[i->a], s[i->b], s[i->c], s[i->d], __VA_ARGS__)                                                 \
    TG_READS(word, 1, last, s[i->b], s[i->c], s[i->d], __VA_ARGS__)                                                    \
    TG_READS(word, 2, s[i->a], last, s[i->c], s[i->d], __VA_ARGS__)                                                    \
    TG_READS(word, 3, s[i->a], s[i->b], last, s[i->d], __VA_ARGS__)                                                    \
    TG_READS(word, 4, s[i->a], s[i->b], s[i->c], last, __VA_ARGS__)
#define TG_GUARD(word, condition, first, second)                                                                       \
    case program_entry(word, 0):                                                                                       \
        if ((condition) != ((i->extra & guard_expects) != 0) && i->out < broken.guard) {                               \
            broken = {i->out, first, second};                                                                          \
            if ((i->extra & guard_exchanges) != 0) std::swap(broken.left, broken.right);                               \
        }                                                                                                              \
        ++i;                                                                                                           \
        break;
    T last = T(0);
    for (const program_instruction* i = p.instructions.data();;) {
        switch (i->entry) {
        case program_entry(end, 0): return broken;
        case program_entry(call, 0):
            i = functions[i->extra]->run(i, s);
            last = s[i[-1].out];
            break;
            TG_GUARD(guard, s[i->a] != T(0), s[i->b], s[i->c])
            TG_GUARD(guard_less, s[i->a] < s[i->b], s[i->a], s[i->b])
            TG_GUARD(guard_less_equal, s[i->a] <= s[i->b], s[i->a], s[i->b])
            TG_GUARD(guard_equal, s[i->a] == s[i->b], s[i->a], s[i->b])
            TG_GUARD(guard_near, std::fabs(s[i->a] - s[i->b]) < product(s[i->c], s[i->d]), std::fabs(s[i->a] - s[i->b]),
                     product(s[i->c], s[i->d]))
            TG_TWO(add, a + b)
            TG_TWO(subtract, a - b)
            TG_TWO(multiply, product(a, b))
            TG_TWO(divide, a / b)
            TG_ONE(negate, -a)
            TG_ONE(square_root, std::sqrt(a))
            TG_ONE(magnitude, std::fabs(a))
            TG_READS(choose, 0, s[i->a], s[i->b], s[i->c], T(0), a != T(0) ? b : c)
            TG_TWO(unless_zero, a == T(0) ? T(0) : b)
            TG_TWO(less, static_cast<T>(a < b))
            TG_TWO(less_equal, static_cast<T>(a <= b))
            TG_THREE(multiply_add, product(a, b) + c)
            TG_THREE(multiply_subtract, product(a, b) - c)
            TG_THREE(subtract_product, c - product(a, b))
            TG_THREE(multiply_twice, product(product(a, b), c))
            TG_THREE(add_twice, a + b + c)
            TG_THREE(subtract_add, a - b + c)
            TG_THREE(add_subtract, a + b - c)
            TG_THREE(subtract_sum, c - (a + b))
            TG_THREE(add_multiply, product(a + b, c))
            TG_THREE(subtract_multiply, product(a - b, c))
            TG_THREE(multiply_unless_zero, c == T(0) ? T(0) : product(a, b))
            TG_THREE(divide_unless_zero, c == T(0) ? T(0) : a / b)
            TG_TWO(distance, std::fabs(a - b))
            TG_FOUR(add_products, product(a, b) + product(c, d))
            TG_FOUR(subtract_products, product(a, b) - product(c, d))
            TG_FOUR(multiply_products, product(product(a, b), product(c, d)))
            TG_FOUR(add_add_product, a + b + product(c, d))
            TG_FOUR(subtract_add_product, a - b + product(c, d))
            TG_FOUR(add_subtract_product, a + b - product(c, d))
            TG_FOUR(product_subtract_sum, product(c, d) - (a + b))
            TG_FOUR(sum_product, product(a + b, product(c, d)))
            TG_FOUR(difference_product, product(a - b, product(c, d)))
        default: __builtin_unreachable();
        }
    }
#undef TG_READS
#undef TG_GUARD
#undef TG_ONE
#undef TG_TWO
#undef TG_THREE
#undef TG_FOUR
}

/// The same for a block: a slot has program_lanes<T> numbers, and `broken` as many guards.
template <class T>
struct program_block {
    static constexpr int lanes = program_lanes<T>;

    template <class Isa>
    TG_INLINE static void run(const compiled_program<T>* p, T* slots, broken_guard<T>* broken) {
        using enum program_code;
        const operation_row<T>* const* const functions = p->functions.data();
        for (const program_instruction& i : p->instructions) {
            T* const y = slots + std::size_t{i.out} * lanes;
            const T* const a = slots + std::size_t{i.a} * lanes;
            const T* const b = slots + std::size_t{i.b} * lanes;
            const T* const c = slots + std::size_t{i.c} * lanes;
            const T* const d = slots + std::size_t{i.d} * lanes;
// One operation a statement, because compilers contract within an expression.
#define TG_LANES(code, ...)                                                                                            \
    case code:                                                                                                         \
        each<Isa>(                                                                                                     \
            y, a, b, c, d,                                                                                             \
            [](auto& r, const auto& u, const auto& v, const auto& w, const auto& x) __attribute__((always_inline)) {   \
                static_cast<void>(x), static_cast<void>(w), static_cast<void>(v);                                      \
                __VA_ARGS__;                                                                                           \
            });                                                                                                        \
        break;
            switch (i.code) {
            case end:
                return;
                TG_LANES(add, r = u + v)
                TG_LANES(subtract, r = u - v)
                TG_LANES(multiply, r = u * v)
                TG_LANES(divide, r = u / v)
                TG_LANES(negate, r = -u)
                TG_LANES(multiply_add, r = u * v; r = r + w)
                TG_LANES(multiply_subtract, r = u * v; r = r - w)
                TG_LANES(subtract_product, r = u * v; r = w - r)
                TG_LANES(multiply_twice, r = u * v * w)
                TG_LANES(add_twice, r = u + v + w)
                TG_LANES(subtract_add, r = u - v + w)
                TG_LANES(add_subtract, r = u + v - w)
                TG_LANES(subtract_sum, r = w - (u + v))
                TG_LANES(add_multiply, r = (u + v) * w)
                TG_LANES(subtract_multiply, r = (u - v) * w)
                TG_LANES(add_products, r = u * v; const auto t = w * x; r = r + t)
                TG_LANES(subtract_products, r = u * v; const auto t = w * x; r = r - t)
                TG_LANES(multiply_products, r = (u * v) * (w * x))
                TG_LANES(add_add_product, r = w * x; const auto t = u + v; r = t + r)
                TG_LANES(subtract_add_product, r = w * x; const auto t = u - v; r = t + r)
                TG_LANES(add_subtract_product, r = w * x; const auto t = u + v; r = t - r)
                TG_LANES(product_subtract_sum, r = w * x; r = r - (u + v))
                TG_LANES(sum_product, r = (u + v) * (w * x))
                TG_LANES(difference_product, r = (u - v) * (w * x))
#undef TG_LANES
            case multiply_unless_zero:
                for (int lane = 0; lane < lanes; ++lane) y[lane] = c[lane] == T(0) ? T(0) : a[lane] * b[lane];
                break;
            case divide_unless_zero:
                for (int lane = 0; lane < lanes; ++lane) y[lane] = c[lane] == T(0) ? T(0) : a[lane] / b[lane];
                break;
            case distance:
                for (int lane = 0; lane < lanes; ++lane) y[lane] = std::fabs(a[lane] - b[lane]);
                break;
            case guard: check(i, broken, b, c, [=](int lane) { return a[lane] != T(0); }); break;
            case guard_less: check(i, broken, a, b, [=](int lane) { return a[lane] < b[lane]; }); break;
            case guard_less_equal: check(i, broken, a, b, [=](int lane) { return a[lane] <= b[lane]; }); break;
            case guard_equal: check(i, broken, a, b, [=](int lane) { return a[lane] == b[lane]; }); break;
            case guard_near: {
                T left[lanes], right[lanes];
                for (int lane = 0; lane < lanes; ++lane)
                    left[lane] = std::fabs(a[lane] - b[lane]), right[lane] = c[lane] * d[lane];
                check(i, broken, left, right, [&](int lane) { return left[lane] < right[lane]; });
                break;
            }
            default: functions[i.extra]->lanes(y, a, b, c);
            }
        }
    }

private:
    template <class F>
    TG_INLINE static void check(const program_instruction& i, broken_guard<T>* broken, const T* left, const T* right,
                                const F& truth) {
        if ((i.extra & guard_exchanges) != 0) std::swap(left, right);
        for (int lane = 0; lane < lanes; ++lane)
            if (truth(lane) != ((i.extra & guard_expects) != 0) && i.out < broken[lane].guard)
                broken[lane] = {i.out, left[lane], right[lane]};
    }
    template <class Isa, class F>
    TG_INLINE static void each(T* y, const T* a, const T* b, const T* c, const T* d, const F& f) {
        using pack = cpu::vector<T, Isa::vector_bytes>;
        for (int k = 0; k < lanes; k += pack::lanes) {
            typename pack::type u, v, w, x, r;
            pack::load(u, a + k);
            pack::load(v, b + k);
            pack::load(w, c + k);
            pack::load(x, d + k);
            f(r, u, v, w, x);
            pack::store(y + k, r);
        }
    }
};

template <class T>
void run_program_block(const compiled_program<T>& p, T* slots, broken_guard<T>* broken) {
    cpu::dispatch<program_block<T>, const compiled_program<T>*, T*, broken_guard<T>*>(&p, slots, broken);
}

} // namespace tapegraph::scalars
