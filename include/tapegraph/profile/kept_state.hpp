#pragma once

#include <tapegraph/train/model_base.hpp>

#include <cstdint>
#include <vector>

/// Keeps a model's state in memory, so that a profile of training leaves it unchanged.

namespace tapegraph {

namespace profiling {

/// Copies of all variables (the optimizer's and the metrics', too), and the step count.
/// `model.save(state)` takes them, `model.load(state)` restores them.
struct kept_state {
    mutable std::vector<any_tensor> values;
    mutable std::int64_t step = 0;
};

} // namespace profiling

namespace detail {

template <>
struct weight_file<profiling::kept_state> {
    template <class Model>
    static void save(const profiling::kept_state& to, const Model& m, const save_options&) {
        to.values.clear();
        to.step = m.step;
        for (const variable& v : m.variables) {
            any_tensor copy(v.type(), v.shape());
            std::memcpy(copy.write(), v.data().read(), v.data().outline_view().bytes());
            to.values.push_back(std::move(copy));
        }
    }
    template <class Model>
    static load_report load(const profiling::kept_state& from, const Model& m, const load_options&) {
        std::size_t next = 0;
        for (variable& v : m.variables)
            if (next < from.values.size()) v.assign(from.values[next++]);
        m.step = from.step;
        return {};
    }
};

} // namespace detail
} // namespace tapegraph
