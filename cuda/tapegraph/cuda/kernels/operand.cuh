#pragma once

#include <tapegraph/cuda/kernels/platform.cuh>

#include <type_traits>

/// Shared by the matrix products of implicit_gemm.cuh and tensor_gemm.cuh: how a block's threads
/// walk over an operand's tile, the part of k that a split sums, and how sums are stored.

namespace tapegraph::cuda::kernels {

/// N elements that are read or written at once.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
    T v[N];
};

/// Assigns a tile of `Lines` rows of an operand and `Steps` of k to threads, V elements at a time.
/// Neighbouring threads take neighbouring memory: along k if AlongK, else along the line.
template <int Threads, int Lines, int Steps, bool AlongK, int V>
struct loader {
    static constexpr int threads = Threads;
    static constexpr int inner = (AlongK ? Steps : Lines) / V; ///< copies along the contiguous direction
    static constexpr int copies = Lines * Steps / V;
    static constexpr int each = (copies + Threads - 1) / Threads;
    static constexpr bool straight = Threads % inner == 0; ///< a thread keeps its position in the contiguous direction
    static constexpr int apart = Threads / inner;          ///< lines from a thread's copy to its next, if straight
    static constexpr int rows = AlongK || !straight ? each : 1;  ///< different lines that one thread reads
    static constexpr int taps = !AlongK || !straight ? each : 1; ///< different k that one thread reads
    static_assert((AlongK ? Steps : Lines) % V == 0);

    __device__ static bool mine(int thread, int i) { return copies % Threads == 0 || thread + i * Threads < copies; }
    __device__ static int line(int thread, int i) {
        const int copy = thread + i * Threads;
        return AlongK ? copy / inner : copy % inner * V;
    }
    __device__ static int step(int thread, int i) {
        const int copy = thread + i * Threads;
        return AlongK ? copy % inner * V : copy / inner;
    }
};

/// Assigns a tile whose lines are contiguous so that a thread keeps its step of k: the threads of a
/// step take neighbouring memory, and then what follows it. Groups of threads with consecutive
/// indices have steps that are `Spread` apart.
template <int Threads, int Lines, int Steps, int V, int Spread = 1>
struct across_loader {
    static constexpr int threads = Threads, beside = Threads / Steps;
    static constexpr int apart = beside * V; ///< lines from a thread's copy to its next
    static constexpr int inner = Lines / V, each = (inner + beside - 1) / beside;
    static_assert(Threads % Steps == 0 && Lines % V == 0 && Steps % Spread == 0);

    __device__ static bool mine(int thread, int i) {
        return inner % beside == 0 || thread % beside + i * beside < inner;
    }
    __device__ static int line(int thread, int i) { return (thread % beside + i * beside) * V; }
    __device__ static int step(int thread, int = 0) {
        const int j = thread / beside;
        return j % (Steps / Spread) * Spread + j / (Steps / Spread);
    }
};
template <int Threads, int Lines, int Steps, bool AlongK, int V, int Spread = 1>
using walk_loader =
    std::conditional_t<AlongK, loader<Threads, Lines, Steps, true, V>, across_loader<Threads, Lines, Steps, V, Spread>>;

/// An offset into an operand that is read in place, or none.
struct plain_place {
    std::int64_t offset;
    bool valid;
};

/// The part of k that a split sums: whole steps, so that every split but the last is full.
struct k_range {
    int begin, end;

    __device__ k_range(int k, int step, int split, int splits) {
        const std::int64_t count = (k + step - 1) / step;
        begin = static_cast<int>(count * split / splits) * step;
        const int limit = static_cast<int>(count * (split + 1) / splits) * step;
        end = limit < k ? limit : k;
    }
};

/// The number of products added in registers before the sum goes to memory and the next begins: the
/// error of a chain grows with its length, and tensor cores truncate.
inline constexpr int longest_chain = 4096;

/// Stores `Count` neighbouring sums in row `to` at column n, as many at once as `problem.width`
/// allows. Every width is a copy of the code, so the epilogue is applied before.
template <int Count, class Problem>
__device__ void store_run(const Problem& problem, typename Problem::T* to, int n,
                          const typename Problem::T (&sums)[Count]) {
    const auto store = [&](auto width) {
        constexpr int W = decltype(width)::value;
        TG_UNROLL
        for (int i = 0; i < Count; i += W) {
            if (n + i >= problem.n) break;
            auto* const at = reinterpret_cast<pack<typename Problem::T, W>*>(to + n + i);
            pack<typename Problem::T, W> value;
            TG_UNROLL
            for (int j = 0; j < W; ++j) value.v[j] = sums[i + j];
            *at = value;
        }
    };
    if (Count % 4 == 0 && problem.width >= 4)
        store(constant < Count % 4 == 0 ? 4 : 1 > {});
    else if (Count % 2 == 0 && problem.width >= 2)
        store(constant < Count % 2 == 0 ? 2 : 1 > {});
    else
        store(constant<1>{});
}

/// The larger of two neighbours of a pooling window, by the rule of pool_forward: NaN if one is,
/// and the second of equal ones.
template <class T>
__device__ T larger(T first, T second) {
    return first > second || first != first ? first : second;
}
/// Whether each four consecutive rows of a problem are a window to be pooled
/// (kernels/pooled_convolution.cuh).
template <class Problem>
inline constexpr bool pools_rows = requires {
    requires Problem::pools;
};

/// relu that keeps NaN.
template <class T>
__device__ T rectified(T value) {
    return value > T(0) || value != value ? value : T(0);
}
/// relu(x + bias), with each step optional.
template <class T>
__device__ T with_epilogue(T value, const T* bias, std::int64_t channel, bool relu) {
    if (bias != nullptr) value += bias[channel];
    return relu ? rectified(value) : value;
}
/// Applies with_epilogue to all sums of a thread, if the problem has a bias or relu and is not
/// split. There are `Count` columns; each(c, f) calls f with the sums of column c, whose index in
/// the result is column_of(c).
template <int Count, class Problem, class ColumnOf, class Each>
__device__ __forceinline__ void finish_sums(const Problem& problem, int group, const ColumnOf& column_of,
                                            const Each& each) {
    using T = typename Problem::T;
    if constexpr (requires { problem.bias; }) {
        if constexpr (requires { problem.splits; })
            if (problem.splits > 1) return;
        if (problem.bias != nullptr) {
            TG_UNROLL
            for (int c = 0; c < Count; ++c) {
                const int n = column_of(c);
                const T bias = n < problem.n ? problem.bias[group * problem.n + n] : T(0);
                each(c, [&](T& sum) { sum += bias; });
            }
        }
        if (problem.relu) {
            TG_UNROLL
            for (int c = 0; c < Count; ++c) each(c, [](T& sum) { sum = rectified(sum); });
        }
    }
}
/// The element at column n of a row, 0 beyond the last.
template <class Problem>
__device__ __forceinline__ typename Problem::T stored(const Problem& problem, const typename Problem::T* row, int n) {
    return n < problem.n ? row[n] : typename Problem::T(0);
}

/// out[i] = sum over the splits of partial[split * count + i], in order, with bias and relu as in a
/// convolution's epilogue.
template <class T>
__global__ void sum_splits(const T* partial, T* out, std::int64_t count, int splits, const T* bias, int channels,
                           bool relu) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
        T sum = partial[i];
        for (int s = 1; s < splits; ++s) sum += partial[s * count + i];
        out[i] = with_epilogue(sum, bias, bias == nullptr ? 0 : i % channels, relu);
    }
}

} // namespace tapegraph::cuda::kernels
