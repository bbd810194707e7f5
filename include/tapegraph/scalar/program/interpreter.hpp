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
    // instruction.
#define TG_READS(flag, word, u, v, w, ...)                                                                             \
    case (flag << operand_shift) | static_cast<unsigned>(program_code::word):                                          \
        do {                                                                                                           \
            [[maybe_unused]] const T a = u, b = v, c = w;                                                              \
            last = __VA_ARGS__;                                                                                        \
            s[i->out] = last;                                                                                          \
            ++i;                                                                                                       \
        } while (static_cast<unsigned>(i->code) ==                                                                     \
                 ((flag << operand_shift) | static_cast<unsigned>(program_code::word)));                               \
        break;
#define TG_ONE(word, ...)                                                                                              \
    TG_READS(0u, word, s[i->a], T(0), T(0), __VA_ARGS__)                                                               \
    TG_READS(1u, word, last, T(0), T(0), __VA_ARGS__)
#define TG_TWO(word, ...)                                                                                              \
    TG_READS(0u, word, s[i->a], s[i->b], T(0), __VA_ARGS__)                                                            \
    TG_READS(1u, word, last, s[i->b], T(0), __VA_ARGS__)                                                               \
    TG_READS(2u, word, s[i->a], last, T(0), __VA_ARGS__)
#define TG_THREE(word, ...)                                                                                            \
    TG_READS(0u, word, s[i->a], s[i->b], s[i->c], __VA_ARGS__)                                                         \
    TG_READS(1u, word, last, s[i->b], s[i->c], __VA_ARGS__)                                                            \
    TG_READS(2u, word, s[i->a], last, s[i->c], __VA_ARGS__)                                                            \
    TG_READS(3u, word, s[i->a], s[i->b], last, __VA_ARGS__)
    T last = T(0);
    for (const program_instruction* i = p.instructions.data();;) {
        switch (static_cast<unsigned>(i->code)) {
        case static_cast<unsigned>(program_code::end):
            return broken;
            TG_READS(0u, call, s[i->a], s[i->b], s[i->c], functions[i->extra]->value(a, b, c))
        case static_cast<unsigned>(program_code::guard):
            if ((s[i->a] != T(0)) != (i->extra != 0) && i->out < broken.guard) broken = {i->out, s[i->b], s[i->c]};
            ++i;
            break;
            TG_TWO(add, a + b)
            TG_TWO(subtract, a - b)
            TG_TWO(multiply, product(a, b))
            TG_TWO(divide, a / b)
            TG_ONE(negate, -a)
            TG_ONE(square_root, std::sqrt(a))
            TG_ONE(magnitude, std::fabs(a))
            TG_READS(0u, choose, s[i->a], s[i->b], s[i->c], a != T(0) ? b : c)
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
        default: __builtin_unreachable();
        }
    }
#undef TG_READS
#undef TG_ONE
#undef TG_TWO
#undef TG_THREE
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
// One operation a statement, because compilers contract within an expression.
#define TG_LANES(code, ...)                                                                                            \
    case code:                                                                                                         \
        each<Isa>(                                                                                                     \
            y, a, b, c, [](auto& r, const auto& u, const auto& v, const auto& w) __attribute__((always_inline)) {      \
                static_cast<void>(w), static_cast<void>(v);                                                            \
                __VA_ARGS__;                                                                                           \
            });                                                                                                        \
        break;
            switch (static_cast<program_code>(static_cast<unsigned>(i.code) & operand_mask)) {
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
#undef TG_LANES
            case guard:
                for (int lane = 0; lane < lanes; ++lane)
                    if ((a[lane] != T(0)) != (i.extra != 0) && i.out < broken[lane].guard)
                        broken[lane] = {i.out, b[lane], c[lane]};
                break;
            default: functions[i.extra]->lanes(y, a, b, c);
            }
        }
    }

private:
    template <class Isa, class F>
    TG_INLINE static void each(T* y, const T* a, const T* b, const T* c, const F& f) {
        using pack = cpu::vector<T, Isa::vector_bytes>;
        for (int k = 0; k < lanes; k += pack::lanes) {
            typename pack::type u, v, w, r;
            pack::load(u, a + k);
            pack::load(v, b + k);
            pack::load(w, c + k);
            f(r, u, v, w);
            pack::store(y + k, r);
        }
    }
};

template <class T>
void run_program_block(const compiled_program<T>& p, T* slots, broken_guard<T>* broken) {
    cpu::dispatch<program_block<T>, const compiled_program<T>*, T*, broken_guard<T>*>(&p, slots, broken);
}

} // namespace tapegraph::scalars
