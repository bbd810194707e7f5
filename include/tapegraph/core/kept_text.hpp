#pragma once

#include <tapegraph/core/component.hpp>

#include <string_view>
#include <type_traits>

#if TG_DEFINES(graph)
#include <mutex>
#include <string>
#include <unordered_set>
#endif

namespace tapegraph {

namespace detail {
/// Copies a text into memory that lives as long as the process, once per distinct text.
std::string_view text_that_stays(std::string_view text);
#if TG_DEFINES(graph)
TG_DEFINITION std::string_view text_that_stays(std::string_view text) {
    static std::mutex mutex;
    static std::unordered_set<std::string> texts;
    const std::lock_guard lock(mutex);
    return *texts.emplace(text).first;
}
#endif
} // namespace detail

/// A name that a trace may keep. In constant evaluation names are literals; at run time they may be
/// temporary and are copied.
constexpr std::string_view kept_text(std::string_view text) {
    return std::is_constant_evaluated() ? text : detail::text_that_stays(text);
}

} // namespace tapegraph
