#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>
#include <vector>

namespace tapegraph::detail {

/// Tracks a checkpointed function that runs on this thread. The first run records which random
/// nodes it drew; the second one, for the derivative, draws the same numbers and uses the variables
/// of the first.
class checkpointed_run {
public:
    checkpointed_run(std::vector<std::int64_t>& ordinals, bool second)
        : ordinals_(ordinals), before_(current()), second_(second) {
        current() = this;
    }
    checkpointed_run(const checkpointed_run&) = delete;
    checkpointed_run& operator=(const checkpointed_run&) = delete;
    ~checkpointed_run() { current() = before_; }

    static bool active() { return current() != nullptr; }
    /// Whether a checkpointed function is running for the second time.
    static bool repeats() {
        for (const checkpointed_run* run = current(); run != nullptr; run = run->before_)
            if (run->second_) return true;
        return false;
    }
    /// The number of the next random operation; outside checkpoints `stream` assigns it.
    template <class Stream>
    static std::int64_t ordinal(Stream& stream) {
        return drawn(current(), stream);
    }

private:
    static checkpointed_run*& current() {
        static thread_local checkpointed_run* run = nullptr;
        return run;
    }
    template <class Stream>
    static std::int64_t drawn(checkpointed_run* run, Stream& stream) {
        if (run == nullptr) return stream.next();
        if (run->second_ && run->next_ < run->ordinals_.size()) return run->ordinals_[run->next_++];
        const std::int64_t number = drawn(run->before_, stream);
        run->ordinals_.push_back(number);
        return number;
    }

    std::vector<std::int64_t>& ordinals_;
    std::size_t next_ = 0;
    checkpointed_run* before_;
    bool second_;
};

} // namespace tapegraph::detail
