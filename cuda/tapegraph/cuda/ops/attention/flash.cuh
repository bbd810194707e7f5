#pragma once

#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/kernels/flash_attention.cuh>
#include <tapegraph/cuda/ops/movement/boxes.cuh>

/// Launches flash attention: in TF32 with math_mode::tf32, otherwise by multiply-adds, which tf32x3
/// would hardly beat.

namespace tapegraph::cuda::detail {

inline kernels::flash_shared_floats flash_pitches(const cpu::attention_shape& s) {
    const auto pitch = [](std::int64_t columns) { return kernels::flash_pitch(static_cast<int>(columns)); };
    return {pitch(s.depth), pitch(s.width), pitch(s.width < kernels::flash_side ? s.width : kernels::flash_side)};
}
inline kernels::flash_arguments flash_arguments_of(const kernels::attention_arguments<float>& g) {
    const auto aligned = [](std::int64_t columns, std::initializer_list<const float*> operands) {
        bool all = columns % 4 == 0;
        for (const float* x : operands) all = all && reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
        return all;
    };
    const cpu::attention_shape& s = g.s;
    const auto depth = static_cast<int>(s.depth), width = static_cast<int>(s.width);
    const bool by_quads = aligned(s.width, {g.of.v, g.dy});
    return {g,
            {depth, aligned(s.depth, {g.of.q, g.of.k})},
            {width, by_quads},
            {width < kernels::flash_side ? width : kernels::flash_side, by_quads}};
}
/// Whether the kernels count so far (in 31 bits), and this thread's device has asynchronous copies, and
/// shared memory for the tiles.
inline bool takes_flash(const kernels::attention_arguments<float>& g) {
    constexpr std::int64_t most_features = 1024, most = std::int64_t{1} << 30; // features: far more than fit
    const cpu::attention_shape& s = g.s;
    const std::int64_t rows = s.time > s.steps ? s.time : s.steps;
    if (s.depth < 1 || s.width < 1 || s.depth > most_features || s.width > most_features) return false;
    if (rows > most || s.batch * s.heads > most / (rows + 1)) return false;
    const driver::device_properties& device = context::current().properties();
    const int floats = flash_pitches(s).by_keys<kernels::flash_multiply_adds>();
    const kernels::flash_arguments arguments = flash_arguments_of(g);
    return device.major >= 8 && static_cast<std::size_t>(floats) * sizeof(float) <= device.shared_per_block &&
           arguments.depth.at_once > 0 && arguments.width.at_once > 0;
}

/// Calls f(products) with those of the math_mode.
template <class F>
void with_flash_products(const F& f) {
    if (current_math_mode() == math_mode::tf32)
        f(kernels::flash_tensor_products{});
    else
        f(kernels::flash_multiply_adds{});
}

/// Calls f(arguments, launch shape, segments) for tiles of `rows` of `heads` and segments of `columns`.
template <class F>
void for_flash(kernels::flash_arguments g, std::int64_t heads, std::int64_t rows, std::int64_t columns, int floats,
               const F& f) {
    const std::int64_t segments = divide_up(columns, kernels::flash_side),
                       blocks = heads * divide_up(rows, kernels::flash_side) * segments;
    for_pieces(blocks, [&](std::int64_t first, std::int64_t count) {
        g.first = first;
        f(g,
          driver::launch_shape{static_cast<unsigned>(count), kernels::flash_threads,
                               static_cast<std::size_t>(floats) * sizeof(float)},
          static_cast<int>(segments));
    });
}

inline void flash_attention(const kernel_call& c, const kernels::attention_arguments<float>& of, float* y) {
    const kernels::flash_arguments g = flash_arguments_of(of);
    const cpu::attention_shape& s = g.s;
    with_flash_products([&](auto products) {
        for_flash(g, s.batch * s.heads, s.time, s.width, flash_pitches(s).forward(),
                  [&](const auto& part, const driver::launch_shape& shape, int segments) {
                      launch(c, "attention", shape, kernels::flash_forward<decltype(products)>, part, segments, y,
                             y + s.results());
                  });
    });
}

inline void flash_attention_gradient(const kernel_call& c, const kernels::attention_arguments<float>& of,
                                     const float* y, float* delta, float* dq, float* dk, float* dv) {
    constexpr const char* name = "attention_gradient";
    kernels::flash_arguments g = flash_arguments_of(of);
    const cpu::attention_shape& s = g.s;
    const std::int64_t heads = s.batch * s.heads, queries = heads * s.time;
    constexpr int lanes = 16;
    const std::int64_t most = most_elements / lanes > 0 ? most_elements / lanes : 1;
    for (std::int64_t first = 0; first < queries; first += most) {
        g.first = first;
        const std::int64_t count = queries - first < most ? queries - first : most;
        launch(c, name, over(lanes * count, 128), kernels::flash_delta<lanes>, g, first + count, y, delta);
    }
    const kernels::flash_shared_floats floats = flash_pitches(s);
    with_flash_products([&](auto products) {
        using products_type = decltype(products);
        for_flash(g, heads, s.time, s.depth, floats.by_queries(),
                  [&](const auto& part, const driver::launch_shape& shape, int segments) {
                      launch(c, name, shape, kernels::flash_by_queries<products_type>, part, segments, dq);
                  });
        for_flash(g, s.batch * s.kv_heads(), s.steps, s.depth > s.width ? s.depth : s.width,
                  floats.by_keys<products_type>(),
                  [&](const auto& part, const driver::launch_shape& shape, int segments) {
                      launch(c, name, shape, kernels::flash_by_keys<products_type>, part, segments, dk, dv);
                  });
    });
}

} // namespace tapegraph::cuda::detail
