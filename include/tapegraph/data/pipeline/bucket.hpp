#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/pipeline/map.hpp>
#include <tapegraph/data/pipeline/ragged.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// bucket_by_length: batches of records of similar length, so that little is padded.

namespace tapegraph::data {

/// Options of `bucket_by_length`: which lengths are batched together.
struct bucket_options {
    /// Bucket i takes lengths from boundaries[i - 1] up to but excluding boundaries[i].
    std::vector<std::int64_t> boundaries{};
    std::vector<std::int64_t> batch_sizes{}; ///< per bucket, one more than boundaries; or one for all
    bool pad_to_boundary = false;            ///< pad to the longest length of the bucket, not of the batch
    padded_options padded{};
};

namespace detail {

bucket_options checked_buckets(bucket_options o);

template <class Up, class Length>
struct bucket_stage {
    using record = typename Up::element;
    using element =
        std::remove_cvref_t<decltype(std::declval<const padded_stack&>()(std::declval<std::vector<record>&>()))>;
    struct ticket {
        std::vector<record> records{};
        std::size_t bucket = 0;
        std::string origin{};
    };
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = true, keeps_columns = true;

    struct cursor {
        cursor(const bucket_stage& s, const walk_context& c)
            : stage(&s), up(s.up, c), buckets(s.options.batch_sizes.size()) {}
        bool draw(ticket& t) {
            const bucket_options& o = stage->options;
            while (!ended) {
                if (!up.next(item)) {
                    ended = true;
                    break;
                }
                const record& e = *item.element;
                const auto steps = static_cast<std::int64_t>(call_with(stage->length, e));
                const auto which = static_cast<std::size_t>(
                    std::upper_bound(o.boundaries.begin(), o.boundaries.end(), steps) - o.boundaries.begin());
                if (o.pad_to_boundary && which == o.boundaries.size())
                    throw shape_error("bucket_by_length: a record of length " + std::to_string(steps) +
                                      " in the last bucket, which has no boundary to pad to (" +
                                      stage->up.origin(item.ticket) + ")");
                ticket& b = buckets[which];
                if (b.records.empty()) b.origin = stage->up.origin(item.ticket);
                b.bucket = which;
                b.records.push_back(std::move(*item.element));
                if (static_cast<std::int64_t>(b.records.size()) < o.batch_sizes[which]) continue;
                t = std::exchange(b, {});
                return true;
            }
            if (o.padded.drop_remainder) return false;
            for (; left < buckets.size(); ++left) {
                if (buckets[left].records.empty()) continue;
                t = std::move(buckets[left++]);
                return true;
            }
            return false;
        }
        const bucket_stage* stage;
        pulled<Up> up;
        made_item<Up> item{};
        std::vector<ticket> buckets;
        std::size_t left = 0;
        bool ended = false;
    };
    element make(ticket& t, const walk_context& c) const {
        const busy_scope busy(c.counters(Up::stages, "bucket_by_length"));
        const padded_stack stack{options.padded};
        if (!options.pad_to_boundary) return stack(t.records);
        const std::vector<std::int64_t> longest{options.boundaries[t.bucket] - 1};
        return stack(t.records, &longest);
    }
    std::string origin(const ticket& t) const { return "batch from " + t.origin + " on"; }
    std::int64_t size() const { return up.size() == endless ? endless : unknown_size; }
    work_plan plan() const { return {0, 0, up.plan().ordered}; }

    Up up;
    Length length;
    bucket_options options;
};

} // namespace detail
} // namespace tapegraph::data

namespace tapegraph::data::detail {

#if TG_DEFINES(data)

TG_DEFINITION bucket_options checked_buckets(bucket_options o) {
    for (std::size_t i = 0; i < o.boundaries.size(); ++i)
        if (o.boundaries[i] < 1 || (i > 0 && o.boundaries[i] <= o.boundaries[i - 1]))
            throw argument_error("bucket_by_length: boundary " + std::to_string(i) + " is " +
                                 std::to_string(o.boundaries[i]) + "; they rise, from 1 on");
    if (o.batch_sizes.size() == 1) o.batch_sizes.resize(o.boundaries.size() + 1, o.batch_sizes[0]);
    if (o.batch_sizes.size() != o.boundaries.size() + 1)
        throw argument_error("bucket_by_length: " + std::to_string(o.batch_sizes.size()) + " batch sizes for " +
                             std::to_string(o.boundaries.size() + 1) + " buckets");
    for (const std::int64_t size : o.batch_sizes)
        if (size < 1) throw argument_error("bucket_by_length: a batch size is " + std::to_string(size));
    return o;
}

#endif

} // namespace tapegraph::data::detail
