#pragma once

#include <tapegraph/data/pipeline/pool.hpp>
#include <tapegraph/data/pipeline/stage.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// A sequence of a stage's elements, made by the requesting thread, or ahead by others.

namespace tapegraph::data::detail {

/// For elements that can be moved, though perhaps not assigned (functions).
template <class E>
void move_element(std::optional<E>& to, std::optional<E>& from) {
    to.reset();
    if (from) to.emplace(std::move(*from));
    from.reset();
}

/// An element and its ticket.
template <class Stage>
struct made_item {
    typename Stage::ticket ticket{};
    std::optional<typename Stage::element> element{};

    made_item() = default;
    // NOLINTBEGIN(performance-noexcept-move-constructor): an element's may throw
    made_item(made_item&&) = default;
    made_item& operator=(made_item&& other) {
        ticket = std::move(other.ticket);
        move_element(element, other.element);
        return *this;
    }
    // NOLINTEND(performance-noexcept-move-constructor)
};

template <class Stage>
class element_stream final : pool_work {
public:
    using element = typename Stage::element;

    /// `plan`: additional requests of later stages.
    element_stream(const Stage& stage, const walk_context& context, work_plan plan = {})
        : stage_(stage), context_(context), plan_(together(stage.plan(), plan)) {
        if (plan_.depth > 0) plan_.threads = std::max(plan_.threads, 1);
        if (plan_.threads == 0) return;
        const auto slots = static_cast<std::size_t>(std::max<std::int64_t>(plan_.depth, plan_.threads)) + 1;
        slots_.resize(slots);
        numbers_.resize(slots);
        pool_ = std::make_unique<worker_pool>(static_cast<pool_work&>(*this),
                                              pool_options{plan_.threads, slots, 1, false, plan_.ordered});
    }
    element_stream(const element_stream&) = delete;
    element_stream& operator=(const element_stream&) = delete;
    ~element_stream() { end(); }

    /// Starts an epoch without its first `skip` elements, which are drawn but not made.
    void begin(std::uint64_t epoch, std::int64_t skip = 0) {
        end();
        context_.epoch = epoch;
        number_ = 0;
        cursor_.emplace(stage_, context_);
        typename Stage::ticket passed{};
        while (number_ < skip && cursor_->draw(passed)) ++number_;
        if (pool_) pool_->start();
    }
    /// Stops all threads that work on it.
    void end() {
        if (pool_) pool_->stop();
        cursor_.reset();
        given_ = false; // in the next epoch any element may use the slot
    }
    /// The size of the ring, without memory that elements point to.
    std::int64_t memory_bytes() const {
        return static_cast<std::int64_t>(std::max<std::size_t>(slots_.size(), 1) * sizeof(made_item<Stage>));
    }
    bool ordered() const { return plan_.ordered; }
    int threads() const { return plan_.threads; }

    /// Gets the next element; returns false at the end. The previous content of `item` is recycled.
    /// Throws record_error.
    bool next(made_item<Stage>& item) {
        if (!pool_) {
            item.element.reset();
            try {
                if (!cursor_->draw(item.ticket)) return false;
            } catch (...) {
                rethrow_with_origin(context_.epoch, number_, {});
            }
            make(item, number_++);
            return true;
        }
        // The element returns to its slot: the thread that fills it next frees it, so that buffers
        // return to the cache from which they were taken.
        if (given_) slots_[last_] = std::move(item);
        std::int64_t count = 0;
        given_ = pool_->take(last_, count);
        if (given_) item = std::move(slots_[last_]);
        return given_;
    }

private:
    void make(made_item<Stage>& item, std::int64_t number) {
        try {
            item.element.emplace(stage_.make(item.ticket, context_));
        } catch (...) {
            rethrow_with_origin(context_.epoch, number, stage_.origin(item.ticket));
        }
    }
    void open(std::size_t slot) override { slots_[slot].element.reset(); }
    bool draw(std::size_t slot, std::int64_t) override {
        try {
            if (!cursor_->draw(slots_[slot].ticket)) return false;
        } catch (...) {
            rethrow_with_origin(context_.epoch, number_, {});
        }
        numbers_[slot] = number_++;
        return true;
    }
    void make(std::size_t slot, std::int64_t) override { make(slots_[slot], numbers_[slot]); }

    const Stage& stage_;
    walk_context context_;
    work_plan plan_;
    std::optional<typename Stage::cursor> cursor_;
    std::int64_t number_ = 0;
    std::vector<made_item<Stage>> slots_;
    std::vector<std::int64_t> numbers_;
    std::size_t last_ = 0;
    bool given_ = false;
    std::unique_ptr<worker_pool> pool_; // last, so that its threads end before the data they work on
};

/// The stream of a stage's elements, if it is not element_stream: specialised for batches, which
/// are made in place.
template <class Stage>
struct stream_of {
    using type = element_stream<Stage>;
};

/// For cursors of stages that have to inspect elements: they pull them from below.
template <class Up>
class pulled {
public:
    pulled(const Up& up, const walk_context& context)
        : stream_(std::make_unique<typename stream_of<Up>::type>(up, context)) {
        stream_->begin(context.epoch);
    }
    bool next(made_item<Up>& item) { return stream_->next(item); }

private:
    std::unique_ptr<typename stream_of<Up>::type> stream_; // by pointer, because it must not move
};

} // namespace tapegraph::data::detail
