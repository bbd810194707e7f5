#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/quoted_text.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Reads Protocol Buffers' wire format (developers.google.com/protocol-buffers/docs/encoding) from
/// memory. It checks every length; damaged data are refused with the file's name and the byte.

namespace tapegraph::io::onnx_import {

/// Formats a message as one line of text, whatever characters its names contain.
inline std::string one_line(const std::string& text) {
    const std::string quoted = quoted_text(text, text.size());
    return quoted.substr(1, quoted.size() - 2);
}

class wire_reader {
public:
    wire_reader(std::string_view bytes, const std::string& file, std::size_t offset = 0)
        : bytes_(bytes), file_(&file), offset_(offset) {}

    /// Advances to the next field; returns false at the end. Afterwards one of the functions below
    /// reads its value, or `skip` passes over it.
    bool next() {
        if (at_ == bytes_.size()) return false;
        begin_ = at_;
        const std::uint64_t key = varint();
        field_ = static_cast<int>(key >> 3 & 0x1fffffff);
        type_ = static_cast<int>(key & 7);
        if (field_ == 0 || type_ == 3 || type_ == 4 || type_ > 5) damaged("no field begins here");
        return true;
    }
    int field() const { return field_; }
    std::size_t position() const { return offset_ + at_; }

    std::int64_t integer() {
        expect(0);
        return static_cast<std::int64_t>(varint());
    }
    float number() {
        expect(5);
        return fixed<float>();
    }
    std::string_view text() {
        expect(2);
        return piece();
    }
    wire_reader message() {
        expect(2);
        const std::string_view part = piece();
        return wire_reader(part, *file_, offset_ + at_ - part.size());
    }
    /// Reads repeated numbers: packed, or a single one.
    void integers(std::vector<std::int64_t>& to) {
        if (type_ == 0) return to.push_back(integer());
        wire_reader packed = message();
        while (packed.at_ < packed.bytes_.size()) to.push_back(static_cast<std::int64_t>(packed.varint()));
    }
    template <class T>
    void numbers(std::vector<T>& to) {
        if (type_ == (sizeof(T) == 4 ? 5 : 1)) return to.push_back(fixed<T>());
        wire_reader packed = message();
        while (packed.at_ < packed.bytes_.size()) to.push_back(packed.fixed<T>());
    }
    void skip() {
        switch (type_) {
        case 0: varint(); break;
        case 1: take(8); break;
        case 2: piece(); break;
        default: take(4); break;
        }
    }
    [[noreturn]] void damaged(const std::string& what) const {
        throw data_error(one_line("'" + *file_ + "': " + what + ", at byte " + std::to_string(offset_ + begin_)));
    }

private:
    void expect(int type) {
        if (type_ != type) damaged("field " + std::to_string(field_) + " is written in another way than ONNX has it");
    }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 70; shift += 7) {
            if (at_ == bytes_.size()) damaged("the file ends within a number");
            const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
            value |= shift < 64 ? static_cast<std::uint64_t>(byte & 0x7f) << shift : 0;
            if ((byte & 0x80) == 0) return value;
        }
        damaged("a number is longer than ten bytes");
    }
    std::string_view take(std::uint64_t count) {
        if (count > bytes_.size() - at_) damaged("a field is longer than what holds it");
        const std::string_view part = bytes_.substr(at_, static_cast<std::size_t>(count));
        at_ += static_cast<std::size_t>(count);
        return part;
    }
    std::string_view piece() { return take(varint()); }
    template <class T>
    T fixed() {
        T value;
        std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
        return value;
    }

    std::string_view bytes_;
    const std::string* file_;
    std::size_t offset_, at_ = 0, begin_ = 0;
    int field_ = 0, type_ = 0;
};

} // namespace tapegraph::io::onnx_import
