#include <tapegraph/ops/reduction/cpu_softmax_cross_entropy.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace softmax_cross_entropy_test {

/// Kernels of the cross entropy of class numbers: accuracy against long double, the same bits on any
/// number of threads and by any instruction set, and infinities.

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

constexpr double inf = std::numeric_limits<double>::infinity();

struct settings_guard {
    ~settings_guard() {
        cpu::set_instruction_set(cpu::supported_instruction_set());
        tg::set_thread_count(0);
    }
};

struct extents {
    std::int64_t rows, classes;
};
// Rows shorter and longer than lanes, in blocks that do not divide them; a tile and more; few long rows, cut among threads.
constexpr extents shapes[]{{1, 1},    {7, 3},    {300, 10},  {5, 63},    {5, 64},     {900, 65}, {2, 2047},
                           {3, 2048}, {3, 2049}, {17, 5000}, {2, 70001}, {1, 131072}, {0, 5},    {0, 5000}};

template <class T>
struct results {
    std::vector<T> loss, dx;
    bool operator==(const results& b) const {
        const auto same = [](const std::vector<T>& v, const std::vector<T>& w) {
            return v.size() == w.size() && (v.empty() || std::memcmp(v.data(), w.data(), v.size() * sizeof(T)) == 0);
        };
        return same(loss, b.loss) && same(dx, b.dx);
    }
};
template <class T>
struct operands {
    extents s;
    std::vector<T> x, dy;
    std::vector<std::int64_t> labels;
    explicit operands(const extents& of, double shift = 0) : s(of) {
        for (std::int64_t i = 0; i < s.rows * s.classes; ++i) {
            const auto mixed = static_cast<std::uint64_t>(i + 1) * 2654435761u ^ static_cast<std::uint64_t>(i) * 40503u;
            x.push_back(static_cast<T>(static_cast<double>((mixed >> 5) % 16384) / 1024 - 8 + shift));
        }
        for (std::int64_t r = 0; r < s.rows; ++r) {
            dy.push_back(static_cast<T>(r % 5) - T(1.5));
            labels.push_back(r * 7919 % s.classes);
        }
    }
    results<T> run() const {
        results<T> to{std::vector<T>(static_cast<std::size_t>(s.rows)), std::vector<T>(x.size())};
        std::vector<double> scratch(static_cast<std::size_t>(cpu::cross_entropy_scratch(s.rows, s.classes)));
        cpu::sparse_cross_entropy(s.rows, s.classes, x.data(), labels.data(), to.loss.data(), scratch.data());
        cpu::sparse_cross_entropy_gradient(s.rows, s.classes, dy.data(), x.data(), labels.data(), to.dx.data(),
                                           scratch.data());
        return to;
    }
    /// The largest error in epsilons of 1 + the loss, or of the row's dy.
    double error(const results<T>& got) const {
        double worst = 0;
        for (std::int64_t r = 0; r < s.rows; ++r) {
            const T* const row = x.data() + r * s.classes;
            long double largest = row[0], sum = 0;
            for (std::int64_t k = 1; k < s.classes; ++k) largest = std::max<long double>(largest, row[k]);
            for (std::int64_t k = 0; k < s.classes; ++k) sum += std::exp(row[k] - largest);
            const std::int64_t label = labels[static_cast<std::size_t>(r)];
            const long double loss = std::log(sum) - (row[label] - largest), g = dy[static_cast<std::size_t>(r)];
            const auto of = [&](long double off, long double scale) {
                const auto units =
                    static_cast<double>(std::abs(off) / scale) / static_cast<double>(std::numeric_limits<T>::epsilon());
                worst = units <= worst ? worst : units; // NaN stays NaN
            };
            of(got.loss[static_cast<std::size_t>(r)] - loss, 1 + loss);
            for (std::int64_t k = 0; k < s.classes; ++k)
                of(got.dx[static_cast<std::size_t>(r * s.classes + k)] -
                       g * (std::exp(row[k] - largest) / sum - (k == label ? 1 : 0)),
                   std::abs(g));
        }
        return worst;
    }
};

} // namespace

TEST_CASE_TEMPLATE("cross entropy of class numbers: accuracy, and the same bits everywhere", T, float, double) {
    const settings_guard guard;
    for (const extents& shape : shapes) {
        CAPTURE(shape.rows);
        CAPTURE(shape.classes);
        // Terms of sums are below 1 and, where they count, within some units; so are sums of up to 64 of them in a lane.
        const operands<T> at_zero(shape), far(shape, sizeof(T) == 4 ? 4096 : 1 << 20);
        const results<T> want = at_zero.run();
        CHECK(at_zero.error(want) <= 8);
        CHECK(far.error(far.run()) <= 8);
        for (const auto set :
             {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
            if (set > cpu::supported_instruction_set()) continue;
            cpu::set_instruction_set(set);
            CHECK(at_zero.run() == want);
        }
        cpu::set_instruction_set(cpu::supported_instruction_set());
        for (const int threads : {1, 2, 3, 8}) {
            tg::set_thread_count(threads);
            CHECK(at_zero.run() == want);
        }
        tg::set_thread_count(0);
    }
}

// Classes that are excluded by -infinity have no probability, and a whole tile of them changes nothing.
TEST_CASE_TEMPLATE("cross entropy of class numbers: infinities", T, float, double) {
    for (const std::int64_t classes : {5, 100, 6000}) {
        CAPTURE(classes);
        operands<T> o({2, classes});
        const auto last = static_cast<std::size_t>(classes - 1);
        o.labels = {classes - 1, 0};
        for (std::size_t k = 0; k < last; ++k) o.x[k] = static_cast<T>(-inf); // the first row has one class
        o.x[last] = T(3);
        results<T> got = o.run();
        CHECK(got.loss[0] == T(0));
        for (std::size_t k = 0; k <= last; ++k) CHECK(got.dx[k] == T(0));
        CHECK(std::isfinite(got.loss[1]));
        o.labels[0] = 1; // which is impossible
        got = o.run();
        CHECK(got.loss[0] == static_cast<T>(inf));
        CHECK(got.dx[1] == -o.dy[0]);
        CHECK(got.dx[last] == o.dy[0]);
        o.x[last] = static_cast<T>(-inf); // nothing is possible: NaN, as of log_softmax
        got = o.run();
        CHECK(std::isnan(got.loss[0]));
        CHECK(std::isnan(got.dx[0]));
        CHECK(std::isnan(got.dx[last]));
        CHECK(std::isfinite(got.loss[1]));
        o.x[last] = static_cast<T>(inf);
        CHECK(std::isnan(o.run().loss[0]));
        o.x[last] = std::numeric_limits<T>::quiet_NaN();
        got = o.run();
        CHECK(std::isnan(got.loss[0]));
        CHECK(std::isnan(got.dx[0]));
    }
}

} // namespace softmax_cross_entropy_test
