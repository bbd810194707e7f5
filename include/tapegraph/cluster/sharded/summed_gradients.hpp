#pragma once

#include <tapegraph/cluster/sharded/trainer.hpp>
#include <tapegraph/core/component.hpp>

#include <cstddef>
#include <utility>

/// The result of model.gradients for a sharded model.

namespace tapegraph::detail {

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION gradient_list sharded_trainer::summed_gradients(const ir::program& p) {
    wait_for_ranks();
    const step_result found = measured();
    gradient_list list;
    list.loss = found.loss;
    list.accuracy = found.accuracy;
    for (int i = 0; i < variables_.size(); ++i) {
        const variable& v = variables_.at(i);
        if (!v.trainable()) continue;
        any_tensor flow;
        int by_rows = -1;
        for (const folded_value& f : folded_)
            if (f.kind == ir::folded::gradient && f.of == i) {
                flow = any_tensor(v.type(), v.shape());
                sums_.read(f.sum, flow.write());
            }
        for (int k = 0; k + 1 < p.view().outputs.size(); k += 2)
            if (p.view().outputs[k].number == i) flow = rows_.whole(static_cast<std::size_t>(by_rows = k / 2), v);
        list.add(v.path(), std::move(flow), v.type(), v.shape());
        if (by_rows >= 0) {
            const auto number = static_cast<std::size_t>(by_rows);
            list.add_rows(rows_.view(number, true), rows_.view(number, false), false);
        }
    }
    for (const folded_value& f : folded_)
        if (f.kind == ir::folded::state && !variables_.at(f.of).frozen()) {
            any_tensor value(variables_.at(f.of).type(), variables_.at(f.of).shape());
            sums_.read(f.sum, value.write());
            list.add_assigned(variables_.at(f.of).path(), std::move(value));
        }
    return list;
}

#endif

} // namespace tapegraph::detail
