#pragma once

#include <tapegraph/nn/losses/loss.hpp>
#include <tapegraph/ops/reduction/norm.hpp>

/// Losses of numbers x and labels z of the same shape, with Keras 3's formulas. `per_record` is the
/// mean over the last axis.

namespace tapegraph {

/// |x - z|
struct mean_absolute_error : detail::loss_of_elements<mean_absolute_error> {
    static constexpr std::string_view name = "mean_absolute_error";
    static constexpr auto each(const auto& x, const auto& z) {
        detail::check_labels(x, z);
        return abs(x - z);
    }
};

/// 100 |z - x| / max(|z|, 1e-7)
struct mean_absolute_percentage_error : detail::loss_of_elements<mean_absolute_percentage_error> {
    static constexpr std::string_view name = "mean_absolute_percentage_error";
    static constexpr auto each(const auto& x, const auto& z) {
        detail::check_labels(x, z);
        return 100 * abs((z - x) / maximum(abs(z), detail::loss_epsilon));
    }
};

/// (log(1 + max(x, 1e-7)) - log(1 + max(z, 1e-7)))^2; no derivative where x < 1e-7.
struct mean_squared_logarithmic_error : detail::loss_of_elements<mean_squared_logarithmic_error> {
    static constexpr std::string_view name = "mean_squared_logarithmic_error";
    static constexpr auto each(const auto& x, const auto& z) {
        detail::check_labels(x, z);
        return square(log(maximum(x, detail::loss_epsilon) + 1) - log(maximum(z, detail::loss_epsilon) + 1));
    }
};

namespace detail {
/// The Huber loss of an error and delta. Its derivative is the error clipped to [-delta, delta].
struct huber_op : map_op<2> {
    static constexpr std::string_view name = "huber";
    template <class V>
    TG_HD static constexpr V value(V e, V delta) {
        const V a = math::abs(e), square = V(0.5) * math::detail::product(e, e);
        return math::detail::select(a <= delta, square,
                                    math::detail::product(delta, a) - V(0.5) * math::detail::product(delta, delta));
    }
    template <int I>
    TG_INLINE static constexpr auto vjp(auto dy, auto e, auto delta, auto) {
        if constexpr (I == 0)
            return dy * apply<clip_op>(e, -delta, delta);
        else
            return dy * apply<maximum_op>(apply<abs_op>(e) - delta, 0);
    }
};
} // namespace detail

/// e^2 / 2 where |e| <= delta and delta |e| - delta^2 / 2 beyond, e = x - z (Huber 1964). delta >
/// 0.
struct huber {
    double delta = 1;

    static constexpr std::string_view name = "huber";
    static constexpr int count = 1;
    constexpr std::array<double, count> numbers() const {
        return {detail::number_within("huber", "delta", delta, std::numeric_limits<double>::min())};
    }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        return detail::mean_of_elements<huber>(x, z, n);
    }
    static constexpr auto per_record(const auto& x, const auto& z, const auto& n) {
        return detail::record_means_of<huber>(x, z, n);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto each(const auto& x, const auto& z, const auto& n) {
        detail::check_labels(x, z);
        return apply<detail::huber_op>(x - z, n[0]);
    }
};

namespace detail {
/// |x| + log(1 + e^(-2 |x|)) - log 2, which does not overflow; near 0, where that cancels, -log(1 -
/// tanh(x)^2) / 2. One operation holds both, because each is smooth, and a seam between two would
/// not be.
struct log_cosh_op : series_op<1> {
    static constexpr std::string_view name = "log_cosh";
    template <class V>
    TG_HD static constexpr V value(V x) {
        const V a = math::abs(x), m = math::expm1(V(-2) * a), t = m / (m + V(2)); // t = -tanh(a)
        const bool near = a < V(1);
        const V log = math::log1p(math::detail::select(near, -math::detail::product(t, t), m + V(1)));
        return math::detail::select(near, V(-0.5) * log, a + (log - V(0.6931471805599453)));
    }
    TG_INLINE static constexpr auto vjp(auto dy, auto x, auto) { return dy * apply<tanh_op>(x); }
};
} // namespace detail

/// log(cosh(x - z)), without overflow.
struct log_cosh : detail::loss_of_elements<log_cosh> {
    static constexpr std::string_view name = "log_cosh";
    static constexpr auto each(const auto& x, const auto& z) {
        detail::check_labels(x, z);
        return apply<detail::log_cosh_op>(x - z);
    }
};

/// The pinball loss, max(q e, (q - 1) e) with e = z - x and q = quantile in [0, 1]: least where x
/// is that quantile of z (Koenker and Bassett 1978).
struct pinball {
    double quantile = 0.5;

    static constexpr std::string_view name = "pinball";
    static constexpr int count = 1;
    constexpr std::array<double, count> numbers() const {
        return {detail::number_within("pinball", "quantile", quantile, 0, 1)};
    }
    constexpr auto operator()(const auto& x, const auto& z) const { return (*this)(x, z, numbers()); }
    constexpr auto operator()(const auto& x, const auto& z, const auto& n) const {
        return detail::mean_of_elements<pinball>(x, z, n);
    }
    static constexpr auto per_record(const auto& x, const auto& z, const auto& n) {
        return detail::record_means_of<pinball>(x, z, n);
    }
    static constexpr tensor_spec labels(dtype type, const shape& output) { return {type, output}; }
    static constexpr auto each(const auto& x, const auto& z, const auto& n) {
        detail::check_labels(x, z);
        return maximum(n[0] * (z - x), (n[0] - 1) * (z - x));
    }
};

/// x - z log(x + 1e-7) for rates x >= 0 and counts z: the negative log-likelihood except for a term
/// of z alone.
struct poisson : detail::loss_of_elements<poisson> {
    static constexpr std::string_view name = "poisson";
    static constexpr auto each(const auto& x, const auto& z) {
        detail::check_labels(x, z);
        return x - z * log(x + detail::loss_epsilon);
    }
};

/// sum z log(z / x) over the last axis, for distributions [batch..., classes], both clipped to
/// [1e-7, 1].
struct kl_divergence : detail::loss_of_records<kl_divergence> {
    static constexpr std::string_view name = "kl_divergence";
    static constexpr auto per_record(const auto& x, const auto& z) {
        const auto of = [](const auto& output, const auto& labels) {
            const auto p = eval(clip(detail::labels_like(output, labels), detail::loss_epsilon, 1));
            return sum(p * log(p / clip(output, detail::loss_epsilon, 1)), -1);
        };
        return detail::in_floats(of, x, z);
    }
};

namespace detail {
/// The cosine of the angle between x and z along the last axis. A vector shorter than 1e-7 is
/// divided by 1e-7, not by its length.
constexpr auto cosine(const auto& x, const auto& z) {
    const auto here = std::source_location::current();
    const auto along = [](const auto& v) { return axes(-1).bits(shape_of(v).rank()); };
    const auto output = eval(x);
    const auto a = unit_vectors(output, along(output), loss_epsilon, here);
    const auto labels = labels_like(output, z);
    const auto b = unit_vectors(labels, along(labels), loss_epsilon, here);
    return sum(a * b, -1);
}
} // namespace detail

/// Minus the cosine of the angle between x and z along the last axis: -1 where they agree, 0 where one of them is zero.
struct cosine_similarity : detail::loss_of_records<cosine_similarity> {
    static constexpr std::string_view name = "cosine_similarity";
    static constexpr auto per_record(const auto& x, const auto& z) {
        const auto of = [](const auto& output, const auto& labels) { return eval(-detail::cosine(output, labels)); };
        return detail::in_floats(of, x, z);
    }
};

} // namespace tapegraph
