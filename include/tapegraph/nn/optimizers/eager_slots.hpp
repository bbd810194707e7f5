#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/update_formula.hpp>
#include <tapegraph/model/eager_scope.hpp>
#include <tapegraph/model/shared_terms.hpp>
#include <tapegraph/ops/gather/rows.hpp>
#include <tapegraph/runtime/perform.hpp>

/// An optimizer's view of a variable in eager mode: all of it, or the rows that a step has
/// gathered.

namespace tapegraph::detail {

/// An optimizer's state for one variable, as tensors.
class eager_slots {
public:
    /// `common`: the path, with a slash, of the scope for state that belongs to no variable.
    eager_slots(variable_list* variables, std::vector<eager_context::pending>* updates, std::string_view common = {})
        : variables_(variables), updates_(updates), common_(common) {}

    variable* target() const { return target_; }
    void begin(variable* target) {
        target_ = target;
        states_.clear();
    }
    template <class T>
    tensor<T> state(const tensor<T>&, std::string_view name) const {
        variable& v = state_variable(name);
        states_.push_back({&v, v.data()});
        return tensor<T>(v.data());
    }
    template <class T, tensor_like E>
    void assign(const tensor<T>& target, const E& value) const {
        updates_->push_back({variable_of(target), eval(value)});
    }
    bool matches(std::string_view pattern) const { return path_matches(pattern, target_->path()); }
    /// An update that is one kernel: assigns its results or, `in_place`, writes them at once.
    void update(const update_view& u, const any_tensor& gradient, const double* numbers, bool in_place) const;
    /// A scalar of the optimizer that belongs to no variable.
    variable& common(std::string_view name) const;
    void assign_common(std::string_view name, any_tensor value) const;

protected:
    variable& state_variable(std::string_view name) const;
    variable* variable_of(const any_tensor& target) const;

    variable_list* variables_;
    std::vector<eager_context::pending>* updates_;
    std::string_view common_;
    variable* target_ = nullptr;
    mutable std::vector<std::pair<variable*, any_tensor>> states_; // and the tensor that represents each
};

#if TG_DEFINES(nn)
TG_DEFINITION variable& eager_slots::state_variable(std::string_view name) const {
    return (*variables_)[target_->path() + '/' + std::string(name)];
}
#endif

/// The shape of this many rows of a table.
shape shape_of_rows(const shape& table, std::int64_t rows);

/// Writes rows into a variable in place.
template <class T>
void write_rows(variable& v, const any_tensor& indices, const any_tensor& rows) {
    const buffer_view table = v.own_data_on(runtime::current_runtime());
    const buffer_view in[]{table, indices.view(), rows.view()};
    kernel_call call;
    call.in = in;
    call.inputs = 3;
    call.out = &table;
    call.outputs = 1;
    constexpr runtime::kernel_pair kernel = runtime::kernel_for<assign_rows_op, T>();
    runtime::perform(kernel, call, assign_rows_op::name);
}

/// An optimizer's view of some rows of one variable: state is gathered by the same indices, and
/// assignments write rows. Rows that a step has not gathered keep their weights and their state.
template <class T, class Index>
class eager_row_slots : eager_slots {
public:
    static constexpr bool sparse = true;
    using eager_slots::matches;

    eager_row_slots(const eager_slots& whole, variable* target, const tensor<Index>& indices)
        : eager_slots(whole), indices_(indices) {
        begin(target);
    }
    tensor<T> rows_of(const variable& v) const { return gather(tensor<T>(v.data()), indices_, 0, 0); }
    /// Expands a derivative by these rows to one by the whole variable.
    tensor<T> whole(const tensor<T>& rows) const {
        return eval(assign_rows(eval(zeros_like(tensor<T>(target_->data()))), indices_, rows));
    }
    variable* target() const { return target_; }
    const tensor<Index>& indices() const { return indices_; }

    tensor<T> state(const tensor<T>&, std::string_view name) const {
        variable& v = state_variable(name);
        states_.push_back({&v, rows_of(v)});
        return tensor<T>(states_.back().second);
    }
    template <tensor_like E>
    void assign(const tensor<T>& target, const E& value) const {
        updates_->push_back({variable_of(target), eval(value), indices_, &write_rows<T>});
    }

private:
    tensor<Index> indices_;
};

/// Updates the rows of one variable that a step has gathered. `uses`: those that the context
/// recorded; `gradients[first + k]` is dL/d(rows) of use k. Each index gets the sum over its
/// occurrences.
template <class T, class Index, class F>
void update_rows_by(const eager_slots& slots, variable* target, const std::vector<eager_context::row_use>& uses,
                    const any_tensor* gradients, const F& update) {
    std::vector<tensor<T>> rows;
    std::vector<tensor<Index>> indices;
    for (std::size_t k = 0; k < uses.size(); ++k) {
        if (uses[k].target != target) continue;
        rows.push_back(tensor<T>(gradients[k]));
        indices.push_back(tensor<Index>(uses[k].indices));
    }
    const auto count = static_cast<int>(rows.size());
    const tensor<Index> where = rows_together(indices.data(), count, 0);
    const tensor<T> all = rows_together(rows.data(), count, target->shape().rank() - 1);
    const eager_row_slots<T, Index> some(slots, target, where);
    update(some, some.rows_of(*target), tensor<T>(sum_of_equal_rows(all, where)));
}
template <class T, class F>
void update_rows(const eager_slots& slots, const std::vector<eager_context::row_use>& uses, const any_tensor* gradients,
                 const F& update) {
    for (std::size_t k = 0; k < uses.size(); ++k) {
        bool seen = false; // by an earlier use of the same variable
        for (std::size_t i = 0; i < k; ++i) seen = seen || uses[i].target == uses[k].target;
        if (seen) continue;
        const auto by = uses[k].indices.type() == dtype::i32 ? &update_rows_by<T, std::int32_t, F>
                                                             : &update_rows_by<T, std::int64_t, F>;
        by(slots, uses[k].target, uses, gradients, update);
    }
}

/// The numbers of a step as they are.
template <class Numbers>
auto plain_numbers(const Numbers& n) {
    std::array<double, std::tuple_size_v<Numbers> + 1> plain{};
    for (std::size_t i = 0; i < n.size(); ++i) plain[i] = n[i].value;
    return plain;
}

/// An optimizer's update of tensors, into new ones: by one kernel where it is elementwise.
template <class Optimizer, class T, class Numbers>
void update_into_new(const auto& slots, const tensor<T>& w, const tensor<T>& g, const Numbers& n) {
    if constexpr (updates_elementwise<Optimizer, T>) {
        const update_view& u = update_of<Optimizer, T>();
        tensor<T> tensors[2 + most_states]{w, g};
        any_tensor *leaves[2 + most_states], results[most_leaves];
        for (int k = 0; k < 2 + u.state_count; ++k) {
            if (k >= 2) tensors[k] = slots.state(w, u.states[static_cast<std::size_t>(k - 2)]);
            leaves[k] = &tensors[k];
        }
        run_update(u, leaves, plain_numbers(n).data(), false, results);
        for (int r = 0; r < u.formula.code->results; ++r)
            slots.assign(tensors[u.formula.code->result_leaf[r]], tensor<T>(std::move(results[r])));
    } else {
        Optimizer::update(slots, w, g, n);
    }
}

/// The gradients of a step, in the form that an optimizer's `shared` receives. `gradients` are
/// those of the `targets`, whose handles are `sources`, followed, if `Rows`, by those of the row
/// uses. `in_place`: the handles are not read after the update, and nothing changes what it assigns.
template <class T, bool Rows>
struct eager_gradients {
    eager_slots slots;
    const std::vector<variable*>* targets;
    std::vector<any_tensor>* sources;
    std::vector<any_tensor>* gradients;
    const std::vector<eager_context::row_use>* row_uses;
    bool in_place = false;

    /// Calls f(slots, variable, gradient) for each.
    template <class F>
    void each(const F& f) const {
        run(f, false);
    }
    /// The same as a last pass, which frees gradients on the way.
    template <class F>
    void take(const F& f) const {
        run(f, true);
    }
    /// Updates every variable, and frees gradients on the way.
    template <class Optimizer, class Numbers>
    void update(const Numbers& n) const {
        const auto into_new = [&](const auto& some, const auto& w, const auto& g) {
            update_into_new<Optimizer, T>(some, w, g, n);
        };
        if constexpr (updates_elementwise<Optimizer, T>) {
            eager_slots each = slots;
            const auto plain = plain_numbers(n);
            for (std::size_t i = 0; i < targets->size(); ++i) {
                each.begin((*targets)[i]);
                if (in_place) (*sources)[i].drop_storage();
                each.update(update_of<Optimizer, T>(), (*gradients)[i], plain.data(), in_place);
                (*gradients)[i].drop_storage();
            }
            if constexpr (Rows) update_rows<T>(each, *row_uses, gradients->data() + targets->size(), into_new);
        } else {
            take(into_new);
        }
    }
    /// The sum of the scalars f(gradient), or f(slots, variable, gradient), over all variables that are
    /// not frozen, in order.
    template <class F>
    tensor<T> sum(const F& f) const {
        return fold(f, [](const auto& a, const auto& b) { return a + b; });
    }
    /// The same combined by a function of two scalars that returns its first operand where the
    /// second is 0.
    template <class F, class Join>
    tensor<T> fold(const F& f, const Join& join) const {
        tensor<T> total(T(0));
        bool first = true;
        each([&](const auto& some, const auto& w, const auto& g) {
            const tensor<T> part = term_of(f, some, w, g);
            total = first ? part : tensor<T>(join(total, part));
            first = false;
        });
        return total;
    }

    tensor<T> common(std::string_view name) const { return tensor<T>(slots.common(name).data()); }
    template <tensor_like E>
    void assign_common(std::string_view name, const tensor<T>&, const E& value) const {
        slots.assign_common(name, eval(value));
    }

private:
    template <class F>
    void run(const F& f, bool last) const {
        eager_slots each = slots;
        for (std::size_t i = 0; i < targets->size(); ++i) {
            each.begin((*targets)[i]);
            f(each, tensor<T>((*sources)[i]), tensor<T>((*gradients)[i]));
            if (last) (*gradients)[i].drop_storage();
        }
        if constexpr (Rows) update_rows<T>(each, *row_uses, gradients->data() + targets->size(), f);
    }
};

/// Updates every variable that has a gradient, and frees gradients on the way.
template <class Optimizer, class Gradients, class Numbers>
void update_all(const Gradients& step, const Numbers& n) {
    if constexpr (requires { Optimizer::shared(step, n); }) {
        const auto shared = Optimizer::shared(step, n);
        step.take([&](const auto& slots, const auto& w, const auto& g) { Optimizer::update(slots, w, g, n, shared); });
    } else {
        step.template update<Optimizer>(n);
    }
}

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION variable* eager_slots::variable_of(const any_tensor& target) const {
    for (const auto& s : states_)
        if (s.second.shares_with(target)) return s.first;
    return target_;
}

TG_DEFINITION void eager_slots::update(const update_view& u, const any_tensor& gradient, const double* numbers,
                                       bool in_place) const {
    variable* owners[2 + most_states]{target_};
    any_tensor g = gradient, *leaves[2 + most_states]{&target_->data(), &g}, results[most_leaves];
    for (int k = 0; k < u.state_count; ++k) {
        owners[2 + k] = &state_variable(u.states[static_cast<std::size_t>(k)]);
        leaves[2 + k] = &owners[2 + k]->data();
    }
    in_place = in_place && !target_->frozen() && !numeric_check::active();
    for (const auto& p : *updates_) // of the model's own assignments and the optimizer's, the latter counts
        for (int k = 0; k < 2 + u.state_count; ++k) in_place = in_place && p.target != owners[k];
    run_update(u, leaves, numbers, in_place, results);
    for (int r = 0; r < u.formula.code->results; ++r)
        if (!in_place) updates_->push_back({owners[u.formula.code->result_leaf[r]], std::move(results[r])});
}

TG_DEFINITION void eager_slots::assign_common(std::string_view name, any_tensor value) const {
    updates_->push_back({&common(name), std::move(value)});
}

TG_DEFINITION variable& eager_slots::common(std::string_view name) const {
    return (*variables_)[std::string(common_).append(name)];
}

TG_DEFINITION shape shape_of_rows(const shape& table, std::int64_t rows) {
    shape dims{rows};
    for (int i = 1; i < table.rank(); ++i) dims.push_back(table[i]);
    return dims;
}

#endif

} // namespace tapegraph::detail
