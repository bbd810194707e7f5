#pragma once

#include <tapegraph/data/pipeline/stream.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// cache: keeps the elements of the first complete epoch for all others.

namespace tapegraph::data::detail {

/// Elements in memory. A store has `std::shared_ptr<const kept> whole()`, which is null until an
/// epoch is complete, and a `writer` with add() and finish(); `kept` has size() and at(i), for
/// several threads at once.
template <class E>
class memory_store {
public:
    struct kept {
        std::vector<E> elements;
        std::int64_t size() const { return static_cast<std::int64_t>(elements.size()); }
        E at(std::int64_t i) const { return elements[static_cast<std::size_t>(i)]; }
    };
    class writer {
    public:
        explicit writer(const memory_store& to) : to_(&to) {}
        void add(const E& e) { made_->elements.push_back(e); }
        void finish() {
            const std::lock_guard lock(to_->held_->mutex);
            if (!to_->held_->whole) to_->held_->whole = std::move(made_);
        }

    private:
        const memory_store* to_;
        std::shared_ptr<kept> made_ = std::make_shared<kept>();
    };
    std::shared_ptr<const kept> whole() const {
        const std::lock_guard lock(held_->mutex);
        return held_->whole;
    }

private:
    struct state {
        std::mutex mutex;
        std::shared_ptr<const kept> whole;
    };
    std::shared_ptr<state> held_ = std::make_shared<state>(); // shared by all copies of the set
};

template <class Up, class Store>
struct cache_stage {
    using element = typename Up::element;
    using kept = typename Store::kept;
    struct ticket {
        std::optional<element> made{};
        std::shared_ptr<const kept> from{};
        std::int64_t index = 0;
        std::string origin{};
    };
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = Up::batched, keeps_columns = true;

    struct cursor {
        cursor(const cache_stage& s, const walk_context& c) : stage(&s), whole(s.store.whole()) {
            if (whole) return;
            // Always caches the elements of epoch 0, so that the epoch in which a run started does
            // not matter.
            walk_context first = c;
            first.epoch = 0;
            up.emplace(s.up, first);
            writer.emplace(s.store);
        }
        bool draw(ticket& t) {
            t.made.reset();
            t.index = index;
            if (whole) {
                if (index == whole->size()) return false;
                t.from = whole;
                ++index;
                return true;
            }
            if (!up || !up->next(item)) {
                if (up) writer->finish();
                up.reset();
                return false;
            }
            writer->add(*item.element);
            t.origin = stage->up.origin(item.ticket);
            move_element(t.made, item.element);
            ++index;
            return true;
        }
        const cache_stage* stage;
        std::shared_ptr<const kept> whole;
        std::optional<pulled<Up>> up;
        std::optional<typename Store::writer> writer;
        made_item<Up> item{};
        std::int64_t index = 0;
    };
    element make(ticket& t, const walk_context& c) const {
        const busy_scope busy(c.counters(Up::stages, "cache"));
        if (t.made) return std::move(*t.made);
        return t.from->at(t.index);
    }
    std::string origin(const ticket& t) const {
        return t.origin.empty() ? "cached element " + std::to_string(t.index) : t.origin;
    }
    std::int64_t size() const {
        const auto whole = store.whole();
        return whole ? whole->size() : up.size();
    }
    work_plan plan() const { return {0, 0, up.plan().ordered}; }

    Up up;
    Store store{};
};

} // namespace tapegraph::data::detail
