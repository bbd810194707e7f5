#pragma once

#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/session/fetches.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// The optimizers of a session's model, and which of them a set of fetches runs.

namespace tapegraph::detail {

template <fixed_string... Text>
struct name_list {
    static constexpr int count = sizeof...(Text);
    static constexpr std::array<std::string_view, sizeof...(Text)> all{std::string_view(Text.view())...};
};

template <class Model>
using fetches_of = decltype(Model{}(std::declval<graph_scope>()));

/// The optimizers of a session's model: one for each call of minimize in each operation that it
/// returns.
template <class... Optimizers>
struct optimizer_table {
    static constexpr std::size_t count = sizeof...(Optimizers);
    std::tuple<Optimizers...> optimizers;
    std::array<int, sizeof...(Optimizers)> trainings{}; ///< the index of the call of minimize
    std::array<std::string_view, sizeof...(Optimizers)> names{};

    /// The first optimizer of the same call: those of one call are one optimizer.
    constexpr std::size_t first_of(std::size_t i) const {
        std::size_t first = 0;
        while (trainings[first] != trainings[i]) ++first;
        return first;
    }
};

template <class T>
constexpr optimizer_table<> optimizers_of(const fetch<T>&) {
    return {};
}
template <class... O>
constexpr auto optimizers_of_operation(std::string_view name, const graph_operation<O...>& operation) {
    optimizer_table<O...> table{operation.optimizers, operation.trainings, {}};
    for (std::string_view& each : table.names) each = name;
    return table;
}
template <class T>
    requires is_operation<T>
constexpr auto optimizers_of(const fetch<T>& item) { return optimizers_of_operation(item.name, item.value); }

constexpr optimizer_table<> joined_tables() { return {}; }
template <class... A, class... Rest>
constexpr auto joined_tables(const optimizer_table<A...>& first, const Rest&... rest) {
    const auto others = joined_tables(rest...);
    return [&]<class... B>(const optimizer_table<B...>& other) {
        optimizer_table<A..., B...> all{std::tuple_cat(first.optimizers, other.optimizers), {}, {}};
        for (std::size_t i = 0; i < first.trainings.size(); ++i)
            all.trainings[i] = first.trainings[i], all.names[i] = first.names[i];
        for (std::size_t i = 0; i < other.trainings.size(); ++i)
            all.trainings[sizeof...(A) + i] = other.trainings[i], all.names[sizeof...(A) + i] = other.names[i];
        return all;
    }(others);
}

template <class Model>
constexpr auto traced_optimizers() {
    ir::model_trace t;
    t.training = false;
    const auto result = Model{}(graph_scope(&t, 0));
    return std::apply([](const auto&... item) { return joined_tables(optimizers_of(item)...); }, result.items);
}
/// Determined before the actual trace: which steps of optimizers a run takes, and hence whether it
/// is training.
template <class Model>
inline constexpr auto session_optimizers = traced_optimizers<Model>();

/// Where the optimizers of a model are found; specialised for models that are traced at run time.
template <class Model>
struct optimizers_of_session {
    static constexpr const auto& get() { return session_optimizers<Model>; }
};

template <class... T>
auto table_of(const fetches<T...>&) -> decltype(joined_tables(optimizers_of(std::declval<const fetch<T>&>())...));
template <class Model>
using table_type = decltype(table_of(std::declval<fetches_of<Model>>()));
template <class Model>
inline constexpr bool has_optimizers = table_type<Model>::count > 0;

template <class... T>
constexpr bool any_operation(const fetches<T...>*) {
    return (is_operation<T> || ...);
}
constexpr bool initializes(const void*) { return false; }
template <class... O>
constexpr bool initializes(const graph_operation<O...>* operation) {
    return operation->initializes;
}
/// Whether one of these fetches is initialize_variables().
template <class Model, class Names>
constexpr bool wants_first_values() {
    bool wanted = false;
    if constexpr (any_operation(static_cast<const fetches_of<Model>*>(nullptr))) {
        ir::model_trace t;
        t.training = false;
        const auto result = Model{}(graph_scope(&t, 0));
        for (const std::string_view name : Names::all)
            std::apply(
                [&](const auto&... item) {
                    ((wanted = wanted || (item.name == name && initializes(&item.value))), ...);
                },
                result.items);
    }
    return wanted;
}

/// Replaces names: everything that the model can train, to find its variables.
struct all_operations {
    static constexpr std::array<std::string_view, 0> all{};
};

template <class Model, class Names>
constexpr std::uint64_t wanted_trainings() {
    std::uint64_t mask = 0;
    if constexpr (std::is_same_v<Names, all_operations>) return ~mask;
    if constexpr (has_optimizers<Model>)
        for (std::size_t i = 0; i < table_type<Model>::count; ++i)
            for (const std::string_view name : Names::all)
                if (optimizers_of_session<Model>::get().names[i] == name)
                    mask |= std::uint64_t{1} << optimizers_of_session<Model>::get().trainings[i];
    return mask;
}

/// A bit for each call of minimize whose optimizer scales its loss.
template <class Model>
constexpr std::uint64_t scaled_trainings() {
    std::uint64_t mask = 0;
    if constexpr (has_optimizers<Model>)
        [&]<class... O>(const std::tuple<O...>&) {
            std::size_t i = 0;
            ((mask |= scales_loss<O>() ? std::uint64_t{1} << optimizers_of_session<Model>::get().trainings[i] : 0, ++i),
             ...);
        }(optimizers_of_session<Model>::get().optimizers);
    return mask;
}

} // namespace tapegraph::detail
