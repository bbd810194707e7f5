#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/device.hpp>
#include <tapegraph/data/pipeline/element.hpp>
#include <tapegraph/data/source.hpp>
#include <tapegraph/eager/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Batches: values of records stacked along a new first axis.

namespace tapegraph::data {

/// Values written straight into the batch: if map's function returns `written<float>({224, 224, 3},
/// [=](std::span<float> to) { ... })`, or a field of it, batch calls it with the record's place in
/// the batch.
template <class T, class Write>
struct written_values {
    std::vector<std::int64_t> extents;
    Write write; ///< called once, with room for all values
};
namespace detail {
template <class T, class Write>
inline constexpr bool is_record<written_values<T, Write>> = false;
}
/// A column of those extents whose values `write` puts into the batch's memory, with no copy in between.
template <class T, class Write>
written_values<T, Write> written(std::vector<std::int64_t> extents, Write write) {
    return {std::move(extents), std::move(write)};
}

namespace detail {

template <class T>
concept number = requires {
    tapegraph::dtype_traits<T>::value;
};

/// Converts one value of a record to rows of a tensor.
template <class E>
struct leaf_traits {
    static constexpr bool numbers = false;
};
template <number T>
struct leaf_traits<T> {
    static constexpr bool numbers = true, fixed = true;
    using value = T;
    static std::vector<std::int64_t> extents(const T&) { return {}; }
    static bool valid(const T&, const std::vector<std::int64_t>&) { return true; }
    static void write(const T& from, T* to, std::int64_t) { *to = from; }
};
template <class T, std::size_t N>
    requires(leaf_traits<T>::numbers&& leaf_traits<T>::fixed)
struct leaf_traits<std::array<T, N>> {
    static constexpr bool numbers = true, fixed = true;
    using value = typename leaf_traits<T>::value;
    static std::vector<std::int64_t> extents(const std::array<T, N>& a) {
        std::vector<std::int64_t> all{static_cast<std::int64_t>(N)};
        for (const std::int64_t e : leaf_traits<T>::extents(a[0])) all.push_back(e);
        return all;
    }
    static bool valid(const std::array<T, N>&, const std::vector<std::int64_t>&) { return true; }
    static void write(const std::array<T, N>& from, value* to, std::int64_t size) {
        const std::int64_t each = size / static_cast<std::int64_t>(N);
        for (const T& e : from) {
            leaf_traits<T>::write(e, to, each);
            to += each;
        }
    }
};
template <number T>
struct leaf_traits<std::vector<T>> {
    static constexpr bool numbers = true, fixed = false;
    using value = T;
    static std::vector<std::int64_t> extents(const std::vector<T>& v) { return {static_cast<std::int64_t>(v.size())}; }
    static bool valid(const std::vector<T>& v, const std::vector<std::int64_t>& e) {
        return e.size() == 1 && e[0] == static_cast<std::int64_t>(v.size());
    }
    static void write(const std::vector<T>& from, T* to, std::int64_t) { std::copy(from.begin(), from.end(), to); }
};
template <class T>
struct leaf_traits<tensor<T>> {
    static constexpr bool numbers = true, fixed = false;
    using value = T;
    static std::vector<std::int64_t> extents(const tensor<T>& t) {
        std::vector<std::int64_t> all;
        for (int i = 0; i < t.rank(); ++i) all.push_back(t.shape()[i].value);
        return all;
    }
    static bool valid(const tensor<T>& t, const std::vector<std::int64_t>& e) {
        if (t.rank() != static_cast<int>(e.size())) return false;
        for (int i = 0; i < t.rank(); ++i)
            if (t.shape()[i].value != e[static_cast<std::size_t>(i)]) return false;
        return true;
    }
    static void write(const tensor<T>& from, T* to, std::int64_t size) { std::copy_n(from.data(), size, to); }
};
template <class T, class Write>
struct leaf_traits<written_values<T, Write>> {
    static constexpr bool numbers = true, fixed = false;
    using value = T;
    static std::vector<std::int64_t> extents(const written_values<T, Write>& w) { return w.extents; }
    static bool valid(const written_values<T, Write>& w, const std::vector<std::int64_t>& e) { return w.extents == e; }
    static void write(const written_values<T, Write>& from, T* to, std::int64_t size) {
        from.write(std::span<T>(to, static_cast<std::size_t>(size)));
    }
};

shape batch_shape(std::int64_t rows, const std::vector<std::int64_t>& record);
inline std::int64_t values_in(const std::vector<std::int64_t>& record) {
    std::int64_t size = 1;
    for (const std::int64_t e : record) size *= e;
    return size;
}

using record_shapes = std::vector<std::vector<std::int64_t>>;

/// Rows of one column of any type, in a vector.
template <class E>
struct column_rows {
    using batched = std::vector<E>;
    static constexpr bool numbers = false, fixed = false;
    static void add_shape(const E&, record_shapes& shapes) { shapes.emplace_back(); }
    static void add_fixed_shape(record_shapes& shapes) { shapes.emplace_back(); }
    static std::int64_t bytes(std::int64_t rows, const std::vector<std::int64_t>&) {
        return rows * static_cast<std::int64_t>(sizeof(E));
    }
    void open(std::int64_t rows, const std::vector<std::int64_t>&) { items.resize(static_cast<std::size_t>(rows)); }
    void put(std::int64_t row, E&& e) { items[static_cast<std::size_t>(row)] = std::move(e); }
    batched get(std::int64_t count) {
        return {std::make_move_iterator(items.begin()), std::make_move_iterator(items.begin() + count)};
    }
    std::vector<E> items;
};

/// Rows of one column of numbers, in a tensor.
template <class E>
    requires(leaf_traits<E>::numbers)
struct column_rows<E> {
    using traits = leaf_traits<E>;
    using value = typename traits::value;
    using batched = tensor<value>;
    static constexpr bool numbers = true, fixed = traits::fixed;

    static void add_shape(const E& first, record_shapes& shapes) { shapes.push_back(traits::extents(first)); }
    static void add_fixed_shape(record_shapes& shapes) {
        if constexpr (fixed)
            shapes.push_back(traits::extents(E{}));
        else
            shapes.emplace_back();
    }
    static std::int64_t bytes(std::int64_t rows, const std::vector<std::int64_t>& record) {
        return rows * values_in(record) * static_cast<std::int64_t>(sizeof(value));
    }
    /// Reuses the previous batch's buffer, unless something still holds it.
    void open(std::int64_t rows, const std::vector<std::int64_t>& record) {
        const device_scope here(nullptr);
        const shape wanted = batch_shape(rows, record);
        if (!(values.shape() == wanted) || values.shared()) values = tensor<value>::uninitialized(wanted);
        shape_of_record = &record;
        size = values_in(record);
        to = values.mutable_data();
    }
    void put(std::int64_t row, E&& e) {
        if (!traits::valid(e, *shape_of_record))
            throw shape_error("batch: a record has shape " + text_of(traits::extents(e)) + ", the others have " +
                              text_of(*shape_of_record) + "; padded_batch and ragged_batch take records of any length");
        traits::write(e, to + row * size, size);
    }
    batched get(std::int64_t count) const {
        if (count == values.shape()[0].value) return values;
        const device_scope here(nullptr);
        auto part = batched::uninitialized(batch_shape(count, *shape_of_record));
        std::copy_n(values.data(), part.size(), part.mutable_data());
        return part;
    }
    tensor<value> values;
    const std::vector<std::int64_t>* shape_of_record = nullptr;
    std::int64_t size = 0;
    value* to = nullptr;
};

/// Rows of records, by field if they have fields; `Column` holds one of them.
template <class E, template <class> class Column = column_rows>
struct batch_rows {
    using rows = Column<E>;
    using batched = typename rows::batched;
    static constexpr bool fixed = rows::fixed;
    static void add_shapes(const E& first, record_shapes& shapes) { rows::add_shape(first, shapes); }
    static void add_fixed_shapes(record_shapes& shapes) { rows::add_fixed_shape(shapes); }
    static std::int64_t bytes(std::int64_t count, const record_shapes& shapes, std::size_t& column) {
        return rows::bytes(count, shapes[column++]);
    }
    void open(std::int64_t count, const record_shapes& shapes, std::size_t& column) {
        values.open(count, shapes[column++]);
    }
    void put(std::int64_t row, E&& e) { values.put(row, std::move(e)); }
    batched get(std::int64_t count) { return values.get(count); }
    /// Calls f with each column, in order.
    template <class F>
    void each(const F& f) {
        f(values);
    }
    rows values;
};

template <class E, template <class> class Column>
    requires has_fields<E>
struct batch_rows<E, Column> {
    template <class Tuple>
    struct of;
    template <class... Fields>
    struct of<std::tuple<Fields...>> {
        using parts = std::tuple<batch_rows<Fields, Column>...>;
        using batched = std::tuple<typename batch_rows<Fields, Column>::batched...>;
        static constexpr bool fixed = (batch_rows<Fields, Column>::fixed && ...);
        static void add_fixed(record_shapes& shapes) { (batch_rows<Fields, Column>::add_fixed_shapes(shapes), ...); }
        static std::int64_t bytes(std::int64_t count, const record_shapes& shapes, std::size_t& column) {
            std::int64_t sum = 0;
            ((sum += batch_rows<Fields, Column>::bytes(count, shapes, column)), ...);
            return sum;
        }
    };
    using fields = of<typename field_types<E>::type>;
    using batched = typename fields::batched;
    static constexpr bool fixed = fields::fixed;

    static void add_shapes(const E& first, record_shapes& shapes) {
        std::apply(
            [&](const auto&... f) {
                (batch_rows<std::remove_cvref_t<decltype(f)>, Column>::add_shapes(f, shapes), ...);
            },
            fields_of(first));
    }
    static void add_fixed_shapes(record_shapes& shapes) { fields::add_fixed(shapes); }
    static std::int64_t bytes(std::int64_t count, const record_shapes& shapes, std::size_t& column) {
        return fields::bytes(count, shapes, column);
    }
    void open(std::int64_t count, const record_shapes& shapes, std::size_t& column) {
        std::apply([&](auto&... p) { (p.open(count, shapes, column), ...); }, parts);
    }
    void put(std::int64_t row, E&& e) {
        auto from = fields_of(e);
        [&]<std::size_t... I>(std::index_sequence<I...>) {
            (std::get<I>(parts).put(row, std::move(std::get<I>(from))), ...);
        }
        (std::make_index_sequence<std::tuple_size_v<decltype(from)>>{});
    }
    batched get(std::int64_t count) {
        return std::apply([count](auto&... p) { return batched{p.get(count)...}; }, parts);
    }
    template <class F>
    void each(const F& f) {
        std::apply([&](auto&... p) { (p.each(f), ...); }, parts);
    }
    typename fields::parts parts;
};

/// The declared shapes of records: one per column. Throws argument_error, shape_error.
template <class E>
record_shapes checked_layout(const record_shapes& given) {
    if (given.empty()) return given;
    record_shapes columns;
    if constexpr (std::is_default_constructible_v<E>) batch_rows<E>::add_fixed_shapes(columns);
    if (!columns.empty() && columns.size() != given.size())
        throw argument_error("batch: " + std::to_string(given.size()) + " shapes are given of records of " +
                             std::to_string(columns.size()) + " columns");
    for (const auto& extents : given)
        for (const std::int64_t e : extents)
            if (e < 1) throw shape_error("batch: the impossible record shape " + text_of(extents) + " is given");
    return given;
}

} // namespace detail
} // namespace tapegraph::data

namespace tapegraph::data::detail {

#if TG_DEFINES(data)

TG_DEFINITION shape batch_shape(std::int64_t rows, const std::vector<std::int64_t>& record) {
    std::int64_t extents[max_rank]{rows};
    if (record.size() + 1 > static_cast<std::size_t>(max_rank))
        throw shape_error("batch: records of shape " + text_of(record) + " have too high a rank");
    std::copy(record.begin(), record.end(), extents + 1);
    return shape(static_cast<int>(record.size()) + 1, extents);
}

#endif

} // namespace tapegraph::data::detail
