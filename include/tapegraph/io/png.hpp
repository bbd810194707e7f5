#pragma once

#include <tapegraph/core/error.hpp>

#if !__has_include(<zlib.h>)
#error "tapegraph/io/png.hpp: needs zlib (Debian: zlib1g-dev; CMake: tapegraph::zlib)"
#endif
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Writes images as PNG (ISO/IEC 15948): 8 bits per channel, not interlaced. Needs zlib.

namespace tapegraph::io {

namespace detail {

inline void append_big(std::string& out, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

/// Length, kind, data, and the CRC of the latter two.
inline void append_png_chunk(std::string& out, const char (&kind)[5], std::string_view data) {
    append_big(out, static_cast<std::uint32_t>(data.size()));
    const std::size_t begin = out.size();
    out.append(kind, 4).append(data);
    append_big(out, static_cast<std::uint32_t>(
                        ::crc32_z(0, reinterpret_cast<const Bytef*>(out.data() + begin), out.size() - begin)));
}

/// The value closest to left + up - corner: left, up or corner, in this order for ties.
inline int paeth(int left, int up, int corner) {
    const int to_left = std::abs(up - corner), to_up = std::abs(left - corner),
              to_corner = std::abs(left + up - 2 * corner);
    return to_left <= to_up && to_left <= to_corner ? left : to_up <= to_corner ? up : corner;
}

/// Filters a row by the filter (0 none, 1 left, 2 up, 3 mean, 4 Paeth) whose bytes, as signed
/// numbers, have the smallest sum of absolute values, as the standard recommends. `up` is empty
/// above the first row.
template <class = void>
void append_png_row(std::vector<std::uint8_t>& out, std::span<const std::uint8_t> row, std::span<const std::uint8_t> up,
                    std::size_t pixel, std::array<std::vector<std::uint8_t>, 5>& tried) {
    std::size_t best = 0;
    std::uint64_t least = ~std::uint64_t{0};
    for (std::size_t filter = 0; filter < 5; ++filter) {
        std::vector<std::uint8_t>& t = tried[filter];
        t.resize(row.size());
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const int a = i >= pixel ? row[i - pixel] : 0, b = up.empty() ? 0 : up[i];
            const int c = i >= pixel && !up.empty() ? up[i - pixel] : 0;
            const int guess = filter == 0   ? 0
                              : filter == 1 ? a
                              : filter == 2 ? b
                              : filter == 3 ? (a + b) / 2
                                            : paeth(a, b, c);
            t[i] = static_cast<std::uint8_t>(row[i] - guess);
            sum += static_cast<std::uint64_t>(std::abs(static_cast<int>(static_cast<std::int8_t>(t[i]))));
        }
        if (sum < least) least = sum, best = filter;
    }
    out.push_back(static_cast<std::uint8_t>(best));
    out.insert(out.end(), tried[best].begin(), tried[best].end());
}

} // namespace detail

/// An image [height, width, channels] as the bytes of a PNG file; 1 channel is gray, 2 gray and
/// alpha, 3 RGB, 4 RGBA. `level` is zlib's, 0 (stored) to 9. The bytes are reproducible with the
/// same zlib. Throws argument_error for an invalid image.
template <class = void>
std::string encode_png(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width,
                       std::int64_t channels, int level = 6) {
    const auto refuse = [](const std::string& what) -> void { throw argument_error("encode_png: " + what); };
    const std::string extents =
        "[" + std::to_string(height) + ", " + std::to_string(width) + ", " + std::to_string(channels) + "]";
    if (channels < 1 || channels > 4)
        refuse("a picture " + extents + " has " + std::to_string(channels) + " channels, not 1 to 4");
    constexpr std::int64_t most = 0x7fffffff;
    if (height < 1 || width < 1 || height > most || width > most)
        refuse("a picture " + extents + " has no pixels, or too many");
    const std::size_t stride = static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
    if (pixels.size() / stride != static_cast<std::size_t>(height) || pixels.size() % stride != 0)
        refuse(std::to_string(pixels.size()) + " bytes for a picture " + extents);
    if (level < 0 || level > 9) refuse("level " + std::to_string(level) + " is not 0 to 9");

    std::string out("\x89PNG\r\n\x1a\n", 8), head;
    detail::append_big(head, static_cast<std::uint32_t>(width));
    detail::append_big(head, static_cast<std::uint32_t>(height));
    constexpr char kinds[] = {0, 4, 2, 6};
    head.append({8, kinds[channels - 1], 0, 0, 0}); // bit depth, colour type; deflate, filters by row, not interlaced
    detail::append_png_chunk(out, "IHDR", head);

    struct deflater {
        z_stream stream{};
        explicit deflater(int how_much) {
            if (deflateInit(&stream, how_much) != Z_OK) throw error("encode_png: zlib gives no memory");
        }
        deflater(const deflater&) = delete;
        deflater& operator=(const deflater&) = delete;
        ~deflater() { deflateEnd(&stream); }
    } zip(level);
    std::array<std::vector<std::uint8_t>, 5> tried;
    std::vector<std::uint8_t> row;
    std::string packed;
    std::array<char, 1 << 15> part;
    for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
        row.clear();
        detail::append_png_row(row, pixels.subspan(y * stride, stride),
                               y > 0 ? pixels.subspan((y - 1) * stride, stride) : pixels.first(0),
                               static_cast<std::size_t>(channels), tried);
        const bool last = y + 1 == static_cast<std::size_t>(height);
        // zlib counts in 32 bits, as do chunks.
        for (std::size_t at = 0; at < row.size();) {
            const std::size_t count = std::min<std::size_t>(row.size() - at, 1 << 30);
            zip.stream.next_in = row.data() + at;
            zip.stream.avail_in = static_cast<uInt>(count);
            at += count;
            const bool finish = last && at == row.size();
            do {
                zip.stream.next_out = reinterpret_cast<Bytef*>(part.data());
                zip.stream.avail_out = static_cast<uInt>(part.size());
                deflate(&zip.stream, finish ? Z_FINISH : Z_NO_FLUSH);
                packed.append(part.data(), part.size() - zip.stream.avail_out);
                if (packed.size() >= (std::size_t{1} << 30)) {
                    detail::append_png_chunk(out, "IDAT", packed);
                    packed.clear();
                }
            } while (zip.stream.avail_out == 0);
        }
    }
    if (!packed.empty()) detail::append_png_chunk(out, "IDAT", packed);
    detail::append_png_chunk(out, "IEND", {});
    return out;
}

} // namespace tapegraph::io
