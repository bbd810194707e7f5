#pragma once

#include <tapegraph/model/columns.hpp>
#include <tapegraph/model/metric_values.hpp>
#include <tapegraph/nn/losses/basic.hpp>

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// Losses in the form in which a model is compiled with them: their output, their weights of
/// records, the columns they read and their results.

namespace tapegraph {

/// A loss or metric of one of several outputs. `weight` is a loss's factor in the sum; it may
/// change between steps.
template <fixed_string Name, class Part>
struct part_on {
    static constexpr std::string_view name = Name.view();
    Part part;
    double weight = 1;
};
/// `on<"box">(huber{}, 0.5)`; `on<"box">(none{})` declares that an output has no loss.
template <fixed_string Name, class Part>
constexpr part_on<Name, Part> on(const Part& part, double weight = 1) {
    return {part, weight};
}

/// The losses of a model with several outputs: their weighted sum is trained. Each is also a
/// metric, "NAME_loss", and so is its accuracy, if it has one, "NAME_accuracy".
template <class... Parts>
struct losses {
    std::tuple<Parts...> parts;
    constexpr explicit losses(const Parts&... each) : parts(each...) {}
};

/// Metrics of a model in addition to its loss: `metrics{precision{}, auc{}}`, or for several
/// outputs `metrics{on<"class">(auc{})}`.
template <class... Parts>
struct metrics {
    std::tuple<Parts...> parts;
    constexpr explicit metrics(const Parts&... each) : parts(each...) {}
};

/// A loss with a weight per record: the labels are followed by one more column, "sample_weight",
/// [batch] of the output's element type. The result is the mean over all records of loss times
/// weight, as in Keras. Loss needs `per_record`.
template <class Loss>
struct weighted {
    Loss loss;

    constexpr weighted() = default;
    constexpr explicit weighted(const Loss& of) : loss(of) {}
};

/// The loss of models that are trained only on scope.add_loss; such models have no labels.
struct added_losses {};

namespace detail {

/// A loss's numbers, if it has any.
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

/// Weights [batch] reshaped to multiply losses per record [batch, ...].
template <class Handle>
constexpr Handle weights_beside(Handle weights, int rank) {
    while (shape_of(weights).rank() < rank) weights = expand_dims(weights, -1);
    return weights;
}

template <class Each, class W>
constexpr auto weighted_mean(const Each& each, const W& weights) {
    return eval(mean(each * weights_beside(weights, shape_of(each).rank())));
}

/// Concatenated names: joined<Output, loss_suffix>::name is "class_loss".
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

/// The same for an output with a mask: nn/layers/masking.hpp.
template <class Loss>
struct masked_part;

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
        if constexpr (is_masked<Y>)
            return masked_part<Loss>::value(y, n, z...);
        else if constexpr (count > 0)
            return eval(Loss{}(y, z..., n));
        else
            return eval(Loss{}(y, z...));
    }
    template <class Y, class... Z>
    static constexpr auto accuracy(const Y& y, const Z&... z) {
        if constexpr (is_masked<Y>)
            return masked_part<Loss>::accuracy(y, z...);
        else if constexpr (requires { Loss::accuracy(y, z...); })
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
        if constexpr (is_masked<Y>)
            return masked_part<weighted<Loss>>::value(y, n, z, w);
        else if constexpr (count > 0)
            return weighted_mean(eval(Loss{}.per_record(y, z, n)), w);
        else
            return weighted_mean(eval(Loss{}.per_record(y, z)), w);
    }
    template <class Y, class Z, class W>
    static constexpr auto accuracy(const Y& y, const Z& z, const W&) {
        return loss_part<Loss>::accuracy(y, z);
    }

};

/// An output without a loss, and models that only train added losses.
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

} // namespace detail
} // namespace tapegraph
