#pragma once

#include <simt/state.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// Handles waiting threads: computes the results of a warp's collective, and reports deadlocks.

namespace simt {

/// Gives the lanes that have arrived at the collective of `t` their results, and resumes them.
/// lane(i) is the thread of lane i of the warp, or null.
template <class F>
void exchange(const thread& t, const F& lane) {
    std::uint64_t ballot = 0, combined = 0;
    bool begun = false;
    for (int i = 0; i < 32; ++i) {
        const thread* o = lane(i);
        if ((t.mask >> i & 1) == 0 || o == nullptr || o->waiting == waiting::done) continue;
        ballot |= std::uint64_t{o->value != 0} << i;
        if (t.kind == collective::reduce) combined = begun ? t.combine(combined, o->value) : o->value;
        begun = true;
    }
    for (int i = 0; i < 32; ++i) {
        thread* o = lane(i);
        if ((t.mask >> i & 1) == 0 || o == nullptr || o->waiting == waiting::done) continue;
        switch (t.kind) {
        case collective::sync: break;
        case collective::ballot: o->result = ballot; break;
        case collective::reduce: o->result = combined; break;
        case collective::shuffle: {
            // The value from a lane that does not take part is undefined: use a pattern that spoils
            // every result.
            const thread* from = lane(o->source);
            const bool there =
                from != nullptr && (t.mask >> o->source & 1) != 0 && from->waiting == waiting::collective;
            o->result = there ? from->value : ~std::uint64_t{0};
            break;
        }
        }
    }
    for (int i = 0; i < 32; ++i) {
        thread* o = lane(i);
        if ((t.mask >> i & 1) != 0 && o != nullptr && o->waiting == waiting::collective) o->waiting = waiting::nothing;
    }
}

/// Describes which threads wait where, when none can continue.
inline std::string deadlock(const std::vector<thread*>& team) {
    std::string text = "deadlock:";
    const char* const names[]{
        "",       "__syncthreads", "a warp's collective", "a cluster barrier", "a grid barrier", "a loop that waits",
        "the end"};
    std::set<std::pair<int, site>> seen;
    for (const thread* t : team) {
        const site where = t->waiting == waiting::done ? site{} : t->where;
        if (!seen.insert({static_cast<int>(t->waiting), where}).second) continue;
        int count = 0;
        for (const thread* o : team)
            count += o->waiting == t->waiting && (t->waiting == waiting::done || o->where == t->where);
        text += " " + std::to_string(count) + " threads at " + names[static_cast<int>(t->waiting)];
        if (t->waiting != waiting::done) text += " (" + where.text() + ")";
    }
    return text;
}

} // namespace simt
