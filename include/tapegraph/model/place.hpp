#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Device names for parts of a model: "/cpu:0", "/gpu:1", also after the name of a task,
/// "/job:ps/task:0/cpu:0".

namespace tapegraph::detail {

/// A place as a number: 0 is wherever the model or session computes, followed by 64 CPUs, all of
/// which are the machine's, and 64 GPUs.
struct place {
    static constexpr int anywhere = 0, first_cpu = 1, first_gpu = 65, end = 129;

    /// Returns -1 for an invalid name; valid ones are "/cpu:0", "/gpu:1", "/device:GPU:1", "cpu".
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
    static std::string text(int place);

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

/// A name in its two optional parts.
struct place_name {
    static constexpr const char* refusal =
        "with_device: the name of a device is \"/cpu:0\" or \"/gpu:0\", with a number below 64, that of a task "
        "\"/job:ps/task:0\", optionally followed by a device";

    bool valid = false;
    std::string_view task{}; ///< "/job:ps/replica:0/task:1"
    bool computes =
        false;      ///< whether the task computes the operations in its block: a parameter server only holds variables
    int place = -1; ///< -1: not named. After a parameter server's name it is a device of the server.

    static constexpr place_name read(std::string_view name) {
        place_name result;
        std::size_t at = 0;
        bool job = false, server = false;
        while (at < name.size()) {
            const std::string_view rest = name.substr(at);
            std::size_t key = 0;
            for (const std::string_view each : {"/job:", "/replica:", "/task:"})
                if (rest.substr(0, each.size()) == each) key = each.size();
            if (key == 0) break;
            const std::string_view value = rest.substr(key, rest.find('/', key) - key);
            if (value.empty() || (key != 5 && value.find_first_not_of("0123456789") != value.npos)) return {};
            job = job || key == 5;
            server = server || (key == 5 && value == "ps");
            at += key + value.size();
        }
        if (job != (at > 0)) return {};
        result.task = name.substr(0, at);
        result.valid = true;
        result.computes = job && !server;
        if (job && at == name.size()) return result;
        const int found = place::named(name.substr(at));
        result.valid = found >= 0;
        if (!server) result.place = found;
        return result;
    }
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION std::string place::text(int place) {
    if (place == anywhere) return "the model's device";
    return (is_gpu(place) ? "/gpu:" : "/cpu:") + std::to_string(index(place));
}

#endif

} // namespace tapegraph::detail
