#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/region.hpp>

#include <algorithm>

/// The driver of fused regions: turns operands of any broadcast pattern into contiguous runs.

namespace tapegraph::cpu {

namespace detail {

inline constexpr std::int64_t tile_elements = 512;
inline constexpr std::size_t table_bytes = 24 * 1024;
inline constexpr std::size_t scratch_bytes = most_slots * tile_elements * sizeof(double);
// Below this many elements a parallel region costs more than it saves (measured, two threads, add of three arrays).
inline constexpr std::int64_t parallel_elements = 32768;
inline constexpr std::int64_t chunk_elements = 16384;

/// How one operand is read. Direct: element i of the index space is element i of the operand.
/// Periodic: the operand covers the trailing axes, so a table of one period plus a tile serves
/// every tile. Staged: gathered per tile.
struct slot_plan {
    enum class access { direct, periodic, staged } how;
    const std::byte* data;
    std::int64_t size; // bytes of an element
    std::int64_t period;
    std::int64_t strides[max_rank];
};

/// Whether an operand can be read in place by a kernel of `elements` elements.
inline bool has_all(const buffer_view& operand, std::int64_t elements) {
    const std::int64_t own = operand.elements();
    return own == elements || (own == 1 && operand.copies >= elements);
}

template <class Word>
TG_VECTORISES inline void copy_run(std::byte* to, const std::byte* from, std::int64_t stride, std::int64_t count) {
    Word* const target = reinterpret_cast<Word*>(to);
    const Word* const source = reinterpret_cast<const Word*>(from);
    if (stride == 0) {
        const Word value = *source;
        TG_SIMD
        for (std::int64_t i = 0; i < count; ++i) target[i] = value;
    } else {
        std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Word));
    }
}

TG_VECTORISES inline void copy_run(std::byte* to, const std::byte* from, std::int64_t stride, std::int64_t count,
                                   std::int64_t size) {
    switch (size) {
    case 1: return copy_run<std::uint8_t>(to, from, stride, count);
    case 2: return copy_run<std::uint16_t>(to, from, stride, count);
    case 4: return copy_run<std::uint32_t>(to, from, stride, count);
    default: return copy_run<std::uint64_t>(to, from, stride, count);
    }
}

} // namespace detail

/// Prepares the operands of a region once per call; any range of the index space can then be
/// evaluated, from several threads at once. Element values do not depend on how the space is cut.
class region_reader {
public:
    region_reader(tile_function evaluate, const kernel_call& call)
        : evaluate_(evaluate),
          region_(call.region),
          inputs_(call.inputs),
          rank_(call.domain.rank),
          elements_(call.domain.elements()) {
        for (int i = 0; i < rank_; ++i) extents_[i] = call.domain.extents[i];
        for (int s = 0; s < inputs_; ++s) plan(s, call.in[s]);
    }

    std::int64_t elements() const { return elements_; }
    /// Whether every operand is read in place, so that runs may have any length.
    bool direct() const { return direct_; }

    /// Writes result k of elements [begin, begin + count) to out[k]; null results are skipped.
    void read(std::int64_t begin, std::int64_t count, void* const* out, const std::int64_t* out_sizes,
              int outputs) const;

    /// Copies elements [begin, begin + count) of the first operand, repeated where it broadcasts.
    void copy(std::int64_t begin, std::int64_t count, std::byte* to) const { stage(slots_[0], begin, count, to); }

    /// The number of elements after which broadcast operands repeat, 1 if none does; 0 if there is
    /// no common period.
    std::int64_t period() const;
    /// Finds the operands of at most detail::tile_elements elements from `begin` on, and the
    /// distance in each operand to the elements that come `stride` later; `stride` is a multiple of
    /// period(), which is not 0.
    void locate(std::int64_t begin, std::int64_t stride, const void** in, std::int64_t* strides) const;

private:
    void plan(int s, const buffer_view& view);

    // Sets an operand's strides. Returns whether the operand is the domain's trailing axes, with
    // extents of 1 in front: its strides are those of a contiguous block for the last axes and zero
    // before.
    bool trails(detail::slot_plan& p, const buffer_view& view, std::int64_t count) const;

    const void* locate(const detail::slot_plan& p, std::int64_t begin, std::int64_t count, std::byte*& free) const {
        if (p.how == detail::slot_plan::access::direct) return p.data + begin * p.size;
        if (p.how == detail::slot_plan::access::periodic) return p.data + begin % p.period * p.size;
        std::byte* const target = free;
        free += (count * p.size + 63) / 64 * 64;
        stage(p, begin, count, target);
        return target;
    }

    // Walks the index space from `begin`, the innermost axis in runs.
    void stage(const detail::slot_plan& p, std::int64_t begin, std::int64_t count, std::byte* target) const;

    tile_function evaluate_;
    const interpreted_region* region_;
    int inputs_;
    int rank_;
    bool direct_ = true;
    std::int64_t elements_;
    std::size_t used_ = 0;
    std::int64_t extents_[max_rank];
    detail::slot_plan slots_[most_slots];
    alignas(64) std::byte tables_[detail::table_bytes];
};

namespace detail {
/// Whether a region only hands its operand through, as the gradient of a sum does. Such operands are
/// repeated where the result lies; a tile's scratch memory would be one pass more.
inline bool hands_through(tile_function evaluate) {
    return evaluate == &evaluate_tile<region<slots<dtype::f32>, results<0>>> ||
           evaluate == &evaluate_tile<region<slots<dtype::f64>, results<0>>>;
}
} // namespace detail

/// Evaluates a region over the call's domain into its results; null results are skipped.
void run_map(tile_function evaluate, const kernel_call& call);
/// The same for results that are added to what is in their memory: those with a sum of two operands of
/// their type.
void run_map_adding(tile_function evaluate, const kernel_call& call, const tile_function* sums);
#if TG_DEFINES(reduction)
TG_DEFINITION void run_map_adding(tile_function evaluate, const kernel_call& call, const tile_function* sums) {
    const std::int64_t elements = call.domain.elements();
    const region_reader reader(evaluate, call);
    const std::int64_t chunks = (elements + detail::chunk_elements - 1) / detail::chunk_elements;
    parallel_for(chunks, elements >= detail::parallel_elements, [&](std::int64_t chunk) {
        constexpr std::int64_t step = detail::tile_elements;
        alignas(64) std::byte values[most_results][static_cast<std::size_t>(step) * sizeof(double)];
        void *to[most_results], *part[most_results];
        std::int64_t sizes[most_results];
        const std::int64_t end = std::min(elements, (chunk + 1) * detail::chunk_elements);
        for (std::int64_t begin = chunk * detail::chunk_elements; begin < end; begin += step) {
            const std::int64_t count = std::min(step, end - begin);
            for (int k = 0; k < call.outputs; ++k) {
                sizes[k] = static_cast<std::int64_t>(size_of(call.out[k].type));
                std::byte* const out = static_cast<std::byte*>(call.out[k].data);
                to[k] = out == nullptr ? nullptr : out + begin * sizes[k];
                part[k] = sums[k] != nullptr ? values[k] : to[k];
            }
            reader.read(begin, count, part, sizes, call.outputs);
            for (int k = 0; k < call.outputs; ++k) {
                if (sums[k] == nullptr) continue;
                tile t;
                t.in[0] = t.out[0] = to[k];
                t.in[1] = part[k];
                t.count = count;
                sums[k](t);
            }
        }
    });
}
TG_DEFINITION void run_map(tile_function evaluate, const kernel_call& call) {
    const std::int64_t elements = call.domain.elements();
    if (elements == 0) return;
    // The common case, where every operand has the full shape or as many copies, needs none of the
    // reader's tables.
    if (elements < detail::parallel_elements) {
        tile t;
        t.count = elements;
        t.region = call.region;
        int s = 0;
        for (; s < call.inputs && detail::has_all(call.in[s], elements); ++s) t.in[s] = call.in[s].data;
        if (s == call.inputs) {
            for (int k = 0; k < call.outputs; ++k) t.out[k] = call.out[k].data;
            return evaluate(t);
        }
    }
    void* out[most_results];
    std::int64_t sizes[most_results];
    for (int k = 0; k < call.outputs; ++k) {
        out[k] = call.out[k].data;
        sizes[k] = static_cast<std::int64_t>(size_of(call.out[k].type));
    }
    const region_reader reader(evaluate, call);
    const bool repeats = !reader.direct() && out[0] != nullptr && detail::hands_through(evaluate);
    const std::int64_t chunks = (elements + detail::chunk_elements - 1) / detail::chunk_elements;
    parallel_for(chunks, elements >= detail::parallel_elements, [&](std::int64_t chunk) {
        const std::int64_t begin = chunk * detail::chunk_elements;
        const std::int64_t count =
            elements - begin < detail::chunk_elements ? elements - begin : detail::chunk_elements;
        if (repeats) return reader.copy(begin, count, static_cast<std::byte*>(out[0]) + begin * sizes[0]);
        void* part[most_results];
        for (int k = 0; k < call.outputs; ++k)
            part[k] = out[k] == nullptr ? nullptr : static_cast<std::byte*>(out[k]) + begin * sizes[k];
        reader.read(begin, count, part, sizes, call.outputs);
    });
}
#endif

#if TG_DEFINES(runtime)

TG_DEFINITION void region_reader::plan(int s, const buffer_view& view) {
    detail::slot_plan& p = slots_[s];
    p.data = static_cast<const std::byte*>(view.data);
    p.size = static_cast<std::int64_t>(size_of(view.type));
    const std::int64_t count = view.elements();
    if (detail::has_all(view, elements_)) {
        p.how = detail::slot_plan::access::direct;
        return;
    }
    direct_ = false;
    p.period = count;
    const std::int64_t length = count + (elements_ < detail::tile_elements ? elements_ : detail::tile_elements);
    const std::size_t bytes = static_cast<std::size_t>((length * p.size + 63) / 64 * 64);
    if (!trails(p, view, count) || used_ + bytes > sizeof tables_) {
        p.how = detail::slot_plan::access::staged;
        return;
    }
    std::byte* const table = tables_ + used_;
    used_ += bytes;
    p.how = detail::slot_plan::access::periodic;
    if (count == 1) {
        detail::copy_run(table, p.data, 0, length, p.size);
    } else {
        for (std::int64_t at = 0; at < length; at += count) {
            const std::int64_t run = length - at < count ? length - at : count;
            std::memcpy(table + at * p.size, p.data, static_cast<std::size_t>(run * p.size));
        }
    }
    p.data = table;
}

TG_DEFINITION void region_reader::stage(const detail::slot_plan& p, std::int64_t begin, std::int64_t count,
                                        std::byte* target) const {
    std::int64_t index[max_rank]{};
    std::int64_t rest = begin, offset = 0;
    for (int i = rank_ - 1; i >= 0; --i) {
        index[i] = rest % extents_[i];
        rest /= extents_[i];
        offset += index[i] * p.strides[i];
    }
    const int last = rank_ - 1;
    for (std::int64_t done = 0; done < count;) {
        std::int64_t run = extents_[last] - index[last];
        run = run < count - done ? run : count - done;
        detail::copy_run(target + done * p.size, p.data + offset * p.size, p.strides[last], run, p.size);
        done += run;
        offset += run * p.strides[last];
        index[last] += run;
        for (int i = last; i > 0 && index[i] == extents_[i]; --i) {
            offset += p.strides[i - 1] - extents_[i] * p.strides[i];
            index[i] = 0;
            ++index[i - 1];
        }
    }
}

TG_DEFINITION void region_reader::read(std::int64_t begin, std::int64_t count, void* const* out,
                                       const std::int64_t* out_sizes, int outputs) const {
    alignas(64) std::byte scratch[detail::scratch_bytes];
    tile t;
    t.region = region_;
    const std::int64_t step = direct_ ? count : detail::tile_elements;
    for (std::int64_t done = 0; done < count; done += step) {
        t.count = count - done < step ? count - done : step;
        for (int k = 0; k < outputs; ++k)
            t.out[k] = out[k] == nullptr ? nullptr : static_cast<std::byte*>(out[k]) + done * out_sizes[k];
        std::byte* free = scratch;
        for (int s = 0; s < inputs_; ++s) t.in[s] = locate(slots_[s], begin + done, t.count, free);
        evaluate_(t);
    }
}

TG_DEFINITION bool region_reader::trails(detail::slot_plan& p, const buffer_view& view, std::int64_t count) const {
    const int lead = rank_ - view.rank;
    std::int64_t stride = 1, expected = 1;
    bool trailing = true, inside = true;
    for (int i = rank_ - 1; i >= 0; --i) {
        const std::int64_t own = i >= lead ? view.extents[i - lead] : 1;
        p.strides[i] = own == 1 ? 0 : stride;
        stride *= own;
        if (extents_[i] == 1) continue;
        if (inside && p.strides[i] == expected && expected < count) {
            expected *= extents_[i];
            continue;
        }
        inside = false;
        trailing = trailing && p.strides[i] == 0;
    }
    return trailing && expected == count;
}

TG_DEFINITION void region_reader::locate(std::int64_t begin, std::int64_t stride, const void** in,
                                         std::int64_t* strides) const {
    for (int s = 0; s < inputs_; ++s) {
        std::byte* none = nullptr;
        in[s] = locate(slots_[s], begin, 0, none);
        strides[s] = slots_[s].how == detail::slot_plan::access::direct ? stride : 0;
    }
}

TG_DEFINITION std::int64_t region_reader::period() const {
    std::int64_t longest = 1;
    for (int s = 0; s < inputs_; ++s) {
        if (slots_[s].how == detail::slot_plan::access::staged) return 0;
        if (slots_[s].how == detail::slot_plan::access::periodic) longest = std::max(longest, slots_[s].period);
    }
    return longest; // trailing axes: shorter periods divide longer ones
}

#endif

} // namespace tapegraph::cpu
