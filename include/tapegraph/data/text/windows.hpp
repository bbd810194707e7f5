#pragma once

#include <tapegraph/data/text/vectorizer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::data {

/// Windows of a long sequence for a model that predicts the next token: record i has the columns
/// "tokens" (Index, [length]), the indices from i `stride` on, and "next" (i32, [length]), those
/// one later. A `stride` of 0 is `length`: adjacent windows. Indices after the last whole window
/// are omitted. Throws argument_error for an invalid length or stride and if no window fits. `size`
/// is that of the vocabulary, the bound of indices: range_error names one that is not below it.
template <class Index = float>
dataset next_token_windows(std::vector<std::int32_t> indices, std::int64_t size, std::int64_t length,
                           std::int64_t stride = 0) {
    if (length < 1 || stride < 0)
        throw argument_error("next_token_windows: length " + std::to_string(length) + ", stride " +
                             std::to_string(stride));
    if (stride == 0) stride = length;
    const auto count = static_cast<std::int64_t>(indices.size());
    if (count < length + 1)
        throw argument_error("next_token_windows: " + std::to_string(count) +
                             " tokens, a window and its last successor are " + std::to_string(length + 1));
    for (std::size_t i = 0; i < indices.size(); ++i)
        if (indices[i] < 0 || indices[i] >= size)
            throw range_error(index_outside("next_token_windows", indices[i], std::to_string(i), size));
    const auto inputs = std::make_shared<const std::vector<Index>>(detail::indices_as<Index>(indices, size));
    const auto nexts = std::make_shared<const std::vector<std::int32_t>>(std::move(indices));
    const auto fill = [=](std::int64_t record, const record_writer& out) {
        const std::int64_t first = record * stride;
        std::copy_n(inputs->begin() + first, length, out.values<Index>(0).begin());
        std::copy_n(nexts->begin() + first + 1, length, out.values<std::int32_t>(1).begin());
    };
    return dataset::from_generator((count - 1 - length) / stride + 1,
                                   {{"tokens", dtype_of<Index>, {length}}, {"next", dtype::i32, {length}}}, fill);
}

} // namespace tapegraph::data
