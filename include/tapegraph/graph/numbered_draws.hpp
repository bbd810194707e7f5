#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/extent.hpp>
#include <tapegraph/ir/operation.hpp>

#include <cstdint>
#include <vector>

/// The numbers of a program's draws. They are extents (a scan draws in each of its steps), and they
/// differ from step to step in a program that is a scan's step. So a call that draws has attributes
/// of its own instead of its node's.

namespace tapegraph::ir {

class numbered_draws {
public:
    void clear() { all_.clear(); }
    /// Gives a call attributes of its own if its operation draws. The symbols' values are those of
    /// `symbols`.
    void note(kernel_call& call, const operation& op, const extent_table& table,
              const std::vector<std::int64_t>& symbols);
    /// Numbers all draws; the first one of the program is `first`. They are of `random`.
    void number(std::int64_t first, const random_state* random);

private:
    struct draw {
        kernel_call* call;
        int word;           // of the attributes
        std::int64_t first; // number of its first draw, counted from the program's
        std::vector<std::int64_t> attributes;
    };
    std::vector<draw> all_;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION void numbered_draws::note(kernel_call& call, const operation& op, const extent_table& table,
                                        const std::vector<std::int64_t>& symbols) {
    const int word = op.ordinal_word;
    if (word < 0 || call.attributes[word] == -1) return;
    draw made{&call, word, 0, std::vector<std::int64_t>(call.attributes, call.attributes + op.words)};
    made.first =
        table.evaluate(call.attributes[word], [&](int atom) { return symbols[static_cast<std::size_t>(atom)]; });
    made.attributes[static_cast<std::size_t>(word)] = made.first;
    call.attributes = made.attributes.data();
    all_.push_back(std::move(made)); // a vector's elements stay where they are when it moves
}

TG_DEFINITION void numbered_draws::number(std::int64_t first, const random_state* random) {
    for (draw& each : all_) {
        each.attributes[static_cast<std::size_t>(each.word)] = first + each.first;
        each.call->random = random;
    }
}

#endif

} // namespace tapegraph::ir
