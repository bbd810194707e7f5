#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Damage as it happens to files, and as somebody who means harm does it: bits, bytes and words, pieces cut, doubled and mixed.

namespace damaged {

class numbers {
public:
    explicit numbers(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
    std::uint64_t next() { // splitmix64
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(next() % count); }

private:
    std::uint64_t state_;
};

inline void damage_once(std::string& bytes, const std::vector<std::string>& sound, numbers& random) {
    // Lengths and counts that a reader might believe.
    static constexpr std::uint64_t lengths[15] = {0,      1,          0x7F,       0xFF,       0x7FFF,
                                                  0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFFFFFFFFFF,
                                                  ~0ull,  1ull << 40, 1ull << 62, 0xFFFFFFF0, 0x100000000};
    const std::size_t at = random.below(bytes.size());
    switch (random.below(9)) {
    case 0: // one bit
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
    case 1: // one byte
        if (!bytes.empty()) bytes[at] = static_cast<char>(random.next());
        break;
    case 2: // cut off
        bytes.resize(random.below(bytes.size() + 1));
        break;
    case 3: { // a piece is missing
        bytes.erase(at, 1 + random.below(random.below(2) ? 8 : bytes.size()));
        break;
    }
    case 4: { // a piece twice
        const std::string piece = bytes.substr(at, 1 + random.below(random.below(2) ? 8 : 64));
        bytes.insert(random.below(bytes.size() + 1), piece);
        break;
    }
    case 5: { // bytes that were not there
        std::string piece(1 + random.below(16), '\0');
        for (char& c : piece) c = static_cast<char>(random.next());
        bytes.insert(random.below(bytes.size() + 1), piece);
        break;
    }
    case 6: { // a number, of 1 to 8 bytes in either order
        const std::uint64_t value = lengths[random.below(std::size(lengths))] + random.below(3) - 1;
        const std::size_t width = std::size_t(1) << random.below(4);
        const bool little = random.below(4) != 0;
        for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
            bytes[at + i] = static_cast<char>(value >> (8 * (little ? i : width - 1 - i)));
        break;
    }
    case 7: { // a digit of a number in text
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            char& c = bytes[(at + i) % bytes.size()];
            if (c < '0' || c > '9') continue;
            c = static_cast<char>('0' + random.below(10));
            if (random.below(3) == 0) bytes.insert((at + i) % bytes.size(), "9999999999", 1 + random.below(10));
            break;
        }
        break;
    }
    default: { // the rest of another file
        const std::string& other = sound[random.below(sound.size())];
        bytes.resize(at);
        bytes += other.substr(random.below(other.size() + 1));
    }
    }
}

/// One of the files with one to four damages, the same for the same seed.
inline std::string mutate(const std::vector<std::string>& sound, std::uint64_t seed) {
    numbers random(seed);
    std::string bytes = sound[random.below(sound.size())];
    const std::size_t times = 1 + random.below(4);
    for (std::size_t i = 0; i < times; ++i) damage_once(bytes, sound, random);
    return bytes;
}

} // namespace damaged
