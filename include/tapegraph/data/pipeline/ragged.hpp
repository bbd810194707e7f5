#pragma once

#include <tapegraph/data/pipeline/column.hpp>
#include <tapegraph/data/pipeline/order.hpp>
#include <tapegraph/data/pipeline/stream.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Batches of records that differ in length: padded to the longest, or one behind the other.

namespace tapegraph::data {

/// Rows of different lengths: row i is values[row_splits[i] .. row_splits[i + 1]).
template <class T>
struct ragged {
    tensor<T> values;                ///< [all]
    tensor<std::int64_t> row_splits; ///< [rows + 1], from 0 to all

    std::int64_t rows() const { return row_splits.size() - 1; }
    std::span<const T> row(std::int64_t i) const {
        const std::int64_t* const at = row_splits.data() + i;
        return {values.data() + at[0], static_cast<std::size_t>(at[1] - at[0])};
    }
};

namespace detail {
template <class T>
inline constexpr bool is_record<ragged<T>> = false;
}

struct padded_options {
    std::vector<double> padding{}; ///< of each column; empty: 0
    std::vector<std::vector<std::int64_t>>
        record_shapes{}; ///< of each column, 0 where the longest decides; empty: all of them
    bool drop_remainder = false;
};

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
            using traits = leaf_traits<E>;
            using T = typename traits::value;
            std::vector<std::int64_t> large = traits::extents(column.front());
            const std::size_t rank = large.size();
            for (const E& e : column) {
                const auto small = traits::extents(e);
                if (small.size() != rank)
                    throw shape_error("padded_batch: column " + std::to_string(number) + " has records of shapes " +
                                      text_of(large) + " and " + text_of(small) + ", of different rank");
                for (std::size_t i = 0; i < rank; ++i) large[i] = std::max(large[i], small[i]);
            }
            fix(large, number);
            if (first_extent != nullptr && rank > 0 && !traits::fixed)
                large[0] = std::max(large[0], first_extent->front());
            const auto rows = static_cast<std::int64_t>(column.size());
            const device_scope here(nullptr);
            const double padding = number < options.padding.size() ? options.padding[number] : 0;
            auto all = full<T>(batch_shape(rows, large), static_cast<T>(static_cast<arithmetic_type_t<T>>(padding)));
            T* to = all.mutable_data();
            std::vector<T> scratch;
            for (const E& e : column) {
                const auto small = traits::extents(e);
                scratch.resize(static_cast<std::size_t>(values_in(small)));
                if constexpr (!std::is_same_v<T, bool>) {
                    traits::write(e, scratch.data(), values_in(small));
                    copy_block<T>(scratch.data(), to, small.data(), large.data(), rank);
                } else {
                    static_assert(traits::fixed, "padded_batch: bool columns are single values");
                    traits::write(e, to, values_in(small));
                }
                to += values_in(large);
            }
            return all;
        }
    }
    void fix(std::vector<std::int64_t>& large, std::size_t number) const {
        if (number >= options.record_shapes.size() || options.record_shapes[number].empty()) return;
        const auto& wanted = options.record_shapes[number];
        bool fits = wanted.size() == large.size();
        for (std::size_t i = 0; fits && i < large.size(); ++i) fits = wanted[i] == 0 || large[i] <= wanted[i];
        if (!fits)
            throw shape_error("padded_batch: column " + std::to_string(number) + " has records up to " +
                              text_of(large) + ", to be padded to " + text_of(wanted));
        for (std::size_t i = 0; i < large.size(); ++i)
            if (wanted[i] != 0) large[i] = wanted[i];
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

/// So many elements as one, put together when all are there.
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
