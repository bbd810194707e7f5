#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/batch_source.hpp>
#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/source.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// A data set: named columns of equal length, and the order of iteration. It is a value; copies
/// share the data.
///
///     data::dataset train;
///     train.add("image", std::move(pixels), {50, 50, 3}).add("label", std::move(labels));
///     data::loader batches(train.shuffle(7).batch(16).prefetch(2));      // data/loader.hpp
///     for (const data::batch& b : batches.epoch(0)) use(b.values<float>("image"), b.count());

namespace tapegraph::data {

/// Options of `dataset::batch`.
struct batch_options {
    bool drop_remainder = false; ///< omit an incomplete last batch
};

/// Records in columns, and how they are shuffled, batched and prefetched. Copies share the records.
class dataset {
public:
    dataset();
    explicit dataset(std::shared_ptr<const source> records);
    /// Wraps a source of batches, or of records grouped by batch(), in an order of their own
    /// (data/pipeline.hpp). Use the pipeline's shuffle, subset, take and split.
    explicit dataset(std::shared_ptr<const batch_source> batches);

    /// Generates records on demand: `generate(std::int64_t record, const record_writer& out)`
    /// writes one. It runs on the loader's thread; its exceptions are rethrown where the batch is
    /// requested.
    template <class Generate>
    static dataset from_generator(std::int64_t size, std::vector<column_spec> columns, Generate generate) {
        return dataset(std::make_shared<generated_source<Generate>>(size, std::move(columns), std::move(generate)));
    }

    /// Adds a column; `record_shape` is the shape of one record ([] for one value), and records are
    /// contiguous. Throws shape_error if the values do not fit the shape or the other columns.
    template <class T>
        requires(!std::is_same_v<T, bool>)
    dataset& add(std::string name, std::vector<T> values, std::vector<std::int64_t> record_shape = {}) {
        auto owner = std::make_shared<const std::vector<T>>(std::move(values));
        const auto size = static_cast<std::int64_t>(owner->size());
        std::shared_ptr<const std::byte> data(owner, reinterpret_cast<const std::byte*>(owner->data()));
        return add_column({std::move(name), dtype_of<T>, std::move(record_shape)}, std::move(data), size);
    }

    /// Adds a tensor as a column, with one record per index of its first axis. Its elements are
    /// shared until it is written to. Throws as above, and shape_error for a tensor of rank 0.
    template <class Tensor>
        requires requires(const Tensor& t) { t.outline_view(), t.data(); }
    dataset& add(std::string name, Tensor values) {
        const auto view = values.outline_view();
        if (view.rank == 0)
            throw shape_error("data set: column '" + name + "' is a tensor of rank 0, it has no records");
        auto owner = std::make_shared<const Tensor>(std::move(values));
        std::shared_ptr<const std::byte> data(owner, reinterpret_cast<const std::byte*>(owner->data()));
        return add_column({std::move(name), view.type, {view.extents + 1, view.extents + view.rank}}, std::move(data),
                          owner->size());
    }

    /// Adds a column without copying; the caller keeps it alive and unchanged.
    template <class T>
    dataset& add_view(std::string name, std::span<const T> values, std::vector<std::int64_t> record_shape = {}) {
        std::shared_ptr<const std::byte> data(std::shared_ptr<const void>(),
                                              reinterpret_cast<const std::byte*>(values.data()));
        return add_column({std::move(name), dtype_of<T>, std::move(record_shape)}, std::move(data),
                          static_cast<std::int64_t>(values.size()));
    }

    /// Visits the records of epoch e in a random order that depends only on (seed, e).
    dataset shuffle(std::uint64_t seed) const;
    // clang-format off
    no_such_option_in<batch_options> batch(any_argument, ...) const TG_MISTAKE;
    // clang-format on

    /// Groups records. Throws argument_error for a size below 1.
    dataset batch(std::int64_t size, batch_options options = {}) const;

    /// Keeps up to `depth` batches ready, assembled by a background thread; 0 assembles each on
    /// request.
    dataset prefetch(std::int64_t depth) const;

    /// The records of the given numbers, in this order. Throws range_error for one that does not exist.
    dataset subset(std::span<const std::int64_t> records) const;

    /// The first `count` records, or all if there are fewer.
    dataset take(std::int64_t count) const;

    /// The part that one of `parts` ranks reads when they train together: of each batch of n
    /// records the rows [n part / parts, n (part + 1) / parts), those of its shards. Size, batches
    /// and order are those of the whole set; other rows of a batch are zeros, and their records are
    /// never requested. `fit` of a sharded model takes such a set, and checks over all ranks that
    /// an epoch read every record once; evaluation reads the whole set. Throws argument_error for
    /// an invalid part, and for a pipeline.
    dataset shard(int part, int parts) const;
    /// The arguments of shard(); 0 of 1 means everything.
    int part() const { return part_; }
    /// The number of parts that an epoch is divided into, one for each process.
    int parts() const { return parts_; }

    /// The number of records; negative if a pipeline does not know it.
    std::int64_t size() const;
    /// Names, types and extents of a record's columns, the model's input first.
    const std::vector<column_spec>& columns() const { return batches_ ? batches_->columns() : source_->columns(); }
    /// The source of whole batches; null if records are numbered.
    const std::shared_ptr<const batch_source>& batches() const { return batches_; }
    /// What the records are read from.
    const source& records() const { return *source_; }
    /// The source's number of this set's record `position`.
    std::int64_t record_at(std::int64_t position) const;

    /// 0 before batch() is called.
    std::int64_t batch_size() const { return batch_size_; }
    /// The arguments of batch(), prefetch() and shuffle().
    bool drop_remainder() const { return drop_remainder_; }
    /// Batches that a thread assembles ahead; 0: none.
    std::int64_t prefetch_depth() const { return prefetch_depth_; }
    /// The seed of the order, or nothing for the order of the records.
    std::optional<std::uint64_t> shuffle_seed() const { return shuffle_seed_; }
    /// The number of batches of one epoch; negative if a pipeline does not know it. Throws
    /// argument_error before batch() is called.
    std::int64_t batches_per_epoch() const;

private:
    void check_records(const char* what) const;
    dataset& add_column(column_spec column, std::shared_ptr<const std::byte> data, std::int64_t values);

    std::shared_ptr<const source> source_;
    std::shared_ptr<const batch_source> batches_; ///< instead of numbered records
    std::shared_ptr<const std::vector<std::int64_t>> indices_;
    std::optional<std::uint64_t> shuffle_seed_;
    std::int64_t batch_size_ = 0;
    std::int64_t prefetch_depth_ = 0;
    int part_ = 0, parts_ = 1;
    bool drop_remainder_ = false;
};

/// What `train_validation_split` returns; both share the records.
struct split_datasets {
    dataset train, validation;
};

/// Splits records at random: round(fraction * size) of them, but at least one on either side, are
/// for validation. Throws argument_error for a fraction outside (0, 1) or fewer than two records.
split_datasets train_validation_split(const dataset& all, std::uint64_t seed, double fraction);

#if TG_DEFINES(data)

TG_DEFINITION dataset::dataset(std::shared_ptr<const source> records) : source_(std::move(records)) {
    if (!source_) throw argument_error("data set: null source");
}

TG_DEFINITION dataset::dataset(std::shared_ptr<const batch_source> batches) : dataset() {
    batches_ = std::move(batches);
    if (!batches_) throw argument_error("data set: null source");
}

TG_DEFINITION dataset dataset::shuffle(std::uint64_t seed) const {
    check_records("shuffle");
    dataset result = *this;
    result.shuffle_seed_ = seed;
    return result;
}

TG_DEFINITION dataset dataset::batch(std::int64_t size, batch_options options) const {
    if (size < 1) throw argument_error("dataset.batch: batch size must be at least 1, got " + std::to_string(size));
    dataset result = *this;
    result.batch_size_ = size;
    result.drop_remainder_ = options.drop_remainder;
    if (!batches_) return result;
    if (auto batched = batches_->batched(size, options.drop_remainder)) result.batches_ = std::move(batched);
    return result;
}

TG_DEFINITION dataset dataset::prefetch(std::int64_t depth) const {
    if (depth < 0 || depth > 4096)
        throw argument_error("dataset.prefetch: depth must be 0 to 4096, got " + std::to_string(depth));
    dataset result = *this;
    result.prefetch_depth_ = depth;
    return result;
}

TG_DEFINITION dataset dataset::subset(std::span<const std::int64_t> records) const {
    check_records("subset");
    auto indices = std::make_shared<std::vector<std::int64_t>>();
    indices->reserve(records.size());
    for (const auto record : records) {
        if (record < 0 || record >= size())
            throw range_error("dataset.subset: record " + std::to_string(record) + " of " + std::to_string(size()));
        indices->push_back(record_at(record));
    }
    dataset result = *this;
    result.indices_ = std::move(indices);
    return result;
}

TG_DEFINITION dataset dataset::take(std::int64_t count) const {
    if (count < 0) throw argument_error("dataset.take: " + std::to_string(count) + " records");
    check_records("take");
    std::vector<std::int64_t> records(static_cast<std::size_t>(count < size() ? count : size()));
    for (std::size_t i = 0; i < records.size(); ++i) records[i] = static_cast<std::int64_t>(i);
    return subset(records);
}

TG_DEFINITION dataset dataset::shard(int part, int parts) const {
    check_records("shard");
    if (parts < 1 || part < 0 || part >= parts)
        throw argument_error("dataset.shard: part " + std::to_string(part) + " of " + std::to_string(parts));
    dataset result = *this;
    result.part_ = part;
    result.parts_ = parts;
    return result;
}

TG_DEFINITION std::int64_t dataset::size() const {
    if (batches_) return batches_->size();
    return indices_ ? static_cast<std::int64_t>(indices_->size()) : source_->size();
}

TG_DEFINITION std::int64_t dataset::record_at(std::int64_t position) const {
    return indices_ ? (*indices_)[static_cast<std::size_t>(position)] : position;
}

TG_DEFINITION std::int64_t dataset::batches_per_epoch() const {
    if (batches_) return batches_->batches();
    if (batch_size_ < 1) throw argument_error("data set: no batch size; call batch(n)");
    return drop_remainder_ ? size() / batch_size_ : size() / batch_size_ + (size() % batch_size_ != 0);
}

TG_DEFINITION void dataset::check_records(const char* what) const {
    if (batches_)
        throw argument_error(std::string("dataset.") + what +
                             ": the set is a pipeline, whose records have no numbers; say it in the pipeline");
}

TG_DEFINITION split_datasets train_validation_split(const dataset& all, std::uint64_t seed, double fraction) {
    if (!(fraction > 0 && fraction < 1))
        throw argument_error("train_validation_split: fraction must lie between 0 and 1, got " + number_text(fraction));
    if (all.size() < 2)
        throw argument_error("train_validation_split: " + std::to_string(all.size()) + " records cannot be divided");
    std::vector<std::int64_t> order(static_cast<std::size_t>(all.size()));
    constexpr std::uint64_t split_stream = 0x73706C6974; // no epoch uses it, so no epoch repeats the split's order
    shuffle_order(seed, split_stream, order);
    auto held = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(all.size())));
    held = held < 1 ? 1 : held >= all.size() ? all.size() - 1 : held;
    const std::span<const std::int64_t> numbers(order);
    return {all.subset(numbers.subspan(static_cast<std::size_t>(held))),
            all.subset(numbers.first(static_cast<std::size_t>(held)))};
}

TG_DEFINITION dataset::dataset() : source_(std::make_shared<array_source>()) {}

TG_DEFINITION dataset& dataset::add_column(column_spec column, std::shared_ptr<const std::byte> data,
                                           std::int64_t values) {
    const array_source* const arrays = source_->arrays();
    if (arrays == nullptr || indices_ || batches_)
        throw argument_error("dataset.add: column '" + column.name +
                             "': columns are added to arrays only, before subset, take and split");
    // Copies share the columns, so the old source must not change.
    auto grown = std::make_shared<array_source>(*arrays);
    grown->add(std::move(column), std::move(data), values);
    source_ = std::move(grown);
    return *this;
}

#endif

} // namespace tapegraph::data
