#pragma once

#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/inflate.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/zip_directory.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Zip archives: members by name, stored or deflated, of any size (ZIP64). .npz, PyTorch's .pt and
/// Keras's .keras are such archives. Format:
/// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT

namespace tapegraph::io {

/// Reads an archive. Its content is not trusted: sizes, names, checksums and that no two members
/// share bytes are checked against the file before anything is allocated.
class zip_reader {
public:
    /// Reads the directory. Throws data_error naming the file if it is missing, not a zip archive,
    /// truncated or corrupt.
    explicit zip_reader(const files::path& path) : name_(detail::quoted(path)), in_(path) {
        const auto read = [&](std::uint64_t offset, std::uint64_t count) { return range(offset, count); };
        const auto place = detail::find_zip_directory(read, in_.size(), name_);
        members_ = detail::parse_zip_directory(read(place.offset, place.bytes), place, name_);
    }

    /// The archive in quotes, for messages.
    const std::string& name() const { return name_; }
    /// Excludes folders, in the order of the directory.
    const std::vector<zip_member>& members() const { return members_; }
    /// Returns null where there is none.
    const zip_member* find(std::string_view name) const {
        for (const zip_member& member : members_)
            if (member.name == name) return &member;
        return nullptr;
    }
    /// The member of a name; throws data_error if there is none.
    const zip_member& at(std::string_view name) const {
        if (const zip_member* const found = find(name)) return *found;
        throw data_error(name_ + ": no member " + detail::shown_name(name));
    }

    /// The content of a member. Throws data_error naming archive and member if it is larger than
    /// `limit`, corrupt, has another checksum, or another compression method than deflate.
    std::vector<std::byte> read(const zip_member& member, std::uint64_t limit = std::uint64_t{1} << 40) const {
        const std::string what = name_ + ", member " + detail::shown_name(member.name);
        if (member.method != 0 && member.method != 8)
            throw data_error(what + ": packed by method " + std::to_string(member.method) +
                             ", only stored (0) and deflated (8) ones are read");
        if (member.size > limit)
            throw data_error(what + ": " + std::to_string(member.size) + " bytes, more than " + std::to_string(limit));
        if (member.method == 8 && member.size > detail::most_inflated(member.compressed))
            throw data_error(what + ": " + std::to_string(member.compressed) + " bytes cannot inflate to " +
                             std::to_string(member.size));
        const std::uint64_t begin = data_of(member, what);
        std::vector<std::byte> bytes = range(begin, member.compressed);
        if (member.method == 8) bytes = inflate_bytes(bytes, deflate_frame::raw, member.size, what);
        if (bytes.size() != member.size)
            throw data_error(what + ": inflates to " + std::to_string(bytes.size()) + " bytes, the directory says " +
                             std::to_string(member.size));
        if (crc32_of(bytes) != member.crc) throw data_error(what + ": wrong checksum");
        return bytes;
    }
    std::vector<std::byte> read(std::string_view name, std::uint64_t limit = std::uint64_t{1} << 40) const {
        return read(at(name), limit);
    }

private:
    std::vector<std::byte> range(std::uint64_t offset, std::uint64_t bytes) const {
        std::vector<std::byte> result(bytes);
        in_.read(result.data(), result.size(), offset);
        return result;
    }
    // The offset of its data: the local header has its own name and fields.
    std::uint64_t data_of(const zip_member& member, const std::string& what) const {
        constexpr std::uint64_t fixed = 30;
        const std::vector<std::byte> head = range(member.offset, fixed + member.name.size());
        const std::string_view name(reinterpret_cast<const char*>(head.data()) + fixed, member.name.size());
        const std::uint64_t begin =
            member.offset + fixed + member.name.size() + detail::little_endian<std::uint16_t>(head.data() + 28);
        if (detail::little_endian<std::uint32_t>(head.data()) != detail::zip_local_mark || name != member.name ||
            detail::little_endian<std::uint16_t>(head.data() + 26) != member.name.size() ||
            detail::little_endian<std::uint16_t>(head.data() + 8) != member.method)
            throw data_error(what + ": its header at byte " + std::to_string(member.offset) +
                             " is not what the directory says");
        if (begin > member.end || member.end - begin < member.compressed)
            throw data_error(what + ": reaches into what follows at byte " + std::to_string(member.end));
        return begin;
    }

    std::string name_;
    input_file in_;
    std::vector<zip_member> members_;
};

/// Options of `zip_writer`.
struct zip_options {
    int level = 0;                         ///< 0: members are stored; 1 to 9: deflated, unless that is not smaller
    std::uint64_t zip64_from = 0xFFFFFFFF; ///< sizes and offsets from this on get the 64-bit fields of ZIP64
};

/// Writes an archive. It appears under its name when committed, complete; the same members give the
/// same bytes (no times).
class zip_writer {
public:
    explicit zip_writer(const files::path& path, const zip_options& options = {})
        : operation_("zip " + detail::quoted(path)), options_(options), out_(path) {}

    /// Appends a member. Throws argument_error for a duplicate or invalid name, data_error on
    /// failure.
    void add(const std::string& name, std::span<const std::byte> data) {
        const std::string objection = detail::objection_to_name(name);
        if (!objection.empty() || name.size() > 0xFFFF || name.back() == '/')
            throw argument_error(operation_ + ": the name " + detail::shown_name(name) + " " +
                                 (objection.empty() ? "is too long or a folder's" : objection));
        if (!names_.insert(name).second)
            throw argument_error(operation_ + ": two members are named " + detail::shown_name(name));
        zip_member member{
            .name = name, .size = data.size(), .compressed = data.size(), .offset = at_, .crc = crc32_of(data)};
        std::vector<std::byte> packed;
        if (options_.level > 0) packed = deflate_bytes(data, deflate_frame::raw, options_.level);
        if (options_.level > 0 && packed.size() < data.size()) {
            member.method = 8;
            member.compressed = packed.size();
            data = packed;
        }
        const bool large = member.size >= options_.zip64_from || member.compressed >= options_.zip64_from;
        std::string head;
        number(head, detail::zip_local_mark, 4);
        common_fields(head, member, large, large ? 20 : 0);
        head += name;
        if (large) {
            number(head, 1, 2), number(head, 16, 2);
            number(head, member.size, 8), number(head, member.compressed, 8);
        }
        write(head.data(), head.size());
        write(data.data(), data.size());
        members_.push_back(std::move(member));
    }
    void add(const std::string& name, std::string_view text) {
        add(name, std::as_bytes(std::span(text.data(), text.size())));
    }

    /// Writes the directory and gives the archive its name.
    void commit() {
        const std::uint64_t begin = at_;
        for (const zip_member& member : members_) write_entry(member);
        const std::uint64_t bytes = at_ - begin, limit = options_.zip64_from;
        std::string end;
        if (members_.size() >= 0xFFFF || begin >= limit || bytes >= limit) {
            number(end, detail::zip64_end_mark, 4), number(end, 44, 8), number(end, 45, 2), number(end, 45, 2);
            number(end, 0, 8), number(end, members_.size(), 8), number(end, members_.size(), 8);
            number(end, bytes, 8), number(end, begin, 8);
            number(end, detail::zip64_locator_mark, 4), number(end, 0, 4), number(end, begin + bytes, 8),
                number(end, 1, 4);
        }
        const std::uint64_t count = members_.size() >= 0xFFFF || !end.empty() ? 0xFFFF : members_.size();
        const auto field = [&](std::uint64_t value) { number(end, value >= limit ? detail::saturated : value, 4); };
        number(end, detail::zip_end_mark, 4), number(end, 0, 4), number(end, count, 2), number(end, count, 2);
        field(bytes), field(begin), number(end, 0, 2);
        write(end.data(), end.size());
        out_.commit();
    }

private:
    static void number(std::string& to, std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
    }
    void write(const void* data, std::size_t bytes) {
        out_.write(data, bytes);
        at_ += bytes;
    }
    // The fields from the version needed to the length of the extra fields, which are the same in
    // both headers.
    static void common_fields(std::string& to, const zip_member& m, bool large, std::uint64_t extra) {
        constexpr std::uint64_t utf8 = 1u << 11, first_of_january_1980 = 33;
        number(to, large ? 45 : 20, 2), number(to, utf8, 2), number(to, m.method, 2);
        number(to, 0, 2), number(to, first_of_january_1980, 2), number(to, m.crc, 4);
        number(to, large ? detail::saturated : m.compressed, 4), number(to, large ? detail::saturated : m.size, 4);
        number(to, m.name.size(), 2), number(to, extra, 2);
    }
    void write_entry(const zip_member& m) {
        const bool large = m.size >= options_.zip64_from || m.compressed >= options_.zip64_from;
        const bool far = m.offset >= options_.zip64_from;
        const std::uint64_t values = (large ? 16u : 0u) + (far ? 8u : 0u);
        std::string entry;
        number(entry, detail::zip_central_mark, 4), number(entry, large || far ? 45 : 20, 2);
        common_fields(entry, m, large, values == 0 ? 0 : values + 4);
        number(entry, 0, 2), number(entry, 0, 2), number(entry, 0, 2), number(entry, 0, 4);
        number(entry, far ? detail::saturated : m.offset, 4);
        entry += m.name;
        if (values > 0) number(entry, 1, 2), number(entry, values, 2);
        if (large) number(entry, m.size, 8), number(entry, m.compressed, 8);
        if (far) number(entry, m.offset, 8);
        write(entry.data(), entry.size());
    }

    std::string operation_;
    zip_options options_;
    atomic_file out_;
    std::uint64_t at_ = 0;
    std::vector<zip_member> members_;
    std::set<std::string> names_;
};

} // namespace tapegraph::io
