#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/model/variables.hpp>

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace tapegraph::detail {

/// The rows of gradients that shards have gathered, and their indices, one shard's after the
/// other's. The update adds equal rows, over all shards in their order.
class row_sums {
public:
    void begin() {
        for (part& p : parts_) {
            p.rows.clear();
            p.indices.clear();
            p.count = 0;
        }
    }
    /// Appends rows [picks..., rest...] of gradient `number` and indices [picks...] to those of
    /// earlier shards.
    void add(std::size_t number, const buffer_view& rows, const buffer_view& indices);
    /// All rows [n, rest...] of a gradient, or their indices [n].
    buffer_view view(std::size_t number, bool rows) {
        part& p = parts_[number];
        buffer_view v = rows ? p.row : p.index;
        v.extents[0] = p.count;
        v.data = rows ? p.rows.data() : p.indices.data();
        return v;
    }
    std::size_t size() const { return parts_.size(); }
    std::span<const std::byte> bytes(std::size_t number, bool rows) const {
        return rows ? parts_[number].rows : parts_[number].indices;
    }
    /// Replaces them by others.
    void replace(std::size_t number, bool rows, std::span<const std::byte> bytes) {
        part& p = parts_[number];
        (rows ? p.rows : p.indices).assign(bytes.begin(), bytes.end());
        p.count = static_cast<std::int64_t>(p.indices.size() / size_of(p.index.type));
    }
    /// The derivative by the whole variable.
    any_tensor whole(std::size_t number, const variable& v) {
        any_tensor result(v.type(), v.shape());
        std::memset(result.write(), 0, result.outline_view().bytes());
        if (v.type() == dtype::f64)
            scatter<double>(parts_[number], result);
        else
            scatter<float>(parts_[number], result);
        return result;
    }

private:
    struct part {
        std::vector<std::byte> rows, indices;
        buffer_view row{}, index{};
        std::int64_t count = 0;
    };
    template <class T>
    static void scatter(const part& p, any_tensor& to) {
        T* const table = static_cast<T*>(to.write());
        const std::int64_t width = p.count > 0 ? static_cast<std::int64_t>(p.rows.size() / sizeof(T)) / p.count : 0;
        for (std::int64_t r = 0; r < p.count; ++r) {
            const std::int64_t index = p.index.type == dtype::i32
                                           ? reinterpret_cast<const std::int32_t*>(p.indices.data())[r]
                                           : reinterpret_cast<const std::int64_t*>(p.indices.data())[r];
            const T* const from = reinterpret_cast<const T*>(p.rows.data()) + r * width;
            for (std::int64_t i = 0; i < width; ++i) table[index * width + i] += from[i];
        }
    }
    std::vector<part> parts_;
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void row_sums::add(std::size_t number, const buffer_view& rows, const buffer_view& indices) {
    if (parts_.size() <= number) parts_.resize(number + 1);
    part& p = parts_[number];
    const std::int64_t count = indices.elements();
    if (p.count == 0) {
        p.row = rows;
        p.row.rank = rows.rank - indices.rank + 1;
        for (int i = 1; i < p.row.rank; ++i) p.row.extents[i] = rows.extents[indices.rank + i - 1];
        p.index = indices;
        p.index.rank = 1;
    }
    const auto append = [](std::vector<std::byte>& to, const buffer_view& from) {
        const std::size_t before = to.size();
        to.resize(before + from.bytes());
        if (from.bytes() > 0) std::memcpy(to.data() + before, from.data, from.bytes());
    };
    append(p.rows, rows);
    append(p.indices, indices);
    p.count += count;
}

#endif

} // namespace tapegraph::detail
