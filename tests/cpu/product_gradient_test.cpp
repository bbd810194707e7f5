#include <support/settings_guard.hpp>

#include <tapegraph/ops/cumulative/cpu_product_gradient.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace product_gradient_test {

/// The gradient of products by lanes against the same line by line, with numbers of any exponent: bit for bit, for each instruction set and
/// any number of threads. tests/ops/product_derivatives_test.cpp says that the numbers are right.

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

enum class numbers { ordinary, all_sizes, zeros, infinite, large, small, smallest, count };

template <class T>
std::vector<T> drawn(std::size_t count, numbers kind, std::mt19937& random) {
    std::normal_distribution<double> normal;
    constexpr int most = std::numeric_limits<T>::max_exponent;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<T> x(count);
    for (T& each : x) {
        double v = normal(random);
        const auto which = static_cast<int>(random() % 40);
        switch (kind) {
        case numbers::all_sizes: v = std::ldexp(v, static_cast<int>(random() % (2 * most)) - most); break;
        case numbers::zeros: v = which < 4 ? 0 : which < 8 ? -0.0 : which < 10 ? 1e-320 : which < 12 ? 1e30 : v; break;
        case numbers::infinite: v = which == 0 ? infinity : which == 1 ? std::nan("") : which == 2 ? 0 : v; break;
        case numbers::large: v = std::ldexp(v, most / 2); break;
        case numbers::small: v = std::ldexp(v, -most / 2); break;
        case numbers::smallest: v = std::ldexp(v, -most - 12); break; // subnormal
        default: break;
        }
        each = static_cast<T>(v);
    }
    return x;
}

struct lines {
    std::int64_t count, apart, length, step; ///< of lines and elements, and how they lie in memory
};

template <class T>
std::vector<T> line_by_line(const lines& l, bool total, bool reverse, bool exclusive, const std::vector<T>& dy,
                            const std::vector<T>& x) {
    std::vector<T> result(x.size());
    std::vector<tg::detail::product_terms<0>> kept(static_cast<std::size_t>(tg::detail::kept_places(l.length)));
    for (std::int64_t u = 0; u < l.count; ++u) {
        const auto offset = [&](std::int64_t j) { return (reverse ? l.length - 1 - j : j) * l.step; };
        const tg::detail::product_operands<T, decltype(offset)> p{x.data() + u * l.apart, {}, l.length, offset};
        tg::detail::gradient_of_products(p, dy.data() + (total ? u : u * l.apart), total, exclusive, kept.data(),
                                         result.data() + u * l.apart);
    }
    return result;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) // NaN may have any bits
        if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0 && !(a[i] != a[i] && b[i] != b[i])) return false;
    return a.size() == b.size();
}

} // namespace

TEST_CASE_TEMPLATE("lanes have the bits of lines, whatever the numbers' sizes", T, float, double) {
    const support::settings_guard guard;
    std::mt19937 random(7);
    // Rows and columns; fewer than lanes, more, and no multiples of them; of one block, part of one, several.
    for (const lines& l : {lines{1, 1, 1, 1},
                           {1, 31, 31, 1},
                           {1, 1000, 1000, 1},
                           {37, 70, 70, 1},
                           {64, 1, 40, 64},
                           {37, 1, 70, 37},
                           {5, 1, 7, 5},
                           {2, 96, 96, 1},
                           {300, 64, 64, 1},
                           {3, 0, 0, 1}})
        for (const int way : {0, 1, 2, 3, 4}) // total, or running products by direction and exclusion
            for (int kind = 0; kind < static_cast<int>(numbers::count); ++kind) {
                CAPTURE(l.count);
                CAPTURE(l.length);
                CAPTURE(way);
                CAPTURE(kind);
                const bool total = way == 0, reverse = way > 2, exclusive = way % 2 == 0 && !total;
                const auto count = static_cast<std::size_t>(l.count * l.length);
                const auto x = drawn<T>(count, static_cast<numbers>(kind), random);
                const auto dy =
                    drawn<T>(total ? static_cast<std::size_t>(l.count) : count, static_cast<numbers>(kind), random);
                const auto wanted = line_by_line(l, total, reverse, exclusive, dy, x);
                cpu::product_gradient<T> by_lanes{{}, {}, total, reverse, exclusive};
                by_lanes.outer.add(l.count, l.apart);
                by_lanes.along.add(l.length, l.step);
                std::vector<std::byte> workspace(by_lanes.workspace_bytes());
                for (auto set :
                     {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
                    for (const int threads : {1, 2}) {
                        cpu::set_instruction_set(set);
                        tg::set_thread_count(threads);
                        std::vector<T> got(count, T(-77));
                        by_lanes.run(dy.data(), x.data(), workspace.data(), got.data());
                        CHECK(same(got, wanted));
                    }
            }
}

TEST_CASE("a line over two axes that are no neighbours") {
    // x [2, 3, 40], along the first and the last axis.
    std::mt19937 random(3);
    const auto x = drawn<float>(240, numbers::ordinary, random), dy = drawn<float>(3, numbers::ordinary, random);
    cpu::product_gradient<float> by_lanes{{}, {}, true, false, false};
    by_lanes.outer.add(3, 40);
    by_lanes.along.add(2, 120);
    by_lanes.along.add(40, 1);
    std::vector<std::byte> workspace(by_lanes.workspace_bytes());
    std::vector<float> got(240), wanted(240);
    by_lanes.run(dy.data(), x.data(), workspace.data(), got.data());
    tg::detail::product_terms<0> kept[2];
    for (std::int64_t u = 0; u < 3; ++u) {
        const auto offset = [](std::int64_t j) { return j / 40 * 120 + j % 40; };
        const tg::detail::product_operands<float, decltype(offset)> p{x.data() + u * 40, {}, 80, offset};
        tg::detail::gradient_of_products(p, dy.data() + u, true, false, kept, wanted.data() + u * 40);
    }
    CHECK(same(got, wanted));
}

} // namespace product_gradient_test
