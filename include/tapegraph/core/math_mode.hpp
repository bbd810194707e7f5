#pragma once

#include <tapegraph/core/config.hpp>

#include <atomic>
#include <cstdint>

namespace tapegraph {

/// How a GPU multiplies the float operands of convolutions and matrix products. Sums are float in each. The CPU, and
/// devices without such units (compute capability below 8.0), always compute as fp32 says; double is not concerned.
enum class math_mode : std::uint8_t {
    fp32,  ///< every product in float: the default, because both modes and all devices are compared
    tf32,  ///< on tensor cores, operands rounded to 10 bits: relative error of a factor 2^-11
    tf32x3 ///< on tensor cores, each operand in two parts: nearly fp32's accuracy
};

namespace detail {
inline std::atomic<math_mode>& math_mode_setting() {
    static std::atomic<math_mode> mode{math_mode::fp32};
    return mode;
}
} // namespace detail

inline math_mode current_math_mode() { return detail::math_mode_setting().load(std::memory_order_relaxed); }

/// For the whole process, from the next kernel on. What has been captured for replay keeps the mode it was captured in.
inline void set_math_mode(math_mode mode) { detail::math_mode_setting().store(mode, std::memory_order_relaxed); }

} // namespace tapegraph
