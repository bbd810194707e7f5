#pragma once

#include <tapegraph/data/pipeline/column.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// Batches of records with different extents, each padded to its largest. If shapes are given, any
/// thread writes its record into its row, padded; if the longest decides, the thread that makes a
/// batch's last record lays them out.

namespace tapegraph::data {

/// Options of `padded_batch`: what short elements are filled with, and up to which extents.
struct padded_options {
    std::vector<double> padding{}; ///< per column; empty: 0
    std::vector<std::vector<std::int64_t>>
        record_shapes{}; ///< per column, 0 where the longest decides; empty: all of them
    bool drop_remainder = false;
};

namespace detail {

/// Copies `from` of shape `small` into the corner of `to`, of shape `large`.
template <class T>
void copy_block(const T* from, T* to, const std::int64_t* small, const std::int64_t* large, std::size_t rank) {
    if (rank == 0) {
        *to = *from;
        return;
    }
    std::int64_t from_step = 1, to_step = 1;
    for (std::size_t i = 1; i < rank; ++i) from_step *= small[i], to_step *= large[i];
    for (std::int64_t i = 0; i < small[0]; ++i)
        copy_block(from + i * from_step, to + i * to_step, small + 1, large + 1, rank - 1);
}

/// Writes a record of extents `small` to its place of extents `large`; the rest is padding.
template <class E, class T>
void write_padded(const E& e, const std::vector<std::int64_t>& small, T* to, const std::vector<std::int64_t>& large,
                  T padding) {
    using traits = leaf_traits<E>;
    const std::int64_t used = values_in(small), all = values_in(large);
    if (small.size() < 2 || std::equal(small.begin() + 1, small.end(), large.begin() + 1)) { // whole rows
        traits::write(e, to, used);
        std::fill(to + used, to + all, padding);
        return;
    }
    std::fill(to, to + all, padding);
    if constexpr (std::is_same_v<E, tensor<T>>) {
        copy_block<T>(e.data(), to, small.data(), large.data(), small.size());
    } else {
        const std::unique_ptr<T[]> apart(new T[static_cast<std::size_t>(used)]);
        traits::write(e, apart.get(), used);
        copy_block<T>(apart.get(), to, small.data(), large.data(), small.size());
    }
}

/// Rows of one column of any type, in a vector.
template <class E>
struct padded_column : column_rows<E> {
    void configure(const padded_options&, std::size_t, std::int64_t = 0) {}
    void finish(std::int64_t) {}
};

template <class E>
    requires(leaf_traits<E>::numbers)
struct padded_column<E> {
    using traits = leaf_traits<E>;
    using value = typename traits::value;
    using batched = tensor<value>;
    using extents = std::vector<std::int64_t>;
    static constexpr bool numbers = true, fixed = true; // without shapes records are kept until all have arrived

    static void add_shape(const E&, record_shapes& shapes) { add_fixed_shape(shapes); }
    static void add_fixed_shape(record_shapes& shapes) { column_rows<E>::add_fixed_shape(shapes); }
    /// The size of buffers with known shapes.
    static std::int64_t bytes(std::int64_t rows, const extents& record) {
        return known(record) ? column_rows<E>::bytes(rows, record)
                             : rows * static_cast<std::int64_t>(sizeof(std::optional<E>));
    }
    static bool known(const extents& record) {
        return traits::fixed || (!record.empty() && std::find(record.begin(), record.end(), 0) == record.end());
    }

    /// `least`: the minimum of the first axis, 0 for none.
    void configure(const padded_options& options, std::size_t column, std::int64_t least = 0) {
        const double p = column < options.padding.size() ? options.padding[column] : 0;
        padding_ = static_cast<value>(static_cast<arithmetic_type_t<value>>(p));
        number_ = column;
        least_ = traits::fixed ? 0 : least;
    }
    void open(std::int64_t rows, const extents& record) {
        wanted_ = &record;
        in_place_ = known(record) && least_ == 0;
        if (in_place_)
            take_buffer(rows, record);
        else
            items_.resize(static_cast<std::size_t>(rows));
    }
    void put(std::int64_t row, E&& e) {
        if (in_place_)
            write(row, e, *wanted_);
        else
            items_[static_cast<std::size_t>(row)].emplace(std::move(e));
    }
    /// Called when all `count` records have arrived.
    void finish(std::int64_t count) {
        if (in_place_) return;
        extents large = traits::extents(*items_.front());
        for (std::int64_t i = 1; i < count; ++i) {
            const extents small = traits::extents(*items_[static_cast<std::size_t>(i)]);
            if (small.size() != large.size())
                throw shape_error("padded_batch: column " + std::to_string(number_) + " has records of shapes " +
                                  text_of(large) + " and " + text_of(small) + ", of different rank");
            for (std::size_t a = 0; a < large.size(); ++a) large[a] = std::max(large[a], small[a]);
        }
        if (!wanted_->empty()) {
            if (!valid(large, *wanted_)) refuse(large, "records up to ");
            for (std::size_t a = 0; a < large.size(); ++a)
                if ((*wanted_)[a] != 0) large[a] = (*wanted_)[a];
        }
        if (!large.empty()) large[0] = std::max(large[0], least_);
        take_buffer(count, large);
        for (std::int64_t i = 0; i < count; ++i) {
            std::optional<E>& e = items_[static_cast<std::size_t>(i)];
            write(i, *e, large);
            e.reset();
        }
    }
    batched get(std::int64_t count) const {
        if (count == values_.shape()[0].value) return values_;
        const device_scope here(nullptr);
        auto part = batched::uninitialized(batch_shape(count, *wanted_));
        std::copy_n(values_.data(), part.size(), part.mutable_data());
        return part;
    }

private:
    static bool valid(const extents& small, const extents& large) {
        bool all = small.size() == large.size();
        for (std::size_t a = 0; all && a < small.size(); ++a) all = large[a] == 0 || small[a] <= large[a];
        return all;
    }
    [[noreturn]] void refuse(const extents& found, const char* what) const {
        throw shape_error("padded_batch: column " + std::to_string(number_) + " has " + what + text_of(found) +
                          ", to be padded to " + text_of(*wanted_));
    }
    // Reuses the previous batch's buffer, unless something still holds it.
    void take_buffer(std::int64_t rows, const extents& record) {
        const device_scope here(nullptr);
        const shape wanted = batch_shape(rows, record);
        if (!(values_.shape() == wanted) || values_.shared()) values_ = tensor<value>::uninitialized(wanted);
        size_ = values_in(record);
        to_ = values_.mutable_data();
    }
    void write(std::int64_t row, const E& e, const extents& large) {
        const extents small = traits::extents(e);
        if (!valid(small, large)) refuse(small, "a record of shape ");
        write_padded(e, small, to_ + row * size_, large, padding_);
    }

    tensor<value> values_;
    std::vector<std::optional<E>> items_;
    const extents* wanted_ = nullptr;
    value* to_ = nullptr;
    std::int64_t size_ = 0, least_ = 0;
    std::size_t number_ = 0;
    value padding_{};
    bool in_place_ = false;
};

/// Shapes for the rows of padded batches: for each column as given, or from its type, or empty.
template <class Rows>
record_shapes padded_layout(const padded_options& options) {
    record_shapes shapes;
    Rows::add_fixed_shapes(shapes);
    for (std::size_t c = 0; c < std::min(shapes.size(), options.record_shapes.size()); ++c)
        if (!options.record_shapes[c].empty()) shapes[c] = options.record_shapes[c];
    return shapes;
}

/// How batch() and padded_batch() put records into a batch.
template <class E>
struct plain_rows {
    using rows = batch_rows<E>;
    void configure(rows&) const {}
    void finish(rows&, std::int64_t) const {}
};
template <class E>
struct padded_rows {
    using rows = batch_rows<E, padded_column>;
    void configure(rows& r) const {
        std::size_t column = 0;
        r.each([&](auto& c) { c.configure(options, column++); });
    }
    void finish(rows& r, std::int64_t count) const {
        r.each([count](auto& c) { c.finish(count); });
    }
    padded_options options;
};

} // namespace detail
} // namespace tapegraph::data
