#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/dtype.hpp>
#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/cpu/vector.hpp>
#include <tapegraph/graph/device_memory.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Sums over shards by one balanced binary tree, which depends only on the number of shards.

namespace tapegraph::detail {

/// to = last + parts[0], then + parts[1], ...: all levels of the tree that a shard completes, in
/// one pass over memory. `to` may be any of the operands.
template <class T>
void add_levels(T* to, const T* last, const T* const* parts, int levels, std::int64_t count) {
    using vector = cpu::vector<T, 32>;
    constexpr std::int64_t chunk = 16384, lanes = vector::lanes;
    cpu::parallel_for((count + chunk - 1) / chunk, count > 2 * chunk, [=](std::int64_t task) {
        const std::int64_t first = task * chunk, end = std::min(first + chunk, count);
        std::int64_t i = first;
        for (; i + lanes <= end; i += lanes) {
            typename vector::type sum, part;
            vector::load(sum, last + i);
            for (int k = 0; k < levels; ++k) {
                vector::load(part, parts[k] + i);
                sum = part + sum;
            }
            vector::store(to + i, sum);
        }
        for (; i < end; ++i) {
            T sum = last[i];
            for (int k = 0; k < levels; ++k) sum = parts[k][i] + sum;
            to[i] = sum;
        }
    });
}

/// A range of the sums that is sent to other ranks separately: some values, or a piece of one.
struct sum_part {
    dtype type;
    std::size_t begin, end; ///< bytes
    int ready;              ///< the last step of a shard's schedule that touches it
    std::string name;
};

/// Smaller parts are merged with the next: at 10 Gb/s this many bytes take as long as a message's
/// latency.
inline constexpr std::size_t least_part = 64 * 1024;
/// Larger parts are split into pieces, so that one is sent while another is added.
inline constexpr std::size_t most_part = 1 << 20;

/// Where sums are stored and added, if not by the CPU in its memory: a device, and an exchange that
/// adds and sends device memory.
struct sum_device {
    runtime::device_runtime* runtime = nullptr;
    distributed::exchange* exchange = nullptr;
};

/// Sums over the shards of a process, one after another: contiguous values, doubles first, in
/// log2(shards) partial sums and the memory of the current shard. The sum of shards [0, 8) is
/// ((0+1)+(2+3))+((4+5)+(6+7)).
class shard_sums {
public:
    /// Adds a value of this many elements, f64 or f32, before the first shard; returns its number.
    /// `ready` is the step of the shard's schedule after which nothing touches it; values are
    /// stored in this order.
    int add(dtype type, std::int64_t elements, int ready = 0, std::string name = {}) {
        values_.push_back({type, 0, elements, ready, std::move(name)});
        return static_cast<int>(values_.size()) - 1;
    }
    /// Must be called before the first `begin`.
    void keep_on(const sum_device& where) { on_ = where; }
    bool on_device() const { return on_.runtime != nullptr; }
    /// Begins with the first of `shards` shards, a power of two. Allocates memory for them if
    /// needed.
    void begin(int shards);
    /// Where the current shard writes a value.
    std::byte* target(int number) const { return leaf() + values_[static_cast<std::size_t>(number)].offset; }
    /// Skips a shard without records, which adds nothing.
    void skip() {
        zero(leaf(), bytes_);
        next();
    }
    /// Finishes the current shard.
    void next() {
        const int levels = std::countr_one(static_cast<unsigned>(shard_++));
        if (levels == 0) return;
        std::byte* const to = partial(shard_ == shards_ ? 0 : levels);
        add_region<double>(to, levels, 0, doubles_);
        add_region<float>(to, levels, doubles_, bytes_);
    }
    /// Does the work of `next` after the last shard for a single part.
    void fold(const sum_part& p) const {
        const int levels = std::countr_one(static_cast<unsigned>(shard_));
        if (levels == 0) return;
        if (p.type == dtype::f64)
            add_region<double>(partial(0), levels, p.begin, p.end);
        else
            add_region<float>(partial(0), levels, p.begin, p.end);
    }
    /// Finishes the last shard, whose parts were folded one by one.
    void folded() { ++shard_; }
    bool at_last_shard() const { return shard_ + 1 == shards_; }
    /// The parts in the order in which they are ready; known from `begin` on, and the same wherever
    /// the same values were added.
    const std::vector<sum_part>& parts() const { return parts_; }
    bool touches(int number, const sum_part& p) const {
        const value& v = values_[static_cast<std::size_t>(number)];
        return v.elements > 0 && v.offset < p.end &&
               p.begin < v.offset + static_cast<std::size_t>(v.elements) * size_of(v.type);
    }
    /// The sum, after the last shard.
    std::byte* sum() const { return partial(0); }
    /// Copies a value's sum to the CPU's memory.
    void read(int number, void* to) const;
    /// The offset of a value in bytes from sum().
    std::size_t offset(int number) const { return values_[static_cast<std::size_t>(number)].offset; }
    std::byte* sum(int number) const { return partial(0) + values_[static_cast<std::size_t>(number)].offset; }
    std::size_t bytes() const { return bytes_; }
    /// Bytes of all partial sums.
    std::size_t memory() const { return buffers_.size() * bytes_; }

private:
    struct value {
        dtype type;
        std::size_t offset;
        std::int64_t elements;
        int ready;
        std::string name;
    };
    std::byte* partial(int level) const { return buffers_[static_cast<std::size_t>(level)]->data(); }
    // Every second shard is stored directly as the first partial sum.
    std::byte* leaf() const { return shard_ % 2 == 0 ? partial(0) : buffers_.back()->data(); }
    void zero(std::byte* to, std::size_t bytes) const {
        if (!on_device()) {
            std::memset(to, 0, bytes);
            return;
        }
        const std::vector<std::byte> zeros(bytes); // for shards without records, at the end of an epoch
        on_.runtime->upload(to, zeros.data(), bytes);
    }

    void place();
    void cut(const sum_part& whole, int others);

    template <class T>
    void add_region(std::byte* to, int levels, std::size_t begin, std::size_t end) const {
        if (on_device()) return add_on_device<T>(to, levels, begin, (end - begin) / sizeof(T));
        std::array<const T*, 32> parts{};
        for (int k = 0; k < levels; ++k)
            parts[static_cast<std::size_t>(k)] = reinterpret_cast<const T*>(partial(k) + begin);
        add_levels<T>(reinterpret_cast<T*>(to + begin), reinterpret_cast<const T*>(buffers_.back()->data() + begin),
                      parts.data(), levels, static_cast<std::int64_t>((end - begin) / sizeof(T)));
    }

    // The same additions, level by level.
    template <class T>
    void add_on_device(std::byte* to, int levels, std::size_t begin, std::size_t count) const {
        const std::byte* last = buffers_.back()->data();
        for (int k = 0; k < levels && count > 0; ++k, last = to)
            on_.exchange->add(distributed::sum_of<T>, to + begin, partial(k) + begin, last + begin, count);
    }

    sum_device on_;
    std::vector<value> values_;
    std::vector<sum_part> parts_;
    std::vector<std::unique_ptr<ir::memory_block>> buffers_;
    std::size_t doubles_ = 0, bytes_ = 0;
    int shard_ = 0, shards_ = 1;
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void shard_sums::begin(int shards) {
    if (buffers_.empty()) place();
    const auto wanted = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(shards)));
    while (buffers_.size() < wanted) { // gaps between values are added, too
        buffers_.push_back(std::make_unique<ir::memory_block>());
        buffers_.back()->reserve(on_.runtime, bytes_ + 1, "sums over shards");
        zero(buffers_.back()->data(), bytes_ + 1);
    }
    shard_ = 0;
    shards_ = shards;
}

TG_DEFINITION void shard_sums::read(int number, void* to) const {
    const value& v = values_[static_cast<std::size_t>(number)];
    const std::size_t bytes = static_cast<std::size_t>(v.elements) * size_of(v.type);
    if (bytes == 0) return;
    if (on_device())
        on_.runtime->download(to, sum(number), bytes);
    else
        std::memcpy(to, sum(number), bytes);
}

TG_DEFINITION void shard_sums::place() {
    std::vector<value*> order;
    for (value& v : values_) order.push_back(&v);
    std::stable_sort(order.begin(), order.end(), [](const value* a, const value* b) { return a->ready < b->ready; });
    for (const dtype type : {dtype::f64, dtype::f32}) {
        const value* first = nullptr; // of the current part
        std::size_t begin = bytes_;
        int others = 0, ready = 0;
        const auto close = [&] {
            if (first != nullptr) cut({type, begin, bytes_, ready, first->name}, others);
            first = nullptr;
            begin = bytes_;
        };
        for (value* v : order) {
            if (v->type != type) continue;
            v->offset = bytes_;
            bytes_ += runtime::aligned(static_cast<std::size_t>(v->elements) * size_of(type));
            others = first == nullptr ? 0 : others + 1;
            if (first == nullptr || v->elements > first->elements) first = v; // the largest value names the part
            ready = v->ready;
            if (bytes_ - begin >= least_part) close();
        }
        close();
        if (type == dtype::f64) doubles_ = bytes_;
    }
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const sum_part& a, const sum_part& b) { return a.ready < b.ready; });
    int number = 0;
    for (sum_part& p : parts_) p.name = "bucket " + std::to_string(number++) + " (" + p.name;
}

TG_DEFINITION void shard_sums::cut(const sum_part& whole, int others) {
    const std::size_t bytes = whole.end - whole.begin, pieces = (bytes + most_part - 1) / most_part;
    if (bytes == 0) return;
    const std::size_t each = runtime::aligned((bytes + pieces - 1) / pieces);
    for (std::size_t k = 0; k < pieces; ++k) {
        sum_part p = whole;
        p.begin += k * each;
        p.end = std::min(whole.end, p.begin + each);
        if (others > 0) p.name += " and " + std::to_string(others) + " more";
        p.name += ")";
        if (pieces > 1) p.name += ", piece " + std::to_string(k + 1) + " of " + std::to_string(pieces);
        parts_.push_back(std::move(p));
    }
}

#endif

} // namespace tapegraph::detail
