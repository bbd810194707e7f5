#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>

#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

/// Settings read from environment variables.

namespace tapegraph::detail {

/// The value of a variable; null where it is unset or empty.
inline const char* environment(const char* variable) {
    const char* const value = std::getenv(variable);
    return value == nullptr || *value == 0 ? nullptr : value;
}

/// Throws argument_error: "TAPEGRAPH_ISA='avx9': expected baseline, avx2 or avx512".
[[noreturn]] void refuse_environment(const char* variable, const char* value, const std::string& expected);

/// The index of a variable's value in a list of words; `otherwise` where it is not set. Throws
/// argument_error that names the variable, its value and the words.
int environment_choice(const char* variable, std::initializer_list<const char*> words, int otherwise);

/// 0 or 1.
inline bool environment_flag(const char* variable, bool otherwise) {
    return environment_choice(variable, {"0", "1"}, otherwise ? 1 : 0) == 1;
}

#if TG_DEFINES(runtime)

TG_DEFINITION int environment_choice(const char* variable, std::initializer_list<const char*> words, int otherwise) {
    const char* const value = environment(variable);
    if (value == nullptr) return otherwise;
    std::string expected;
    const int count = static_cast<int>(words.size());
    for (int i = 0; i < count; ++i) {
        const char* const word = words.begin()[i];
        if (std::string_view(value) == word) return i;
        expected.append(i == 0 ? "" : i + 1 == count ? " or " : ", ").append(word);
    }
    refuse_environment(variable, value, expected);
}

[[noreturn]] TG_DEFINITION void refuse_environment(const char* variable, const char* value,
                                                   const std::string& expected) {
    throw argument_error(std::string(variable) + "='" + value + "': expected " + expected);
}

#endif

} // namespace tapegraph::detail
