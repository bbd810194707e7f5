#include <cuda/device_array.hpp>

#include <cuda/reduction_cases.hpp>

#include <doctest/doctest.h>

namespace result_sum_test {

/// Sums of one of several results, and the kernel that computes them for rows and columns.

namespace {

using namespace tapegraph;
using namespace cuda_test;

constexpr dtype f32 = dtype::f32, f64 = dtype::f64, bf16 = dtype::bf16;

} // namespace

TEST_CASE("reductions: the sum of one of several results, which is chosen when the kernel runs") {
    // The gradients with respect to x, mean, factor, shift and mean again for dy and (x - mean) *
    // factor + shift.
    using normalized = region<slots<f32, f32, f32, f32>, results<5, 6, 7, 0, 6>, instruction<subtract_op, f32, 1, 2>,
                              instruction<multiply_op, f32, 0, 3>, instruction<negate_op, f32, 5>,
                              instruction<multiply_op, f32, 0, 4>>;
    using of_three_types = region<slots<f32, f64>, results<2, 0, 3, 4>, instruction<cast_op<bfloat16>, bf16, 0>,
                                  instruction<cast_op<double>, f64, 0>, instruction<multiply_op, f64, 3, 1>>;
    const auto numbers = [](const extents& e, auto example, unsigned seed) {
        std::vector<decltype(example)> v(static_cast<std::size_t>(cuda_test::size_of(e)));
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = whole(static_cast<unsigned>(i) + seed);
        return v;
    };
    // value(i) is the wanted result at element i of the domain.
    const auto checked = [&](const reduction_case& r, int wanted, auto example, const auto& operands, const auto& value,
                             auto sums) {
        using T = decltype(example);
        std::vector<double> want(static_cast<std::size_t>(cuda_test::size_of(r.kept())));
        const auto elements = static_cast<std::size_t>(cuda_test::size_of(r.domain));
        for (std::size_t i = 0; i < elements; ++i) {
            std::size_t rest = i, at = 0, stride = 1;
            for (std::size_t a = r.domain.size(); a-- > 0;) {
                const auto extent = static_cast<std::size_t>(r.domain[a]), place = rest % extent;
                rest /= extent;
                if ((r.axes >> a & 1) != 0) continue;
                at += place * stride;
                stride *= extent;
            }
            want[at] += value(i);
        }
        on_device::in_orders([&] {
            device_call c;
            operands(c);
            c.template out<T>(r.kept()).domain(r.domain).attributes(reduce_op::attributes{r.axes, wanted});
            c.workspace(decltype(sums)::workspace(c.call));
            c.on_device([&](const kernel_call& call) { decltype(sums)::run(call, 100); });
            const std::vector<T> got = c.template result<T>();
            REQUIRE(got.size() == want.size());
            for (std::size_t k = 0; k < got.size(); ++k) CHECK(got[k] == static_cast<T>(static_cast<float>(want[k])));
        });
    };
    for (const reduction_case& r : {reduction_case{{0}, 1},
                                    {{3, 0}, 2},
                                    {{0, 3}, 2},
                                    {{1}, 1},
                                    {{5, 7}, 0},
                                    {{5, 7}, 3},
                                    {{19, 128}, 2},
                                    {{2, 1201}, 2},
                                    {{301, 8}, 1},
                                    {{6001, 3}, 1},
                                    {{3, 4, 5, 6}, 5},
                                    {{3, 4, 5, 6}, 10}}) {
        INFO(r.text());
        const extents inner{r.domain.back()};
        const auto dy = numbers(r.domain, float(), 1), x = numbers(r.domain, float(), 2);
        const auto mean = numbers(inner, float(), 3), factor = numbers(inner, float(), 4);
        const auto operands = [&](device_call& c) {
            c.in<float>(r.domain, dy).in<float>(r.domain, x).in<float>(inner, mean).in<float>(inner, factor);
        };
        for (int wanted = 0; wanted < 5; ++wanted)
            checked(
                r, wanted, float(), operands,
                [&](std::size_t i) {
                    const std::size_t j = i % mean.size();
                    const double by_x = dy[i] * factor[j];
                    return wanted == 0 ? by_x : wanted == 2 ? dy[i] * (x[i] - mean[j]) : wanted == 3 ? dy[i] : -by_x;
                },
                cuda::result_sum<normalized>{});
        const auto w = numbers(inner, double(), 5);
        const auto both = [&](device_call& c) { c.in<float>(r.domain, dy).in<double>(inner, w); };
        const auto value = [&](std::size_t i) { return static_cast<double>(dy[i]); };
        checked(r, 0, bfloat16(), both, value, cuda::result_sum<of_three_types>{});
        checked(r, 1, float(), both, value, cuda::result_sum<of_three_types>{});
        checked(r, 2, double(), both, value, cuda::result_sum<of_three_types>{});
        checked(
            r, 3, double(), both, [&](std::size_t i) { return value(i) * w[i % w.size()]; },
            cuda::result_sum<of_three_types>{});
    }
}

TEST_CASE("reductions: the kernel for both shapes adds in the order of the kernels for one") {
    using doubled = region<slots<f32, f32>, results<2>, instruction<multiply_op, f32, 0, 1>>;
    using of_one_shape = cuda::detail::fused_reduction<sum_op, doubled, float>;
    using of_both = cuda::detail::fused_reduction<sum_op, doubled, float, cuda::kernels::compact_source<doubled>>;
    for (const reduction_case& r : reduction_cases) {
        INFO(r.text());
        const auto prepare = [&](device_call& c) {
            extents inner = r.domain;
            if (!inner.empty()) inner.front() = 1;
            c.in<float>(r.domain, 1).in<float>(inner, 2).out<float>(r.kept()).domain(r.domain);
            c.attributes(reduce_op::attributes{r.axes, 0});
        };
        device_call one;
        run_device<of_one_shape>(one, prepare, 100);
        on_device::in_orders([&] {
            device_call both;
            run_device<of_both>(both, prepare, 3);
            CHECK(both.result<float>() == one.result<float>());
        });
    }
}

} // namespace result_sum_test
