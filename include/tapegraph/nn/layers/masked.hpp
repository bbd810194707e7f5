#pragma once

#include <tapegraph/model/shared_terms.hpp>
#include <tapegraph/nn/loss_part.hpp>
#include <tapegraph/ops/elementwise/selection.hpp>
#include <tapegraph/ops/movement/fill.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>
#include <tapegraph/ops/refusal.hpp>
#include <tapegraph/ops/scan/step_mask.hpp>
#include <tapegraph/ops/shards/sum_over_shards.hpp>

/// Values that carry a mask, formulas of them, and losses and metrics that respect it.
/// nn/layers/masking.hpp has the layers.

namespace tapegraph {

/// A value [batch, time, ...], a tensor or formula, and `mask`, bool [batch, time], the steps that
/// count. Without `has_mask` all do: a recurrent layer that returns only its last step has consumed
/// the mask. Other steps are finite if the value was created by `with_mask` or `masking`, which put
/// zeros there, or by layers.
template <class X, class M>
struct masked {
    X value;
    M mask;
    bool has_mask = true;

    /// Another value with this mask.
    template <tensor_like Y>
    constexpr masked<Y, M> with(const Y& y) const {
        return {y, mask, has_mask};
    }
    /// Applies f, which keeps the steps, to the value and keeps this mask: `x.map([](auto h) {
    /// return clip(h, 0, 1); })`.
    template <class F>
    constexpr auto map(const F& f) const {
        return with(f(value));
    }
    /// The same with its formula evaluated.
    constexpr auto sealed() const { return with(eval(value)); }
    /// Other values of these steps, for example labels [batch, time, ...], with 0 at steps that do
    /// not count, so that NaN or an invalid class there has no effect.
    template <tensor_like Y>
    constexpr auto counted(const Y& y) const {
        const auto values = eval(y);
        return has_mask ? detail::counted_steps(values, mask, std::source_location::current()) : values;
    }
    /// Calls f(value, labels, weights) with the mask, 0 and 1, multiplied into the weights, in the
    /// form that metrics take.
    template <class Z, class W, class F>
    constexpr void weighing(const Z& labels, const W& weights, const F& f) const {
        const auto z = counted(labels);
        const auto x = counted(value);
        if (!has_mask)
            f(x, z, weights);
        else if constexpr (tensor_like<W>)
            f(x, z, eval(where(mask, detail::weights_beside(weights, shape_of(mask).rank()), 0)));
        else
            f(x, z, detail::as_type_of(value, mask));
    }
};

namespace detail {
/// A value with its mask that is finite where it does not count.
template <tensor_like X, tensor_like M>
constexpr auto finite_with_mask(const X& x, const M& mask, std::source_location where) {
    const auto value = eval(x, where);
    const auto counts = eval(mask, where);
    return masked<std::remove_cv_t<decltype(value)>, std::remove_cv_t<decltype(counts)>>{value, counts};
}
} // namespace detail

/// A value with a custom mask, bool [batch, time]: `with_mask(x, sequence_mask(lengths, time))`.
/// Steps that do not count become 0, so their previous content does not matter, NaN included.
template <tensor_like X, tensor_like M>
constexpr auto with_mask(const X& x, const M& mask, std::source_location where = std::source_location::current()) {
    const auto value = eval(x, where);
    const auto counts = eval(mask, where);
    return detail::finite_with_mask(detail::counted_steps(value, counts, where), counts, where);
}

template <class X, class M>
constexpr auto eval(const masked<X, M>& x, std::source_location where = std::source_location::current()) {
    return x.with(eval(x.value, where));
}
/// An output with a mask: its loss and metrics only use the steps that count, `predict` returns all
/// values.
template <fixed_string Name, class X, class M>
constexpr auto output(const masked<X, M>& x) {
    return named_output<Name, decltype(x.sealed())>{x.sealed()};
}
/// An output of a model without its mask: what losses and predictions get.
template <class X, class M>
constexpr auto outputs_without_masks(const masked<X, M>& x) {
    return eval(x.value);
}
template <fixed_string... Names, class... Handles>
constexpr auto outputs_without_masks(const outputs<named_output<Names, Handles>...>& them) {
    return std::apply(
        [](const auto&... each) {
            return outputs{
                named_output<Names, detail::type_without_mask<Handles>>{detail::without_mask(each.value)}...};
        },
        them.items);
}

namespace detail {

/// The steps that count in both values.
template <class X, class Y, class M>
constexpr masked<Y, M> both_masks(const masked<X, M>& a, const masked<Y, M>& b) {
    if (!a.has_mask) return b;
    const auto same = [](const auto& x, const auto& y) {
        if constexpr (requires { x.owner(); })
            return x.id() == y.id();
        else
            return x.shares_with(y);
    };
    if (!b.has_mask || same(a.mask, b.mask)) return {b.value, a.mask, true};
    return {b.value, eval(logical_and(a.mask, b.mask)), true};
}

template <class F, class A, class B>
constexpr auto masked_formula(const F& f, const A& a, const B& b) {
    if constexpr (!is_masked<A>)
        return b.with(f(a, b.value));
    else if constexpr (!is_masked<B>)
        return a.with(f(a.value, b));
    else
        return both_masks(a, b).with(f(a.value, b.value));
}

template <class A, class B>
concept masked_operands = (is_masked<A> && (is_masked<B> || operand<B>)) || (operand<A> && is_masked<B>);

struct mask_texts {
    static constexpr const char* text(std::int64_t) {
        return "mask: it has more axes than what it masks; an output without the axis of time has none, take x.value";
    }
};
/// A mask [batch, time] reshaped to multiply values [batch, time, ...].
template <handle M>
constexpr M mask_over(const M& mask, int rank) {
    const shape from = shape_of(mask);
    const auto here = std::source_location::current();
    if (from.rank() > rank) return static_cast<M>(refuse<mask_texts>(0, here, mask));
    shape target = from;
    while (target.rank() < rank) target.push_back(1);
    return invoke<reshape_op>({}, &target, here, mask);
}

/// The mean of values [batch, time, ...] over the steps that count; 0 where none does. In a shard
/// it is that shard's part of the batch's mean, times the number of shards of its size in the
/// batch, because results of shards are weighted by their records.
template <handle V, handle M>
constexpr V mean_of_counted(const V& values, const M& mask) {
    const M counts = mask_over(mask, shape_of(values).rank());
    const V total = sum(where(counts, values, 0)), steps = sum(where(counts, ones_like(values), 0));
    if (!in_shards(values)) return eval(total / maximum(steps, 1));
    const V records = shard_extent(values, shape_of(values)[0]);
    const V all_records = sum_over_shards(records), all_steps = sum_over_shards(steps);
    return eval(total * (all_records / records) / maximum(all_steps, 1));
}

/// One loss of one output with a mask: the mean over the steps that count, as in Keras. Weights of
/// records multiply it, and do not change the divisor.
template <class Loss>
struct masked_part {
    static_assert(loss_part<Loss>::columns > 0, "mask: this loss has no labels, and no steps that count; take x.value");
    template <class Y, class N, class Z>
    static constexpr auto value(const Y& y, const N& n, const Z& z) {
        if (!y.has_mask) return loss_part<Loss>::value(y.value, n, z);
        return mean_of_counted(steps(y.counted(y.value), n, y.counted(z)), y.mask);
    }
    template <class Y, class Z, class... W>
    static constexpr auto accuracy(const Y& y, const Z& z, const W&...) {
        if constexpr (requires { Loss::right(y.value, z); })
            return y.has_mask ? mean_of_counted(eval(Loss::right(y.value, y.counted(z))), y.mask)
                              : eval(Loss::accuracy(y.value, z));
        else
            return none{};
    }

private:
    template <class X, class N, class Z>
    static constexpr auto steps(const X& x, const N& n, const Z& z) {
        if constexpr (numbers_in<Loss>() > 0) {
            static_assert(
                requires { Loss{}.per_record(x, z, n); }, "mask: a loss with steps needs per_record");
            return eval(Loss{}.per_record(x, z, n));
        } else {
            static_assert(
                requires { Loss{}.per_record(x, z); }, "mask: a loss with steps needs per_record");
            return eval(Loss{}.per_record(x, z));
        }
    }
    template <class>
    friend struct masked_part;
};
template <class Loss>
struct masked_part<weighted<Loss>> : masked_part<Loss> {
    template <class Y, class N, class Z, class W>
    static constexpr auto value(const Y& y, const N& n, const Z& z, const W& w) {
        if (!y.has_mask) return loss_part<weighted<Loss>>::value(y.value, n, z, w);
        const auto each = masked_part<Loss>::steps(y.counted(y.value), n, y.counted(z));
        return mean_of_counted(eval(each * weights_beside(w, shape_of(each).rank())), y.mask);
    }
};

} // namespace detail

/// The mean of values [batch, time, ...], such as a loss's `per_record(x.value, x.counted(labels))`, over
/// the steps of x that count.
template <tensor_like V, class X, class M>
constexpr auto masked_mean(const V& values, const masked<X, M>& x) {
    const auto sealed = eval(values);
    return x.has_mask ? detail::mean_of_counted(sealed, x.mask) : mean(sealed);
}

// In formulas, the result is masked wherever an operand is.
#define TG_MASKED_OPERATOR(sign)                                                                                       \
    template <class A, class B>                                                                                        \
        requires detail::masked_operands<A, B>                                                                         \
    constexpr auto operator sign(const A& a, const B& b) {                                                             \
        return detail::masked_formula([](const auto& x, const auto& y) { return x sign y; }, a, b);                    \
    }
TG_MASKED_OPERATOR(+)
TG_MASKED_OPERATOR(-)
TG_MASKED_OPERATOR(*)
TG_MASKED_OPERATOR(/)
#undef TG_MASKED_OPERATOR

#define TG_MASKED_PAIR(word)                                                                                           \
    template <class A, class B>                                                                                        \
        requires detail::masked_operands<A, B>                                                                         \
    constexpr auto word(const A& a, const B& b) {                                                                      \
        return detail::masked_formula([](const auto& x, const auto& y) { return word(x, y); }, a, b);                  \
    }
TG_MASKED_PAIR(maximum)
TG_MASKED_PAIR(minimum)
#undef TG_MASKED_PAIR

#define TG_MASKED_FUNCTION(word)                                                                                       \
    template <class X, class M, class... More>                                                                         \
    constexpr auto word(const masked<X, M>& x, const More&... more) {                                                  \
        return x.with(word(x.value, more...));                                                                         \
    }
TG_MASKED_FUNCTION(relu)
TG_MASKED_FUNCTION(relu6)
TG_MASKED_FUNCTION(leaky_relu)
TG_MASKED_FUNCTION(elu)
TG_MASKED_FUNCTION(selu)
TG_MASKED_FUNCTION(gelu)
TG_MASKED_FUNCTION(silu)
TG_MASKED_FUNCTION(swish)
TG_MASKED_FUNCTION(mish)
TG_MASKED_FUNCTION(tanh)
TG_MASKED_FUNCTION(sigmoid)
TG_MASKED_FUNCTION(hard_sigmoid)
TG_MASKED_FUNCTION(softplus)
TG_MASKED_FUNCTION(softsign)
TG_MASKED_FUNCTION(exp)
TG_MASKED_FUNCTION(softmax)
TG_MASKED_FUNCTION(log_softmax)
#undef TG_MASKED_FUNCTION

} // namespace tapegraph
