#pragma once

#include <tapegraph/data/source.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// The seam for sets that make whole batches, in an order of their own: pipelines (data/pipeline.hpp). data::dataset holds one in place
/// of records by number, data::loader walks it.

namespace tapegraph::data {

inline constexpr std::int64_t unknown_size = -1; ///< as many as there will be
inline constexpr std::int64_t endless = -2;      ///< repeated without end

/// A batch that stands somewhere else, until the next one is asked for.
struct batch_view {
    std::int64_t count = 0;
    const std::vector<column_spec>* columns = nullptr; ///< of this batch: shapes may change from one to the next
    const std::vector<const std::byte*>* data = nullptr;
};

/// Goes through epochs, for one loader.
class batch_walk {
public:
    virtual ~batch_walk() = default;
    /// Begins epoch `epoch` at batch `first`, or just goes on where it stands there already.
    virtual void begin_epoch(std::uint64_t epoch, std::int64_t first) = 0;
    /// The next batch; false at the end.
    virtual bool next(batch_view& to) = 0;
};

class batch_source {
public:
    virtual ~batch_source() = default;
    /// Makes the first batch where nothing else tells their shapes. Throws argument_error where there is no batch.
    virtual const std::vector<column_spec>& columns() const = 0;
    /// Records, and batches, of one epoch; unknown_size, endless.
    virtual std::int64_t size() const = 0;
    virtual std::int64_t batches() const = 0;
    /// The same with the records put together to batches of so many; null where they are already.
    virtual std::shared_ptr<const batch_source> batched(std::int64_t size, bool drop_remainder) const = 0;
    /// `ahead`: batches that are to be kept ready, unless the source says that itself.
    virtual std::unique_ptr<batch_walk> walk(std::int64_t ahead) const = 0;
};

} // namespace tapegraph::data
