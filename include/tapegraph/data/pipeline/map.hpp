#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/pipeline/stream.hpp>

#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

/// map and filter.

namespace tapegraph::data {

/// One thread fewer than the machine has cores, which is left to the training step; at least one.
inline constexpr int automatic_threads = -1;

/// Options of `map`: threads, and whether the order is kept.
struct map_options {
    int threads = 0;           ///< threads that call the function; 0: the requesting thread; automatic_threads
    bool deterministic = true; ///< false: elements in the order of completion, if threads > 1
    std::uint64_t seed = 0;    ///< seed of the random numbers passed to the function
};

namespace detail {

int checked_threads(int threads, const char* who);

/// Random numbers of one element, from its seed, the epoch and its number in it.
counter_random element_random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t number);

template <class Ticket>
struct numbered_ticket {
    Ticket up{};
    std::uint64_t epoch = 0, number = 0;
};

template <class Up, class F>
struct map_stage {
    using from = typename Up::element;
    static constexpr bool plain = takes<const F&, from>::value;
    static constexpr bool random = !plain;
    static_assert(std::disjunction_v<takes<const F&, from>, takes<const F&, from, counter_random&>>,
                  "map: the function takes neither an element nor its fields (nor these and a data::counter_random&)");
    static auto call(const F& f, from&& e, counter_random* numbers) {
        if constexpr (plain)
            return call_with(f, std::move(e));
        else
            return call_with(f, std::move(e), *numbers);
    }
    using element = std::remove_cvref_t<decltype(call(std::declval<const F&>(), std::declval<from>(), nullptr))>;
    static_assert(!std::is_void_v<element>, "map: the function returns nothing");
    using ticket = std::conditional_t<random, numbered_ticket<typename Up::ticket>, typename Up::ticket>;
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = Up::batched;

    struct cursor {
        cursor(const map_stage& s, const walk_context& c) : up(s.up, c), epoch(c.epoch) {}
        bool draw(ticket& t) {
            if constexpr (random) {
                if (!up.draw(t.up)) return false;
                t.epoch = epoch;
                t.number = number++;
                return true;
            } else {
                return up.draw(t);
            }
        }
        typename Up::cursor up;
        std::uint64_t epoch, number = 0;
    };
    element make(ticket& t, const walk_context& c) const {
        if constexpr (random) {
            from e = up.make(t.up, c);
            counter_random numbers = element_random(options.seed, t.epoch, t.number);
            const busy_scope busy(c.counters(Up::stages, "map"));
            return call(f, std::move(e), &numbers);
        } else {
            from e = up.make(t, c);
            const busy_scope busy(c.counters(Up::stages, "map"));
            return call(f, std::move(e), nullptr);
        }
    }
    std::string origin(const ticket& t) const {
        if constexpr (random)
            return up.origin(t.up);
        else
            return up.origin(t);
    }
    std::int64_t size() const { return up.size(); }
    work_plan plan() const {
        return together(up.plan(), {options.threads, 0, options.deterministic || options.threads < 2});
    }

    Up up;
    F f;
    map_options options;
};

template <class Up, class F>
struct filter_stage {
    using element = typename Up::element;
    using ticket = made_item<Up>;
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = Up::batched, keeps_columns = true;
    static_assert(takes<const F&, element>::value, "filter: the predicate takes neither an element nor its fields");

    struct cursor {
        cursor(const filter_stage& s, const walk_context& c)
            : stage(&s), up(s.up, c), counters(c.counters(Up::stages, "filter")) {}
        bool draw(ticket& t) {
            while (up.next(t)) {
                const busy_scope busy(counters);
                const element& e = *t.element;
                if (call_with(stage->f, e)) return true;
            }
            return false;
        }
        const filter_stage* stage;
        pulled<Up> up;
        stage_counters* counters;
    };
    element make(ticket& t, const walk_context&) const { return std::move(*t.element); }
    std::string origin(const ticket& t) const { return up.origin(t.ticket); }
    std::int64_t size() const { return up.size() == endless ? endless : unknown_size; }
    work_plan plan() const { return {0, 0, up.plan().ordered}; }

    Up up;
    F f;
};

} // namespace detail
} // namespace tapegraph::data

namespace tapegraph::data::detail {

#if TG_DEFINES(data)

TG_DEFINITION int checked_threads(int threads, const char* who) {
    if (threads < automatic_threads || threads > 1024)
        throw argument_error(std::string(who) + ": " + std::to_string(threads) +
                             " threads; 0 to 1024, or automatic_threads");
    if (threads != automatic_threads) return threads;
    return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) - 1, 1, 1024);
}

TG_DEFINITION counter_random element_random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t number) {
    // Epochs of one seed must differ from those of the next one, hence the steps of splitmix64.
    std::uint64_t x = epoch + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return counter_random(seed ^ (epoch == 0 ? 0 : x ^ (x >> 31)), number);
}

#endif

} // namespace tapegraph::data::detail
