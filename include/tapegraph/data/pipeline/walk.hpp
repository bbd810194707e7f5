#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/pipeline/stream.hpp>

#include <charconv>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Iteration over a set.

namespace tapegraph::data {

/// The position of a walk: after `element` elements of epoch `epoch`. It applies to any set
/// constructed in the same way, in any process.
struct pipeline_position {
    std::uint64_t epoch = 0;
    std::int64_t element = 0;

    bool operator==(const pipeline_position&) const = default;
    /// The place for messages: "epoch 2 element 17".
    std::string text() const { return "epoch " + std::to_string(epoch) + " element " + std::to_string(element); }
    /// Parses the result of text(). Throws data_error for other text.
    static pipeline_position parse(std::string_view text);
};

/// Iterates over the elements of a set, like the iterators of tf.compat.v1: next() until it returns
/// none; initialize() starts again. Threads that work ahead end with it.
template <class Stage>
class walk {
public:
    using element = typename Stage::element;

    /// Starts with epoch `epoch`. If `once`, initialize() is refused.
    walk(Stage stage, std::shared_ptr<detail::report_store> report, std::uint64_t epoch = 0, bool once = false,
         detail::work_plan plan = {})
        : stage_(std::make_unique<const Stage>(std::move(stage))),
          report_(std::move(report)),
          taker_(report_ ? &report_->stages[static_cast<std::size_t>(report_->size - 1)] : nullptr),
          stream_(std::make_unique<stream>(*stage_, detail::walk_context{epoch, report_.get(), 0}, plan)),
          once_(once) {
        if (taker_ != nullptr) taker_->name = "step";
        position_.epoch = epoch;
    }
    walk(walk&&) noexcept = default;
    walk& operator=(walk&& other) noexcept {
        item_ = {}; // destroys its buffers, its ring and its stage in this order
        stream_ = nullptr;
        stage_ = std::move(other.stage_);
        report_ = std::move(other.report_);
        taker_ = other.taker_;
        stream_ = std::move(other.stream_);
        item_ = std::move(other.item_);
        position_ = other.position_;
        begun_ = other.begun_, once_ = other.once_, over_ = other.over_;
        return *this;
    }

    /// The next element; nullopt at the end of the epoch, and after it. Throws record_error for an
    /// element that cannot be made.
    std::optional<element> next() {
        element* const e = advance();
        if (e == nullptr) return std::nullopt;
        return std::move(*e);
    }
    /// The same, but throws range_error at the end, like get_next() of TensorFlow 1.
    element get_next() {
        element* const e = advance();
        if (e == nullptr)
            throw range_error("data pipeline: end of sequence, epoch " + std::to_string(position_.epoch) + " has " +
                              std::to_string(position_.element) + " elements");
        return std::move(*e);
    }
    /// The same in place, valid until the next call; null at the end.
    element* advance() {
        if (over_) return nullptr;
        const double start = tapegraph::detail::steady_seconds();
        if (taker_ != nullptr && left_ > 0)
            taker_->busy.fetch_add(nanoseconds(start - left_), std::memory_order_relaxed);
        if (!begun_) begin();
        over_ = !stream_->next(item_);
        left_ = tapegraph::detail::steady_seconds();
        if (taker_ != nullptr) {
            taker_->add_waiting(left_ - start);
            if (!over_) taker_->elements.fetch_add(1, std::memory_order_relaxed);
        }
        waited_ += left_ - start;
        if (over_) return nullptr;
        ++position_.element;
        return &*item_.element;
    }

    /// Restarts at the beginning of epoch `epoch`. Throws argument_error for a one-shot walk that
    /// has started.
    void initialize(std::uint64_t epoch) { go_to({epoch, 0}); }
    /// The same for the epoch after this one.
    void initialize() { initialize(position_.epoch + 1); }

    /// The position of the next element. Throws argument_error if elements have no fixed order,
    /// because a number then does not identify them.
    pipeline_position position() const {
        if (!stream_->ordered())
            throw argument_error("data pipeline: no position, elements come in the order in which they are ready");
        return position_;
    }
    /// Whether restore(p) would change nothing.
    bool is_at(const pipeline_position& p) const { return begun_ && !over_ && position_ == p; }
    /// Continues from the given position. Elements before it are drawn, and made only if a stage
    /// has to inspect them (filter, flat_map, bucket_by_length, window, unbatch, cache). Throws
    /// argument_error for a one-shot walk that has started, and if elements have no fixed order.
    void restore(const pipeline_position& p) { go_to(p); }

    /// The epoch that is walked, from 0.
    std::uint64_t epoch() const { return position_.epoch; }
    /// Time spent in next() since the epoch began.
    double wait_seconds() const { return waited_; }
    /// The last stage of the pipeline.
    const Stage& stage() const { return *stage_; }

private:
    using stream = typename detail::stream_of<Stage>::type;
    static std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

    void go_to(const pipeline_position& p) {
        if (once_ && begun_)
            throw argument_error("data pipeline: a one-shot iterator has begun and cannot start over; take iterator()");
        if (p.element > 0 && !stream_->ordered())
            throw argument_error(
                "data pipeline: no position to resume from, elements come in the order in which they are ready");
        item_ = {};
        position_ = p;
        begun_ = over_ = false;
        waited_ = left_ = 0;
    }
    void begin() {
        stream_->begin(position_.epoch, position_.element);
        begun_ = true;
    }

    std::unique_ptr<const Stage> stage_;
    std::shared_ptr<detail::report_store> report_;
    detail::stage_counters* taker_;
    std::unique_ptr<stream> stream_; // threads end before the stage is destroyed
    detail::made_item<Stage> item_;
    pipeline_position position_;
    double waited_ = 0, left_ = 0;
    bool begun_ = false, once_ = false, over_ = false;
};

/// The elements of a walk for a loop, kept by the iterator.
template <class Stage>
class walk_iterator {
public:
    using element = typename Stage::element;
    using value_type = element;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    walk_iterator() = default;
    explicit walk_iterator(std::shared_ptr<walk<Stage>> from) : from_(std::move(from)), current_(from_->advance()) {}
    element& operator*() const { return *current_; }
    element* operator->() const { return current_; }
    walk_iterator& operator++() {
        current_ = from_->advance();
        return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return current_ == nullptr; }

private:
    std::shared_ptr<walk<Stage>> from_;
    element* current_ = nullptr;
};

/// The rest of a walk's epoch as a range.
template <class Stage>
class epoch_range {
public:
    explicit epoch_range(walk<Stage> w) : walk_(std::make_shared<walk<Stage>>(std::move(w))) {}
    walk_iterator<Stage> begin() const { return walk_iterator<Stage>(walk_); }
    std::default_sentinel_t end() const { return {}; }

private:
    std::shared_ptr<walk<Stage>> walk_;
};

#if TG_DEFINES(data)

TG_DEFINITION pipeline_position pipeline_position::parse(std::string_view text) {
    pipeline_position p;
    const auto refuse = [&] {
        throw data_error("data pipeline: '" + std::string(text.substr(0, 60)) +
                         "' is not a position, such as 'epoch 3 element 17'");
    };
    const auto number = [&](std::string_view& rest, std::string_view word, auto& to) {
        if (!rest.starts_with(word)) refuse();
        rest.remove_prefix(word.size());
        const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), to);
        if (failure != std::errc()) refuse();
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    };
    std::string_view rest = text;
    number(rest, "epoch ", p.epoch);
    number(rest, " element ", p.element);
    if (!rest.empty() || p.element < 0) refuse();
    return p;
}

#endif

} // namespace tapegraph::data
