#pragma once

#include <tapegraph/core/component.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

/// Cache sizes of a core. They only affect the order in which kernels traverse memory, never the
/// order of a sum: bits are the same on every processor of one instruction set.

namespace tapegraph::cpu {

namespace detail {

/// The bytes of "1024K" or "2M", as Linux writes sizes of caches; 0 for anything else.
std::int64_t bytes_of_cache(std::string_view text);
/// Bytes of the first core's L2; 0 where the system does not report it.
std::int64_t system_l2_bytes();

#if TG_DEFINES(runtime)

TG_DEFINITION std::int64_t bytes_of_cache(std::string_view text) {
    std::int64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    if (error != std::errc() || bytes < 0 || bytes > (std::int64_t{1} << 32)) return 0;
    return unit == "K" ? bytes << 10 : unit == "M" ? bytes << 20 : unit.empty() ? bytes : 0;
}

TG_DEFINITION std::int64_t system_l2_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
    if (const std::int64_t bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) return bytes;
#endif
#if defined(__linux__) // glibc asks x86's processors alone
    if (std::FILE* const file = std::fopen("/sys/devices/system/cpu/cpu0/cache/index2/size", "r")) {
        char text[32]{};
        const std::size_t size = std::fread(text, 1, sizeof text, file);
        std::fclose(file);
        const std::string_view all(text, size);
        return bytes_of_cache(all.substr(0, all.find('\n')));
    }
#endif
    return 0;
}

#endif

} // namespace detail

/// Bytes of a core's L2, at most 2 MiB; 1 MiB where the system does not report it.
inline std::int64_t large_l2_bytes() {
    static const std::int64_t bytes = [] {
        const std::int64_t cache_bytes = detail::system_l2_bytes();
        constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
        return cache_bytes > 0 ? std::min(cache_bytes, 2 * mebibyte) : mebibyte;
    }();
    return bytes;
}
/// The same, at most 1 MiB.
inline std::int64_t l2_bytes() { return std::min(large_l2_bytes(), std::int64_t{1} << 20); }

/// The number of parts of this size that stay in a core's L2 while other operands stream past them;
/// at least one.
inline std::int64_t parts_within_l2(std::int64_t bytes_of_part) {
    return std::max<std::int64_t>(1, l2_bytes() * 2 / 5 / bytes_of_part);
}

} // namespace tapegraph::cpu
