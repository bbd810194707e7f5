#include <tapegraph/cpu/gemm.hpp>

#include <support/poisoned.hpp>
#include <support/sums_in_order.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

/// The order in which products add. For each number of c: blocks of k, as long as each other and at most 512, each summed from its
/// first product to its last, are added one after the other. So a row has the same bits whatever m is, however operands are
/// stored, whoever packs them, and however many threads share the work; the shapes here lie on both sides of each limit at which
/// cpu/gemm_plan.hpp changes its way.

namespace gemm_blocks_test {

namespace cpu = tapegraph::cpu;
using support::added;
using support::numbers_that_round;
using support::poisoned;

namespace {

constexpr std::int64_t rows = 4200;
constexpr std::int64_t checked[] = {0, 1, 2, 7, 10, 23, 24, 95, 96, 159, 160, 256, 299, 520, 4199};

template <class T>
struct matrices {
    std::int64_t n, k;
    std::vector<T> a = numbers_that_round<T>(rows * k, 1), b = numbers_that_round<T>(k * n, 2), at = turned(a, rows, k),
                   bt = turned(b, k, n);
    std::vector<T> wanted[2]{}; // the checked rows, unfused and fused

    static std::vector<T> turned(const std::vector<T>& from, std::int64_t height, std::int64_t width) {
        std::vector<T> to(from.size());
        for (std::int64_t i = 0; i < height; ++i)
            for (std::int64_t j = 0; j < width; ++j)
                to[static_cast<std::size_t>(j * height + i)] = from[static_cast<std::size_t>(i * width + j)];
        return to;
    }
    const std::vector<T>& reference(bool fused) {
        auto& to = wanted[fused];
        if (!to.empty()) return to;
        const std::int64_t blocks = (k + 511) / 512, block = (k + blocks - 1) / blocks;
        for (const std::int64_t r : checked)
            for (std::int64_t j = 0; j < n; ++j) {
                T all = 0;
                for (std::int64_t first = 0; first < k; first += block) {
                    T sum = 0;
                    for (std::int64_t i = first; i < std::min(k, first + block); ++i)
                        sum = added(sum, a[static_cast<std::size_t>(r * k + i)], b[static_cast<std::size_t>(i * n + j)],
                                    fused);
                    all = first == 0 ? sum : sum + all;
                }
                to.push_back(all);
            }
        return to;
    }

    void check(std::int64_t m, bool transpose_a, bool transpose_b, bool packed, bool fused) {
        std::vector<T> c(static_cast<std::size_t>(m * n));
        // A transposed a keeps its long rows, of which a product with few rows reads the first.
        cpu::gemm_arguments<T> g{m,
                                 n,
                                 k,
                                 transpose_a ? at.data() : a.data(),
                                 transpose_a ? rows : k,
                                 transpose_a,
                                 transpose_b ? bt.data() : b.data(),
                                 transpose_b ? k : n,
                                 transpose_b,
                                 c.data(),
                                 n};
        poisoned copy(cpu::gemm_packed_bytes<T>(n, k));
        if (packed) {
            cpu::gemm_pack_b(g, static_cast<T*>(copy.get()));
            g.packed_b = static_cast<const T*>(copy.get());
            g.b = nullptr;
        }
        poisoned workspace(cpu::gemm_workspace_bytes(g, tapegraph::thread_count()));
        cpu::gemm(g, workspace.get());
        const auto& want = reference(fused);
        std::int64_t wrong = 0, at_row = 0;
        for (const std::int64_t r : checked) {
            for (std::int64_t j = 0; j < n && r < m; ++j)
                wrong += c[static_cast<std::size_t>(r * n + j)] != want[static_cast<std::size_t>(at_row * n + j)];
            ++at_row;
        }
        INFO(m << " x " << n << " x " << k << ", transposed " << transpose_a << " " << transpose_b << ", packed "
               << packed);
        CHECK(wrong == 0);
    }
};

/// Calls f(fused) for each instruction set that this processor has, on one and two threads.
template <class F>
void everywhere(const F& f) {
    support::each_set([&](bool fused) {
        for (const int threads : {1, 2}) {
            tapegraph::set_thread_count(threads);
            INFO("threads " << threads);
            f(fused);
        }
    });
    tapegraph::set_thread_count(0);
}

} // namespace

TEST_CASE_TEMPLATE("gemm: sums have one order, whatever the shape, the storage and the threads", T, float, double) {
    struct {
        std::int64_t n, k;
    } const sizes[] = {
        {31, 1030}, {130, 512}, {530, 513}, {1100, 70}, {1024, 1024},
        {7, 1030},  {12, 70},   {13, 127},  {24, 600}}; // few columns, with a transposed a the other way round
    for (const auto& [n, k] : sizes) {
        matrices<T> all{n, k};
        everywhere([&](bool fused) {
            for (const std::int64_t m : {2, 11, 24, 25, 97, 161, 257, 300, 521, 4200}) {
                if (m == 4200 && k != 513) continue; // two blocks of rows of a, packed, and of columns
                if (n * k > 500000 && m != 11 && m != 161 && m != 300 && m != 521) continue;
                for (const int form : {0, 1, 2, 3, 4}) all.check(m, (form & 1) != 0, (form & 2) != 0, form == 4, fused);
            }
        });
    }
}

// With a transposed b: 64 bytes of columns at a time, the last beside some before them or copies of them; as much of k
// at a time as half a vector has, and what is left of it.
TEST_CASE_TEMPLATE("gemm: sums of few rows have the same order", T, float, double) {
    struct {
        std::int64_t n, k;
    } const sizes[] = {{2, 9}, {7, 45}, {15, 3}, {16, 4}, {17, 8}, {31, 515}, {33, 71}, {37, 1027}};
    for (const auto& [n, k] : sizes) {
        matrices<T> all{n, k};
        everywhere([&](bool fused) {
            for (const std::int64_t m : {2, 3, 4, 7, 8, 9, 15, 16, 17})
                for (const int form : {0, 2, 4}) all.check(m, false, form == 2, form == 4, fused);
        });
    }
}

TEST_CASE("gemm_batched: the products of a batch have workspace for one thread each") {
    // Few rows, whose sums wait.
    const std::int64_t m = 5, n = 1030, k = 300, batch = 3;
    const auto a = numbers_that_round<float>(m * k * batch, 1), b = numbers_that_round<float>(k * n, 2);
    std::vector<float> want(static_cast<std::size_t>(m * n * batch)), got = want;
    everywhere([&](bool) {
        cpu::gemm_arguments<float> g{m, n, k, a.data(), k, false, b.data(), n, false, want.data(), n};
        poisoned alone(cpu::gemm_workspace_bytes(g, 1));
        const int threads = tapegraph::thread_count();
        tapegraph::set_thread_count(1);
        for (std::int64_t i = 0; i < batch; ++i, g.a += m * k, g.c += m * n) cpu::gemm(g, alone.get());
        tapegraph::set_thread_count(threads);
        g.a = a.data(), g.c = got.data();
        poisoned workspace(cpu::gemm_batched_workspace_bytes(g, batch, threads));
        cpu::gemm_batched(g, batch, m * k, 0, m * n, workspace.get());
        CHECK(got == want);
    });
}

} // namespace gemm_blocks_test
