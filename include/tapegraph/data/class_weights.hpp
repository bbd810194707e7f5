#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/dataset.hpp>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::data {

namespace detail {

/// A data set with a column "sample_weight": of each record's class, times what the column held.
template <class = void>
class class_weighted_source final : public source {
public:
    class_weighted_source(dataset records, std::vector<double> by_class, std::size_t labels, dtype type)
        : records_(std::move(records)),
          columns_(records_.columns()),
          by_class_(std::move(by_class)),
          labels_(labels),
          weights_(columns_.size()) {
        for (std::size_t c = 0; c < columns_.size(); ++c)
            if (columns_[c].name == "sample_weight") weights_ = c;
        weighted_ = weights_ < columns_.size();
        if (!weighted_) columns_.push_back({"sample_weight", type, {}});
        const column_spec& weights = columns_[weights_];
        if ((weights.type != dtype::f32 && weights.type != dtype::f64) || weights.record_size() != 1)
            throw dtype_error("column 'sample_weight' holds " + std::string(name_of(weights.type)) + " " +
                              text_of(weights.shape) + ", not one float weight per record");
        if (by_class_.empty()) return;
        for (std::size_t c = 0; c < by_class_.size(); ++c)
            if (!std::isfinite(by_class_[c]) || by_class_[c] < 0)
                throw argument_error("class_weight: the weight of class " + std::to_string(c) + " is " +
                                     std::to_string(by_class_[c]));
        const column_spec& from = columns_[labels_];
        if ((from.type != dtype::i32 && from.type != dtype::i64) || from.record_size() != 1)
            throw dtype_error("class_weight: column '" + from.name + "' holds " + name_of(from.type) + " " +
                              text_of(from.shape) + ", not one int class number per record");
    }
    std::int64_t size() const override { return records_.size(); }
    const std::vector<column_spec>& columns() const override { return columns_; }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        records_.records().fill(records_.record_at(record), places.first(records_.columns().size()));
        const double factor = by_class_.empty() ? 1 : by_class_[label_of(record, places[labels_])];
        if (columns_[weights_].type == dtype::f64)
            multiply<double>(places[weights_], factor);
        else
            multiply<float>(places[weights_], factor);
    }

private:
    std::size_t label_of(std::int64_t record, const std::byte* at) const {
        std::int64_t label = 0;
        if (columns_[labels_].type == dtype::i64) {
            std::memcpy(&label, at, sizeof label);
        } else {
            std::int32_t narrow = 0;
            std::memcpy(&narrow, at, sizeof narrow);
            label = narrow;
        }
        if (label < 0 || label >= static_cast<std::int64_t>(by_class_.size()))
            throw range_error("class_weight: record " + std::to_string(record) + " is of class " +
                              std::to_string(label) + ", and there are weights of " + std::to_string(by_class_.size()) +
                              " classes");
        return static_cast<std::size_t>(label);
    }
    template <class T>
    void multiply(std::byte* at, double factor) const {
        T weight = 1;
        if (weighted_) std::memcpy(&weight, at, sizeof weight);
        weight = static_cast<T>(weight * factor);
        std::memcpy(at, &weight, sizeof weight);
    }

    dataset records_;
    std::vector<column_spec> columns_;
    std::vector<double> by_class_;
    std::size_t labels_, weights_;
    bool weighted_ = false;
};

} // namespace detail

/// The data set with a column "sample_weight", of type `type` unless it has one: `by_class[label]` of each record's label in column
/// `labels`, or 1 where no weights are given, times what the column holds already. Throws dtype_error where labels are not int or weights
/// not float, argument_error for a weight that is negative or not finite; a label without a weight is a range_error when its batch is
/// asked for.
template <class = void>
dataset with_class_weights(const dataset& set, std::vector<double> by_class, std::size_t labels,
                           dtype type = dtype::f32) {
    return dataset(std::make_shared<detail::class_weighted_source<>>(set, std::move(by_class), labels, type));
}

TG_COMPILED(data, dataset with_class_weights<void>(const dataset&, std::vector<double>, std::size_t, dtype))

} // namespace tapegraph::data
