#pragma once

#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/core/kept_text.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/session/operations.hpp>

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// The result of a session's model, and the feeds and results of a session.

namespace tapegraph {

/// A named result of a model: a value, or an operation.
template <class T>
struct fetch {
    std::string_view name;
    T value;

    constexpr fetch(std::string_view text, const T& result) : name(kept_text(text)), value(result) {
        static_assert(tensor_like<T> || detail::is_operation<T>, "fetch: a value or an operation");
    }
};

/// The result of a session's model: `return fetches{fetch("y", y), fetch("train", minimize(loss,
/// sgd{}))};`
template <class... T>
struct fetches {
    std::tuple<fetch<T>...> items;

    constexpr fetches(const fetch<T>&... fetch_each) : items(fetch_each...) {}
};

/// A value for a placeholder.
struct feed {
    std::string_view name;
    any_tensor value;

    template <class T>
    feed(std::string_view placeholder, const tensor<T>& t) : name(placeholder), value(t) {}
    template <arithmetic T>
    feed(std::string_view placeholder, T number) : name(placeholder), value(tensor<T>(number)) {}
};

/// A value that replaces a computed one, `given<"h">(t)`: operations needed only for `h` do not
/// run. The name is that of a fetch, of `scope.named`, or of a placeholder.
template <fixed_string Name>
struct given : feed {
    template <class T>
    explicit given(const tensor<T>& t) : feed(Name.view(), t) {}
    template <arithmetic T>
    explicit given(T number) : feed(Name.view(), number) {}
};

/// A fetched tensor; one element converts to a number: `float y = session.run<"y">(...)`.
template <class T>
class fetched : public tensor<T> {
public:
    explicit fetched(tensor<T> value) : tensor<T>(std::move(value)) {}
    // NOLINTNEXTLINE: implicit on purpose
    operator T() const { return this->item(); }
};

/// Prints the tensor, not a number.
template <class T>
inline constexpr bool has_text<fetched<T>> = true;

} // namespace tapegraph
