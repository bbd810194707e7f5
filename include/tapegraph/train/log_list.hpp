#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tapegraph {

/// A number that a metric returns, or that training logs: "val_loss", 0.31.
struct named_value {
    std::string name;
    double value = 0;
};

/// Values by name, in the order in which they were first added.
class log_list {
public:
    /// Adds a value, or replaces the one of that name, which allocates nothing.
    void set(std::string_view name, double value);
    /// Returns null where there is none.
    const double* find(std::string_view name) const;
    /// Throws argument_error, with the existing names, for an unknown name.
    double operator[](std::string_view name) const {
        if (const double* const found = find(name)) return *found;
        refuse("log", name);
    }
    /// Removes all values.
    void clear() { values_.clear(); }
    std::size_t size() const { return values_.size(); }
    auto begin() const { return values_.begin(); }
    auto end() const { return values_.end(); }

    /// Throws argument_error, prefixed by `who`, which says that there is no such value, and which
    /// ones exist.
    [[noreturn]] void refuse(std::string_view who, std::string_view name) const;

private:
    std::vector<named_value> values_;
};

#if TG_DEFINES_FOR_HOST(nn)

[[noreturn]] TG_DEFINITION void log_list::refuse(std::string_view who, std::string_view name) const {
    std::string text = std::string(who) + ": no value '" + std::string(name) + "'";
    const char* before = ", there are '";
    for (const named_value& v : values_) {
        text.append(before).append(v.name).append("'");
        before = ", '";
    }
    throw argument_error(text);
}

TG_DEFINITION void log_list::set(std::string_view name, double value) {
    for (named_value& v : values_)
        if (v.name == name) {
            v.value = value;
            return;
        }
    values_.push_back({std::string(name), value});
}

TG_DEFINITION const double* log_list::find(std::string_view name) const {
    for (const named_value& v : values_)
        if (v.name == name) return &v.value;
    return nullptr;
}

#endif

} // namespace tapegraph
