#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/tile.hpp>
#include <tapegraph/eager/formula.hpp>
#include <tapegraph/eager/run_formula.hpp>
#include <tapegraph/eager/tape.hpp>
#include <tapegraph/ir/node.hpp>

#include <array>
#include <string_view>

/// An optimizer's update of one variable as a formula of several results: the variable's next value and
/// those of its state. The compiler runs Optimizer::update on nodes, as it does for graph mode.

namespace tapegraph::detail {

inline constexpr int most_states = 6;

/// What an update has asked for and assigned.
struct traced_update {
    ir::trace t;
    list<int> leaves; // the variable, its gradient, its states
    list<int> numbers;
    list<std::string_view> states;
    list<int> targets, values; // of assignments
    bool by_path = false;      // whether it depends on the variable's path

    constexpr int leaf(dtype type, const shape& dims) { return leaves.push_back(t.input("", type, dims)); }
};

/// The slots that it gets.
class update_slots {
public:
    constexpr explicit update_slots(traced_update& u) : u_(&u) {}

    constexpr graph_node state(const graph_node& w, std::string_view name) const {
        int k = 0;
        while (k < u_->states.size() && u_->states[k] != name) ++k;
        if (k == u_->states.size()) {
            u_->states.push_back(name);
            u_->leaf(w.type(), w.shape());
        }
        return {&u_->t, u_->leaves[2 + k]};
    }
    constexpr void assign(const graph_node& target, const auto& value) const {
        u_->targets.push_back(target.id());
        u_->values.push_back(eval(value).id());
    }
    constexpr bool matches(std::string_view) const {
        u_->by_path = true;
        return false;
    }

private:
    traced_update* u_;
};

struct update_trace : formula_trace {
    std::array<std::string_view, most_states> states{};
    int state_count = 0;
    bool one_kernel = false; // otherwise there is nothing but this answer
};

/// The update of variables of this shape.
template <class Optimizer>
constexpr update_trace make_update(dtype type, const shape& dims) {
    update_trace code;
    traced_update u;
    ir::trace& t = u.t;
    for (int k = 0; k < 2; ++k) u.leaf(type, dims);
    const graph_node w(&t, u.leaves[0]), g(&t, u.leaves[1]);
    std::array<graph_node, static_cast<std::size_t>(Optimizer::count)> n;
    for (graph_node& each : n) {
        each = graph_node(&t, t.input("", type, {}, true));
        u.numbers.push_back(each.id());
    }
    Optimizer::update(update_slots(u), w, g, n);

    if (u.by_path || t.error.what != nullptr || u.values.empty() || u.values.size() > most_leaves) return code;
    if (u.states.size() > most_states || u.numbers.size() > most_numbers) return code;
    const auto is_input = [&](int node) { return t.nodes[node].is(ir::descriptor_of<ir::input_op>); };
    const auto is_constant = [&](int node) { return t.nodes[node].is(ir::descriptor_of<ir::constant_op>); };
    for (int i = 0; i < t.nodes.size(); ++i)
        if (t.nodes[i].op->kind != operation_kind::map && !is_input(i) && !is_constant(i)) return code;

    code.leaves = u.leaves.size();
    code.numbers = u.numbers.size();
    code.type = code.domain_type = type;
    for (int k = 0; k < code.leaves; ++k) code.leaf_type[k] = type;
    for (int r = 0; r < u.values.size(); ++r) {
        int leaf = 0;
        while (leaf < code.leaves && u.leaves[leaf] != u.targets[r]) ++leaf;
        for (int before = 0; before < r; ++before)
            if (code.result_leaf[before] == leaf) return code;
        if (leaf == 1 || leaf == code.leaves || t.nodes[u.values[r]].type != type) return code;
        code.result_leaf[code.results++] = leaf;
    }
    ir::region_marks marks;
    const auto is_slot = [&](int node) { return t.nodes[node].op->kind != operation_kind::map; };
    const auto op_index = [&](const ir::operation* op) { return code.index_of(op); };
    const ir::region_code region = ir::encode_region(t, u.values, is_slot, op_index, marks);
    if (region.slots.size() > cpu::most_slots) return code;
    code.append(region);
    for (const int slot : region.slots) {
        int source = -1;
        for (int k = 0; k < code.leaves; ++k)
            if (u.leaves[k] == slot) source = k;
        for (int k = 0; k < code.numbers; ++k)
            if (u.numbers[k] == slot) source = first_number + k;
        if (source < 0) {
            if (code.numbers + code.constants == most_numbers) return code;
            code.constant[code.constants] = std::bit_cast<double>(t.words_of(slot)[0]);
            source = first_number + code.numbers + code.constants++;
        }
        code.forward_sources[code.forward_slots++] = source;
    }
    for (const std::string_view name : u.states) code.states[static_cast<std::size_t>(code.state_count++)] = name;
    code.one_kernel = true;
    return code;
}

/// Whether two updates are the same kernel. Where they are for shapes of every kind, an update does not
/// depend on the shape.
constexpr bool same_update(const update_trace& a, const update_trace& b) {
    if (!a.one_kernel || !b.one_kernel || a.word_count != b.word_count || a.results != b.results ||
        a.forward_slots != b.forward_slots || a.states != b.states || a.constants != b.constants)
        return false;
    bool same = true;
    for (int i = 0; i < a.word_count; ++i) same = same && a.kernel_words[i] == b.kernel_words[i];
    for (int i = 0; i < a.op_count; ++i) same = same && ir::same_operation(a.ops[i], b.ops[i]);
    for (int r = 0; r < a.results; ++r) same = same && a.result_leaf[r] == b.result_leaf[r];
    for (int s = 0; s < a.forward_slots; ++s) same = same && a.forward_sources[s] == b.forward_sources[s];
    for (int k = 0; k < a.constants; ++k) same = same && a.constant[k] == b.constant[k];
    return same;
}

template <class Optimizer>
constexpr update_trace make_update_of_any_shape(dtype type) {
    const update_trace scalar = make_update<Optimizer>(type, {});
    for (const shape& dims : {shape{3}, shape{5, 2}, shape{2, 3, 5}, shape{7, 2, 3, 5}}) {
        if (!scalar.one_kernel) break;
        if (!same_update(scalar, make_update<Optimizer>(type, dims))) return {};
    }
    return scalar;
}

/// The code of an update as a constant.
template <class Optimizer, class T>
struct update_formula {
    static constexpr update_trace value = make_update_of_any_shape<Optimizer>(dtype_of<T>);
    using forward = typename ir::decoded_region<update_formula, 0>::type;

    static constexpr auto words = used_part<value.word_count>(value.kernel_words);
    static constexpr auto ops = used_part<value.op_count>(value.ops);
    static constexpr formula_code code{value, words.data(), ops.data()};
};

/// Whether an optimizer updates a variable, of any shape and path, element by element. One that takes
/// tensors alone, or whose functions are not constexpr, does not.
template <class Optimizer, class T>
inline constexpr bool updates_elementwise = [] {
    using numbers = std::array<graph_node, static_cast<std::size_t>(Optimizer::count)>;
    if constexpr (requires(update_slots slots, const graph_node& w, const numbers& n) {
                      Optimizer::update(slots, w, w, n);
                  })
        if constexpr (requires {
                          typename std::bool_constant<make_update_of_any_shape<Optimizer>(dtype_of<T>).one_kernel>;
                      })
            return update_formula<Optimizer, T>::value.one_kernel;
    return false;
}();

/// An update without its type.
struct update_view {
    formula_view formula;
    std::array<std::string_view, most_states> states;
    int state_count;
};

/// A function, so that the component can have it and its kernel.
template <class Optimizer, class T>
const update_view& update_of() {
    using f = update_formula<Optimizer, T>;
    static constexpr update_view view{{&f::code,
                                       &cpu::evaluate_merged_tile<typename f::forward>,
                                       nullptr,
                                       runtime::map_on_device<typename f::forward>(),
                                       {},
                                       {},
                                       false,
                                       {},
                                       nullptr},
                                      f::value.states,
                                      f::value.state_count};
    return view;
}

/// Runs an update. Leaves are the variable, its gradient and its states. `in_place` writes the results into
/// their memory or, where other tensors share it, gives them other memory; otherwise result r is put into
/// results[r], for leaf result_leaf[r].
void run_update(const update_view& u, any_tensor* const* leaves, const double* numbers, bool in_place,
                any_tensor* results);

#if TG_DEFINES_FOR_HOST(eager)

TG_DEFINITION void run_update(const update_view& u, any_tensor* const* leaves, const double* numbers, bool in_place,
                              any_tensor* results) {
    const formula_code& code = *u.formula.code;
    const ir::region_view region = code.value_region();
    partial_array<buffer_view, most_leaves + most_numbers> in(code.forward_slots);
    partial_array<buffer_view, most_leaves> out(code.results);
    number_slot scalars[most_numbers];
    for (int r = 0; r < code.results; ++r) {
        any_tensor& target = *leaves[code.result_leaf[r]];
        if (in_place && !target.shared() && !tape_storage::instance().knows(target.tape_index())) {
            out[r] = target.write_on(runtime::current_runtime());
        } else {
            results[r] = any_tensor(target.type(), target.shape());
            out[r] = results[r].view();
        }
    }
    for (int s = 0; s < code.forward_slots; ++s) {
        const int source = code.forward_sources[s], k = source - first_number;
        if (k < 0) {
            in[s] = leaves[source]->view();
            continue;
        }
        in[s].type = region.slot_type(s);
        scalars[k].set(k < code.numbers ? numbers[k] : code.constant[k - code.numbers], in[s].type);
        in[s].data = scalars[k].bytes;
    }
    kernel_call call;
    call.in = in.data();
    call.inputs = code.forward_slots;
    call.out = out.data();
    call.outputs = code.results;
    call.domain = out[0];
    run_forward(u.formula, call);
    for (int r = 0; r < code.results; ++r) {
        if (!results[r].has_storage()) continue;
        const int at = region.result(r) - region.slots();
        check_finite(at < 0 ? "copy" : code.ops[region.instruction(at).op]->name, results[r], {});
        if (in_place) *leaves[code.result_leaf[r]] = std::move(results[r]);
    }
}

#endif

} // namespace tapegraph::detail
