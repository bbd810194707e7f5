#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/folder.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

/// Rules shared by all that keep checkpoints: how they are found by name, which are removed, and
/// which value is better.

namespace tapegraph::io::detail {

/// The numbers N of a folder's entries `<prefix>N<suffix>`, ascending. Throws data_error if the
/// folder cannot be read.
std::vector<std::int64_t> numbered_entries(const files::path& folder, std::string_view prefix, std::string_view suffix);

/// The ascending steps except the newest `keep`; none if `keep` is 0.
inline std::vector<std::int64_t> surplus_of(std::vector<std::int64_t> steps, std::int64_t keep) {
    const auto count = static_cast<std::int64_t>(steps.size());
    steps.resize(static_cast<std::size_t>(keep <= 0 || keep >= count ? 0 : count - keep));
    return steps;
}

/// Whether a value is better than the best so far; NaN never is, and any number is better than
/// none.
inline bool improves(double value, bool has_best, double best, bool highest) {
    if (std::isnan(value)) return false;
    return !has_best || (highest ? value > best : value < best);
}

/// Creates a folder and its parents. Throws data_error on failure.
inline void make_folder(const files::path& folder) {
    std::error_code failure;
    files::create_directories(folder, failure);
    if (failure || !files::is_directory(folder, failure))
        throw data_error(quoted(folder) + ": cannot be made a folder" + (failure ? ": " + failure.message() : ""));
}

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION std::vector<std::int64_t> numbered_entries(const files::path& folder, std::string_view prefix,
                                                         std::string_view suffix) {
    std::vector<std::int64_t> found;
    std::error_code failure;
    files::directory_iterator at(folder, failure);
    if (failure) throw data_error(quoted(folder) + ": cannot be read: " + failure.message());
    for (const auto& entry : at) {
        const std::string name = entry.path().filename().string();
        if (name.size() < prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
            continue;
        std::int64_t number = -1;
        const char *const first = name.data() + prefix.size(), *const last = name.data() + name.size() - suffix.size();
        const auto end = std::from_chars(first, last, number);
        if (end.ec == std::errc{} && end.ptr == last && number >= 0) found.push_back(number);
    }
    std::sort(found.begin(), found.end());
    return found;
}

#endif

} // namespace tapegraph::io::detail
