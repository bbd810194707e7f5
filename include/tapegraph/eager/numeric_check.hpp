#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/runtime/finite.hpp>

#include <source_location>
#include <string>
#include <string_view>

namespace tapegraph::detail {

/// While one with `on` lives, every eager result of this thread is checked for values that are not
/// finite.
class numeric_check {
public:
    explicit numeric_check(bool on) : before_(active()) {
        active() = active() || on;
        enter({});
    }
    numeric_check(const numeric_check&) = delete;
    numeric_check& operator=(const numeric_check&) = delete;
    ~numeric_check() { active() = before_; }

    static bool& active() {
        static thread_local bool on = false;
        return on;
    }
    /// Whether another observer wants to know which layer runs.
    static bool& layers_wanted() {
        static thread_local bool on = false;
        return on;
    }
    /// The path of the running layer, as far as variables are requested from scopes.
    static std::string& scope() {
        static thread_local std::string path;
        return path;
    }
    static void enter(const std::string& path) {
        if (active() || layers_wanted()) scope() = path;
    }

private:
    bool before_;
};

/// The error, worded as in graph mode. Without `where` the line is unknown.
void check_finite(std::string_view operation, const any_tensor& result, std::source_location where);

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION void check_finite(std::string_view operation, const any_tensor& result, std::source_location where) {
    if (!numeric_check::active()) return;
    const std::int64_t at = runtime::first_not_finite(result.view_on(nullptr));
    if (at < 0) return;
    std::string text = std::string(operation) + ": element " + std::to_string(at) + " of a result of shape " +
                       to_string(result.shape()) + " is not finite, in scope '" + numeric_check::scope() + "'";
    if (where.line() > 0) {
        const std::string_view file = where.file_name();
        text += " at " + std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(where.line());
    }
    throw numeric_error(text);
}

#endif

} // namespace tapegraph::detail
