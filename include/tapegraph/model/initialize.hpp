#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/model/initializer.hpp>
#include <tapegraph/ops/random/kernel.hpp>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

/// Draws the initial values of variables.

namespace tapegraph::detail {

/// FNV-1a: a variable's initial values depend on the seed and its path, not on other variables.
std::uint64_t hash_of(std::string_view text);

/// Makes the rows of a matrix orthonormal, each after subtracting its components along earlier ones
/// (modified Gram-Schmidt): for normal numbers the result is uniform among such matrices.
void orthonormalize(double* data, std::int64_t rows, std::int64_t columns);

template <class T>
void initialize_orthogonal(T* data, const shape& dims, double gain, std::uint64_t seed, std::string_view path) {
    const std::int64_t columns = dims.rank() > 0 ? dims[dims.rank() - 1].value : 1;
    const std::int64_t rows = columns > 0 ? dims.elements() / columns : 0;
    const bool across = rows > columns;
    std::vector<double> normal(static_cast<std::size_t>(rows * columns));
    runtime::fill_standard_normal(normal.data(), rows * columns, 0xFFFFFFFEu, {seed, hash_of(path) >> 16});
    orthonormalize(normal.data(), across ? columns : rows, across ? rows : columns);
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
            data[r * columns + c] =
                static_cast<T>(gain * normal[static_cast<std::size_t>(across ? c * rows + r : r * columns + c)]);
}

template <class T>
void initialize(T* data, const shape& dims, const initializer& how, std::uint64_t seed, std::string_view path) {
    const std::int64_t count = dims.elements();
    if (how.kind == initializer_kind::constant) {
        std::fill_n(data, count, static_cast<T>(how.a));
        return;
    }
    if (how.kind == initializer_kind::values && how.list != nullptr) {
        for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(how.list[i]);
        return;
    }
    if (how.kind == initializer_kind::forget_gate) {
        for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(4 * i / count == 1 ? 1 : how.a);
        return;
    }
    if (how.kind == initializer_kind::identity) {
        const std::int64_t columns = dims[1].value;
        for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(i / columns == i % columns ? how.a : 0);
        return;
    }
    if (how.kind == initializer_kind::orthogonal) return initialize_orthogonal(data, dims, how.a, seed, path);
    const fans f = fans_of(dims);
    typename random_op<T>::attributes a;
    const double glorot = 2 / (f.in + f.out), he = 2 / f.in;
    const auto uniform = [&](double limit) { a.a = -limit, a.b = limit; };
    const auto normal = [&](double deviation, distribution law = distribution::normal) {
        a.law = static_cast<std::int64_t>(law);
        a.a = 0, a.b = deviation;
    };
    switch (how.kind) {
    case initializer_kind::glorot_uniform: uniform(std::sqrt(3 * glorot)); break;
    case initializer_kind::he_uniform: uniform(std::sqrt(3 * he)); break;
    case initializer_kind::glorot_normal: normal(std::sqrt(glorot)); break;
    case initializer_kind::he_normal: normal(std::sqrt(he)); break;
    case initializer_kind::normal:
        normal(how.b);
        a.a = how.a;
        break;
    case initializer_kind::truncated_normal:
        normal(how.b, distribution::truncated_normal);
        a.a = how.a;
        break;
    case initializer_kind::variance_scaling: {
        const auto mode = static_cast<fan_mode>(static_cast<int>(how.b) / 3);
        const double fan = mode == fan_mode::fan_in ? f.in : mode == fan_mode::fan_out ? f.out : (f.in + f.out) / 2;
        const double variance = how.a / (fan > 1 ? fan : 1); // Keras
        switch (static_cast<scaled_law>(static_cast<int>(how.b) % 3)) {
        case scaled_law::uniform: uniform(std::sqrt(3 * variance)); break;
        case scaled_law::untruncated_normal: normal(std::sqrt(variance)); break;
        // 0.8796...: the standard deviation of a standard normal distribution truncated to [-2, 2]
        default: normal(std::sqrt(variance) / 0.87962566103423978, distribution::truncated_normal); break;
        }
        break;
    }
    default: a.a = how.a, a.b = how.b; break;
    }
    a.ordinal = 0xFFFFFFFE; // distinct from the model's random nodes
    runtime::fill_random<T>(data, count, a, {seed, hash_of(path) >> 16});
}

TG_COMPILED(nn, void initialize<float>(float*, const shape&, const initializer&, std::uint64_t, std::string_view))
TG_COMPILED(nn, void initialize<double>(double*, const shape&, const initializer&, std::uint64_t, std::string_view))

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void orthonormalize(double* data, std::int64_t rows, std::int64_t columns) {
    const auto dot = [columns](const double* a, const double* b) {
        constexpr std::int64_t lanes = 8; // the order of the sum, whatever the compiler makes of it
        double sums[lanes]{}, sum = 0;
        std::int64_t i = 0;
        for (; i + lanes <= columns; i += lanes)
            for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
        for (; i < columns; ++i) sum += a[i] * b[i];
        for (const double part : sums) sum += part;
        return sum;
    };
    for (std::int64_t k = 0; k < rows; ++k) {
        double* const row = data + k * columns;
        const double inverse = 1 / std::sqrt(dot(row, row));
        for (std::int64_t i = 0; i < columns; ++i) row[i] *= inverse;
        cpu::parallel_for(rows - k - 1, (rows - k) * columns > 100000, [&](std::int64_t j) {
            double* const other = row + (j + 1) * columns;
            const double along = dot(row, other);
            for (std::int64_t i = 0; i < columns; ++i) other[i] -= along * row[i];
        });
    }
}

TG_DEFINITION std::uint64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return hash;
}

#endif

} // namespace tapegraph::detail
