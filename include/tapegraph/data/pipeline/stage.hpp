#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/data/batch_source.hpp>
#include <tapegraph/data/pipeline/element.hpp>
#include <tapegraph/data/pipeline/report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

/// Stages of pipelines. A stage is an immutable value:
///
///     struct stage {
///         using element, ticket;
///         static constexpr int stages;        // this one and those below it
///         static constexpr bool batched;      // its elements are batches
///         struct cursor { cursor(const stage&, const walk_context&); bool draw(ticket&); };
///         element make(ticket&, const walk_context&) const;
///         std::string origin(const ticket&) const;
///         std::int64_t size() const;          // elements, unknown_size or endless
///         work_plan plan() const;
///     };
///
/// A cursor draws tickets, one after the other and quickly; a ticket describes the next element.
/// Any thread makes the element of a ticket. A ticket contains everything that its element depends
/// on, so that neither threads nor their order change a bit, and elements that are skipped,
/// shuffled away or passed over on the way to a saved position are never made.

namespace tapegraph::data {

/// An error in one element, with its origin. `cause` is the original exception.
struct record_error : data_error {
    record_error(const std::string& what, std::uint64_t in_epoch, std::int64_t number, std::string from,
                 std::exception_ptr thrown)
        : data_error(what), epoch(in_epoch), element(number), origin(std::move(from)), cause(std::move(thrown)) {}
    std::uint64_t epoch;
    std::int64_t element; ///< its number in the epoch, from 0, at the stage that made it
    std::string origin;   ///< a file, a line, a record of the source
    std::exception_ptr cause;
};

namespace detail {

struct walk_context {
    std::uint64_t epoch = 0;
    report_store* report = nullptr;
    int base = 0; ///< number of the first stage below

    stage_counters* counters(int stage, const char* name) const {
        if (report == nullptr) return nullptr;
        stage_counters* const c = &report->stages[static_cast<std::size_t>(base + stage)];
        if (c->name.load(std::memory_order_relaxed) == nullptr) c->name.store(name);
        return c;
    }
    walk_context shifted(int by) const { return {epoch, report, base + by}; }
};

/// How the elements up to here are made.
struct work_plan {
    int threads = 0;        ///< 0: the requesting thread makes each element
    std::int64_t depth = 0; ///< elements kept ready
    bool ordered = true;
};

/// Combines the requests of two plans.
inline work_plan together(work_plan a, work_plan b) {
    return {std::max(a.threads, b.threads), std::max(a.depth, b.depth), a.ordered && b.ordered};
}

[[noreturn]] inline void rethrow_with_origin(std::uint64_t epoch, std::int64_t number, std::string origin) {
    const std::exception_ptr thrown = std::current_exception();
    std::string why = "an exception that is not a std::exception";
    try {
        std::rethrow_exception(thrown);
    } catch (const record_error&) {
        throw; // already has an origin closer to the error
    } catch (const std::exception& e) {
        why = e.what();
    } catch (...) {}
    const std::string text = "data pipeline: epoch " + std::to_string(epoch) + ", element " + std::to_string(number) +
                             (origin.empty() ? "" : " (" + origin + ")") + ": " + why;
    throw record_error(text, epoch, number, std::move(origin), thrown);
}

/// Applies `f` to the number of elements if that is known.
template <class F>
std::int64_t sized(std::int64_t size, const F& f) {
    return size < 0 ? size : f(size);
}

template <class Stage>
using element_of = typename Stage::element;

} // namespace detail

template <class Stage>
class set;

namespace detail {
template <class T>
inline constexpr bool is_set = false;
template <class Stage>
inline constexpr bool is_set<set<Stage>> = true;
} // namespace detail

} // namespace tapegraph::data
