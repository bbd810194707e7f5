#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/graph/lower.hpp>
#include <tapegraph/ir/text.hpp>

#include <span>
#include <string>
#include <vector>

/// Requirements of a trace on its inputs: element types, extents, and conditions of its operations
/// that could not be decided before extents were known. Programs check them when extents are bound,
/// and eager mode before it runs, so both refuse the same inputs with the same messages.

namespace tapegraph::ir {

namespace detail {
template <class Entry>
std::string input_text(const Entry& input) {
    return "input '" + std::string(input.name) + "'";
}
} // namespace detail

/// Checks element type and rank of input `index`. Throws dtype_error or shape_error.
template <class View>
void check_input_kind(const View& view, int index, const buffer_view& value) {
    const auto& input = view.inputs[index];
    const auto& e = view.nodes[input.node];
    if (value.type != e.type)
        throw dtype_error(detail::input_text(input) + " is " + name_of(e.type) + ", fed with " + name_of(value.type));
    if (value.rank != e.rank)
        throw shape_error(detail::input_text(input) + " has shape " +
                          to_string(shape(e.rank, view.pool.begin() + e.dims)) + ", fed with " +
                          to_string(shape(value.rank, value.extents)));
}

/// An extent of an input that the trace fixes.
template <class Entry>
void check_input_extent(const Entry& input, int axis, std::int64_t given, std::int64_t expected) {
    if (given != expected)
        throw shape_error(detail::input_text(input) + ": extent of axis " + std::to_string(axis) + " is " +
                          std::to_string(given) + ", expected " + std::to_string(expected));
}

/// Binds symbols to extents of input `index` (-1: not known yet), and checks its other extents.
template <class View, class Symbols>
void bind_input_extents(const View& view, const extent_table& table, int index, const std::int64_t* extents,
                        Symbols& symbols) {
    const auto& input = view.inputs[index];
    const auto& e = view.nodes[input.node];
    for (int axis = 0; axis < e.rank; ++axis) {
        const std::int64_t size = view.pool[e.dims + axis];
        if (!is_symbolic(size)) {
            check_input_extent(input, axis, extents[axis], size);
            continue;
        }
        const int atom = table.symbol_of(size);
        if (atom < 0) continue;
        std::int64_t& value = symbols[static_cast<std::size_t>(atom)];
        if (value >= 0 && value != extents[axis])
            throw shape_error(detail::input_text(input) + ": extent of axis " + std::to_string(axis) + " is " +
                              std::to_string(extents[axis]) + ", but another input has " + std::to_string(value) +
                              " there");
        value = extents[axis];
    }
}

/// Checks the conditions of operations on extents. `value_of(atom)` is the number that a symbol
/// stands for; it is negative where no input gives it, in a program of some of a session's fetches,
/// which does not check inputs that only others need.
template <class View, class ValueOf>
void check_requirements(const View& view, const extent_table& table, const ValueOf& value_of) {
    for (const extent_table::requirement& r : view.requirements) {
        bool given = true;
        const auto seen = [&](int atom) {
            const std::int64_t value = value_of(atom);
            given = given && value >= 0;
            return value;
        };
        const std::int64_t left = table.evaluate(r.left, seen), right = table.evaluate(r.right, seen);
        if (!given) continue;
        if (r.at_least_for != nullptr ? left < right : left != right)
            throw shape_error(detail::unmet_requirement(view, table, r, left, right));
    }
}

/// The same for callers without a program: a stage's trace and the requirements on its first
/// inputs.
class input_rules {
public:
    explicit input_rules(const program_view& view);

    /// Throws dtype_error or shape_error for inputs that a program of this trace would refuse.
    /// `values` are those of its inputs that are not parameters, in their order.
    void check(std::span<const buffer_view> values) const;

private:
    template <class F>
    void each(std::span<const buffer_view> values, const F& f) const {
        int index = 0;
        for (const buffer_view& value : values) {
            while (view_.inputs[index].scalar_parameter) ++index;
            f(index++, value);
        }
    }

    program_view view_;
    extent_table table_;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION input_rules::input_rules(const program_view& view) : view_(view) {
    for (const auto& atom : view.atoms) table_.atoms.push_back(atom);
    for (const auto& monomial : view.monomials) table_.monomials.push_back(monomial);
    for (const auto& polynomial : view.polynomials) table_.polynomials.push_back(polynomial);
}

TG_DEFINITION void input_rules::check(std::span<const buffer_view> values) const {
    each(values, [&](int index, const buffer_view& value) { check_input_kind(view_, index, value); });
    std::vector<std::int64_t> symbols(static_cast<std::size_t>(view_.atoms.size()), -1);
    each(values, [&](int index, const buffer_view& value) {
        bind_input_extents(view_, table_, index, value.extents, symbols);
    });
    const auto value_of = [&](int atom) { return symbols[static_cast<std::size_t>(atom)]; };
    check_requirements(view_, table_, value_of);
    each(values, [&](int index, const buffer_view& value) {
        const input_entry& input = view_.inputs[index];
        const entry& e = view_.nodes[input.node];
        for (int axis = 0; axis < e.rank; ++axis)
            check_input_extent(input, axis, value.extents[axis], table_.evaluate(view_.pool[e.dims + axis], value_of));
    });
}

#endif

} // namespace tapegraph::ir
