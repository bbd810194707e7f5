#pragma once

#include <tapegraph/scalar/memory.hpp>

#include <cstddef>
#include <cstdint>

/// The backward sweep over the operands of a tape.

namespace tapegraph::scalars {

/// N adjoints of one statement, for N results at once.
template <class T, int N>
struct adjoint_pack {
    typedef T lanes __attribute__((vector_size(sizeof(T) * N)));
    lanes value;
};

template <class T>
TG_INLINE bool is_zero(const T& adjoint) {
    if constexpr (requires { adjoint.is_zero(); }) // jets compare by value
        return adjoint.is_zero();
    else
        return adjoint == T(0);
}
template <class T, int N>
TG_INLINE bool is_zero(const adjoint_pack<T, N>& adjoint) {
    bool zero = true;
    for (int i = 0; i < N; ++i) zero &= adjoint.value[i] == T(0);
    return zero;
}
template <class T>
TG_INLINE T after(const T& target, const T& slope, const T& adjoint) {
    return target + slope * adjoint;
}
template <class T, int N>
TG_INLINE adjoint_pack<T, N> after(const adjoint_pack<T, N>& target, const T& slope,
                                   const adjoint_pack<T, N>& adjoint) {
    return {target.value + slope * adjoint.value};
}

/// Carries adjoints (numbers or packs) backward over rows [first, last), of which the last belongs to `statement`.
/// Returns the statement before the first. A statement whose adjoint is 0 adds nothing, even if its slopes are infinite.
template <class T, class A>
std::uint32_t sweep_back(operand_rows<T> rows, std::uint32_t first, std::uint32_t last, std::uint32_t statement,
                         A* adjoints) {
    constexpr std::uint32_t begins = operand_rows<T>::begins;
    A adjoint = adjoints[statement];
    while (last > first) {
        std::uint32_t word = 0;
        if (is_zero(adjoint)) {
            do word = rows.statements[--last];
            while (word < begins);
            --statement;
            adjoint = adjoints[statement];
            continue;
        }
        A sum{};
        for (;;) {
            word = rows.statements[--last];
            A& target = adjoints[word & ~begins];
            sum = after(target, rows.slopes[last], adjoint);
            target = sum;
            if (word >= begins) break;
        }
        --statement;
        // Mostly the operand written last is the statement before, whose adjoint need not come back from memory.
        if ((word & ~begins) == statement)
            adjoint = sum;
        else
            adjoint = adjoints[statement];
    }
    return statement;
}

/// A place between two statements of a tape.
struct tape_end {
    std::size_t chunk = 0;
    std::uint32_t used = 0, statements = 0;
    std::size_t externals = 0;
};

/// The sweep over a tape's operands from `from` back to `to`.
template <class T, class A>
void sweep_chunks(const tape_memory<T>& memory, const tape_end& from, const tape_end& to, A* adjoints) {
    std::uint32_t statement = from.statements;
    for (std::size_t i = from.chunk + 1; i-- > to.chunk;) {
        const auto& chunk = memory.chunks[i];
        statement = sweep_back(chunk.rows(), i == to.chunk ? to.used : 0u, i == from.chunk ? from.used : chunk.used,
                               statement, adjoints);
    }
}

} // namespace tapegraph::scalars
