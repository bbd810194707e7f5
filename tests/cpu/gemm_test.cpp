#include <tapegraph/cpu/gemm.hpp>

#include <support/poisoned.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace gemm_test {

using support::poisoned;

namespace {

namespace cpu = tapegraph::cpu;

// Small integers: every sum is exact in float, whatever its order, so results compare exactly.
template <class T>
std::vector<T> integers(std::size_t n, unsigned seed) {
    std::vector<T> values(n);
    for (auto& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<T>(static_cast<int>(seed >> 28) - 8);
    }
    return values;
}

struct shape {
    std::int64_t m, n, k;
};

template <class T>
void check(const shape& s, bool transpose_a, bool transpose_b, bool accumulate, std::int64_t extra,
           std::int64_t batch = 1) {
    const std::int64_t lda = (transpose_a ? s.m : s.k) + extra, ldb = (transpose_b ? s.k : s.n) + extra;
    const std::int64_t ldc = s.n + extra;
    const std::int64_t size_a = (transpose_a ? s.k : s.m) * lda, size_b = (transpose_b ? s.n : s.k) * ldb;
    const std::int64_t size_c = s.m * ldc;
    const auto a = integers<T>(static_cast<std::size_t>(size_a * batch), 1);
    const auto b = integers<T>(static_cast<std::size_t>(size_b * batch), 2);
    auto c = integers<T>(static_cast<std::size_t>(size_c * batch), 3);
    const auto before = c;
    if (!accumulate)
        for (auto& value : c) value = std::numeric_limits<T>::quiet_NaN();
    cpu::gemm_arguments<T> g{s.m,      s.n, s.k,         a.data(), lda, transpose_a,
                             b.data(), ldb, transpose_b, c.data(), ldc, accumulate};
    const int threads = tapegraph::thread_count();
    std::int64_t packed_wrong = 0;
    if (batch == 1) {
        poisoned workspace(cpu::gemm_workspace_bytes(g, threads));
        cpu::gemm(g, workspace.get());
        if (transpose_a == transpose_b && s.m > 1 && s.n > 1) {
            auto packed_c = before;
            poisoned packed(cpu::gemm_packed_bytes<T>(s.n, s.k));
            cpu::gemm_pack_b(g, static_cast<T*>(packed.get()));
            auto with_packed = g;
            with_packed.b = nullptr;
            with_packed.c = packed_c.data();
            with_packed.packed_b = static_cast<const T*>(packed.get());
            poisoned smaller(cpu::gemm_workspace_bytes(with_packed, threads));
            cpu::gemm(with_packed, smaller.get());
            for (std::size_t i = 0; i < c.size(); ++i)
                if (!(packed_c[i] == c[i] || std::isnan(c[i]))) ++packed_wrong;
        }
    } else {
        poisoned workspace(cpu::gemm_batched_workspace_bytes(g, batch, threads));
        cpu::gemm_batched(g, batch, size_a, size_b, size_c, workspace.get());
    }
    std::int64_t wrong = 0;
    for (std::int64_t q = 0; q < batch; ++q)
        for (std::int64_t i = 0; i < s.m; ++i)
            for (std::int64_t j = 0; j < ldc; ++j) {
                const auto at = static_cast<std::size_t>(q * size_c + i * ldc + j);
                if (j >= s.n) { // between rows nothing may be written
                    wrong += accumulate ? c[at] != before[at] : !std::isnan(c[at]);
                    continue;
                }
                double sum = accumulate ? static_cast<double>(before[at]) : 0;
                for (std::int64_t k = 0; k < s.k; ++k) {
                    const std::int64_t in_a = q * size_a + (transpose_a ? k * lda + i : i * lda + k);
                    const std::int64_t in_b = q * size_b + (transpose_b ? j * ldb + k : k * ldb + j);
                    sum += static_cast<double>(a[static_cast<std::size_t>(in_a)]) *
                           static_cast<double>(b[static_cast<std::size_t>(in_b)]);
                }
                wrong += static_cast<double>(c[at]) != sum;
            }
    CAPTURE(s.m);
    CAPTURE(s.n);
    CAPTURE(s.k);
    CAPTURE(transpose_a);
    CAPTURE(transpose_b);
    CAPTURE(accumulate);
    CAPTURE(batch);
    CAPTURE(static_cast<int>(cpu::active_instruction_set()));
    CHECK(wrong == 0);
    CHECK(packed_wrong == 0);
}

/// Runs `f` under every instruction set the processor has, on one and two threads.
template <class F>
void everywhere(const F& f) {
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        if (cpu::active_instruction_set() != set) continue;
        for (const int threads : {1, 2}) {
            tapegraph::set_thread_count(threads);
            f();
        }
    }
    tapegraph::set_thread_count(0);
    cpu::set_instruction_set(cpu::supported_instruction_set());
}

template <class T>
void check_all() {
    const shape shapes[] = {{0, 3, 2},   {3, 0, 2},    {3, 4, 0},      {1, 1, 1},     {1, 37, 5},   {1, 300, 67},
                            {41, 1, 7},  {130, 1, 77}, {2, 2, 2},      {3, 17, 5},    {12, 32, 16}, {13, 33, 31},
                            {7, 130, 3}, {32, 97, 61}, {97, 101, 103}, {25, 65, 400}, {3, 2000, 1}, {1, 1, 1000}};
    everywhere([&] {
        for (const auto& s : shapes)
            for (const int choice : {0, 1, 2, 3, 4, 5, 6, 7})
                check<T>(s, (choice & 1) != 0, (choice & 2) != 0, (choice & 4) != 0,
                         choice == 0 || choice == 7 ? 0 : 3);
    });
}

} // namespace

TEST_CASE("gemm: transposes, accumulation and row lengths, float") { check_all<float>(); }
TEST_CASE("gemm: transposes, accumulation and row lengths, double") { check_all<double>(); }

TEST_CASE("gemm: several blocks of rows, columns and k") {
    everywhere([] {
        check<float>({1600, 19, 9}, false, false, false, 0);
        check<float>({9, 4200, 13}, false, true, true, 1);
        check<float>({100, 110, 2100}, true, false, true, 0);
        check<float>({37, 70, 4200}, true, false, true, 0);
        check<float>({100, 110, 1030}, false, false, false, 2);
        check<float>({13, 4150, 1030}, true, true, true, 0);
        check<double>({20, 50, 1500}, false, false, true, 0);
        check<float>({50, 20, 256}, false, false, false, 256);
        check<float>({5, 1030, 70}, false, false, false,
                     0); // few rows: b is read where it lies, but for its last panel
        check<float>({4, 770, 1030}, false, false, true, 0);
        check<double>({3, 515, 40}, true, false, false, 0);
        check<float>({131, 137, 150}, true, false, false, 0); // columns of a are packed for tiles of few rows
    });
}

TEST_CASE("gemm: a workspace planned with one instruction set is enough for all") {
    std::vector<std::size_t> bytes;
    everywhere([&] {
        cpu::gemm_arguments<float> g{};
        g.m = 131, g.n = 137, g.k = 150, g.lda = 131, g.transpose_a = true, g.ldb = 137, g.ldc = 137;
        bytes.push_back(cpu::gemm_workspace_bytes(g, 2));
    });
    for (const std::size_t b : bytes) CHECK(b == bytes.front());
}

TEST_CASE("gemm_batched: strides between products") {
    everywhere([] {
        for (const std::int64_t batch : {0, 1, 2, 3, 17}) {
            check<float>({5, 7, 3}, false, true, false, 1, batch);
            check<double>({13, 40, 30}, true, false, true, 0, batch);
        }
        check<float>({100, 130, 40}, false, false, false, 0, 3);
    });
}

namespace {

/// relu(C + A B + bias) as it leaves the kernel, and by the product alone followed by two passes: the same bits, of numbers
/// whose sums round.
template <class T>
void check_epilogue(const shape& s, bool transpose_a, bool transpose_b, bool accumulate, bool with_bias, bool relu,
                    std::int64_t batch) {
    const std::int64_t lda = (transpose_a ? s.m : s.k) + 1, ldb = transpose_b ? s.k : s.n, ldc = s.n + 2;
    const std::int64_t size_a = (transpose_a ? s.k : s.m) * lda, size_b = (transpose_b ? s.n : s.k) * ldb;
    const auto uneven = [](std::int64_t n, unsigned seed) {
        auto v = integers<T>(static_cast<std::size_t>(n), seed);
        for (auto& value : v) value *= T(0.1);
        return v;
    };
    const auto a = uneven(size_a * batch, 1), b = uneven(size_b * batch, 2), bias = uneven(s.n, 4);
    auto got = uneven(s.m * ldc * batch, 3), want = got;
    cpu::gemm_arguments<T> g{s.m,      s.n, s.k,         a.data(),    lda, transpose_a,
                             b.data(), ldb, transpose_b, want.data(), ldc, accumulate};
    poisoned workspace(cpu::gemm_batched_workspace_bytes(g, batch, tapegraph::thread_count()));
    cpu::gemm_batched(g, batch, size_a, size_b, s.m * ldc, workspace.get());
    for (std::int64_t q = 0; q < batch * s.m; ++q)
        for (std::int64_t j = 0; j < s.n; ++j) {
            T& c = want[static_cast<std::size_t>(q * ldc + j)];
            if (with_bias) c += bias[static_cast<std::size_t>(j)];
            if (relu) c = c > T(0) ? c : T(0);
        }
    g.c = got.data();
    if (with_bias) g.bias = bias.data();
    g.relu = relu;
    cpu::gemm_batched(g, batch, size_a, size_b, s.m * ldc, workspace.get());
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += std::memcmp(&got[i], &want[i], sizeof(T)) != 0;
    CAPTURE(s.m);
    CAPTURE(s.n);
    CAPTURE(s.k);
    CAPTURE(relu);
    CAPTURE(batch);
    CHECK(wrong == 0);
}

} // namespace

TEST_CASE_TEMPLATE("gemm: bias and relu on the way out", T, float, double) {
    everywhere([] {
        for (const shape& s : {shape{0, 3, 2},
                               {3, 0, 2},
                               {3, 4, 0},
                               {1, 1, 1},
                               {1, 37, 5},
                               {41, 1, 7},
                               {2, 2, 2},
                               {12, 32, 16},
                               {13, 33, 31},
                               {97, 101, 103}})
            for (const int choice : {0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 23, 29})
                check_epilogue<T>(s, (choice & 8) != 0, (choice & 16) != 0, (choice & 4) != 0, (choice & 1) != 0,
                                  (choice & 2) != 0, choice == 3 || choice == 7 ? 5 : 1);
        // Several blocks of k, n and m: the bias is added once.
        check_epilogue<T>({40, 35, 2100}, false, false, false, true, true, 1);
        check_epilogue<T>({5, 35, 2100}, false, true, true, true, true, 1);
        check_epilogue<T>({40, 4130, 1030}, false, true, true, true, false, 1);
        check_epilogue<T>({1600, 19, 9}, true, false, false, true, true, 1);
    });
}

TEST_CASE("gemm: relu on the way out keeps NaN, and gives no negative zero") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    everywhere([&] {
        for (const std::int64_t m : {1, 3}) {
            const std::vector<float> a(static_cast<std::size_t>(m), 1), b{nan, -1, 2, -0.0f, 1},
                bias{0, 0, 0, -0.0f, -1};
            std::vector<float> c(static_cast<std::size_t>(m * 5), 7);
            cpu::gemm_arguments<float> g{m, 5, 1, a.data(), 1, false, b.data(), 5, false, c.data(), 5};
            g.bias = bias.data(), g.relu = true;
            poisoned workspace(cpu::gemm_workspace_bytes(g, tapegraph::thread_count()));
            cpu::gemm(g, workspace.get());
            for (std::size_t row = 0; row < c.size(); row += 5) {
                CHECK(std::isnan(c[row]));
                CHECK(c[row + 2] == 2);
                for (const std::size_t zero : {1, 3, 4}) CHECK((c[row + zero] == 0 && !std::signbit(c[row + zero])));
            }
        }
    });
}

TEST_CASE("gemm: the same bits on any number of threads, and however the operands lie") {
    // The long sum is added up in other pieces.
    for (const shape& s : {shape{200, 210, 300}, {130, 210, 701}, {70, 97, 4300}}) {
        const auto a = integers<float>(static_cast<std::size_t>(s.m * s.k), 5);
        auto b = integers<float>(static_cast<std::size_t>(s.k * s.n), 6);
        for (auto& value : b) value *= 0.1f;
        const auto turned = [](const std::vector<float>& from, std::int64_t rows, std::int64_t columns) {
            std::vector<float> to(from.size());
            for (std::int64_t i = 0; i < rows * columns; ++i)
                to[static_cast<std::size_t>(i % columns * rows + i / columns)] = from[static_cast<std::size_t>(i)];
            return to;
        };
        const auto a_turned = turned(a, s.m, s.k), b_turned = turned(b, s.k, s.n);
        std::vector<float> first;
        for (const int way : {0, 1, 2, 3, 4}) { // bit 0: a transposed, bit 1: b; 4: b packed
            const bool turn_a = (way & 1) != 0, turn_b = (way & 2) != 0;
            std::vector<float> c(static_cast<std::size_t>(s.m * s.n));
            cpu::gemm_arguments<float> g{s.m,
                                         s.n,
                                         s.k,
                                         turn_a ? a_turned.data() : a.data(),
                                         turn_a ? s.m : s.k,
                                         turn_a,
                                         turn_b ? b_turned.data() : b.data(),
                                         turn_b ? s.k : s.n,
                                         turn_b,
                                         c.data(),
                                         s.n};
            poisoned packed(cpu::gemm_packed_bytes<float>(s.n, s.k));
            cpu::gemm_pack_b(g, static_cast<float*>(packed.get()));
            if (way == 4) g.packed_b = static_cast<const float*>(packed.get());
            for (const int threads : {1, 2, 9}) {
                tapegraph::set_thread_count(threads);
                poisoned workspace(cpu::gemm_workspace_bytes(g, threads));
                cpu::gemm(g, workspace.get());
                if (first.empty()) first = c;
                CAPTURE(way);
                CAPTURE(threads);
                CHECK(c == first);
            }
        }
        tapegraph::set_thread_count(0);
    }
}

TEST_CASE_TEMPLATE("gemm: few rows, whose second factor is read in parts, have the bits of many", T, float, double) {
    constexpr std::int64_t many = 100;
    // Panels that are whole and that are not; k of a part, of several, and of several blocks; more than one block of columns.
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{77, 40}, {32, 1030}, {600, 2500}, {4130, 70}}) {
        auto a = integers<T>(static_cast<std::size_t>(many * k), 5),
             b = integers<T>(static_cast<std::size_t>(k * n), 6);
        for (auto* values : {&a, &b})
            for (T& value : *values) value *= T(0.1);
        const auto bias = integers<T>(static_cast<std::size_t>(n), 7),
                   before = integers<T>(static_cast<std::size_t>(many * n), 8);
        for (const bool added : {false, true}) {
            const auto product = [&](std::int64_t m, int threads) {
                tapegraph::set_thread_count(threads);
                std::vector<T> c = before;
                cpu::gemm_arguments<T> g{m, n, k, a.data(), k, false, b.data(), n, false, c.data(), n};
                if (added) g.accumulate = true, g.bias = bias.data(), g.relu = true;
                poisoned workspace(cpu::gemm_workspace_bytes(g, threads));
                cpu::gemm(g, workspace.get());
                c.resize(static_cast<std::size_t>(m * n));
                return c;
            };
            const std::vector<T> all = product(many, 1);
            for (const std::int64_t m : {2, 7, 12, 13, 24, 25})
                for (const int threads : {1, 2, 5}) {
                    const std::vector<T> few = product(m, threads);
                    CAPTURE(m);
                    CAPTURE(n);
                    CAPTURE(k);
                    CAPTURE(added);
                    CHECK(std::equal(few.begin(), few.end(), all.begin()));
                }
        }
    }
    tapegraph::set_thread_count(0);
}

TEST_CASE("gemm: the workspace for many rows is enough for fewer") {
    for (const bool turn_b : {false, true})
        for (const std::int64_t n : {8, 64, 700})
            for (const int threads : {1, 4, 16}) {
                std::size_t last = 0;
                for (const std::int64_t m : {1, 2, 12, 24, 25, 96, 97, 256, 257, 2000}) {
                    cpu::gemm_arguments<float> g{};
                    g.m = m, g.n = n, g.k = 300;
                    g.lda = 300, g.ldb = turn_b ? 300 : n, g.ldc = n, g.transpose_b = turn_b;
                    const std::size_t bytes = cpu::gemm_workspace_bytes(g, threads);
                    CHECK(bytes >= last);
                    last = bytes;
                }
            }
}

} // namespace gemm_test
