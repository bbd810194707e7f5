#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/eager/checkpointed_run.hpp>

#include <cstdint>

/// The random streams of eager mode: each thread has its own, and a call of a function or a step of
/// a model replaces it by its own for its duration.

namespace tapegraph::detail {

/// Numbers the random operations of one evaluation in execution order, as a trace numbers its
/// nodes.
struct random_stream {
    random_state state;
    std::int64_t ordinals = 0;

    constexpr std::int64_t next() {
        if (ordinals == most) { // later ordinals are reserved (first values of variables, factories)
            ordinals = 0;
            ++state.step;
        }
        return ordinals++;
    }

private:
    static constexpr std::int64_t most = 0xFFFFFF00;
};

struct random_generator {
    // Steps for draws outside of functions and models, beyond any count of calls.
    static constexpr std::uint64_t free_steps = std::uint64_t{1} << 47;

    std::uint64_t seed = 0;
    std::uint64_t changes = 0; ///< number of times the seed has been set
    random_stream free{{0, free_steps}, 0};
    random_stream* active = nullptr;

    static random_generator& instance() {
        static thread_local random_generator generator;
        return generator;
    }
    random_stream& stream() { return active != nullptr ? *active : free; }
    void set_seed(std::uint64_t value) {
        seed = value;
        ++changes;
        free = {{value, free_steps}, 0};
    }
};

/// While it lives, this thread's random operations draw from `stream`.
class random_scope {
public:
    explicit random_scope(random_stream& stream) : outer_(random_generator::instance().active) {
        random_generator::instance().active = &stream;
    }
    random_scope(const random_scope&) = delete;
    random_scope& operator=(const random_scope&) = delete;
    ~random_scope() { random_generator::instance().active = outer_; }

private:
    random_stream* outer_;
};

/// The random state of a function's calls: every call is a step, counted since the seed was last
/// set.
class call_counter {
public:
    random_state next() {
        follow_seed();
        steps each{state_.step};
        // In a checkpoint's second run a call draws the numbers of the first.
        const std::int64_t step = checkpointed_run::ordinal(each);
        return {state_.seed, static_cast<std::uint64_t>(step)};
    }
    void set_seed(std::uint64_t seed) {
        state_ = {seed, 0};
        own_seed_ = true;
    }

private:
    struct steps {
        std::uint64_t& step;
        std::int64_t next() { return static_cast<std::int64_t>(step++); }
    };
    void follow_seed() {
        const random_generator& g = random_generator::instance();
        if (own_seed_ || seen_ == g.changes + 1) return;
        state_ = {g.seed, 0};
        seen_ = g.changes + 1;
    }

    random_state state_;
    std::uint64_t seen_ = 0;
    bool own_seed_ = false;
};

} // namespace tapegraph::detail
