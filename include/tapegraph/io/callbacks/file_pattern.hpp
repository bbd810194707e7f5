#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/train/training_state.hpp>

#include <cstdio>
#include <string>
#include <string_view>

namespace tapegraph::detail {

/// Expands "best-{epoch:02d}-{val_loss:.3f}.safetensors" for this epoch, which counts from 1;
/// {step} and every logged value can be used. A colon is followed by a printf format of at most
/// nine characters. Throws argument_error for an unknown name and for an unclosed bracket.
std::string file_name_of(std::string_view pattern, const training_state& s);

#if TG_DEFINES_FOR_HOST(io)

TG_DEFINITION std::string file_name_of(std::string_view pattern, const training_state& s) {
    const std::string_view all = pattern;
    std::string result;
    while (!pattern.empty()) {
        const std::size_t open = pattern.find('{');
        result.append(pattern.substr(0, open));
        if (open == pattern.npos) break;
        const std::size_t close = pattern.find('}', open);
        if (close == pattern.npos) throw argument_error("file name '" + std::string(all) + "': a { without its }");
        std::string_view name = pattern.substr(open + 1, close - open - 1);
        pattern.remove_prefix(close + 1);
        std::string_view how;
        if (const std::size_t colon = name.find(':'); colon != name.npos) {
            how = name.substr(colon + 1);
            name = name.substr(0, colon);
        }
        const bool whole = name == "epoch" || name == "step";
        const std::string_view kinds = whole ? "d" : "feg";
        std::string_view digits = how;
        if (!how.empty() && kinds.find(how.back()) != kinds.npos) digits.remove_suffix(1);
        if (how.size() > 9 || digits.find_first_not_of(whole ? "0123456789" : "0123456789.") != digits.npos)
            throw argument_error("file name '" + std::string(all) + "': '" + std::string(how) +
                                 "' is not a format of {" + std::string(name) + "}");
        std::string format = "%" + std::string(digits);
        char text[512];
        if (whole) {
            format += "lld";
            std::snprintf(text, sizeof text, format.c_str(),
                          static_cast<long long>(name == "epoch" ? s.epoch + 1 : s.step));
        } else {
            const double* const value = s.logs.find(name);
            if (value == nullptr) s.logs.refuse("file name '" + std::string(all) + "'", name);
            format += digits.size() < how.size() ? how.back() : 'g';
            std::snprintf(text, sizeof text, format.c_str(), *value);
        }
        result += text;
    }
    return result;
}

#endif

} // namespace tapegraph::detail
