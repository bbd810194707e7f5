#pragma once

#include <tapegraph/compile/placed/parts.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/traced_program.hpp>

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

/// The parts of a program whose graph is made at run time (compile/placed/parts.hpp): the model is
/// traced once, and each part is cut out of a copy of its trace.

namespace tapegraph::detail {

/// Whether a trace has parts on other devices or tasks.
bool has_places(const ir::program_view& traced);

/// The same for device names only.
bool has_devices(const ir::program_view& traced);

/// Owns the programs of all parts, which are one whole program if nothing is placed.
class traced_parts {
public:
    traced_parts();
    traced_parts(traced_parts&&) noexcept;
    traced_parts& operator=(traced_parts&&) noexcept;
    ~traced_parts();
    /// Takes a trace that is not lowered. Throws as traced_program::of does.
    explicit traced_parts(std::unique_ptr<ir::traced_program> whole);

    bool made() const { return whole_ != nullptr; }
    std::span<const compiled_part> all() const;
    /// The whole: inputs, outputs and variables.
    const ir::program_view& view() const { return whole_->view(); }

private:
    std::unique_ptr<ir::traced_program> whole_;
    std::vector<std::unique_ptr<ir::traced_program>> programs_;
    std::vector<compiled_part> parts_;
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION bool has_places(const ir::program_view& traced) {
    for (const ir::entry& e : traced.nodes)
        if (!(place_of(e) == part_place{})) return true;
    return false;
}

TG_DEFINITION bool has_devices(const ir::program_view& traced) {
    for (const ir::entry& e : traced.nodes)
        if (e.place != place::anywhere) return true;
    return false;
}

TG_DEFINITION traced_parts::traced_parts() = default;
TG_DEFINITION traced_parts::traced_parts(traced_parts&&) noexcept = default;
TG_DEFINITION traced_parts& traced_parts::operator=(traced_parts&&) noexcept = default;
TG_DEFINITION traced_parts::~traced_parts() = default;
TG_DEFINITION std::span<const compiled_part> traced_parts::all() const { return parts_; }

TG_DEFINITION traced_parts::traced_parts(std::unique_ptr<ir::traced_program> whole) : whole_(std::move(whole)) {
    list<part_place> places{part_place{}};
    if (has_places(whole_->view())) {
        ir::trace t = whole_->traced(); // the graph alone
        ir::eliminate_dead_nodes(t);
        places = find_parts(t.nodes, t.arguments, t.nodes.size()).places;
    }
    if (places.size() == 1 && places[0] == part_place{}) {
        whole_->lower_now();
        parts_.push_back({&whole_->view(), &whole_->view(), 0, {}, true});
        return;
    }
    for (int k = 0; k < places.size(); ++k) {
        programs_.push_back(ir::traced_program::continued(*whole_, [&](ir::model_trace& t) {
            keep_needed_nodes(t);
            cut_part(t, k);
        }));
        const std::string_view task =
            places[k].task == 0 ? std::string_view() : whole_->view().tasks[places[k].task - 1];
        parts_.push_back({&programs_.back()->view(), &whole_->view(), places[k].place, task, false});
    }
}

#endif

} // namespace tapegraph::detail
