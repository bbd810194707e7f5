#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/model/weight_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tapegraph {

/// How first values of a variable are made.
enum class initializer_kind : int {
    constant,
    uniform,
    normal,
    glorot_uniform,
    glorot_normal,
    he_uniform,
    he_normal,
    orthogonal,
    forget_gate,
    truncated_normal,
    variance_scaling,
    identity,
    values,
    value_of,
    stored
};

/// The divisor of the variance of `init::variance_scaling`, and the distribution. Keras's "normal"
/// is the truncated one.
enum class fan_mode : int { fan_in, fan_out, fan_avg };
/// The law of `variance_scaling`.
enum class scaled_law : int { truncated_normal, untruncated_normal, uniform };

/// How a variable's initial values are drawn. Make one through the types in `init`.
struct initializer {
    initializer_kind kind = initializer_kind::glorot_uniform;
    double a = 0, b = 0;
    const double* list = nullptr; ///< for init::values
    int count = 0;
};

namespace init {
/// U(-l, l), l = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010; TensorFlow's default for kernels)
struct glorot_uniform {
    constexpr operator initializer() const { return {initializer_kind::glorot_uniform, 0, 0}; }
};
/// N(0, 2 / (fan_in + fan_out)), not truncated (Keras's is: variance_scaling{.mode = fan_mode::fan_avg})
struct glorot_normal {
    constexpr operator initializer() const { return {initializer_kind::glorot_normal, 0, 0}; }
};
/// U(-l, l), l = sqrt(6 / fan_in) (He et al. 2015)
struct he_uniform {
    constexpr operator initializer() const { return {initializer_kind::he_uniform, 0, 0}; }
};
/// N(0, 2 / fan_in), not truncated (Keras's is: variance_scaling{.scale = 2})
struct he_normal {
    constexpr operator initializer() const { return {initializer_kind::he_normal, 0, 0}; }
};
/// `gain` times a matrix with orthonormal rows, or orthonormal columns if there are fewer of these,
/// uniformly distributed (Saxe et al. 2014). Axes before the last count as one.
struct orthogonal {
    double gain = 1;
    constexpr operator initializer() const { return {initializer_kind::orthogonal, gain, 0}; }
};
/// Biases of an LSTM, [4 units]: 1 for the forget gate, `others` for the rest (Jozefowicz et al.
/// 2015).
struct forget_gate {
    double others = 0;
    constexpr operator initializer() const { return {initializer_kind::forget_gate, others, 0}; }
};
/// All elements are `value`.
struct constant {
    double value = 0;
    constexpr operator initializer() const { return {initializer_kind::constant, value, 0}; }
};
/// All elements are 0.
struct zeros {
    constexpr operator initializer() const { return {initializer_kind::constant, 0, 0}; }
};
/// All elements are 1.
struct ones {
    constexpr operator initializer() const { return {initializer_kind::constant, 1, 0}; }
};
/// U(low, high)
struct uniform {
    double low = -0.05, high = 0.05;
    constexpr operator initializer() const { return {initializer_kind::uniform, low, high}; }
};
/// Normal numbers of a mean and a standard deviation, not truncated.
struct normal {
    double mean = 0, deviation = 0.05;
    constexpr operator initializer() const { return {initializer_kind::normal, mean, deviation}; }
};
/// Normal numbers within two deviations of the mean; others are drawn again. `deviation` is that of
/// the distribution before truncation (Keras).
struct truncated_normal {
    double mean = 0, deviation = 0.05;
    constexpr operator initializer() const { return {initializer_kind::truncated_normal, mean, deviation}; }
};
/// Numbers of mean 0 and variance scale / fan: truncated normal, normal or uniform (Keras's
/// VarianceScaling, of which the four named after Glorot and He are cases). `scale` is positive.
struct variance_scaling {
    double scale = 1;
    fan_mode mode = fan_mode::fan_in;
    scaled_law distribution = scaled_law::truncated_normal;
    constexpr operator initializer() const {
        return {initializer_kind::variance_scaling, scale,
                static_cast<int>(mode) * 3. + static_cast<int>(distribution)};
    }
};
/// U(-l, l), l = sqrt(3 / fan_in) (LeCun et al. 1998)
struct lecun_uniform {
    constexpr operator initializer() const { return variance_scaling{.distribution = scaled_law::uniform}; }
};
/// Truncated normal numbers of variance 1 / fan_in, as Keras draws them
struct lecun_normal {
    constexpr operator initializer() const { return variance_scaling{}; }
};
/// `gain` on the main diagonal of a matrix, 0 elsewhere
struct identity {
    double gain = 1;
    constexpr operator initializer() const { return {initializer_kind::identity, gain, 0}; }
};
/// These numbers, row by row, as many as the variable has elements: `init::values{1, 2, 3}`.
template <std::size_t Count>
struct values {
    double list[Count];
    constexpr operator initializer() const { return {initializer_kind::values, 0, 0, list, static_cast<int>(Count)}; }
};
template <class... Number>
values(Number...) -> values<sizeof...(Number)>;
} // namespace init

/// Options of scope.variable. nn/regularizer.hpp and nn/constraint.hpp make regularizers and
/// constraints.
struct variable_options {
    tapegraph::initializer initializer{};
    bool trainable = true;
    tapegraph::regularizer regularizer{};
    tapegraph::constraint constraint{};
    /// The name by which `variables().collection(...)` finds it, besides "trainable" and "global";
    /// "local" is not global.
    std::string_view collection{};
};

namespace detail {
/// The extent of the last axis, which holds a layer's features; a scalar is an error of that layer.
template <class Scope>
constexpr std::int64_t features_of(const Scope& scope, const shape& dims, const char* error) {
    return scope.require(dims.rank() > 0, error) ? dims[dims.rank() - 1].value : 1;
}

/// Converts a layer's options for its kernel and its bias, which have the same names in all layers.
template <class Options>
constexpr variable_options kernel_options(const Options& o) {
    return {
        .initializer = o.kernel_initializer, .regularizer = o.kernel_regularizer, .constraint = o.kernel_constraint};
}
template <class Options>
constexpr variable_options bias_options(const Options& o) {
    return {.initializer = o.bias_initializer, .regularizer = o.bias_regularizer, .constraint = o.bias_constraint};
}

/// The objection to a variable's initializer, regularizer or constraint; null if there is none.
constexpr const char* refused_rule(const variable_options& o, const shape& dims) {
    const initializer& first = o.initializer;
    if (first.kind == initializer_kind::variance_scaling && !(first.a > 0 && finite_number(first.a)))
        return "variance_scaling: scale must be positive";
    if (first.kind == initializer_kind::truncated_normal &&
        !(finite_number(first.a) && first.b >= 0 && finite_number(first.b)))
        return "truncated_normal: the deviation must not be negative";
    if (first.kind == initializer_kind::identity && dims.rank() != 2) return "identity: the variable must be a matrix";
    if (const char* const refused = o.regularizer.refused(dims)) return refused;
    return o.constraint.refused(dims);
}
} // namespace detail

/// Fan-in and fan-out of a kernel as TensorFlow computes them: each of the last two extents, times the
/// product of the extents before them.
struct fans {
    double in = 1, out = 1;
};
/// Inputs and outputs that an element of the shape connects: of a kernel [..., in, out], times the extents before.
fans fans_of(const shape& s);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION fans fans_of(const shape& s) {
    if (s.rank() == 0) return {};
    if (s.rank() == 1) return {static_cast<double>(s[0].value), static_cast<double>(s[0].value)};
    double field = 1;
    for (int i = 0; i + 2 < s.rank(); ++i) field *= static_cast<double>(s[i].value);
    return {field * static_cast<double>(s[s.rank() - 2].value), field * static_cast<double>(s[s.rank() - 1].value)};
}

#endif

} // namespace tapegraph
