#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

/// CRC-32C (Castagnoli, as in iSCSI, RFC 3720), the checksum of TFRecord, TensorBoard's event files
/// and snappy.

namespace tapegraph::io {

namespace detail {

/// Row k holds the effect of a byte k bytes later, so that eight bytes are eight independent
/// look-ups.
inline constexpr auto crc32c_table = [] {
    std::array<std::array<std::uint32_t, 256>, 8> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82F63B78u : 0u); // reflected
        table[0][byte] = rest;
    }
    for (std::size_t k = 1; k < 8; ++k)
        for (std::size_t byte = 0; byte < 256; ++byte)
            table[k][byte] = (table[k - 1][byte] >> 8) ^ table[0][table[k - 1][byte] & 0xff];
    return table;
}();

/// Not yet inverted at either end.
std::uint32_t crc32c_by_table(std::uint32_t crc, const unsigned char* at, std::size_t bytes);

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TG_CRC32C_INSTRUCTION 1

__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_by_instruction(std::uint32_t crc, const unsigned char* at,
                                                                             std::size_t bytes) {
    std::uint64_t all = crc;
    for (; bytes >= 8; at += 8, bytes -= 8) {
        std::uint64_t word;
        std::memcpy(&word, at, 8);
        all = __builtin_ia32_crc32di(all, word);
    }
    crc = static_cast<std::uint32_t>(all);
    for (; bytes > 0; ++at, --bytes) crc = __builtin_ia32_crc32qi(crc, *at);
    return crc;
}
#endif

} // namespace detail

/// CRC-32C of bytes; `before` is that of the preceding bytes, so that a long text may be processed
/// in parts. It uses the processor's instruction if available (SSE4.2), otherwise tables, with the
/// same result.
inline std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before = 0) {
    const auto* const at = static_cast<const unsigned char*>(data);
#if defined(TG_CRC32C_INSTRUCTION)
    static const bool has_instruction = [] {
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") != 0;
    }();
    if (has_instruction) return ~detail::crc32c_by_instruction(~before, at, bytes);
#endif
    return ~detail::crc32c_by_table(~before, at, bytes);
}
inline std::uint32_t crc32c(std::string_view data, std::uint32_t before = 0) {
    return crc32c(data.data(), data.size(), before);
}
inline std::uint32_t crc32c(std::span<const std::uint8_t> data, std::uint32_t before = 0) {
    return crc32c(data.data(), data.size(), before);
}

/// The form stored in TFRecord and event files: a checksum of data that contains checksums of its
/// own would say little, so it is rotated and offset.
constexpr std::uint32_t masked_crc32c(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }
/// Recovers the checksum from its masked form.
constexpr std::uint32_t unmasked_crc32c(std::uint32_t masked) { return std::rotl(masked - 0xa282ead8u, 15); }

} // namespace tapegraph::io

namespace tapegraph::io::detail {

#if TG_DEFINES(formats)

TG_DEFINITION std::uint32_t crc32c_by_table(std::uint32_t crc, const unsigned char* at, std::size_t bytes) {
    const auto& t = crc32c_table;
    if constexpr (std::endian::native == std::endian::little)
        for (; bytes >= 8; at += 8, bytes -= 8) {
            std::uint32_t low, high;
            std::memcpy(&low, at, 4);
            std::memcpy(&high, at + 4, 4);
            low ^= crc;
            crc = t[7][low & 0xff] ^ t[6][(low >> 8) & 0xff] ^ t[5][(low >> 16) & 0xff] ^ t[4][low >> 24] ^
                  t[3][high & 0xff] ^ t[2][(high >> 8) & 0xff] ^ t[1][(high >> 16) & 0xff] ^ t[0][high >> 24];
        }
    for (; bytes > 0; ++at, --bytes) crc = (crc >> 8) ^ t[0][(crc ^ *at) & 0xff];
    return crc;
}

#endif

} // namespace tapegraph::io::detail
