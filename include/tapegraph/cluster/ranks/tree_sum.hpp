#pragma once

#include <tapegraph/cluster/ranks/exchange.hpp>
#include <tapegraph/cluster/ranks/sum_kind.hpp>
#include <tapegraph/core/component.hpp>

#include <algorithm>
#include <bit>

/// Sums over ranks by a balanced binary tree whose leaves are the ranks in order. Reduce-scatter by
/// halving the vector with neighbours first (distances 1, 2, 4, ...), then all-gather in reverse: 2
/// (W - 1) / W of the bytes, like a ring, in 2 log2 W messages. It is Rabenseifner's algorithm (R.
/// Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH,
/// 2005) with reversed distances, so that partners' blocks of ranks are adjacent: if every rank
/// contributes the balanced tree's sum over its own V / W shards, the result is that of the tree
/// over V shards, whatever W is.

namespace tapegraph::distributed {

/// Part of a vector, in elements.
struct slice {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
    friend bool operator==(const slice&, const slice&) = default;
};

namespace detail {

// Cuts at multiples of a cache line for elements of 4 bytes.
inline constexpr std::size_t slice_step = 16;

// The half of a range that a rank keeps in a round: the lower one where the round's bit of its number is 0.
inline slice half_of(slice whole, bool upper) {
    const std::size_t half = (whole.size() / 2 + slice_step - 1) / slice_step * slice_step;
    const std::size_t middle = std::min(whole.end, whole.begin + half);
    return upper ? slice{middle, whole.end} : slice{whole.begin, middle};
}

} // namespace detail

/// The elements of which `rank` of `size` ranks holds the sum after a reduce-scatter. `size` is a power of two.
inline slice slice_of(std::size_t count, int rank, int size) {
    slice mine{0, count};
    for (int distance = 1; distance < size; distance *= 2) mine = detail::half_of(mine, (rank & distance) != 0);
    return mine;
}

/// Throws argument_error unless `size` ranks can hold `shards` equal parts of a balanced tree: both
/// are powers of two, and one divides the other.
void require_tree(int size, std::int64_t shards);

/// Sums vectors of `count` elements over all ranks, one at a time: start, continue computing with
/// regular exchange::progress(), wait. Vectors up to `whole_bytes` are exchanged whole, in log2 W
/// messages; the bits are the same. Every rank creates its sums in the same order, and with the
/// same count.
class tree_sum final : public operation {
public:
    static constexpr std::size_t whole_bytes = 2048;

    /// `label` names the sum in errors: "bucket 2 (conv2/kernel)"; without a channel it opens one.
    /// Throws argument_error unless the number of ranks is a power of two.
    tree_sum(exchange& ranks, std::size_t count, sum_kind kind, std::string label, int channel = -1);
    ~tree_sum() override {
        abandon();
        if (received_ != nullptr) ranks_->give_back(received_);
    }
    /// Cancels a sum in flight, after an error.
    void abandon() noexcept {
        if (state_ != state::idle) ranks_->dismiss(*this);
        ranks_->cancel(request_);
        state_ = state::idle;
    }

    /// Elements that are summed.
    std::size_t count() const { return count_; }
    /// What messages call the sum.
    const std::string& label() const { return label_; }
    /// The elements that this rank sums before they are shared.
    slice own() const { return slice_of(ranks_->rank()); }
    /// The elements that a rank sums before they are shared.
    slice slice_of(int rank) const { return distributed::slice_of(count_, rank, ranks_->size()); }

    /// All ranks get the whole sum, in place of their contributions.
    void start_all_reduce(void* data) {
        if (count_ * kind_.bytes <= whole_bytes)
            begin(data, state::whole, true);
        else
            begin(data, state::scatter, true);
    }
    /// Each rank gets its own slice of the sum, in place; the rest holds partial sums.
    void start_reduce_scatter(void* data) { begin(data, state::scatter, false); }
    /// Each rank contributes its own slice, in place; all get all of them.
    void start_all_gather(void* data) { begin(data, state::gather, false); }

    /// Whether no sum is under way.
    bool done() const { return state_ == state::idle; }
    /// Waits until it is done. Throws exchange_error at the deadline.
    void wait() {
        if (!done()) ranks_->wait(*this, [this] { return done(); });
    }
    bool advance() override {
        while (state_ != state::idle) {
            if (request_.valid() && !ranks_->test(request_)) return false;
            if (under_way_) close_round();
            if (state_ == state::idle) break;
            open_round();
        }
        return true;
    }
    request pending() const override { return request_; }

private:
    enum class state { idle, whole, scatter, gather };

    // The range that a round's partners share; 0 is the first round.
    slice before(int round) const {
        slice range{0, count_};
        for (int k = 0; k < round; ++k) range = detail::half_of(range, upper(k));
        return range;
    }
    bool upper(int round) const { return (ranks_->rank() >> round & 1) != 0; }
    std::byte* at(std::size_t element) const { return data_ + element * kind_.bytes; }
    std::span<std::byte> part(slice of) const { return {at(of.begin), of.size() * kind_.bytes}; }

    void begin(void* data, state first, bool gathers);
    void open_round();
    void close_round();

    exchange* ranks_;
    sum_kind kind_;
    std::size_t count_;
    int channel_, rounds_ = 0, round_ = 0;
    state state_ = state::idle;
    bool gathers_ = false, under_way_ = false;
    request request_;
    std::byte* data_ = nullptr;
    std::string label_;
    std::vector<std::string> labels_;
    std::byte* received_ = nullptr;
};

#if TG_DEFINES(cluster)

TG_DEFINITION void require_tree(int size, std::int64_t shards) {
    if (shards < 1 || !std::has_single_bit(static_cast<std::uint64_t>(shards)))
        throw argument_error("shards: " + std::to_string(shards) + " is not a power of two");
    if (size < 1 || !std::has_single_bit(static_cast<unsigned>(size)) || shards % size != 0)
        throw argument_error("shards: " + std::to_string(size) + " ranks cannot share " + std::to_string(shards) +
                             " shards; expected a power of two from 1 to " + std::to_string(shards));
}

TG_DEFINITION tree_sum::tree_sum(exchange& ranks, std::size_t count, sum_kind kind, std::string label, int channel)
    : ranks_(&ranks),
      kind_(kind),
      count_(count),
      channel_(channel < 0 ? ranks.open_channel() : channel),
      label_(std::move(label)) {
    require_tree(ranks.size(), ranks.size());
    for (int distance = 1; distance < ranks.size(); distance *= 2) ++rounds_;
    const std::size_t first = count * kind.bytes <= whole_bytes ? count : detail::half_of({0, count}, false).size();
    if (rounds_ > 0) received_ = static_cast<std::byte*>(ranks.take(first * kind.bytes));
    for (const char* phase : {", reduce-scatter round ", ", all-gather round "})
        for (int r = 1; r <= rounds_; ++r)
            labels_.push_back(label_ + phase + std::to_string(r) + " of " + std::to_string(rounds_));
}

TG_DEFINITION void tree_sum::begin(void* data, state first, bool gathers) {
    if (!done()) throw argument_error("tree_sum: " + label_ + " was started twice");
    if (rounds_ == 0) return;
    data_ = static_cast<std::byte*>(data);
    state_ = first;
    gathers_ = gathers;
    round_ = first == state::gather ? rounds_ - 1 : 0;
    under_way_ = false;
    if (!advance()) ranks_->enlist(*this);
}

TG_DEFINITION void tree_sum::open_round() {
    const slice range = before(round_);
    const slice mine = detail::half_of(range, upper(round_)), theirs = detail::half_of(range, !upper(round_));
    std::span<const std::byte> sent = part(theirs);
    std::span<std::byte> wanted{received_, mine.size() * kind_.bytes};
    if (state_ == state::whole) {
        sent = part({0, count_});
        wanted = {received_, sent.size()};
    } else if (state_ == state::gather) {
        sent = part(mine);
        wanted = part(theirs);
    }
    const int label = state_ == state::gather ? 2 * rounds_ - 1 - round_ : round_;
    under_way_ = true;
    request_ =
        ranks_->start(ranks_->rank() ^ (1 << round_), sent, wanted, channel_, labels_[static_cast<std::size_t>(label)]);
}

TG_DEFINITION void tree_sum::close_round() {
    under_way_ = false;
    if (state_ == state::gather) {
        if (--round_ < 0) state_ = state::idle;
        return;
    }
    const slice mine = state_ == state::whole ? slice{0, count_} : detail::half_of(before(round_), upper(round_));
    // The lower ranks' sum is the left operand on both sides, which only affects the payloads
    // of NaN.
    std::byte* const own = at(mine.begin);
    if (upper(round_))
        ranks_->add(kind_, own, received_, own, mine.size());
    else
        ranks_->add(kind_, own, own, received_, mine.size());
    if (++round_ < rounds_) return;
    const bool more = state_ == state::scatter && gathers_;
    state_ = more ? state::gather : state::idle;
    round_ = rounds_ - 1;
}

#endif

} // namespace tapegraph::distributed
