#pragma once

#include <tapegraph/ir/node.hpp>
#include <tapegraph/runtime/interpreted_kernels.hpp>

#include <atomic>
#include <cstdint>
#include <string_view>

/// Maps an operation and an element type to the functions that compute it, for graphs made at run
/// time.

namespace tapegraph::ir {

struct program_view;
struct scan_table;

/// The functions of an operation for one element type; those that do not apply are null.
struct registered_kernel {
    cpu::tile_function instruction = nullptr; ///< elementwise: a region of the operation alone
    runtime::kernel_pair kernel;              ///< not elementwise; of a reduction: of an operand in memory
    runtime::kernel_functions fused{};        ///< of a reduction: of what an interpreted region produces
    /// For a scan: traces the step of one of its nodes, for which a kernel is made.
    void (*trace_step)(const program_view& outer, int node, trace& t, scan_table& slots) = nullptr;
};

class region_key;

/// An operation that is in no list: its kernels register when a graph first requests them.
class waiting_registration {
public:
    constexpr waiting_registration(const operation* op, int variant, void (*function)())
        : op_(op), variant_(variant), run_(function) {}

    /// Called before main(), by each source that instantiates the operation.
    void enlist() {
        if (listed_.exchange(true)) return;
        next_ = first_.load();
        while (!first_.compare_exchange_weak(next_, this)) {}
    }
    /// Registers the kernels of an operation; returns false if no source has enlisted it.
    static bool run(const operation* op) {
        for (const waiting_registration* each = first_.load(); each != nullptr; each = each->next_)
            if (each->op_ == op) return each->run_(), true;
        return false;
    }
    /// The operation that was enlisted with this name and variant (graph/operation_names.hpp); null
    /// if none was, or several.
    static const operation* named(std::string_view name, int variant) {
        const operation* found = nullptr;
        for (const waiting_registration* each = first_.load(); each != nullptr; each = each->next_)
            if (each->op_->name == name && each->variant_ == variant) {
                if (found != nullptr) return nullptr;
                found = each->op_;
            }
        return found;
    }
    static int variant_of(const operation* op) {
        for (const waiting_registration* each = first_.load(); each != nullptr; each = each->next_)
            if (each->op_ == op) return each->variant_;
        return 0;
    }

private:
    const operation* op_;
    int variant_;
    void (*run_)();
    std::atomic<bool> listed_{false};
    waiting_registration* next_ = nullptr;
    static std::atomic<waiting_registration*> first_;
};
inline constinit std::atomic<waiting_registration*> waiting_registration::first_{nullptr};

/// Holds all registered kernels: those of the library's operations from the first lookup on, and
/// those that users register (register_kernels). Safe from several threads.
class kernel_registry {
public:
    /// Defined in graph/library_kernels.hpp.
    static kernel_registry& instance();

    void add(const operation* op, dtype type, const registered_kernel& k);
    /// Adds a region that is compiled as a whole: by evaluate_tile for one result, by
    /// evaluate_merged_tile for several.
    void add(const region_key& code, cpu::tile_function whole);
    cpu::tile_function find(const region_key& code) const;

    /// The operation of this name that has registered kernels; null if there is none, or several.
    const operation* named(std::string_view name) const;

    /// Returns null where there is none. `type` is that of the operands that are not conditions.
    /// The pointer stays valid.
    const registered_kernel* find(const operation* op, dtype type) const;

private:
    struct tables;
    kernel_registry();
    ~kernel_registry();
    tables& tables_; // defined in graph/library_kernels.hpp: programs that link the component read no hash tables
};

namespace detail {

/// The region of a single elementwise operation.
template <class Op, class T, class = std::make_integer_sequence<int, Op::arity>>
struct lone_instruction;
template <class Op, class T, int... I>
struct lone_instruction<Op, T, std::integer_sequence<int, I...>> {
    using type = region<slots<(I < Op::condition_operands ? dtype::boolean : dtype_of<T>)...>, results<Op::arity>,
                        instruction<Op, Op::result_type(dtype_of<T>), I...>>;
};

template <class Op, class T>
void register_kernel(kernel_registry& to) {
    static_assert(operation_binding<Op>::bound);
    registered_kernel k;
    if constexpr (Op::kind == operation_kind::map) {
        k.instruction = &cpu::evaluate_tile<typename lone_instruction<Op, T>::type>;
    } else if constexpr (Op::kind == operation_kind::reduce) {
        using in_memory = runtime::reduction_kernel<Op, region<slots<dtype_of<T>>, results<0>>, T>;
        using produced = runtime::reduction_kernel<Op, cpu::any_region, T>;
        k.kernel = {{&in_memory::run, &in_memory::workspace}, {}};
        k.fused = {&produced::run, &produced::workspace};
    } else {
        k.kernel = runtime::kernel_for<Op, T>();
    }
    to.add(&descriptor_of<Op>, dtype_of<T>, k);
}

/// The type under which an operation is registered whose nodes have kernels of their own.
inline constexpr dtype type_of_all = dtype::f32;

/// Whether an operation registers its kernels where it is used: custom operations do, effects with
/// their labels, and operations that declare it because there are too many of them to list.
template <class Op>
constexpr bool registers_where_used() {
    if constexpr (requires { Op::registers_where_used; })
        return true;
    else
        return Op::kind == operation_kind::effect || std::is_base_of_v<custom_op<Op::arity>, Op>;
}

template <class Op, class T>
void register_where_defined(kernel_registry& to) {
    if constexpr (runtime::has_kernel<Op, T>) register_kernel<Op, T>(to);
}

/// Registers operations that are in no list: for float and double where they have a kernel, effects
/// for all types.
template <class Op>
void register_where_used() {
    if constexpr (has_per_node_kernel<Op>()) { // of all types at once
        registered_kernel k;
        if constexpr (requires { Op::any_kernel(); })
            k.kernel = Op::any_kernel();
        else
            k.trace_step = &Op::trace_step;
        kernel_registry::instance().add(&descriptor_of<Op>, type_of_all, k);
    } else if constexpr (registers_where_used<Op>()) {
        kernel_registry& to = kernel_registry::instance();
        register_where_defined<Op, float>(to);
        register_where_defined<Op, double>(to);
        if constexpr (Op::kind == operation_kind::effect) {
            const auto others = [&to]<class T>(std::type_identity<T>) {
                if constexpr (!std::is_floating_point_v<T>) register_kernel<Op, T>(to);
            };
            common_types::each(others);
        }
    }
}

} // namespace detail

template <class Op>
struct kernel_registration {
    /// Tells operations of one name apart (graph/operation_names.hpp).
    static constexpr int variant() {
        if constexpr (requires { Op::variant; })
            return Op::variant;
        else
            return 0;
    }
    static constexpr bool wanted() { return detail::has_per_node_kernel<Op>() || detail::registers_where_used<Op>(); }
    static inline constinit waiting_registration waiting{&descriptor_of<Op>, variant(),
                                                         &detail::register_where_used<Op>};
    // Early, because programs may make graphs for objects that are initialized before main().
    [[gnu::constructor(200)]] static void enlist() { waiting.enlist(); }
};

} // namespace tapegraph::ir

namespace tapegraph {

/// Registers a custom operation for element types other than float and double, whose kernels are
/// found without it, so that graphs made at run time can use it: `tg::register_kernels<my_op,
/// std::int32_t>()`, once, before the first such graph. An elementwise one that load_onnx is to find
/// by its name in a file of save_program is registered for any type.
template <class Op, class... T>
void register_kernels() {
    (ir::detail::register_kernel<Op, T>(ir::kernel_registry::instance()), ...);
}

} // namespace tapegraph
