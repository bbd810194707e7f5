#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/ir/trace.hpp>
#include <tapegraph/model/initialize.hpp>
#include <tapegraph/model/path_matches.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tapegraph {

/// A tensor owned by models: named by its path, changed by training. No user's tensor shares its
/// buffer during writes, so both modes write in place.
class variable {
public:
    variable(std::string path, any_tensor data, bool trainable, bool optimizer_state)
        : path_(std::move(path)),
          shared_(std::make_shared<stored>(std::move(data))),
          made_trainable_(trainable),
          state_(optimizer_state) {}
    /// Another model's variable under a path of this one: they share one value. Whether it is
    /// frozen is specific to each model.
    variable(std::string path, const variable& other, bool trainable)
        : path_(std::move(path)), shared_(other.shared_), made_trainable_(trainable), state_(false) {}

    /// Scopes and name: "block/3/kernel".
    const std::string& path() const { return path_; }
    /// The extents of its axes.
    const tapegraph::shape& shape() const { return shared_->data.shape(); }
    /// The type of its elements.
    dtype type() const { return shared_->data.type(); }
    std::int64_t size() const { return shared_->data.size(); }
    /// Whether an optimizer updates it.
    bool trainable() const { return made_trainable_ && !frozen_; }
    /// Freezes a variable, or unfreezes it: a frozen one and its optimizer state keep their values
    /// in every later step. In graph mode the compiled step still computes its gradient. A
    /// non-trainable variable, such as a moving average, can be frozen, too: it no longer changes,
    /// and its layer uses it instead of the batch's statistics. Throws argument_error when a
    /// non-trainable variable that was not frozen is to become trainable, because no gradient was
    /// traced for it.
    void set_trainable(bool trainable);
    /// Whether set_trainable(false) has frozen it.
    bool frozen() const { return frozen_; }
    /// Whether it is an optimizer's state, such as momentum, and not the model's.
    bool optimizer_state() const { return state_; }
    /// Whether it is a metric's accumulator, which does not belong to the model either.
    bool metric_state() const { return path_.starts_with("__metrics__/"); }

    /// Its regularizer and constraint, as set by the model's options (nn/regularizer.hpp,
    /// nn/constraint.hpp).
    const tapegraph::regularizer& regularizer() const { return regularizer_; }
    /// What its values are made to satisfy after each update.
    const tapegraph::constraint& constraint() const { return constraint_; }
    /// Sets regularizer and constraint, which the next step uses.
    void set_rules(const tapegraph::regularizer& r, const tapegraph::constraint& c) {
        regularizer_ = r;
        constraint_ = c;
    }

    /// A copy of the value. Throws dtype_error when T is not the element type.
    template <class T>
    tensor<T> value() const {
        tensor<T> copy(data());
        copy.unshare();
        return copy;
    }
    /// Sets the value. Throws shape_error and dtype_error if shape and type are not the variable's.
    void assign(const any_tensor& value);
    /// Adds a value to it, or subtracts one. Throws like assign.
    void assign_add(const any_tensor& value) { assign(moved_by(value, 1)); }
    /// Subtracts `value`, of its type and shape, from it.
    void assign_sub(const any_tensor& value) { assign(moved_by(value, -1)); }
    /// Replaces its tensor by one of the variable's shape and type. If something else holds it too
    /// (two variables assigned from one tensor), it is copied.
    void replace(any_tensor value);
    /// An unshared buffer to write to. Predictions keep nothing that they derive from a variable
    /// whose memory was handed out (runtime/kept_memory.hpp); `assign` has no such effect.
    void* own_data() { return data().write(); }
    /// The same for a writer that is done before the variable is read again.
    void* overwrite() { return data().overwrite(); }
    /// The same for the kernels of a device, which write to it in place. Tensors that shared it
    /// keep the old values.
    buffer_view own_data_on(runtime::device_runtime* device) { return data().write_on(device); }

    /// The buffer itself, which programs read and write. Throws argument_error where another task
    /// holds the value.
    any_tensor& data() { return const_cast<any_tensor&>(static_cast<const variable&>(*this).data()); }
    const any_tensor& data() const {
        if (shared_->away) refuse_away();
        return shared_->data;
    }

    /// For a model with parts on several tasks: bit r says whether task r has the value; every task
    /// knows all bits.
    std::uint64_t& held_by() { return shared_->held_by; }
    /// Whether it can be read here.
    bool is_here() const { return !shared_->away; }
    /// From now on only other tasks have the value; `memory_stays`: it will be written again soon.
    void release(bool memory_stays) {
        shared_->away = true;
        if (!memory_stays) shared_->data.drop_storage();
    }
    /// The memory, to be overwritten completely.
    any_tensor& restore();

    /// The collection it was created for, if any: variable_options::collection.
    const std::string& collection() const { return collection_; }
    /// Says which collection it belongs to.
    void set_collection(std::string name) { collection_ = std::move(name); }
    /// The task that scope.with_device named for it, "/job:ps/task:0"; empty if it named none.
    const std::string& task() const { return task_; }
    /// Says which task of a cluster keeps it.
    void set_task(std::string name) { task_ = std::move(name); }

private:
    struct stored {
        any_tensor data;
        std::uint64_t held_by = ~std::uint64_t{0};
        bool away = false;
        explicit stored(any_tensor value) : data(std::move(value)) {}
    };
    [[noreturn]] void refuse_away() const;
    // Returns a value that does not fit, for `assign` to refuse.
    any_tensor moved_by(const any_tensor& value, int sign) const;

    std::string path_, collection_, task_;
    std::shared_ptr<stored> shared_; // shared with variables of other models
    bool made_trainable_, state_, frozen_ = false;
    tapegraph::regularizer regularizer_;
    tapegraph::constraint constraint_;
};

/// "dense/kernel: f32[784, 10]", and whether it is trainable.
template <class Variable>
    requires std::is_same_v<Variable, variable> // a template, so that programs that print none do not compile it
        std::string to_string(const Variable& v) {
        return v.path() + ": " + name_of(v.type()) + to_string(v.shape()) + (v.trainable() ? "" : ", not trainable");
    }
template <>
inline constexpr bool has_text<variable> = true;

namespace detail {

/// The path of a scope as text: "block/3/conv".
template <class Scopes>
std::string path_of(const Scopes& scopes, int scope) {
    if (scope <= 0) return {};
    const auto& s = scopes[scope];
    std::string path = path_of(scopes, s.parent);
    if (!path.empty()) path += '/';
    path += s.name;
    if (s.index >= 0) path.append(s.name.empty() ? "" : "_").append(std::to_string(s.index));
    return path;
}

} // namespace detail

/// The variables of a model in the order in which the model requests them.
class variable_list {
public:
    /// Finds a variable by its path: "hidden/kernel". Throws argument_error, with the existing
    /// paths, for an unknown one.
    variable& operator[](std::string_view path) {
        if (variable* const found = find(path)) return *found;
        refuse(path);
    }
    /// Returns null where there is none.
    variable* find(std::string_view path);
    /// Freezes or unfreezes all variables whose path, or an enclosing scope's path, matches the
    /// pattern: "encoder" is all of that scope, and "*" stands for any text, as in "*/bias" or
    /// "block/*/norm". Optimizer state follows its variable. Moving averages are frozen, too, so
    /// that batch normalization then uses them (`layer.trainable = False` in Keras). Returns the
    /// number of variables; throws argument_error if there is none.
    int set_trainable(std::string_view pattern, bool trainable);
    /// The variables of a collection: "trainable"; "local", those created for it; "global", all
    /// others; or the name in variable_options::collection. Optimizers' state is global.
    std::vector<variable*> collection(std::string_view name) const;
    int size() const { return static_cast<int>(items_.size()); }
    /// Variable i in the order of their making, unchecked.
    variable& at(int i) { return *items_[static_cast<std::size_t>(i)]; }
    const variable& operator[](std::string_view path) const { return const_cast<variable_list&>(*this)[path]; }
    const variable& at(int i) const { return *items_[static_cast<std::size_t>(i)]; }

    /// Adds a variable with its first values, and returns it.
    variable& add(std::string path, any_tensor data, bool trainable, bool state) {
        items_.push_back(std::make_unique<variable>(std::move(path), std::move(data), trainable, state));
        return *items_.back();
    }

    /// Adds a variable that shares its value with `scope`/`path` of another list, if that exists.
    /// Throws shape_error or dtype_error if it does not match `like`.
    bool share(const variable_list& other, std::string_view scope, std::string_view path, const any_tensor& like,
               bool trainable);

    /// Iterates over variables, the model's first, then the optimizer's.
    class iterator {
    public:
        explicit iterator(const std::unique_ptr<variable>* at) : at_(at) {}
        variable& operator*() const { return **at_; }
        iterator& operator++() {
            ++at_;
            return *this;
        }
        bool operator!=(const iterator& other) const { return at_ != other.at_; }

    private:
        const std::unique_ptr<variable>* at_;
    };
    iterator begin() const { return iterator(items_.data()); }
    iterator end() const { return iterator(items_.data() + items_.size()); }

private:
    // Names the model's variables; of many only the first.
    [[noreturn]] void refuse(std::string_view path) const;

    std::vector<std::unique_ptr<variable>> items_; // by pointer, so that addresses stay
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION any_tensor variable::moved_by(const any_tensor& value, int sign) const {
    any_tensor sum = value;
    if (value.type() != data().type() || !(value.shape() == data().shape())) return sum;
    sum.set_tape_index({});
    const auto add = [&]<class T>(T* to, const T* from) {
        for (std::int64_t i = 0; i < sum.size(); ++i) to[i] = sign > 0 ? from[i] + to[i] : from[i] - to[i];
    };
    if (type() == dtype::f64) add(static_cast<double*>(sum.overwrite()), static_cast<const double*>(data().read()));
    if (type() == dtype::f32) add(static_cast<float*>(sum.overwrite()), static_cast<const float*>(data().read()));
    return sum;
}

[[noreturn]] TG_DEFINITION void variable_list::refuse(std::string_view path) const {
    constexpr int most = 10;
    std::string text = "no variable '" + std::string(path) + "'";
    int count = 0;
    for (const auto& v : items_)
        if (!v->optimizer_state() && !v->metric_state() && count++ < most)
            text.append(count == 1 ? ", there are '" : ", '").append(v->path()).append("'");
    if (count > most) text.append(" and ").append(std::to_string(count - most)).append(" more");
    throw argument_error(text);
}

TG_DEFINITION void variable::assign(const any_tensor& value) {
    if (value.type() != data().type())
        throw dtype_error("variable '" + path_ + "' is " + name_of(data().type()) + ", given " + name_of(value.type()));
    if (!(value.shape() == data().shape()))
        throw shape_error("variable '" + path_ + "' has shape " + to_string(data().shape()) + ", given " +
                          to_string(value.shape()));
    std::memcpy(overwrite(), value.read(), data().outline_view().bytes());
}

[[noreturn]] TG_DEFINITION void variable::refuse_away() const {
    throw argument_error("variable '" + path_ + "' is held by " + (task_.empty() ? "the chief" : task_) +
                         "; model.gather_variables(), called on every task, brings it here until the next step");
}

TG_DEFINITION any_tensor& variable::restore() {
    shared_->away = false;
    if (!shared_->data.has_storage() && size() > 0) shared_->data = any_tensor(type(), shape());
    return shared_->data;
}

TG_DEFINITION variable* variable_list::find(std::string_view path) {
    for (const auto& v : items_)
        if (v->path() == path) return v.get();
    return nullptr;
}

TG_DEFINITION int variable_list::set_trainable(std::string_view pattern, bool trainable) {
    int count = 0;
    for (const auto& v : items_) {
        if (v->optimizer_state() || v->metric_state() || !detail::path_matches(pattern, v->path())) continue;
        ++count;
        if (!trainable || v->frozen()) v->set_trainable(trainable);
    }
    if (count == 0) refuse(pattern);
    return count;
}

TG_DEFINITION std::vector<variable*> variable_list::collection(std::string_view name) const {
    std::vector<variable*> found;
    for (const auto& v : items_)
        if (v->collection() == name || (name == "trainable" && v->trainable()) ||
            (name == "global" && v->collection() != "local"))
            found.push_back(v.get());
    return found;
}

TG_DEFINITION bool variable_list::share(const variable_list& other, std::string_view scope, std::string_view path,
                                        const any_tensor& like, bool trainable) {
    const std::string whole = scope.empty() ? std::string(path) : std::string(scope) + '/' + std::string(path);
    const variable* const found = const_cast<variable_list&>(other).find(whole);
    if (found == nullptr) return false;
    if (found->type() != like.type())
        throw dtype_error("shared variable '" + whole + "' is " + name_of(found->type()) + ", the model takes " +
                          name_of(like.type()));
    if (!(found->shape() == like.shape()))
        throw shape_error("shared variable '" + whole + "' has shape " + to_string(found->shape()) +
                          ", the model takes " + to_string(like.shape()));
    items_.push_back(std::make_unique<variable>(std::string(path), *found, trainable));
    return true;
}

TG_DEFINITION void variable::set_trainable(bool trainable) {
    if (trainable && !made_trainable_ && !frozen_)
        throw argument_error("variable '" + path_ + "' was made not trainable and cannot become it");
    frozen_ = !trainable;
}

TG_DEFINITION void variable::replace(any_tensor value) {
    data() = std::move(value);
    data().set_tape_index({});
    data().unshare();
}

#endif

} // namespace tapegraph
