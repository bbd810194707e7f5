#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/runtime/finite.hpp>

#include <string>

namespace tapegraph::detail {

/// While one with `on` lives, every eager result of this thread is searched for values that are not finite.
class numeric_check {
public:
    explicit numeric_check(bool on) : before_(active()) { active() = active() || on; }
    numeric_check(const numeric_check&) = delete;
    numeric_check& operator=(const numeric_check&) = delete;
    ~numeric_check() { active() = before_; }

    static bool& active() {
        static thread_local bool on = false;
        return on;
    }

private:
    bool before_;
};

inline void check_finite(std::string_view operation, const any_tensor& result) {
    if (!numeric_check::active()) return;
    const std::int64_t at = runtime::first_not_finite(result.view_on(nullptr));
    if (at >= 0)
        throw numeric_error(std::string(operation) + ": element " + std::to_string(at) + " of a result of shape " +
                            to_string(result.shape()) + " is not finite");
}

} // namespace tapegraph::detail
