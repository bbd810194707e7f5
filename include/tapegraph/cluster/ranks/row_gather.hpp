#pragma once

#include <tapegraph/cluster/ranks/collectives.hpp>

/// Exchanges sparse gradients between ranks: rows of a table and their indices, instead of the
/// table.

namespace tapegraph::distributed {

/// Every rank contributes rows of `width` elements and an index for each, those of its shards one
/// after the other. All get all of them in order of ranks, and thus in order of shards, whatever
/// their number on a rank. Adding rows of the same index in this order gives sums that do not
/// depend on the number of ranks.
template <class T>
class row_gather {
public:
    /// `label` names the table in errors: "rows of 'words/table'".
    row_gather(exchange& ranks, std::size_t width, const std::string& label)
        : width_(width), indices_(ranks, label + ", indices"), rows_(ranks, label) {}

    /// Both must stay valid until it is done. Throws shape_error unless there are `width` elements
    /// for each index.
    void start(std::span<const std::int64_t> indices, std::span<const T> rows) {
        if (rows.size() != indices.size() * width_)
            throw shape_error("row_gather: " + std::to_string(rows.size()) + " elements for " +
                              std::to_string(indices.size()) + " rows of " + std::to_string(width_));
        indices_.start(std::as_bytes(indices));
        rows_.start(std::as_bytes(rows));
    }
    /// Whether all rows have arrived.
    bool done() const { return indices_.done() && rows_.done(); }
    /// Waits for all rows.
    void wait() {
        indices_.wait();
        rows_.wait();
    }
    /// [rows of all ranks]
    std::span<const std::int64_t> indices() const { return elements<std::int64_t>(indices_.blocks()); }
    /// [rows of all ranks, width]
    std::span<const T> rows() const { return elements<T>(rows_.blocks()); }

private:
    // The bytes come from operator new, whose alignment suffices for these types.
    template <class Element>
    static std::span<const Element> elements(std::span<const std::byte> bytes) {
        return {reinterpret_cast<const Element*>(bytes.data()), bytes.size() / sizeof(Element)};
    }

    std::size_t width_;
    block_gather indices_, rows_;
};

} // namespace tapegraph::distributed
