#pragma once

#include <tapegraph/nn/loss_part.hpp>

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// The objective of a model: losses on its outputs. Traces and eager mode treat all of them as one
/// objective.

namespace tapegraph {
namespace detail {

/// The losses and metrics of a model, for any kind of result: label columns, which follow the
/// inputs, and numbers that may change between steps. `y` is the model's result, one tensor or
/// `outputs`; `z` a tuple of columns; `n` the numbers. This is the case of one loss of one output.
template <class Loss>
struct objective {
    using part = loss_part<Loss>;
    static constexpr bool added_only = std::is_same_v<Loss, added_losses>;
    static constexpr int columns = part::columns, count = part::count;
    static constexpr std::string_view column_names[2]{"",
                                                      // The first column after the inputs, which is
                                                      // a name.
                                                      "sample_weight"};
    static constexpr bool has_results = false; ///< in addition to loss and accuracy

    static void write(const Loss& loss, double*& to) { part::write(loss, to); }
    /// Element type and shape of column k for these outputs.
    template <class Y>
    static constexpr tensor_spec column(int k, const tensor_spec* outputs) {
        return part::column(k, outputs[0]);
    }
    template <class Y, class Z, class N>
    static constexpr auto value(const Y& y, const Z& z, const N& n) {
        auto total = std::apply([&](const auto&... each) { return part::value(y, n, each...); }, z);
        return objective_value<decltype(total), std::tuple<>>{total, {}};
    }
    template <class Y, class Z>
    static constexpr auto accuracy(const Y& y, const Z& z) {
        return std::apply([&](const auto&... each) { return part::accuracy(y, each...); }, z);
    }
    template <class State, class Y, class Z, class V, class N>
    static constexpr void measure(const State&, const Y&, const Z&, const V&, const N&) {}
    /// Calls `f(name, result)` with the accumulated result of each metric.
    template <class F>
    static void results(const Loss&, const F&) {}
    /// Calls `f(output, labels, weights or none)` for a metric.
    template <class Part, class Y, class Z, class F>
    static constexpr void labelled_output(const Y& y, const Z& z, const F& f) {
        static_assert(columns > 0, "metrics: the loss has no labels to measure by");
        labelled(y, z, f);
    }
    template <class Y, class Labels, class F>
    static constexpr void labelled(const Y& y, const std::tuple<Labels>& z, const F& f) {
        if constexpr (is_masked<Y>)
            y.weighing(std::get<0>(z), none{}, f);
        else
            f(y, std::get<0>(z), none{});
    }
    template <class Y, class Labels, class Weights, class F>
    static constexpr void labelled(const Y& y, const std::tuple<Labels, Weights>& z, const F& f) {
        if constexpr (is_masked<Y>)
            y.weighing(std::get<0>(z), std::get<1>(z), f);
        else
            f(y, std::get<0>(z), std::get<1>(z));
    }
};

template <fixed_string... Names, class... Losses>
struct objective<losses<part_on<Names, Losses>...>> {
    using whole = losses<part_on<Names, Losses>...>;
    static constexpr bool added_only = false, has_results = true;
    static constexpr std::size_t size = sizeof...(Losses);
    // Where the columns and numbers of each part start; the first of its numbers is its weight.
    struct place {
        std::size_t column, number;
    };
    static constexpr auto places = [] {
        std::array<place, size + 1> all{};
        std::size_t k = 0;
        ((all[k + 1] = {all[k].column + loss_part<Losses>::columns, all[k].number + 1 + loss_part<Losses>::count}, ++k),
         ...);
        return all;
    }();
    static constexpr int columns = static_cast<int>(places[size].column), count = static_cast<int>(places[size].number);
    static constexpr auto column_names = [] {
        std::array<std::string_view, places[size].column + 1> all{};
        constexpr std::string_view names[sizeof...(Names)]{Names.view()...};
        for (std::size_t part = 0; part < size; ++part)
            for (std::size_t k = places[part].column; k < places[part + 1].column; ++k)
                all[k] = k == places[part].column ? names[part] : std::string_view("sample_weight");
        return all;
    }();

    static void write(const whole& of, double*& to) {
        std::apply(
            [&](const auto&... each) {
                ((*to++ = each.weight, loss_part<std::remove_cvref_t<decltype(each.part)>>::write(each.part, to)), ...);
            },
            of.parts);
    }
    template <class Y>
    static constexpr tensor_spec column(int k, const tensor_spec* outputs) {
        tensor_spec found{};
        each_part([&]<std::size_t I, class Part>() {
            const auto first = static_cast<int>(places[I].column);
            if (k >= first && k < static_cast<int>(places[I + 1].column))
                found = loss_part<Part>::column(k - first, outputs[output_of<Y>(I)]);
        });
        return found;
    }
    template <class Y, class Z, class N>
    static constexpr auto value(const Y& y, const Z& z, const N& n) {
        const auto values = [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple{part_value<I>(y, z, n)...};
        }
        (std::make_index_sequence<size>{});
        auto total = sum_from<0>(values, n, none{});
        return objective_value<decltype(total), std::remove_cv_t<decltype(values)>>{total, values};
    }
    template <class Y, class Z>
    static constexpr none accuracy(const Y&, const Z&) {
        return {};
    }
    template <class State, class Y, class Z, class V, class N>
    static constexpr void measure(const State& state, const Y& y, const Z& z, const V& v, const N&) {
        each_part([&]<std::size_t I, class Part>() {
            if constexpr (!std::is_same_v<Part, none>) {
                const auto& output = part_output<I>(y);
                const auto& like = without_mask(output);
                add_mean(state.of(joined<part_name<I>, loss_suffix>::name), std::get<I>(v.parts), like);
                const auto right = with_columns<places[I].column, loss_part<Part>::columns>(
                    z, [&](const auto&... each) { return loss_part<Part>::accuracy(output, each...); });
                if constexpr (!std::is_same_v<std::remove_cv_t<decltype(right)>, none>)
                    add_mean(state.of(joined<part_name<I>, accuracy_suffix>::name), right, like);
            }
        });
    }
    template <class F>
    static void results(const whole&, const F& f) {
        each_part([&]<std::size_t I, class Part>() {
            if constexpr (!std::is_same_v<Part, none>) {
                f(joined<part_name<I>, loss_suffix>::name, mean_of);
                f(joined<part_name<I>, accuracy_suffix>::name, mean_of); // omitted where the loss has none
            }
        });
    }

    template <class Part, class Y, class Z, class F>
    static constexpr void labelled_output(const Y& y, const Z& z, const F& f) {
        static_assert(((Part::output == Names.view()) || ...),
                      "metrics: say of which output, tg::on<\"name\">(metric)");
        each_part([&]<std::size_t I, class Loss>() {
            if constexpr (part_name<I>::name == Part::output) {
                static_assert(loss_part<Loss>::columns > 0, "metrics: this output has no labels to measure by");
                with_columns<places[I].column, loss_part<Loss>::columns>(z, [&](const auto&... each) {
                    objective<Loss>::labelled(part_output<I>(y), std::tuple{each...}, f);
                    return none{};
                });
            }
        });
    }

    template <std::size_t I>
    struct part_name {
        static constexpr std::string_view names[sizeof...(Names)]{Names.view()...};
        static constexpr std::string_view name = names[I];
    };
    template <class Y>
    static constexpr std::size_t output_of(std::size_t part) {
        constexpr std::string_view names[sizeof...(Names)]{Names.view()...};
        std::size_t index = 0;
        for (const std::string_view each : output_pack<Y>::names)
            if (each == names[part])
                return index;
            else
                ++index;
        return index;
    }

private:
    template <class F>
    static constexpr void each_part(const F& f) {
        [&]<std::size_t... I>(std::index_sequence<I...>) { (f.template operator()<I, Losses>(), ...); }
        (std::make_index_sequence<size>{});
    }
    template <std::size_t I, class Y>
    static constexpr const auto& part_output(const Y& y) {
        return output_pack<Y>::template whole<static_cast<int>(output_of<Y>(I))>(y);
    }
    template <std::size_t I, class Y, class Z, class N>
    static constexpr auto part_value(const Y& y, const Z& z, const N& n) {
        using part = std::tuple_element_t<I, std::tuple<loss_part<Losses>...>>;
        if constexpr (std::is_same_v<part, loss_part<none>>)
            return none{};
        else
            return with_columns<places[I].column, part::columns>(z, [&](const auto&... each) {
                return part::value(part_output<I>(y), numbers_from<N>{n, places[I].number + 1}, each...);
            });
    }
    template <std::size_t I, class Values, class N, class Sum>
    static constexpr auto sum_from(const Values& values, const N& n, const Sum& sum) {
        if constexpr (I == size) {
            return sum;
        } else {
            const auto& each = std::get<I>(values);
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(each)>, none>)
                return sum_from<I + 1>(values, n, sum);
            else if constexpr (std::is_same_v<Sum, none>)
                return sum_from<I + 1>(values, n, eval(n[places[I].number] * each));
            else
                return sum_from<I + 1>(values, n, eval(sum + n[places[I].number] * each));
        }
    }
};

} // namespace detail
} // namespace tapegraph
