#pragma once

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/ops/records/operations.hpp>
#include <tapegraph/runtime/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

/// Probabilities of classes from those of pairs of classes, as one operation: how many steps it takes depends on
/// values (T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability Estimates for Multi-class Classification by Pairwise
/// Coupling", 2004, algorithm 2).

namespace tapegraph::detail {

/// `pairs` has the probability of i against j in the order (0, 1), (0, 2), ..., (1, 2), ...; p becomes those of the
/// classes. They minimize p^T Q p, one after the other, until the error is at most 0.005 / classes, as libsvm and
/// onnxruntime stop.
template <class T>
void couple(const T* pairs, std::int64_t classes, std::vector<T>& work, T* p) {
    constexpr int most_steps = 100;
    const auto n = static_cast<std::size_t>(classes);
    const T close = T(0.005) / static_cast<T>(classes);
    work.assign(2 * n * n + n, T(0));
    T *const r = work.data(), *const q = r + n * n, *const qp = q + n * n;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i + 1; j < n; ++j, ++pairs) r[i * n + j] = *pairs, r[j * n + i] = 1 - *pairs;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
            if (i != j) q[i * n + i] += r[j * n + i] * r[j * n + i], q[i * n + j] = -r[j * n + i] * r[i * n + j];
    for (std::size_t i = 0; i < n; ++i) p[i] = 1 / static_cast<T>(classes);
    for (int step = 0; step < most_steps; ++step) {
        T pqp = 0, error = 0;
        for (std::size_t i = 0; i < n; ++i) {
            qp[i] = 0;
            for (std::size_t j = 0; j < n; ++j) qp[i] += q[i * n + j] * p[j];
            pqp += p[i] * qp[i];
        }
        for (std::size_t i = 0; i < n; ++i) error = std::max(error, std::fabs(qp[i] - pqp));
        if (error < close) break;
        for (std::size_t i = 0; i < n; ++i) {
            const T step_of_i = (pqp - qp[i]) / q[i * n + i], sum = 1 + step_of_i;
            p[i] += step_of_i;
            pqp = (pqp + step_of_i * (step_of_i * q[i * n + i] + 2 * qp[i])) / sum / sum;
            for (std::size_t j = 0; j < n; ++j) qp[j] = (qp[j] + step_of_i * q[i * n + j]) / sum, p[j] /= sum;
        }
    }
}

} // namespace tapegraph::detail

template <class T>
    requires std::is_same_v<T, float> || std::is_same_v<T, double>
struct tapegraph::runtime::kernel<tapegraph::couple_pairs_op, T> {
    static void run(const kernel_call& c) {
        constexpr std::int64_t together = 64;
        const std::int64_t records = c.in[0].extents[0], pairs = c.in[0].extents[1], classes = c.out[0].extents[1];
        const std::int64_t tasks = (records + together - 1) / together;
        cpu::parallel_for(tasks, records * pairs > 4096, [&](std::int64_t task) {
            std::vector<T> work;
            for (std::int64_t i = task * together; i < std::min(records, (task + 1) * together); ++i)
                tapegraph::detail::couple(c.in[0].as<const T>() + i * pairs, classes, work,
                                          c.out[0].as<T>() + i * classes);
        });
    }
};
