#pragma once

#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Devices by name, for parts of a model: "/cpu:0", "/gpu:1".

namespace tapegraph::detail {

/// A place as a number: 0 is wherever the model or session computes, then come 64 CPUs, all of which are the machine's, and 64 GPUs.
struct place {
    static constexpr int anywhere = 0, first_cpu = 1, first_gpu = 65, end = 129;

    /// -1 where the name is none: "/cpu:0", "/gpu:1", "/device:GPU:1", "cpu".
    static constexpr int named(std::string_view name) {
        if (!name.empty() && name[0] == '/') name.remove_prefix(1);
        if (starts_with(name, "device:")) name.remove_prefix(7);
        const int first = starts_with(name, "cpu") ? first_cpu : starts_with(name, "gpu") ? first_gpu : -1;
        if (first < 0) return -1;
        name.remove_prefix(3);
        if (name.empty()) return first;
        if (name[0] != ':' || name.size() < 2 || name.size() > 3) return -1;
        int number = 0;
        for (const char c : name.substr(1)) {
            if (c < '0' || c > '9') return -1;
            number = 10 * number + (c - '0');
        }
        return number < 64 ? first + number : -1;
    }
    static constexpr bool is_gpu(int place) { return place >= first_gpu; }
    static constexpr int index(int place) { return place - (is_gpu(place) ? first_gpu : first_cpu); }

    /// "/gpu:1"
    static std::string text(int place) {
        if (place == anywhere) return "the model's device";
        return (is_gpu(place) ? "/gpu:" : "/cpu:") + std::to_string(index(place));
    }

private:
    static constexpr bool starts_with(std::string_view text, std::string_view begin) {
        if (text.size() < begin.size()) return false;
        for (std::size_t i = 0; i < begin.size(); ++i) {
            const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
            if (c != begin[i]) return false;
        }
        return true;
    }
};

} // namespace tapegraph::detail
