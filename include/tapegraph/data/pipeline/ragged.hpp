#pragma once

#include <tapegraph/data/pipeline/column.hpp>
#include <tapegraph/data/pipeline/order.hpp>
#include <tapegraph/data/pipeline/padded.hpp>
#include <tapegraph/data/pipeline/stream.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Batches of records with different lengths: padded to the longest, or concatenated.

namespace tapegraph::data {

/// Rows of different lengths: row i is values[row_splits[i] .. row_splits[i + 1]).
template <class T>
struct ragged {
    tensor<T> values;                ///< [total]
    tensor<std::int64_t> row_splits; ///< [rows + 1], from 0 to the total

    /// The number of rows.
    std::int64_t rows() const { return row_splits.size() - 1; }
    /// Row i, from 0, unchecked.
    std::span<const T> row(std::int64_t i) const {
        const std::int64_t* const at = row_splits.data() + i;
        return {values.data() + at[0], static_cast<std::size_t>(at[1] - at[0])};
    }
};

namespace detail {
template <class T>
inline constexpr bool is_record<ragged<T>> = false;
}

namespace detail {

/// Fields of records, as one column each.
template <std::size_t I, class E>
auto column_of(std::vector<E>& records) {
    using field = std::tuple_element_t<I, typename field_types<E>::type>;
    std::vector<field> column;
    column.reserve(records.size());
    for (E& e : records) column.push_back(std::move(std::get<I>(fields_of(e))));
    return column;
}

template <class E, class Leaf>
auto stack_fields(std::vector<E>& records, const Leaf& leaf, std::size_t& number) {
    if constexpr (has_fields<E>) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            const auto field = [&](auto column) { return stack_fields(column, leaf, number); };
            return std::tuple{field(column_of<I>(records))...}; // braces: in order
        }
        (std::make_index_sequence<std::tuple_size_v<typename field_types<E>::type>>{});
    } else {
        return leaf(records, number++);
    }
}

template <class E>
auto stack_plain(std::vector<E>& column) {
    column_rows<E> to;
    record_shapes shapes;
    to.add_shape(column.front(), shapes);
    const auto rows = static_cast<std::int64_t>(column.size());
    to.open(rows, shapes.front());
    for (std::int64_t i = 0; i < rows; ++i) to.put(i, std::move(column[static_cast<std::size_t>(i)]));
    return to.get(rows);
}

struct padded_stack {
    padded_options options;

    template <class E>
    auto operator()(std::vector<E>& records, const std::vector<std::int64_t>* longest = nullptr) const {
        std::size_t number = 0;
        return stack_fields(
            records, [&](auto& column, std::size_t n) { return pad(column, n, longest); }, number);
    }
    template <class E>
    auto pad(std::vector<E>& column, std::size_t number, const std::vector<std::int64_t>* first_extent) const {
        if constexpr (!leaf_traits<E>::numbers) {
            return std::move(column);
        } else {
            padded_column<E> to;
            to.configure(options, number, first_extent != nullptr ? first_extent->front() : 0);
            const record_shapes wanted = padded_layout<batch_rows<E, padded_column>>(
                {{},
                 number < options.record_shapes.size() ? record_shapes{options.record_shapes[number]}
                                                       : record_shapes{}});
            const auto rows = static_cast<std::int64_t>(column.size());
            to.open(rows, wanted.front());
            for (std::int64_t i = 0; i < rows; ++i) to.put(i, std::move(column[static_cast<std::size_t>(i)]));
            to.finish(rows);
            return to.get(rows);
        }
    }
};

struct ragged_stack {
    template <class E>
    auto operator()(std::vector<E>& records) const {
        std::size_t number = 0;
        return stack_fields(
            records, [](auto& column, std::size_t) { return stack(column); }, number);
    }
    template <class T>
    static auto stack(std::vector<std::vector<T>>& column) {
        if constexpr (number<T>) {
            const device_scope here(nullptr);
            ragged<T> all;
            all.row_splits = tensor<std::int64_t>::uninitialized({static_cast<std::int64_t>(column.size()) + 1});
            std::int64_t* split = all.row_splits.mutable_data();
            *split = 0;
            for (const auto& row : column) {
                split[1] = split[0] + static_cast<std::int64_t>(row.size());
                ++split;
            }
            all.values = tensor<T>::uninitialized({*split});
            T* to = all.values.mutable_data();
            for (const auto& row : column) to = std::copy(row.begin(), row.end(), to);
            return all;
        } else {
            return std::move(column);
        }
    }
    template <class E>
    static auto stack(std::vector<E>& column) {
        return stack_plain(column);
    }
};

/// Combines this many elements into one, once all have arrived.
template <class Up, class Stack>
struct group_stage {
    using element =
        std::remove_cvref_t<decltype(std::declval<const Stack&>()(std::declval<std::vector<typename Up::element>&>()))>;
    using ticket = std::vector<typename Up::ticket>;
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = true, keeps_columns = true;

    struct cursor {
        cursor(const group_stage& s, const walk_context& c) : stage(&s), up(s.up, c) {}
        bool draw(ticket& t) {
            t.clear();
            typename Up::ticket one{};
            while (static_cast<std::int64_t>(t.size()) < stage->rows && up.draw(one)) t.push_back(std::move(one));
            return !t.empty() && !(stage->drop && static_cast<std::int64_t>(t.size()) < stage->rows);
        }
        const group_stage* stage;
        typename Up::cursor up;
    };
    element make(ticket& t, const walk_context& c) const {
        std::vector<typename Up::element> records;
        records.reserve(t.size());
        for (auto& one : t) {
            try {
                records.push_back(up.make(one, c));
            } catch (...) {
                rethrow_with_origin(c.epoch, static_cast<std::int64_t>(records.size()), up.origin(one));
            }
        }
        const busy_scope busy(c.counters(Up::stages, "batch"));
        return stack(records);
    }
    std::string origin(const ticket& t) const {
        return t.empty() ? std::string() : "batch from " + up.origin(t.front()) + " on";
    }
    std::int64_t size() const {
        return sized(up.size(), [&](std::int64_t n) { return drop ? n / rows : (n + rows - 1) / rows; });
    }
    work_plan plan() const { return up.plan(); }

    Up up;
    Stack stack;
    std::int64_t rows;
    bool drop;
};

} // namespace detail
} // namespace tapegraph::data
