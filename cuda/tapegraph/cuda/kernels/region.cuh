#pragma once

#include <tapegraph/cuda/kernels/dependent.cuh>
#include <tapegraph/cuda/kernels/strided_index.cuh>
#include <tapegraph/expr/registers.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

/// Fused elementwise regions.
///
/// A thread takes `region_access::lanes` neighbouring elements of the domain at a time, 16 bytes of
/// the widest operand. An operand along the innermost axis is read by one access of all lanes where
/// it is aligned; one that is repeated there by one access of one element. Vectors that cross the
/// end of a row of the domain, or are not aligned, are read element by element. All operands of an
/// element are read before any of its results is written, so results may overwrite operands of the
/// same elements.
///
/// Where operands that are not read in order repeat along outer axes, as a number per channel does,
/// and the domain is large, threads step by whole periods: each keeps its positions within the
/// period and reads those operands once, and the others by vectors wherever rows end.
///
/// No shared memory; registers hold the lanes of all operands and results, at most 256 bytes of
/// them.

namespace tapegraph::cuda::kernels {

inline constexpr int map_threads = 256;

/// The operands of a region and how they are broadcast over its domain: strides are 0 or those of a
/// contiguous tensor.
template <int Slots>
struct region_operands {
    static constexpr int lists = Slots > 0 ? Slots : 1;
    const void* data[lists]{};
    strided_index<lists> index;
    std::uint32_t repeated = 0; ///< bit s: operand s has one element for all of the innermost merged axis
    std::uint32_t in_order = 0; ///< bit s: operand s has as many elements as the domain, in the domain's order
    bool aligned = false;       ///< whether the others are aligned for vectors of `region_access::lanes` elements

    /// Whether every operand is read in order or is one element.
    __host__ __device__ bool flat() const { return index.rank <= 1; }
};

/// V elements that are read or written at once.
template <class Word, int V>
struct alignas(sizeof(Word) * V) lane_pack {
    Word at[V];
};

/// Loads the first `count` of V lanes from p and sets the others to zero. With `whole`, loads all of them in one access.
template <class Word, int V>
__device__ __forceinline__ void load_lanes(const Word* p, int count, bool whole, Word (&to)[V]) {
    if (V > 1 && whole) {
        const auto pack = *reinterpret_cast<const lane_pack<Word, V>*>(p);
        TG_UNROLL
        for (int v = 0; v < V; ++v) to[v] = pack.at[v];
    } else {
        TG_UNROLL
        for (int v = 0; v < V; ++v) to[v] = v < count ? p[v] : Word{};
    }
}
/// Stores all lanes in one access: with branches around, the compiler would split it into lanes.
template <class Pack>
__device__ __forceinline__ void store_pack(void* p, const Pack& pack) {
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Pack) == 16) {
        uint4 w;
        __builtin_memcpy(&w, &pack, sizeof w);
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(w.x), "r"(w.y),
                     "r"(w.z), "r"(w.w)
                     : "memory");
        return;
    } else if constexpr (sizeof(Pack) == 8) {
        uint2 w;
        __builtin_memcpy(&w, &pack, sizeof w);
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(w.x), "r"(w.y)
                     : "memory");
        return;
    }
#endif
    *static_cast<Pack*>(p) = pack;
}
template <class Word, int V>
__device__ __forceinline__ void store_lanes(Word* p, int count, bool whole, const Word (&from)[V]) {
    if (V > 1 && whole) {
        lane_pack<Word, V> pack;
        TG_UNROLL
        for (int v = 0; v < V; ++v) pack.at[v] = from[v];
        store_pack(p, pack);
    } else {
        TG_UNROLL
        for (int v = 0; v < V; ++v)
            if (v < count) p[v] = from[v];
    }
}

/// The lanes of several operands or results, each of its own type.
template <int I, class Word, int V>
struct lane_list {
    Word at[V];
};
template <int V, class Sequence, class... Words>
struct lane_lists;
template <int V, int... I, class... Words>
struct lane_lists<V, std::integer_sequence<int, I...>, Words...> : lane_list<I, Words, V>... {};
template <int I, class Word, int V>
__device__ __forceinline__ auto& lanes_of(lane_list<I, Word, V>& l) {
    return l.at;
}

template <class Region>
struct region_access;

template <dtype... Slots, int... Results, class... Instructions>
struct region_access<region<slots<Slots...>, results<Results...>, Instructions...>> {
    using evaluator = machine::evaluator<region<slots<Slots...>, results<Results...>, Instructions...>>;
    static constexpr int slot_count = sizeof...(Slots), result_count = sizeof...(Results);

    template <int R>
    using word = typename evaluator::template word<R>;
    using operands = region_operands<slot_count>;

    static constexpr int lanes = [] {
        std::size_t widest = 1;
        ((widest = sizeof(machine::word_t<Slots>) > widest ? sizeof(machine::word_t<Slots>) : widest), ...);
        ((widest = sizeof(word<Results>) > widest ? sizeof(word<Results>) : widest), ...);
        std::size_t count = 16 / widest;
        while (count > 1 && count * widest * (slot_count + result_count) > 256) count /= 2;
        return static_cast<int>(count);
    }();
    static constexpr int V = lanes;
    using inputs = lane_lists<V, std::make_integer_sequence<int, slot_count>, machine::word_t<Slots>...>;
    using outputs = lane_lists<V, std::make_integer_sequence<int, result_count>, word<Results>...>;

    /// The number of vectors of every operand in flight where one more is kept, so that all fit
    /// into less than 128 registers.
    static constexpr int rows_ahead = [] {
        constexpr int values = V * slot_count;
        return values <= (V <= 4 ? 16 : 8) ? 4 : (values <= (V <= 4 ? 28 : 16) ? 2 : 1);
    }();

    /// The alignment in bytes that operands and results need to be read and written by vectors.
    static constexpr std::size_t slot_alignment[slot_count + 1]{sizeof(machine::word_t<Slots>) * V..., 1};
    static constexpr std::size_t result_alignment[result_count + 1]{sizeof(word<Results>) * V..., 1};

    /// Reads elements [i, i + count) of every operand; the other lanes become zero.
    static __device__ __forceinline__ void read(const operands& in, std::int64_t i, int count, inputs& x) {
        if (in.flat())
            read_flat(in, i, count, x);
        else
            read_broadcast(in, i, count, x);
    }
    /// As `read`, where the operands are flat.
    static __device__ __forceinline__ void read_flat(const operands& in, std::int64_t i, int count, inputs& x) {
        std::int64_t at[operands::lists];
        TG_UNROLL
        for (int s = 0; s < operands::lists; ++s) at[s] = (in.repeated >> s & 1) != 0 ? 0 : i;
        read_run(in, at, count, count == V && in.aligned && i % V == 0, x, slot_sequence{});
    }
    static __device__ __forceinline__ void read_broadcast(const operands& in, std::int64_t i, int count, inputs& x) {
        std::int64_t at[operands::lists];
        if (read_together(in, i, count, x, at)) return;
        TG_UNROLL
        for (int v = 0; v < V; ++v) {
            if (v > 0 && v < count) in.index.offsets(i + v, at);
            read_lane(in, at, v, v < count, x, slot_sequence{});
        }
    }
    /// Reads elements [i, i + count) if they do not cross the end of a row, and returns whether it
    /// did. `at` receives the offsets of element i.
    static __device__ __forceinline__ bool read_together(const operands& in, std::int64_t i, int count, inputs& x,
                                                         std::int64_t (&at)[operands::lists]) {
        const int inner = in.index.rank - 1;
        const std::int64_t place = in.index.offsets(i, at);
        if (inner >= 0 && place + count > in.index.extents[inner]) return false;
        bool whole = count == V && in.aligned;
        TG_UNROLL
        for (int s = 0; s < operands::lists; ++s) whole = whole && ((in.repeated >> s & 1) != 0 || at[s] % V == 0);
        read_run(in, at, count, whole, x, slot_sequence{});
        return true;
    }
    /// Reads element element_of(v) into lane v for the first `count` lanes, one after another,
    /// which takes the least code.
    template <class F>
    static __device__ __forceinline__ void read_singly(const operands& in, const F& element_of, int count, inputs& x) {
        std::int64_t at[operands::lists];
        TG_ROLLED
        for (int v = 0; v < count; ++v) {
            in.index.offsets(element_of(v), at);
            read_into_lane(in, at, v, x, slot_sequence{});
        }
    }
    /// Reads elements [i, i + V) of the operands that are not in the domain's order; the others
    /// become zero.
    static __device__ __forceinline__ void read_still(const operands& in, std::int64_t i, inputs& x) {
        TG_UNROLL
        for (int v = 0; v < V; ++v) {
            std::int64_t at[operands::lists];
            in.index.offsets(i + v, at);
            read_still(in, at, v, x, slot_sequence{});
        }
    }
    /// Reads elements [i, i + V) of those that are, by whole vectors; leaves the others unchanged.
    static __device__ __forceinline__ void read_moving(const operands& in, std::int64_t i, inputs& x) {
        read_moving(in, i, x, slot_sequence{});
    }
    /// Reads element i[v] into lane v, for the first `count` lanes.
    static __device__ __forceinline__ void read_scattered(const operands& in, const std::int64_t (&i)[V], int count,
                                                          inputs& x) {
        TG_UNROLL
        for (int v = 0; v < V; ++v) {
            std::int64_t at[operands::lists]{};
            if (v < count) in.index.offsets(i[v], at);
            read_lane(in, at, v, v < count, x, slot_sequence{});
        }
    }

    /// Computes all results of the lanes.
    static __device__ __forceinline__ void evaluate(inputs& x, outputs& y) {
        evaluate(x, y, slot_sequence{}, result_sequence{});
    }
    static __device__ __forceinline__ void store(void* const* to, std::int64_t i, int count, bool whole, outputs& y) {
        store(to, i, count, whole, y, result_sequence{});
    }

private:
    using slot_sequence = std::make_integer_sequence<int, slot_count>;
    using result_sequence = std::make_integer_sequence<int, result_count>;

    template <int S>
    using slot_word = typename evaluator::template word<S>;

    template <int... S>
    static __device__ __forceinline__ void read_run(const operands& in, const std::int64_t (&at)[operands::lists],
                                                    int count, bool whole, inputs& x,
                                                    std::integer_sequence<int, S...>) {
        (read_run(static_cast<const slot_word<S>*>(in.data[S]) + at[S], (in.repeated >> S & 1) != 0, count, whole,
                  lanes_of<S>(x)),
         ...);
    }
    template <class Word>
    static __device__ __forceinline__ void read_run(const Word* p, bool repeated, int count, bool whole,
                                                    Word (&to)[V]) {
        if (repeated) {
            const Word one = *p;
            TG_UNROLL
            for (int v = 0; v < V; ++v) to[v] = one;
        } else {
            load_lanes(p, count, whole, to);
        }
    }
    template <int... S>
    static __device__ __forceinline__ void read_lane(const operands& in, const std::int64_t (&at)[operands::lists],
                                                     int v, bool there, inputs& x, std::integer_sequence<int, S...>) {
        ((lanes_of<S>(x)[v] = there ? static_cast<const slot_word<S>*>(in.data[S])[at[S]] : slot_word<S>{}), ...);
    }

    template <int... S>
    static __device__ __forceinline__ void read_still(const operands& in, const std::int64_t (&at)[operands::lists],
                                                      int v, inputs& x, std::integer_sequence<int, S...>) {
        ((lanes_of<S>(x)[v] =
              (in.in_order >> S & 1) == 0 ? static_cast<const slot_word<S>*>(in.data[S])[at[S]] : slot_word<S>{}),
         ...);
    }
    template <int... S>
    static __device__ __forceinline__ void read_moving(const operands& in, std::int64_t i, inputs& x,
                                                       std::integer_sequence<int, S...>) {
        (((in.in_order >> S & 1) != 0
              ? load_lanes(static_cast<const slot_word<S>*>(in.data[S]) + i, V, true, lanes_of<S>(x))
              : void()),
         ...);
    }

    template <int... S>
    static __device__ __forceinline__ void read_into_lane(const operands& in, const std::int64_t (&at)[operands::lists],
                                                          int v, inputs& x, std::integer_sequence<int, S...>) {
        (put_into_lane(static_cast<const slot_word<S>*>(in.data[S])[at[S]], v, lanes_of<S>(x)), ...);
    }
    // By selections, since lanes are registers.
    template <class Word>
    static __device__ __forceinline__ void put_into_lane(Word value, int lane, Word (&to)[V]) {
        TG_UNROLL
        for (int v = 0; v < V; ++v) to[v] = v == lane ? value : to[v];
    }

    template <int... S, int... K>
    static __device__ __forceinline__ void evaluate(inputs& x, outputs& y, std::integer_sequence<int, S...>,
                                                    std::integer_sequence<int, K...>) {
        TG_UNROLL
        for (int v = 0; v < V; ++v) {
            typename evaluator::file f;
            (machine::reg_at<S>(f).load(lanes_of<S>(x)[v]), ...);
            evaluator::run(f);
            ((lanes_of<K>(y)[v] = machine::reg_at<Results>(f).stored()), ...);
        }
    }

    template <int... K>
    static __device__ __forceinline__ void store(void* const* to, std::int64_t i, int count, bool whole, outputs& y,
                                                 std::integer_sequence<int, K...>) {
        ((to[K] != nullptr ? store_lanes(static_cast<word<Results>*>(to[K]) + i, count, whole, lanes_of<K>(y))
                           : void()),
         ...);
    }
};

template <int Slots, int Results>
struct map_arguments {
    region_operands<Slots> in;
    void* out[Results > 0 ? Results : 1]{}; ///< null where a result is not wanted
    bool aligned = false;                   ///< whether results are written by vectors
    std::int64_t elements = 0;
};
template <class Region>
using map_arguments_of = map_arguments<region_access<Region>::slot_count, region_access<Region>::result_count>;

/// The number of vectors of lanes per thread and iteration. A multiprocessor must keep some 30 KB
/// in flight to use the memory's bandwidth: one operand of 16 bytes per thread falls short where
/// registers limit occupancy. More lanes are enough by themselves, and every one is a copy of the
/// code.
/// themselves, and every one is a copy of the code.
template <class Region>
inline constexpr int map_unroll = region_access<Region>::slot_count == 1 && region_access<Region>::lanes <= 4 ? 2 : 1;

/// One-dimensional blocks of `map_threads` threads, any number of blocks.
template <class Region>
__global__ void __launch_bounds__(map_threads)
    map_region(const __grid_constant__ dependent<map_arguments_of<Region>> given) {
    const map_arguments_of<Region>& p = given.after_predecessors();
    using access = region_access<Region>;
    constexpr int V = access::lanes, unroll = map_unroll<Region>;
    const std::int64_t turn = std::int64_t{gridDim.x} * map_threads * V * unroll;
    const std::int64_t first = (std::int64_t{blockIdx.x} * map_threads * unroll + threadIdx.x) * V;
    TG_ROLLED
    for (std::int64_t base = first; base < p.elements; base += turn) {
        typename access::inputs x[unroll];
        TG_UNROLL
        for (int u = 0; u < unroll; ++u) {
            const std::int64_t i = base + u * map_threads * V, left = p.elements - i;
            if (left > 0) access::read(p.in, i, left < V ? static_cast<int>(left) : V, x[u]);
        }
        TG_UNROLL
        for (int u = 0; u < unroll; ++u) {
            const std::int64_t i = base + u * map_threads * V, left = p.elements - i;
            if (left <= 0) continue;
            typename access::outputs y;
            access::evaluate(x[u], y);
            access::store(p.out, i, left < V ? static_cast<int>(left) : V, p.aligned && left >= V, y);
        }
    }
}

/// As map_region, where an iteration of all threads is a whole number of periods of the operands
/// that are not in the domain's order, the other operands and the results are aligned for vectors,
/// and the elements form whole vectors. As in fold_steadily, a vector is read as soon as one has
/// been used, so that some are always in flight.
template <class Region>
__global__ void __launch_bounds__(map_threads, 2)
    map_steadily(const __grid_constant__ dependent<map_arguments_of<Region>> given) {
    const map_arguments_of<Region>& p = given.after_predecessors();
    using access = region_access<Region>;
    constexpr int V = access::lanes, ahead = access::rows_ahead;
    const std::int64_t turn = std::int64_t{gridDim.x} * map_threads * V;
    std::int64_t i = (std::int64_t{blockIdx.x} * map_threads + threadIdx.x) * V, at = i;
    if (i >= p.elements) return;
    typename access::inputs still, x[ahead];
    access::read_still(p.in, i, still);
    const auto read_next = [&](typename access::inputs& to) {
        to = still;
        access::read_moving(p.in, at, to);
        if (at + turn < p.elements) at += turn; // after the last vector the last one again, which is unused
    };
    TG_UNROLL
    for (int k = 0; k < ahead; ++k) read_next(x[k]);
    TG_ROLLED
    while (i < p.elements) {
        TG_UNROLL
        for (int k = 0; k < ahead; ++k, i += turn) {
            if (i < p.elements) {
                typename access::outputs y;
                access::evaluate(x[k], y);
                access::store(p.out, i, V, true, y);
            }
            read_next(x[k]);
        }
    }
}

} // namespace tapegraph::cuda::kernels
