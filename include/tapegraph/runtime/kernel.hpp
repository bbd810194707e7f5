#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/cpu/map.hpp>
#include <tapegraph/cpu/reduce.hpp>
#include <tapegraph/expr/operation.hpp>
#include <tapegraph/runtime/widened_reduction.hpp>

/// The kernels of both modes, one per (operation, element type) or per region: a function and the
/// size of its scratch memory.

#if defined(TG_COMPONENT) && TG_COMPONENT == 2 // the component holds nothing that depends on it
#elif !defined(TG_CUDA)
TG_OBJECTS_AGREE(TG_CUDA, off)
#elif defined(TG_SIMT)
TG_OBJECTS_AGREE(TG_CUDA, imitated)
#else
TG_OBJECTS_AGREE(TG_CUDA, on)
#endif

namespace tapegraph::runtime {

/// Specialised per operation: `run(call)`, and `workspace(call)` where scratch memory is needed.
template <class Op, class T>
struct kernel {
    static constexpr bool missing = true;
};
/// Whether an operation has a kernel for an element type.
template <class Op, class T>
inline constexpr bool has_kernel = !requires {
    kernel<Op, T>::missing;
};

struct kernel_functions {
    kernel_function run = nullptr;
    workspace_function workspace = nullptr;
};
/// A kernel for the CPU and one for a GPU. Without the latter, a GPU's operands are copied to the
/// host, and results back.
struct kernel_pair : kernel_functions {
    kernel_functions on_device{};
};

inline std::size_t no_workspace(const kernel_call&) { return 0; }

/// The kernels of a backend; none here, see cuda/backend.cuh.
struct no_backend {
    template <class Op, class T>
    static constexpr kernel_functions operation() {
        return {};
    }
    template <class Region>
    static constexpr kernel_functions map() {
        return {};
    }
    template <class Op, class Region, class T>
    static constexpr kernel_functions reduction() {
        return {};
    }
    /// The sum of one result of a region; the second attribute selects the result.
    template <class Region>
    static constexpr kernel_functions result_sum() {
        return {};
    }
};
#ifdef TG_CUDA
#if !defined(__CUDACC__) && !defined(TG_SIMT)
#error "this target uses tapegraph::cuda, so nvcc compiles this file: tapegraph_cuda_sources(target) says so to CMake"
#endif
} // namespace tapegraph::runtime
namespace tapegraph::cuda {
struct backend;
}
namespace tapegraph::runtime {
using backend = cuda::backend;
#else
using backend = no_backend;
#endif
/// Whether this program can compute on devices other than the CPU.
inline constexpr bool has_backend = !std::is_same_v<backend, no_backend>;

/// Computes an operation on 16-bit elements by its float kernel and conversions. In
/// runtime/widened.hpp.
template <class Op>
struct widened_kernel;

/// Whether an operation's kernel takes 16-bit elements itself, which it declares by
/// `takes_storage_types`.
template <class Op>
inline constexpr bool takes_storage_types = [] {
    if constexpr (requires { Op::takes_storage_types; })
        return Op::takes_storage_types;
    else
        return false;
}();

/// The CPU's kernel of an operation, from its definition.
template <class Op, class T>
constexpr kernel_functions defined_kernel() {
    static_assert(has_kernel<Op, T> || (storage_type<T> && !takes_storage_types<Op>),
                  "this operation has no kernel for this element type");
    if constexpr (storage_type<T> && !takes_storage_types<Op>)
        return {&widened_kernel<Op>::run, &widened_kernel<Op>::workspace};
    else if constexpr (requires { &kernel<Op, T>::workspace; })
        return {&kernel<Op, T>::run, &kernel<Op, T>::workspace};
    else
        return {&kernel<Op, T>::run, &no_workspace};
}

/// The element types for which the compiled component (core/component.hpp) holds an operation's kernel: ops/compiled_kernels.hpp says so.
/// A user's own operation is compiled where it is used.
template <class Op>
inline constexpr element_types<> compiled_types;

template <class T, class... Types>
constexpr bool is_one_of(element_types<Types...>) {
    return (std::is_same_v<T, Types> || ...);
}

/// A kernel of the component, declared for programs that link it under names that depend only on
/// the operation.
template <class Op, class T>
struct compiled_kernel {
    static void run(const kernel_call& call);
    static std::size_t workspace(const kernel_call& call);
};
#if TG_COMPONENT == 2
template <class Op, class T>
void compiled_kernel<Op, T>::run(const kernel_call& call) {
    constexpr kernel_functions functions = defined_kernel<Op, T>();
    functions.run(call);
}
template <class Op, class T>
std::size_t compiled_kernel<Op, T>::workspace(const kernel_call& call) {
    constexpr kernel_functions functions = defined_kernel<Op, T>();
    return functions.workspace(call);
}
#endif

/// The addresses of an operation's kernels; instantiating it compiles them.
template <class Op, class Types>
struct compiled_kernels;
template <class Op, class... T>
struct compiled_kernels<Op, element_types<T...>> {
    static constexpr kernel_functions functions[sizeof...(T)] = {
        {&compiled_kernel<Op, T>::run, &compiled_kernel<Op, T>::workspace}...};
};

template <class Op, class T, class Backend = backend>
constexpr kernel_pair kernel_for() {
    constexpr kernel_functions on_device = Backend::template operation<Op, T>();
    if constexpr (is_one_of<T>(compiled_types<Op>))
        return {{&compiled_kernel<Op, T>::run, &compiled_kernel<Op, T>::workspace}, on_device};
    else
        return {defined_kernel<Op, T>(), on_device};
}

template <class Op>
constexpr typename Op::attributes attributes_of(const kernel_call& call) {
    return attributes_from_words<Op>(call.attributes);
}

namespace detail {
/// Product of the extents of axes [first, last).
inline std::int64_t span(const buffer_view& v, std::int64_t first, std::int64_t last) {
    std::int64_t product = 1;
    for (std::int64_t i = first; i < last; ++i) product *= v.extents[i];
    return product;
}
inline std::int64_t last_extent(const buffer_view& v) { return v.extents[v.rank - 1]; }
inline std::int64_t leading_extent(const buffer_view& v) { return span(v, 0, v.rank - 1); }
} // namespace detail

/// A fused region as a kernel.
template <class Region>
struct region_kernel {
    static void run(const kernel_call& call) { cpu::run_map(&cpu::evaluate_tile<Region>, call); }
};
/// A region with several results from graph/passes/merge_updates.hpp: all are wanted.
template <class Slots, int First, int Second, int... Others, class... Instructions>
struct region_kernel<region<Slots, results<First, Second, Others...>, Instructions...>> {
    static void run(const kernel_call& call) {
        cpu::run_map(&cpu::evaluate_merged_tile<region<Slots, results<First, Second, Others...>, Instructions...>>,
                     call);
    }
};

/// The type a reduction computes in: bool as bytes, integer sums and products as unsigned.
template <class Op, class T>
struct reduced_element {
    using type = T;
};
template <class Op>
struct reduced_element<Op, bool> {
    using type = std::uint8_t;
};
template <class Op, class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
             (Op::combines == reduction::sum || Op::combines == reduction::product))
struct reduced_element<Op, T> {
    using type = std::make_unsigned_t<T>;
};

// Up to so many elements preparing a region_reader takes longer than what it reads.
inline constexpr std::int64_t few_elements = 256;

/// What a region makes of few elements whose operands are all read in place. One thread reads it.
template <class T>
class few_values {
public:
    few_values(const kernel_call& call, cpu::tile_function evaluate, int wanted, int results)
        : evaluate_(evaluate), wanted_(wanted), inputs_(call.inputs) {
        tile_.region = call.region;
        for (int k = 0; k < results; ++k) tile_.out[k] = nullptr;
        const std::int64_t elements = call.domain.elements();
        for (int s = 0; s < inputs_; ++s) {
            in_place_ = in_place_ && cpu::detail::has_all(call.in[s], elements);
            first_[s] = call.in[s].as<const std::byte>();
            sizes_[s] = static_cast<std::int64_t>(size_of(call.in[s].type));
        }
    }
    bool in_place() const { return in_place_; }
    static void produce(const void* opaque, std::int64_t begin, std::int64_t count, T* out) {
        auto& v = *static_cast<few_values*>(const_cast<void*>(opaque));
        for (int s = 0; s < v.inputs_; ++s) v.tile_.in[s] = v.first_[s] + begin * v.sizes_[s];
        v.tile_.out[v.wanted_] = out;
        v.tile_.count = count;
        v.evaluate_(v.tile_);
    }

private:
    cpu::tile_function evaluate_;
    int wanted_, inputs_;
    bool in_place_ = true;
    cpu::tile tile_;
    const std::byte* first_[cpu::most_slots];
    std::int64_t sizes_[cpu::most_slots];
};

/// A reduction over call.domain of values from a region; reduces result `wanted` of the region.
template <class T>
void run_reduction(const kernel_call& call, cpu::tile_function evaluate, int wanted, int results,
                   void (*reduce)(int, const std::int64_t*, std::uint32_t, const cpu::reduce_source<T>&, T*, void*)) {
    const auto axes = static_cast<std::uint32_t>(call.attributes[0]);
    if (evaluate == nullptr) {
        const cpu::reduce_source<T> source{call.in[0].as<const T>(), nullptr, nullptr};
        return reduce(call.domain.rank, call.domain.extents, axes, source, call.out[0].as<T>(), call.workspace);
    }
    if (call.domain.elements() <= few_elements) {
        few_values<T> few(call, evaluate, wanted, results);
        if (few.in_place()) {
            const cpu::reduce_source<T> source{nullptr, &few_values<T>::produce, &few};
            return reduce(call.domain.rank, call.domain.extents, axes, source, call.out[0].as<T>(), call.workspace);
        }
    }
    struct state {
        cpu::region_reader reader;
        int wanted, results;
    };
    const state producer{cpu::region_reader(evaluate, call), wanted, results};
    const auto produce = [](const void* opaque, std::int64_t begin, std::int64_t count, T* out) {
        const state& s = *static_cast<const state*>(opaque);
        void* targets[cpu::most_results]{};
        std::int64_t sizes[cpu::most_results]{};
        targets[s.wanted] = out;
        sizes[s.wanted] = sizeof(T);
        s.reader.read(begin, count, targets, sizes, s.results);
    };
    const cpu::reduce_source<T> source{nullptr, produce, &producer};
    reduce(call.domain.rank, call.domain.extents, axes, source, call.out[0].as<T>(), call.workspace);
}

template <class Region>
inline constexpr bool reads_in_place = false; // the region is its only operand
template <dtype Type>
inline constexpr bool reads_in_place<region<slots<Type>, results<0>>> = true;

/// A reduction with its producer fused in. T is the element type of the result.
template <class Op, class Region, class T>
struct reduction_kernel {
    using element = typename reduced_element<Op, T>::type;
    static void run(const kernel_call& call) {
        constexpr cpu::tile_function evaluate = reads_in_place<Region> ? nullptr : &cpu::evaluate_tile<Region>;
        if constexpr (std::is_same_v<T, bool>) { // unlike a maximum of bytes, any and all of nothing have values
            if (call.domain.elements() == 0) {
                for (std::int64_t i = 0; i < call.out[0].elements(); ++i)
                    call.out[0].as<bool>()[i] = Op::combines == tapegraph::reduction::minimum;
                return;
            }
        }
        if constexpr (std::is_floating_point_v<T> && (Op::combines == tapegraph::reduction::maximum ||
                                                      Op::combines == tapegraph::reduction::minimum)) {
            if (call.domain.elements() == 0 && (call.attributes[1] & reduce_op::empty_allowed) != 0) {
                for (std::int64_t i = 0; i < call.out[0].elements(); ++i)
                    call.out[0].as<T>()[i] = tapegraph::detail::identity<Op::combines, T>;
                return;
            }
        }
        if constexpr (storage_type<T>)
            run_widened_reduction(call, evaluate, 0, 1, &cpu::reduce_axes<Op::combines, float>, &cpu::widen_tile<T>);
        else
            run_reduction<element>(call, evaluate, 0, 1, &cpu::reduce_axes<Op::combines, element>);
    }
    static std::size_t workspace(const kernel_call& call) {
        if constexpr (storage_type<T>)
            return widened_reduction_bytes(call);
        else
            return cpu::reduce_workspace_bytes<element>(call.domain.rank, call.domain.extents,
                                                        static_cast<std::uint32_t>(call.attributes[0]));
    }
};

/// A region's kernels for a device, for callers that run them on the CPU in their own way.
template <class Region, class Backend = backend>
constexpr kernel_functions map_on_device() {
    return Backend::template map<Region>();
}
template <class Op, class Region, class T, class Backend = backend>
constexpr kernel_functions reduction_on_device() {
    return Backend::template reduction<Op, Region, T>();
}
template <class Region, class Backend = backend>
constexpr kernel_pair map_kernel_for() {
    return {{&region_kernel<Region>::run, &no_workspace}, map_on_device<Region, Backend>()};
}
template <class Op, class Region, class T, class Backend = backend>
constexpr kernel_pair reduction_kernel_for() {
    using kernel = reduction_kernel<Op, Region, T>;
    return {{&kernel::run, &kernel::workspace}, reduction_on_device<Op, Region, T, Backend>()};
}

#define TG_COMPILED_RUN_REDUCTION(T)                                                                                   \
    TG_COMPILED(reduction, void run_reduction<T>(const kernel_call&, cpu::tile_function, int, int,                     \
                                                 void (*)(int, const std::int64_t*, std::uint32_t,                     \
                                                          const cpu::reduce_source<T>&, T*, void*)))
TG_COMPILED_RUN_REDUCTION(float)
TG_COMPILED_RUN_REDUCTION(double)
TG_COMPILED_RUN_REDUCTION(std::uint32_t)
TG_COMPILED_RUN_REDUCTION(std::uint64_t)
TG_COMPILED_RUN_REDUCTION(std::int32_t)
TG_COMPILED_RUN_REDUCTION(std::int64_t)
TG_COMPILED_RUN_REDUCTION(std::uint8_t)
#undef TG_COMPILED_RUN_REDUCTION

} // namespace tapegraph::runtime
