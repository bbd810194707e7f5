/// The indices of words that Keras's hashing_trick gives for hash_function="md5": a hash function
/// of one's own in data::hashing_trick.

#include <tapegraph/data/text/hashing_trick.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

__extension__ using wide = unsigned __int128; // no word of standard C++

/// MD5 (RFC 1321) of some bytes. It offers no security.
std::array<std::uint8_t, 16> md5(std::string_view text) {
    static const auto sines = [] {
        std::array<std::uint32_t, 64> values{};
        for (std::size_t i = 0; i < 64; ++i)
            values[i] =
                static_cast<std::uint32_t>(std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 0x1p32));
        return values;
    }();
    constexpr int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    std::string padded(text);
    padded += '\x80';
    padded.resize((padded.size() + 8 + 63) / 64 * 64 - 8, '\0');
    for (std::uint64_t i = 0; i < 8; ++i) padded += static_cast<char>(text.size() * 8 >> (8 * i) & 0xFF);
    std::array<std::uint32_t, 4> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    for (std::size_t block = 0; block < padded.size(); block += 64) {
        std::array<std::uint32_t, 16> words{};
        for (std::size_t i = 0; i < 64; ++i)
            words[i / 4] |= static_cast<std::uint32_t>(static_cast<unsigned char>(padded[block + i])) << (8 * (i % 4));
        auto [a, b, c, d] = state;
        for (std::size_t i = 0; i < 64; ++i) {
            const std::size_t round = i / 16;
            const std::uint32_t f = round == 0   ? (b & c) | (~b & d)
                                    : round == 1 ? (d & b) | (~d & c)
                                    : round == 2 ? b ^ c ^ d
                                                 : c ^ (b | ~d);
            const std::size_t g = round == 0 ? i : round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i;
            const std::uint32_t sum = a + f + sines[i] + words[g % 16];
            a = d;
            d = c;
            c = b;
            b += std::rotl(sum, turns[round][i % 4]);
        }
        state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
    }
    std::array<std::uint8_t, 16> digest{};
    for (std::size_t i = 0; i < 16; ++i) digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (8 * (i % 4)));
    return digest;
}

/// The digest as Keras takes it: a number of 128 bits, the most significant byte first.
wide keras_hash(std::string_view word) {
    wide number = 0;
    for (const std::uint8_t byte : md5(word)) number = number << 8 | byte;
    return number;
}

} // namespace

int main() {
    for (const char* const text : {"The cat sat on the mat", "message digest"}) {
        std::printf("%s:", text);
        for (const std::int32_t index : tapegraph::data::hashing_trick(text, 50, keras_hash)) std::printf(" %d", index);
        std::printf("\n");
    }
}
