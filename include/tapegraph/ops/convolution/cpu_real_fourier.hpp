#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

/// Fourier transforms of real numbers in place, a vector of channels at a time, and their adjoints; n a power of two from 4 to 256.
///
/// X[k] = sum over j of x[j] exp(-2 pi i j k / n) for k from 0 to n / 2. The real part of X[k] stands at k, the imaginary part at n - k
/// (Sorensen et al. 1987). Decimation in time: halves of even and of odd numbers, transformed, make the whole.

namespace tapegraph::cpu::detail {

struct fourier_angles {
    static constexpr int most = 256;
    std::array<float, most / 2> cosine{}, sine{};

    fourier_angles() {
        for (std::size_t k = 0; k < most / 2; ++k) {
            const double angle = 2 * std::numbers::pi * static_cast<double>(k) / most;
            cosine[k] = static_cast<float>(std::cos(angle));
            sine[k] = static_cast<float>(std::sin(angle));
        }
    }
    static const fourier_angles& shared() {
        static const fourier_angles angles;
        return angles;
    }
};

template <class V>
struct real_fourier {
    using type = typename V::type;

    /// Where x[i] stands before a transform of 2^bits numbers.
    TG_INLINE static int place(int i, int bits) {
        int reversed = 0;
        for (int bit = 0; bit < bits; ++bit) reversed |= (i >> bit & 1) << (bits - 1 - bit);
        return reversed;
    }

    /// From x at its places to X.
    TG_INLINE static void forward(type* a, int n, const fourier_angles& angles) {
        for (int at = 0; at < n; at += 4) {
            type* const p = a + at;
            const type even = p[0] + p[1], odd = p[2] + p[3], low = p[0] - p[1], high = p[3] - p[2];
            p[0] = even + odd;
            p[1] = low;
            p[2] = even - odd;
            p[3] = high;
        }
        for (int half = 4; half < n; half *= 2) {
            const int step = fourier_angles::most / (2 * half);
            for (int at = 0; at < n; at += 2 * half) {
                type* const p = a + at;
                const type sum = p[0] + p[half];
                p[half] = p[0] - p[half];
                p[0] = sum;
                p[half + half / 2] = -p[half + half / 2];
                for (int k = 1; k < half / 2; ++k) {
                    const float c = angles.cosine[static_cast<std::size_t>(k * step)];
                    const float s = angles.sine[static_cast<std::size_t>(k * step)];
                    const type real = p[half + k], imaginary = p[2 * half - k];
                    type turned_real = real * c, turned_imaginary = imaginary * c;
                    V::multiply_add(turned_real, imaginary, s);
                    V::multiply_add(turned_imaginary, real, -s);
                    const type even_real = p[k], even_imaginary = p[half - k];
                    p[k] = even_real + turned_real;
                    p[2 * half - k] = even_imaginary + turned_imaginary;
                    p[half - k] = even_real - turned_real;
                    p[half + k] = turned_imaginary - even_imaginary;
                }
            }
        }
    }

    /// The transposed map: from n numbers that stand as X does to n at the places of x. With X[k] weighted by 1 / n, and by 2 / n where
    /// it stands for two, the inverse.
    TG_INLINE static void backward(type* a, int n, const fourier_angles& angles) {
        for (int half = n / 2; half >= 4; half /= 2) {
            const int step = fourier_angles::most / (2 * half);
            for (int at = 0; at < n; at += 2 * half) {
                type* const p = a + at;
                const type sum = p[0] + p[half];
                p[half] = p[0] - p[half];
                p[0] = sum;
                p[half + half / 2] = -p[half + half / 2];
                for (int k = 1; k < half / 2; ++k) {
                    const float c = angles.cosine[static_cast<std::size_t>(k * step)];
                    const float s = angles.sine[static_cast<std::size_t>(k * step)];
                    const type turned_real = p[k] - p[half - k], turned_imaginary = p[2 * half - k] + p[half + k];
                    p[k] += p[half - k];
                    p[half - k] = p[2 * half - k] - p[half + k];
                    type real = turned_real * c, imaginary = turned_imaginary * c;
                    V::multiply_add(real, turned_imaginary, -s);
                    V::multiply_add(imaginary, turned_real, s);
                    p[half + k] = real;
                    p[2 * half - k] = imaginary;
                }
            }
        }
        for (int at = 0; at < n; at += 4) {
            type* const p = a + at;
            const type even = p[0] + p[2], odd = p[0] - p[2], low = p[1], high = p[3];
            p[0] = even + low;
            p[1] = even - low;
            p[2] = odd - high;
            p[3] = odd + high;
        }
    }
};

} // namespace tapegraph::cpu::detail
