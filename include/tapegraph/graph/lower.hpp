#pragma once

#include <tapegraph/graph/freeze.hpp>
#include <tapegraph/ir/region_view.hpp>
#include <tapegraph/ops/kernels.hpp>
#include <tapegraph/runtime/several_reductions.hpp>

#include <utility>

/// Lowering: turns the schedule's kernels into functions. Regions are decoded into types; equal
/// ones share a function.

namespace tapegraph::ir {

static_assert(most_region_slots <= cpu::most_slots && most_region_results <= cpu::most_results &&
              most_sums <= cpu::most_reduced);

namespace detail {

// The kernels of a region. Matching it by a partial specialisation gives it a name of its own: nvcc
// writes the name by which a kernel's type was reached into the host code, and the stage's name may
// contain a lambda, which has none.
template <class Region>
struct kernels_of_region;
template <class Slots, class Results, class... Instructions>
struct kernels_of_region<region<Slots, Results, Instructions...>> {
    using decoded = region<Slots, Results, Instructions...>;
    static constexpr runtime::kernel_pair map() { return runtime::map_kernel_for<decoded>(); }
    template <class Op, class T>
    static constexpr runtime::kernel_pair reduction() {
        return runtime::reduction_kernel_for<Op, decoded, T>();
    }
    template <class Op, int Reduced, class T>
    static constexpr runtime::kernel_pair sums() {
        using kernel = runtime::several_kernel<decoded, Reduced, T>;
        if constexpr (Results::count == 1)
            return {{&kernel::run, &kernel::workspace}, runtime::reduction_on_device<Op, decoded, T>()};
        else
            return {{&kernel::run, &kernel::workspace}, {}};
    }
};

template <class Stage, int K>
constexpr runtime::kernel_pair kernel_at() {
    constexpr kernel_entry k = Stage::value.kernels[K];
    if constexpr (k.kind == static_cast<int>(kernel_kind::operation)) {
        using op = operation_type<Stage::value.ops[k.op]>;
        if constexpr (k.words > 0)
            return op::template kernel_of<Stage, Stage::value.kernel_words[k.first_word]>();
        else
            return runtime::kernel_for<op, element_t<static_cast<dtype>(k.type)>>();
    } else {
        using kernels = kernels_of_region<typename decoded_region<Stage, k.first_word>::type>;
        if constexpr (k.kind == static_cast<int>(kernel_kind::region)) {
            return kernels::map();
        } else {
            using op = operation_type<Stage::value.ops[k.op]>;
            if constexpr (k.kind == static_cast<int>(kernel_kind::sums))
                return kernels::template sums<op, reductions_of(k, Stage::value.kernel_words.begin()),
                                              element_t<static_cast<dtype>(k.type)>>();
            else
                return kernels::template reduction<op, element_t<static_cast<dtype>(k.type)>>();
        }
    }
}

template <class Stage, int... K>
constexpr auto kernel_table(std::integer_sequence<int, K...>) {
    return frozen_list<runtime::kernel_pair, sizeof...(K)>{{kernel_at<Stage, K>()...}};
}

} // namespace detail

/// A pointer and a count: a frozen list as run-time code sees it.
template <class T>
struct constant_span {
    const T* data = nullptr;
    int count = 0;

    constexpr const T& operator[](int i) const { return data[i]; }
    constexpr const T* begin() const { return data; }
    constexpr const T* end() const { return data + count; }
    constexpr int size() const { return count; }
};

/// A view of a frozen program that does not depend on the program's type, so that the code that
/// runs programs is compiled once.
struct program_view {
#define TG_MEMBER(type, list, name, most) constant_span<type> name;
    TG_GRAPH_LISTS(TG_MEMBER)
    TG_SCHEDULE_LISTS(TG_MEMBER)
#undef TG_MEMBER
    constant_span<runtime::kernel_pair> functions;
    /// For each kernel the region that it interprets, or null; empty where the compiler has lowered
    /// all kernels.
    constant_span<const cpu::interpreted_region*> interpreted;

    constexpr region_view region_of(const kernel_entry& kernel) const { return {&kernel_words[kernel.first_word]}; }
};

/// The same of a traced model, with its record.
struct model_view : program_view {
#define TG_MEMBER(type, list, name, most) constant_span<type> name;
    TG_MODEL_LISTS(TG_MEMBER)
#undef TG_MEMBER
};

/// The lists of a stage, without kernels. Those of the record are empty after the passes.
template <class Stage>
constexpr model_view stage_view() {
    model_view v;
#define TG_MEMBER(type, list, name, most) v.name = {Stage::value.name.at, Stage::value.used.name};
    TG_FROZEN_LISTS(TG_MEMBER)
#undef TG_MEMBER
    return v;
}

/// Whether a program owns a variable of an element type.
constexpr bool has_variable_of(const program_view& view, dtype type) {
    for (const variable_entry& v : view.variables)
        if (view.nodes[v.node].type == type) return true;
    return false;
}

/// The task that scope.with_device named for a variable, or for an optimizer's state of it; empty
/// where it named none.
constexpr std::string_view task_of_variable(const model_view& view, int variable) {
    const std::string_view holder = view.definitions[variable].task;
    const int number = view.nodes[view.variables[variable].node].task;
    return holder.empty() && number > 0 ? view.tasks[number - 1] : holder;
}

/// The kernels of a stage, and the view of its program.
template <class Stage>
struct lowered {
    static constexpr auto functions =
        detail::kernel_table<Stage>(std::make_integer_sequence<int, Stage::value.kernels.size()>{});

    static constexpr program_view make() {
        program_view v = stage_view<Stage>();
        v.functions = {functions.at, functions.size()};
        return v;
    }
    static constexpr program_view view = make();
};

} // namespace tapegraph::ir
