#pragma once

#include <tapegraph/data/pipeline/column.hpp>
#include <tapegraph/data/pipeline/order.hpp>
#include <tapegraph/data/pipeline/padded.hpp>
#include <tapegraph/data/pipeline/stream.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// batch: every thread writes its record straight into its row of a batch in the ring.

namespace tapegraph::data::detail {

template <class Up, class Layout = plain_rows<typename Up::element>>
struct batch_stage {
    using record = typename Up::element;
    using rows_type = typename Layout::rows;
    using element = typename rows_type::batched;
    using ticket = std::vector<typename Up::ticket>;
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = true, keeps_columns = true;

    struct cursor {
        cursor(const batch_stage& s, const walk_context& c) : stage(&s), up(s.up, c) {}
        bool draw(ticket& t) {
            const auto most = static_cast<std::size_t>(stage->rows);
            t.resize(most);
            std::size_t count = 0;
            while (count < most && up.draw(t[count])) ++count;
            if (count == 0 || (count < most && stage->drop)) return false;
            t.resize(count);
            return true;
        }
        const batch_stage* stage;
        typename Up::cursor up;
    };
    // For batches that go through further stages; batch_stream makes those that are returned.
    element make(ticket& t, const walk_context& c) const {
        rows_type to;
        layout.configure(to);
        record_shapes known = shapes;
        const auto count = static_cast<std::int64_t>(t.size());
        for (std::int64_t i = 0; i < count; ++i) {
            record r = up.make(t[static_cast<std::size_t>(i)], c);
            if (i == 0) {
                if (known.empty()) rows_type::add_shapes(r, known);
                std::size_t column = 0;
                to.open(count, known, column);
            }
            to.put(i, std::move(r));
        }
        layout.finish(to, count);
        return to.get(count);
    }
    std::string origin(const ticket& t) const {
        return t.empty() ? std::string()
                         : "batch of " + std::to_string(t.size()) + " from " + up.origin(t.front()) + " on";
    }
    std::int64_t size() const {
        return sized(up.size(), [&](std::int64_t n) { return drop ? n / rows : (n + rows - 1) / rows; });
    }
    work_plan plan() const { return up.plan(); }

    Up up;
    std::int64_t rows;
    bool drop;
    record_shapes shapes; ///< those of records; empty: as in the first one
    Layout layout{};
};

template <class Up, class Layout>
class batch_stream final : pool_work {
public:
    using stage_type = batch_stage<Up, Layout>;
    using element = typename stage_type::element;
    using rows_type = typename stage_type::rows_type;

    batch_stream(const stage_type& stage, const walk_context& context, work_plan plan = {})
        : stage_(stage),
          context_(context),
          plan_(together(stage.plan(), plan)),
          shapes_(stage.shapes),
          counters_(context.counters(Up::stages, "batch")) {
        if (!plan_.ordered) { // elements arrive as they get ready, and one thread assembles them
            loose_ = std::make_unique<element_stream<Up>>(stage.up, context);
            plan_.threads = 0;
        }
        if (plan_.depth > 0) plan_.threads = std::max(plan_.threads, 1);
        if (shapes_.empty() && rows_type::fixed) rows_type::add_fixed_shapes(shapes_);
        ring_.resize(static_cast<std::size_t>(plan_.depth) + 1);
        for (slot& s : ring_) {
            s.tickets.resize(static_cast<std::size_t>(stage.rows));
            stage.layout.configure(s.rows);
        }
        pool_ = std::make_unique<worker_pool>(static_cast<pool_work&>(*this),
                                              pool_options{plan_.threads, ring_.size(), stage.rows, stage.drop, true});
    }
    batch_stream(const batch_stream&) = delete;
    batch_stream& operator=(const batch_stream&) = delete;
    ~batch_stream() { end(); }

    void begin(std::uint64_t epoch, std::int64_t skip = 0) {
        begin_drawing(epoch, skip);
        pool_->start();
    }
    void end() {
        pool_->stop();
        if (loose_) loose_->end();
        cursor_.reset();
    }
    bool ordered() const { return plan_.ordered; }
    /// Shapes of records, if they are declared or known from the first record.
    const record_shapes& shapes() const { return shapes_; }
    /// The size of the batches in the ring and the tickets of their records. Makes the first record
    /// if its shape is not known otherwise.
    std::int64_t memory_bytes() {
        if (shapes_.empty()) {
            begin_drawing(0, 0);
            const std::exception_ptr failure = std::exchange(failure_, nullptr);
            first_.reset();
            end();
            if (failure) std::rethrow_exception(failure);
        }
        std::size_t column = 0;
        const std::int64_t each = shapes_.empty() ? 0 : rows_type::bytes(stage_.rows, shapes_, column);
        return static_cast<std::int64_t>(ring_.size()) *
               (each + stage_.rows * static_cast<std::int64_t>(sizeof(made_item<Up>)));
    }

    bool next(made_item<stage_type>& item) {
        item.element.reset();
        std::size_t which = 0;
        std::int64_t count = 0;
        if (!pool_->take(which, count)) return false;
        item.element.emplace(ring_[which].rows.get(count));
        return true;
    }

private:
    void begin_drawing(std::uint64_t epoch, std::int64_t skip) {
        end();
        context_.epoch = epoch;
        number_ = 0;
        first_.reset();
        if (loose_) {
            loose_->begin(epoch, skip * stage_.rows);
        } else {
            cursor_.emplace(stage_.up, context_);
            typename Up::ticket passed{};
            while (number_ < skip * stage_.rows && cursor_->draw(passed)) ++number_;
        }
        if (shapes_.empty()) look_at_first();
    }
    struct slot {
        rows_type rows;
        std::vector<made_item<Up>> tickets;
        std::int64_t number = 0;
    };

    // All buffers have the shapes of the first record, so that one is made before the threads
    // start.
    void look_at_first() {
        try {
            made_item<Up> item;
            if (loose_ ? !loose_->next(item) : !cursor_->draw(item.ticket)) return;
            first_.emplace(std::move(item));
            if (!first_->element) first_->element.emplace(stage_.up.make(first_->ticket, context_));
            rows_type::add_shapes(*first_->element, shapes_);
        } catch (...) {
            failure_ = std::current_exception(); // rethrown where the record is drawn
            drawn_ = first_.has_value();
            if (!drawn_) first_.emplace();
        }
    }
    bool draw_next(made_item<Up>& to) {
        if (first_) {
            to = std::move(*first_);
            first_.reset();
            if (failure_) {
                try {
                    std::rethrow_exception(std::exchange(failure_, nullptr));
                } catch (...) {
                    rethrow_with_origin(context_.epoch, number_, drawn_ ? stage_.up.origin(to.ticket) : std::string());
                }
            }
            return true;
        }
        return loose_ ? loose_->next(to) : cursor_->draw(to.ticket);
    }
    void open(std::size_t at) override {
        std::size_t column = 0;
        if (!shapes_.empty()) ring_[at].rows.open(stage_.rows, shapes_, column);
        ring_[at].number = number_;
    }
    bool draw(std::size_t at, std::int64_t row) override {
        try {
            made_item<Up>& to = ring_[at].tickets[static_cast<std::size_t>(row)];
            to.element.reset();
            if (!draw_next(to)) return false;
        } catch (...) {
            rethrow_with_origin(context_.epoch, number_, {});
        }
        ++number_;
        return true;
    }
    void make(std::size_t at, std::int64_t row) override {
        made_item<Up>& from = ring_[at].tickets[static_cast<std::size_t>(row)];
        try {
            if (!from.element) from.element.emplace(stage_.up.make(from.ticket, context_));
            const busy_scope busy(counters_);
            ring_[at].rows.put(row, std::move(*from.element));
            from.element.reset(); // freed on the thread that made it
        } catch (...) {
            rethrow_with_origin(context_.epoch, ring_[at].number + row, stage_.up.origin(from.ticket));
        }
    }

    void finish(std::size_t at, std::int64_t count) override {
        try {
            const busy_scope busy(counters_);
            stage_.layout.finish(ring_[at].rows, count);
        } catch (...) {
            rethrow_with_origin(context_.epoch, ring_[at].number,
                                "batch from " + stage_.up.origin(ring_[at].tickets.front().ticket) + " on");
        }
    }

    const stage_type& stage_;
    walk_context context_;
    work_plan plan_;
    record_shapes shapes_;
    stage_counters* counters_;
    std::optional<typename Up::cursor> cursor_;
    std::unique_ptr<element_stream<Up>> loose_;
    std::optional<made_item<Up>> first_;
    std::exception_ptr failure_; // that of the first record, and whether it was drawn
    bool drawn_ = false;
    std::int64_t number_ = 0;
    std::vector<slot> ring_;
    std::unique_ptr<worker_pool> pool_; // last, so that it is destroyed first
};

template <class Up, class Layout>
struct stream_of<batch_stage<Up, Layout>> {
    using type = batch_stream<Up, Layout>;
};

} // namespace tapegraph::data::detail
