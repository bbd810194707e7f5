#pragma once

#include <tapegraph/core/config.hpp>
#include <tapegraph/cpu/vector.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

/// In-place Fourier transforms of real numbers, a vector of channels at a time, and their adjoints;
/// n is a power of two from 4 to 256, or three times one from 4 to 64.
///
/// X[k] = sum over j of x[j] exp(-2 pi i j k / n) for k from 0 to n / 2. The real part of X[k] is
/// stored at k, the imaginary part at n - k (Sorensen et al. 1987). Decimation in time: the
/// transforms of the even and of the odd elements are combined, or those of thirds.

namespace tapegraph::cpu::detail {

struct fourier_angles {
    static constexpr int most = 256;        ///< numbers per transform
    static constexpr int circle = 3 * most; ///< angles of a full turn, which include those of all transforms
    std::array<float, circle / 2> cosine{}, sine{};

    fourier_angles() {
        for (std::size_t k = 0; k < circle / 2; ++k) {
            const double angle = 2 * std::numbers::pi * static_cast<double>(k) / circle;
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

    /// The index of x[i] before a transform of n numbers.
    TG_INLINE static int place(int i, int n) {
        int at = 0, part = n;
        for (; part % 3 == 0; i /= 3) at += i % 3 * (part /= 3);
        for (; part > 1; i /= 2) at += i % 2 * (part /= 2);
        return at;
    }

    /// Transforms x, in its order, to X.
    TG_INLINE static void forward(type* a, int n, const fourier_angles& angles) {
        const int third = n % 3 == 0 ? n / 3 : n;
        for (int at = 0; at < n; at += third) forward_of_two(a + at, third, angles);
        if (third < n) join_thirds(a, third, angles);
    }

    /// The transposed map, from n numbers in the order of X to n in the order of x. It is the
    /// inverse if X[k] is weighted by 1 / n, and by 2 / n where it stands for two.
    TG_INLINE static void backward(type* a, int n, const fourier_angles& angles) {
        const int third = n % 3 == 0 ? n / 3 : n;
        if (third < n) part_thirds(a, third, angles);
        for (int at = 0; at < n; at += third) backward_of_two(a + at, third, angles);
    }

private:
    static constexpr float sine_of_third = 0.866025403784438646763723170753f; // of a turn, sqrt(3) / 2

    // (real, imaginary) times exp(-i angle).
    TG_INLINE static void turn(type& real, type& imaginary, float c, float s) {
        const type before = real;
        real *= c;
        V::multiply_add(real, imaginary, s);
        imaginary *= c;
        V::multiply_add(imaginary, before, -s);
    }

    // Joins three transforms of n / 3 numbers, E0, E1 and E2. With T1 = E1[k] w^k, T2 = E2[k] w^2k
    // and w = exp(-2 pi i / n), X[k] is the sum E0[k] + T1 + T2, and X[n / 3 + k] and the conjugate
    // of X[n / 3 - k] are the sums with T1 and T2 turned by a third. They are stored in place of
    // the six numbers.
    TG_INLINE static void join_thirds(type* a, int third, const fourier_angles& angles) {
        type *const b = a + third, *const c = b + third;
        const int step = fourier_angles::circle / (3 * third), middle = third / 2;
        {
            const type sum = b[0] + c[0], difference = b[0] - c[0];
            b[0] = a[0] - sum * 0.5f;
            a[0] += sum;
            c[0] = difference * -sine_of_third;
        }
        {
            const type sum = b[middle] + c[middle], difference = b[middle] - c[middle];
            b[middle] = a[middle] - difference;
            a[middle] += difference * 0.5f;
            c[middle] = sum * -sine_of_third;
        }
        for (int k = 1; k < middle; ++k) {
            const auto once = static_cast<std::size_t>(k * step), twice = 2 * once;
            type real1 = b[k], imaginary1 = b[third - k], real2 = c[k], imaginary2 = c[third - k];
            turn(real1, imaginary1, angles.cosine[once], angles.sine[once]);
            turn(real2, imaginary2, angles.cosine[twice], angles.sine[twice]);
            const type real = real1 + real2, imaginary = imaginary1 + imaginary2;
            const type across = (real1 - real2) * sine_of_third, along = (imaginary1 - imaginary2) * sine_of_third;
            const type middle_real = a[k] - real * 0.5f, middle_imaginary = a[third - k] - imaginary * 0.5f;
            a[k] += real;
            c[third - k] = a[third - k] + imaginary;
            b[k] = middle_real + along;
            b[third - k] = middle_imaginary - across;
            a[third - k] = middle_real - along;
            c[k] = -middle_imaginary - across;
        }
    }
    // The transposed map.
    TG_INLINE static void part_thirds(type* a, int third, const fourier_angles& angles) {
        type *const b = a + third, *const c = b + third;
        const int step = fourier_angles::circle / (3 * third), middle = third / 2;
        {
            const type sum = a[0] - b[0] * 0.5f, difference = c[0] * -sine_of_third;
            a[0] += b[0];
            b[0] = sum + difference;
            c[0] = sum - difference;
        }
        {
            const type difference = a[middle] * 0.5f - b[middle], sum = c[middle] * -sine_of_third;
            a[middle] += b[middle];
            b[middle] = sum + difference;
            c[middle] = sum - difference;
        }
        for (int k = 1; k < middle; ++k) {
            const auto once = static_cast<std::size_t>(k * step), twice = 2 * once;
            const type middle_real = b[k] + a[third - k], along = (b[k] - a[third - k]) * sine_of_third;
            const type middle_imaginary = b[third - k] - c[k], across = (b[third - k] + c[k]) * -sine_of_third;
            const type real = a[k] - middle_real * 0.5f, imaginary = c[third - k] - middle_imaginary * 0.5f;
            a[k] += middle_real;
            a[third - k] = c[third - k] + middle_imaginary;
            type real1 = real + across, real2 = real - across, imaginary1 = imaginary + along,
                 imaginary2 = imaginary - along;
            turn(real1, imaginary1, angles.cosine[once], -angles.sine[once]);
            turn(real2, imaginary2, angles.cosine[twice], -angles.sine[twice]);
            b[k] = real1;
            b[third - k] = imaginary1;
            c[k] = real2;
            c[third - k] = imaginary2;
        }
    }

    TG_INLINE static void forward_of_two(type* a, int n, const fourier_angles& angles) {
        for (int at = 0; at < n; at += 4) {
            type* const p = a + at;
            const type even = p[0] + p[1], odd = p[2] + p[3], low = p[0] - p[1], high = p[3] - p[2];
            p[0] = even + odd;
            p[1] = low;
            p[2] = even - odd;
            p[3] = high;
        }
        for (int half = 4; half < n; half *= 2) {
            const int step = fourier_angles::circle / (2 * half);
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

    TG_INLINE static void backward_of_two(type* a, int n, const fourier_angles& angles) {
        for (int half = n / 2; half >= 4; half /= 2) {
            const int step = fourier_angles::circle / (2 * half);
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
