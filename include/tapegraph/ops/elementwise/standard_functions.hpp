#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/expr/expr.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>

/// Overloads for calls like std::sqrt of a tensor. The standard library's functions take no
/// tensors, and the compiler would list each of them, with its macros, in its error. These
/// overloads instead say what to write. They accept only this library's types and can never be
/// called; nothing else is declared in namespace std, which is reserved.
///
/// <math.h> brings std's functions into the global namespace, where sqrt(x) then finds these, too.
/// So they take tensors by a conversion, and tapegraph::sqrt, which takes them directly, is always
/// the better match.

namespace tapegraph {
/// Shown for a std function called with a tensor: unqualified sqrt(x) finds the right one, and so
/// does tapegraph::sqrt(x).
struct leave_out_std;

namespace detail {
template <class... Given>
concept given_a_tensor = (tensor_like<Given> || ...);

struct tensor_for_std {
    template <tensor_like X>
    constexpr tensor_for_std(const X&) {} // NOLINT: matches any tensor or formula
};
struct number_for_std {
    template <class X>
        requires std::is_arithmetic_v<X>
    constexpr number_for_std(const X&) {} // NOLINT
};
} // namespace detail
} // namespace tapegraph

// Spelled out without macros, because the compiler shows the line that declares the called
// function, and macros on the way.
// clang-format off
namespace std {
tapegraph::leave_out_std sqrt(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std cbrt(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std exp(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std exp2(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std expm1(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std log(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std log2(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std log10(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std log1p(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std sin(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std cos(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std tan(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std asin(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std acos(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std atan(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std sinh(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std cosh(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std tanh(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std asinh(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std acosh(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std atanh(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std abs(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std fabs(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std floor(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std ceil(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std round(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std trunc(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std rint(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std erf(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std erfc(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std lgamma(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std tgamma(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std isnan(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std isinf(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std isfinite(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std signbit(tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std pow(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std pow(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std pow(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmod(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmod(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmod(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std atan2(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std atan2(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std atan2(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std hypot(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std hypot(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std hypot(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmax(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmax(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmax(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmin(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmin(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std fmin(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std copysign(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std copysign(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std copysign(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std remainder(tapegraph::detail::tensor_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
tapegraph::leave_out_std remainder(tapegraph::detail::tensor_for_std, tapegraph::detail::number_for_std) TG_MISTAKE;
tapegraph::leave_out_std remainder(tapegraph::detail::number_for_std, tapegraph::detail::tensor_for_std) TG_MISTAKE;
// The standard functions take two arguments of any one type, and overloads that are to be better
// must do so, too; no C header has them.
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std max(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std min(const X&, const Y&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std max(const X&, const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std min(const X&, const X&) TG_MISTAKE;
} // namespace std
// clang-format on
