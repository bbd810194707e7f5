#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/graph/kernel_registry.hpp>
#include <tapegraph/graph/region_key.hpp>
#include <tapegraph/ops/compiled_regions.hpp>
#include <tapegraph/ops/kernels.hpp>
#include <tapegraph/ops/operation_list.hpp>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

/// Registers the library's operations (ops/operation_list.hpp) for graphs that are made at run
/// time.

namespace tapegraph::ir {

namespace detail {

template <class Op, class... T>
void register_for(kernel_registry& to, element_types<T...>) {
    (register_kernel<Op, T>(to), ...);
}
/// Registers elementwise operations: for floating types, and for integers where they may be
/// operands.
template <class Op>
void register_elementwise(kernel_registry& to) {
    register_for<Op>(to, floating_types{});
    if constexpr (Op::integers) register_for<Op>(to, element_types<std::int32_t, std::int64_t, std::uint8_t>{});
}

/// Registers a compiled region as it occurs in schedules: several results are computed at once.
template <bool Merged, class Region>
void register_region(kernel_registry& to) {
    const auto results_of = []<class Slots, int... R, class... I>(region<Slots, results<R...>, I...>*) {
        return static_cast<int>(sizeof...(R));
    };
    constexpr int count = results_of(static_cast<Region*>(nullptr));
    if constexpr (Merged)
        to.add(region_key(Region{}), &cpu::evaluate_merged_tile<Region>);
    else if constexpr (count == 1)
        to.add(region_key(Region{}), &cpu::evaluate_tile<Region>);
}

} // namespace detail

/// The elementwise operations, one instruction each. These are templates, so that only programs
/// that make graphs at run time compile them.
void add_library_instructions(kernel_registry& to);

/// Registers reductions and all other operations.
void add_library_kernels(kernel_registry& to);

#if TG_DEFINES(registry)
struct kernel_registry::tables {
    struct key {
        const operation* op;
        dtype type;
        bool operator==(const key&) const = default;
    };
    struct hash_of_key {
        std::size_t operator()(const key& k) const {
            return reinterpret_cast<std::uintptr_t>(k.op) / alignof(operation) * 31 + static_cast<std::size_t>(k.type);
        }
    };
    struct hash_of_region {
        std::size_t operator()(const region_key& k) const { return k.hash(); }
    };
    std::shared_mutex mutex;
    std::unordered_map<region_key, cpu::tile_function, hash_of_region> regions;
    std::unordered_map<key, registered_kernel, hash_of_key> kernels; // its elements have stable addresses

    const registered_kernel* look_up(const operation* op, dtype type) {
        const std::shared_lock lock(mutex);
        const auto found = kernels.find({op, type});
        return found == kernels.end() ? nullptr : &found->second;
    }
};

TG_DEFINITION kernel_registry::kernel_registry() : tables_(*new tables) {}
TG_DEFINITION kernel_registry::~kernel_registry() { delete &tables_; }

TG_DEFINITION void kernel_registry::add(const operation* op, dtype type, const registered_kernel& k) {
    const std::unique_lock lock(tables_.mutex);
    tables_.kernels[{op, type}] = k;
}
TG_DEFINITION void kernel_registry::add(const region_key& code, cpu::tile_function whole) {
    const std::unique_lock lock(tables_.mutex);
    tables_.regions[code] = whole;
}
TG_DEFINITION cpu::tile_function kernel_registry::find(const region_key& code) const {
    const std::shared_lock lock(tables_.mutex);
    const auto found = tables_.regions.find(code);
    return found == tables_.regions.end() ? nullptr : found->second;
}
TG_DEFINITION const operation* kernel_registry::named(std::string_view name) const {
    const std::shared_lock lock(tables_.mutex);
    const operation* found = nullptr;
    for (const auto& [registered, kernel] : tables_.kernels) {
        if (registered.op->name != name || registered.op == found) continue;
        if (found != nullptr) return nullptr;
        found = registered.op;
    }
    return found;
}
TG_DEFINITION const registered_kernel* kernel_registry::find(const operation* op, dtype type) const {
    const registered_kernel* found = tables_.look_up(op, type);
    return found == nullptr && waiting_registration::run(op) ? tables_.look_up(op, type) : found;
}

TG_DEFINITION kernel_registry& kernel_registry::instance() {
    static kernel_registry registry;
    static std::once_flag filled;
    std::call_once(filled, [] {
        add_library_instructions(registry);
        add_library_kernels(registry);
    });
    return registry;
}
#endif

#if TG_DEFINES(instructions)

TG_DEFINITION void add_library_instructions(kernel_registry& to) {
    using namespace runtime;
#define TG_INSTRUCTION(...) detail::register_elementwise<__VA_ARGS__>(to);
    TG_ELEMENTWISE_OPERATIONS(TG_INSTRUCTION)
#undef TG_INSTRUCTION
#define TG_INSTRUCTION(types, ...) detail::register_for<__VA_ARGS__>(to, types{});
    TG_TYPED_ELEMENTWISE_OPERATIONS(TG_INSTRUCTION)
#undef TG_INSTRUCTION
#ifdef TG_COMPONENT // the component holds them compiled
    using namespace cpu;
#define TG_REGION(...) detail::register_region<false, region<__VA_ARGS__>>(to);
#define TG_MERGED_REGION(...) detail::register_region<true, region<__VA_ARGS__>>(to);
    TG_COMPILED_REGIONS(TG_REGION, TG_MERGED_REGION)
#undef TG_REGION
#undef TG_MERGED_REGION
#endif
}

#endif

#if TG_DEFINES(registry)

TG_DEFINITION void add_library_kernels(kernel_registry& to) {
    using namespace runtime;
#define TG_REDUCTION(types, device_types, ...) detail::register_for<__VA_ARGS__>(to, types{});
    TG_FORMULA_REDUCTIONS(TG_REDUCTION)
#undef TG_REDUCTION
#define TG_REDUCTION(types, device_types, sealed_types, tensors, ...) detail::register_for<__VA_ARGS__>(to, types{});
    TG_WHOLE_REDUCTIONS(TG_REDUCTION)
#undef TG_REDUCTION
#define TG_KERNELS(part, types, device_part, device_types, tensors, ...) detail::register_for<__VA_ARGS__>(to, types{});
    TG_OPERATIONS(TG_KERNELS)
#undef TG_KERNELS
}

#endif

} // namespace tapegraph::ir
