#pragma once

#include <tapegraph/core/error.hpp>

#include <string>
#include <string_view>

/// Returns the messages of errors.

namespace support {

/// The message of the error that a call throws; empty where it throws no `Error`.
template <class Error = tapegraph::error, class F>
std::string message_of(const F& f) {
    try {
        f();
    } catch (const Error& failure) {
        return failure.what();
    }
    return {};
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace support
