#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/checkpointed_run.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/model/scope.hpp>
#include <tapegraph/model/variables.hpp>

#include <charconv>
#include <string>
#include <utility>
#include <vector>

/// Scopes of eager mode. They have the functions of graph mode's scopes, on tensors instead of
/// nodes.

namespace tapegraph {

namespace detail {

/// The full paths that tg::features searches for in one evaluation of a model, and the values
/// found.
struct feature_search {
    std::vector<std::string> paths;
    std::vector<any_tensor> found; ///< one per path; without memory until found
    std::size_t missing = 0;
    std::vector<std::string> seen; ///< paths encountered so far
    feature_search* outer = nullptr;
};
/// Thrown once a search is complete, because tg::features does not need the rest of the model.
struct features_found {
    const feature_search* which;
};

} // namespace detail

/// The state that all scopes of one evaluation of a model share.
struct eager_context {
    variable_list* variables;
    detail::random_stream random; ///< shared with the random operations of the model
    bool training = true;
    /// Whether tapes follow variables outside of training, too, and recognize them in later calls.
    bool follows = false;
    int cursor = 0; ///< models request variables in the same order every time
    /// A variable that the running call of a model has asked for, and what it got.
    struct used_variable {
        variable* target;
        any_tensor handle;                    ///< the tensor that the model uses; on the tape when trainable
        tapegraph::regularizer regularizer{}; ///< as requested by this model
        tapegraph::constraint constraint{};
    };
    std::vector<used_variable> used;
    /// Rows gathered from a variable whose gradient is taken by them.
    struct row_use {
        variable* target;
        any_tensor indices, rows; ///< the rows are on the tape
    };
    std::vector<row_use> row_uses;
    /// A value that a variable gets when the step ends.
    struct pending {
        variable* target;
        any_tensor value;
        any_tensor indices{}; ///< indices of the rows that form the value; otherwise the value is the whole variable
        void (*write_rows)(variable&, const any_tensor& indices, const any_tensor& rows) = nullptr;
    };
    std::vector<pending> updates;
    std::vector<std::pair<std::string, int>> unique_scopes; ///< number of requests per path by eager_scope::unique
    std::vector<any_tensor> losses;                         ///< added by the model, scalars
    detail::feature_search* search = nullptr;
    std::vector<std::string> open_layers; ///< during a search

    void begin(bool is_training, const random_state& state) {
        training = is_training;
        random = {state, 0};
        cursor = 0;
        used.clear();
        row_uses.clear();
        updates.clear();
        unique_scopes.clear();
        losses.clear();
    }
    /// Applies updates, at the end of a step.
    void apply();
    /// Records a computed value with a path, for searches; for nested layers of one path, the
    /// outermost.
    void note(const std::string& path, const any_tensor& value);
};

/// A path of names that owns variables. Its functions are documented in graph_scope. Errors are
/// thrown.
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

    eager_scope unique(std::string_view name) const;

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
    tensor<T> get_variable(std::string_view name, const shape& dims, const initializer& how = {},
                           bool trainable = true) const {
        check_rules(name);
        return eager_scope(context_, path_, true).template variable<T>(name, dims, {how, trainable, {}});
    }
    template <class T>
    tensor<T> variable_like(const tensor<T>&, std::string_view name, const shape& dims,
                            const variable_options& options = {}) const {
        return variable<T>(name, dims, options);
    }

    template <class T, tensor_like E>
    void assign(const tensor<T>& target, const E& value,
                std::source_location where = std::source_location::current()) const {
        if (detail::checkpointed_run::repeats()) return; // the first run has recorded it
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
        if (detail::checkpointed_run::repeats()) return; // the first run has added it
        const auto given = eval(value, where);
        if (given.size() != 1)
            throw argument_error("add_loss: a loss must be a scalar (reduce it, say with mean), it has shape " +
                                 to_string(given.shape()) + ", in scope '" + path_ + "'");
        if (given.rank() == 0)
            context_->losses.push_back(given);
        else
            context_->losses.push_back(eval(sum(given), where));
    }

    template <tensor_like E>
    auto with_added_losses(const E& loss, std::source_location where = std::source_location::current()) const {
        auto total = eval(loss, where);
        for (const any_tensor& each : context_->losses) total = eval(total + decltype(total)(each), where);
        context_->losses.clear();
        return total;
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

    /// Rows of a variable [n, ...], by which alone its gradient is taken in training: see
    /// graph_scope::gather_rows.
    template <class T, handle I>
    tensor<T> gather_rows(const tensor<T>& table, const I& indices,
                          std::source_location where = std::source_location::current()) const {
        tensor<T> plain = table; // not followed, because the rows are on the tape
        plain.set_tape_index({});
        auto& tape = detail::tape_storage::instance();
        for (auto& u : context_->used) {
            if (!u.handle.shares_with(table)) continue;
            const bool followed = tape.recording() || detail::checkpointed_run::active();
            if (!context_->training || !u.target->trainable() || !followed) return gather(plain, indices, 0, 0, where);
            // A checkpointed function gathers the same rows a second time, for the derivative.
            struct {
                std::int64_t count;
                std::int64_t next() const { return count; }
            } const noted{static_cast<std::int64_t>(context_->row_uses.size())};
            const auto number = static_cast<std::size_t>(detail::checkpointed_run::ordinal(noted));
            if (number < context_->row_uses.size()) return tensor<T>(context_->row_uses[number].rows);
            tensor<T> rows = gather(plain, indices, 0, 0, where);
            rows.set_tape_index(tape.watch());
            u.handle.set_tape_index({}); // so that no gradient by the whole table is requested
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

    /// Runs eager statements on that device: see graph_scope::with_device. Without such a GPU it
    /// falls back to the CPU, with a line on stderr.
    [[nodiscard]] device_scope with_device(std::string_view name) const {
        const auto named = detail::place_name::read(name);
        require(named.valid, detail::place_name::refusal);
        if (named.place < 0) return device_scope(runtime::current_runtime());
        return device_scope(detail::place::is_gpu(named.place)
                                ? available_or_cpu(device::cuda(detail::place::index(named.place)))
                                : device::cpu());
    }

    /// Names a value for sessions, which exist in graph mode, and for tg::features.
    template <tensor_like E>
    auto named(std::string_view name, const E& value,
               std::source_location where = std::source_location::current()) const {
        const auto sealed = eval(value, where);
        if (context_->search != nullptr) context_->note(path_of(name), sealed);
        return sealed;
    }

    template <class T>
    auto uniform_like(const tensor<T>& like) const {
        const detail::random_scope draws(context_->random);
        return random::detail::wide_uniform(like, like.shape(), std::source_location::current());
    }

    template <class F>
    auto with_draws(const F& f) const {
        const detail::random_scope draws(context_->random);
        return f();
    }

    template <tensor_like X>
    auto operand(const X& x, std::source_location where) const {
        return eval(x, where);
    }
    struct layer_mark {
        std::size_t open = 0; // number of enclosing layers
    };
    layer_mark enter() const {
        detail::numeric_check::enter(path_);
        if (context_->search == nullptr) return {};
        context_->open_layers.push_back(path_);
        return {context_->open_layers.size() - 1};
    }
    template <class T>
    const tensor<T>& leave(std::string_view, layer_mark mark, const tensor<T>& result) const {
        if (context_->search != nullptr) {
            context_->open_layers.resize(mark.open);
            context_->note(path_, result);
        }
        return result;
    }

    eager_context& context() const { return *context_; }
    /// The path of a name in this scope.
    std::string path_of(std::string_view name) const {
        return path_.empty() ? std::string(name) : path_ + '/' + std::string(name);
    }

private:
    using first_values_function = void (*)(void*, const shape&, const initializer&, std::uint64_t seed,
                                           std::string_view path);
    void check_rules(std::string_view name) const;
    any_tensor variable(dtype type, first_values_function first_values, std::string_view name, const shape& dims,
                        const variable_options& options) const;
    tapegraph::variable& find(dtype type, first_values_function first_values, const std::string& path,
                              const shape& dims, const variable_options& options) const;

    eager_context* context_;
    std::string path_;
    bool reuses_;
};

namespace init {
/// In eager mode variables get their initial values from graph mode's trace.
template <class T>
initializer value_of(const tensor<T>&) {
    return {initializer_kind::value_of, 0, 0};
}
} // namespace init

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

TG_DEFINITION void eager_context::note(const std::string& path, const any_tensor& value) {
    for (const std::string& open : open_layers)
        if (open == path) return;
    const detail::feature_search* complete = nullptr;
    for (detail::feature_search* s = search; s != nullptr; s = s->outer) {
        s->seen.push_back(path);
        for (std::size_t k = 0; k < s->paths.size(); ++k) {
            if (s->paths[k] != path || s->found[k].has_storage()) continue;
            s->found[k] = value;
            if (--s->missing == 0) complete = s; // the outermost counts
        }
    }
    if (complete != nullptr) throw detail::features_found{complete};
}

TG_DEFINITION eager_scope eager_scope::operator/(std::string_view name) const {
    require(!name.empty() && name.front() != '/' && name.back() != '/' && name.find("//") == name.npos,
            "scope: a name must not be empty");
    return eager_scope(context_, path_.empty() ? std::string(name) : path_ + '/' + std::string(name), reuses_);
}

TG_DEFINITION eager_scope eager_scope::unique(std::string_view name) const {
    const eager_scope first = *this / name;
    for (auto& known : context_->unique_scopes)
        if (known.first == first.path_)
            return eager_scope(context_, first.path_ + '_' + std::to_string(known.second++), reuses_);
    context_->unique_scopes.emplace_back(first.path_, 1);
    return first;
}

TG_DEFINITION void eager_scope::check_rules(std::string_view name) const {
    const std::string path = path_of(name);
    bool known = false;
    for (const auto& u : context_->used) known = known || u.target->path() == path;
    if (known != reuses_)
        throw argument_error("variable '" + path +
                             (known ? "': get_variable: it exists, and the scope is not one of reuse()"
                                    : "': get_variable: it does not exist, and reuse() makes none"));
}

TG_DEFINITION any_tensor eager_scope::variable(dtype type, first_values_function first_values, std::string_view name,
                                               const shape& dims, const variable_options& options) const {
    detail::numeric_check::enter(path_);
    const std::string path = path_of(name);
    tapegraph::variable& v = find(type, first_values, path, dims, options);
    for (const auto& u : context_->used)
        if (u.target == &v) {
            if (detail::checkpointed_run::repeats()) return u.handle;
            if (!reuses_)
                throw argument_error("variable '" + path + "': this path is already taken (scope.reuse() shares it)");
            if (u.handle.type() != type || !(u.handle.shape() == dims))
                throw shape_error("variable '" + path + "': it is shared, and has shape " +
                                  to_string(u.handle.shape()) + ", requested with " + to_string(dims));
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
    context_->used.push_back({&v, handle, options.regularizer, options.constraint});
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
    if (const char* const refused = detail::refused_rule(options, dims)) require(false, refused);
    any_tensor data(type, dims);
    first_values(data.overwrite(), dims, options.initializer, context_->random.state.seed, path);
    tapegraph::variable& made = known.add(path, std::move(data), options.trainable, false);
    made.set_rules(options.regularizer, options.constraint);
    return made;
}
#endif

} // namespace tapegraph
