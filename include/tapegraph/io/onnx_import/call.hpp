#pragma once

#include <tapegraph/core/number_text.hpp>
#include <tapegraph/io/onnx_import/importer.hpp>

/// A node as its rule sees it: operands, attributes and results.

namespace tapegraph::io::onnx_import {

class call {
public:
    call(importer& by, const file_node& n, std::vector<value_pointer> in, environment& env)
        : on(by), node_(n), in_(std::move(in)), env_(env), out_(n.outputs.size()) {
        for (const attribute& a : n.attributes) {
            const attribute* found = &a;
            if (!a.reference.empty()) { // refers to an attribute of the enclosing function's call
                found = nullptr;
                if (env.arguments != nullptr)
                    for (const attribute& given : *env.arguments)
                        if (given.name == a.reference) found = &given;
                if (found == nullptr && env.function != nullptr)
                    for (const attribute& given : env.function->defaults)
                        if (given.name == a.reference) found = &given;
                if (found == nullptr) continue;
            }
            attributes_.push_back({a.name, found, false});
        }
    }

    importer& on;
    const file_node& node() const { return node_; }
    environment& around() { return env_; }
    std::int64_t opset() const { return on.opset(); }

    // Operands
    int inputs() const { return static_cast<int>(in_.size()); }
    bool has(int i) const { return i < inputs() && in_[static_cast<std::size_t>(i)] != nullptr; }
    value& operand(int i) const {
        if (!has(i)) refuse("operand " + std::to_string(i) + " is missing");
        return *in_[static_cast<std::size_t>(i)];
    }
    /// Null for an operand that is missing.
    value_pointer optional(int i) const { return has(i) ? in_[static_cast<std::size_t>(i)] : nullptr; }
    const value_pointer& pointer(int i) const { return operand(i), in_[static_cast<std::size_t>(i)]; }
    dtype type(int i) const { return operand(i).type; }
    int rank(int i) const { return operand(i).rank(); }
    shape dims(int i) const {
        shape s = operand(i).dims();
        s.attach(&on.trace().extents);
        return s;
    }
    graph_node plain(int i) { return on.plain(operand(i)); }
    graph_node arranged(int i, const std::vector<int>& axes) { return on.arranged(operand(i), axes); }
    const array* known(int i) const { return has(i) ? operand(i).known.get() : nullptr; }
    /// Integers that must be known, except for symbols.
    std::vector<std::int64_t> extents(int i, const char* what) const {
        if (known(i) == nullptr) refuse_symbols(std::string(what) + " that are computed from values");
        std::vector<std::int64_t> items = known(i)->as_integers();
        if (!known(i)->symbolic()) // "up to the end" is written as any large number, none of which is a symbol
            for (std::int64_t& item : items) item = std::max(item, -(std::int64_t{1} << 60));
        return items;
    }
    std::vector<std::int64_t> integers(int i, const char* what) const {
        if (known(i) != nullptr && known(i)->symbolic())
            refuse_symbols(std::string(what) + " that depend on the extents of inputs");
        return extents(i, what);
    }
    /// A number that must be known. Integers that double does not hold are refused.
    double scalar(int i, const char* what) const {
        if (known(i) == nullptr) refuse_symbols(std::string(what) + " that is computed from values");
        if (known(i)->size() != 1) refuse(std::string(what) + " that is not a number");
        if (known(i)->symbolic()) refuse_symbols(std::string(what) + " that depends on the extents of inputs");
        constexpr std::int64_t exact = std::int64_t{1} << 53;
        if (is_integer(known(i)->type()))
            if (const std::int64_t n = known(i)->integer(0); n > exact || n < -exact)
                refuse(std::string(what) + " of " + std::to_string(n) + ", beyond 2^53");
        return known(i)->number(0);
    }
    int axis(std::int64_t a, int rank) const {
        const int found = normalized_axis(a, rank);
        if (found < 0) refuse("axis " + std::to_string(a) + " of " + std::to_string(rank) + " axes");
        return found;
    }

    // Attributes. Those that the rule has not read are refused after it.
    const attribute* find(const char* name) {
        for (held& h : attributes_)
            if (h.name == name) {
                h.read = true;
                return h.value;
            }
        return nullptr;
    }
    std::int64_t integer(const char* name, std::int64_t otherwise) {
        const attribute* a = find(name);
        return a == nullptr ? otherwise : expect(*a, attribute::integer).i;
    }
    double number(const char* name, double otherwise) {
        const attribute* a = find(name);
        return a == nullptr ? otherwise : static_cast<double>(expect(*a, attribute::number).f);
    }
    std::string text(const char* name, const char* otherwise) {
        const attribute* a = find(name);
        return a == nullptr ? otherwise : expect(*a, attribute::text).s;
    }
    std::vector<std::int64_t> integers(const char* name, std::vector<std::int64_t> otherwise = {}) {
        const attribute* a = find(name);
        return a == nullptr ? otherwise : expect(*a, attribute::integers).ints;
    }
    std::vector<float> numbers(const char* name) {
        const attribute* a = find(name);
        return a == nullptr ? std::vector<float>{} : expect(*a, attribute::numbers).floats;
    }
    std::vector<std::string> texts(const char* name) {
        const attribute* a = find(name);
        return a == nullptr ? std::vector<std::string>{} : expect(*a, attribute::texts).strings;
    }
    /// Marks attributes of old opsets that have no effect any more as read.
    void ignore(const char* name) { find(name); }
    void refuse_unread() const {
        std::string all;
        for (const held& h : attributes_)
            if (!h.read) all += (all.empty() ? "" : ", ") + h.name + " = " + value_text(*h.value);
        if (!all.empty()) refuse("attribute " + all + ", which no rule reads");
    }

    // Results
    int outputs() const { return static_cast<int>(out_.size()); }
    bool wants(int k) const { return k < outputs() && !node_.outputs[static_cast<std::size_t>(k)].empty(); }
    void give(int k, value_pointer v) {
        if (wants(k)) out_[static_cast<std::size_t>(k)] = std::move(v);
    }
    void give(int k, const graph_node& n, dtype type) { give(k, on.make(n, type)); }
    void give(int k, const graph_node& n) { give(k, n, n.type()); }
    void give(const graph_node& n) { give(0, n); }
    void give_laid(int k, const graph_node& n, dtype type, const std::vector<int>& axes) {
        give(k, on.make(n, type, axes));
    }
    void give_known(int k, array a) { give(k, on.make_known(std::move(a))); }
    std::vector<value_pointer>& results() { return out_; }

    /// Wraps a result of integers that were computed in a wider type to `type`.
    static graph_node wrapped(const graph_node& x, dtype type) {
        switch (type) {
        case dtype::i8: return eval((x + 128) % 256 - 128);
        case dtype::i16: return eval((x + 32768) % 65536 - 32768);
        case dtype::u16: return eval(x % 65536);
        case dtype::u32: return eval(x % 4294967296.0);
        default: return x;
        }
    }

private:
    struct held {
        std::string name;
        const attribute* value;
        bool read;
    };
    static const attribute& expect(const attribute& a, int type) {
        if (a.type == type) return a;
        // In files that do not give types, an empty list has none.
        if (a.type == attribute::integer && type >= attribute::numbers && a.i == 0) return a;
        refuse("attribute " + a.name + " is of another type than the operator's");
    }
    static std::string value_text(const attribute& a) {
        switch (a.type) {
        case attribute::number: return number_text(a.f);
        case attribute::integer: return std::to_string(a.i);
        case attribute::text: return "'" + a.s + "'";
        case attribute::integers: {
            std::string all = "[";
            for (const std::int64_t i : a.ints) all += (all.size() > 1 ? ", " : "") + std::to_string(i);
            return all + "]";
        }
        case attribute::numbers: {
            std::string all = "[";
            for (const float i : a.floats) all += (all.size() > 1 ? ", " : "") + std::to_string(i);
            return all + "]";
        }
        default: return "(a value)";
        }
    }

    const file_node& node_;
    std::vector<value_pointer> in_;
    environment& env_;
    std::vector<value_pointer> out_;
    std::vector<held> attributes_;
};

} // namespace tapegraph::io::onnx_import
