#include <tapegraph/ops/attention/cpu_gradient.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

namespace attention_kernel_test {

/// Kernels of attention: the same bits on any number of threads, both ways to share out the derivative, and accuracy
/// against long double at shapes that do not fill tiles.

using namespace tapegraph;

namespace {

template <class T>
struct results {
    std::vector<T> y, numbers, dq, dk, dv;
    bool operator==(const results&) const = default;
};

template <class T>
struct problem {
    cpu::attention_shape s;
    std::vector<T> q, k, v, dy, bias;

    explicit problem(const cpu::attention_shape& shape) : s(shape) {
        std::mt19937 engine(7);
        std::normal_distribution<double> normal;
        const auto made = [&](std::int64_t count) {
            std::vector<T> x(static_cast<std::size_t>(count));
            for (T& each : x) each = static_cast<T>(normal(engine));
            return x;
        };
        q = made(s.batch * s.time * s.heads * s.depth);
        k = made(s.batch * s.steps * s.kv_heads() * s.depth);
        v = made(s.batch * s.steps * s.kv_heads() * s.width);
        dy = made(s.results());
    }
    results<T> run() const {
        results<T> r{std::vector<T>(dy.size()),
                     std::vector<T>(static_cast<std::size_t>(2 * s.batch * s.heads * s.time)),
                     std::vector<T>(q.size(), T(-7)), std::vector<T>(k.size(), T(-7)), std::vector<T>(v.size(), T(-7))};
        const std::size_t bytes = std::max(cpu::attention_bytes<T>(s), cpu::attention_gradient_bytes<T>(s)) + 64;
        const std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(64, bytes / 64 * 64), &std::free);
        const cpu::attention_operands<T> of{q.data(), k.data(), v.data(), bias.data(), nullptr};
        cpu::attention(s, of, r.y.data(), r.numbers.data(), memory.get());
        cpu::attention_gradient<T>(s, of, r.y.data(), r.numbers.data(), dy.data(),
                                   {r.dq.data(), r.dk.data(), r.dv.data()}, memory.get());
        return r;
    }
    /// The largest distance of y from its definition.
    double error(const results<T>& r) const {
        double worst = 0;
        std::vector<long double> p(static_cast<std::size_t>(s.steps));
        for (std::int64_t i = 0; i < s.batch * s.time * s.heads; ++i) {
            const std::int64_t b = i / (s.time * s.heads), t = i / s.heads % s.time, g = i % s.heads / s.shared;
            const std::int64_t end = s.causal ? std::clamp<std::int64_t>(t + s.offset + 1, 0, s.steps) : s.steps;
            long double total = 0;
            const auto row = [&](std::int64_t j) { return (b * s.steps + j) * s.kv_heads() + g; };
            for (std::int64_t j = 0; j < end; ++j) {
                long double score = 0;
                for (std::int64_t c = 0; c < s.depth; ++c)
                    score += static_cast<long double>(q[static_cast<std::size_t>(i * s.depth + c)]) *
                             k[static_cast<std::size_t>(row(j) * s.depth + c)];
                total += p[static_cast<std::size_t>(j)] = std::exp(score * s.scale);
            }
            for (std::int64_t c = 0; c < s.width; ++c) {
                long double sum = 0;
                for (std::int64_t j = 0; j < end; ++j)
                    sum += p[static_cast<std::size_t>(j)] / total * v[static_cast<std::size_t>(row(j) * s.width + c)];
                worst = std::max(worst,
                                 static_cast<double>(std::abs(
                                     sum - static_cast<long double>(r.y[static_cast<std::size_t>(i * s.width + c)]))));
            }
        }
        return worst;
    }
};

} // namespace

TEST_CASE_TEMPLATE("attention: the same bits on any number of threads, and accuracy", T, float, double) {
    const auto made = [](std::int64_t batch, std::int64_t time, std::int64_t heads, std::int64_t shared,
                         std::int64_t steps, std::int64_t depth, std::int64_t width, bool causal = false,
                         std::int64_t offset = 0) {
        cpu::attention_shape s;
        s.batch = batch, s.time = time, s.heads = heads, s.shared = shared, s.steps = steps, s.depth = depth,
        s.width = width;
        s.causal = causal, s.offset = offset, s.scale = 1 / std::sqrt(static_cast<double>(depth));
        return s;
    };
    for (const auto& s : {made(1, 1, 1, 1, 1, 1, 1), made(1, 1, 4, 2, 300, 64, 64), made(2, 67, 3, 1, 131, 17, 33),
                          made(1, 129, 2, 2, 257, 64, 64), made(1, 200, 1, 1, 200, 8, 5, true),
                          made(1, 70, 2, 2, 300, 16, 16, true, 230), made(3, 65, 1, 1, 64, 32, 48, true),
                          made(1, 0, 2, 1, 5, 4, 3), made(0, 3, 2, 1, 5, 4, 3), made(2, 3, 0, 1, 5, 4, 3)}) {
        CAPTURE(s.time);
        CAPTURE(s.steps);
        const problem<T> p(s);
        const int before = cpu::detail::thread_setting();
        set_thread_count(1);
        const results<T> alone = p.run();
        for (const int threads : {2, 3, 7}) {
            set_thread_count(threads);
            CHECK(p.run() == alone);
        }
        set_thread_count(before);
        // Scores are sums of at most 64 products near 1 times 1/8, and err by some epsilons, which exponentials make
        // relative errors of weights.
        CHECK(p.error(alone) < 16 * std::numeric_limits<T>::epsilon());
    }
}

TEST_CASE_TEMPLATE("attention: blocks of queries, and of keys, that are taken side by side have the bits of each alone",
                   T, float, double) {
    // 18 blocks of 64 queries are more than one group; under the causal mask each sees another number of keys.
    cpu::attention_shape s;
    s.batch = 1, s.time = s.steps = 1091, s.heads = 1, s.depth = 4, s.width = 3, s.scale = 0.5;
    for (const bool causal : {false, true}) {
        CAPTURE(causal);
        s.causal = causal;
        problem<T> all(s);
        const int before = cpu::detail::thread_setting();
        set_thread_count(1);
        const results<T> together = all.run();
        for (std::int64_t first = 0; first < s.time; first += 64) {
            cpu::attention_shape part = s;
            part.time = std::min<std::int64_t>(64, s.time - first);
            part.offset = first;
            problem<T> alone(part);
            alone.k = all.k, alone.v = all.v;
            std::copy_n(all.q.begin() + first * s.depth, part.time * s.depth, alone.q.begin());
            const results<T> r = alone.run();
            CHECK(std::equal(r.y.begin(), r.y.end(), together.y.begin() + first * s.width));
            CHECK(std::equal(r.numbers.begin(), r.numbers.end(), together.numbers.begin() + 2 * first));
        }
        for (const int threads : {2, 3, 16}) {
            set_thread_count(threads);
            CHECK(all.run() == together);
        }
        set_thread_count(1);
        // An infinite value counts only for the queries that see it, and its block is computed again.
        if (causal) {
            all.v[static_cast<std::size_t>(1000 * s.width)] = std::numeric_limits<T>::infinity();
            const results<T> infinite = all.run();
            CHECK(std::equal(together.y.begin(), together.y.begin() + 960 * s.width, infinite.y.begin()));
            for (std::int64_t i = 960 * s.width; i < 1000 * s.width; ++i) // sums are rounded otherwise there
                CHECK(infinite.y[static_cast<std::size_t>(i)] ==
                      doctest::Approx(together.y[static_cast<std::size_t>(i)]).epsilon(1e-4));
            for (std::int64_t i = 1000; i < s.time; ++i)
                CHECK(std::isinf(infinite.y[static_cast<std::size_t>(i * s.width)]));
            CHECK(std::isfinite(infinite.y[static_cast<std::size_t>(1000 * s.width + 1)]));
        }
        set_thread_count(before);
    }
}

TEST_CASE_TEMPLATE("attention: keys at both ends that a bias hides from all queries change no bit", T, float, double) {
    constexpr T hidden = -std::numeric_limits<T>::infinity();
    struct range {
        std::int64_t first, last;
    };
    // Ends inside of blocks of 128 keys and between them; nothing hidden; everything hidden.
    for (const auto& [first, last] : {range{0, 1}, range{0, 128}, range{5, 200}, range{128, 129}, range{131, 300},
                                      range{299, 300}, range{0, 300}, range{7, 7}}) {
        CAPTURE(first);
        CAPTURE(last);
        cpu::attention_shape s;
        s.batch = 2, s.time = 5, s.heads = 2, s.steps = 300, s.depth = 16, s.width = 24, s.scale = 0.25;
        s.biased = true, s.equal = true;
        problem<T> each(s), shared(s);
        std::vector<T> row(static_cast<std::size_t>(s.steps));
        for (std::int64_t i = 0; i < s.steps; ++i)
            row[static_cast<std::size_t>(i)] = i >= first && i < last ? static_cast<T>(i % 3) : hidden;
        // A row for each of five queries is not looked through, a row of all queries is.
        each.s.bias_strides[2] = s.steps, each.s.bias_strides[3] = 1;
        for (std::int64_t i = 0; i < s.time; ++i) each.bias.insert(each.bias.end(), row.begin(), row.end());
        shared.s.bias_strides[3] = 1, shared.bias = row;
        const results<T> expected = each.run(), found = shared.run();
        CHECK(found.y == expected.y);
        CHECK(found.numbers == expected.numbers);
        if (first == last) continue;                                   // then all values count
        for (std::int64_t i = 0; i < s.batch * s.steps * s.heads; ++i) // what lies behind is not even read
            if (i / s.heads % s.steps >= last)
                shared.v[static_cast<std::size_t>(i * s.width)] = std::numeric_limits<T>::quiet_NaN();
        CHECK(shared.run().y == expected.y);
    }
}

TEST_CASE("attention: scratch memory does not grow with the product of the lengths") {
    cpu::attention_shape s;
    s.batch = 1, s.heads = 8, s.depth = s.width = 64, s.time = s.steps = 8192;
    const std::size_t large = cpu::attention_gradient_bytes<float>(s);
    s.time = s.steps = 4096;
    CHECK(large - cpu::attention_gradient_bytes<float>(s) == 8 * 4096 * sizeof(float));
    CHECK(cpu::attention_bytes<float>(s) < std::size_t(thread_count()) << 20);
}

} // namespace attention_kernel_test
