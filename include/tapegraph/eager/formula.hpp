#pragma once

#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/ir/eliminate.hpp>
#include <tapegraph/ir/gradient.hpp>
#include <tapegraph/ir/region_code.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <array>
#include <cstddef>

/// The code of a sealed formula. At compile time the functions that differentiate graphs trace and
/// differentiate the formula's type. The result is two regions, one for the value and one for the
/// adjoints of all leaves.

namespace tapegraph::detail {

inline constexpr int most_leaves = 12;
inline constexpr int most_numbers = 16;

/// The source of an operand of the adjoint region: leaf k is k, number k is first_number + k.
enum source_code : int { first_number = 100, from_output = 200, from_adjoint = 201 };

/// Shapes are unknown here: everything is traced as a scalar, and the drivers do the broadcasting.
struct formula_facts {
    int forward = 0, backward = 0; // first words
    int leaves = 0, numbers = 0;
    int forward_sources[most_leaves + most_numbers]{}, forward_slots = 0;
    int sources[most_leaves + most_numbers + 2]{}, slots = 0;
    int result_leaf[most_leaves]{}, results = 0; // the leaf of each result of the backward region
    double constant[most_numbers]{};             // numbers that only the derivative has, after the formula's own
    int constants = 0;
    dtype leaf_type[most_leaves]{};
    dtype type = dtype::f32;        // type of the value
    dtype domain_type = dtype::f32; // type of the values over the index space (the reduction's operand)
    const char* error = nullptr;
    bool too_long = false;
    bool reduced = false; // `error` comes from the reduction
};

/// The result of tracing, at compile time.
struct formula_trace : formula_facts {
    int kernel_words[4096]{}; // the value's region, followed by that of the adjoints
    const ir::operation* ops[64]{};
    int word_count = 0, op_count = 0;

    constexpr int index_of(const ir::operation* op) {
        for (int i = 0; i < op_count; ++i)
            if (ir::same_operation(ops[i], op)) return i;
        ops[op_count] = op;
        return op_count++;
    }
    /// Appends a region and returns its first word.
    constexpr int append(const ir::region_code& r) {
        const int first = word_count;
        for (int word : r.words) kernel_words[word_count++] = word;
        return first;
    }
};

/// The part of it that the program contains.
struct formula_code : formula_facts {
    const int* kernel_words;
    const ir::operation* const* ops;

    constexpr formula_code(const formula_facts& facts, const int* words, const ir::operation* const* operations)
        : formula_facts(facts), kernel_words(words), ops(operations) {}
    constexpr ir::region_view value_region() const { return {kernel_words + forward}; }
    constexpr ir::region_view adjoint_region() const { return {kernel_words + backward}; }
};

/// Appends the nodes of a formula of which only the type is given. Leaves and numbers become
/// inputs, because their values are not part of the type.
struct formula_tracer {
    ir::trace& t;
    list<int> leaves{}, numbers{};

    template <class Leaf>
    constexpr int leaf(formula_type<Leaf>) {
        const int id = t.input("", dtype_of<typename Leaf::element_type>, {});
        leaves.push_back(id);
        return id;
    }
    template <class Op>
    constexpr int number_of(formula_type<number>, int k, const int* ids, int count) {
        const int id = t.input("", ir::operand_type<Op>(t, k, ids, count), {}, true);
        numbers.push_back(id);
        return id;
    }
    template <class Op>
    constexpr int operation(const int* ids, int count) {
        return ir::node_writer{t}.operation<Op>(ids, count);
    }
};

/// Traces formula E, under reduction Reduce when that is not void, differentiates it and encodes both regions.
template <class E, class Reduce>
constexpr formula_trace make_formula() {
    formula_trace code;
    ir::trace t;
    formula_tracer tracer{t};
    const int domain = walk_formula(tracer, formula_type<E>{});
    code.leaves = tracer.leaves.size();
    code.numbers = tracer.numbers.size();
    if (code.leaves > most_leaves || code.numbers > most_numbers) {
        code.error = "a formula may have at most 12 tensors and 16 numbers: seal a part of it";
        code.too_long = true;
        return code;
    }
    for (int i = 0; i < code.leaves; ++i) code.leaf_type[i] = t.nodes[tracer.leaves[i]].type;
    int last = domain;
    if constexpr (!std::is_void_v<Reduce>) {
        static_assert(ir::operation_binding<Reduce>::bound);
        const std::int64_t words[2]{0, 1};
        last = t.invoke(ir::descriptor_of<Reduce>, words, nullptr, &domain, 1);
    }
    const int group = t.groups++;
    for (int i = 0; i <= last; ++i)
        if (t.nodes[i].op->kind != operation_kind::leaf) t.nodes[i].group = group;
    code.type = t.nodes[last].type;
    code.domain_type = t.nodes[domain].type;
    code.error = t.error.what;
    code.reduced = last != domain && t.error.operation.empty();
    if (code.error != nullptr) return code;

    const auto op_index = [&](const ir::operation* op) { return code.index_of(op); };
    const auto source_of = [&](int node, int output, int adjoint) {
        if (node == adjoint) return static_cast<int>(from_adjoint);
        if (node == output) return static_cast<int>(from_output);
        for (int i = 0; i < code.leaves; ++i)
            if (tracer.leaves[i] == node) return i;
        for (int i = 0; i < code.numbers; ++i)
            if (tracer.numbers[i] == node) return first_number + i;
        return -1;
    };
    const auto is_input = [&](int node) { return t.nodes[node].is(ir::descriptor_of<ir::input_op>); };
    ir::region_marks marks;
    list<int> roots;
    roots.push_back(domain);
    const ir::region_code value = ir::encode_region(t, roots, is_input, op_index, marks);
    code.forward = code.append(value);
    for (int slot : value.slots) code.forward_sources[code.forward_slots++] = source_of(slot, -1, -1);

    if (!ir::detail::is_floating(code.type)) return code;
    const int output = t.input("", code.type, {}), adjoint = t.input("", code.type, {});
    const auto wanted = [&](int node) { return is_input(node) && ir::detail::is_floating(t.nodes[node].type); };
    list<ir::contribution> flows = ir::differentiate_group(t, last, output, adjoint, wanted);
    list<int> targets;
    for (const ir::contribution& c : flows) {
        const int leaf = source_of(c.leaf, -1, -1);
        if (leaf < 0 || leaf >= first_number) continue;
        code.result_leaf[code.results++] = leaf;
        targets.push_back(c.adjoint);
    }
    if (code.results == 0) return code;
    // Merges common subexpressions of the adjoints. Numbers that derivatives introduce become slots
    // like all numbers.
    for (int k = 0; k < targets.size(); ++k) t.outputs.push_back({"", targets[k]});
    ir::eliminate_common_subexpressions(t);
    for (int k = 0; k < targets.size(); ++k) targets[k] = t.outputs[k].node;
    const auto is_slot = [&](int node) { return t.nodes[node].op->kind == operation_kind::leaf; };
    const ir::region_code back = ir::encode_region(t, targets, is_slot, op_index, marks);
    code.backward = code.append(back);
    for (int slot : back.slots) {
        int source = source_of(slot, output, adjoint);
        if (source < 0) { // a constant of the derivative, kept as a further number
            if (code.numbers + code.constants >= most_numbers) {
                code.error = "a formula has too many numbers: seal a part of it";
                code.too_long = true;
                return code;
            }
            code.constant[code.constants] = std::bit_cast<double>(t.words_of(slot)[0]);
            source = first_number + code.numbers + code.constants++;
        }
        code.sources[code.slots++] = source;
    }
    return code;
}

/// An array trimmed to the used length: the program contains this, and not the trace.
template <int Count, class T>
constexpr auto used_part(const T* from) {
    std::array<T, Count + 1> result{};
    for (int i = 0; i < Count; ++i) result[static_cast<std::size_t>(i)] = from[i];
    return result;
}

/// The code of a formula as a constant, in the form that decoded_region reads.
template <class E, class Reduce>
struct formula {
    static constexpr formula_trace value = make_formula<E, Reduce>();
    static_assert(!value.too_long || always_false<E>,
                  "a formula may have at most 12 tensors and 16 numbers: seal a part of it with tg::eval");
    static_assert(
        value.error == nullptr || !value.reduced || always_false<E>,
        "this reduction does not take elements of this type: sum and prod add and multiply numbers, max and min "
        "order them, any and all need bool; cast<...>() converts");
    static_assert(value.error == nullptr || value.too_long || value.reduced || always_false<E>,
                  "the operands of this formula do not fit: element types differ; cast<...>() makes them equal");
    using forward = typename ir::decoded_region<formula, value.forward>::type;
    using backward = typename ir::decoded_region<formula, value.backward>::type;

    static constexpr auto words = used_part<value.word_count>(value.kernel_words);
    static constexpr auto ops = used_part<value.op_count>(value.ops);
    static constexpr formula_code code{value, words.data(), ops.data()};
};

/// The facts about a formula that run-time code needs, without its type.
struct formula_view {
    const formula_code* code;
    cpu::tile_function forward, backward;
    runtime::kernel_functions forward_on_device, backward_on_device;
    /// Sums over axes on a device, for leaves that were broadcast: a result of `backward` or, where
    /// `sums_tensor`, a tensor that holds it.
    runtime::kernel_functions sum_on_device;
    bool sums_tensor;
    runtime::kernel_pair reduce; // with the producer fused in; null for formulas without a reduction
    const ir::operation* reduction;
};

/// Whether `sum_on_device` sums a tensor in memory instead of a result of the backward region. Only
/// broadcast_to broadcasts a single leaf, and its derivative passes the adjoint on unchanged. In a
/// reduction of a single leaf only tangents are ever summed. That is rare, so they are written to
/// memory first, which saves a kernel for each such formula.
template <class F, class Reduce>
inline constexpr bool sums_tensor = F::value.leaves == 1 && !std::is_void_v<Reduce>;

template <class F, class Reduce, class Backend = runtime::backend>
constexpr runtime::kernel_functions sum_on_device_for() {
    if constexpr (sums_tensor<F, Reduce>)
        return Backend::template result_sum<region<slots<F::value.leaf_type[0]>, results<0>>>();
    else if constexpr (F::value.leaves > 1 || runtime::reads_in_place<typename F::backward>)
        return Backend::template result_sum<typename F::backward>();
    else
        return {};
}

template <class E, class Reduce>
constexpr formula_view make_formula_view() {
    using f = formula<E, Reduce>;
    formula_view v{&f::code, &cpu::evaluate_tile<typename f::forward>, nullptr, {}, {}, {}, false, {}, nullptr};
    v.forward_on_device = runtime::map_on_device<typename f::forward>();
    if constexpr (f::value.results > 0) {
        v.backward = &cpu::evaluate_tile<typename f::backward>;
        v.backward_on_device = runtime::map_on_device<typename f::backward>();
        v.sums_tensor = sums_tensor<f, Reduce>;
        v.sum_on_device = sum_on_device_for<f, Reduce>();
    }
    if constexpr (!std::is_void_v<Reduce>) {
        v.reduce = runtime::reduction_kernel_for<Reduce, typename f::forward, element_t<f::value.type>>();
        v.reduction = &ir::descriptor_of<Reduce>;
    }
    return v;
}

template <class E, class Reduce = void>
inline constexpr formula_view formula_of = make_formula_view<E, Reduce>();

/// The leaves and numbers of a formula, in the order in which formula_tracer visited them.
struct formula_values {
    const any_tensor* leaves[most_leaves];
    double numbers[most_numbers];
    int leaf_count = 0, number_count = 0;

    template <class E>
    void collect(const E& e) {
        walk_formula(*this, e);
    }

    int leaf(const any_tensor& t) {
        leaves[leaf_count++] = &t;
        return 0;
    }
    template <class Op>
    int number_of(const number& n, int, const int*, int) {
        numbers[number_count++] = n.value;
        return 0;
    }
    template <class Op>
    int operation(const int*, int) {
        return 0;
    }
};

} // namespace tapegraph::detail
