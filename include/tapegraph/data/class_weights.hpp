#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/data/dataset.hpp>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::data {

namespace detail {

/// Adds a column "sample_weight", if there is none, and multiplies it by the weight of each
/// record's class.
class class_weighting {
public:
    class_weighting(std::vector<column_spec> columns, std::vector<double> by_class, std::size_t labels, dtype type)
        : columns_(std::move(columns)), by_class_(std::move(by_class)), labels_(labels), weights_(columns_.size()) {
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
                                     number_text(by_class_[c]));
        const column_spec& from = columns_[labels_];
        if ((from.type != dtype::i32 && from.type != dtype::i64) || from.record_size() != 1)
            throw dtype_error("class_weight: column '" + from.name + "' holds " + name_of(from.type) + " " +
                              text_of(from.shape) + ", not one int class number per record");
    }
    const std::vector<column_spec>& columns() const { return columns_; }
    std::size_t labels() const { return labels_; }
    std::size_t weights() const { return weights_; }
    bool weighted() const { return weighted_; }
    std::size_t weight_bytes() const { return columns_[weights_].record_bytes(); }
    std::size_t label_bytes() const { return columns_[labels_].record_bytes(); }
    /// Multiplies the weight of a record, in place of the column's own if there is one.
    void weigh(std::int64_t record, const std::byte* label, std::byte* weight) const {
        const double factor = by_class_.empty() ? 1 : by_class_[class_of(record, label)];
        if (columns_[weights_].type == dtype::f64)
            multiply<double>(weight, factor);
        else
            multiply<float>(weight, factor);
    }

private:
    std::size_t class_of(std::int64_t record, const std::byte* at) const {
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

    std::vector<column_spec> columns_;
    std::vector<double> by_class_;
    std::size_t labels_, weights_;
    bool weighted_ = false;
};

/// A data set of numbered records with such a column.
class class_weighted_source final : public source {
public:
    class_weighted_source(dataset records, class_weighting weighting)
        : records_(std::move(records)), weighting_(std::move(weighting)) {}
    std::int64_t size() const override { return records_.size(); }
    const std::vector<column_spec>& columns() const override { return weighting_.columns(); }
    void fill(std::int64_t record, std::span<std::byte* const> places) const override {
        records_.records().fill(records_.record_at(record), places.first(records_.columns().size()));
        weighting_.weigh(record, places[weighting_.labels()], places[weighting_.weights()]);
    }

private:
    dataset records_;
    class_weighting weighting_;
};

/// A source of whole batches, with such a column.
class class_weighted_batches final : public batch_source {
public:
    class_weighted_batches(std::shared_ptr<const batch_source> batches, class_weighting weighting)
        : batches_(std::move(batches)), weighting_(std::move(weighting)) {}
    const std::vector<column_spec>& columns() const override { return weighting_.columns(); }
    std::int64_t size() const override { return batches_->size(); }
    std::int64_t batches() const override { return batches_->batches(); }
    std::shared_ptr<const batch_source> batched(std::int64_t size, bool drop_remainder) const override {
        auto inner = batches_->batched(size, drop_remainder);
        if (inner == nullptr) return nullptr;
        return std::make_shared<class_weighted_batches>(std::move(inner), weighting_);
    }
    std::unique_ptr<batch_walk> walk(std::int64_t ahead) const override {
        return std::make_unique<weighted_walk>(batches_->walk(ahead), weighting_);
    }

private:
    class weighted_walk final : public batch_walk {
    public:
        weighted_walk(std::unique_ptr<batch_walk> inner, const class_weighting& weighting)
            : inner_(std::move(inner)), weighting_(weighting) {}
        void begin_epoch(std::uint64_t epoch, std::int64_t first) override {
            inner_->begin_epoch(epoch, first);
            seen_ = 0;
        }
        bool next(batch_view& to) override {
            if (!inner_->next(to)) return false;
            const auto count = static_cast<std::size_t>(to.count);
            const std::size_t step = weighting_.weight_bytes(), which = weighting_.weights();
            weights_.resize(count); // doubles, even for floats
            auto* const own = reinterpret_cast<std::byte*>(weights_.data());
            if (weighting_.weighted() && count > 0) std::memcpy(own, (*to.data)[which], count * step);
            const std::byte* const labels = (*to.data)[weighting_.labels()];
            for (std::size_t i = 0; i < count; ++i)
                weighting_.weigh(seen_++, labels + i * weighting_.label_bytes(), own + i * step);
            columns_ = *to.columns; // shapes may differ between batches
            data_ = *to.data;
            if (!weighting_.weighted()) {
                columns_.push_back(weighting_.columns()[which]);
                data_.push_back(own);
            }
            data_[which] = own;
            to.columns = &columns_;
            to.data = &data_;
            return true;
        }

    private:
        std::unique_ptr<batch_walk> inner_;
        class_weighting weighting_;
        std::vector<double> weights_;
        std::vector<column_spec> columns_;
        std::vector<const std::byte*> data_;
        std::int64_t seen_ = 0;
    };

    std::shared_ptr<const batch_source> batches_;
    class_weighting weighting_;
};

} // namespace detail

/// Returns the data set with a column "sample_weight", of type `type` unless it has one:
/// `by_class[label]` for each record's label in column `labels`, or 1 if no weights are given,
/// times the existing weight. Throws dtype_error if labels are not int or weights not float,
/// argument_error for a weight that is negative or not finite. A label without a weight throws
/// range_error when its batch is requested.
dataset with_class_weights(const dataset& set, std::vector<double> by_class, std::size_t labels,
                           dtype type = dtype::f32);

#if TG_DEFINES(data)

TG_DEFINITION dataset with_class_weights(const dataset& set, std::vector<double> by_class, std::size_t labels,
                                         dtype type) {
    detail::class_weighting weighting(set.columns(), std::move(by_class), labels, type);
    if (set.batches())
        return dataset(std::make_shared<detail::class_weighted_batches>(set.batches(), std::move(weighting)));
    return dataset(std::make_shared<detail::class_weighted_source>(set, std::move(weighting)));
}

#endif

} // namespace tapegraph::data
