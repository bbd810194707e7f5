#pragma once

#include <tapegraph/ops/convolution/cpu_fast_plan.hpp>
#include <tapegraph/ops/convolution/cpu_tiling.hpp>

#include <atomic>
#include <type_traits>

/// Which algorithm computes a convolution of float: by fewer products (cpu_fast.hpp) where the shape allows it, unless the program
/// chose direct sums (tapegraph/fast_convolution.hpp).

namespace tapegraph::cpu {

/// Passes of an algorithm for shapes that `takes` accepts. Workspaces are aligned to 64 bytes and as large as `workspace` says.
struct convolution_algorithm_passes {
    bool (*takes)(const convolution_geometry& g);
    std::size_t (*workspace)(const convolution_geometry& g, convolution_pass pass, int threads);
    /// `pooled`: y holds the maximum of every 2 by 2 outputs; both extents of the output are even.
    void (*forward)(const convolution_geometry& g, const float* x, const float* w, float* y, void* workspace,
                    const convolution_epilogue<float>& epilogue, bool pooled);
    void (*input_gradient)(const convolution_geometry& g, const float* dy, const float* w, float* dx, void* workspace);
    void (*filter_gradient)(const convolution_geometry& g, const float* x, const float* dy, float* dw, void* workspace);
};

namespace detail {
void fast_forward(const convolution_geometry& g, const float* x, const float* w, float* y, void* workspace,
                  const convolution_epilogue<float>& epilogue, bool pooled);
void fast_input_gradient(const convolution_geometry& g, const float* dy, const float* w, float* dx, void* workspace);
void fast_filter_gradient(const convolution_geometry& g, const float* x, const float* dy, float* dw, void* workspace);
std::size_t fast_workspace(const convolution_geometry& g, convolution_pass pass, int threads);
} // namespace detail

/// The passes by fewer products.
inline constexpr convolution_algorithm_passes fast_convolution{&detail::takes_fast, &detail::fast_workspace,
                                                               &detail::fast_forward, &detail::fast_input_gradient,
                                                               &detail::fast_filter_gradient};

namespace detail {
struct convolution_choice {
    std::atomic<const convolution_algorithm_passes*> chosen{&fast_convolution};
    std::atomic<bool> asked{false}; ///< whether memory may have been planned for it
};
inline convolution_choice& chosen_convolution() {
    static convolution_choice choice;
    return choice;
}
} // namespace detail

/// The algorithm that is chosen, if it takes this shape; null: direct sums.
template <class T>
const convolution_algorithm_passes* algorithm_for([[maybe_unused]] const convolution_geometry& g) {
    if constexpr (std::is_same_v<T, float>) {
        detail::convolution_choice& choice = detail::chosen_convolution();
        if (!choice.asked.load(std::memory_order_relaxed)) choice.asked.store(true, std::memory_order_relaxed);
        const auto* chosen = choice.chosen.load(std::memory_order_relaxed);
        return chosen != nullptr && chosen->takes(g) ? chosen : nullptr;
    } else {
        return nullptr;
    }
}

} // namespace tapegraph::cpu
