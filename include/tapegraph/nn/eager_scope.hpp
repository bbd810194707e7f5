#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/checkpointed_run.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/nn/scope.hpp>
#include <tapegraph/nn/variables.hpp>

#include <charconv>
#include <string>

/// Scopes of eager mode. They have the functions of graph mode's scopes, on tensors instead of nodes.

namespace tapegraph {

/// The state that all scopes of one evaluation of a model share.
struct eager_context {
    variable_list* variables;
    detail::random_stream random; ///< shared with the random operations of the model
    bool training = true;
    bool follows = false; ///< tapes see variables outside of training, too, and find them again in later calls
    int cursor = 0; ///< models ask for variables in the same order every time
    struct used_variable {
        variable* target;
        any_tensor handle; ///< what the model computes with; on the tape when trainable
    };
    std::vector<used_variable> used;
    /// Rows gathered of a variable whose gradient is taken by them.
    struct row_use {
        variable* target;
        any_tensor indices, rows; ///< the rows are on the tape
    };
    std::vector<row_use> row_uses;
    struct pending {
        variable* target;
        any_tensor value;
        any_tensor indices{}; ///< of the rows that the value is; otherwise it is all of the variable
        void (*write_rows)(variable&, const any_tensor& indices, const any_tensor& rows) = nullptr;
    };
    std::vector<pending> updates;
    std::vector<any_tensor> losses; ///< added by the model, scalars

    void begin(bool is_training, const random_state& state) {
        training = is_training;
        random = {state, 0};
        cursor = 0;
        used.clear();
        row_uses.clear();
        updates.clear();
        losses.clear();
    }
    /// Updates apply at the end of a step.
    void apply();
};

/// A path of names that owns variables; what its functions mean stands with graph_scope. Errors are thrown.
class eager_scope {
public:
    explicit eager_scope(eager_context* context, std::string path = {}, bool reuses = false)
        : context_(context), path_(std::move(path)), reuses_(reuses) {}

    eager_scope reuse() const { return eager_scope(context_, path_, true); }
    bool reuses() const { return reuses_; }

    eager_scope operator/(std::string_view name) const;
    eager_scope operator/(const char* name) const { return *this / std::string_view(name); }
    eager_scope operator/(int index) const {
        require(index >= 0, "scope: an index must not be negative");
        char text[16];
        return *this / std::string_view(text, std::to_chars(text, text + sizeof text, index).ptr);
    }

    template <class T>
    tensor<T> variable(std::string_view name, const shape& dims, const variable_options& options = {}) const {
        static_assert(std::is_floating_point_v<T>, "variables are float or double");
        const auto first_values = [](void* to, const shape& s, const initializer& how, std::uint64_t seed,
                                     std::string_view path) {
            detail::initialize(static_cast<T*>(to), s, how, seed, path);
        };
        return tensor<T>(variable(dtype_of<T>, first_values, name, dims, options));
    }
    template <class T>
    tensor<T> variable_like(const tensor<T>&, std::string_view name, const shape& dims,
                            const variable_options& options = {}) const {
        return variable<T>(name, dims, options);
    }

    template <class T, tensor_like E>
    void assign(const tensor<T>& target, const E& value,
                std::source_location where = std::source_location::current()) const {
        if (detail::checkpointed_run::repeats()) return; // noted by the first run
        const tensor<T> sealed = eval(value, where);
        for (const auto& u : context_->used) {
            if (!u.handle.shares_with(target)) continue;
            if (!(sealed.shape() == target.shape()))
                throw shape_error("assign: variable '" + u.target->path() + "' has shape " + to_string(target.shape()) +
                                  ", given " + to_string(sealed.shape()));
            context_->updates.push_back({u.target, sealed});
            return;
        }
        throw argument_error("assign: the target is not a variable");
    }

    template <tensor_like E>
    void add_loss(const E& value, std::source_location where = std::source_location::current()) const {
        if (detail::checkpointed_run::repeats()) return; // added by the first run
        const auto given = eval(value, where);
        if (given.size() != 1)
            throw argument_error("add_loss: a loss must be a scalar (reduce it, say with mean), it has shape " +
                                 to_string(given.shape()) + ", in scope '" + path_ + "'");
        if (given.rank() == 0)
            context_->losses.push_back(given);
        else
            context_->losses.push_back(eval(sum(given), where));
    }

    template <class T, tensor_like E>
    tensor<T> unless_frozen(const tensor<T>& variable, const E& value,
                            std::source_location where = std::source_location::current()) const {
        for (const auto& u : context_->used) {
            if (!u.handle.shares_with(variable)) continue;
            return u.target->frozen() ? variable : tensor<T>(eval(value, where));
        }
        throw argument_error("unless_frozen: what may be frozen is not a variable");
    }

    /// Rows of a variable [n, ...], by which alone its gradient is taken in training: see graph_scope::gather_rows.
    template <class T, handle I>
    tensor<T> gather_rows(const tensor<T>& table, const I& indices,
                          std::source_location where = std::source_location::current()) const {
        tensor<T> plain = table; // not followed: what is on the tape are the rows
        plain.set_tape_index({});
        auto& tape = detail::tape_storage::instance();
        for (auto& u : context_->used) {
            if (!u.handle.shares_with(table)) continue;
            const bool followed = tape.recording() || detail::checkpointed_run::active();
            if (!context_->training || !u.target->trainable() || !followed) return gather(plain, indices, 0, 0, where);
            // A function that is checkpointed gathers a second time, for the derivative: the same rows.
            struct {
                std::int64_t count;
                std::int64_t next() const { return count; }
            } const noted{static_cast<std::int64_t>(context_->row_uses.size())};
            const auto number = static_cast<std::size_t>(detail::checkpointed_run::ordinal(noted));
            if (number < context_->row_uses.size()) return tensor<T>(context_->row_uses[number].rows);
            tensor<T> rows = gather(plain, indices, 0, 0, where);
            rows.set_tape_index(tape.watch());
            u.handle.set_tape_index({}); // so no gradient by all of it is asked for
            context_->row_uses.push_back({u.target, indices, rows});
            return rows;
        }
        throw argument_error("gather_rows: the table is not a variable");
    }

    bool require(bool holds, const char* what) const {
        if (!holds) throw argument_error(std::string(what) + ", in scope '" + path_ + "'");
        return holds;
    }

    bool training() const { return context_->training; }

    template <class T>
    tensor<T> uniform_like(const tensor<T>& like) const {
        const detail::random_scope draws(context_->random);
        return random::uniform_like(like);
    }

    template <tensor_like X>
    auto operand(const X& x, std::source_location where) const {
        return eval(x, where);
    }
    struct layer_mark {};
    layer_mark enter() const {
        detail::numeric_check::enter(path_);
        return {};
    }
    template <class T>
    const tensor<T>& leave(std::string_view, layer_mark, const tensor<T>& result) const {
        return result;
    }

private:
    using first_values_function = void (*)(void*, const shape&, const initializer&, std::uint64_t seed,
                                           std::string_view path);
    any_tensor variable(dtype type, first_values_function first_values, std::string_view name, const shape& dims,
                        const variable_options& options) const;
    tapegraph::variable& find(dtype type, first_values_function first_values, const std::string& path,
                              const shape& dims, const variable_options& options) const;

    eager_context* context_;
    std::string path_;
    bool reuses_;
};

#if TG_DEFINES(nn)
TG_DEFINITION void eager_context::apply() {
    used.clear();
    row_uses.clear();
    for (pending& p : updates) {
        if (p.target->frozen()) continue;
        if (p.write_rows != nullptr)
            p.write_rows(*p.target, p.indices, p.value);
        else
            p.target->replace(std::move(p.value));
    }
    updates.clear();
}

TG_DEFINITION eager_scope eager_scope::operator/(std::string_view name) const {
    require(!name.empty() && name.front() != '/' && name.back() != '/' && name.find("//") == name.npos,
            "scope: a name must not be empty");
    return eager_scope(context_, path_.empty() ? std::string(name) : path_ + '/' + std::string(name), reuses_);
}

TG_DEFINITION any_tensor eager_scope::variable(dtype type, first_values_function first_values, std::string_view name,
                                               const shape& dims, const variable_options& options) const {
    detail::numeric_check::enter(path_);
    const std::string path = path_.empty() ? std::string(name) : path_ + '/' + std::string(name);
    tapegraph::variable& v = find(type, first_values, path, dims, options);
    for (const auto& u : context_->used)
        if (u.target == &v) {
            if (detail::checkpointed_run::repeats()) return u.handle;
            if (!reuses_)
                throw argument_error("variable '" + path + "': this path is already taken (scope.reuse() shares it)");
            if (u.handle.type() != type || !(u.handle.shape() == dims))
                throw shape_error("variable '" + path + "': it is shared, and has shape " +
                                  to_string(u.handle.shape()) + ", asked for with " + to_string(dims));
            return u.handle;
        }
    any_tensor handle = v.data().viewed(dims);
    auto& tape = detail::tape_storage::instance();
    const bool followed = tape.recording() || detail::checkpointed_run::active();
    if ((context_->training || context_->follows) && v.trainable() && followed) {
        if (tape.tracks(v.data()))
            handle.set_tape_index(v.data().tape_index());
        else
            handle.set_tape_index(tape.watch());
        if (context_->follows) v.data().set_tape_index(handle.tape_index());
    }
    context_->used.push_back({&v, handle});
    return handle;
}

TG_DEFINITION variable& eager_scope::find(dtype type, first_values_function first_values, const std::string& path,
                                          const shape& dims, const variable_options& options) const {
    variable_list& known = *context_->variables;
    if (context_->cursor < known.size() && known.at(context_->cursor).path() == path)
        return known.at(context_->cursor++);
    for (int i = 0; i < known.size(); ++i) {
        if (known.at(i).path() != path) continue;
        context_->cursor = i + 1;
        return known.at(i);
    }
    any_tensor data(type, dims);
    first_values(data.write(), dims, options.initializer, context_->random.state.seed, path);
    return known.add(path, std::move(data), options.trainable, false);
}
#endif

} // namespace tapegraph
