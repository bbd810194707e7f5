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
    /// Keeps its memory: to bind a program again takes none.
    void clear() {
        all_.clear();
        words_.clear();
    }
    /// Remembers a call if its operation draws; number() then gives it attributes of its own. The
    /// symbols' values are those of `symbols`.
    void note(kernel_call& call, const operation& op, const extent_table& table,
              const std::vector<std::int64_t>& symbols);
    /// Numbers all draws; the first one of the program is `first`. They are of `random`.
    void number(std::int64_t first, const random_state* random);

private:
    struct draw {
        kernel_call* call;
        std::size_t begin;  // of its attributes in words_
        std::size_t word;   // the attribute that is the number
        std::int64_t first; // number of its first draw, counted from the program's
    };
    std::vector<draw> all_;
    std::vector<std::int64_t> words_;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION void numbered_draws::note(kernel_call& call, const operation& op, const extent_table& table,
                                        const std::vector<std::int64_t>& symbols) {
    const int word = op.ordinal_word;
    if (word < 0 || call.attributes[word] == -1) return;
    const std::int64_t first =
        table.evaluate(call.attributes[word], [&](int atom) { return symbols[static_cast<std::size_t>(atom)]; });
    all_.push_back({&call, words_.size(), static_cast<std::size_t>(word), first});
    words_.insert(words_.end(), call.attributes, call.attributes + op.words);
}

TG_DEFINITION void numbered_draws::number(std::int64_t first, const random_state* random) {
    for (draw& each : all_) {
        std::int64_t* const own = words_.data() + each.begin;
        own[each.word] = first + each.first;
        each.call->attributes = own;
        each.call->random = random;
    }
}

#endif

} // namespace tapegraph::ir
