#pragma once

#include <tapegraph/data/dataset.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace mode_study {

/// Generated series of two classes, record i in class i % 2: noise, over which class 1 has a wave in a third of its channels.
struct series {
    std::int64_t count = 0, length = 0, channels = 0;
    std::vector<float> values; ///< [count, length, channels]
    std::vector<float> labels; ///< [count], 0 or 1

    /// Columns "series" and "label" over these arrays, `records` of them: after the last record the
    /// first follows again.
    tapegraph::data::dataset as_dataset(std::int64_t records) const;
    std::span<const float> values_of(std::int64_t first, std::int64_t records) const;
    std::span<const float> labels_of(std::int64_t first, std::int64_t records) const;
};

/// Record i depends only on the seed and i.
series make_series(std::int64_t count, std::int64_t length, std::int64_t channels, std::uint64_t seed);

} // namespace mode_study
