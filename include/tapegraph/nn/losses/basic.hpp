#pragma once

#include <tapegraph/ops/elementwise/cast.hpp>
#include <tapegraph/ops/elementwise/cross_entropy.hpp>
#include <tapegraph/ops/elementwise/in_float.hpp>
#include <tapegraph/ops/gather/gather.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/reduction/softmax.hpp>
#include <tapegraph/ops/reduction/softmax_cross_entropy.hpp>
#include <tapegraph/ops/refusal.hpp>

#include <string_view>

/// Losses. A loss is an empty type with
///
/// - `operator()(output, labels)`, the mean loss of the batch;
/// - `labels(type, shape)`, the element type and shape of the labels for such an output;
/// - `accuracy(output, labels)`, the fraction of correct records, where that has a meaning;
/// - `per_record(output, labels)`, the loss with only the last axis reduced, [batch] for an output
///   [batch, n], which weights of records multiply.
///
/// Labels of another shape, which would broadcast, are refused; a number is the label of every
/// element. More losses: nn/losses/all.hpp.
///
/// Calls that the component holds (train/compiled_training.hpp) are not inlined: their callers
/// would be compiled with all of them.

namespace tapegraph {

/// Element type and shape of a tensor, symbolic extents included.
struct tensor_spec {
    dtype type;
    shape dims;
};

namespace detail {
/// A shape without its last axis.
constexpr shape dims_without_last(const shape& from) {
    shape dims;
    dims.attach(from.table());
    for (int i = 0; i + 1 < from.rank(); ++i) dims.push_back(from[i]);
    return dims;
}
/// x without its last axis, whose extent is 1.
template <handle A>
constexpr auto without_last_axis(const A& x) {
    const shape target = dims_without_last(shape_of(x));
    return invoke<reshape_op>({}, &target, std::source_location::current(), x);
}
struct label_texts {
    static constexpr const char* text(std::int64_t reason) {
        if (reason == 0) return "loss, metric: output and labels differ in shape; they are compared element by element";
        if (reason == 1)
            return "loss, metric: labels are not class numbers of the output's shape without its last axis";
        if (reason == 2) return "loss: labels are not one class number for each row of the output";
        if (reason == 3) return "loss: labels are not [batch, longest] beside an output [batch, time, classes]";
        return "metric: labels are neither class numbers of the output's shape without its last axis nor of that shape";
    }
};
template <class X, class Z>
constexpr void refuse_labels(std::int64_t reason, const X& x, const Z& z) {
    refuse<label_texts>(reason, std::source_location::current(), eval(z), eval(x));
}
/// Refuses labels whose shape is not the output's: [batch, 1] and [batch] would broadcast to [batch,
/// batch].
template <class X, class Z>
constexpr void check_labels(const X& x, const Z& z) {
    if constexpr (tensor_like<X> && tensor_like<Z>)
        if (!same_shape_or_required(shape_of(x), shape_of(z))) refuse_labels(0, x, z);
}
/// Refuses class numbers whose shape is not the output's without its last axis.
template <class X, class Z>
constexpr void check_classes(const X& x, const Z& z) {
    if constexpr (tensor_like<X> && tensor_like<Z>)
        if (!same_shape_or_required(dims_without_last(shape_of(x)), shape_of(z))) refuse_labels(1, x, z);
}
/// Numbers beside a loss, as float where they have 16 bits.
template <class N>
struct float_numbers {
    const N& all;
    constexpr auto operator[](std::size_t i) const {
        const auto each = all[i];
        using number_type = std::remove_cv_t<decltype(each)>;
        if constexpr (handle<number_type>)
            return as_float(each, std::source_location::current());
        else if constexpr (requires { requires storage_type<decltype(each.value)>; })
            return typed_number<float>{static_cast<float>(each.value)};
        else
            return each;
    }
};
/// f(x, z, n...), a handle. For x of 16-bit elements all operands are converted to float and the result
/// is rounded once, because squares, sums and logarithms leave half's range where their means do not.
/// So a loss called directly has the value that it has in a model under tg::mixed, except for that
/// rounding.
template <class F, class X, class Z, class... N>
constexpr auto in_floats(const F& f, const X& x, const Z& z, const N&... n) {
    const auto here = std::source_location::current();
    const auto wide_labels = [here](const auto& labels) {
        if constexpr (tensor_like<std::remove_cvref_t<decltype(labels)>>)
            return as_float(eval(labels, here), here);
        else
            return labels;
    };
    if constexpr (!tensor_like<X>) {
        return f(x, z, n...);
    } else if constexpr (one_handle<mode_of_t<X>>) {
        using node = typename mode_of_t<X>::node;
        if (!is_storage_type(type_of(x))) return node(f(x, z, float_numbers<N>{n}...));
        const node output(eval(x, here)); // types are known at run time: where x and z are handles f is compiled once
        return rounded_like(output, node(f(as_float(output, here), wide_labels(z), float_numbers<N>{n}...)), here);
    } else if constexpr (is_storage_type(static_type<X>::value)) {
        const auto output = eval(x, here);
        const auto value = eval(f(as_float(output, here), wide_labels(z), float_numbers<N>{n}...), here);
        return rounded_like(output, value, here);
    } else {
        return f(x, z, n...);
    }
}

/// The mean over the last axis; values that have no axis but the batch are returned as they are.
template <tensor_like A>
constexpr auto mean_of_record(const A& values) {
    if (shape_of(values).rank() < 2) return eval(values);
    return mean(values, -1);
}
} // namespace detail

/// Binary cross-entropy of logits x against labels z in [0, 1], of the output's type and shape:
/// log(1 + e^x) - x z, computed without overflow and smooth everywhere.
struct sigmoid_cross_entropy {
    static constexpr std::string_view name = "sigmoid_cross_entropy";
    [[gnu::noinline]] constexpr auto operator()(auto x, auto z) const {
        return detail::in_floats([](const auto& a, const auto& b) { return mean(each(a, b)); }, x, z);
    }
    static constexpr auto per_record(auto x, auto z) {
        return detail::in_floats([](const auto& a, const auto& b) { return detail::mean_of_record(each(a, b)); }, x, z);
    }
    static constexpr auto each(auto x, auto z) {
        detail::check_labels(x, z);
        return sigmoid_cross_entropy_with_logits(x, z);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto right(auto x, auto z) {
        detail::check_labels(x, z);
        return cast<float>((x > 0) == (z > 0.5));
    }
    [[gnu::noinline]] static constexpr auto accuracy(auto x, auto z) { return mean(right(x, z)); }
};

/// Binary cross-entropy of probabilities p, clipped to [1e-7, 1 - 1e-7] as Keras does.
struct binary_cross_entropy {
    static constexpr std::string_view name = "binary_cross_entropy";
    constexpr auto operator()(auto p, auto z) const {
        return detail::in_floats([](const auto& a, const auto& b) { return mean(each(a, b)); }, p, z);
    }
    static constexpr auto per_record(auto p, auto z) {
        return detail::in_floats([](const auto& a, const auto& b) { return detail::mean_of_record(each(a, b)); }, p, z);
    }
    static constexpr auto each(auto p, auto z) {
        detail::check_labels(p, z);
        const auto q = eval(minimum(maximum(p, 1e-7), 1 - 1e-7));
        return -(z * log(q) + (1 - z) * log(1 - q));
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto right(auto p, auto z) {
        detail::check_labels(p, z);
        return cast<float>((p > 0.5) == (z > 0.5));
    }
    static constexpr auto accuracy(auto p, auto z) { return mean(right(p, z)); }
};

/// Cross-entropy of logits [batch..., classes] against a distribution of the same shape (one-hot rows, say).
struct softmax_cross_entropy {
    static constexpr std::string_view name = "softmax_cross_entropy";
    [[gnu::noinline]] constexpr auto operator()(auto x, auto z) const {
        return detail::in_floats([](const auto& a, const auto& b) { return mean(per_record(a, b)); }, x, z);
    }
    static constexpr auto per_record(auto x, auto z) {
        const auto of = [](const auto& a, const auto& b) { return eval(-sum(b * log_softmax(a), -1)); };
        detail::check_labels(x, z);
        return detail::in_floats(of, x, z);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto right(auto x, auto z) {
        detail::check_labels(x, z);
        const auto predicted = argmax(x, -1); // named: operands of one call are in no order, and graphs have one
        return cast<float>(predicted == argmax(z, -1));
    }
    [[gnu::noinline]] static constexpr auto accuracy(auto x, auto z) { return mean(right(x, z)); }
};

/// Cross-entropy of logits [batch..., classes] against int32 class numbers [batch...].
struct sparse_softmax_cross_entropy {
    static constexpr std::string_view name = "sparse_softmax_cross_entropy";
    [[gnu::noinline]] constexpr auto operator()(auto x, auto z) const {
        detail::check_classes(x, z);
        const auto of = [](const auto& a, const auto& b) {
            return mean(sparse_softmax_cross_entropy_with_logits(a, b));
        };
        return detail::in_floats(of, x, z);
    }
    static constexpr auto per_record(auto x, auto z) {
        detail::check_classes(x, z);
        const auto of = [](const auto& a, const auto& b) { return sparse_softmax_cross_entropy_with_logits(a, b); };
        return detail::in_floats(of, x, z);
    }
    static constexpr tensor_spec labels(dtype, const shape& output) {
        return {dtype::i32, detail::dims_without_last(output)};
    }
    static constexpr auto right(auto x, auto z) {
        detail::check_classes(x, z);
        return cast<float>(argmax(x, -1) == z);
    }
    [[gnu::noinline]] static constexpr auto accuracy(auto x, auto z) { return mean(right(x, z)); }
};

/// The mean of squared differences.
struct mean_squared_error {
    static constexpr std::string_view name = "mean_squared_error";
    [[gnu::noinline]] constexpr auto operator()(auto x, auto z) const {
        return detail::in_floats([](const auto& a, const auto& b) { return mean(each(a, b)); }, x, z);
    }
    static constexpr auto per_record(auto x, auto z) {
        return detail::in_floats([](const auto& a, const auto& b) { return detail::mean_of_record(each(a, b)); }, x, z);
    }
    static constexpr auto each(auto x, auto z) {
        detail::check_labels(x, z);
        return square(x - z);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
};

} // namespace tapegraph
