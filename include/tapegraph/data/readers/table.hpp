#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/formats/csv_reader.hpp>
#include <tapegraph/formats/path.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// Reads numbers and words of a CSV file as a data set.

namespace tapegraph::data {

/// The kind of a column. `automatic` inspects its first value: a number, or otherwise a word.
enum class csv_kind : std::uint8_t {
    automatic,
    number,   ///< T, records of shape [1]
    index,    ///< integers unchanged, std::int32_t, []
    category, ///< words, numbered in the order of their bytes: std::int32_t, []
};
/// Handling of a row with a missing value: an error, a replacement value (never for the label), or
/// omission of the row.
enum class csv_missing : std::uint8_t { error, fill, drop };

/// What a column of a CSV file is read as.
struct csv_column_kind {
    std::string column;
    csv_kind kind = csv_kind::automatic;
};
/// The words of a category: value k of the column means words[k].
struct csv_category {
    std::string column;
    std::vector<std::string> words{};
};

/// Options of `read_csv`.
struct csv_options {
    std::vector<std::string> features{}; ///< names of columns; empty: all but the label
    std::string label{};                 ///< the last column of the data set; empty: none
    std::string join{}; ///< joins all numeric features in one column of this name, [count]; empty: separate columns
    std::vector<csv_column_kind> kinds{};   ///< kinds of columns that are not detected
    std::vector<csv_category> categories{}; ///< known words, from the file a model was trained with
    csv_missing missing = csv_missing::error;
    std::vector<std::string> missing_values{"", "NA", "N/A", "NaN", "nan", "null", "?"};
    double fill = 0;                   ///< for numbers and indices
    std::string fill_word = "missing"; ///< for categories
    std::vector<std::string> names{};  ///< names of the columns, if csv.header is false
    io::csv_reader_options csv{};
};

/// What `read_csv` returns: the records, and the words that numbers stand for.
struct csv_data {
    dataset records;                        ///< columns named as in the file: features, followed by the label
    std::vector<std::string> features{};    ///< names of the numeric features, in the order of the joined column
    std::vector<csv_category> categories{}; ///< words of each category among the columns
    std::int64_t dropped = 0;               ///< rows omitted
    std::int64_t filled = 0;                ///< values replaced

    /// The words of a category. Throws argument_error for other columns.
    const std::vector<std::string>& words(std::string_view column) const;
};

namespace detail {

/// Removes blanks at both ends.
inline std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t";
    const std::size_t first = text.find_first_not_of(blanks);
    return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

template <class T>
struct csv_column {
    std::string name;
    std::size_t place = 0; ///< index in the file
    csv_kind kind = csv_kind::automatic;
    bool is_label = false;
    std::vector<T> numbers{};
    std::vector<std::int32_t> indices{};
    std::vector<bool> missing{};
    std::vector<std::string> words{}; ///< in the order of appearance, or as given
    std::unordered_map<std::string, std::int32_t> known{};
    bool closed = false; ///< whether the words were given

    void add_word(const std::string& word) {
        known.emplace(word, static_cast<std::int32_t>(words.size()));
        words.push_back(word);
    }
    /// Reserves a place for a missing value.
    void add_none() {
        missing.push_back(true);
        numbers.push_back(T(0));
        indices.push_back(0);
    }
    void read(const io::csv_reader& in, std::string_view text) {
        add_none();
        missing.back() = false;
        if (kind == csv_kind::automatic) kind = number_in(text) ? csv_kind::number : csv_kind::category;
        if (kind == csv_kind::category)
            indices.back() = index_of(in, std::string(text));
        else if (kind == csv_kind::index)
            parse(in, text, indices.back());
        else
            parse(in, text, numbers.back());
    }
    std::int32_t index_of(const io::csv_reader& in, const std::string& word) {
        if (const auto found = known.find(word); found != known.end()) return found->second;
        if (closed) {
            std::string all;
            for (const auto& each : words) all.append(all.empty() ? "" : ", ").append(io::quoted_text(each));
            in.fail(place, io::quoted_text(word) + " is not one of " + all);
        }
        add_word(word);
        return static_cast<std::int32_t>(words.size()) - 1;
    }
    template <class V>
    static std::from_chars_result parsed(std::string_view text, V& value) {
        if (text.size() > 1 && text[0] == '+' && text[1] != '-')
            text.remove_prefix(1); // a plus sign, which from_chars does not accept
        std::from_chars_result result = tapegraph::detail::read_number(text, value);
        if (result.ec == std::errc() && result.ptr != text.data() + text.size())
            result.ec = std::errc::invalid_argument;
        return result;
    }
    static bool number_in(std::string_view text) {
        T value{};
        return parsed(text, value).ec != std::errc::invalid_argument;
    }
    template <class V>
    void parse(const io::csv_reader& in, std::string_view text, V& value) const {
        const auto failure = parsed(text, value).ec;
        if (failure == std::errc::result_out_of_range) in.fail(place, io::quoted_text(text) + " is out of range");
        if (failure != std::errc())
            in.fail(place,
                    io::quoted_text(text) + (std::is_integral_v<V> ? " is not a whole number" : " is not a number"));
        if constexpr (std::is_floating_point_v<V>)
            if (!std::isfinite(value)) in.fail(place, io::quoted_text(text) + " is not finite");
    }

    /// Replaces missing values; returns their number.
    std::int64_t fill(double number, const std::string& word) {
        std::int64_t count = 0;
        for (std::size_t row = 0; row < missing.size(); ++row) {
            if (!missing[row]) continue;
            ++count;
            if (kind == csv_kind::category) {
                if (known.count(word) == 0) add_word(word);
                indices[row] = known[word];
            }
            numbers[row] = static_cast<T>(number);
            if (kind != csv_kind::index) continue;
            if (!(std::abs(number) <= 1 << 30) || std::floor(number) != number)
                throw argument_error("read_csv: " + number_text(number) + " cannot fill in column " +
                                     io::quoted_text(name) + " of indices");
            indices[row] = static_cast<std::int32_t>(number);
        }
        return count;
    }
    /// Numbers the words in the order of their bytes.
    void sort_words() {
        if (closed) return;
        std::vector<std::string> sorted = words;
        std::sort(sorted.begin(), sorted.end());
        std::vector<std::int32_t> number(words.size());
        for (std::size_t k = 0; k < sorted.size(); ++k)
            number[static_cast<std::size_t>(known[sorted[k]])] = static_cast<std::int32_t>(k);
        for (std::int32_t& index : indices) index = number[static_cast<std::size_t>(index)];
        words = std::move(sorted);
    }
};

/// Finds the columns to read, the label last. Throws data_error and argument_error for names that
/// do not match the file.
template <class T>
std::vector<csv_column<T>> csv_columns(const io::csv_reader& in, const std::string& origin,
                                       const csv_options& options) {
    const std::vector<std::string>& names = options.csv.header ? in.columns() : options.names;
    if (names.empty())
        throw argument_error("read_csv(" + origin + "): a file without a header needs names of its columns");
    const auto place = [&](const std::string& name) {
        if (options.csv.header) return in.column(name);
        const auto found = std::find(names.begin(), names.end(), name);
        if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
        throw argument_error("read_csv(" + origin + "): no column " + io::quoted_text(name) + " among the names");
    };
    std::vector<csv_column<T>> columns;
    const auto add = [&](const std::string& name, bool label) {
        for (const auto& each : columns)
            if (each.name == name)
                throw argument_error("read_csv(" + origin + "): column " + io::quoted_text(name) + " is named twice");
        columns.push_back({.name = name, .place = place(name), .is_label = label});
    };
    for (const auto& name : options.features.empty() ? names : options.features)
        if (!options.features.empty() || name != options.label) add(name, false);
    if (!options.label.empty()) add(options.label, true);

    const auto read = [&](const std::string& name) -> csv_column<T>& {
        for (auto& each : columns)
            if (each.name == name) return each;
        throw argument_error("read_csv(" + origin + "): column " + io::quoted_text(name) +
                             " is given a kind but not read");
    };
    for (const auto& each : options.kinds) read(each.column).kind = each.kind;
    for (const auto& each : options.categories) {
        auto& column = read(each.column);
        if (each.words.empty())
            throw argument_error("read_csv(" + origin + "): category " + io::quoted_text(each.column) +
                                 " has no words");
        column.kind = csv_kind::category;
        for (const auto& word : each.words) column.add_word(word);
        column.closed = true;
    }
    return columns;
}

} // namespace detail

/// Reads a CSV file into columns named as in the file. Blanks around values are ignored. T, float
/// or double, is the type of numbers. Throws data_error naming file, row, line and column if a
/// value does not fit its column or is missing, if there are no rows, or no value in a column;
/// argument_error for contradictory options.
template <class T = float>
csv_data read_csv(const files::path& path, const csv_options& options = {}) {
    static_assert(std::is_floating_point_v<T>, "read_csv: numbers are float or double");
    const std::string origin = io::detail::quoted(path);
    if (!std::isfinite(static_cast<T>(options.fill)) || std::abs(options.fill) > std::numeric_limits<T>::max())
        throw argument_error("read_csv(" + origin + "): the number to fill in is not finite");
    io::csv_reader in(path, options.csv);
    std::vector<detail::csv_column<T>> columns = detail::csv_columns<T>(in, origin, options);
    const auto is_missing = [&](std::string_view text) {
        return std::find(options.missing_values.begin(), options.missing_values.end(), text) !=
               options.missing_values.end();
    };
    csv_data result;
    while (in.next()) {
        if (!options.csv.header && in.fields().size() != options.names.size())
            throw argument_error("read_csv(" + origin + "): " + std::to_string(options.names.size()) + " names for " +
                                 std::to_string(in.fields().size()) + " columns");
        bool complete = true;
        for (const auto& column : columns) {
            if (!is_missing(detail::trimmed(in[column.place]))) continue;
            complete = false;
            if (options.missing == csv_missing::error || (options.missing == csv_missing::fill && column.is_label))
                in.fail(column.place, column.is_label ? "the label is missing" : "the value is missing");
        }
        if (!complete && options.missing == csv_missing::drop) {
            ++result.dropped;
            continue;
        }
        for (auto& column : columns) {
            const std::string_view text = detail::trimmed(in[column.place]);
            if (is_missing(text))
                column.add_none();
            else
                column.read(in, text);
        }
    }
    if (columns.front().missing.empty())
        throw data_error(origin + (result.dropped > 0 ? ": every row misses a value" : ": no rows"));

    std::vector<T> joined;
    std::vector<const detail::csv_column<T>*> numbers;
    for (auto& column : columns) {
        if (column.kind == csv_kind::automatic)
            throw data_error(origin + ": no value in column " + io::quoted_text(column.name));
        result.filled += column.fill(options.fill, options.fill_word);
        if (column.kind == csv_kind::category) {
            column.sort_words();
            result.categories.push_back({column.name, column.words});
        } else if (column.kind == csv_kind::number && !column.is_label) {
            result.features.push_back(column.name);
            numbers.push_back(&column);
        }
    }
    if (!options.join.empty() && !numbers.empty()) {
        for (std::size_t row = 0; row < columns.front().missing.size(); ++row)
            for (const auto* column : numbers) joined.push_back(column->numbers[row]);
        result.records.add(options.join, std::move(joined), {static_cast<std::int64_t>(numbers.size())});
    }
    for (auto& column : columns) {
        if (column.kind != csv_kind::number)
            result.records.add(column.name, std::move(column.indices));
        else if (column.is_label || options.join.empty())
            result.records.add(column.name, std::move(column.numbers), {1});
    }
    return result;
}

#if TG_DEFINES(data)

TG_DEFINITION const std::vector<std::string>& csv_data::words(std::string_view column) const {
    std::string known;
    for (const auto& each : categories) {
        if (each.column == column) return each.words;
        known.append(known.empty() ? "" : ", ").append(io::quoted_text(each.column));
    }
    throw argument_error("csv_data: no category " + io::quoted_text(column) + ", there are " +
                         (known.empty() ? "none" : known));
}

#endif

} // namespace tapegraph::data
