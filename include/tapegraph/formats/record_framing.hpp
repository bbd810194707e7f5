#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/crc32c.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// Records in the format of TFRecord and TensorBoard's event files, one after another, with
/// little-endian numbers:
///
///     u64 length | u32 masked CRC-32C of those eight bytes | data | u32 masked CRC-32C of the data

namespace tapegraph::io {

/// The bytes before a record's data, and after it.
inline constexpr std::size_t record_head_bytes = 12, record_tail_bytes = 4;

/// The position of a record in a file, for errors.
struct record_place {
    std::string_view file;    ///< its path
    std::uint64_t number = 0; ///< of the record, from 0
    std::uint64_t offset = 0; ///< of the record's first byte

    /// File, number and byte for messages.
    std::string text() const {
        return "'" + std::string(file) + "': record " + std::to_string(number) + " at byte " + std::to_string(offset);
    }
};

namespace detail {

inline void store_little(char* at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t k = 0; k < bytes; ++k) at[k] = static_cast<char>(value >> (8 * k));
}
inline std::uint64_t load_little(const void* from, std::size_t bytes) {
    const auto* const at = static_cast<const unsigned char*>(from);
    std::uint64_t value = 0;
    for (std::size_t k = 0; k < bytes; ++k) value |= std::uint64_t{at[k]} << (8 * k);
    return value;
}
inline std::string hexadecimal(std::uint64_t value) {
    std::string text(8, '0');
    for (std::size_t k = 8; k-- > 0; value >>= 4) text[k] = "0123456789abcdef"[value & 15];
    return "0x" + text;
}

} // namespace detail

/// Starts a record whose data is written straight into the buffer: the bytes appended between
/// open_record, which returns the record's position, and close_record are its data.
inline std::size_t open_record(std::string& buffer) {
    const std::size_t at = buffer.size();
    buffer.append(record_head_bytes, '\0');
    return at;
}
/// Fills in length and checksums of the record that begins at `at`.
inline void close_record(std::string& buffer, std::size_t at) {
    const std::size_t bytes = buffer.size() - at - record_head_bytes;
    char* const head = buffer.data() + at;
    detail::store_little(head, bytes, 8);
    detail::store_little(head + 8, masked_crc32c(crc32c(head, 8)), 4);
    char tail[record_tail_bytes];
    detail::store_little(tail, masked_crc32c(crc32c(head + record_head_bytes, bytes)), 4);
    buffer.append(tail, sizeof tail);
}

/// Appends one record with this data.
inline void append_record(std::string& buffer, std::string_view data) {
    const std::size_t at = open_record(buffer);
    buffer.append(data);
    close_record(buffer, at);
}

/// The size of a record's data, from its twelve bytes `head`. `left` is the number of bytes of the
/// file from the record's first byte on, so that a length which the file cannot hold is refused
/// before memory is allocated for it. Throws data_error that names the position.
inline std::uint64_t record_length(const void* head, std::uint64_t left, const record_place& place) {
    if (left < record_head_bytes + record_tail_bytes)
        throw data_error(place.text() + ": the file ends " + std::to_string(left) +
                         " bytes into it, and the smallest record has 16");
    const std::uint64_t length = detail::load_little(head, 8);
    const auto stored = static_cast<std::uint32_t>(detail::load_little(static_cast<const char*>(head) + 8, 4));
    if (const std::uint32_t actual = masked_crc32c(crc32c(head, 8)); actual != stored)
        throw data_error(place.text() + ": the checksum of its length is " + detail::hexadecimal(stored) + ", not " +
                         detail::hexadecimal(actual));
    if (length > left - record_head_bytes - record_tail_bytes)
        throw data_error(place.text() + ": it has " + std::to_string(length) + " bytes of data, and the file has " +
                         std::to_string(left - record_head_bytes) + " more");
    return length;
}

/// Checks data against the four bytes after it. Throws data_error that names the position.
inline void check_record(std::string_view data, const void* tail, const record_place& place) {
    const auto stored = static_cast<std::uint32_t>(detail::load_little(tail, 4));
    if (const std::uint32_t actual = masked_crc32c(crc32c(data)); actual != stored)
        throw data_error(place.text() + ": the checksum of its " + std::to_string(data.size()) + " bytes of data is " +
                         detail::hexadecimal(stored) + ", not " + detail::hexadecimal(actual));
}

/// The records of a file in memory, without copies:
///
///     io::record_cursor records(bytes, path);
///     for (std::string_view data; records.next(data);) ...
class record_cursor {
public:
    /// Both must outlive the cursor; `offset` is the position of the bytes in the file.
    record_cursor(std::string_view bytes, std::string_view file, std::uint64_t offset = 0)
        : bytes_(bytes), place_{file, 0, offset} {}

    /// Gets the next record's data, checked; returns false after the last one. Throws data_error
    /// for a damaged or incomplete one; the cursor then stays before it.
    bool next(std::string_view& data) {
        if (at_ == bytes_.size()) return false;
        const std::string_view rest = bytes_.substr(at_);
        const record_place here = place();
        const auto length = static_cast<std::size_t>(record_length(rest.data(), rest.size(), here));
        data = rest.substr(record_head_bytes, length);
        check_record(data, data.data() + data.size(), here);
        at_ += record_head_bytes + length + record_tail_bytes;
        ++place_.number;
        return true;
    }
    /// Whether the bytes end within the next record: the existing part of its length is valid, and
    /// the record longer. A file that is still being written may end like this.
    bool partial() const {
        const std::string_view rest = bytes_.substr(at_);
        if (rest.size() < record_head_bytes) return !rest.empty();
        const std::uint64_t length = detail::load_little(rest.data(), 8), there = rest.size() - record_head_bytes;
        return detail::load_little(rest.data() + 8, 4) == masked_crc32c(crc32c(rest.data(), 8)) &&
               (there < record_tail_bytes || there - record_tail_bytes < length);
    }
    /// The position of the next record.
    record_place place() const { return {place_.file, place_.number, place_.offset + at_}; }

private:
    std::string_view bytes_;
    std::size_t at_ = 0;
    record_place place_;
};

} // namespace tapegraph::io
