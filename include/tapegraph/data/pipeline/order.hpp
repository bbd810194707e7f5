#pragma once

#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/data/pipeline/stage.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// shuffle, repeat, take, skip, shard: select and order elements. They operate on tickets, so
/// unused elements are never made.

namespace tapegraph::data::detail {

/// Shared by stages over one other that pass its elements on unchanged.
template <class Up>
struct passing_stage {
    using element = typename Up::element;
    using ticket = typename Up::ticket;
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = Up::batched, keeps_columns = true;
    element make(ticket& t, const walk_context& c) const { return up.make(t, c); }
    std::string origin(const ticket& t) const { return up.origin(t); }
    work_plan plan() const { return up.plan(); }

    Up up;
};

template <class Up>
struct shuffle_stage : passing_stage<Up> {
    using ticket = typename Up::ticket;
    shuffle_stage(Up u, std::int64_t buffer, std::uint64_t seed, bool anew)
        : passing_stage<Up>{std::move(u)}, buffer_(buffer), seed_(seed), anew_(anew) {}

    struct cursor {
        cursor(const shuffle_stage& s, const walk_context& c)
            : up(s.up, c), random(s.seed_, s.anew_ ? c.epoch : 0), most(s.buffer_) {}
        // Shuffles all elements in the order of data::shuffle_order, which data::dataset also uses.
        void read_all() {
            for (ticket t{}; up.draw(t);) held.push_back(std::move(t));
            for (std::size_t i = held.size(); i > 1; --i) {
                const auto other = static_cast<std::size_t>(random.below(i));
                if (other != i - 1) std::swap(held[i - 1], held[other]);
            }
            ended = true;
        }
        bool draw(ticket& t) {
            if (most == 0) {
                if (!ended) read_all();
                if (next == held.size()) return false;
                t = std::move(held[next++]);
                return true;
            }
            while (!ended && static_cast<std::int64_t>(held.size()) < most) {
                ticket fresh{};
                if (up.draw(fresh))
                    held.push_back(std::move(fresh));
                else
                    ended = true;
            }
            if (held.empty()) return false;
            const auto chosen = static_cast<std::size_t>(random.below(held.size()));
            t = std::move(held[chosen]);
            if (!ended && up.draw(held[chosen])) return true;
            ended = true;
            if (chosen + 1 != held.size()) held[chosen] = std::move(held.back());
            held.pop_back();
            return true;
        }
        typename Up::cursor up;
        counter_random random;
        std::int64_t most;
        std::vector<ticket> held;
        std::size_t next = 0;
        bool ended = false;
    };
    std::int64_t size() const { return this->up.size(); }

private:
    std::int64_t buffer_; // 0: all elements
    std::uint64_t seed_;
    bool anew_;
};

template <class Up>
struct repeat_stage : passing_stage<Up> {
    using ticket = typename Up::ticket;
    repeat_stage(Up u, std::int64_t count) : passing_stage<Up>{std::move(u)}, count_(count) {}

    struct cursor {
        cursor(const repeat_stage& s, const walk_context& c) : stage(&s), context(c), epoch(c.epoch) { open(); }
        bool draw(ticket& t) {
            while (up) {
                if (up->draw(t)) {
                    any = true;
                    return true;
                }
                if (!any && stage->count_ < 0) return false; // would repeat nothing forever
                ++pass;
                open();
            }
            return false;
        }
        // Each pass is a separate epoch for the stages below.
        void open() {
            up.reset();
            if (stage->count_ >= 0 && pass >= stage->count_) return;
            const auto p = static_cast<std::uint64_t>(pass);
            context.epoch =
                stage->count_ >= 0 ? epoch * static_cast<std::uint64_t>(stage->count_) + p : (epoch << 32) + p;
            up.emplace(stage->up, context);
            any = false;
        }
        const repeat_stage* stage;
        walk_context context;
        std::uint64_t epoch;
        std::int64_t pass = 0;
        bool any = false;
        std::optional<typename Up::cursor> up;
    };
    std::int64_t size() const {
        const std::int64_t below = this->up.size();
        if (count_ < 0) return below == 0 ? 0 : endless;
        return count_ == 0 ? 0 : below < 0 ? below : below * count_;
    }

private:
    std::int64_t count_; // negative: infinite
};

/// Elements from `first` on, every `step`-th, at most `most` of them (negative: all).
template <class Up>
struct every_stage : passing_stage<Up> {
    using ticket = typename Up::ticket;
    every_stage(Up u, std::int64_t first, std::int64_t step, std::int64_t most)
        : passing_stage<Up>{std::move(u)}, first_(first), step_(step), most_(most) {}

    struct cursor {
        cursor(const every_stage& s, const walk_context& c) : stage(&s), up(s.up, c), pass_over(s.first_) {}
        bool draw(ticket& t) {
            if (given == stage->most_) return false;
            for (; pass_over > 0; --pass_over)
                if (!up.draw(t)) return false;
            if (!up.draw(t)) return false;
            pass_over = stage->step_ - 1;
            ++given;
            return true;
        }
        const every_stage* stage;
        typename Up::cursor up;
        std::int64_t pass_over, given = 0;
    };
    std::int64_t size() const {
        const std::int64_t below = this->up.size();
        if (below == endless) return most_ >= 0 ? most_ : endless;
        if (below < 0) return most_ == 0 ? 0 : below;
        const std::int64_t all = below <= first_ ? 0 : (below - first_ + step_ - 1) / step_;
        return most_ >= 0 ? std::min(all, most_) : all;
    }

private:
    std::int64_t first_, step_, most_;
};

} // namespace tapegraph::data::detail
