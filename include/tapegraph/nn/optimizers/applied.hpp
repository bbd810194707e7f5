#pragma once

#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/model/shared_terms.hpp>
#include <tapegraph/model/variables.hpp>
#include <tapegraph/nn/optimizers/basic.hpp>
#include <tapegraph/nn/optimizers/hand_slots.hpp>
#include <tapegraph/nn/optimizers/hyperparameter.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Optimizers for custom training loops.

namespace tapegraph {

/// A tensor with a path, which masks match and its state is named after:
/// `applied(adam{}, named{"kernel", w}, named{"bias", b})`.
struct named {
    std::string_view path;
    any_tensor& value;
};

namespace detail {
/// A function without arguments that returns a tensor or a formula.
template <class F>
concept gives_a_loss = requires(const F& f) {
    requires tensor_like<std::remove_cvref_t<decltype(f())>>;
};
} // namespace detail

#define TG_A_LOSS_IS_A_FUNCTION                                                                                        \
    "the loss is a function without arguments that returns a scalar: optimizer.minimize([&] { return "                 \
    "mean(square(y)); })"

/// An optimizer and the tensors or variables that it updates, of float or double. It owns the step count
/// and the optimizer's state; the tensors belong to the caller, and must outlive it at their addresses.
///
///     tg::tensor<float> w = ..., b = ...;
///     tg::applied optimizer(tg::adam{.learning_rate = 0.01}, w, b);
///     const auto loss = optimizer.minimize([&] { return mean(square(matmul(x, w) + b - y)); });
///
/// or, in two steps, `optimizer.apply_gradients(optimizer.compute_gradients(f))`, or with gradients from
/// elsewhere. Tensors that are not `named` are called "0", "1", ... in order. Of a variable_list it
/// updates all variables except optimizers' state.
template <class Optimizer>
class applied {
    static_assert(detail::optimizer_like<Optimizer>,
                  "applied: the optimizer comes first: tg::applied optimizer(tg::adam{}, w, b)");

public:
    template <class... W>
    explicit applied(const Optimizer& optimizer, W&&... weights) : optimizer_(optimizer) {
        (add(weights), ...);
    }

    /// The function's value, and its gradients as compute_gradients gives them: a pair.
    template <detail::gives_a_loss F>
    auto value_and_gradients(const F& f) {
        std::vector<any_tensor> sources;
        gradient_tape tape;
        auto& records = detail::tape_storage::instance();
        const kept_places restored(weights_);
        for (const weight& w : weights_) {
            if (!records.tracks(*w.data)) w.data->set_tape_index(records.watch());
            sources.push_back(*w.data);
        }
        auto value = eval(f());
        if (value.size() != 1)
            throw shape_error("minimize: the function must give a scalar, it gave shape " + to_string(value.shape()));
        std::vector<any_tensor> gradients;
        if constexpr (detail::scales_loss<Optimizer>()) {
            optimizer_.numbers(step_ + 1); // refuses a scale that makes no sense
            const any_tensor scale = common_state(detail::loss_scale_name).data();
            const auto scaled = [&](const auto& s) { return eval(value * detail::as_type_of(value, s)); };
            gradients = scale.type() == dtype::f64 ? tape.gradient(scaled(tensor<double>(scale)), sources)
                                                   : tape.gradient(scaled(tensor<float>(scale)), sources);
        } else {
            gradients = tape.gradient(value, sources);
        }
        value.set_tape_index({});
        return std::pair(std::move(value), std::move(gradients));
    }
    /// The gradients of f, a function without arguments that returns a scalar, by each tensor in order,
    /// at the current values. With loss_scaling they are multiplied by loss_scale(), as apply_gradients
    /// then expects.
    template <detail::gives_a_loss F>
    std::vector<any_tensor> compute_gradients(const F& f) {
        return value_and_gradients(f).second;
    }
    /// Takes one step, with gradients in the order of the tensors. A gradient without elements in memory
    /// (any_tensor{}) leaves its tensor unchanged. Throws argument_error for another number of
    /// gradients, and shape_error or dtype_error where shapes or types differ from the tensors'; then
    /// nothing has changed.
    void apply_gradients(const std::vector<any_tensor>& gradients) { apply<false>(gradients, {}); }
    /// The same where some gradients are sparse: gradient i, [n, rest...], consists of the rows of
    /// variable i that indices[i], int64 [n], names, each once. If indices[i] has no elements in memory,
    /// the gradient is dense. Rows that are not named, and their state, stay unchanged. For optimizers
    /// that support sparse gradients; needs #include <tapegraph/ops/gather/rows_kernel.hpp>, which
    /// embedding layers include.
    void apply_rows(const std::vector<any_tensor>& gradients, const std::vector<any_tensor>& indices) {
        apply<true>(gradients, indices);
    }
    /// compute_gradients and apply_gradients; gives the function's value before the step.
    template <detail::gives_a_loss F>
    auto minimize(const F& f) {
        auto [value, gradients] = value_and_gradients(f);
        apply_gradients(gradients);
        return value;
    }

#ifdef TG_REFUSED_CALL
    template <class... Given>
    TG_REFUSED_CALL(TG_A_LOSS_IS_A_FUNCTION)
    refused_value compute_gradients(const Given&...) {
        return {};
    }
    template <class... Given>
    TG_REFUSED_CALL(TG_A_LOSS_IS_A_FUNCTION)
    refused_value minimize(const Given&...) {
        return {};
    }
#endif

    /// The factor by which loss_scaling multiplies losses in the next step; 1 without it.
    /// compute_gradients and minimize apply it; gradients from elsewhere must be those of the scaled
    /// loss.
    double loss_scale() {
        if constexpr (detail::scales_loss<Optimizer>()) {
            const any_tensor scale = common_state(detail::loss_scale_name).data();
            return scale.type() == dtype::f64 ? tensor<double>(scale).item() : tensor<float>(scale).item();
        } else {
            return 1;
        }
    }

    /// To change its numbers.
    Optimizer& optimizer() { return optimizer_; }
    /// Steps applied so far.
    std::int64_t step() const { return step_; }
    /// Sets the step count, for a run that is resumed.
    void set_step(std::int64_t step) { step_ = step; }
    /// Momentum and the like: "PATH/NAME".
    variable_list& state() { return states_; }

private:
    template <bool Rows>
    void apply(const std::vector<any_tensor>& gradients, const std::vector<any_tensor>& indices);
    struct weight {
        any_tensor* data;
        variable* owner; // null of a plain tensor
        std::string path;
        bool active() const { return owner == nullptr || owner->trainable(); }
    };
    // The tensors' places on the tape as they were.
    struct kept_places {
        std::vector<std::pair<any_tensor*, tapegraph::tape_index>> places;
        explicit kept_places(const std::vector<weight>& weights) {
            for (const weight& w : weights) places.emplace_back(w.data, w.data->tape_index());
        }
        kept_places(const kept_places&) = delete;
        kept_places& operator=(const kept_places&) = delete;
        ~kept_places() {
            for (const auto& [data, place] : places) data->set_tape_index(place);
        }
    };
    // `T`: of sums over tensors, double where one of them is.
    template <class T, bool Rows>
    struct gradients_of_step {
        const applied* self;
        detail::hand_slots* slots;
        const std::vector<any_tensor>* gradients;
        const std::vector<any_tensor>* indices;

        // Calls f(slots, variable, gradient) for each.
        template <class F>
        void each(const F& f) const {
            for (std::size_t i = 0; i < gradients->size(); ++i) {
                const weight& w = self->weights_[i];
                const any_tensor& g = (*gradients)[i];
                if (!w.active() || !g.has_storage()) continue;
                slots->begin(i, w.path);
                any_tensor plain = *w.data;
                plain.set_tape_index({});
                if (g.type() == dtype::f64)
                    take<double>(i, plain, f);
                else
                    take<float>(i, plain, f);
            }
        }
        // Updates each, at once where an update is one kernel and nothing else depends on it.
        template <class Narrow, class Wide>
        void update(const Narrow& narrow, const Wide& wide) const {
            for (std::size_t i = 0; i < gradients->size(); ++i) {
                const weight& w = self->weights_[i];
                if (!w.active() || !(*gradients)[i].has_storage()) continue;
                slots->begin(i, w.path);
                if (w.data->type() == dtype::f64)
                    update<double>(i, wide);
                else
                    update<float>(i, narrow);
            }
        }
        template <class V, class Numbers>
        void update(std::size_t i, const Numbers& n) const {
            if constexpr (detail::updates_elementwise<Optimizer, V>)
                if (!Rows || !(*indices)[i].has_storage()) return update_whole<V>(i, n);
            if constexpr (Rows || !detail::updates_elementwise<Optimizer, V>) {
                any_tensor plain = *self->weights_[i].data;
                plain.set_tape_index({});
                take<V>(i, plain, [&](const auto& some, const auto& w, const auto& g) {
                    detail::update_into_new<Optimizer>(some, w, g, n);
                });
            }
        }
        template <class V, class Numbers>
        void update_whole(std::size_t i, const Numbers& n) const {
            const weight& w = self->weights_[i];
            const bool in_place = !detail::numeric_check::active() && (w.owner == nullptr || !w.owner->constraint());
            slots->template update<V>(detail::update_of<Optimizer, V>(), *w.data, (*gradients)[i],
                                      detail::plain_numbers(n).data(), in_place);
        }
        template <class V, class F>
        void take(std::size_t i, const any_tensor& plain, const F& f) const {
            const tensor<V> w(plain), g((*gradients)[i]);
            if constexpr (Rows)
                if ((*indices)[i].has_storage()) {
                    const detail::hand_row_slots<V> rows(*slots, w, tensor<std::int64_t>((*indices)[i]));
                    return f(rows, tensor<V>(rows.rows()), g); // a copy: asking for state moves what `rows` holds
                }
            f(*slots, w, g);
        }
        template <class F>
        tensor<T> sum(const F& f) const {
            return fold(f, [](const auto& a, const auto& b) { return a + b; });
        }
        template <class F, class Join>
        tensor<T> fold(const F& f, const Join& join) const {
            tensor<T> total(T(0));
            bool first = true;
            each([&](const auto& some, const auto& w, const auto& g) {
                const tensor<T> part = detail::as_type_of(total, detail::term_of(f, some, w, g));
                total = first ? part : tensor<T>(join(total, part));
                first = false;
            });
            return total;
        }
        /// A scalar of the optimizer's that belongs to no tensor.
        tensor<T> common(std::string_view name) const {
            return tensor<T>(const_cast<applied*>(self)->common_state(name).data());
        }
        template <tensor_like E>
        void assign_common(std::string_view name, const tensor<T>&, const E& value) const {
            slots->assign_state(const_cast<applied*>(self)->common_state(name), eval(value));
        }
    };
    bool holds_doubles() const {
        return std::any_of(weights_.begin(), weights_.end(),
                           [](const weight& w) { return w.data->type() == dtype::f64; });
    }
    variable& common_state(std::string_view name) {
        if (variable* const known = states_.find(name)) return *known;
        const double first = first_value_of(&optimizer_, name);
        return holds_doubles() ? states_.add(std::string(name), tensor<double>(first), false, true)
                               : states_.add(std::string(name), tensor<float>(static_cast<float>(first)), false, true);
    }
    static double first_value_of(const void* optimizer, std::string_view state) {
        if constexpr (requires(const Optimizer& o) { o.first_value(state); })
            return static_cast<const Optimizer*>(optimizer)->first_value(state);
        else
            return 0;
    }

    void add(variable_list& list) {
        for (variable& v : list)
            if (!v.optimizer_state() && v.trainable()) add(v);
    }
    void add(variable& v) { add({&v.data(), &v, v.path()}); }
    void add(any_tensor& t) { add({&t, nullptr, std::to_string(weights_.size())}); }
    void add(const named& t) { add({&t.value, nullptr, std::string(t.path)}); }
    void add(weight w) {
        if (w.data->type() != dtype::f32 && w.data->type() != dtype::f64)
            throw dtype_error("applied: tensor '" + w.path + "' is " + name_of(w.data->type()) +
                              ", weights are float or double");
        for (const weight& other : weights_)
            if (other.path == w.path) throw argument_error("applied: two tensors are called '" + w.path + "'");
        weights_.push_back(std::move(w));
    }

    Optimizer optimizer_;
    std::vector<weight> weights_;
    variable_list states_;
    std::int64_t step_ = 0;
};
template <class Optimizer, class... W>
applied(const Optimizer&, W&&...) -> applied<Optimizer>;

template <class Optimizer>
template <bool Rows>
void applied<Optimizer>::apply(const std::vector<any_tensor>& gradients, const std::vector<any_tensor>& indices) {
    if (Rows && indices.size() != gradients.size())
        throw argument_error("apply_rows: " + std::to_string(indices.size()) + " indices for " +
                             std::to_string(gradients.size()) + " gradients");
    if (gradients.size() != weights_.size())
        throw argument_error("apply_gradients: " + std::to_string(gradients.size()) + " gradients for " +
                             std::to_string(weights_.size()) + " tensors");
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const any_tensor &w = *weights_[i].data, &g = gradients[i];
        if (!g.has_storage()) continue;
        if (g.type() != w.type())
            throw dtype_error("apply_gradients: tensor '" + weights_[i].path + "' is " + name_of(w.type()) +
                              ", its gradient " + name_of(g.type()));
        shape wanted = w.shape();
        if constexpr (Rows)
            if (indices[i].has_storage()) {
                if (weights_[i].owner == nullptr || indices[i].type() != dtype::i64 || indices[i].rank() != 1)
                    throw argument_error("apply_rows: tensor '" + weights_[i].path +
                                         "' has to be a variable, and its indices i64 [n]");
                wanted = detail::shape_of_rows(w.shape(), indices[i].size());
            }
        if (!(g.shape() == wanted))
            throw shape_error("apply_gradients: tensor '" + weights_[i].path + "' has shape " + to_string(wanted) +
                              ", its gradient " + to_string(g.shape()));
    }
    constexpr auto count = static_cast<std::size_t>(Optimizer::count);
    const auto numbers = optimizer_.numbers(step_ + 1);
    std::array<typed_number<double>, count> wide;
    std::array<typed_number<float>, count> narrow;
    for (std::size_t i = 0; i < count; ++i) {
        wide[i] = {numbers[i]};
        narrow[i] = {static_cast<float>(numbers[i])};
    }
    std::vector<detail::hand_slots::pending> updates;
    detail::hand_slots slots(&states_, &updates, {&optimizer_, &first_value_of});
    const gradients_of_step<float, Rows> step{this, &slots, &gradients, &indices};
    if constexpr (requires { Optimizer::shared(step, narrow); }) {
        const auto update = [&](const auto& shared) {
            step.each([&](const auto& some, const auto& w, const auto& g) {
                if constexpr (std::is_same_v<decltype(w), const tensor<double>&>)
                    Optimizer::update(some, w, g, wide, shared);
                else
                    Optimizer::update(some, w, g, narrow, shared);
            });
        };
        if (holds_doubles())
            update(Optimizer::shared(gradients_of_step<double, Rows>{this, &slots, &gradients, &indices}, wide));
        else
            update(Optimizer::shared(step, narrow));
    } else {
        step.update(narrow, wide);
    }
    for (auto& u : updates)
        if (const variable* const owner = weights_[u.tensor].owner;
            u.state == nullptr && u.write_rows == nullptr && owner != nullptr && owner->constraint())
            u.value = owner->constraint().project(owner->constraint(), u.value);
    ++step_;
    for (auto& u : updates) {
        variable* const owned = weights_.empty() ? nullptr : weights_[u.tensor].owner;
        if (u.write_rows != nullptr) {
            variable& to = u.state != nullptr ? *u.state : *owned;
            u.write_rows(to, u.indices, u.value);
            if (u.state == nullptr && owned->constraint())
                owned->replace(owned->constraint().project(owned->constraint(), owned->data()));
        } else if (u.state != nullptr)
            u.state->replace(std::move(u.value));
        else if (owned != nullptr)
            owned->replace(std::move(u.value));
        else
            *weights_[u.tensor].data = std::move(u.value);
    }
}

} // namespace tapegraph
