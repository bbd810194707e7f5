#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/ir/trace.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace tapegraph {

/// The type of `tg::dyn`.
struct dynamic_extent {};
/// An extent known only at run time. On axis 0 of a model's inputs it is one common symbol (the
/// batch); elsewhere each is its own.
inline constexpr dynamic_extent dyn{};

/// The type of `tg::dim<"name">`.
template <fixed_string Name>
struct named_extent {};

namespace detail {
constexpr std::int64_t number_of(std::int64_t number) { return number; }
constexpr std::int64_t number_of(dynamic_extent) { return -1; }
template <fixed_string Name>
constexpr std::int64_t number_of(named_extent<Name>) {
    return -1;
}
} // namespace detail

/// A run-time extent with a name, `tg::spec<float, tg::dyn, tg::dim<"time">>`: equal names are equal
/// extents.
template <fixed_string Name>
inline constexpr named_extent<Name> dim{};

/// Element type and shape of an input: `spec<float, dyn, 50, 50, 3>`. Without extents it is a scalar.
template <class T, auto... Extents>
struct spec {
    using element_type = T;
    /// The element type of the variables and results of a model with this input. A model with
    /// integer inputs, such as indices into a table, computes in float.
    using value_type = std::conditional_t<std::is_floating_point_v<T>, T, float>;
    static constexpr int rank = sizeof...(Extents);
    /// The extents as numbers; -1 where they are known only at run time. There is one more element,
    /// because a scalar has none.
    static constexpr std::int64_t extents[rank + 1]{detail::number_of(Extents)..., 0};

    /// "[?, 50, 50, 3]"
    static std::string text() {
        std::string s = "[";
        for (int i = 0; i < rank; ++i)
            s += (i > 0 ? ", " : "") + (extents[i] < 0 ? std::string("?") : std::to_string(extents[i]));
        return s + "]";
    }

    /// The shape in a trace, with symbols where extents are dynamic.
    static constexpr shape dims(extent_table& table) {
        shape s;
        s.attach(&table);
        int axis = 0;
        (s.push_back(extent_of(Extents, axis++, table)), ...);
        return s;
    }

private:
    static constexpr extent extent_of(dynamic_extent, int axis, extent_table& table) {
        return {table.symbol(axis == 0 ? "batch" : ""), &table};
    }
    template <fixed_string Name>
    static constexpr extent extent_of(named_extent<Name>, int, extent_table& table) {
        return {table.symbol(dim_name<Name>), &table};
    }
    static constexpr extent extent_of(std::int64_t number, int, extent_table&) { return number; }

    template <fixed_string Name>
    static constexpr std::string_view dim_name = Name.view();
};

} // namespace tapegraph
