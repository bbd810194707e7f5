#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/core/math.hpp>

/// The functions of recurrent gates. The float functions of the fast path are designed for kernels
/// that may use fused multiply-adds, with absolute errors of 2e-7: both modes call the same
/// kernels, so no other evaluation has to give the same bits. (A device has its own,
/// cuda/kernels/recurrent_cell.cuh, for the same cells.)

namespace tapegraph::cpu {

/// The functions of the gates; both false is the fast path, tanh and sigmoid.
struct recurrent_activations {
    bool relu = false; ///< for candidates and outputs; otherwise tanh
    bool hard = false; ///< relu6(x + 3) / 6 for the gates; otherwise sigmoid
};

namespace detail {

/// x P(x^2) / Q(x^2), the numerator and denominator of tanh for |x| <= 9, where it rounds to 1
/// (minimax by Lawson's iteration, relative error 2^-29 before the coefficients were rounded).
struct tanh_parts {
    float numerator, denominator;
};
TG_HD tanh_parts parts_of_tanh(float x) {
    const float c = math::detail::within(x, 9.0f), s = c * c;
    const float p = ((((-1.2246224867507038e-11f * s + 3.0642496540167485e-08f) * s + 2.8031296096742153e-05f) * s +
                      0.0038695072289556265f) *
                         s +
                     0.13680855929851532f) *
                        s +
                    1.0f;
    const float q = (((1.2890341167803854e-06f * s + 0.00039407119038514793f) * s + 0.027250153943896294f) * s +
                     0.4701418876647949f) *
                        s +
                    1.0f;
    return {c * p, q};
}
/// 1 + e^-x for |x| <= 25: beyond, a sigmoid is 0 or 1 within 2e-11, and products of these stay
/// finite.
TG_HD float sigmoid_denominator(float x) {
    using t = math::detail::traits<float>;
    const float c = math::detail::within(x, 25.0f);
    const float shifted = t::round_magic - c * t::log2_e, k = shifted - t::round_magic;
    const float r = (-c - k * t::ln2_high) - k * t::ln2_low;
    const float q = (((0.00138823956f * r + 0.00836718082f) * r + 0.041667223f) * r + 0.16666539f) * r + 0.49999997f;
    const float y = (q * r * r + r) + 1.0f;
    // 2^k from the low bits of `shifted`; y keeps NaN.
    return 1.0f + y * math::detail::from_bits<float>((math::detail::to_bits(shifted) << 23) + (t::bias << t::mantissa));
}
/// Clamps y to 1, which rounding may have exceeded, because slopes like y (1 - y) must not change
/// their sign.
TG_HD float within_one(float y) {
    return math::detail::select(y > 1.0f, 1.0f, math::detail::select(y < -1.0f, -1.0f, y));
}

TG_HD float fast_tanh(float x) {
    const tanh_parts t = parts_of_tanh(x);
    return within_one(t.numerator / t.denominator);
}
TG_HD double fast_tanh(double x) { return math::tanh(x); }

/// The functions and their derivatives, computed from the value: tanh' = 1 - y^2, sigmoid' = y (1 -
/// y); relu and the hard sigmoid are linear wherever they are not constant.
template <class T, bool Fast>
struct recurrent_functions {
    static constexpr bool fast = Fast;
    recurrent_activations kinds;

    TG_HD T squash(T x) const {
        if constexpr (Fast) return fast_tanh(x);
        return math::detail::select(kinds.relu, math::detail::select((x > T(0)) | (x != x), x, T(0)), math::tanh(x));
    }
    TG_HD T squash_slope(T y) const {
        if constexpr (Fast) return T(1) - y * y;
        return math::detail::select(kinds.relu, math::detail::select(y > T(0), T(1), T(0)), T(1) - y * y);
    }
    TG_HD T gate(T x) const {
        return math::detail::select(kinds.hard, math::detail::clamp(x + T(3), T(0), T(6)) / T(6), math::sigmoid(x));
    }
    TG_HD T gate_slope(T y) const {
        const T smooth = y * (T(1) - y);
        if constexpr (Fast) return smooth;
        const T hard = math::detail::select((y > T(0)) & (y < T(1)), T(1) / T(6), T(0));
        return math::detail::select(kinds.hard, hard, smooth);
    }
    // Derivatives of the slopes by the value.
    TG_HD T squash_bend(T y) const { return kinds.relu ? T(0) : T(-2) * y; }
    TG_HD T gate_bend(T y) const { return kinds.hard ? T(0) : T(1) - T(2) * y; }
};

} // namespace detail

} // namespace tapegraph::cpu
