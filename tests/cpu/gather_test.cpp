#include <support/settings_guard.hpp>

#include <tapegraph/ops/gather/cpu.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace gather_test {

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using support::settings_guard;

template <class F>
void on_every_setting(F f) {
    for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
        for (int threads : {1, 2}) {
            cpu::set_instruction_set(set);
            tg::set_thread_count(threads);
            f();
        }
}

template <class T>
std::vector<T> values(std::int64_t n) {
    std::vector<T> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>((i * 2654435761u >> 7) % 1000) / T(7);
    return v;
}

template <class Index>
std::vector<Index> picks(std::int64_t n, std::int64_t limit) {
    std::vector<Index> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<Index>((i * i * 31 + i * 17 + 5) % static_cast<std::size_t>(limit));
    return v;
}

template <class T, class Index>
void check_rows(std::int64_t rows, std::int64_t width, std::int64_t count) {
    const auto table = values<T>(rows * width), updates = values<T>(count * width);
    const auto index = picks<Index>(count, rows);
    std::vector<T> gathered(updates.size()), scattered(table.size(), T(0));
    for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t c = 0; c < width; ++c) {
            const auto from = static_cast<std::size_t>(index[static_cast<std::size_t>(i)] * width + c);
            gathered[static_cast<std::size_t>(i * width + c)] = table[from];
            scattered[from] += updates[static_cast<std::size_t>(i * width + c)];
        }
    on_every_setting([&] {
        std::vector<T> y(gathered.size(), T(-77)), dx(table.size(), T(-77));
        cpu::gather_rows(rows, width, sizeof(T), table.data(), count, index.data(), y.data());
        CHECK(y == gathered);
        cpu::scatter_add_rows(rows, width, updates.data(), count, index.data(), dx.data());
        CHECK(dx == scattered); // the reference's order of addition, hence its bits
    });
}

template <class T, class Index>
void check_along(std::int64_t outer, std::int64_t length, std::int64_t count) {
    const auto x = values<T>(outer * length), dy = values<T>(outer * count);
    const auto index = picks<Index>(outer * count, length);
    std::vector<T> taken(dy.size()), put(x.size(), T(0));
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t j = 0; j < count; ++j) {
            const auto k = static_cast<std::size_t>(o * count + j);
            const auto from = static_cast<std::size_t>(o * length + index[k]);
            taken[k] = x[from];
            put[from] += dy[k];
        }
    on_every_setting([&] {
        std::vector<T> y(dy.size(), T(-77)), dx(x.size(), T(-77));
        cpu::take_along(outer, length, 1, sizeof(T), x.data(), count, index.data(), y.data());
        CHECK(y == taken);
        cpu::put_along(outer, length, 1, dy.data(), count, index.data(), dx.data());
        CHECK(dx == put);
    });
}

} // namespace

TEST_CASE_TEMPLATE("gather_rows and scatter_add_rows", T, float, double) {
    settings_guard guard;
    check_rows<T, std::int32_t>(1, 1, 1);
    check_rows<T, std::int64_t>(5, 3, 0);
    check_rows<T, std::int32_t>(5, 0, 3);
    check_rows<T, std::int64_t>(7, 13, 50);
    check_rows<T, std::int32_t>(401, 128, 900);
    check_rows<T, std::int64_t>(401, 131, 900);
    check_rows<T, std::int32_t>(1009, 5, 30011);
    check_rows<T, std::int32_t>(3, 1, 50021);
}

TEST_CASE_TEMPLATE("take_along and put_along", T, float, double) {
    settings_guard guard;
    check_along<T, std::int32_t>(1, 1, 1);
    check_along<T, std::int64_t>(3, 10, 0);
    check_along<T, std::int32_t>(37, 11, 3);
    check_along<T, std::int64_t>(101, 500, 700);
}

TEST_CASE("one_hot") {
    settings_guard guard;
    for (std::int64_t count : {0, 1, 13, 5003}) {
        const auto index = picks<std::int64_t>(count, 11);
        on_every_setting([&] {
            std::vector<float> y(static_cast<std::size_t>(count * 11), -77);
            cpu::one_hot(count, 1, index.data(), 11, 2.f, -1.f, y.data());
            std::int64_t wrong = 0;
            for (std::size_t i = 0; i < y.size(); ++i)
                wrong += y[i] != (static_cast<std::int64_t>(i % 11) == index[i / 11] ? 2.f : -1.f);
            CHECK(wrong == 0);
        });
    }
}

TEST_CASE("an index outside is named, and nothing is written") {
    settings_guard guard;
    const std::vector<float> x(20, 1);
    std::vector<float> y(20000, -77);
    const std::int32_t high[] = {0, 9, 3, 12};
    CHECK_THROWS_WITH_AS(cpu::gather_rows(10, 2, 4, x.data(), 4, high, y.data()),
                         "gather: index 12 at position 3 is outside [0, 10)", tg::range_error);
    const std::int64_t low[] = {0, -1};
    CHECK_THROWS_WITH_AS(cpu::scatter_add_rows(10, 2, x.data(), 2, low, y.data()),
                         "scatter_add: index -1 at position 1 is outside [0, 10)", tg::range_error);
    CHECK_THROWS_WITH_AS(cpu::take_along(1, 20, 1, 4, x.data(), 2, low, y.data()),
                         "take_along: index -1 at position 1 is outside [0, 20)", tg::range_error);
    CHECK_THROWS_WITH_AS(cpu::put_along(1, 12, 1, x.data(), 4, high, y.data()),
                         "put_along: index 12 at position 3 is outside [0, 12)", tg::range_error);
    CHECK_THROWS_WITH_AS(cpu::one_hot(4, 1, high, 12, 1.f, 0.f, y.data()),
                         "one_hot: index 12 at position 3 is outside [0, 12)", tg::range_error);
    std::vector<std::int64_t> many(5000, 1);
    many[4001] = std::int64_t{1} << 40; // would pass as 0 if cut to 32 bits
    CHECK_THROWS_WITH_AS(cpu::gather_rows(10, 2, 4, x.data(), 5000, many.data(), y.data()),
                         "gather: index 1099511627776 at position 4001 is outside [0, 10)", tg::range_error);
    CHECK(y == std::vector<float>(20000, -77));
}

TEST_CASE("slices along an inner axis, in batches, along which elements are picked") {
    settings_guard guard;
    // table [2, 3, 7, width], indices [2, 5]
    for (std::int64_t width : {1, 2, 3, 4, 16, 70, 1100}) {
        const auto table = values<float>(2 * 3 * 7 * width), updates = values<float>(2 * 3 * 5 * width);
        const auto index = picks<std::int32_t>(10, 7);
        std::vector<float> gathered, scattered(table.size(), 0);
        for (std::int64_t slab = 0; slab < 6; ++slab)
            for (std::int64_t j = 0; j < 5; ++j)
                for (std::int64_t c = 0; c < width; ++c) {
                    const auto row = slab * 7 + index[static_cast<std::size_t>(slab / 3 * 5 + j)];
                    gathered.push_back(table[static_cast<std::size_t>(row * width + c)]);
                    scattered[static_cast<std::size_t>(row * width + c)] +=
                        updates[static_cast<std::size_t>((slab * 5 + j) * width + c)];
                }
        const std::int64_t large = cpu::layout_detail::streaming_bytes;
        on_every_setting([&] {
            std::vector<float> y(gathered.size()), dx(table.size());
            for (std::int64_t least : {large, std::int64_t{0}}) {
                cpu::layout_detail::streaming_bytes = least;
                cpu::gather_slices(2, 3, 7, width, 4, table.data(), 5, index.data(), y.data());
                CHECK(y == gathered);
            }
            cpu::layout_detail::streaming_bytes = large;
            cpu::scatter_add_slices(2, 3, 7, width, updates.data(), 5, index.data(), dx.data());
            CHECK(dx == scattered);
        });
    }
}

} // namespace gather_test
