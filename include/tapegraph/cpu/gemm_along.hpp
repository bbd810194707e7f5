#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/gemm_kernel.hpp>
#include <tapegraph/cpu/gemm_plan.hpp>
#include <tapegraph/cpu/gemm_tile.hpp>
#include <tapegraph/cpu/tasks.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

/// Few rows times a matrix that is stored along k. A packed panel would be written to be read once or
/// twice; here some numbers of each column are turned in registers on their way to the sums, which are
/// those of the tile kernel (cpu/gemm_tile.hpp), in the same order.

namespace tapegraph::cpu::detail {

/// As many columns of b as a vector has lanes, `piece` numbers of k at a time.
template <class T, int Bytes>
struct turned_columns {
    using v = vector<T, Bytes>;
    using type = typename v::type;
    static constexpr int piece = v::lanes / 2;

    /// b[s] = number s of each column; `from` is the first column, `row` the distance to the next one.
    TG_INLINE static void load(type (&b)[piece], const T* from, std::int64_t row) {
        if constexpr (quad == piece)
            quads(b, from, row, numbers);
        else
            pieces(b, from, row, numbers);
    }

private:
    // Within 16 bytes shuffles are cheapest, and two halves of a vector are joined as they are loaded.
    static constexpr int quad = 16 / static_cast<int>(sizeof(T));
    static constexpr auto numbers = std::make_integer_sequence<int, quad>{};
    static constexpr auto all = std::make_integer_sequence<int, v::lanes>{};

    // Each 32 bytes of low[s] and high[s] are number s of `quad` columns, and behind it their number s + quad.
    template <int... S>
    TG_INLINE static void pieces(type (&b)[piece], const T* from, std::int64_t row,
                                 std::integer_sequence<int, S...> s) {
        type low[quad], high[quad];
        quads(low, from, row, s);
        quads(high, from + 2 * quad * row, row, s);
        (every_second<0>(b[S], low[S], high[S], all), ...);
        (every_second<quad>(b[S + quad], low[S], high[S], all), ...);
    }
    template <int... S>
    TG_INLINE static void quads(type (&b)[quad], const T* from, std::int64_t row, std::integer_sequence<int, S...>) {
        type x[quad];
        (join(x[S], from + S * row, from + (S + quad) * row, all), ...);
        if constexpr (quad == 2) {
            mix<0, n>(b[0], x[0], x[1], all);
            mix<1, n + 1>(b[1], x[0], x[1], all);
        } else {
            type low, high, low2, high2;
            mix<0, n, 1, n + 1>(low, x[0], x[1], all);
            mix<2, n + 2, 3, n + 3>(high, x[0], x[1], all);
            mix<0, n, 1, n + 1>(low2, x[2], x[3], all);
            mix<2, n + 2, 3, n + 3>(high2, x[2], x[3], all);
            mix<0, 1, n, n + 1>(b[0], low, low2, all);
            mix<2, 3, n + 2, n + 3>(b[1], low, low2, all);
            mix<0, 1, n, n + 1>(b[2], high, high2, all);
            mix<2, 3, n + 2, n + 3>(b[3], high, high2, all);
        }
    }
    static constexpr int n = v::lanes; // where the second vector's lanes begin

    template <int... L>
    TG_INLINE static void join(type& to, const T* first, const T* second, std::integer_sequence<int, L...>) {
        using half = vector<T, Bytes / 2>;
#if defined(TG_FMA_BY_NAME)
        // g++ would load both and join them by a shuffle, which an operand in memory does not need.
        const auto& low = *reinterpret_cast<const typename half::storage*>(first);
        const auto& high = *reinterpret_cast<const typename half::storage*>(second);
        if constexpr (Bytes == 64) {
            __asm__("vmovups %1, %t0" : "=v"(to) : "m"(low));
            __asm__("vinsertf64x4 $1, %1, %0, %0" : "+v"(to) : "m"(high));
        } else {
            __asm__("vmovups %1, %x0" : "=x"(to) : "m"(low));
            __asm__("vinsertf128 $1, %1, %0, %0" : "+x"(to) : "m"(high));
        }
#else
        typename half::type low, high;
        half::load(low, first);
        half::load(high, second);
        shuffle<L...>(to, low, high);
#endif
    }
    // The numbers Q of as many numbers of a and b, group by group.
    template <int... Q, int... L>
    TG_INLINE static void mix(type& to, const type& a, const type& b, std::integer_sequence<int, L...>) {
        constexpr int from[] = {Q...}, count = sizeof...(Q);
        shuffle<(L / count * count + from[L % count])...>(to, a, b);
    }
    // Every second 16 bytes of a, then of b, from number `First` on.
    template <int First, int... L>
    TG_INLINE static void every_second(type& to, const type& a, const type& b, std::integer_sequence<int, L...>) {
        shuffle<(First + L / quad * 2 * quad + L % quad)...>(to, a, b);
    }
    template <int... I, class V>
    TG_INLINE static void shuffle(type& to, const V& a, const V& b) {
#if defined(__CUDACC__)
        // nvcc loses the dots behind a pack among a builtin's arguments.
        constexpr int from[] = {I...}, each = static_cast<int>(sizeof(V) / sizeof(T));
        for (int l = 0; l < n; ++l) to[l] = from[l] < each ? a[from[l]] : b[from[l] - each];
#else
        to = __builtin_shufflevector(a, b, I...);
#endif
    }
};

/// `rows` rows, 2 to most_rows, of the tile that `job` describes, and its columns, the last of 64 bytes
/// that job.b has and of which `before` are left out. walk.b_inner is from one column to the next, walk.inner the
/// length of k, at least 32 bytes. Rows of a are contiguous.
template <class T>
struct along_body {
    static constexpr int side = 64 / static_cast<int>(sizeof(T)), most_rows = 16;

    template <class Isa>
    TG_INLINE static void run(const tile_job<T>* job, int rows, int before) {
        if constexpr (Isa::vector_bytes >= 32)
            sums<Isa>(*job, rows, before, std::make_integer_sequence<int, 64 / Isa::vector_bytes>{});
    }

private:
    // The sums of two rows are in registers, those of others are loaded and stored once for each piece:
    // one function for every number of rows.
    template <class Isa, int... N>
    TG_INLINE static void sums(const tile_job<T>& job, int rows, int before, std::integer_sequence<int, N...>) {
        using columns = turned_columns<T, Isa::vector_bytes>;
        using v = typename columns::v;
        constexpr int piece = columns::piece;
        alignas(64) T values[(most_rows + 1) * side];
        for (int i = 2 * side; i < rows * side; ++i) values[i] = 0;
        typename v::type c[2][sizeof...(N)] = {};
        const T *a = job.a, *b = job.b;
        const std::int64_t b_row = job.walk.b_inner;
        std::int64_t left = job.walk.inner;
        for (; left >= piece; left -= piece, a += piece, b += piece)
            (add<Isa>(c[0][N], c[1][N], values + (2 * side + N * v::lanes), rows, a, job.a_row,
                      b + N * v::lanes * b_row, b_row, std::integral_constant<int, 0>{},
                      std::make_integer_sequence<int, piece>{}),
             ...);
        if (left > 0) { // the last numbers of a whole piece
            const int first = piece - static_cast<int>(left);
            (add<Isa>(c[0][N], c[1][N], values + (2 * side + N * v::lanes), rows, a - first, job.a_row,
                      b - first + N * v::lanes * b_row, b_row, first, std::make_integer_sequence<int, piece>{}),
             ...);
        }
        (v::store(values + N * v::lanes, c[0][N]), ...);
        (v::store(values + (side + N * v::lanes), c[1][N]), ...);
        fused<Isa>::template finish<T>(job, values + before, rows, sizeof...(N));
    }
    /// Steps `first` to the last of a piece of k.
    template <class Isa, class V, class First, int... S>
    TG_INLINE static void add(V& sum, V& second, T* waiting, int rows, const T* a, std::int64_t a_row, const T* b,
                              std::int64_t b_row, First first, std::integer_sequence<int, S...>) {
        V columns[sizeof...(S)];
        turned_columns<T, Isa::vector_bytes>::load(columns, b, b_row);
        const T* next = a + a_row;
        ((S >= first ? (step<Isa>(sum, columns[S], a[S]), step<Isa>(second, columns[S], next[S])) : void()), ...);
        for (int r = 2; r < rows; ++r, waiting += side) {
            next += a_row;
            V other;
            vector<T, Isa::vector_bytes>::load(other, waiting);
            ((S >= first ? step<Isa>(other, columns[S], next[S]) : void()), ...);
            vector<T, Isa::vector_bytes>::store(waiting, other);
        }
    }
    template <class Isa, class V>
    TG_INLINE static void step(V& sum, const V& columns, T a) {
#if defined(TG_FMA_BY_NAME)
        if constexpr (Isa::vector_bytes == 64) return tile<Isa, T, 1, 1>::fma(sum, columns, a - V{});
#endif
        vector<T, Isa::vector_bytes>::multiply_add(sum, columns, a);
    }
};

/// Whether gemm_along computes a product, which its bits do not depend on: more rows than 16 with AVX-512, 8 with
/// AVX2, pay for a copy of b.
template <class T>
bool goes_along(const gemm_arguments<T>& g) {
    constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t vector_bytes = active_tile_kernels<T>().lanes * bytes;
    return g.transpose_b && !g.transpose_a && g.packed_b == nullptr && g.m > 1 && g.m * 4 <= vector_bytes &&
           vector_bytes >= 32 && g.k * bytes >= 32;
}

/// The product `g`, summed in gemm_plan's blocks of k. 64 bytes of columns go through all of k before the
/// next, since the processor fetches ahead what lies one behind the other. `scratch` is for copies of a
/// matrix of fewer columns: for each thread, a block of k of 64 bytes of columns.
template <class T>
void gemm_along(const gemm_arguments<T>& g, std::int64_t block_k, T* scratch, bool parallel) {
    constexpr std::int64_t side = along_body<T>::side;
    for_tasks(divide_up(g.n, side), parallel, [&](std::int64_t task, int thread) {
        const std::int64_t left = task * side;
        tile_job<T> job{};
        job.columns = std::min(side, g.n - left);
        const std::int64_t before = std::min(left, side - job.columns);
        job.a_row = g.lda;
        job.c = g.c + left;
        job.c_row = g.ldc;
        for (std::int64_t k = 0; k < g.k; k += block_k) {
            job.walk.inner = std::min(block_k, g.k - k);
            job.walk.b_inner = g.ldb;
            job.a = g.a + k;
            job.b = g.b + (left - before) * g.ldb + k;
            if (g.n < side) {
                T* const own = scratch + thread * side * block_k;
                for (std::int64_t j = 0; j < side; ++j)
                    std::copy_n(job.b + std::min(j, g.n - 1) * g.ldb, job.walk.inner, own + j * job.walk.inner);
                job.walk.b_inner = job.walk.inner;
                job.b = own;
            }
            job.accumulate = g.accumulate || k > 0;
            if (k + job.walk.inner == g.k) {
                if (g.bias != nullptr) job.bias = g.bias + left;
                job.relu = g.relu;
            }
            dispatch_fused<along_body<T>>(static_cast<const tile_job<T>*>(&job), static_cast<int>(g.m),
                                          static_cast<int>(before));
        }
    });
}

} // namespace tapegraph::cpu::detail
