#pragma once

#include <tapegraph/core/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Decoded images, checks that decoders omit, and resizing.

namespace tapegraph::data {

/// 8-bit RGB, [height, width, 3].
struct rgb_image {
    std::int64_t height = 0, width = 0;
    std::vector<std::uint8_t> pixels;
};

/// Decodes a whole PNG or JPEG file. Throws data_error with only the reason; the caller names the
/// file.
using image_decoder = rgb_image (*)(std::span<const std::uint8_t> file);

namespace detail {

constexpr std::array<std::uint32_t, 256> crc_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t n = 0; n < 256; ++n) {
        std::uint32_t c = n;
        for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
        table[n] = c;
    }
    return table;
}

/// CRC-32 of a PNG chunk: PNG specification, annex D.
inline std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) {
    static constexpr auto table = crc_table();
    std::uint32_t c = 0xFFFFFFFFu;
    for (const auto byte : bytes) c = table[(c ^ byte) & 0xFF] ^ (c >> 8);
    return c ^ 0xFFFFFFFFu;
}

inline std::uint32_t big_endian_32(std::span<const std::uint8_t> file, std::size_t at) {
    return std::uint32_t{file[at]} << 24 | std::uint32_t{file[at + 1]} << 16 | std::uint32_t{file[at + 2]} << 8 |
           std::uint32_t{file[at + 3]};
}

/// Checks that every chunk up to IEND is complete with a correct checksum, because stb_image
/// ignores checksums.
inline void check_png(std::span<const std::uint8_t> file) {
    for (std::size_t at = 8; at + 12 <= file.size();) {
        const std::size_t length = big_endian_32(file, at);
        if (length > file.size() - at - 12) throw data_error("truncated PNG");
        const std::string type(file.begin() + static_cast<std::ptrdiff_t>(at) + 4,
                               file.begin() + static_cast<std::ptrdiff_t>(at) + 8);
        if (crc32_of(file.subspan(at + 4, length + 4)) != big_endian_32(file, at + 8 + length)) {
            const bool letters = std::all_of(type.begin(), type.end(), [](char c) { return c >= 'A' && c <= 'z'; });
            throw data_error("corrupt PNG: wrong checksum in chunk " + (letters ? type : std::string("?")));
        }
        if (type == "IEND") return;
        at += 12 + length;
    }
    throw data_error("truncated PNG");
}

/// Checks the code counts of every Huffman table in a DHT segment: stb_image 2.27 writes past its
/// table if they add up to more than 256 (checked in later versions).
inline void check_jpeg_huffman(std::span<const std::uint8_t> tables) {
    while (!tables.empty()) {
        if (tables.size() < 17) throw data_error("corrupt JPEG: truncated Huffman table");
        std::size_t codes = 0;
        for (std::size_t bits = 1; bits <= 16; ++bits) codes += tables[bits];
        if (codes > 256 || codes + 17 > tables.size())
            throw data_error("corrupt JPEG: Huffman table of " + std::to_string(codes) + " codes");
        tables = tables.subspan(17 + codes);
    }
}

/// Checks that segments are complete and the end marker exists: stb_image silently fills the
/// missing part of a truncated JPEG with grey.
inline void check_jpeg(std::span<const std::uint8_t> file) {
    std::size_t at = 2;
    bool scanned = false; // after a start of scan, entropy-coded bytes follow between the segments
    while (at + 2 <= file.size()) {
        if (file[at] != 0xFF) {
            if (!scanned) throw data_error("corrupt JPEG: expected a marker at byte " + std::to_string(at));
            ++at;
            continue;
        }
        const std::uint8_t marker = file[at + 1];
        if (marker == 0xD9) return;
        if (marker == 0xFF) {
            ++at; // fill byte
        } else if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7)) {
            at += 2; // stuffed byte, restart: no length follows
        } else {
            if (at + 4 > file.size()) break;
            const std::size_t length = std::size_t{file[at + 2]} << 8 | file[at + 3];
            if (length < 2) throw data_error("corrupt JPEG: segment of " + std::to_string(length) + " bytes");
            if (marker == 0xC4 && length <= file.size() - at - 2) check_jpeg_huffman(file.subspan(at + 4, length - 2));
            scanned = scanned || marker == 0xDA;
            at += 2 + length;
        }
    }
    throw data_error("truncated JPEG");
}

/// Checks that must pass before a decoder reads the file.
inline void check_image_file(std::span<const std::uint8_t> file) {
    static constexpr std::array<std::uint8_t, 8> png{0x89, 'P', 'N', 'G', 0x0D, 0x0A, 0x1A, 0x0A};
    if (file.empty()) throw data_error("empty file");
    if (file.size() > std::size_t{1} << 30) throw data_error("larger than 1 GiB");
    if (file.size() >= 8 && std::equal(png.begin(), png.end(), file.begin())) return check_png(file);
    if (file.size() >= 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF) return check_jpeg(file);
    throw data_error("neither PNG nor JPEG");
}

/// One axis of a resize: output i is the sum over k of weights[i][k] * input[first[i] + k].
struct resize_axis {
    std::vector<std::int64_t> first;
    std::vector<std::vector<float>> weights;

    resize_axis(std::int64_t from, std::int64_t to) : first(static_cast<std::size_t>(to)), weights(first.size()) {
        const double scale = static_cast<double>(from) / static_cast<double>(to);
        for (std::size_t i = 0; i < first.size(); ++i) {
            if (to < from) {
                // Area: the mean over [i, i+1) * scale, with pixels at the ends weighted by the
                // part inside.
                const double low = static_cast<double>(i) * scale;
                const double high = std::min(low + scale, static_cast<double>(from));
                first[i] = static_cast<std::int64_t>(low);
                for (std::int64_t p = first[i]; p < from && static_cast<double>(p) < high; ++p) {
                    const auto pixel = static_cast<double>(p);
                    const double inside = std::min(high, pixel + 1) - std::max(low, pixel);
                    weights[i].push_back(static_cast<float>(inside / (high - low)));
                }
            } else {
                // Bilinear between pixel centres at p + 1/2, clamped at the borders.
                const double at =
                    std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, static_cast<double>(from - 1));
                first[i] = static_cast<std::int64_t>(at);
                const auto part = static_cast<float>(at - std::floor(at));
                weights[i].push_back(1 - part);
                if (part > 0) weights[i].push_back(part);
            }
        }
    }
};

} // namespace detail

/// Writes an image as floats in [0, 1] into `to`, [height, width, 3], resized if the sizes differ:
/// along each axis by area averaging if it shrinks, bilinearly if it grows.
inline void resize_image(const rgb_image& image, std::int64_t height, std::int64_t width, float* to) {
    constexpr float unit = 1.0f / 255.0f;
    if (image.height == height && image.width == width) {
        for (std::size_t i = 0; i < image.pixels.size(); ++i) to[i] = static_cast<float>(image.pixels[i]) * unit;
        return;
    }
    const detail::resize_axis rows(image.height, height), columns(image.width, width);
    std::vector<float> narrowed(static_cast<std::size_t>(image.height * width * 3)); // [image.height, width, 3]
    for (std::int64_t y = 0; y < image.height; ++y) {
        const std::uint8_t* row = image.pixels.data() + y * image.width * 3;
        float* out = narrowed.data() + y * width * 3;
        for (std::size_t x = 0; x < columns.first.size(); ++x)
            for (std::size_t k = 0; k < columns.weights[x].size(); ++k)
                for (std::size_t c = 0; c < 3; ++c)
                    out[x * 3 + c] += columns.weights[x][k] * unit *
                                      static_cast<float>(row[(static_cast<std::size_t>(columns.first[x]) + k) * 3 + c]);
    }
    const auto line = static_cast<std::size_t>(width * 3);
    std::fill_n(to, static_cast<std::size_t>(height) * line, 0.0f);
    for (std::size_t y = 0; y < rows.first.size(); ++y)
        for (std::size_t k = 0; k < rows.weights[y].size(); ++k) {
            const float* from = narrowed.data() + (static_cast<std::size_t>(rows.first[y]) + k) * line;
            for (std::size_t i = 0; i < line; ++i) to[y * line + i] += rows.weights[y][k] * from[i];
        }
    // Rounding of the weights must not exceed the documented range for a white pixel.
    for (std::size_t i = 0; i < static_cast<std::size_t>(height) * line; ++i) to[i] = std::min(to[i], 1.0f);
}

} // namespace tapegraph::data
