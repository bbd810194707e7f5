#pragma once

#include <tapegraph/data/source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// The interface of sets that make whole batches, in an order of their own: pipelines
/// (data/pipeline.hpp). data::dataset holds one instead of numbered records, data::loader iterates
/// over it.

namespace tapegraph::data {

inline constexpr std::int64_t unknown_size = -1; ///< known only at the end
inline constexpr std::int64_t endless = -2;      ///< repeated infinitely

/// A batch stored elsewhere, valid until the next one is requested.
struct batch_view {
    std::int64_t count = 0;
    const std::vector<column_spec>* columns = nullptr; ///< those of this batch: shapes may differ between batches
    const std::vector<const std::byte*>* data = nullptr;
};

/// Iterates over epochs, for one loader.
class batch_walk {
public:
    virtual ~batch_walk() = default;
    /// Starts epoch `epoch` at batch `first`, or continues if it is already there.
    virtual void begin_epoch(std::uint64_t epoch, std::int64_t first) = 0;
    /// Gets the next batch; returns false at the end.
    virtual bool next(batch_view& to) = 0;
};

/// What makes whole batches, such as a pipeline that pads, for a data set that has no single records.
class batch_source {
public:
    virtual ~batch_source() = default;
    /// Makes the first batch if their shapes are not known otherwise. Throws argument_error if
    /// there is no batch.
    virtual const std::vector<column_spec>& columns() const = 0;
    /// The number of records, and of batches, of one epoch; or unknown_size, endless.
    virtual std::int64_t size() const = 0;
    /// Batches of one epoch; or unknown_size, endless.
    virtual std::int64_t batches() const = 0;
    /// The same with records grouped into batches of this size; null if they already are.
    virtual std::shared_ptr<const batch_source> batched(std::int64_t size, bool drop_remainder) const = 0;
    /// `ahead`: the number of batches to keep ready, unless the source determines it.
    virtual std::unique_ptr<batch_walk> walk(std::int64_t ahead) const = 0;
};

} // namespace tapegraph::data
