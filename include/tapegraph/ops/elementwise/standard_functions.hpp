#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/expr/expr.hpp>

#include <algorithm>
#include <cmath>

/// std::sqrt of a tensor and its like. The standard library's functions of numbers take no tensors, and the compiler lists each of them,
/// with its macros, to say so. These say instead what to write. They take this library's types alone and nobody can call one: that is
/// all that is declared in namespace std, which is meant for others.

namespace tapegraph {
/// Shown for a function of std given a tensor: sqrt(x) finds the right one, and so does tapegraph::sqrt(x).
struct leave_out_std;

namespace detail {
template <class... Given>
concept given_a_tensor = (tensor_like<Given> || ...);
} // namespace detail
} // namespace tapegraph

// clang-format off
namespace std {
template <tapegraph::tensor_like X>
tapegraph::leave_out_std sqrt(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std cbrt(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std exp(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std exp2(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std expm1(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std log(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std log2(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std log10(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std log1p(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std sin(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std cos(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std tan(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std asin(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std acos(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std atan(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std sinh(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std cosh(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std tanh(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std asinh(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std acosh(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std atanh(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std abs(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std fabs(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std floor(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std ceil(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std round(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std trunc(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std rint(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std erf(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std erfc(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std lgamma(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std tgamma(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std isnan(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std isinf(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std isfinite(const X&) TG_MISTAKE;
template <tapegraph::tensor_like X>
tapegraph::leave_out_std signbit(const X&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std pow(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std fmod(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std atan2(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std hypot(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std fmax(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std fmin(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std copysign(const X&, const Y&) TG_MISTAKE;
template <class X, class Y>
    requires tapegraph::detail::given_a_tensor<X, Y>
tapegraph::leave_out_std remainder(const X&, const Y&) TG_MISTAKE;
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
