#pragma once

#include <tapegraph/data/pipeline/ragged.hpp>
#include <tapegraph/data/pipeline/source.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

/// window: groups neighbours into one element; unbatch: splits batches into records.

namespace tapegraph::data {

/// Options of `window`: length of windows and the distance between them, in elements.
struct window_options {
    std::int64_t size = 1;
    std::int64_t shift = 0;      ///< from one window's first element to that of the next one; 0: size
    std::int64_t stride = 1;     ///< from one of its elements to the next
    bool drop_remainder = false; ///< omit incomplete windows
};

namespace detail {

template <class Up>
struct window_stage {
    using element = std::vector<typename Up::element>;
    struct ticket {
        element elements{};
        std::string origin{};
    };
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = false;

    struct cursor {
        cursor(const window_stage& s, const walk_context& c) : options(&s.options), stage(&s), up(s.up, c) {}
        bool draw(ticket& t) {
            const auto stride = static_cast<std::size_t>(options->stride);
            const std::size_t span = (static_cast<std::size_t>(options->size) - 1) * stride + 1;
            while (held.size() < span && read()) {}
            if (held.empty() || (options->drop_remainder && held.size() < span)) return false;
            t.elements.clear();
            t.origin = origins.front();
            for (std::size_t i = 0; i < span && i < held.size(); i += stride) t.elements.push_back(held[i]);
            const auto gone = std::min(static_cast<std::size_t>(options->shift), held.size());
            held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(gone));
            origins.erase(origins.begin(), origins.begin() + static_cast<std::ptrdiff_t>(gone));
            for (auto i = static_cast<std::int64_t>(gone); i < options->shift && up.next(item); ++i) {}
            return true;
        }
        bool read() {
            if (!up.next(item)) return false;
            origins.push_back(stage->up.origin(item.ticket));
            held.push_back(std::move(*item.element));
            return true;
        }
        const window_options* options;
        const window_stage* stage;
        pulled<Up> up;
        made_item<Up> item{};
        element held{};
        std::vector<std::string> origins{};
    };
    element make(ticket& t, const walk_context&) const { return std::move(t.elements); }
    std::string origin(const ticket& t) const { return "window from " + t.origin + " on"; }
    std::int64_t size() const {
        return sized(up.size(), [&](std::int64_t n) {
            const std::int64_t span = (options.size - 1) * options.stride + 1;
            if (options.drop_remainder) return n < span ? 0 : (n - span) / options.shift + 1;
            return (n + options.shift - 1) / options.shift;
        });
    }
    work_plan plan() const { return {0, 0, up.plan().ordered}; }

    Up up;
    window_options options;
};

/// The rows of a batch's content.
template <class T>
std::int64_t slice_count(const ragged<T>& r) {
    return r.rows();
}
template <class T>
std::vector<T> slice_at(const ragged<T>& r, std::int64_t i) {
    const auto row = r.row(i);
    return {row.begin(), row.end()};
}
template <class E>
    requires has_fields<E> std::int64_t slice_count(const E& e) {
        std::int64_t count = -1;
        std::apply(
            [&](const auto&... field) {
                for (const std::int64_t n : {slice_count(field)...}) {
                    if (count >= 0 && n != count)
                        throw shape_error("unbatch: one field has " + std::to_string(count) + " records, another one " +
                                          std::to_string(n));
                    count = n;
                }
            },
            fields_of(e));
        return count;
    }
template <class E>
    requires has_fields<E>
auto slice_at(const E& e, std::int64_t i) {
    return std::apply([i](const auto&... field) { return std::make_tuple(slice_at(field, i)...); }, fields_of(e));
}

template <class Up>
struct unbatch_stage {
    using whole = typename Up::element;
    using element = decltype(slice_at(std::declval<const whole&>(), 0));
    struct ticket {
        std::shared_ptr<const whole> of{};
        std::int64_t row = 0;
        std::shared_ptr<const std::string> origin{};
    };
    static constexpr int stages = Up::stages + 1;
    static constexpr bool batched = false;

    struct cursor {
        cursor(const unbatch_stage& s, const walk_context& c) : stage(&s), up(s.up, c) {}
        bool draw(ticket& t) {
            while (row == rows) {
                if (!up.next(item)) return false;
                now.origin = std::make_shared<const std::string>(stage->up.origin(item.ticket));
                now.of = std::make_shared<const whole>(std::move(*item.element));
                row = 0;
                rows = slice_count(*now.of);
            }
            t = now;
            t.row = row++;
            return true;
        }
        const unbatch_stage* stage;
        pulled<Up> up;
        made_item<Up> item{};
        ticket now{};
        std::int64_t row = 0, rows = 0;
    };
    element make(ticket& t, const walk_context&) const { return slice_at(*t.of, t.row); }
    std::string origin(const ticket& t) const {
        return t.origin ? "row " + std::to_string(t.row) + " of " + *t.origin : std::string();
    }
    std::int64_t size() const { return up.size() == endless ? endless : unknown_size; }
    work_plan plan() const { return {0, 0, up.plan().ordered}; }

    Up up;
};

} // namespace detail
} // namespace tapegraph::data
