#pragma once

#include <tapegraph/cluster/ranks/sum_kind.hpp>
#include <tapegraph/cluster/ranks/tree_sum.hpp>

#include <vector>

/// The lower levels of the tree of sums, on one rank: shards are folded in order, with log2 of their number partial sums.

namespace tapegraph::distributed {

/// Folds `shards` vectors of `count` elements like one balanced binary tree: shards 0, 1, 2, ...
/// arrive in order, and sums carry like a binary counter. Partial sums have type Sum, so those of
/// 16-bit values are float with `tree_accumulator<float>`.
template <class Sum>
class tree_accumulator {
public:
    /// Throws argument_error unless `shards` is a power of two.
    tree_accumulator(std::size_t count, std::int64_t shards) : count_(count), shards_(shards) {
        require_tree(1, shards);
        for (std::int64_t below = 1; below < shards; below *= 2) partial_.emplace_back(count);
        if (partial_.empty()) partial_.emplace_back(count);
    }

    /// Adds the next shard's values. Throws argument_error for one too many.
    template <class T>
    void add(const T* values) {
        if (added_ == shards_)
            throw argument_error("tree_accumulator: got more than its " + std::to_string(shards_) + " shards");
        const std::int64_t carries = added_++;
        if ((carries & 1) == 0) { // an even shard waits for the next
            store(partial_[0].data(), values);
            return;
        }
        Sum* sum = partial_[0].data();
        fold(sum, values);
        std::size_t level = 1;
        for (; (carries >> level & 1) != 0; ++level) {
            sum_of<Sum>.add(partial_[level].data(), partial_[level].data(), sum, count_);
            sum = partial_[level].data();
        }
        if (added_ == shards_) {
            top_ = level - 1;
            return;
        }
        partial_[level].swap(partial_[level - 1]); // the level was empty
    }
    /// The sum of all shards, in place, as input of a tree_sum. Throws argument_error before the
    /// last has arrived.
    Sum* sum() {
        if (added_ != shards_)
            throw argument_error("tree_accumulator: got " + std::to_string(added_) + " of its " +
                                 std::to_string(shards_) + " shards");
        return partial_[top_].data();
    }
    /// Resets it.
    void clear() {
        added_ = 0;
        top_ = 0;
    }
    /// The number of vectors kept: log2 of the shards, or 1.
    std::size_t partial_sums() const { return partial_.size(); }

private:
    template <class T>
    void store(Sum* to, const T* values) const {
        for (std::size_t i = 0; i < count_; ++i) to[i] = static_cast<Sum>(values[i]);
    }
    template <class T>
    void fold(Sum* to, const T* values) const {
        for (std::size_t i = 0; i < count_; ++i) to[i] = detail::added(to[i], static_cast<Sum>(values[i]));
    }

    std::size_t count_;
    std::int64_t shards_, added_ = 0;
    std::size_t top_ = 0;
    std::vector<std::vector<Sum>> partial_;
};

} // namespace tapegraph::distributed
