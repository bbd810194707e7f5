#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/crc32c.hpp>
#include <tapegraph/formats/inflate.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Compression of whole TFRecord files, like tf.io.TFRecordOptions.

namespace tapegraph::data {

/// How a file of records is compressed as a whole.
enum class record_compression : std::uint8_t { automatic, none, gzip, zlib };

namespace detail {

/// Detects compression by the start of a file. The first record's length has a checksum of its own:
/// if that is correct, the file is not compressed.
inline record_compression compression_of(std::string_view start) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(start[i])); };
    if (start.size() >= 12) {
        const std::uint32_t stored = byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
        if (io::masked_crc32c(io::crc32c(start.substr(0, 8))) == stored) return record_compression::none;
    }
    if (start.size() >= 2 && byte(0) == 0x1F && byte(1) == 0x8B) return record_compression::gzip;
    if (start.size() >= 2 && (byte(0) & 15) == 8 && (byte(0) >> 4) <= 7 && (byte(0) * 256 + byte(1)) % 31 == 0)
        return record_compression::zlib;
    return record_compression::none;
}

/// Compresses a stream, piece by piece.
class record_deflate {
public:
    explicit record_deflate(record_compression kind)
        : used_(kind == record_compression::gzip || kind == record_compression::zlib) {
        if (used_ && deflateInit2(&state_, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                  kind == record_compression::gzip ? 15 + 16 : 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            throw data_error("zlib cannot be started");
    }
    record_deflate(const record_deflate&) = delete;
    record_deflate& operator=(const record_deflate&) = delete;
    ~record_deflate() {
        if (used_) deflateEnd(&state_);
    }

    bool used() const { return used_; }
    /// Compresses bytes and appends the result to `out`; the last piece ends the stream.
    void add(std::string_view bytes, bool last, std::string& out) {
        state_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        state_.avail_in = static_cast<uInt>(bytes.size()); // pieces are of a buffer, or one larger record
        char part[1 << 14];
        do {
            state_.next_out = reinterpret_cast<Bytef*>(part);
            state_.avail_out = sizeof part;
            deflate(&state_, last ? Z_FINISH : Z_NO_FLUSH);
            out.append(part, sizeof part - state_.avail_out);
        } while (state_.avail_out == 0);
    }

private:
    z_stream state_{};
    bool used_;
};

} // namespace detail

} // namespace tapegraph::data
