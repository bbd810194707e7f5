#pragma once

#include <tapegraph/model/path_matches.hpp>
#include <tapegraph/model/variables.hpp>
#include <tapegraph/nn/optimizers/eager_slots.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// An optimizer's view of the tensors of `applied`: all of one, or some of its rows.

namespace tapegraph {

namespace detail {

/// The state and assignments of an optimizer for one tensor of `applied`.
class hand_slots {
public:
    /// A new value for some state or, if that is null, for the tensor itself.
    struct pending {
        std::size_t tensor;
        variable* state;
        any_tensor value;
        any_tensor indices{}; ///< of the rows that form the value
        void (*write_rows)(variable&, const any_tensor& indices, const any_tensor& rows) = nullptr;
    };
    struct first_value_of {
        const void* optimizer;
        double (*of)(const void* optimizer, std::string_view state);
    };
    hand_slots(variable_list* states, std::vector<pending>* updates, first_value_of first)
        : states_(states), updates_(updates), first_(first) {}

    void begin(std::size_t tensor, std::string_view path) {
        tensor_ = tensor;
        path_ = path;
        seen_.clear();
    }
    template <class T>
    tensor<T> state(const tensor<T>& w, std::string_view name) const {
        variable& v = state_variable<T>(w.shape(), name);
        seen_.push_back({&v, v.data()});
        return tensor<T>(v.data());
    }
    /// An update of the tensor by one kernel: assigns its results or, `in_place`, writes them at once.
    template <class T>
    void update(const update_view& u, any_tensor& w, const any_tensor& gradient, const double* numbers,
                bool in_place) const {
        variable* owners[2 + most_states]{};
        any_tensor g = gradient, *leaves[2 + most_states]{&w, &g}, results[most_leaves];
        for (int k = 0; k < u.state_count; ++k) {
            owners[2 + k] = &state_variable<T>(w.shape(), u.states[static_cast<std::size_t>(k)]);
            leaves[2 + k] = &owners[2 + k]->data();
        }
        run_update(u, leaves, numbers, in_place, results);
        for (int r = 0; r < u.formula.code->results; ++r)
            if (!in_place)
                updates_->push_back({tensor_, owners[u.formula.code->result_leaf[r]], std::move(results[r])});
    }
    template <class T, tensor_like E>
    void assign(const tensor<T>& target, const E& value) const {
        updates_->push_back({tensor_, state_of(target), eval(value)});
    }
    /// Rows of the tensor, or of some state.
    template <class T>
    void assign_rows(const tensor<T>& target, any_tensor rows, const any_tensor& indices) const {
        updates_->push_back({tensor_, state_of(target), std::move(rows), indices, &write_rows<T>});
    }
    bool matches(std::string_view pattern) const { return path_matches(pattern, path_); }
    void assign_state(variable& state, any_tensor value) const { updates_->push_back({0, &state, std::move(value)}); }

private:
    template <class T>
    variable& state_variable(const shape& dims, std::string_view name) const {
        const std::string path = std::string(path_) + '/' + std::string(name);
        if (variable* const known = states_->find(path)) return *known;
        tensor<T> first = tensor<T>::uninitialized(dims);
        std::fill_n(first.mutable_data(), first.size(), static_cast<T>(first_.of(first_.optimizer, name)));
        return states_->add(path, first, false, true);
    }
    variable* state_of(const any_tensor& target) const {
        variable* state = nullptr;
        for (const auto& s : seen_)
            if (s.second.shares_with(target)) state = s.first;
        return state;
    }

    variable_list* states_;
    std::vector<pending>* updates_;
    first_value_of first_;
    std::size_t tensor_ = 0;
    std::string_view path_;
    mutable std::vector<std::pair<variable*, any_tensor>> seen_;
};

/// An optimizer's view of some rows of one variable: state is gathered by the same indices, and assignments write rows.
template <class T>
class hand_row_slots {
public:
    static constexpr bool sparse = true;
    hand_row_slots(const hand_slots& slots, const tensor<T>& table, const tensor<std::int64_t>& indices)
        : slots_(&slots), table_(table), indices_(indices), seen_{{table_, rows_of(table_)}} {}

    tensor<T> rows_of(const tensor<T>& table) const { return gather(table, indices_, 0, 0); }
    /// The rows of the variable itself.
    const tensor<T>& rows() const { return seen_[0].second; }
    tensor<T> whole(const tensor<T>& rows) const {
        return eval(tapegraph::assign_rows(eval(zeros_like(table_)), indices_, rows));
    }
    tensor<T> state(const tensor<T>&, std::string_view name) const {
        const tensor<T> all = slots_->state(table_, name);
        seen_.push_back({all, rows_of(all)});
        return seen_.back().second;
    }
    template <tensor_like E>
    void assign(const tensor<T>& target, const E& value) const {
        for (const auto& s : seen_)
            if (s.second.shares_with(target)) return slots_->assign_rows(s.first, eval(value), indices_);
    }
    bool matches(std::string_view pattern) const { return slots_->matches(pattern); }

private:
    const hand_slots* slots_;
    tensor<T> table_;
    tensor<std::int64_t> indices_;
    mutable std::vector<std::pair<tensor<T>, tensor<T>>> seen_; // each source, and its rows
};

} // namespace detail

} // namespace tapegraph
