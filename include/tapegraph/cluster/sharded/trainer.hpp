#pragma once

#include <tapegraph/cluster/sharded/order.hpp>
#include <tapegraph/cluster/sharded/owner.hpp>
#include <tapegraph/cluster/sharded/traces.hpp>
#include <tapegraph/cluster/sharded/values.hpp>
#include <tapegraph/compile/graph_trainer.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/ops/shards/sum_over_shards.hpp>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

/// A sharded step in graph mode, for models of any type.

namespace tapegraph::detail {

class sharded_trainer : public shard_owner<graph_trainer> {
    using base = shard_owner<graph_trainer>;

protected:
    using base::base;

    /// Adds up the shards of a batch; with several ranks the sums are still in flight when it
    /// returns.
    void add_shards(ir::program& p, batch_columns columns);
    /// Feeds the sums to the update's program, and runs it.
    step_result update_with(ir::program& p);
    gradient_list summed_gradients(const ir::program& p);
    /// To be called after add_shards, which knows which sums to await before which call.
    ir::program& update_program_of(const ir::program_view& program) {
        if (!update_) update_ = std::make_unique<ir::program>(awaiting(program));
        return *update_;
    }
    /// Bytes of the programs of shards that run in parallel, besides the first.
    std::size_t bytes_beside() const;
    /// Sets metrics to their values before the step plus the shards' contributions.
    void add_metrics();

    step_result measured() const;
    void feed_rows(ir::program& p);

    std::vector<folded_value> folded_;
    std::unique_ptr<ir::program> update_;

private:
    void find_folded(const ir::program_view& view);
    void run_last(ir::program& p, const random_state& random);
    const ir::program_view& awaiting(const ir::program_view& program);
    // Calls f(input, sum) for each input of the update's program that is a sum.
    template <class F>
    void each_sum(const ir::program_view& view, const F& f) const {
        std::size_t next = 0;
        for (int i = 0; i < view.inputs.size(); ++i) {
            const std::string_view name = view.inputs[i].name;
            if (name != ir::folded::gradient && name != ir::folded::state) continue;
            while (folded_[next].kind != name) ++next;
            f(i, folded_[next++]);
        }
    }
    void connect_shard(ir::program& p);
    void feed_shard(ir::program& p, const shard_range& range, std::int64_t records);
    void add_shard(ir::program& p, int shard, std::int64_t records);
    void add_shards_in_turns(ir::program& p, std::int64_t records);
    void add_rows(const ir::program& p);
    void make_device_values(ir::program& p);

    // A shard other than the first, with a program of its own.
    struct lane {
        std::unique_ptr<ir::program> program;
        shard_values values;
    };
    ir::program& program_of(std::size_t number, ir::program& first);

    std::vector<double> metric_;
    runtime::arena zeros_; // the metrics' accumulators before the shard
    std::unique_ptr<ir::memory_block> device_zeros_;
    shard_values on_device_;
    std::vector<lane> lanes_; // by shard; the first one's program is the model's
    buffer_view columns_[column_match::most];
    std::size_t column_count_ = 0;
    std::unique_ptr<reordered_view> update_order_;
    std::vector<std::vector<int>> awaited_; // per call of the update: the buckets to await
    // The program of these numbers; the program that set the order of sums.
    const ir::program_view *folded_in_ = nullptr, *ready_in_ = nullptr;
    int share_ = -1;
    bool in_turns_ = false; // shards of this program wait for each other
};

inline void sharded_trainer::add_rows(const ir::program& p) {
    for (int k = 0; k + 1 < p.view().outputs.size(); k += 2)
        rows_.add(static_cast<std::size_t>(k / 2), p.output(k), p.output(k + 1));
}

inline std::size_t sharded_trainer::bytes_beside() const {
    std::size_t bytes = 0;
    for (const lane& each : lanes_) bytes += each.program ? each.program->arena_bytes() : 0;
    return bytes;
}

inline step_result sharded_trainer::measured() const {
    double values[2]{};
    std::size_t at = 0;
    for (const folded_value& f : folded_)
        if (f.kind == ir::folded::measured) sums_.read(f.sum, &values[at++]);
    return {values[0], values[1]};
}

inline void sharded_trainer::feed_rows(ir::program& p) {
    std::size_t row = 0;
    for (int i = 0; i < p.view().inputs.size(); ++i) {
        if (p.view().inputs[i].name != ir::folded::rows) continue;
        p.set_input(i, rows_.view(row / 2, row % 2 == 0));
        ++row;
    }
}

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void sharded_trainer::find_folded(const ir::program_view& view) {
    if (folded_in_ == &view) return;
    folded_in_ = &view;
    for (int i = 0; i < view.inputs.size(); ++i)
        if (view.inputs[i].scalar_parameter && view.inputs[i].name == "share") share_ = i;
    in_turns_ = false;
    for (const ir::step_entry& step : view.steps)
        in_turns_ = in_turns_ || view.nodes[step.node].is(ir::descriptor_of<sum_over_shards_op>);
    if (ready_in_ != nullptr) { // with and without a scale of the loss, the sums have different numbers
        auto next = folded_.begin();
        for (int i = 0; i < view.variables.size(); ++i)
            if (view.variables[i].name.starts_with("shard_")) (next++)->variable = i;
        return;
    }
    ready_in_ = &view;
    std::size_t metric_bytes = 1;
    // Finds the call after which nothing touches an assigned value; a copied one is ready after all
    // calls.
    const ir::lifetimes live(view);
    std::vector<int> ready(static_cast<std::size_t>(view.variables.size()), view.steps.size());
    for (const ir::assignment_entry& a : view.assignments)
        if (const int root = view.alias[a.node]; live.variable_of[root] == a.variable)
            ready[static_cast<std::size_t>(a.variable)] = live.death[root];
    for (int i = 0; i < view.variables.size(); ++i) {
        const ir::variable_entry& v = view.variables[i];
        if (!v.name.starts_with("shard_")) continue;
        shape dims;
        for (int axis = 0; axis < view.nodes[v.node].rank; ++axis)
            dims.push_back(view.pool[view.nodes[v.node].dims + axis]);
        const int of = v.of - 1;
        const int sum = sums_.add(view.nodes[v.node].type, dims.size().value, ready[static_cast<std::size_t>(i)],
                                  of < 0 ? "loss" : variables_.at(of).path());
        folded_.push_back({i, sum, of, v.name});
        if (v.name == ir::folded::metric)
            metric_bytes = std::max(metric_bytes, static_cast<std::size_t>(dims.size().value) * sizeof(double));
    }
    zeros_ = runtime::arena(metric_bytes);
    std::memset(zeros_.data(), 0, metric_bytes);
}

TG_DEFINITION void sharded_trainer::connect_shard(ir::program& p) {
    for (int i = 0; i < variables_.size() && i < p.view().variables.size() - static_cast<int>(folded_.size()); ++i) {
        const variable& v = variables_.at(i);
        void* const nothing = p.device() == nullptr ? zeros_.data() : device_zeros_->data();
        // Without marks: weights change in every step, so nothing that a shard derived from them is worth keeping.
        p.set_variable(i, v.metric_state() ? nothing : v.data().view_on(p.device()).data);
    }
}

TG_DEFINITION void sharded_trainer::make_device_values(ir::program& p) {
    if (p.device() == nullptr || device_zeros_) return;
    device_zeros_ = std::make_unique<ir::memory_block>();
    device_zeros_->reserve(p.device(), zeros_.size(), "metrics before a shard");
    p.device()->upload(device_zeros_->data(), zeros_.data(), zeros_.size());
    on_device_.make(folded_, p);
}

TG_DEFINITION void sharded_trainer::feed_shard(ir::program& p, const shard_range& range, std::int64_t records) {
    buffer_view cut[column_match::most];
    cut_columns(columns_, column_count_, range, cut);
    int next = 0;
    for (int i = 0; i < p.view().inputs.size(); ++i)
        if (!p.view().inputs[i].scalar_parameter) p.set_input(i, cut[next++]);
    p.set_parameter(share_, static_cast<double>(range.count) / static_cast<double>(records));
}

TG_DEFINITION void sharded_trainer::add_shards(ir::program& p, batch_columns columns) {
    find_folded(p.view());
    set_frozen(p);
    if (p.device() == nullptr) refuse_devices("and this model computes on the CPU");
    if (devices_ != nullptr) sums_.keep_on({p.device(), devices_});
    make_device_values(p);
    connect_shard(p);
    column_count_ = 0;
    for (const ir::input_entry& input : p.view().inputs) column_count_ += input.scalar_parameter ? 0 : 1;
    const std::int64_t records = begin_step(columns, column_count_, p.view().outputs.size() < 2); // no rows
    std::copy_n(columns, column_count_, columns_);
    sums_.begin(own_shards());
    rows_.begin();
    if (in_turns_)
        add_shards_in_turns(p, records);
    else
        for (int s = first_shard(); s < first_shard() + own_shards(); ++s) add_shard(p, s, records);
    sum_over_ranks();
}

TG_DEFINITION void sharded_trainer::add_shard(ir::program& p, int shard, std::int64_t records) {
    const shard_range range(records, shard, shards_);
    if (range.count == 0) return sums_.skip();
    feed_shard(p, range, records);
    for (std::size_t i = 0; i < folded_.size(); ++i)
        p.set_variable(folded_[i].variable, p.device() == nullptr ? sums_.target(folded_[i].sum) : on_device_.at(i));
    const random_state random = random_of_shard(options_.seed, step_, shard);
    const bool watched = ranks_ != nullptr && p.device() == nullptr && sums_.at_last_shard() && &p.view() == ready_in_;
    if (watched)
        run_last(p, random);
    else
        p.run(random, options_.check_finite);
    if (p.device() != nullptr) on_device_.take(folded_, sums_, p);
    add_rows(p);
    watched ? sums_.folded() : sums_.next();
}

// The program of a shard other than the first, with the first one's numbers.
TG_DEFINITION ir::program& sharded_trainer::program_of(std::size_t number, ir::program& first) {
    while (lanes_.size() <= number) lanes_.emplace_back();
    lane& mine = lanes_[number];
    mine.values.make(folded_, first);
    if (number == 0) return first;
    if (!mine.program || &mine.program->view() != &first.view())
        mine.program = std::make_unique<ir::program>(first.view(), first.device());
    mine.program->copy_parameters(first);
    connect_shard(*mine.program);
    return *mine.program;
}

// Runs shards that wait for each other: each has a program, and memory for its values, and they end
// in order.
TG_DEFINITION void sharded_trainer::add_shards_in_turns(ir::program& p, std::int64_t records) {
    if (ranks_ != nullptr) over_ranks_->open(sums_); // channels open in the same order on a rank without records
    const std::vector<int>& live = live_shards(records);
    if (own_shards() == 1 && !live.empty())
        return turns().run(1, live, false, p.device(), [&](int) { add_shard(p, first_shard(), records); });
    const bool idle = live.empty();
    for (std::size_t k = 0; k == 0 || k < live.size(); ++k) {
        ir::program& mine = program_of(k, p);
        feed_shard(mine,
                   idle ? shard_range(records, 0, static_cast<int>(records))
                        : shard_range(records, first_shard() + live[k], shards_),
                   records);
        for (std::size_t i = 0; i < folded_.size(); ++i) mine.set_variable(folded_[i].variable, lanes_[k].values.at(i));
    }
    int next = 0;
    turns().run(own_shards(), live, idle, p.device(), [&](int k) {
        const auto number = static_cast<std::size_t>(k);
        ir::program& mine = k == 0 ? p : *lanes_[number].program;
        const int shard = idle ? 0 : live[number];
        mine.run(random_of_shard(options_.seed, step_, first_shard() + shard), options_.check_finite && !idle);
        if (idle) return;
        for (; next < shard; ++next) sums_.skip();
        lanes_[number].values.take(folded_, sums_, mine);
        add_rows(mine);
        sums_.next();
        ++next;
    });
    for (; next < own_shards(); ++next) sums_.skip();
}

// Runs the last shard: sums that it completes start after the call that completes them.
TG_DEFINITION void sharded_trainer::run_last(ir::program& p, const random_state& random) {
    over_ranks_->open(sums_);
    const auto start = [this](int step, bool call_done) {
        if (call_done) over_ranks_->start_ready(sums_, step);
    };
    try {
        {
            const exchange_watch watch(*ranks_, p, start);
            p.run(random, options_.check_finite);
        }
        over_ranks_->start_ready(sums_, p.view().steps.size());
    } catch (...) {
        over_ranks_->abandon();
        throw;
    }
}

// Orders updates as sums arrive, and determines what each call awaits.
TG_DEFINITION const ir::program_view& sharded_trainer::awaiting(const ir::program_view& program) {
    if (ranks_ == nullptr) return program;
    std::vector<std::vector<int>> of_node(static_cast<std::size_t>(program.nodes.size()));
    each_sum(program, [&](int input, const folded_value& f) {
        for (std::size_t b = 0; b < sums_.parts().size(); ++b)
            if (sums_.touches(f.sum, sums_.parts()[b]))
                of_node[static_cast<std::size_t>(program.inputs[input].node)].push_back(static_cast<int>(b));
    });
    const auto needed = [&](const ir::program_view& view, int s) {
        std::vector<int> all;
        const ir::step_entry& step = view.steps[s];
        for (int k = 0; k < step.inputs; ++k) {
            const auto& more = of_node[static_cast<std::size_t>(view.alias[view.values[step.first_value + k]])];
            all.insert(all.end(), more.begin(), more.end());
        }
        return all;
    };
    std::vector<int> key;
    for (int s = 0; s < program.steps.size(); ++s) {
        key.push_back(-1);
        for (const int bucket : needed(program, s)) key.back() = std::max(key.back(), bucket);
    }
    update_order_ = std::make_unique<reordered_view>(program, ordered_by(program, std::move(key)));
    for (int s = 0; s < program.steps.size(); ++s) awaited_.push_back(needed(update_order_->view(), s));
    return update_order_->view();
}

TG_DEFINITION void sharded_trainer::add_metrics() {
    for (const folded_value& f : folded_) {
        if (f.kind != ir::folded::metric) continue;
        variable& v = variables_.at(f.of);
        double* const to = static_cast<double*>(v.overwrite());
        metric_.resize(static_cast<std::size_t>(v.size()));
        sums_.read(f.sum, metric_.data());
        for (std::int64_t i = 0; i < v.size(); ++i) to[i] += metric_[static_cast<std::size_t>(i)];
    }
}

TG_DEFINITION step_result sharded_trainer::update_with(ir::program& p) {
    set_frozen(p);
    connect_step(p);
    feed_rows(p);
    each_sum(p.view(), [&](int input, const folded_value& f) {
        buffer_view v = variables_.at(f.of).data().outline_view();
        v.data = sums_.sum(f.sum);
        if (sums_.on_device()) v.memory = runtime::memory_of(p.device());
        p.set_input(input, v);
    });
    const random_state random{options_.seed, static_cast<std::uint64_t>(step_)}; // named: nvcc drops braces here
    if (ranks_ == nullptr || p.device() != nullptr) {
        wait_for_ranks(); // a device receives all sums before it starts
        p.run(random, options_.check_finite);
    } else {
        const int calls = p.view().steps.size();
        const auto wait = [this, calls](int step, bool call_done) {
            if (call_done) return;
            if (step == calls) return over_ranks_->wait_all(sums_); // copies
            for (const int bucket : awaited_[static_cast<std::size_t>(step)])
                over_ranks_->wait(sums_, static_cast<std::size_t>(bucket));
        };
        try {
            const exchange_watch watch(*ranks_, p, wait);
            p.run(random, options_.check_finite);
        } catch (...) {
            over_ranks_->abandon();
            throw;
        }
        wait_for_ranks();
    }
    add_metrics();
    return measured();
}

#endif

} // namespace tapegraph::detail
