#pragma once

#include <tapegraph/core/config.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tapegraph {

/// How a GPU multiplies the float operands of convolutions, matrix products, and recurrent layers
/// that take one launch per step. Sums are float in each mode. The CPU, and devices without such
/// units (compute capability below 8.0), always compute as with fp32; double is not affected.
enum class math_mode : std::uint8_t {
    fp32,  ///< products in float: the default, because both modes and all devices then agree
    tf32,  ///< on tensor cores, operands rounded to 10 bits: relative error of a factor 2^-11
    tf32x3 ///< on tensor cores, each operand split in two parts: nearly fp32's accuracy
};

constexpr std::string_view name_of(math_mode mode) {
    constexpr std::string_view names[]{"fp32", "tf32", "tf32x3"};
    return names[static_cast<int>(mode)];
}

namespace detail {
inline std::atomic<math_mode>& math_mode_setting() {
    static std::atomic<math_mode> mode{math_mode::fp32};
    return mode;
}
/// The mode of this thread's innermost math_mode_scope.
inline std::optional<math_mode>& scoped_math_mode() {
    static thread_local std::optional<math_mode> mode;
    return mode;
}
} // namespace detail

/// The mode that this thread's kernels use: its innermost math_mode_scope's, or the process's.
inline math_mode current_math_mode() {
    const auto& scoped = detail::scoped_math_mode();
    return scoped ? *scoped : detail::math_mode_setting().load(std::memory_order_relaxed);
}

/// Sets the mode of the whole process, from the next kernel on. A math_mode_scope and
/// compile_options::math_mode take precedence.
inline void set_math_mode(math_mode mode) { detail::math_mode_setting().store(mode, std::memory_order_relaxed); }

/// While it lives, this thread's kernels compute in the given mode, whatever the process's is;
/// programs compiled meanwhile keep it. An empty mode changes nothing.
class math_mode_scope {
public:
    explicit math_mode_scope(std::optional<math_mode> mode) : before_(detail::scoped_math_mode()) {
        if (mode) detail::scoped_math_mode() = mode;
    }
    math_mode_scope(const math_mode_scope&) = delete;
    math_mode_scope& operator=(const math_mode_scope&) = delete;
    ~math_mode_scope() { detail::scoped_math_mode() = before_; }

private:
    std::optional<math_mode> before_;
};

} // namespace tapegraph
