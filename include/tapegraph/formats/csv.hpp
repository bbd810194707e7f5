#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/formats/csv_field.hpp>
#include <tapegraph/formats/file.hpp>
#include <tapegraph/formats/path.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Comma-separated values as in RFC 4180, with line feeds as line ends.

namespace tapegraph::io {

/// Writes rows one after the other. A row is in the file when row() returns, so a run that is cut
/// short keeps its rows.
class csv_writer {
public:
    /// Creates the file and writes the column names. Throws data_error where that fails,
    /// argument_error for no columns.
    csv_writer(files::path path, const std::vector<std::string>& columns);

    /// Writes texts and numbers. Throws argument_error if their number is not that of the columns.
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
    void write(const std::vector<std::string>& fields);

    files::path path_;
    std::size_t columns_;
    std::ofstream out_;
};

#if TG_DEFINES(formats)

TG_DEFINITION csv_writer::csv_writer(files::path path, const std::vector<std::string>& columns)
    : path_(std::move(path)), columns_(columns.size()), out_(path_.c_str(), std::ios::binary) {
    if (columns.empty()) throw argument_error("csv_writer(" + detail::quoted(path_) + "): no columns");
    if (!out_) throw data_error(detail::quoted(path_) + ": cannot be written: " + std::strerror(errno));
    row(columns);
}

TG_DEFINITION void csv_writer::write(const std::vector<std::string>& fields) {
    if (fields.size() != columns_)
        throw argument_error("csv_writer(" + detail::quoted(path_) + "): " + std::to_string(fields.size()) +
                             " fields for " + std::to_string(columns_) + " columns");
    std::string line;
    for (std::size_t i = 0; i < fields.size(); ++i) line.append(i == 0 ? "" : ",").append(fields[i]);
    // A reader would take an empty line for no row at all.
    if (line.empty()) line = "\"\"";
    line += '\n';
    out_.write(line.data(), static_cast<std::streamsize>(line.size()));
    if (!out_.flush()) throw data_error(detail::quoted(path_) + ": writing failed: " + std::strerror(errno));
}

#endif

} // namespace tapegraph::io
