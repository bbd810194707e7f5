#pragma once

#include <tapegraph/core/error.hpp>

#if !__has_include(<zlib.h>)
#error "tapegraph/formats/inflate.hpp: needs zlib (Debian: zlib1g-dev; CMake: tapegraph::zlib)"
#endif
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Compresses and decompresses in memory by zlib: raw deflate as in zip archives, with zlib's frame
/// as in PNG, with gzip's as in .gz files.

namespace tapegraph::io {

/// What surrounds deflated bytes: nothing, zlib's frame (RFC 1950) or gzip's (RFC 1952).
enum class deflate_frame { raw, zlib, gzip };

namespace detail {

constexpr int window_bits(deflate_frame frame) {
    return frame == deflate_frame::raw ? -15 : frame == deflate_frame::zlib ? 15 : 15 + 16;
}

/// The maximum decompressed size: 258 bytes per two bits, and the header.
constexpr std::uint64_t most_inflated(std::uint64_t compressed) {
    return compressed > (std::uint64_t{1} << 50) ? ~std::uint64_t{0} : compressed * 1032 + 1032;
}

class inflater {
public:
    inflater(deflate_frame frame, const std::string& what) : what_(what) {
        if (inflateInit2(&stream_, window_bits(frame)) != Z_OK) throw data_error(what_ + ": zlib is out of memory");
    }
    inflater(const inflater&) = delete;
    inflater& operator=(const inflater&) = delete;
    ~inflater() { inflateEnd(&stream_); }

    /// Gives zlib more input, which the caller keeps until it is consumed.
    void feed(const std::byte* data, std::size_t bytes) {
        stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data));
        stream_.avail_in = static_cast<uInt>(bytes);
    }
    std::size_t unread() const { return stream_.avail_in; }
    bool ended() const { return ended_; }
    /// Starts another member of a gzip file.
    void again() {
        inflateReset(&stream_);
        ended_ = false;
    }
    /// Decompresses up to `bytes` bytes, fewer if the input is consumed or the data end. Throws
    /// data_error if they are corrupt.
    std::size_t take(std::byte* to, std::size_t bytes) {
        const auto part = static_cast<uInt>(std::min<std::size_t>(bytes, 1u << 30));
        stream_.next_out = reinterpret_cast<Bytef*>(to);
        stream_.avail_out = part;
        const int code = ::inflate(&stream_, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            ended_ = true;
        else if (code != Z_OK && code != Z_BUF_ERROR)
            throw data_error(what_ + ": corrupt deflate data: " +
                             (stream_.msg != nullptr ? stream_.msg : "zlib says " + std::to_string(code)));
        return part - stream_.avail_out;
    }

private:
    const std::string& what_;
    z_stream stream_{};
    bool ended_ = false;
};

} // namespace detail

/// Decompresses all of `compressed`, to at most `limit` bytes; several gzip members are
/// concatenated. `what` is its name in errors. Throws data_error if the data are corrupt, end too
/// early, continue after their end, or exceed the limit. The allocation grows with the data read,
/// whatever a header says.
inline std::vector<std::byte> inflate_bytes(std::span<const std::byte> compressed, deflate_frame frame,
                                            std::uint64_t limit, const std::string& what) {
    detail::inflater stream(frame, what);
    std::vector<std::byte> result;
    std::size_t done = 0;
    std::byte beyond{}; // for a byte beyond the limit, which must not exist
    for (;;) {
        if (stream.unread() == 0 && !compressed.empty()) {
            const std::size_t part = std::min<std::size_t>(compressed.size(), 1u << 30);
            stream.feed(compressed.data(), part);
            compressed = compressed.subspan(part);
        }
        if (done == result.size() && done < limit)
            result.resize(static_cast<std::size_t>(
                std::min<std::uint64_t>(limit, std::max<std::uint64_t>(1u << 14, std::uint64_t{done} * 2))));
        const bool full = done == result.size();
        const std::size_t got =
            full ? stream.take(&beyond, 1) : stream.take(result.data() + done, result.size() - done);
        if (full && got > 0) throw data_error(what + ": inflates to more than " + std::to_string(limit) + " bytes");
        done += got;
        const bool more = stream.unread() > 0 || !compressed.empty();
        if (stream.ended()) {
            if (!more) break;
            if (frame != deflate_frame::gzip) throw data_error(what + ": bytes after the end of the deflate data");
            stream.again();
        } else if (got == 0 && !more) {
            throw data_error(what + ": truncated deflate data");
        }
    }
    result.resize(done);
    return result;
}

/// Compresses; level 0 (store) to 9 (smallest), 6 is zlib's default. The bytes are reproducible
/// with one version of zlib.
inline std::vector<std::byte> deflate_bytes(std::span<const std::byte> data, deflate_frame frame, int level = 6) {
    if (level < 0 || level > 9) throw argument_error("deflate: level must be 0 to 9, got " + std::to_string(level));
    z_stream stream{};
    if (deflateInit2(&stream, level, Z_DEFLATED, detail::window_bits(frame), 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw data_error("deflate: zlib is out of memory");
    struct guard {
        z_stream* of;
        ~guard() { deflateEnd(of); }
    } const ended{&stream};
    std::vector<std::byte> result(64);
    std::size_t done = 0;
    for (int code = Z_OK; code != Z_STREAM_END;) {
        if (stream.avail_in == 0 && !data.empty()) {
            const std::size_t part = std::min<std::size_t>(data.size(), 1u << 30);
            stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
            stream.avail_in = static_cast<uInt>(part);
            data = data.subspan(part);
        }
        if (done == result.size()) result.resize(done + done / 2 + 64);
        const auto room = static_cast<uInt>(std::min<std::size_t>(result.size() - done, 1u << 30));
        stream.next_out = reinterpret_cast<Bytef*>(result.data() + done);
        stream.avail_out = room;
        code = ::deflate(&stream, data.empty() ? Z_FINISH : Z_NO_FLUSH);
        if (code == Z_STREAM_ERROR) throw data_error("deflate: zlib failed");
        done += room - stream.avail_out;
    }
    result.resize(done);
    return result;
}

/// CRC-32 as in zip, gzip and PNG.
inline std::uint32_t crc32_of(std::span<const std::byte> data) {
    uLong crc = ::crc32(0, nullptr, 0);
    while (!data.empty()) {
        const std::size_t part = std::min<std::size_t>(data.size(), 1u << 30);
        crc = ::crc32(crc, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(part));
        data = data.subspan(part);
    }
    return static_cast<std::uint32_t>(crc);
}

} // namespace tapegraph::io
