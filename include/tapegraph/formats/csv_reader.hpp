#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/quoted_text.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Reads comma-separated values by RFC 4180, row by row; the file is never in memory as a whole.

namespace tapegraph::io {

/// Options of `csv_reader`.
struct csv_reader_options {
    bool header = true; ///< the first row names the columns
    char separator = ',';
    std::size_t largest_row = std::size_t{1} /// Maximum bytes of a row's fields; limits the memory that an
                              /// unclosed quote may take.
                              << 24;
};

/// Fields that contain separators, quotes (doubled) or line breaks are quoted. Rows end with LF or
/// CRLF; the last one may end with the file. A byte order mark at the start and empty lines are
/// ignored. Blanks belong to their field.
///
///     io::csv_reader in("reviews.csv");
///     const std::size_t text = in.column("text");
///     while (in.next()) use(in[text]);
class csv_reader {
public:
    /// Opens the file and reads the names of the columns. Throws data_error if it is missing, empty
    /// or malformed.
    template <class Mistake = no_such_option_in<csv_reader_options>>
    explicit csv_reader(any_argument, ...) = delete;
    explicit csv_reader(files::path path, const csv_reader_options& options = {});

    /// Names of the columns; none without a header.
    const std::vector<std::string>& columns() const { return columns_; }

    /// The index of the column with this name. Throws data_error if there is none, or more than
    /// one.
    std::size_t column(std::string_view name) const;

    /// Reads the next row; returns false at the end of the file. Throws data_error naming row, line
    /// and field for misplaced quotes, for a carriage return without line feed, and if the number
    /// of fields differs from that of the header (or the first row).
    bool next();

    /// The fields of the row that next() read.
    const std::vector<std::string>& fields() const { return fields_; }
    /// A field of the row, from 0. Throws argument_error if the row has none there.
    const std::string& operator[](std::size_t column) const {
        if (column >= fields_.size())
            throw argument_error("csv_reader(" + detail::quoted(path_) + "): field " + std::to_string(column) + " of " +
                                 std::to_string(fields_.size()));
        return fields_[column];
    }
    /// A field as a number. Throws data_error if it is not a number that T can represent.
    template <class T>
        requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
    T number(std::size_t column)
    const {
        const std::string& text = (*this)[column];
        T value{};
        const auto [end, failure] = tapegraph::detail::read_number(text, value);
        if (failure == std::errc::result_out_of_range) fail(column, quoted_text(text) + " is out of range");
        if (failure != std::errc() || end != text.data() + text.size())
            fail(column, quoted_text(text) + (std::is_integral_v<T> ? " is not a whole number" : " is not a number"));
        return value;
    }

    /// Rows read so far, including the header: the number of the row that next() read, from 1 on.
    std::int64_t row() const { return row_; }
    /// The line that row begins in, from 1 on.
    std::int64_t line() const { return line_; }
    /// "'reviews.csv', row 3 (line 5)", for errors about the content of a row.
    std::string position() const {
        return detail::quoted(path_) + ", row " + std::to_string(row_) + " (line " + std::to_string(line_) + ")";
    }
    /// Throws data_error that names row, line and column.
    [[noreturn]] void fail(std::size_t column, const std::string& what) const {
        throw data_error(position() + ", " +
                         (column < columns_.size() ? "column " + quoted_text(columns_[column])
                                                   : "field " + std::to_string(column + 1)) +
                         ": " + what);
    }

private:
    static constexpr int end_of_file = -1;

    int peek();
    int take() {
        const int c = peek();
        if (c == end_of_file) return c;
        ++at_;
        if (c == '\n') ++next_line_;
        return c;
    }
    void skip_byte_order_mark() {
        if (peek() != 0xEF) return;
        // The buffer holds the first bytes of the file.
        if (std::string_view(buffer_.data(), filled_).starts_with("\xEF\xBB\xBF")) at_ = 3;
    }

    bool read_row();
    int separator() const { return static_cast<unsigned char>(options_.separator); }
    bool ends_field(int c) const { return c == separator() || c == '\n' || c == '\r' || c == end_of_file; }

    void append(std::size_t column, std::string& field, int c) {
        if (++bytes_ > options_.largest_row)
            fail(column, "the row is longer than " + std::to_string(options_.largest_row) + " bytes; it begins " +
                             quoted_text(fields_.front()));
        field += static_cast<char>(c);
    }
    void read_plain(std::size_t column, std::string& field) {
        while (!ends_field(peek())) {
            if (peek() == '"') fail(column, "a quote inside a field that is not in quotes: " + with_rest(field));
            append(column, field, take());
        }
    }
    void read_quoted(std::size_t column, std::string& field);
    // A carriage return without line feed would otherwise become part of a value, or join two rows.
    void take_line_end(std::size_t column, const std::string& field) {
        if (take() != '\r') return;
        if (take() != '\n') fail(column, "a carriage return without a line feed after " + quoted_text(field));
    }
    std::string with_rest(std::string& field) {
        for (int i = 0; i < 64 && !ends_field(peek()); ++i) field += static_cast<char>(take());
        return quoted_text(field);
    }

    files::path path_;
    csv_reader_options options_;
    std::ifstream in_;
    std::vector<char> buffer_;
    std::size_t at_ = 0, filled_ = 0;
    std::vector<std::string> columns_, fields_;
    std::size_t width_ = 0; ///< fields per row; 0 while unknown
    std::size_t bytes_ = 0; ///< of the fields of this row so far
    std::int64_t row_ = 0, line_ = 1, next_line_ = 1;
};

#if TG_DEFINES(formats)

TG_DEFINITION csv_reader::csv_reader(files::path path, const csv_reader_options& options)
    : path_(std::move(path)), options_(options), buffer_(std::size_t{1} << 16) {
    const char s = options_.separator;
    if (s == '"' || s == '\n' || s == '\r')
        throw argument_error("csv_reader(" + detail::quoted(path_) +
                             "): a quote or line break cannot be the separator");
    if (detail::file_size_of(path_) == 0) throw data_error(detail::quoted(path_) + ": empty file");
    in_.open(path_.c_str(), std::ios::binary);
    if (!in_) throw data_error(detail::quoted(path_) + ": cannot be opened");
    skip_byte_order_mark();
    if (!options_.header) return;
    if (!read_row()) throw data_error(detail::quoted(path_) + ": no header, there are empty lines only");
    columns_ = std::exchange(fields_, {});
    width_ = columns_.size();
}

TG_DEFINITION std::size_t csv_reader::column(std::string_view name) const {
    std::size_t found = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (columns_[c] != name) continue;
        if (found < columns_.size())
            throw data_error(detail::quoted(path_) + ": columns " + std::to_string(found + 1) + " and " +
                             std::to_string(c + 1) + " are both named " + quoted_text(name));
        found = c;
    }
    if (found < columns_.size()) return found;
    std::string known;
    for (const auto& each : columns_) known.append(known.empty() ? "" : ", ").append(quoted_text(each));
    throw data_error(detail::quoted(path_) + ": no column " + quoted_text(name) + ", there are " +
                     (known.empty() ? "no names" : known));
}

TG_DEFINITION bool csv_reader::next() {
    if (!read_row()) return false;
    if (width_ == 0) width_ = fields_.size();
    if (fields_.size() == width_) return true;
    const bool more = fields_.size() > width_;
    throw data_error(position() + ": " + std::to_string(fields_.size()) + " fields, " +
                     (options_.header ? "the header has " : "the first row has ") + std::to_string(width_) +
                     (more ? "; the first surplus one is " : "; the last one is ") +
                     quoted_text(more ? fields_[width_] : fields_.back()));
}

TG_DEFINITION int csv_reader::peek() {
    if (at_ == filled_) {
        in_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        if (in_.bad()) throw data_error(detail::quoted(path_) + ": cannot be read");
        at_ = 0;
        filled_ = static_cast<std::size_t>(in_.gcount());
        if (filled_ == 0) return end_of_file;
    }
    return static_cast<unsigned char>(buffer_[at_]);
}

TG_DEFINITION bool csv_reader::read_row() {
    while (peek() == '\n' || peek() == '\r') {
        line_ = next_line_;
        ++row_; // for a possible error
        take_line_end(0, {});
        --row_;
    }
    if (peek() == end_of_file) {
        fields_.clear();
        return false;
    }
    ++row_;
    line_ = next_line_;
    bytes_ = 0;
    std::size_t count = 0;
    for (bool more = true; more; ++count) {
        if (count == fields_.size()) fields_.emplace_back();
        std::string& field = fields_[count];
        field.clear();
        if (peek() == '"')
            read_quoted(count, field);
        else
            read_plain(count, field);
        more = peek() == separator();
        if (more)
            take();
        else
            take_line_end(count, field);
    }
    fields_.resize(count);
    return true;
}

TG_DEFINITION void csv_reader::read_quoted(std::size_t column, std::string& field) {
    const std::int64_t opened = next_line_;
    take();
    for (int c = take();; c = take()) {
        if (c == end_of_file)
            fail(column,
                 "the quote opened in line " + std::to_string(opened) + " is never closed: " + quoted_text(field));
        if (c == '"') {
            if (peek() != '"') break;
            take();
        }
        append(column, field, c);
    }
    if (!ends_field(peek())) {
        const std::string value = quoted_text(field);
        std::string rest;
        fail(column, "text after the closing quote of " + value + ": " + with_rest(rest));
    }
}

#endif

} // namespace tapegraph::io
