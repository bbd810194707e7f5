#pragma once

#include <tapegraph/core/config.hpp>

#include <cstdint>
#include <memory>
#include <vector>

/// Functions with captures that a graph which is made at run time calls again later, when it is
/// differentiated. Nodes name them by number, since words are all that a node can hold.

namespace tapegraph::ir {

struct kept_functions {
    std::vector<std::shared_ptr<const void>> all;
    /// Those of the program that this thread makes; null: none.
    static inline thread_local kept_functions* current = nullptr;
};

/// Keeps a copy of f with the program that is being made. Returns its number, or -1 where no program is.
template <class F>
std::int64_t keep_function(const F& f) {
    if (kept_functions::current == nullptr) return -1;
    auto& all = kept_functions::current->all;
    all.push_back(std::make_shared<const F>(f));
    return static_cast<std::int64_t>(all.size()) - 1;
}
template <class F>
const F& kept_function(std::int64_t number) {
    return *static_cast<const F*>(kept_functions::current->all[static_cast<std::size_t>(number)].get());
}

} // namespace tapegraph::ir
