#pragma once

#include <support/one_sided.hpp>

#include <tapegraph/nn/losses/all.hpp>

#include <doctest/doctest.h>

#include <sstream>

/// Derivatives of a loss to the third where its formula is joined: outputs of 0 and 1, equal ones, outputs that are the labels or a margin
/// from them. Where differences of its values from both sides agree, they are the derivative.

namespace nn_test {

namespace tg = tapegraph;
using namespace tapegraph::testing;

struct seam_counts {
    int smooth = 0, kinks = 0;
};

/// Along lines through `x` [batch, n] at labels z; `length` scales how far that goes, about 1.4 of it, which is to pass no other seam.
template <class Loss, class Labels>
void check_seam(const char* name, const Loss& loss, const tg::tensor<double>& x, const Labels& z, double length,
                seam_counts& counted) {
    for (const std::uint64_t seed : {1, 2}) {
        const tg::tensor<double> direction = length * weights_like(x, seed);
        const sides values(
            [&](real t) {
                const tg::tensor<double> moved = x + static_cast<double>(t) * direction;
                return std::vector<real>{tg::tensor<double>(loss(moved, z)).item()};
            },
            1.0L / 24);
        const auto got = nested_derivatives(
            [&](const tg::tensor<double>& t) {
                const tg::tensor<double> moved = x + t * direction;
                return tg::tensor<double>(loss(moved, z));
            },
            tg::tensor<double>(0.0));
        for (std::size_t k = 1; k <= orders; ++k) {
            const verdict v = values.of(0, k);
            if (!v.smooth) {
                ++counted.kinks;
                break;
            }
            ++counted.smooth;
            std::ostringstream where;
            where << name << " at " << x << ", labels " << z << ", derivative " << k;
            INFO(where.str());
            // What `sides` allows its differences, three times.
            CHECK(std::abs(got[k - 1][0] - static_cast<double>(v.value)) <=
                  3e-6 * (1 + std::abs(static_cast<double>(v.value))));
        }
    }
}

/// A loss of outputs and labels of one shape.
template <class Loss>
void check_seams(const char* name, const Loss& loss, double length = 1) {
    using matrix = tg::tensor<double>;
    const matrix hot{{1, 0, 0}, {0, 0, 1}}, soft{{0.5, 0.25, 0.25}, {0, 1, 0}};
    seam_counts counted;
    for (const matrix& x :
         {matrix{{0, 0, 0}, {1, 1, 1}}, matrix{{0, 1, -1}, {-0.5, 0.5, 2}}, matrix{{3, 0, 0}, {40, -40, 0}}, hot,
          matrix{{0.5, 0.5, 0.5}, {0.25, 0.5, 0.25}}, matrix(hot + 1), matrix(soft - 1)})
        for (const matrix& z : {hot, soft}) check_seam(name, loss, x, z, length, counted);
    MESSAGE(std::string(name) << ": " << counted.smooth << " derivatives, " << counted.kinks << " kinks");
    CHECK(counted.smooth > 0);
}

} // namespace nn_test
