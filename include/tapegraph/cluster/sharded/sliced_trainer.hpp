#pragma once

#include <tapegraph/cluster/sharded/trainer.hpp>
#include <tapegraph/cluster/sharded/zero_redundancy.hpp>
#include <tapegraph/core/component.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

/// A step whose update is divided among ranks: each rank updates its own slices of the buckets of
/// gradients.

namespace tapegraph::detail {

class sliced_trainer : public sharded_trainer {
    using base = sharded_trainer;

public:
    /// Bytes of the optimizer's state on this rank: the whole state before the first step and after
    /// saving.
    std::size_t optimizer_state_bytes() const {
        std::size_t bytes = 0;
        for (const variable& v : variables_)
            if (v.optimizer_state()) bytes += v.data().outline_view().bytes();
        return bytes;
    }

protected:
    explicit sliced_trainer(const sharded& how) : base(how) {
        refuse_devices("and zero_redundancy updates slices in the CPU's memory");
        gather_state_ = &sliced_trainer::gather_in;
    }

    /// Whether the sums of the next shards stay on the rank that updates them.
    void leave_slices(bool alone) {
        if (over_ranks_) over_ranks_->leave_slices(alone);
    }
    static bool takes_whole(const ir::program_view& view) {
        for (const ir::input_entry& input : view.inputs)
            if (input.name == ir::folded::gradient) return true;
        return false;
    }
    ir::program& update_program_of(const ir::program_view& program) {
        if (!update_) update_ = std::make_unique<ir::program>(program);
        return *update_;
    }
    step_result update_with(ir::program& p);

private:
    /// Elements of a variable that are contiguous in the sums of this rank.
    struct run {
        std::int64_t first, count;
    };
    struct sliced_variable {
        int variable, sum;
        std::vector<run> runs;   ///< in order of elements
        std::int64_t count = 0;  ///< of all elements
        std::vector<int> states; ///< their numbers
        any_tensor weight, gradient, next;
    };
    static void gather_in(model_base& m) { static_cast<sliced_trainer&>(m).gather_state(); }

    bool moves(const sliced_variable& s) const { return !variables_.at(s.variable).frozen(); }
    // A tensor for a slice; its first axis counts the elements.
    static any_tensor slice_like(const variable& v, std::int64_t count) {
        shape dims{count};
        for (int i = 1; i < v.shape().rank(); ++i) dims.push_back(1);
        return any_tensor(v.type(), dims);
    }
    // Calls f(bytes after the slice's begin, after the whole's, bytes) for each run.
    template <class F>
    void each_run(const sliced_variable& s, const F& f) const {
        const std::size_t size = size_of(variables_.at(s.variable).type());
        std::size_t at = 0;
        for (const run& r : s.runs) {
            const std::size_t bytes = static_cast<std::size_t>(r.count) * size;
            f(at, static_cast<std::size_t>(r.first) * size, bytes);
            at += bytes;
        }
    }
    void take(const sliced_variable& s, void* slice, const void* whole) const {
        each_run(s, [&](std::size_t at, std::size_t from, std::size_t bytes) {
            std::memcpy(static_cast<std::byte*>(slice) + at, static_cast<const std::byte*>(whole) + from, bytes);
        });
    }
    void put(const sliced_variable& s, const void* slice, void* whole) const {
        each_run(s, [&](std::size_t at, std::size_t to, std::size_t bytes) {
            std::memcpy(static_cast<std::byte*>(whole) + to, static_cast<const std::byte*>(slice) + at, bytes);
        });
    }
    void gather() {
        if (over_ranks_) over_ranks_->gather(sums_);
    }
    void plan(const ir::program_view& view);
    void find_runs(sliced_variable& s) const;
    void cut_state();
    void gather_state();
    void connect_slices(ir::program& p);

    std::vector<sliced_variable> slices_;
    bool planned_ = false, cut_ = false;
};

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void sliced_trainer::find_runs(sliced_variable& s) const {
    const variable& v = variables_.at(s.variable);
    if (!over_ranks_) {
        s.runs.push_back({0, v.size()});
        s.count = v.size();
        return;
    }
    const std::size_t size = size_of(v.type()), begin = sums_.offset(s.sum);
    const std::size_t end = begin + static_cast<std::size_t>(v.size()) * size;
    for (std::size_t b = 0; b < sums_.parts().size(); ++b) {
        if (!sums_.touches(s.sum, sums_.parts()[b])) continue;
        const distributed::slice own = over_ranks_->own(b);
        const std::size_t first = std::max(begin, sums_.parts()[b].begin + own.begin * size);
        const std::size_t last = std::min(end, sums_.parts()[b].begin + own.end * size);
        if (first >= last) continue;
        s.runs.push_back(
            {static_cast<std::int64_t>((first - begin) / size), static_cast<std::int64_t>((last - first) / size)});
        s.count += s.runs.back().count;
    }
    std::sort(s.runs.begin(), s.runs.end(), [](const run& a, const run& b) { return a.first < b.first; });
}

TG_DEFINITION void sliced_trainer::plan(const ir::program_view& view) {
    if (planned_) return;
    for (const folded_value& f : folded_) {
        if (f.kind != ir::folded::gradient) continue;
        sliced_variable s{f.of, f.sum, {}, 0, {}, {}, {}, {}};
        find_runs(s);
        const variable& v = variables_.at(f.of);
        const std::string before = v.path() + '/';
        for (int i = 0; i < variables_.size(); ++i) {
            const variable& state = variables_.at(i);
            if (!state.optimizer_state() || state.path().rfind('/') + 1 != before.size() ||
                !state.path().starts_with(before))
                continue;
            const ir::entry& e = view.nodes[view.variables[i].node];
            if (e.rank > 0 && is_symbolic(view.pool[e.dims])) s.states.push_back(i);
        }
        s.weight = slice_like(v, s.count);
        s.gradient = slice_like(v, s.count);
        s.next = slice_like(v, s.count);
        slices_.push_back(std::move(s));
    }
    planned_ = true;
}

// Each rank keeps its own slices.
TG_DEFINITION void sliced_trainer::cut_state() {
    if (cut_) return;
    for (const sliced_variable& s : slices_)
        for (const int i : s.states) {
            variable& v = variables_.at(i);
            if (s.count == v.size()) continue;
            any_tensor own = slice_like(v, s.count);
            if (s.count > 0) take(s, own.overwrite(), v.data().read());
            v.replace(std::move(own));
        }
    cut_ = true;
}

// Gathers the whole state on all ranks, one state of each variable at a time, through the sums.
TG_DEFINITION void sliced_trainer::gather_state() {
    if (!cut_) return;
    std::size_t most = 0;
    for (const sliced_variable& s : slices_) most = std::max(most, s.states.size());
    for (std::size_t k = 0; over_ranks_ && rank_count() > 1 && k < most; ++k) {
        const auto each = [&](const auto& f) {
            for (const sliced_variable& s : slices_)
                if (k < s.states.size()) f(s, variables_.at(s.states[k]));
        };
        each([&](const sliced_variable& s, const variable& v) {
            if (s.count > 0) put(s, v.data().read(), sums_.sum(s.sum));
        });
        gather();
        each([&](const sliced_variable& s, variable& v) {
            any_tensor whole(v.type(), variables_.at(s.variable).shape());
            std::memcpy(whole.overwrite(), sums_.sum(s.sum), whole.outline_view().bytes());
            v.replace(std::move(whole));
        });
    }
    cut_ = false;
}

TG_DEFINITION void sliced_trainer::connect_slices(ir::program& p) {
    connect_step(p);
    feed_rows(p);
    std::size_t gradient = 0, weight = 0, sum = 0;
    const auto fed = [&](any_tensor& slice, const sliced_variable& s, const void* whole) {
        buffer_view v = slice.outline_view();
        v.data = slice.write();
        if (moves(s))
            take(s, v.data, whole);
        else
            v.extents[0] = 0; // a frozen variable has no elements to update
        return v;
    };
    for (int i = 0; i < p.view().inputs.size(); ++i) {
        const std::string_view name = p.view().inputs[i].name;
        if (name == ir::folded::slice) {
            sliced_variable& s = slices_[gradient++];
            p.set_input(i, fed(s.gradient, s, sums_.sum(s.sum)));
        } else if (name == ir::folded::weight) {
            sliced_variable& s = slices_[weight++];
            p.set_input(i, fed(s.weight, s, variables_.at(s.variable).data().read()));
        } else if (name == ir::folded::gradient) {
            const sliced_variable& s = slices_[sum++];
            buffer_view v = variables_.at(s.variable).data().outline_view();
            v.data = sums_.sum(s.sum);
            p.set_input(i, v);
        }
    }
    for (int i = variables_.size(); i < p.view().variables.size(); ++i)
        p.set_variable(i, slices_[static_cast<std::size_t>(i - variables_.size())].next.write_on(p.device()).data);
}

TG_DEFINITION step_result sliced_trainer::update_with(ir::program& p) {
    wait_for_ranks();
    plan(p.view());
    cut_state();
    set_frozen(p);
    connect_slices(p);
    const random_state random{options_.seed, static_cast<std::uint64_t>(step_)}; // named: nvcc drops braces here
    p.run(random, options_.check_finite);
    for (sliced_variable& s : slices_)
        if (moves(s) && s.count > 0) put(s, s.next.read(), sums_.sum(s.sum));
    gather();
    for (const sliced_variable& s : slices_)
        if (variable& v = variables_.at(s.variable); moves(s) && v.size() > 0)
            std::memcpy(v.overwrite(), sums_.sum(s.sum), v.data().outline_view().bytes());
    for (const folded_value& f : folded_)
        if (f.kind == ir::folded::state)
            if (variable& v = variables_.at(f.of); !v.frozen())
                std::memcpy(v.overwrite(), sums_.sum(f.sum), v.data().outline_view().bytes());
    add_metrics();
    return measured();
}

#endif

} // namespace tapegraph::detail
