#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/text/labelled_texts.hpp>
#include <tapegraph/formats/csv_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Labelled texts from a CSV file.

namespace tapegraph::data {

/// Options of `read_text_table`.
struct text_table_options {
    std::string text = "text", label = "label"; ///< names of the columns
    std::vector<std::string> classes{}; ///< the label names, in order; empty: those in the file, sorted by bytes
    io::csv_reader_options csv{};
};

/// Reads a CSV file with a header: each row is one text and the name of its class. Throws
/// data_error naming the file, and row and value if a row is malformed or a label is empty or not
/// in `classes`; also if there are no rows.
labelled_texts read_text_table(const files::path& path, const text_table_options& options);

#if TG_DEFINES(data)

TG_DEFINITION labelled_texts read_text_table(const files::path& path, const text_table_options& options) {
    io::csv_reader in(path, options.csv);
    const std::size_t text = in.column(options.text), label = in.column(options.label);
    labelled_texts result;
    result.origin = io::detail::quoted(path);
    result.class_names = options.classes;
    std::vector<std::string> names;
    while (in.next()) {
        const std::string& name = in[label];
        if (name.empty()) in.fail(label, "the label is empty");
        if (!options.classes.empty() &&
            std::find(options.classes.begin(), options.classes.end(), name) == options.classes.end()) {
            std::string known;
            for (const auto& each : options.classes)
                known.append(known.empty() ? "" : ", ").append(io::quoted_text(each));
            in.fail(label, io::quoted_text(name) + " is not one of " + known);
        }
        result.texts.push_back(in[text]);
        result.rows.push_back(in.row());
        names.push_back(name);
    }
    if (names.empty()) throw data_error(result.origin + ": no rows below the header");
    if (options.classes.empty()) {
        result.class_names = names;
        std::sort(result.class_names.begin(), result.class_names.end());
        result.class_names.erase(std::unique(result.class_names.begin(), result.class_names.end()),
                                 result.class_names.end());
    }
    for (const auto& name : names) {
        const auto place = std::find(result.class_names.begin(), result.class_names.end(), name);
        result.labels.push_back(static_cast<std::int32_t>(place - result.class_names.begin()));
    }
    return result;
}

#endif

} // namespace tapegraph::data
