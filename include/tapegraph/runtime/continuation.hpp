#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/cpu/tile.hpp>

#include <cstddef>
#include <cstdint>

/// An elementwise kernel that reads the result of the kernel before it and runs part by part inside it, while each part is
/// in a cache (docs/design/cpu/continuations.md).

namespace tapegraph::runtime {

struct continuation {
    kernel_function run = nullptr;     ///< the elementwise kernel; null where it cannot run inside
    const kernel_call* call = nullptr; ///< its call on the whole result
    bool done = false;                 ///< set by the kernel before it, if it has run this on all rows

    /// Whether `next` gives the same elements inside `first` as after it: it covers the result of `first` element by
    /// element, reads that as it lies, and writes to nothing that `first` still reads.
    static bool fits(const kernel_call& first, std::size_t workspace, const kernel_call& next);

    /// Runs on rows [first, first + count) of the result, where a row is its last axis. From several threads at once.
    void on_rows(std::int64_t first, std::int64_t count) const;
};

namespace detail {

struct memory_range {
    const std::byte* begin;
    std::size_t bytes;

    explicit memory_range(const buffer_view& v)
        : begin(v.as<const std::byte>()), bytes((v.copies > 1 ? static_cast<std::size_t>(v.copies) : 1) * v.bytes()) {}
    memory_range(const void* data, std::size_t size) : begin(static_cast<const std::byte*>(data)), bytes(size) {}

    bool meets(const memory_range& other) const {
        return bytes > 0 && other.bytes > 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
    }
};

/// Rows of a view that has all elements of the domain; others have one element, or one for each column.
inline buffer_view rows_of(buffer_view v, std::int64_t elements, std::int64_t columns, std::int64_t first,
                           std::int64_t count) {
    const std::int64_t own = v.elements();
    if (own == elements) {
        if (v.data != nullptr)
            v.data = v.as<std::byte>() + first * columns * static_cast<std::int64_t>(size_of(v.type));
        v.rank = 2;
        v.extents[0] = count;
        v.extents[1] = columns;
    } else {
        v.rank = own == 1 ? 0 : 1;
        v.extents[0] = columns;
    }
    return v;
}

} // namespace detail

inline bool continuation::fits(const kernel_call& first, std::size_t workspace, const kernel_call& next) {
    if (first.outputs != 1 || first.out[0].rank < 2 || next.domain.rank < 1) return false;
    const buffer_view& y = first.out[0];
    const std::int64_t elements = y.elements(), columns = y.extents[y.rank - 1];
    if (elements == 0 || next.domain.elements() != elements || next.domain.extents[next.domain.rank - 1] != columns)
        return false;
    const detail::memory_range result(y);
    bool reads = false;
    for (int k = 0; k < next.inputs; ++k) {
        const buffer_view& v = next.in[k];
        const std::int64_t own = v.elements();
        const bool whole = own == elements;
        if (!whole && own != 1 && !(own == columns && v.extents[v.rank - 1] == columns)) return false;
        const bool same = whole && v.data == y.data && v.type == y.type;
        reads = reads || same;
        if (!same && result.meets(detail::memory_range(v))) return false;
    }
    if (!reads) return false;
    for (int k = 0; k < next.outputs; ++k) {
        const buffer_view& v = next.out[k];
        if (v.elements() != elements) return false;
        if (v.data == nullptr) continue;
        const detail::memory_range to(v);
        if (to.meets({first.workspace, workspace})) return false;
        for (int i = 0; i < first.inputs; ++i)
            if (to.meets(detail::memory_range(first.in[i]))) return false;
        if (to.meets(result) && !(v.data == y.data && size_of(v.type) == size_of(y.type))) return false;
    }
    return true;
}

inline void continuation::on_rows(std::int64_t first, std::int64_t count) const {
    if (count <= 0) return;
    const std::int64_t elements = call->domain.elements(), columns = call->domain.extents[call->domain.rank - 1];
    const auto part_of = [&](const buffer_view& v) { return detail::rows_of(v, elements, columns, first, count); };
    buffer_view views[cpu::most_slots + cpu::most_results];
    kernel_call part = *call;
    for (int k = 0; k < call->inputs; ++k) views[k] = part_of(call->in[k]);
    for (int k = 0; k < call->outputs; ++k) views[call->inputs + k] = part_of(call->out[k]);
    part.in = views;
    part.out = views + call->inputs;
    part.domain = part_of(call->domain);
    run(part);
}

} // namespace tapegraph::runtime
