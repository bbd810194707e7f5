#pragma once

#include <tapegraph/data/pipeline/stream.hpp>
#include <tapegraph/eager/tensor.hpp>

#include <array>
#include <concepts>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// Sources of elements. A source is any copyable value that has either
///
///     std::int64_t size() const;                  // elements
///     Element at(std::int64_t i) const;           // element i, from several threads at once
///
/// or, if elements are read in sequence,
///
///     auto open() const;                          // a reader at the first element, which has
///         std::optional<Element> next();          //     the next element, nullopt at the end
///
/// and optionally
///
///     std::string origin(std::int64_t i) const;   // of element i, for errors: "'a.jpg'"; a reader: origin() of the last element
///     static constexpr const char* name = "csv";  // in reports
///     std::int64_t size() const;                  // of a source with open(): elements, unknown_size or endless
///
/// `data::from(source)` makes a set of it. The position in an epoch is the number of its next
/// element: at(i) goes there directly, a reader skips to it.

namespace tapegraph::data {

/// Numbered elements.
template <class S>
concept indexed_source = std::copy_constructible<S> && requires(const S& s, std::int64_t i) {
    { s.size() } -> std::convertible_to<std::int64_t>;
    s.at(i);
};
/// Sequential elements.
template <class S>
concept opened_source = std::copy_constructible<S> && requires(const S& s) {
    *s.open().next();
    { s.open().next().has_value() } -> std::same_as<bool>;
};
/// What a pipeline can start from: elements by index, or opened anew for every epoch.
template <class S>
concept pipeline_source = indexed_source<S> || opened_source<S>;

namespace detail {

template <class S>
constexpr const char* source_name() {
    if constexpr (requires { S::name; })
        return S::name;
    else
        return "source";
}

template <class S>
struct source_stage;

template <indexed_source S>
struct source_stage<S> {
    using element = std::remove_cvref_t<decltype(std::declval<const S&>().at(0))>;
    using ticket = std::int64_t;
    static constexpr int stages = 1;
    static constexpr bool batched = false;

    struct cursor {
        cursor(const source_stage& s, const walk_context&) : size(s.source.size()) {}
        bool draw(ticket& t) {
            if (at == size) return false;
            t = at++;
            return true;
        }
        std::int64_t size, at = 0;
    };
    element make(ticket& t, const walk_context& c) const {
        const busy_scope busy(c.counters(0, source_name<S>()));
        return source.at(t);
    }
    std::string origin(const ticket& t) const {
        if constexpr (requires { source.origin(t); })
            return source.origin(t);
        else
            return std::string(source_name<S>()) + " record " + std::to_string(t);
    }
    std::int64_t size() const { return source.size(); }
    work_plan plan() const { return {}; }

    S source;
};

template <class Element>
struct read_ticket {
    std::optional<Element> element;
    std::int64_t number = 0;
    std::string origin;
};

template <class S>
    requires(opened_source<S> && !indexed_source<S>)
struct source_stage<S> {
    using reader = decltype(std::declval<const S&>().open());
    using element = std::remove_cvref_t<decltype(*std::declval<reader&>().next())>;
    using ticket = read_ticket<element>;
    static constexpr int stages = 1;
    static constexpr bool batched = false;

    struct cursor {
        cursor(const source_stage& s, const walk_context& c)
            : in(s.source.open()), counters(c.counters(0, source_name<S>())) {}
        bool draw(ticket& t) {
            const double start = tapegraph::detail::steady_seconds();
            t.element = in.next();
            if (!t.element) return false;
            if (counters != nullptr) counters->add(tapegraph::detail::steady_seconds() - start);
            t.number = number++;
            if constexpr (requires { in.origin(); }) t.origin = in.origin();
            return true;
        }
        reader in;
        stage_counters* counters;
        std::int64_t number = 0;
    };
    element make(ticket& t, const walk_context&) const { return std::move(*t.element); }
    std::string origin(const ticket& t) const {
        return t.origin.empty() ? std::string(source_name<S>()) + " element " + std::to_string(t.number) : t.origin;
    }
    std::int64_t size() const {
        if constexpr (requires { source.size(); })
            return source.size();
        else
            return unknown_size;
    }
    work_plan plan() const { return {}; }

    S source;
};

struct range_source {
    std::int64_t first, count, step;
    static constexpr const char* name = "range";
    std::int64_t size() const { return count; }
    std::int64_t at(std::int64_t i) const { return first + i * step; }
};

/// Slices along the first axis: elements of vectors, tensors of rank 0 from tensors of rank 1, and
/// so on.
template <class T>
std::int64_t slice_count(const std::vector<T>& v) {
    return static_cast<std::int64_t>(v.size());
}
template <class T>
std::int64_t slice_count(const tensor<T>& t) {
    if (t.rank() == 0) throw shape_error("slices: a tensor of rank 0 has no records");
    return t.shape()[0].value;
}
template <class T>
T slice_at(const std::vector<T>& v, std::int64_t i) {
    return v[static_cast<std::size_t>(i)];
}
template <class T>
tensor<T> slice_at(const tensor<T>& t, std::int64_t i) {
    std::int64_t extents[max_rank]{};
    for (int axis = 1; axis < t.rank(); ++axis) extents[axis - 1] = t.shape()[axis].value;
    auto slice = tensor<T>::uninitialized(shape(t.rank() - 1, extents));
    std::copy_n(t.data() + i * slice.size(), slice.size(), slice.mutable_data());
    return slice;
}

template <class... Columns>
struct slices_source {
    explicit slices_source(Columns... columns)
        : columns_(std::make_shared<const std::tuple<Columns...>>(std::move(columns)...)) {
        std::apply(
            [&](const auto& first, const auto&... more) {
                size_ = slice_count(first);
                std::size_t column = 1;
                [[maybe_unused]] const auto check = [&](std::int64_t count) {
                    if (count != size_)
                        throw shape_error("slices: column " + std::to_string(column) + " has " + std::to_string(count) +
                                          " records, column 0 has " + std::to_string(size_));
                    ++column;
                };
                (check(slice_count(more)), ...);
            },
            *columns_);
    }
    static constexpr const char* name = "slices";
    std::int64_t size() const { return size_; }
    auto at(std::int64_t i) const {
        if constexpr (sizeof...(Columns) == 1)
            return slice_at(std::get<0>(*columns_), i);
        else
            return std::apply([i](const auto&... c) { return std::make_tuple(slice_at(c, i)...); }, *columns_);
    }

private:
    std::shared_ptr<const std::tuple<Columns...>> columns_;
    std::int64_t size_ = 0;
};

/// Elements of a stored range.
template <class Range>
struct range_of_elements {
    explicit range_of_elements(Range r) : range(std::make_shared<Range>(std::move(r))) {}
    static constexpr const char* name = "range";
    struct reader {
        std::shared_ptr<Range> range;
        std::ranges::iterator_t<Range> at;
        auto next() {
            std::optional<std::ranges::range_value_t<Range>> result;
            if (at == std::ranges::end(*range)) return result;
            result.emplace(*at);
            ++at;
            return result;
        }
    };
    reader open() const { return {range, std::ranges::begin(*range)}; }
    std::int64_t size() const {
        if constexpr (std::ranges::sized_range<Range>)
            return static_cast<std::int64_t>(std::ranges::size(*range));
        else
            return unknown_size;
    }
    std::shared_ptr<Range> range;
};

template <class Make>
struct generator_source {
    Make make;
    std::int64_t count;
    static constexpr const char* name = "generator";
    struct reader {
        std::remove_cvref_t<decltype(std::declval<const Make&>()())> function;
        auto next() { return function(); }
    };
    reader open() const { return {make()}; }
    std::int64_t size() const { return count; }
};

} // namespace detail
} // namespace tapegraph::data
