#pragma once

#include <tapegraph/data/pipeline/set.hpp>
#include <tapegraph/formats/csv_reader.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// Rows of CSV files as elements.

namespace tapegraph::data {

namespace detail {

template <class T>
T csv_field(const io::csv_reader& in, std::size_t column) {
    if constexpr (std::is_same_v<T, std::string>)
        return in[column];
    else
        return in.number<T>(column);
}

template <class... Fields>
struct csv_source {
    std::shared_ptr<const std::vector<std::string>> paths;
    std::vector<std::string> columns;
    io::csv_reader_options options;
    static constexpr const char* name = "csv_rows";

    class reader {
    public:
        explicit reader(const csv_source& from) : paths_(from.paths), columns_(from.columns), options_(from.options) {}
        auto next() {
            using element = decltype(row(std::index_sequence_for<Fields...>{}));
            for (;;) {
                if (!in_) {
                    if (path_ == paths_->size()) return std::optional<element>();
                    in_ = std::make_unique<io::csv_reader>((*paths_)[path_++], options_);
                    places_.clear();
                    for (const std::string& c : columns_) places_.push_back(in_->column(c));
                }
                if (in_->next()) break;
                in_.reset();
            }
            return std::optional<element>(row(std::index_sequence_for<Fields...>{}));
        }
        std::string origin() const { return in_ ? in_->position() : std::string(); }

    private:
        template <std::size_t... I>
        auto row(std::index_sequence<I...>) {
            if constexpr (sizeof...(I) == 0) {
                if (places_.empty()) return in_->fields();
                std::vector<std::string> fields;
                for (const std::size_t p : places_) fields.push_back((*in_)[p]);
                return fields;
            } else {
                return std::tuple<Fields...>{csv_field<Fields>(*in_, places_.empty() ? I : places_[I])...};
            }
        }
        std::shared_ptr<const std::vector<std::string>> paths_;
        std::vector<std::string> columns_;
        io::csv_reader_options options_;
        std::unique_ptr<io::csv_reader> in_;
        std::vector<std::size_t> places_;
        std::size_t path_ = 0;
    };
    reader open() const { return reader(*this); }
};

} // namespace detail

/// Rows of CSV files, one file after the other: std::tuple<Fields...> of numbers and strings,
/// `csv_rows<float, float, std::string>({"a.csv"}, {"x", "y", "label"})`, from the columns with
/// these names, or from the first ones if none are given. Without Fields, elements are the row's
/// texts as std::vector<std::string>. Throws data_error naming file, row and column.
template <class... Fields>
auto csv_rows(std::vector<std::string> paths, std::vector<std::string> columns = {},
              const io::csv_reader_options& options = {}) {
    if (sizeof...(Fields) > 0 && !columns.empty() && columns.size() != sizeof...(Fields))
        throw argument_error("csv_rows: " + std::to_string(columns.size()) + " columns are named for " +
                             std::to_string(sizeof...(Fields)) + " fields");
    return from(detail::csv_source<Fields...>{std::make_shared<const std::vector<std::string>>(std::move(paths)),
                                              std::move(columns), options});
}

} // namespace tapegraph::data
