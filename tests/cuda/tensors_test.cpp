#include <cuda/whole_programs.hpp>

#include <doctest/doctest.h>

#include <future>
#include <vector>

namespace device_tensors_test {

/// Tensors, formulas and gradients on a GPU, or on the imitated device; whole models: modes_test.cpp.

namespace tg = tapegraph;
using on_device::late_device;

namespace {

/// The largest difference, relative to the larger of 1 and the numbers.
template <class T>
double difference(const tg::tensor<T>& a, const tg::tensor<T>& b) {
    REQUIRE(a.shape() == b.shape());
    double most = 0;
    const std::vector<T> x = a.to_vector(), y = b.to_vector();
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double scale = std::max(1.0, std::abs(double(y[i])));
        most = std::max(most, std::abs(double(x[i]) - double(y[i])) / scale);
        if (!(x[i] == x[i])) most = INFINITY;
    }
    return most;
}

} // namespace

TEST_CASE("eager: formulas, products and gradients on a device") {
    const late_device late;
    const auto run = [](tg::device where) {
        const tg::device_scope on(where);
        tg::tensor<float> a{{1, 2, 3}, {4, 5, 6}}, w{{1, 0}, {2, -1}, {0.5f, 3}};
        auto b = tg::from_range<float>(std::vector<float>{0.5f, -2}, {2, 1});
        tg::gradient_tape tape;
        tape.watch(a, b, w);
        const tg::tensor<float> h = tanh(a * b + 0.25f);
        const tg::tensor<float> y = matmul(h, w);
        const tg::tensor<float> loss = mean(square(y) + exp(-y));
        const auto [da, db, dw] = tape.gradient(loss, a, b, w);
        return std::tuple(h, y, loss, da, db, dw);
    };
    const auto there = run(tg::device::cuda(0)), here = run(tg::device::cpu());
#ifdef TG_SIMT
    CHECK(on_device::launches() > 0);
#endif
    CHECK(tg::current_device() == tg::device::cpu());
    double most = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (void(most = std::max(most, difference(std::get<I>(there), std::get<I>(here)))), ...);
    }
    (std::make_index_sequence<6>{});
    CHECK(most < 1e-6); // sums of up to six floats in another order
}

TEST_CASE("eager: gradients of broadcast leaves are sums of values that are never stored") {
    const auto whole = [](const tg::shape& dims, int seed) {
        auto t = tg::tensor<float>::uninitialized(dims);
        for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = float((i * 37 + seed * 11) % 7 - 3);
        return t;
    };
    tg::cuda::memory_pool& pool = tg::cuda::memory_pool::of(0);
    for (const auto& extents : {std::pair{0, 3}, {3, 0}, {1, 1}, {7, 5}, {301, 37}, {2003, 3}, {3, 2003}}) {
        const int rows = extents.first, columns = extents.second;
        CAPTURE(rows);
        CAPTURE(columns);
        // Sums of integers below 2^24: every order of adding them is exact.
        const auto run = [&](tg::device where) {
            const tg::device_scope on(where);
            const auto x = whole({rows, columns}, 1), z = whole({rows, columns}, 2);
            auto mean = whole({columns}, 3), factor = whole({columns}, 4), shift = whole({rows, 1}, 5),
                 scale = whole({}, 6);
            const auto sealed = [&] {
                tg::gradient_tape tape;
                tape.watch(mean, factor, shift, scale);
                const tg::tensor<float> y = (x - mean) * factor + shift * scale;
                return tape.gradient(sum(y * z), mean, factor, shift, scale);
            }();
            const auto fused = [&] {
                tg::gradient_tape tape;
                tape.watch(mean, factor, shift, scale);
                const tg::tensor<float> loss = sum(((x - mean) * factor + shift * scale) * z);
                const std::size_t before = pool.statistics().in_use;
                pool.reset_peak();
                const auto gradients = tape.gradient(loss, mean, factor, shift, scale);
                if (rows == 301 && where != tg::device::cpu())
                    CHECK(pool.statistics().peak - before < std::size_t(rows * columns) * sizeof(float) / 4);
                return gradients;
            }();
            return std::pair(sealed, fused);
        };
        const auto there = run(tg::device::cuda(0)), here = run(tg::device::cpu());
        const auto equal = [&](const auto& a, const auto& b) {
            [&]<std::size_t... I>(std::index_sequence<I...>) {
                ([&] { CHECK(std::get<I>(a).to_vector() == std::get<I>(b).to_vector()); }(), ...);
            }
            (std::make_index_sequence<4>{});
        };
        equal(there.first, here.first);
        equal(there.second, here.second);
        equal(there.first, here.second);
    }
}

TEST_CASE("eager: repeated elements, and the tangent of a sum") {
    const tg::device_scope on(tg::device::cuda(0));
    tg::tensor<float> row{1, 2, 3};
    tg::gradient_tape tape;
    tape.watch(row);
    const tg::tensor<float> rows = broadcast_to(row, {5, 3}), loss = sum(rows * rows);
    const auto slope = tape.gradient(loss, row);
    CHECK(slope.to_vector() == std::vector<float>{10, 20, 30});
    const auto along = tg::jvp([](auto x) { return sum(square(x), 0); })(tg::tensor<float>{{1, 2}, {3, 4}, {5, 6}},
                                                                         tg::tensor<float>{{1, 0}, {-1, 2}, {2, 1}});
    CHECK(along.tangent.to_vector() == std::vector<float>{2 * (1 - 3 + 10), 2 * (8 + 6)});
}

TEST_CASE("a tensor goes to a device and comes to the host once") {
    const late_device late;
    const tg::tensor<float> a{1, 2, 3};
    tg::tensor<float> b;
    {
        const tg::device_scope on(tg::device::cuda(0));
        b = a + a;
        const tg::tensor<float> c = b * a;
        CHECK(c.to_vector() == std::vector<float>{2, 8, 18});
    }
    CHECK(b.to_vector() == std::vector<float>{2, 4, 6});
    const tg::tensor<float> d = b + a; // on the CPU again
    CHECK(d.to_vector() == std::vector<float>{3, 6, 9});
    b.mutable_data()[0] = 10;
    const tg::device_scope on(tg::device::cuda(0));
    const tg::tensor<float> e = b * 2;
    CHECK(e.to_vector() == std::vector<float>{20, 8, 12});
}

TEST_CASE("what a device finds wrong is thrown when the host waits") {
    const late_device late;
    const tg::device_scope on(tg::device::cuda(0));
    const tg::tensor<float> table{{1, 2}, {3, 4}};
    const tg::tensor<std::int32_t> rows{0, 5};
    const tg::tensor<float> picked = gather(table, rows);
    CHECK_THROWS_AS(picked.to_vector(), tg::range_error);
    CHECK(tg::tensor<float>(table + 1).to_vector() == std::vector<float>{2, 3, 4, 5}); // and only once
}

#ifdef TG_SIMT
TEST_CASE("a tensor of one device comes to the host to a thread that uses another") {
    auto& machine = tg::cuda::driver::imitation::instance();
    machine.devices = 3;
    const late_device late;
    tg::tensor<float> a;
    {
        const tg::device_scope on(tg::device::cuda(2));
        a = tg::tensor<float>{1, 2, 3} * 2;
    }
    std::async(std::launch::async, [&] {
        const tg::device_scope on(tg::device::cuda(1));
        const tg::tensor<float> b = a + 1; // through the CPU
        CHECK(a.to_vector() == std::vector<float>{2, 4, 6});
        const tg::tensor<float> c = b * a;
        CHECK(c.to_vector() == std::vector<float>{6, 20, 42});
    }).get();
    machine.devices = 1;
}
#endif

} // namespace device_tensors_test
