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

/// A data set of inputs and int labels with a third column, float weights: of each record's class, times what the column held.
template <class = void>
class class_weighted_source final : public source {
public:
    class_weighted_source(dataset records, std::vector<double> by_class)
        : records_(std::move(records)), columns_(records_.columns()), by_class_(std::move(by_class)) {
        for (std::size_t c = 0; c < by_class_.size(); ++c)
            if (!std::isfinite(by_class_[c]) || by_class_[c] < 0)
                throw argument_error("class_weight: the weight of class " + std::to_string(c) + " is " +
                                     std::to_string(by_class_[c]));
        const column_spec& labels = columns_[1];
        if ((labels.type != dtype::i32 && labels.type != dtype::i64) || labels.record_size() != 1)
            throw dtype_error("class_weight: column '" + labels.name + "' holds " + name_of(labels.type) + " " +
                              text_of(labels.shape) + ", not one int class number per record");
        if (columns_.size() == 2) columns_.push_back({"weight", dtype::f32, {}});
        else weighted_ = true;
        const column_spec& weights = columns_[2];
        if ((weights.type != dtype::f32 && weights.type != dtype::f64) || weights.record_size() != 1)
            throw dtype_error("class_weight: column '" + weights.name + "' holds " + name_of(weights.type) + " " +
                              text_of(weights.shape) + ", not one float weight per record");
    }
    std::int64_t size() const override { return records_.size(); }
    const std::vector<column_spec>& columns() const override { return columns_; }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        records_.records().fill(records_.record_at(record), places.first(records_.columns().size()));
        std::int64_t label = 0;
        if (columns_[1].type == dtype::i64) {
            std::memcpy(&label, places[1], sizeof label);
        } else {
            std::int32_t narrow = 0;
            std::memcpy(&narrow, places[1], sizeof narrow);
            label = narrow;
        }
        if (label < 0 || label >= static_cast<std::int64_t>(by_class_.size()))
            throw range_error("class_weight: record " + std::to_string(record) + " is of class " + std::to_string(label) +
                              ", and there are weights of " + std::to_string(by_class_.size()) + " classes");
        const double factor = by_class_[static_cast<std::size_t>(label)];
        if (columns_[2].type == dtype::f64)
            multiply<double>(places[2], factor);
        else
            multiply<float>(places[2], factor);
    }

private:
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
    bool weighted_ = false;
};

} // namespace detail

/// The data set with a column of weights behind inputs and labels: `by_class[label]`, times the weights that the third column already
/// holds. Throws dtype_error where labels are not int or weights not float, argument_error for a weight that is negative or not finite;
/// a label without a weight is a range_error when its batch is asked for.
template <class = void>
dataset with_class_weights(const dataset& set, std::vector<double> by_class) {
    return dataset(std::make_shared<detail::class_weighted_source<>>(set, std::move(by_class)));
}

TG_COMPILED(data, dataset with_class_weights<void>(const dataset&, std::vector<double>))

} // namespace tapegraph::data
