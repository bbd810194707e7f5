#pragma once

#include <tapegraph/nn/columns.hpp>
#include <tapegraph/nn/losses.hpp>
#include <tapegraph/nn/metric_values.hpp>

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// What a model is trained for: losses, on which outputs, and metrics. Traces and eager mode see all of them as one objective.

namespace tapegraph {

/// A loss or metric of one of several outputs. `weight`: of a loss in the sum; it may change between steps.
template <fixed_string Name, class Part>
struct part_on {
    static constexpr std::string_view name = Name.view();
    Part part;
    double weight = 1;
};
/// `on<"box">(huber{}, 0.5)`; `on<"box">(none{})` says that an output has no loss.
template <fixed_string Name, class Part>
constexpr part_on<Name, Part> on(const Part& part, double weight = 1) {
    return {part, weight};
}

/// The losses of a model of several outputs: what is trained is the sum of them, each times its weight. Each is also a metric,
/// "NAME_loss", and so is its accuracy, if it has one, "NAME_accuracy".
template <class... Parts>
struct losses {
    std::tuple<Parts...> parts;
    constexpr explicit losses(const Parts&... each) : parts(each...) {}
};

/// What a model measures beside its loss: `metrics{precision{}, auc{}}`, or of several outputs `metrics{on<"class">(auc{})}`.
template <class... Parts>
struct metrics {
    std::tuple<Parts...> parts;
    constexpr explicit metrics(const Parts&... each) : parts(each...) {}
};

/// A loss whose records weigh differently: behind the labels stands one more column, "sample_weight", [batch] of the output's element
/// type. The mean over all records of loss times weight, as Keras has it. Loss needs `per_record`.
template <class Loss>
struct weighted {
    Loss loss;

    constexpr weighted() = default;
    constexpr explicit weighted(const Loss& of) : loss(of) {}
};

/// Of models whose loss is what they add by scope.add_loss; such models have no labels.
struct added_losses {};

namespace detail {

/// A loss's numbers, where it has some.
template <class T>
constexpr int numbers_in() {
    if constexpr (requires { T::count; })
        return T::count;
    else
        return 0;
}
template <class T>
constexpr void write_numbers(const T& of, double*& to) {
    if constexpr (numbers_in<T>() > 0)
        for (const double number : of.numbers()) *to++ = number;
}

/// Weights [batch] beside losses per record [batch, ...].
template <class Handle>
constexpr Handle weights_beside(Handle weights, int rank) {
    while (shape_of(weights).rank() < rank) weights = expand_dims(weights, -1);
    return weights;
}

/// Names put together: joined<Output, loss_suffix>::name is "class_loss".
template <class... Parts>
struct joined {
    static constexpr auto text = [] {
        std::array<char, (0 + ... + Parts::name.size())> all{};
        std::size_t size = 0;
        const auto add = [&](std::string_view part) {
            for (const char c : part) all[size++] = c;
        };
        (add(Parts::name), ...);
        return all;
    }();
    static constexpr std::string_view name{text.data(), text.size()};
};
struct loss_suffix {
    static constexpr std::string_view name = "_loss";
};
struct accuracy_suffix {
    static constexpr std::string_view name = "_accuracy";
};
struct underscore {
    static constexpr std::string_view name = "_";
};

/// One loss of one output: the columns it reads, and its value.
template <class Loss>
struct loss_part {
    static constexpr bool labelled = requires(dtype type, const shape& output) { Loss::labels(type, output); };
    static constexpr int columns = labelled ? 1 : 0, count = numbers_in<Loss>();
    static void write(const Loss& loss, double*& to) { write_numbers(loss, to); }
    static constexpr tensor_spec column(int, const tensor_spec& output) {
        if constexpr (labelled) return Loss::labels(output.type, output.dims);
        return output;
    }
    template <class Y, class N, class... Z>
    static constexpr auto value(const Y& y, const N& n, const Z&... z) {
        if constexpr (count > 0)
            return eval(Loss{}(y, z..., n));
        else
            return eval(Loss{}(y, z...));
    }
    template <class Y, class... Z>
    static constexpr auto accuracy(const Y& y, const Z&... z) {
        if constexpr (requires { Loss::accuracy(y, z...); })
            return eval(Loss::accuracy(y, z...));
        else
            return none{};
    }
};

template <class Loss>
struct loss_part<weighted<Loss>> {
    static constexpr int columns = 2, count = numbers_in<Loss>();
    static void write(const weighted<Loss>& w, double*& to) { write_numbers(w.loss, to); }
    static constexpr tensor_spec column(int k, const tensor_spec& output) {
        if (k == 0) return Loss::labels(output.type, output.dims);
        shape batch;
        batch.attach(output.dims.table());
        if (output.dims.rank() > 0) batch.push_back(output.dims[0]);
        return {output.type, batch};
    }
    template <class Y, class N, class Z, class W>
    static constexpr auto value(const Y& y, const N& n, const Z& z, const W& w) {
        if constexpr (count > 0)
            return times(eval(Loss{}.per_record(y, z, n)), w);
        else
            return times(eval(Loss{}.per_record(y, z)), w);
    }
    template <class Y, class Z, class W>
    static constexpr auto accuracy(const Y& y, const Z& z, const W&) {
        return loss_part<Loss>::accuracy(y, z);
    }

private:
    static constexpr auto times(const auto& each, const auto& w) {
        return eval(mean(each * weights_beside(w, shape_of(each).rank())));
    }
};

/// An output that has no loss, and the models whose loss is what they add.
template <>
struct loss_part<none> {
    static constexpr int columns = 0, count = 0;
    static void write(const none&, double*&) {}
    static constexpr tensor_spec column(int, const tensor_spec& output) { return output; }
    static constexpr none accuracy(const auto&...) { return {}; }
};
template <>
struct loss_part<added_losses> : loss_part<none> {
    static void write(const added_losses&, double*&) {}
};

/// The mean of a loss or an accuracy over the records seen.
template <class State, class Value, class Like>
constexpr void add_mean(const State& state, const Value& value, const Like& like) {
    const auto wide = eval(cast<double>(value));
    const shape dims = shape_of(like);
    const auto records = extent_number(wide, dims.rank() > 0 ? dims[0] : extent(1));
    state.add("total", {}, eval(wide * records));
    state.add("count", {}, records);
}
inline double mean_of(const metric_values& v) { return v["count"] > 0 ? v["total"] / v["count"] : 0; }

template <std::size_t First, std::size_t Count, class Columns, class F>
constexpr auto with_columns(const Columns& all, const F& f) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) { return f(std::get<First + I>(all)...); }
    (std::make_index_sequence<Count>{});
}

/// A part of a list of numbers.
template <class N>
struct numbers_from {
    const N& all;
    std::size_t first;
    constexpr auto operator[](std::size_t i) const { return all[first + i]; }
};

/// The value of an objective: what is trained, and the losses that it is the sum of.
template <class Total, class Parts>
struct objective_value {
    Total total;
    Parts parts;
};

/// What a model is trained for and measured by, whatever it returns: label columns behind the inputs, and numbers that may change
/// between steps. `y`: what the model returns, one tensor or `outputs`; `z`: a tuple of columns; `n`: the numbers. Here one loss of one output.
template <class Loss>
struct objective {
    using part = loss_part<Loss>;
    static constexpr bool added_only = std::is_same_v<Loss, added_losses>;
    static constexpr int columns = part::columns, count = part::count;
    static constexpr std::string_view column_names[]{"", "sample_weight"}; // the first column behind the inputs; a name
    static constexpr bool has_results = false;                             ///< beside loss and accuracy

    static void write(const Loss& loss, double*& to) { part::write(loss, to); }
    /// Element type and shape of column k beside these outputs.
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
    /// `f(name, result of what it has accumulated)` for each metric.
    template <class F>
    static void results(const Loss&, const F&) {}
    /// `f(output, labels, weights or none)` of a metric.
    template <class Part, class Y, class Z, class F>
    static constexpr void labelled_output(const Y& y, const Z& z, const F& f) {
        static_assert(columns > 0, "metrics: the loss has no labels to measure by");
        labelled(y, z, f);
    }
    template <class Y, class Labels, class F>
    static constexpr void labelled(const Y& y, const std::tuple<Labels>& z, const F& f) {
        f(y, std::get<0>(z), none{});
    }
    template <class Y, class Labels, class Weights, class F>
    static constexpr void labelled(const Y& y, const std::tuple<Labels, Weights>& z, const F& f) {
        f(y, std::get<0>(z), std::get<1>(z));
    }
};

template <fixed_string... Names, class... Losses>
struct objective<losses<part_on<Names, Losses>...>> {
    using whole = losses<part_on<Names, Losses>...>;
    static constexpr bool added_only = false, has_results = true;
    static constexpr std::size_t size = sizeof...(Losses);
    // Where the columns and numbers of each part begin; of its numbers the first is its weight.
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
        constexpr std::string_view names[]{Names.view()...};
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
                add_mean(state.of(joined<part_name<I>, loss_suffix>::name), std::get<I>(v.parts), output);
                const auto right = with_columns<places[I].column, loss_part<Part>::columns>(
                    z, [&](const auto&... each) { return loss_part<Part>::accuracy(output, each...); });
                if constexpr (!std::is_same_v<std::remove_cv_t<decltype(right)>, none>)
                    add_mean(state.of(joined<part_name<I>, accuracy_suffix>::name), right, output);
            }
        });
    }
    template <class F>
    static void results(const whole&, const F& f) {
        each_part([&]<std::size_t I, class Part>() {
            if constexpr (!std::is_same_v<Part, none>) {
                f(joined<part_name<I>, loss_suffix>::name, mean_of);
                f(joined<part_name<I>, accuracy_suffix>::name, mean_of); // left out where the loss has none
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
        static constexpr std::string_view names[]{Names.view()...};
        static constexpr std::string_view name = names[I];
    };
    template <class Y>
    static constexpr std::size_t output_of(std::size_t part) {
        constexpr std::string_view names[]{Names.view()...};
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
        return output_pack<Y>::template get<static_cast<int>(output_of<Y>(I))>(y);
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

/// An objective with metrics beside it: what tg::compile makes of a loss and `metrics{...}`.
template <class Loss, class... Metrics>
struct measured {
    Loss loss;
    tapegraph::metrics<Metrics...> metrics;
};

namespace detail {

/// A metric of the only output, and of one of several.
template <class Metric>
struct metric_part {
    using type = Metric;
    static constexpr std::string_view name = Metric::name, output{};
    static constexpr const Metric& of(const Metric& m) { return m; }
};
template <fixed_string Name, class Metric>
struct metric_part<part_on<Name, Metric>> {
    using type = Metric;
    struct output_name {
        static constexpr std::string_view name = Name.view();
    };
    static constexpr std::string_view output = Name.view(), name = joined<output_name, underscore, Metric>::name;
    static constexpr const Metric& of(const part_on<Name, Metric>& m) { return m.part; }
};

template <class Loss, class... Metrics>
struct objective<measured<Loss, Metrics...>> : objective<Loss> {
    using inner = objective<Loss>;
    using whole = measured<Loss, Metrics...>;
    static constexpr bool has_results = true;
    static constexpr int count = inner::count + (0 + ... + numbers_in<typename metric_part<Metrics>::type>());

    static void write(const whole& of, double*& to) {
        inner::write(of.loss, to);
        std::apply(
            [&](const auto&... each) {
                (write_numbers(metric_part<std::remove_cvref_t<decltype(each)>>::of(each), to), ...);
            },
            of.metrics.parts);
    }
    template <class State, class Y, class Z, class V, class N>
    static constexpr void measure(const State& state, const Y& y, const Z& z, const V& v, const N& n) {
        inner::measure(state, y, z, v, n);
        std::size_t first = inner::count;
        (measure_part<Metrics>(state, y, z, n, first), ...);
    }
    template <class F>
    static void results(const whole& of, const F& f) {
        inner::results(of.loss, f);
        std::apply([&](const auto&... each) { (part_result(each, f), ...); }, of.metrics.parts);
    }

private:
    template <class Part, class State, class Y, class Z, class N>
    static constexpr void measure_part(const State& state, const Y& y, const Z& z, const N& n, std::size_t& first) {
        using part = metric_part<Part>;
        using metric = typename part::type;
        const numbers_from<N> own{n, first};
        first += static_cast<std::size_t>(numbers_in<metric>());
        inner::template labelled_output<part>(y, z, [&](const auto& output, const auto& labels, const auto& weights) {
            metric::update(state.of(part::name), output, labels, weights, own);
        });
    }
    template <class Part, class F>
    static void part_result(const Part& part, const F& f) {
        const auto& metric = metric_part<Part>::of(part);
        f(metric_part<Part>::name, [&](const metric_values& v) { return metric.result(v); });
    }
};

} // namespace detail
} // namespace tapegraph
