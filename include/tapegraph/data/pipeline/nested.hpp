#pragma once

#include <tapegraph/data/pipeline/map.hpp>
#include <tapegraph/data/pipeline/source.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// flat_map and interleave: flatten sets within elements.

namespace tapegraph::data {

/// Options of `interleave`: how sets take turns.
struct interleave_options {
    std::int64_t cycle = 4; ///< sets that take turns
    std::int64_t block = 1; ///< elements that each yields per turn
};

namespace detail {

/// Converts a function's result for an element, a set or a range, to a stage.
template <class R>
struct inner_stage {
    using type = source_stage<range_of_elements<R>>;
    static type of(R r) { return {range_of_elements<R>(std::move(r))}; }
};
template <class Stage>
struct inner_stage<set<Stage>> {
    using type = Stage;
    static type of(const set<Stage>& s) { return s.stage(); }
};

template <class Up, class F>
struct interleave_stage {
    using made =
        std::remove_cvref_t<decltype(call_with(std::declval<const F&>(), std::declval<typename Up::element>()))>;
    using inner = typename inner_stage<made>::type;
    using element = typename inner::element;
    /// One of the sets, kept alive by its elements until they are made.
    struct opened {
        opened(inner s, std::uint64_t epoch, std::string from)
            : stage(std::move(s)), origin(std::move(from)), cursor(std::in_place, stage, walk_context{epoch}) {}
        inner stage;
        std::string origin;
        std::optional<typename inner::cursor> cursor;
    };
    struct ticket {
        std::shared_ptr<opened> from{};
        typename inner::ticket of{};
    };
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = inner::batched;

    struct cursor {
        cursor(const interleave_stage& s, const walk_context& c)
            : stage(&s),
              up(s.up, c),
              epoch(c.epoch),
              sets(static_cast<std::size_t>(s.cycle)),
              counters(c.counters(Up::stages, s.block == 0 ? "flat_map" : "interleave")) {}
        bool draw(ticket& t) {
            for (std::size_t empty = 0;;) {
                std::shared_ptr<opened>& now = sets[at];
                if (!now && !ended) open(now);
                if (!now) {
                    if (++empty == sets.size()) return false;
                    at = (at + 1) % sets.size();
                    continue;
                }
                empty = 0;
                if (now->cursor->draw(t.of)) {
                    t.from = now;
                    if (++given == stage->block) turn();
                    return true;
                }
                now->cursor.reset();
                now.reset();
                turn();
            }
        }
        void open(std::shared_ptr<opened>& to) {
            if (!up.next(item)) {
                ended = true;
                return;
            }
            const busy_scope busy(counters);
            std::string origin = stage->up.origin(item.ticket);
            to = std::make_shared<opened>(inner_stage<made>::of(call_with(stage->f, std::move(*item.element))), epoch,
                                          std::move(origin));
        }
        void turn() {
            given = 0;
            at = (at + 1) % sets.size();
        }
        const interleave_stage* stage;
        pulled<Up> up;
        made_item<Up> item{};
        std::uint64_t epoch;
        std::vector<std::shared_ptr<opened>> sets;
        stage_counters* counters;
        std::size_t at = 0;
        std::int64_t given = 0;
        bool ended = false;
    };
    element make(ticket& t, const walk_context& c) const {
        element e = t.from->stage.make(t.of, walk_context{c.epoch});
        return e;
    }
    std::string origin(const ticket& t) const {
        return t.from ? t.from->stage.origin(t.of) + " of " + t.from->origin : std::string();
    }
    std::int64_t size() const { return unknown_size; }
    work_plan plan() const { return {0, 0, up.plan().ordered}; }

    Up up;
    F f;
    std::int64_t cycle, block; ///< block 0: to its end
};

} // namespace detail
} // namespace tapegraph::data
