#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Tiny PNG files, written with zlib and without the library's code.

namespace support {

inline std::string big_endian(std::uint32_t value) {
    return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
            static_cast<char>(value)};
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
    const std::string body = type + data;
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(static_cast<std::uint32_t>(crc));
}

/// A PNG of `samples`, [height, width, channels], where channels is 1 (grey), 2 (grey and alpha), 3 or 4.
inline std::string png_file(unsigned height, unsigned width, unsigned channels,
                            const std::vector<std::uint8_t>& samples) {
    static constexpr char colour_type[5] = {0, 0, 4, 2, 6};
    std::string rows;
    for (unsigned y = 0; y < height; ++y) {
        rows += '\0'; // filter: none
        for (unsigned i = 0; i < width * channels; ++i) rows += static_cast<char>(samples[y * width * channels + i]);
    }
    uLongf size = compressBound(rows.size());
    std::string packed(size, '\0');
    compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size(),
              0);
    packed.resize(size);
    std::string header = big_endian(width) + big_endian(height);
    header += '\x08';
    header += colour_type[channels];
    header += std::string(3, '\0');
    return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

/// The bytes as a .gz file.
inline std::string gzip(const std::string& bytes) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

} // namespace support
