#pragma once

#include <tapegraph/nn/graph_trainer.hpp>
#include <tapegraph/nn/sharded/owner.hpp>
#include <tapegraph/nn/sharded/traces.hpp>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

/// A step of shards in graph mode, of models of any type.

namespace tapegraph::detail {

template <class = void>
class basic_sharded_trainer : public shard_owner<basic_graph_trainer<>> {
    using base = shard_owner<basic_graph_trainer<>>;

protected:
    using base::base;

    /// What the shards of a batch add up.
    step_result add_shards(ir::program& p, batch_columns columns);
    /// Feeds it to the update's program, and runs that.
    void update_with(ir::program& p);
    gradient_list summed_gradients(const ir::program& p, const step_result& measured);
    ir::program& update_program_of(const ir::program_view& program) {
        if (!update_) update_ = std::make_unique<ir::program>(program);
        return *update_;
    }
    /// Metrics begin the step with what they had, and what the shards have measured.
    void add_metrics();

    std::unique_ptr<ir::program> update_;

private:
    void find_folded(const ir::program_view& view);
    void connect_shard(ir::program& p);

    struct folded_value {
        int variable, sum, of; ///< in the shard's program; in the sums; whose (-1: nobody's)
        std::string_view kind;
    };
    std::vector<folded_value> folded_;
    runtime::arena zeros_; // what metrics have measured before the shard
    int share_ = -1;
};

template <class X>
void basic_sharded_trainer<X>::find_folded(const ir::program_view& view) {
    if (share_ >= 0) return;
    std::size_t metric_bytes = 1;
    for (int i = 0; i < view.variables.size(); ++i) {
        const ir::variable_entry& v = view.variables[i];
        if (!v.name.starts_with("shard_")) continue;
        shape dims;
        for (int axis = 0; axis < view.nodes[v.node].rank; ++axis)
            dims.push_back(view.pool[view.nodes[v.node].dims + axis]);
        folded_.push_back({i, sums_.add(view.nodes[v.node].type, dims.size().value), v.previous - 1, v.name});
        if (v.name == ir::folded::metric)
            metric_bytes = std::max(metric_bytes, static_cast<std::size_t>(dims.size().value) * sizeof(double));
    }
    zeros_ = runtime::arena(metric_bytes);
    std::memset(zeros_.data(), 0, metric_bytes);
    for (int i = 0; i < view.inputs.size(); ++i)
        if (view.inputs[i].scalar_parameter && view.inputs[i].name == "share") share_ = i;
}

template <class X>
void basic_sharded_trainer<X>::connect_shard(ir::program& p) {
    for (int i = 0; i < variables_.size() && i < p.view().variables.size() - static_cast<int>(folded_.size()); ++i) {
        const variable& v = variables_.at(i);
        p.set_variable(i, v.metric_state() ? zeros_.data() : v.data().view_on(nullptr).data);
    }
}

template <class X>
step_result basic_sharded_trainer<X>::add_shards(ir::program& p, batch_columns columns) {
    find_folded(p.view());
    set_frozen(p);
    connect_shard(p);
    buffer_view cut[column_match::most];
    std::size_t count = 0;
    for (const ir::input_entry& input : p.view().inputs) count += input.scalar_parameter ? 0 : 1;
    const std::int64_t records = begin_step(columns, count, p.view().outputs.size() < 2); // no rows
    sums_.begin(own_shards());
    rows_.begin();
    for (int s = first_shard(); s < first_shard() + own_shards(); ++s) {
        const shard_range range(records, s, shards_);
        if (range.count == 0) {
            sums_.skip();
            continue;
        }
        cut_columns(columns, count, range, cut);
        int next = 0;
        for (int i = 0; i < p.view().inputs.size(); ++i)
            if (!p.view().inputs[i].scalar_parameter) p.set_input(i, cut[next++]);
        p.set_parameter(share_, static_cast<double>(range.count) / static_cast<double>(records));
        for (const folded_value& f : folded_) p.set_variable(f.variable, sums_.target(f.sum));
        p.run(random_of_shard(options_.seed, step_, s), options_.check_finite);
        for (int k = 0; k + 1 < p.view().outputs.size(); k += 2)
            rows_.add(static_cast<std::size_t>(k / 2), p.device_output(k), p.device_output(k + 1));
        sums_.next();
    }
    sum_over_ranks();
    double measured[2]{};
    std::size_t at = 0;
    for (const folded_value& f : folded_)
        if (f.kind == ir::folded::measured) std::memcpy(&measured[at++], sums_.sum(f.sum), sizeof(double));
    return {measured[0], measured[1]};
}

template <class X>
void basic_sharded_trainer<X>::add_metrics() {
    for (const folded_value& f : folded_) {
        if (f.kind != ir::folded::metric) continue;
        variable& v = variables_.at(f.of);
        double* const to = static_cast<double*>(v.own_data());
        const double* const from = reinterpret_cast<const double*>(sums_.sum(f.sum));
        for (std::int64_t i = 0; i < v.size(); ++i) to[i] += from[i];
    }
}

template <class X>
void basic_sharded_trainer<X>::update_with(ir::program& p) {
    set_frozen(p);
    connect_step(p);
    std::size_t next = 0, row = 0;
    for (int i = 0; i < p.view().inputs.size(); ++i) {
        const ir::input_entry& input = p.view().inputs[i];
        if (input.name == ir::folded::rows) {
            p.set_input(i, rows_.view(row / 2, row % 2 == 0));
            ++row;
            continue;
        }
        if (input.name != ir::folded::gradient && input.name != ir::folded::state) continue;
        while (folded_[next].kind != input.name) ++next;
        buffer_view v = variables_.at(folded_[next].of).data().outline_view();
        v.data = sums_.sum(folded_[next++].sum);
        p.set_input(i, v);
    }
    p.run({options_.seed, static_cast<std::uint64_t>(step_)}, options_.check_finite);
    add_metrics();
}

template <class X>
gradient_list basic_sharded_trainer<X>::summed_gradients(const ir::program& p, const step_result& measured) {
    gradient_list list;
    list.loss = measured.loss;
    list.accuracy = measured.accuracy;
    for (int i = 0; i < variables_.size(); ++i) {
        const variable& v = variables_.at(i);
        if (!v.trainable()) continue;
        any_tensor flow;
        for (const folded_value& f : folded_)
            if (f.kind == ir::folded::gradient && f.of == i) {
                flow = any_tensor(v.type(), v.shape());
                std::memcpy(flow.write(), sums_.sum(f.sum), flow.outline_view().bytes());
            }
        for (int k = 0; k + 1 < p.view().outputs.size(); k += 2)
            if (p.view().outputs[k].number == i) flow = rows_.whole(static_cast<std::size_t>(k / 2), v);
        list.add(v.path(), std::move(flow), v.type(), v.shape());
    }
    return list;
}

} // namespace tapegraph::detail
