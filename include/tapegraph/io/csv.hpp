#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/io/file.hpp>

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Comma-separated values as RFC 4180 has them, with line feeds for line ends.

namespace tapegraph::io {

/// A field as it stands in a file: in quotes where it holds a comma, a quote, a line break or blanks at its ends.
inline std::string csv_field(std::string_view text) {
    const bool blank_ends = !text.empty() && (text.front() == ' ' || text.back() == ' ');
    if (!blank_ends && text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
    return quoted += '"';
}

/// A number as it stands in a file: the shortest text that reads back as the same value, whatever the locale.
template <class T>
    requires std::is_arithmetic_v<T> std::string csv_field(T value) {
        if constexpr (std::is_same_v<T, bool>) {
            return value ? "true" : "false";
        } else {
            char text[64];
            return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
        }
    }

/// Writes one row after the other; each is in the file when row() returns, so a run that is cut short keeps its rows.
class csv_writer {
public:
    /// Creates the file and writes the names of the columns. Throws data_error where that fails, argument_error for no
    /// columns.
    csv_writer(std::filesystem::path path, const std::vector<std::string>& columns)
        : path_(std::move(path)), columns_(columns.size()), out_(path_, std::ios::binary) {
        if (columns.empty()) throw argument_error("csv_writer(" + detail::quoted(path_) + "): no columns");
        if (!out_) throw data_error(detail::quoted(path_) + ": cannot be written");
        row(columns);
    }

    /// Writes texts and numbers. Throws argument_error where there are not as many as columns.
    template <class... Fields>
    void row(const Fields&... fields) {
        write({csv_field(fields)...});
    }
    void row(const std::vector<std::string>& fields) {
        std::vector<std::string> texts;
        for (const auto& field : fields) texts.push_back(csv_field(std::string_view(field)));
        write(texts);
    }

private:
    void write(const std::vector<std::string>& fields) {
        if (fields.size() != columns_)
            throw argument_error("csv_writer(" + detail::quoted(path_) + "): " + std::to_string(fields.size()) +
                                 " fields for " + std::to_string(columns_) + " columns");
        std::string line;
        for (std::size_t i = 0; i < fields.size(); ++i) line.append(i == 0 ? "" : ",").append(fields[i]);
        // An empty line would be no row at all to a reader.
        if (line.empty()) line = "\"\"";
        line += '\n';
        out_.write(line.data(), static_cast<std::streamsize>(line.size()));
        if (!out_.flush()) throw data_error(detail::quoted(path_) + ": writing failed");
    }

    std::filesystem::path path_;
    std::size_t columns_;
    std::ofstream out_;
};

} // namespace tapegraph::io
