#include "memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include <sys/resource.h>

namespace study {

namespace {

/// The number after a word at the start of a line ("MemAvailable: 123 kB"); with an empty word,
/// that of the first line.
std::optional<std::uint64_t> number_in(const char* file, const std::string& word) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(word)) continue;
        const std::size_t at = line.find_first_not_of(" \t", word.size());
        if (at == line.npos || line[at] < '0' || line[at] > '9') return std::nullopt; // "max"
        return std::strtoull(line.c_str() + at, nullptr, 10);
    }
    return std::nullopt;
}

/// The memory that a control group leaves. Its usage includes cached files, which can be evicted.
std::uint64_t left_in_group(const char* limit, const char* use, const char* details, const char* cached) {
    const auto most = number_in(limit, ""), in_use = number_in(use, "");
    if (!most || !in_use) return std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t taken = *in_use - std::min(*in_use, number_in(details, cached).value_or(0));
    return *most - std::min(*most, taken);
}

} // namespace

std::uint64_t available_memory() {
    std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
    if (const auto kilobytes = number_in("/proc/meminfo", "MemAvailable:")) bytes = *kilobytes * 1024;
    bytes = std::min(bytes, left_in_group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                                          "/sys/fs/cgroup/memory.stat", "inactive_file"));
    return std::min(bytes, left_in_group("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                         "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                                         "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"));
}

std::int64_t process_high_water_mark() {
    if (const auto kilobytes = number_in("/proc/self/status", "VmHWM:"))
        return static_cast<std::int64_t>(*kilobytes) * 1024;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

} // namespace study
