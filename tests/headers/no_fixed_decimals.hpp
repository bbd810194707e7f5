#pragma once

#include <string>

// Included before every header that test_headers compiles: std::to_string shows 1e-7 as 0.000000, number_text as 1e-07.
// Of a function that exists already, a second declaration may say that it is deprecated.

namespace std {

inline namespace __cxx11 {

[[deprecated("of a floating-point number: number_text (core/number_text.hpp) loses no digits")]] string
to_string(float);
[[deprecated("of a floating-point number: number_text (core/number_text.hpp) loses no digits")]] string
to_string(double);
[[deprecated("of a floating-point number: number_text (core/number_text.hpp) loses no digits")]] string
to_string(long double);

} // namespace __cxx11

} // namespace std
