#pragma once

#include <support/reference.hpp>

#include <tapegraph/eager/gradient_tape.hpp>

#include <cmath>
#include <functional>
#include <vector>

/// Derivatives from the tape and from central finite differences.
///
/// Step and tolerance: the error of (f(x + h) - f(x - h)) / 2h is h^2 f'''/6 from truncation and a
/// few eps |f| / h from rounding. At h = 1e-5 that is some 2e-11 f''' and 1e-10 |f|. Tests draw f
/// and its derivatives of order one, so 1e-8 of the sum of the magnitudes involved passes with a
/// margin and still detects any wrong term.

namespace tapegraph::testing {

inline constexpr double step = 1e-5;
inline constexpr double gradient_tolerance = 1e-8;
/// The gradient that is differenced is itself exact to rounding, but its derivatives are an order
/// larger.
inline constexpr double second_tolerance = 1e-7;

template <class T>
using tensors = std::vector<tensor<T>>;
template <class T>
using tensor_function = std::function<tensor<T>(const tensors<T>&)>;

/// Numbers in [0, 1) that depend only on the counter (splitmix64).
class sequence {
public:
    // The factor differs from the step of the state: otherwise neighbouring seeds would give one
    // sequence, shifted.
    explicit sequence(std::uint64_t seed) : state_(seed * 0xD1342543DE82EF95ull + 1) {}
    double next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
    }
    double between(double low, double high) { return low + (high - low) * next(); }

private:
    std::uint64_t state_;
};

template <class T>
shape shape_from(const std::vector<T>& dims) {
    shape s;
    for (T d : dims) s.push_back(static_cast<std::int64_t>(d));
    return s;
}
inline extents extents_of(const shape& s) { return extents(s.data(), s.data() + s.rank()); }

/// Weights that turn a tensor into a number: none zero, all different.
inline tensor<double> weights_like(const tensor<double>& like, std::uint64_t seed) {
    sequence random(seed);
    auto w = tensor<double>::uninitialized(like.shape());
    for (std::int64_t i = 0; i < w.size(); ++i) w.mutable_data()[i] = random.between(0.5, 1.5) * (i % 3 == 1 ? -1 : 1);
    return w;
}

inline double dot(const tensor<double>& a, const tensor<double>& b) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.size(); ++i) sum += a.data()[i] * b.data()[i];
    return sum;
}

/// d(sum(w f(x)))/dx for the first `watched` operands, by the tape. `w` is made for the value's shape from `seed`.
inline tensors<double> tape_gradient(const tensor_function<double>& f, tensors<double> x, std::size_t watched,
                                     std::uint64_t seed) {
    gradient_tape tape;
    for (std::size_t k = 0; k < watched; ++k) tape.watch(x[k]);
    const tensor<double> y = f(x);
    const tensor<double> loss = y * weights_like(y, seed);
    const std::vector<any_tensor> sources(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(watched));
    tensors<double> result;
    for (any_tensor& g : tape.gradient(loss, sources)) result.emplace_back(std::move(g));
    return result;
}

/// d(sum over k of v_k . g_k)/dx where g is the gradient above: nested tapes.
inline tensors<double> nested_gradient(const tensor_function<double>& f, tensors<double> x, std::size_t watched,
                                       std::uint64_t seed) {
    gradient_tape outer;
    for (std::size_t k = 0; k < watched; ++k) outer.watch(x[k]);
    const std::vector<any_tensor> sources(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(watched));
    std::vector<any_tensor> first;
    {
        gradient_tape inner;
        const tensor<double> y = f(x);
        const tensor<double> loss = y * weights_like(y, seed);
        first = inner.gradient(loss, sources);
    }
    tensor<double> total = 0.0;
    for (std::size_t k = 0; k < watched; ++k) {
        const tensor<double> g(first[k]);
        total = tensor<double>(total + sum(g * weights_like(g, seed + 1 + k)));
    }
    tensors<double> result;
    for (any_tensor& g : outer.gradient(total, sources)) result.emplace_back(std::move(g));
    return result;
}

/// Two derivatives that should agree.
struct slope {
    double exact = 0, difference = 0;
    double scale = 0; ///< the magnitudes that cancel in `difference`
    bool agrees(double tolerance) const { return std::abs(exact - difference) <= tolerance * (1 + scale); }
};

/// Central differences of a number with respect to every element of operand k, against `gradient`.
inline std::vector<slope> element_slopes(const std::function<double(const tensors<double>&)>& f, tensors<double> x,
                                         std::size_t k, const tensor<double>& gradient) {
    std::vector<slope> result;
    for (std::int64_t i = 0; i < x[k].size(); ++i) {
        const double at = x[k].data()[i];
        x[k].mutable_data()[i] = at + step;
        const double above = f(x);
        x[k].mutable_data()[i] = at - step;
        const double below = f(x);
        x[k].mutable_data()[i] = at;
        result.push_back(
            {gradient.data()[i], (above - below) / (2 * step), std::abs(above) + std::abs(gradient.data()[i])});
    }
    return result;
}

/// As above along one random direction, for tensors too large to go element by element.
inline slope direction_slope(const std::function<double(const tensors<double>&)>& f, const tensors<double>& x,
                             std::size_t k, const tensor<double>& gradient) {
    const tensor<double> direction = weights_like(x[k], 77 + k);
    tensors<double> above = x, below = x;
    slope s;
    for (std::int64_t i = 0; i < x[k].size(); ++i) {
        above[k].mutable_data()[i] += step * direction.data()[i];
        below[k].mutable_data()[i] -= step * direction.data()[i];
        s.scale += std::abs(gradient.data()[i] * direction.data()[i]);
    }
    const double high = f(above);
    s.exact = dot(gradient, direction);
    s.difference = (high - f(below)) / (2 * step);
    s.scale += std::abs(high);
    return s;
}

} // namespace tapegraph::testing
