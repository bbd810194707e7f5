#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/expr/apply.hpp>

#include <concepts>
#include <initializer_list>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

namespace tapegraph::detail {

/// A number as an element of type V, if V can hold such numbers. Throws range_error for an integer
/// outside its range.
template <class V, arithmetic U>
constexpr V list_element(U value) {
    if constexpr (std::is_integral_v<V> && !std::is_same_v<V, bool> && !std::is_same_v<U, bool>) {
        const auto same = static_cast<V>(value);
        if (static_cast<U>(same) != value || (value < U(0)) != (same < V(0)))
            throw range_error("tensor: " + std::to_string(value) + " in a list of " + name_of(dtype_of<V>));
    }
    return static_cast<V>(value);
}
/// Integers may be mixed into floats, not the other way round.
template <class U, class V>
concept listed_as = arithmetic<U> &&(std::is_integral_v<U> || std::is_floating_point_v<V>);

/// The content of braces: a number or a list, so that {{1}, {2}} is two lists of one number each.
/// It lives until the end of the statement with the braces.
template <class V>
class nested_list {
public:
    // NOLINTBEGIN: implicit, so that numbers and braces convert to it
    template <listed_as<V> U>
    constexpr nested_list(U value) : value_(list_element<V>(value)) {}
    constexpr nested_list(std::initializer_list<nested_list> parts) : parts_(nullptr) {
        parts_ = std::data(parts);
        count_ = static_cast<std::int64_t>(parts.size());
    }
    // NOLINTEND

    bool is_list() const { return count_ >= 0; }
    std::int64_t count() const { return count_; }
    /// Only for a list.
    const nested_list* begin() const { return parts_; }
    const nested_list* end() const { return parts_ + count_; }
    V value() const { return value_; }

private:
    union { // two words: a list in the source is a table of these
        V value_;
        const nested_list* parts_;
    };
    std::int64_t count_ = -1;
};

/// Checks that the lists below `whole` are as long as the first of their depth, `dims`; `at` is
/// their position.
template <class V>
void check_nested(const nested_list<V>& whole, const shape& dims, shape& at) {
    const int depth = at.rank();
    const std::int64_t count = whole.count();
    if (whole.is_list() == (depth < dims.rank()) && (depth == dims.rank() || count == dims[depth].value)) {
        if (!whole.is_list()) return;
        shape below = at;
        below.push_back(0);
        for (const auto& each : whole) {
            check_nested(each, dims, below);
            below.set(depth, below[depth] + 1);
        }
        return;
    }
    const auto described = [](bool list, std::int64_t size) {
        return list ? "has length " + std::to_string(size) : std::string("is a number");
    };
    const shape first = [&] {
        shape zeros;
        for (int i = 0; i < depth; ++i) zeros.push_back(0);
        return zeros;
    }();
    throw shape_error("tensor: ragged list: " + to_string(at) + " " + described(whole.is_list(), count) + ", " +
                      to_string(first) + " " +
                      described(depth < dims.rank(), depth < dims.rank() ? dims[depth].value : 0));
}

/// The shape of nested braces. Throws shape_error, naming the row, where sibling lists differ in
/// length, and for more than max_rank levels.
template <class V>
shape nested_shape(const nested_list<V>& whole) {
    shape dims, at;
    for (const nested_list<V>* first = &whole; first->is_list(); first = first->begin()) {
        dims.push_back(first->count());
        if (first->count() == 0) break;
    }
    if (dims.overflow()) throw shape_error("tensor: lists are nested more than " + std::to_string(max_rank) + " deep");
    check_nested(whole, dims, at);
    return dims;
}

template <class V, class T>
T* copy_nested(const nested_list<V>& whole, T* to) {
    if (!whole.is_list()) {
        *to = static_cast<T>(whole.value());
        return to + 1;
    }
    for (const auto& each : whole) to = copy_nested(each, to);
    return to;
}

TG_COMPILED(eager, shape nested_shape<float>(const nested_list<float>&))
TG_COMPILED(eager, shape nested_shape<double>(const nested_list<double>&))
TG_COMPILED(eager, float* copy_nested<float, float>(const nested_list<float>&, float*))
TG_COMPILED(eager, double* copy_nested<double, double>(const nested_list<double>&, double*))

} // namespace tapegraph::detail
