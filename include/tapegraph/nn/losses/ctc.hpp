#pragma once

#include <tapegraph/eager/scan.hpp>
#include <tapegraph/graph/scan.hpp>
#include <tapegraph/nn/losses/loss.hpp>
#include <tapegraph/ops/movement/fill.hpp>

namespace tapegraph {

namespace detail {

/// Stands for log(0): far below every sum of logarithms that occurs, and finite, so that
/// differences are finite, too.
inline constexpr double log_of_nothing = -1e30;

/// Shifts x [batch, n] by one place; `first` fills the front.
constexpr auto one_later(const auto& x, double first) {
    return pad(slice(x, {all, {0, -1}}), {{0, 0}, {1, 0}}, {.value = first});
}

/// One step of the forward algorithm: alpha(s) <- log(sum of exp of alpha(s), alpha(s - 1) and,
/// where a symbol may be skipped, alpha(s - 2)) + the logarithm of the symbol's probability. All
/// are [batch, symbols].
struct ctc_step {
    constexpr auto operator()(auto alpha, auto symbol, auto skip) const {
        const auto before = one_later(alpha, log_of_nothing);
        const auto skipped = eval(one_later(before, log_of_nothing) + skip);
        const auto largest = eval(stop_gradient(maximum(maximum(alpha, before), skipped)));
        const auto total = exp(alpha - largest) + exp(before - largest) + exp(skipped - largest);
        const auto next = eval(log(total) + largest + symbol);
        return std::pair{next, take(next, 0, 1)};
    }
};

/// Labels [batch, n] with a blank around each, [batch, 2 n + 1]. Padding becomes 0. A label after
/// padding, or one below -1, becomes negative, which the gather of its probability refuses.
constexpr auto with_blanks(const auto& z) {
    const auto before = one_later(z, 1);
    const auto label = eval(where(z > 0, where(before > 0, z, -1 - z), where(z < -1, z, 0)));
    const auto blanks = eval(label * 0);
    const auto pairs = stack({blanks, label}, -1);
    const shape from = shape_of(label);
    shape target = from;
    target.set(1, from[1] * extent(2));
    return pad(invoke<reshape_op>({}, &target, std::source_location::current(), pairs), {{0, 0}, {0, 1}});
}

} // namespace detail

/// Connectionist temporal classification (Graves et al. 2006): -log of the probability that a
/// sequence of symbols, with repetitions merged and blanks removed, equals the labels. Logits
/// [batch, time, classes]; class 0 is the blank. Labels int32 [batch, longest], classes from 1 on,
/// padded at the end with -1 (or 0, as in Keras), which gives their lengths; all steps of time
/// count.
///
/// Uses the forward algorithm with logarithms, as a scan over time. If time is too short for the
/// labels, repetitions with a blank between them, the loss is infinite and has no derivative, as in
/// PyTorch. Labels that are no class, and padding between labels, are a range_error.
struct ctc : detail::loss_of_records<ctc> {
    static constexpr std::string_view name = "ctc";
    static constexpr auto per_record(const auto& x, const auto& z) {
        return detail::in_floats([](const auto&... operands) { return of_sequences(operands...); }, x, z);
    }
    static constexpr tensor_spec labels(dtype, const shape& output) {
        shape dims;
        dims.attach(output.table());
        if (output.rank() > 0) dims.push_back(output[0]);
        if (output.table() != nullptr) dims.push_back({output.table()->symbol("labels"), output.table()});
        return {dtype::i32, dims};
    }

private:
    static constexpr auto of_sequences(const auto& x, const auto& z) {
        const auto labels = eval(z);
        const shape of_output = shape_of(x), of_labels = shape_of(labels);
        if (of_output.rank() != 3 || of_labels.rank() != 2 || !equal_or_required(of_output[0], of_labels[0]))
            detail::refuse_labels(3, x, labels);
        const auto symbols = detail::with_blanks(labels);
        const auto chosen = gather(log_softmax(x), symbols, 2, 1); // [batch, time, symbols]
        const auto first = take(chosen, 0, 1);
        const auto two_before = detail::one_later(detail::one_later(symbols, -1), -1);
        const auto may_skip = logical_and(symbols > 0, symbols != two_before);
        const auto skip = eval(where(may_skip, zeros_like(first), detail::log_of_nothing));
        const auto place = arange<std::int32_t>(symbols, shape_of(symbols)[1]);
        const auto start = eval(where(place == 0, zeros_like(first), detail::log_of_nothing));
        const auto last = tapegraph::scan(detail::ctc_step{}, start, chosen, skip).last;

        const auto length = sum(cast<std::int32_t>(labels > 0), -1, {.keepdims = true});
        const auto on_blank = take_along(last, eval(2 * length));
        const auto on_label = take_along(last, eval(maximum(2 * length - 1, 0)));
        const auto label = eval(where(length > 0, on_label, detail::log_of_nothing));
        const auto largest = eval(stop_gradient(maximum(on_blank, label)));
        const auto total = eval(log(exp(on_blank - largest) + exp(label - largest)) + largest);
        const auto possible = eval(largest > detail::log_of_nothing / 2);
        return detail::without_last_axis(eval(where(possible, -total, std::numeric_limits<double>::infinity())));
    }
};

} // namespace tapegraph
