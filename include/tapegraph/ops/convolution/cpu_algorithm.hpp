#pragma once

#include <tapegraph/ops/convolution/cpu_fast_plan.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <array>
#include <atomic>
#include <type_traits>

/// Selects the algorithm of a float convolution by the layer's request, the process's
/// (tapegraph/fast_convolution.hpp) or the shape. The fast (Winograd and Fourier) algorithms are in
/// cpu_fast.hpp.

namespace tapegraph::cpu {

/// Transformed filters: the number of floats, and the values besides w that their content and
/// layout depend on.
struct transformed_filters {
    std::int64_t floats;
    std::array<std::int64_t, 4> key;
};

/// Passes of the fast algorithms, for a geometry that selects one of them. Workspaces are aligned
/// to 64 bytes and have the size that `workspace` returns.
struct convolution_algorithm_passes {
    /// `keeps`: a forward pass that receives transformed filters.
    std::size_t (*workspace)(const convolution_geometry& g, convolution_pass pass, int threads, bool keeps);
    /// `pooled`: y receives the maximum of every 2 by 2 outputs; both extents of the output are
    /// even. `filters`: w as transformed by the function `filters`; null: the pass transforms w
    /// itself.
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

/// The passes of the fast algorithms.
inline constexpr convolution_algorithm_passes fast_convolution{
    &detail::fast_workspace,     &detail::fast_forward,        &detail::fast_filters,
    &detail::fast_filter_layout, &detail::fast_input_gradient, &detail::fast_filter_gradient};

namespace detail {
struct convolution_choice {
    std::atomic<convolution_algorithm> chosen{convolution_algorithm::automatic};
    std::atomic<bool> memory_planned{false}; ///< whether memory may have been planned for it
};
inline convolution_choice& chosen_convolution() {
    static convolution_choice choice;
    return choice;
}
/// The algorithm of a pass of a convolution of T: the one its geometry requests, or else the process's, where
/// the shape allows it.
template <class T>
convolution_algorithm resolved(const convolution_geometry& g, convolution_pass pass) {
    if constexpr (!std::is_same_v<T, float>) return convolution_algorithm::direct;
    const bool open = g.algorithm == convolution_algorithm::automatic;
    const auto chosen = open ? chosen_convolution().chosen.load(std::memory_order_relaxed) : g.algorithm;
    return algorithm_for_shape(g, chosen, pass);
}
} // namespace detail

/// Resolves the geometry's algorithm for a pass, for which memory is planned from here on. Returns its
/// passes; null means direct sums.
template <class T>
const convolution_algorithm_passes* algorithm_for(convolution_geometry& g, convolution_pass pass) {
    if constexpr (std::is_same_v<T, float>) {
        detail::convolution_choice& choice = detail::chosen_convolution();
        if (!choice.memory_planned.load(std::memory_order_relaxed))
            choice.memory_planned.store(true, std::memory_order_relaxed);
    }
    g.algorithm = detail::resolved<T>(g, pass);
    return g.algorithm == convolution_algorithm::direct ? nullptr : &fast_convolution;
}

} // namespace tapegraph::cpu
