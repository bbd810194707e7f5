#pragma once

#include <tapegraph/cluster/sharded/trainer.hpp>
#include <tapegraph/cluster/sharded/zero_redundancy.hpp>
#include <tapegraph/compile/eager_model.hpp>
#include <tapegraph/core/component.hpp>

#include <utility>
#include <vector>

namespace tapegraph {

namespace detail {

/// The part of a sharded step in eager mode that does not depend on the model's type.
class eager_shards : public shard_owner<trainer_base> {
protected:
    using shard_owner<trainer_base>::shard_owner;

    struct differentiated_shard {
        const step_result& measured;
        const std::vector<any_tensor>& gradients; ///< those of variables, followed by those of gathered rows
        std::size_t dense;                        ///< number of gradients of whole variables
    };
    /// While it lives, metrics start from nothing; afterwards they continue from their previous
    /// values, and after `add_metrics` include the shards' contributions.
    using metric_guard = trainer_base::metric_state_guard;

    /// Adds a shard's values, found by the context and the tape, to the sums. `share`: its fraction
    /// of the batch's records; `skipped`: the number of shards without records before this one.
    void add_shard(eager_context& context, const differentiated_shard& found, double share, int skipped);
    step_result measured() const {
        step_result r;
        std::memcpy(&r.loss, sums_.sum(0), sizeof(double));
        std::memcpy(&r.accuracy, sums_.sum(1), sizeof(double));
        return r;
    }
    /// Replaces the last shard's values by the sums.
    void take_sums(eager_context& context, std::vector<any_tensor>& gradients, std::size_t dense);
    void add_metrics();
    void begin_shards() {
        rows_.begin();
        begun_ = false;
    }
    /// Called after the last shard; `skipped`: the number of shards without records before here.
    void end_shards(int skipped) {
        if (!begun_) sums_.begin(own_shards()); // no shard has records
        while (skipped-- > 0) sums_.skip();
        sum_over_ranks();
        wait_for_ranks();
    }

private:
    template <class T>
    static void write_share(T* to, const any_tensor& from, T share) {
        const T* const values = static_cast<const T*>(from.read());
        for (std::int64_t i = 0; i < from.size(); ++i) to[i] = values[i] * share;
    }
    void copy_sum(any_tensor& to, int number) const {
        any_tensor value(to.type(), to.shape());
        if (value.outline_view().bytes() > 0)
            std::memcpy(value.overwrite(), sums_.sum(number), value.outline_view().bytes());
        to = std::move(value);
    }
    static any_tensor copy_of(const buffer_view& v) {
        any_tensor value(v.type, shape(v.rank, v.extents));
        if (v.bytes() > 0) std::memcpy(value.overwrite(), v.data, v.bytes());
        return value;
    }

    std::vector<variable*> metrics_, states_;
    int first_gradient_ = 2;
    bool placed_ = false, begun_ = false; // whether the sums' layout is known; whether this step's sums have begun
};

} // namespace detail

/// A model in eager mode whose batches are sharded.
template <class Model, class Spec, class Loss, class Optimizer>
class compiled_model<detail::sharded_mode<eager>, Model, Spec, Loss, Optimizer>
    : public detail::basic_eager_model<compiled_model<detail::sharded_mode<eager>, Model, Spec, Loss, Optimizer>,
                                       detail::eager_shards, Model, Spec, Loss, Optimizer> {
    using base = detail::basic_eager_model<compiled_model, detail::eager_shards, Model, Spec, Loss, Optimizer>;
    using typename base::differentiated, typename base::objective, typename base::pack, typename base::value;
    template <class, class, class, class, class>
    friend class trainable_model;

public:
    compiled_model(const sharded& how, const Loss& loss, const Optimizer& optimizer) : base(how, loss, optimizer) {
        static_assert(!detail::keeps_slices<Optimizer>,
                      "zero_redundancy: in eager mode every rank has the optimizer's state whole; take graph mode");
        this->refuse_devices("and eager mode in the CPU's memory");
    }

private:
    step_result step_once(detail::batch_columns columns) {
        const detail::numeric_check check(this->options_.check_finite);
        differentiated found = add_all<detail::scales_loss<Optimizer>()>(columns);
        const auto n = base::typed_numbers(this->optimizer_.numbers(this->step_));
        detail::update_all<Optimizer>(this->gradients_in(found, this->context_), n);
        found.sources.clear();
        if constexpr (ir::constrains<Model, Spec, Loss>)
            detail::projections<Model>::template apply<value>(this->context_);
        this->context_.apply();
        this->add_metrics();
        return found.result;
    }
    gradient_list gradients_once(detail::batch_columns columns) {
        static_assert(!std::is_same_v<Optimizer, none>, "gradients: this model has no loss");
        const detail::numeric_check check(this->options_.check_finite);
        differentiated found = add_all<false>(columns);
        return this->listed(found, this->context_);
    }

    // Replaces loss, gradients and new states of the last shard by those of the batch, summed over
    // its shards.
    template <bool Scaled>
    differentiated add_all(detail::batch_columns columns) {
        using trace = ir::training_trace<Model, Spec, Loss, Optimizer>;
        constexpr std::size_t count = pack::count + objective::columns;
        this->template check_inputs<trace>(columns, static_cast<int>(count));
        const std::int64_t records = this->begin_step(columns, count);
        const typename base::metric_guard metrics(*this);
        this->begin_shards();
        differentiated found;
        const std::vector<int>& live = this->live_shards(records);
        const std::size_t last = live.empty() ? 0 : live.size() - 1;
        contexts_.resize(last);
        int next = 0; // the first of this rank's shards that has not been added
        // A rank without records runs one shard, for exchanges that others wait for, and to learn
        // which variables exist.
        this->turns().run(this->own_shards(), live, live.empty(), runtime::current_runtime(), [&](int k) {
            const auto number = static_cast<std::size_t>(k);
            const int shard = live.empty() ? 0 : live[number];
            const detail::shard_range range =
                live.empty() ? detail::shard_range(records, 0, static_cast<int>(records))
                             : detail::shard_range(records, this->first_shard() + shard, this->shards_);
            const double share = static_cast<double>(range.count) / static_cast<double>(records);
            buffer_view cut[count];
            detail::cut_columns(columns, count, range, cut);
            eager_context& context = number == last ? this->context_ : contexts_[number];
            context.variables = &this->variables_;
            context.begin(true, detail::random_of_shard(this->options_.seed, this->step_, this->first_shard() + shard));
            const detail::random_scope draws(context.random);
            differentiated mine = this->template differentiate<Scaled>(context, cut, share);
            if (!live.empty())
                this->add_shard(context, {mine.result, mine.gradients, mine.targets.size()}, share, shard - next);
            next = shard + 1;
            if (number == last)
                found = std::move(mine);
            else
                context.begin(false, {}); // discards its pending updates
        });
        this->end_shards(live.empty() ? this->own_shards() : this->own_shards() - next);
        this->take_sums(this->context_, found.gradients, found.targets.size());
        found.result = this->measured();
        return found;
    }

    std::vector<eager_context> contexts_; // of all shards except the last
};

} // namespace tapegraph

namespace tapegraph::detail {

#if TG_DEFINES_FOR_HOST(cluster)

TG_DEFINITION void eager_shards::add_shard(eager_context& context, const differentiated_shard& found, double share,
                                           int skipped) {
    std::vector<const any_tensor*> values, states;
    metrics_.clear();
    states_.clear();
    for (const eager_context::pending& p : context.updates) {
        const bool metric = p.target->metric_state();
        (metric ? metrics_ : states_).push_back(p.target);
        (metric ? values : states).push_back(&p.value);
    }
    first_gradient_ = 2 + static_cast<int>(values.size());
    for (std::size_t i = 0; i < found.dense; ++i) values.push_back(&found.gradients[i]);
    const std::size_t plain = values.size();
    values.insert(values.end(), states.begin(), states.end());
    if (!placed_) {
        for (int i = 0; i < 2; ++i) sums_.add(dtype::f64, 1);
        for (const any_tensor* v : values) sums_.add(v->type(), v->size());
        placed_ = true;
    }
    if (!begun_) sums_.begin(own_shards());
    begun_ = true;
    while (skipped-- > 0) sums_.skip();
    const double shares[]{found.measured.loss * share, found.measured.accuracy * share};
    for (int i = 0; i < 2; ++i) std::memcpy(sums_.target(i), &shares[i], sizeof(double));
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::byte* const to = sums_.target(static_cast<int>(i) + 2);
        const any_tensor& from = *values[i];
        if (i < plain)
            std::memcpy(to, from.read(), from.outline_view().bytes());
        else if (from.type() == dtype::f64)
            write_share(reinterpret_cast<double*>(to), from, share);
        else
            write_share(reinterpret_cast<float*>(to), from, static_cast<float>(share));
    }
    std::size_t row = found.dense;
    std::vector<const variable*> seen;
    for (const eager_context::row_use& use : context.row_uses) {
        std::size_t number = 0;
        while (number < seen.size() && seen[number] != use.target) ++number;
        if (number == seen.size()) seen.push_back(use.target);
        rows_.add(number, found.gradients[row++].view_on(nullptr), use.indices.view_on(nullptr));
    }
    sums_.next();
}

TG_DEFINITION void eager_shards::take_sums(eager_context& context, std::vector<any_tensor>& gradients,
                                           std::size_t dense) {
    context.updates.clear();
    int next = first_gradient_;
    for (std::size_t i = 0; i < dense; ++i) copy_sum(gradients[i], next++);
    for (variable* v : states_) {
        any_tensor value(v->type(), v->shape());
        copy_sum(value, next++);
        context.updates.push_back({v, std::move(value)});
    }
    std::vector<eager_context::row_use> uses;
    std::vector<any_tensor> flows;
    for (const eager_context::row_use& use : context.row_uses) {
        bool seen = false;
        for (const eager_context::row_use& other : uses) seen = seen || other.target == use.target;
        if (seen) continue;
        const std::size_t number = uses.size();
        flows.push_back(copy_of(rows_.view(number, true)));
        uses.push_back({use.target, copy_of(rows_.view(number, false)), flows.back()});
    }
    context.row_uses = std::move(uses);
    gradients.resize(dense);
    for (any_tensor& each : flows) gradients.push_back(std::move(each));
}

TG_DEFINITION void eager_shards::add_metrics() {
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
        double* const to = static_cast<double*>(metrics_[i]->overwrite());
        const double* const from = reinterpret_cast<const double*>(sums_.sum(2 + static_cast<int>(i)));
        for (std::int64_t k = 0; k < metrics_[i]->size(); ++k) to[k] += from[k];
    }
}

#endif

} // namespace tapegraph::detail
