#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/dataset.hpp>
#include <tapegraph/data/readers/arrow_column.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Columns of pyarrow, DuckDB, polars and everything else that supports Arrow's C data interface,
/// without a library and without a copy: the data stays in place until the last data set that uses
/// it is destroyed.
///
///     data::arrow_table table = data::import_arrow(&stream);                 // an ArrowArrayStream, filled by the other side
///     data::dataset train = table.dataset({.columns = {"x", "label"}, .null_value = 0});
///     std::vector<std::string> names = table.strings("city");

namespace tapegraph::data {

/// Options of `arrow_table::dataset`: which columns, and what replaces nulls.
struct arrow_options {
    std::vector<std::string> columns{}; ///< empty: all, which must all be numeric
    std::optional<double> null_value{}; ///< replaces nulls; without it a null is an error
};

/// Record batches of one schema. A value; copies share the data.
class arrow_table {
public:
    /// Throws data_error if the schema is not one of record batches (a structure of columns).
    explicit arrow_table(std::shared_ptr<const ArrowSchema> schema);
    /// Throws data_error for a batch that does not match the schema.
    void append(std::shared_ptr<const ArrowArray> batch);

    /// The number of records.
    std::int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
    /// The names of the columns, in their order.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (std::int64_t c = 0; c < schema_->n_children; ++c)
            all.emplace_back(schema_->children[c]->name != nullptr ? schema_->children[c]->name : "");
        return all;
    }
    // clang-format off
    template <class = void> no_such_option_in<arrow_options> dataset(...) const TG_MISTAKE;
    // clang-format on

    /// A data set of columns of numbers, booleans and lists of fixed size; dictionaries give their
    /// indices, dates and times their integers. Throws argument_error for an unknown column,
    /// dtype_error for text and other types that are not numeric.
    tapegraph::data::dataset dataset(const arrow_options& options = {}) const;

    /// A column of text or bytes; for a dictionary, the text of each index. Nulls are empty. Throws
    /// argument_error, dtype_error.
    std::vector<std::string> strings(std::string_view column) const;
    /// The texts of a dictionary, in the order of its indices; those of the first batch. Throws
    /// argument_error if the column has none.
    std::vector<std::string> dictionary(std::string_view column) const;

private:
    static void check_child(const ArrowSchema& s, const ArrowArray& a, std::int64_t length, const std::string& name);
    std::int64_t find(std::string_view name) const;
    static std::int64_t index_of(const ArrowSchema& s, const ArrowArray& a, std::int64_t at);

    class table_source;

    std::shared_ptr<const ArrowSchema> schema_;
    std::vector<std::shared_ptr<const ArrowArray>> batches_;
    std::vector<std::int64_t> ends_;
};

/// Records read from the table's own memory.
class arrow_table::table_source final : public source {
public:
    table_source(arrow_table table, std::vector<std::int64_t> chosen, std::optional<double> null_value)
        : table_(std::move(table)), chosen_(std::move(chosen)), null_value_(null_value) {
        for (const std::int64_t c : chosen_) columns_.push_back(detail::arrow_spec(*table_.schema_->children[c]));
    }
    std::int64_t size() const override { return table_.size(); }
    /// The chosen columns, one number each.
    const std::vector<column_spec>& columns() const override { return columns_; }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        std::size_t low = 0, high = table_.ends_.size() - 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (record < table_.ends_[middle])
                high = middle;
            else
                low = middle + 1;
        }
        const ArrowArray& batch = *table_.batches_[low];
        const std::int64_t at = record - (low == 0 ? 0 : table_.ends_[low - 1]) + batch.offset;
        const bool null = detail::arrow_null(batch, at);
        for (std::size_t c = 0; c < chosen_.size(); ++c) {
            std::byte* to = places[c];
            if (!detail::copy_arrow(*table_.schema_->children[chosen_[c]], *batch.children[chosen_[c]], at,
                                    columns_[c].type, null, null_value_, to))
                throw data_error("arrow: column '" + columns_[c].name + "': record " + std::to_string(record) +
                                 " is null; arrow_options.null_value says what nulls become");
        }
    }

private:
    arrow_table table_;
    std::vector<std::int64_t> chosen_;
    std::optional<double> null_value_;
    std::vector<column_spec> columns_;
};

/// Takes ownership of a record batch and its schema. Throws data_error if they were released
/// already or do not match each other.
arrow_table import_arrow(ArrowSchema* schema, ArrowArray* array);

/// Takes ownership of a stream and reads all its record batches. Throws data_error with the
/// stream's message about a failure.
arrow_table import_arrow(ArrowArrayStream* stream);

#if TG_DEFINES(data)

TG_DEFINITION arrow_table::arrow_table(std::shared_ptr<const ArrowSchema> schema) : schema_(std::move(schema)) {
    if (schema_->format == nullptr || std::string_view(schema_->format) != "+s")
        throw data_error("arrow: the schema has format '" +
                         std::string(schema_->format != nullptr ? schema_->format : "") +
                         "', expected '+s', a record batch");
}

TG_DEFINITION void arrow_table::append(std::shared_ptr<const ArrowArray> batch) {
    detail::check_arrow(*schema_, *batch, batch->length, "record batch " + std::to_string(batches_.size()));
    for (std::int64_t c = 0; c < schema_->n_children; ++c)
        check_child(*schema_->children[c], *batch->children[c], batch->length + batch->offset,
                    detail::arrow_name(*schema_->children[c]));
    ends_.push_back(size() + batch->length);
    batches_.push_back(std::move(batch));
}

TG_DEFINITION std::vector<std::string> arrow_table::strings(std::string_view column) const {
    const std::int64_t c = find(column);
    const ArrowSchema& s = *schema_->children[c];
    const ArrowSchema& text = s.dictionary != nullptr ? *s.dictionary : s;
    if (detail::arrow_offset_bytes(text.format) == 0)
        throw dtype_error("arrow: " + detail::arrow_name(s) + " has format '" + text.format + "', which is not text");
    std::vector<std::string> all;
    all.reserve(static_cast<std::size_t>(size()));
    for (const auto& batch : batches_) {
        const ArrowArray& a = *batch->children[c];
        for (std::int64_t i = 0; i < batch->length; ++i) {
            const std::int64_t at = i + batch->offset;
            if (detail::arrow_null(*batch, at) || detail::arrow_null(a, at + a.offset))
                all.emplace_back();
            else if (s.dictionary != nullptr)
                all.emplace_back(detail::arrow_text(text, *a.dictionary, index_of(s, a, at)));
            else
                all.emplace_back(detail::arrow_text(s, a, at));
        }
    }
    return all;
}

TG_DEFINITION std::vector<std::string> arrow_table::dictionary(std::string_view column) const {
    const std::int64_t c = find(column);
    const ArrowSchema& s = *schema_->children[c];
    if (s.dictionary == nullptr || detail::arrow_offset_bytes(s.dictionary->format) == 0)
        throw argument_error("arrow: " + detail::arrow_name(s) + " has no dictionary of text");
    std::vector<std::string> all;
    if (batches_.empty()) return all;
    const ArrowArray& words = *batches_.front()->children[c]->dictionary;
    for (std::int64_t i = 0; i < words.length; ++i) all.emplace_back(detail::arrow_text(*s.dictionary, words, i));
    return all;
}

TG_DEFINITION void arrow_table::check_child(const ArrowSchema& s, const ArrowArray& a, std::int64_t length,
                                            const std::string& name) {
    const bool known = detail::arrow_dtype(s.format) || detail::arrow_offset_bytes(s.format) > 0;
    const std::int64_t list = detail::arrow_list_size(s.format);
    if (!known && list == 0) return; // an unsupported type, which nothing here reads
    detail::check_arrow(s, a, length, name);
    if (list > 0 && s.n_children == 1) check_child(*s.children[0], *a.children[0], (length + a.offset) * list, name);
    if (s.dictionary != nullptr && detail::arrow_offset_bytes(s.dictionary->format) > 0)
        detail::check_arrow(*s.dictionary, *a.dictionary, a.dictionary->length, name + "'s dictionary");
}

TG_DEFINITION std::int64_t arrow_table::find(std::string_view name) const {
    const auto all = names();
    std::string known;
    for (std::size_t c = 0; c < all.size(); ++c) {
        if (all[c] == name) return static_cast<std::int64_t>(c);
        known.append(c == 0 ? "'" : ", '").append(all[c]).append("'");
    }
    throw argument_error("arrow: no column '" + std::string(name) + "', there are " + (known.empty() ? "none" : known));
}

TG_DEFINITION std::int64_t arrow_table::index_of(const ArrowSchema& s, const ArrowArray& a, std::int64_t at) {
    std::int64_t index = 0;
    const auto type = detail::arrow_dtype(s.format);
    if (!type || is_floating(*type) || *type == dtype::boolean)
        throw dtype_error("arrow: " + detail::arrow_name(s) + ": a dictionary counted by format '" + s.format + "'");
    const std::size_t bytes = size_of(*type);
    std::memcpy(&index, static_cast<const std::byte*>(a.buffers[1]) + static_cast<std::size_t>(at + a.offset) * bytes,
                bytes);
    if (index < 0 || index >= a.dictionary->length)
        throw data_error("arrow: " + detail::arrow_name(s) + ": record " + std::to_string(at) + " has index " +
                         std::to_string(index) + " of a dictionary of " + std::to_string(a.dictionary->length));
    return index;
}

TG_DEFINITION tapegraph::data::dataset arrow_table::dataset(const arrow_options& options) const {
    std::vector<std::int64_t> chosen;
    for (const auto& name : options.columns) chosen.push_back(find(name));
    if (options.columns.empty())
        for (std::int64_t c = 0; c < schema_->n_children; ++c) chosen.push_back(c);
    return tapegraph::data::dataset(std::make_shared<table_source>(*this, std::move(chosen), options.null_value));
}

TG_DEFINITION arrow_table import_arrow(ArrowSchema* schema, ArrowArray* array) {
    if (schema == nullptr || array == nullptr || schema->release == nullptr || array->release == nullptr)
        throw data_error("arrow: a schema or an array that was released already");
    const auto held = detail::taken_over(schema);
    const auto batch = detail::taken_over(array);
    arrow_table table(held);
    table.append(batch);
    return table;
}

TG_DEFINITION arrow_table import_arrow(ArrowArrayStream* stream) {
    if (stream == nullptr || stream->release == nullptr) throw data_error("arrow: a stream that was released already");
    struct owner {
        ArrowArrayStream held;
        ~owner() { held.release(&held); }
    } of{*stream};
    stream->release = nullptr;
    const auto check = [&](int code, const char* what) {
        if (code == 0) return;
        const char* const reason = of.held.get_last_error != nullptr ? of.held.get_last_error(&of.held) : nullptr;
        throw data_error(std::string("arrow: the stream gives no ") + what + ": " +
                         (reason != nullptr ? reason : "error " + std::to_string(code)));
    };
    ArrowSchema schema{};
    check(of.held.get_schema(&of.held, &schema), "schema");
    arrow_table table(detail::taken_over(&schema));
    for (;;) {
        ArrowArray batch{};
        check(of.held.get_next(&of.held, &batch), "further record batch");
        if (batch.release == nullptr) return table;
        table.append(detail::taken_over(&batch));
    }
}

#endif

} // namespace tapegraph::data
