#pragma once

#include <tapegraph/data/pipeline/stream.hpp>

#include <memory>
#include <string>
#include <utility>

/// prefetch: threads make elements ahead, which wait in a ring.

namespace tapegraph::data::detail {

template <class Up>
struct prefetch_stage {
    using element = typename Up::element;
    using ticket = made_item<Up>;
    static constexpr int stages = Up::stages;
    static constexpr bool batched = Up::batched, keeps_columns = true;
    struct cursor {
        cursor(const prefetch_stage& s, const walk_context& c)
            : stream(std::make_unique<typename stream_of<Up>::type>(s.up, c, s.ring())) {
            stream->begin(c.epoch);
        }
        bool draw(ticket& t) { return stream->next(t); }
        std::unique_ptr<typename stream_of<Up>::type> stream;
    };
    element make(ticket& t, const walk_context&) const { return std::move(*t.element); }
    std::string origin(const ticket& t) const { return up.origin(t.ticket); }
    std::int64_t size() const { return up.size(); }
    work_plan plan() const { return {0, 0, up.plan().ordered}; }
    work_plan ring() const { return {depth > 0 ? 1 : 0, depth, true}; }

    Up up;
    std::int64_t depth;
};

/// A walk keeps its ring for all epochs.
template <class Up>
class prefetch_stream {
public:
    using stage_type = prefetch_stage<Up>;
    using element = typename Up::element;
    prefetch_stream(const stage_type& stage, const walk_context& context, work_plan plan = {})
        : below(stage.up, context, together(stage.ring(), plan)) {}
    void begin(std::uint64_t epoch, std::int64_t skip = 0) { below.begin(epoch, skip); }
    void end() { below.end(); }
    bool ordered() const { return below.ordered(); }
    bool next(made_item<stage_type>& item) {
        move_element(item.ticket.element, item.element); // returned to its ticket
        if (!below.next(item.ticket)) return false;
        move_element(item.element, item.ticket.element);
        return true;
    }
    std::int64_t memory_bytes() { return below.memory_bytes(); }
    typename stream_of<Up>::type below;
};
template <class Up>
struct stream_of<prefetch_stage<Up>> {
    using type = prefetch_stream<Up>;
};

} // namespace tapegraph::data::detail
