#pragma once

#include <tapegraph/ops/convolution/cpu_fast_plan.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <array>
#include <atomic>
#include <type_traits>

/// Which algorithm computes a convolution of float: what its layer asks for, the process (tapegraph/fast_convolution.hpp) or the shape;
/// those by fewer products are in cpu_fast.hpp.

namespace tapegraph::cpu {

/// Transformed filters: how many floats, and what beside w their values and places depend on.
struct transformed_filters {
    std::int64_t floats;
    std::array<std::int64_t, 4> key;
};

/// Passes by fewer products, of a geometry whose algorithm is one of them. Workspaces are aligned to 64 bytes and as large as `workspace`
/// says.
struct convolution_algorithm_passes {
    /// `keeps`: a forward pass that is given transformed filters.
    std::size_t (*workspace)(const convolution_geometry& g, convolution_pass pass, int threads, bool keeps);
    /// `pooled`: y holds the maximum of every 2 by 2 outputs; both extents of the output are even. `filters`: w as `filters` has
    /// transformed it; null: that is done here.
    void (*forward)(const convolution_geometry& g, const float* x, const float* w, float* y, void* workspace,
                    const convolution_epilogue<float>& epilogue, bool pooled, const float* filters);
    void (*filters)(const convolution_geometry& g, const float* w, float* to);
    transformed_filters (*layout)(const convolution_geometry& g);
    void (*input_gradient)(const convolution_geometry& g, const float* dy, const float* w, float* dx, void* workspace);
    void (*filter_gradient)(const convolution_geometry& g, const float* x, const float* dy, float* dw, void* workspace);
};

namespace detail {
void fast_forward(const convolution_geometry& g, const float* x, const float* w, float* y, void* workspace,
                  const convolution_epilogue<float>& epilogue, bool pooled, const float* filters);
void fast_filters(const convolution_geometry& g, const float* w, float* to);
transformed_filters fast_filter_layout(const convolution_geometry& g);
void fast_input_gradient(const convolution_geometry& g, const float* dy, const float* w, float* dx, void* workspace);
void fast_filter_gradient(const convolution_geometry& g, const float* x, const float* dy, float* dw, void* workspace);
std::size_t fast_workspace(const convolution_geometry& g, convolution_pass pass, int threads, bool keeps);
} // namespace detail

/// The passes by fewer products.
inline constexpr convolution_algorithm_passes fast_convolution{
    &detail::fast_workspace,     &detail::fast_forward,        &detail::fast_filters,
    &detail::fast_filter_layout, &detail::fast_input_gradient, &detail::fast_filter_gradient};

namespace detail {
struct convolution_choice {
    std::atomic<convolution_algorithm> chosen{convolution_algorithm::automatic};
    std::atomic<bool> asked{false}; ///< whether memory may have been planned for it
};
inline convolution_choice& chosen_convolution() {
    static convolution_choice choice;
    return choice;
}
/// Of a convolution of T: what its geometry asks for, or else the process, where the shape allows it.
template <class T>
convolution_algorithm resolved(const convolution_geometry& g) {
    if constexpr (!std::is_same_v<T, float>) return convolution_algorithm::direct;
    const bool open = g.algorithm == convolution_algorithm::automatic;
    return algorithm_for_shape(g, open ? chosen_convolution().chosen.load(std::memory_order_relaxed) : g.algorithm);
}
} // namespace detail

/// Resolves the geometry's algorithm, for which memory is planned from here on. Returns its passes; null: direct sums.
template <class T>
const convolution_algorithm_passes* algorithm_for(convolution_geometry& g) {
    if constexpr (std::is_same_v<T, float>) {
        detail::convolution_choice& choice = detail::chosen_convolution();
        if (!choice.asked.load(std::memory_order_relaxed)) choice.asked.store(true, std::memory_order_relaxed);
    }
    g.algorithm = detail::resolved<T>(g);
    return g.algorithm == convolution_algorithm::direct ? nullptr : &fast_convolution;
}

} // namespace tapegraph::cpu
