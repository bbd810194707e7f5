#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/utf8.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The central directory of a zip archive, which is at its end and locates the members (APPNOTE.TXT
/// 6.3, sections 4.3 and 4.5). Local headers need not be correct: PyTorch's have no sizes.

namespace tapegraph::io {

/// A file in a zip archive.
struct zip_member {
    std::string name;
    std::uint64_t size = 0;       ///< size of its content
    std::uint64_t compressed = 0; ///< size in the archive
    std::uint64_t offset = 0;     ///< of its local header
    std::uint64_t end = 0;        ///< start of the next member, or of the directory
    std::uint32_t crc = 0;
    std::uint16_t method = 0; ///< 0: stored, 8: deflated; others are listed and not read
};

namespace detail {

/// Reads little-endian numbers at a position that the caller has checked.
template <class Number>
Number little_endian(const std::byte* at) {
    Number value = 0;
    for (std::size_t i = sizeof(Number); i-- > 0;) value = static_cast<Number>(value << 8 | static_cast<Number>(at[i]));
    return value;
}

constexpr std::uint32_t zip_local_mark = 0x04034B50, zip_central_mark = 0x02014B50, zip_end_mark = 0x06054B50,
                        zip64_end_mark = 0x06064B50, zip64_locator_mark = 0x07064B50;
constexpr std::uint32_t saturated = 0xFFFFFFFFu; // "see the 64-bit field"

/// Text of a file for a message: printable, and truncated.
inline std::string shown_name(std::string_view name) {
    std::string text;
    for (const char c : name.substr(0, 80)) text += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
    return "'" + text + (name.size() > 80 ? "...'" : "'");
}

/// Why a name cannot be one of a member; empty for a valid one. Nothing here writes members to
/// disk, but users may use the listed names.
inline std::string objection_to_name(std::string_view name) {
    if (name.empty()) return "is empty";
    if (utf8_prefix(name) != name.size()) return "is not UTF-8";
    for (const char c : name)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\')
            return "holds a control character or a backslash";
    if (name.front() == '/') return "begins with '/'";
    for (std::size_t begin = 0; begin <= name.size();) {
        const std::size_t end = std::min(name.find('/', begin), name.size());
        if (name.substr(begin, end - begin) == "..") return "holds '..'";
        begin = end + 1;
    }
    return {};
}

/// The position of the directory.
struct zip_directory_place {
    std::uint64_t offset = 0, bytes = 0, members = 0;
};

/// Reads from the archive: `read(offset, bytes)` returns exactly these bytes of the file, or
/// throws.
template <class Read>
zip_directory_place find_zip_directory(const Read& read, std::uint64_t file_bytes, const std::string& file) {
    constexpr std::uint64_t end_bytes = 22, locator_bytes = 20;
    if (file_bytes < end_bytes)
        throw data_error(file + ": not a zip archive: " + std::to_string(file_bytes) + " bytes");
    const std::uint64_t tail_bytes = std::min<std::uint64_t>(file_bytes, end_bytes + 0xFFFF + locator_bytes);
    const std::vector<std::byte> tail = read(file_bytes - tail_bytes, tail_bytes);
    std::uint64_t at = tail_bytes - end_bytes + 1;
    const auto u16 = [&](std::uint64_t where) { return little_endian<std::uint16_t>(tail.data() + where); };
    const auto u32 = [&](std::uint64_t where) { return little_endian<std::uint32_t>(tail.data() + where); };
    do { // finds the last mark whose comment ends with the file
        if (at == 0)
            throw data_error(file + ": not a zip archive, or a truncated one: the end of its directory is missing");
        --at;
    } while (u32(at) != zip_end_mark || u16(at + 20) != tail_bytes - at - end_bytes);
    if (u16(at + 4) != 0 && u16(at + 4) != 0xFFFF) throw data_error(file + ": one part of a zip archive of several");
    zip_directory_place place{u32(at + 16), u32(at + 12), u16(at + 10)};
    std::uint64_t end = file_bytes - tail_bytes + at;
    // PyTorch writes the 64-bit record whether the fields need it or not.
    if (at >= locator_bytes && u32(at - locator_bytes) == zip64_locator_mark) {
        const auto where = little_endian<std::uint64_t>(tail.data() + at - locator_bytes + 8);
        constexpr std::uint64_t record_bytes = 56;
        if (end < locator_bytes + record_bytes || where > end - locator_bytes - record_bytes)
            throw data_error(file + ": the ZIP64 end of the directory should be at byte " + std::to_string(where) +
                             " of " + std::to_string(file_bytes));
        const std::vector<std::byte> record = read(where, record_bytes);
        if (little_endian<std::uint32_t>(record.data()) != zip64_end_mark)
            throw data_error(file + ": no ZIP64 end of the directory at byte " + std::to_string(where));
        place = {little_endian<std::uint64_t>(record.data() + 48), little_endian<std::uint64_t>(record.data() + 40),
                 little_endian<std::uint64_t>(record.data() + 32)};
        end = where;
    } else if (place.offset == saturated || place.bytes == saturated) {
        throw data_error(file + ": the ZIP64 end of the directory is missing");
    }
    if (place.offset > end || place.bytes != end - place.offset)
        throw data_error(file + ": a directory of " + std::to_string(place.bytes) + " bytes at byte " +
                         std::to_string(place.offset) + " does not end at byte " + std::to_string(end));
    if (place.members > place.bytes / 46)
        throw data_error(file + ": " + std::to_string(place.members) + " members in a directory of " +
                         std::to_string(place.bytes) + " bytes");
    return place;
}

/// Reads the 64-bit fields for saturated ones of the three, from the member's extra fields.
inline void read_zip64_field(std::span<const std::byte> extra, zip_member& member, const std::string& what) {
    const std::array<std::uint64_t*, 3> fields{&member.size, &member.compressed, &member.offset};
    if (std::none_of(fields.begin(), fields.end(), [](const auto* field) { return *field == saturated; })) return;
    while (extra.size() >= 4) {
        const auto kind = little_endian<std::uint16_t>(extra.data());
        const std::size_t bytes = little_endian<std::uint16_t>(extra.data() + 2);
        if (bytes > extra.size() - 4) break;
        if (kind == 1) {
            std::span<const std::byte> values = extra.subspan(4, bytes);
            for (auto* const field : fields) {
                if (*field != saturated) continue;
                if (values.size() < 8) throw data_error(what + ": its ZIP64 field is too short");
                *field = little_endian<std::uint64_t>(values.data());
                values = values.subspan(8);
            }
            return;
        }
        extra = extra.subspan(4 + bytes);
    }
    throw data_error(what + ": its ZIP64 field is missing");
}

/// Members in the order of the directory, without folders. Throws data_error for members that are
/// encrypted, duplicate, overlapping, or have an invalid name or size.
inline std::vector<zip_member> parse_zip_directory(std::span<const std::byte> directory,
                                                   const zip_directory_place& place, const std::string& file) {
    constexpr std::size_t fixed = 46, local = 30;
    std::vector<zip_member> members;
    std::vector<std::pair<std::uint64_t, std::size_t>> order; // offset and index
    std::size_t at = 0;
    for (std::uint64_t count = 0; count < place.members; ++count) {
        const std::string record = file + ", directory entry " + std::to_string(count);
        const std::byte* const entry = directory.data() + at;
        if (directory.size() - at < fixed || little_endian<std::uint32_t>(entry) != zip_central_mark)
            throw data_error(record + ": there is none at byte " + std::to_string(place.offset + at));
        const std::size_t name_bytes = little_endian<std::uint16_t>(entry + 28);
        const std::size_t extra_bytes = little_endian<std::uint16_t>(entry + 30);
        const std::size_t bytes = fixed + name_bytes + extra_bytes + little_endian<std::uint16_t>(entry + 32);
        if (bytes > directory.size() - at) throw data_error(record + ": truncated");
        zip_member member;
        member.name.assign(reinterpret_cast<const char*>(entry + fixed), name_bytes);
        const std::string what = file + ", member " + shown_name(member.name);
        if (const std::string objection = objection_to_name(member.name); !objection.empty())
            throw data_error(record + ": the name " + shown_name(member.name) + " " + objection);
        const auto flags = little_endian<std::uint16_t>(entry + 8);
        if ((flags & 0x2041) != 0) throw data_error(what + ": is encrypted");
        member.method = little_endian<std::uint16_t>(entry + 10);
        member.crc = little_endian<std::uint32_t>(entry + 16);
        member.compressed = little_endian<std::uint32_t>(entry + 20);
        member.size = little_endian<std::uint32_t>(entry + 24);
        member.offset = little_endian<std::uint32_t>(entry + 42);
        read_zip64_field(directory.subspan(at + fixed + name_bytes, extra_bytes), member, what);
        if (member.offset > place.offset || place.offset - member.offset < local + name_bytes ||
            member.compressed > place.offset - member.offset - local - name_bytes)
            throw data_error(what + ": " + std::to_string(member.compressed) + " bytes at byte " +
                             std::to_string(member.offset) + " reach beyond byte " + std::to_string(place.offset) +
                             ", where the directory begins");
        if (member.method == 0 && member.size != member.compressed)
            throw data_error(what + ": is stored, " + std::to_string(member.size) + " bytes as " +
                             std::to_string(member.compressed));
        order.emplace_back(member.offset, members.size());
        members.push_back(std::move(member));
        at += bytes;
    }
    if (at != directory.size())
        throw data_error(file + ": " + std::to_string(directory.size() - at) + " bytes after the last directory entry");

    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
        zip_member& member = members[order[i].second];
        member.end = i + 1 < order.size() ? order[i + 1].first : place.offset;
        if (member.end - member.offset < local + member.name.size() + member.compressed)
            throw data_error(file + ", member " + shown_name(member.name) + ": overlaps member " +
                             shown_name(members[order[i + 1].second].name));
    }
    std::vector<const std::string*> names;
    for (const zip_member& member : members) names.push_back(&member.name);
    std::sort(names.begin(), names.end(), [](const auto* left, const auto* right) { return *left < *right; });
    for (std::size_t i = 1; i < names.size(); ++i)
        if (*names[i] == *names[i - 1]) throw data_error(file + ": two members are named " + shown_name(*names[i]));
    std::erase_if(members, [](const zip_member& member) { return member.name.back() == '/'; });
    return members;
}

} // namespace detail
} // namespace tapegraph::io
