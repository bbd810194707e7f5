#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/eager/tensor.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tapegraph {

namespace detail {

/// Named tensors: a run's state as stored in files.
using state_entries = std::vector<std::pair<std::string, any_tensor>>;

/// See state_archive.
class state_archive {
public:
    enum class task {
        save,  ///< values are copied into the entries
        check, ///< entries must exist with the right type; nothing is changed
        load   ///< values are set from the entries
    };
    /// `origin` is the prefix of errors: a file's name, or "fit".
    state_archive(state_entries& entries, task what, std::string origin)
        : entries_(entries), task_(what), origin_(std::move(origin)) {}

    bool saving() const { return task_ == task::save; }
    /// Whether values are being set, so that they can be checked together.
    bool loading() const { return task_ == task::load; }

    void operator()(std::string_view name, double& value) { raw(name, dtype::f64, &value, 8); }
    void operator()(std::string_view name, std::int64_t& value) { raw(name, dtype::i64, &value, 8); }
    void operator()(std::string_view name, std::uint64_t& value) { raw(name, dtype::u64, &value, 8); }
    void operator()(std::string_view name, bool& value);
    void operator()(std::string_view name, std::vector<double>& values) { several(name, dtype::f64, values); }
    void operator()(std::string_view name, std::string& text) { several(name, dtype::u8, text); }
    void operator()(std::string_view name, any_tensor& value);
    void operator()(std::string_view name, std::vector<any_tensor>& values);

    /// Prefixes the names that follow.
    void within(std::string prefix) { prefix_ = std::move(prefix); }
    /// Whether any entry has a prefix.
    bool holds(std::string_view prefix) const;

private:
    std::string full(std::string_view name) const { return prefix_ + std::string(name); }
    const any_tensor& entry(std::string_view name) const;
    std::int64_t stored_count(std::string_view name) const;
    const any_tensor& entry_of(std::string_view name, dtype type, bool scalar) const;
    void raw(std::string_view name, dtype type, void* value, std::size_t bytes);
    template <class Values>
    void several(std::string_view name, dtype type, Values& values) {
        if (saving()) {
            any_tensor t(type, shape{static_cast<std::int64_t>(values.size())});
            if (!values.empty()) std::memcpy(t.overwrite(), values.data(), values.size() * size_of(type));
            entries_.emplace_back(full(name), std::move(t));
            return;
        }
        const any_tensor& stored = entry_of(name, type, false);
        if (!loading()) return;
        values.resize(static_cast<std::size_t>(stored.size()));
        if (!values.empty()) std::memcpy(values.data(), stored.read(), values.size() * size_of(type));
    }

    state_entries& entries_;
    task task_;
    std::string origin_, prefix_;
};

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void state_archive::operator()(std::string_view name, bool& value) {
    std::int64_t number = value ? 1 : 0;
    (*this)(name, number);
    if (loading()) value = number != 0;
}

TG_DEFINITION void state_archive::operator()(std::string_view name, any_tensor& value) {
    if (saving()) {
        any_tensor copy = value;
        copy.set_tape_index({});
        entries_.emplace_back(full(name), std::move(copy));
        return;
    }
    const any_tensor& stored = entry(name);
    if (loading()) value = stored;
}

TG_DEFINITION void state_archive::operator()(std::string_view name, std::vector<any_tensor>& values) {
    auto count = static_cast<std::int64_t>(values.size());
    (*this)(std::string(name) + "/count", count);
    if (task_ == task::check) count = stored_count(std::string(name) + "/count");
    if (loading()) values.resize(static_cast<std::size_t>(count));
    any_tensor none;
    for (std::int64_t i = 0; i < count; ++i)
        (*this)(std::string(name) + "/" + std::to_string(i),
                task_ == task::check ? none : values[static_cast<std::size_t>(i)]);
}

TG_DEFINITION bool state_archive::holds(std::string_view prefix) const {
    for (const auto& e : entries_)
        if (e.first.starts_with(prefix)) return true;
    return false;
}

TG_DEFINITION const any_tensor& state_archive::entry(std::string_view name) const {
    const std::string key = full(name);
    for (const auto& e : entries_)
        if (e.first == key) return e.second;
    throw data_error(origin_ + ": the state of the run has no '" + key + "'");
}

TG_DEFINITION std::int64_t state_archive::stored_count(std::string_view name) const {
    std::int64_t count = 0;
    std::memcpy(&count, entry(name).read(), sizeof count);
    if (count < 0) throw data_error(origin_ + ": '" + full(name) + "' is " + std::to_string(count));
    return count;
}

TG_DEFINITION const any_tensor& state_archive::entry_of(std::string_view name, dtype type, bool scalar) const {
    const any_tensor& stored = entry(name);
    if (stored.type() != type || stored.rank() != (scalar ? 0 : 1))
        throw data_error(origin_ + ": '" + full(name) + "' is " + name_of(stored.type()) + " " +
                         to_string(stored.shape()) + ", not " + name_of(type) + (scalar ? " []" : " of one axis"));
    return stored;
}

TG_DEFINITION void state_archive::raw(std::string_view name, dtype type, void* value, std::size_t bytes) {
    if (saving()) {
        any_tensor t(type, shape{});
        std::memcpy(t.overwrite(), value, bytes);
        entries_.emplace_back(full(name), std::move(t));
        return;
    }
    const any_tensor& stored = entry_of(name, type, true);
    if (loading()) std::memcpy(value, stored.read(), bytes);
}

#endif

} // namespace detail

/// The state of a callback between steps, by name, so that a resumed run continues exactly. One
/// function both saves and restores it:
///
///     void on_state(tg::state_archive& a) { a("best", best_); a("wait", wait_); }
///
/// takes double, std::int64_t, std::uint64_t, bool, std::string, std::vector<double>, tensors and
/// vectors of tensors. It is called twice to restore: once to check that everything exists, without
/// changing anything, and then, when `loading()`, to set it.
using state_archive = detail::state_archive;

} // namespace tapegraph
