#include <tapegraph/ops/movement/cpu.hpp>
#include <tapegraph/ops/movement/cpu_pad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace layout_test {

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using list = std::vector<std::int64_t>;

struct threads_guard {
    ~threads_guard() {
        tg::set_thread_count(0);
        cpu::layout_detail::streaming_bytes = large;
    }
    std::int64_t large = cpu::layout_detail::streaming_bytes;
};

// On one thread and two, through the caches and past them.
template <class F>
void every_way(const F& f) {
    const std::int64_t large = cpu::layout_detail::streaming_bytes;
    for (int threads : {1, 2})
        for (std::int64_t least : {large, std::int64_t{0}}) {
            tg::set_thread_count(threads);
            cpu::layout_detail::streaming_bytes = least;
            f();
        }
    cpu::layout_detail::streaming_bytes = large;
}

std::int64_t product(const list& s) {
    return std::accumulate(s.begin(), s.end(), std::int64_t{1}, std::multiplies<>{});
}

template <class E>
std::vector<E> counted(std::int64_t n) {
    std::vector<E> v(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<E>(i * 7 + 3);
    return v;
}

// Calls f(coordinates, linear index) for every element of a row-major tensor.
template <class F>
void each(const list& extents, F f) {
    list at(extents.size(), 0);
    for (std::int64_t i = 0, n = product(extents); i < n; ++i) {
        f(at, static_cast<std::size_t>(i));
        for (std::size_t a = extents.size(); a-- > 0 && ++at[a] == extents[a];) at[a] = 0;
    }
}

std::size_t linear(const list& extents, const list& at) {
    std::int64_t i = 0;
    for (std::size_t a = 0; a < extents.size(); ++a) i = i * extents[a] + at[a];
    return static_cast<std::size_t>(i);
}

int rank_of(const list& l) { return static_cast<int>(l.size()); }

template <class E>
void check_transpose(const list& extents, const list& permutation) {
    const auto x = counted<E>(product(extents));
    list moved;
    for (auto p : permutation) moved.push_back(extents[static_cast<std::size_t>(p)]);
    std::vector<E> expected(x.size());
    each(moved, [&](const list& at, std::size_t i) {
        list source(at.size());
        for (std::size_t a = 0; a < at.size(); ++a) source[static_cast<std::size_t>(permutation[a])] = at[a];
        expected[i] = x[linear(extents, source)];
    });
    every_way([&] {
        std::vector<E> y(x.size() + 1, E(99));
        cpu::transpose(rank_of(extents), extents.data(), permutation.data(), sizeof(E), x.data(), y.data());
        CHECK(y.back() == E(99));
        y.pop_back();
        CHECK(y == expected);
    });
}

template <class E>
void check_slice(const list& extents, const list& begin, const list& step, const list& cut) {
    const auto x = counted<E>(product(extents)), dy = counted<E>(product(cut));
    std::vector<E> expected(dy.size()), embedded(x.size(), E(0));
    each(cut, [&](const list& at, std::size_t i) {
        list source(at.size());
        for (std::size_t a = 0; a < at.size(); ++a) source[a] = begin[a] + at[a] * step[a];
        expected[i] = x[linear(extents, source)];
        embedded[linear(extents, source)] = dy[i];
    });
    every_way([&] {
        std::vector<E> y(dy.size(), E(99)), dx(x.size(), E(99));
        cpu::slice(rank_of(extents), extents.data(), begin.data(), step.data(), cut.data(), sizeof(E), x.data(),
                   y.data());
        CHECK(y == expected);
        cpu::pad(rank_of(cut), cut.data(), begin.data(), step.data(), extents.data(), sizeof(E), dy.data(), dx.data());
        CHECK(dx == embedded);
    });
}

} // namespace

TEST_CASE_TEMPLATE("transpose: every permutation of awkward shapes, large and thin planes", E, std::uint8_t,
                   std::uint16_t, float, double) {
    threads_guard guard;
    for (const list& extents : {list{}, list{5}, list{3, 7}, list{1, 9, 1}, list{2, 17, 5}, list{4, 0, 3},
                                list{3, 2, 19, 5}, list{2, 3, 1, 5, 11}}) {
        list permutation(extents.size());
        std::iota(permutation.begin(), permutation.end(), 0);
        do check_transpose<E>(extents, permutation);
        while (std::next_permutation(permutation.begin(), permutation.end()));
    }
    check_transpose<E>({301, 257}, {1, 0});
    check_transpose<E>({512, 256}, {1, 0});
    check_transpose<E>({150, 4096}, {1, 0});
    check_transpose<E>({3, 40001}, {1, 0});
    check_transpose<E>({40001, 3}, {1, 0});
    check_transpose<E>({5, 31, 33, 37}, {0, 3, 1, 2});
    check_transpose<E>({5, 37, 31, 33}, {0, 2, 3, 1});
    check_transpose<E>({7, 50, 11, 64}, {0, 2, 1, 3});
    for (std::int64_t channels : {2, 3, 4, 5}) {
        check_transpose<E>({3, channels, 19, 23}, {0, 2, 3, 1});
        check_transpose<E>({3, 1100, channels}, {0, 2, 1});
        check_transpose<E>({2, channels, 3, 1030}, {2, 0, 3, 1});
    }
    check_transpose<E>({2, 1, 3, 2, 1, 5, 2, 7}, {7, 2, 5, 0, 3, 6, 4, 1});
}

TEST_CASE_TEMPLATE("slice and embed: steps forwards and backwards", E, std::uint8_t, std::uint16_t, float, double) {
    threads_guard guard;
    check_slice<E>({10}, {9}, {-1}, {10});
    check_slice<E>({10}, {8}, {-3}, {3});
    check_slice<E>({7, 5}, {1, 0}, {2, 1}, {3, 5});
    check_slice<E>({7, 5}, {6, 4}, {-2, -1}, {4, 3});
    check_slice<E>({7, 5}, {0, 0}, {1, 1}, {0, 5});
    check_slice<E>({4, 6, 9}, {1, 5, 2}, {1, -1, 3}, {3, 6, 2});
    check_slice<E>({300, 700}, {1, 3}, {1, 1}, {290, 690});
    check_slice<E>({200001}, {200000}, {-1}, {200001});
    check_slice<E>({60, 40, 50}, {2, 1, 49}, {3, 1, -1}, {19, 38, 50});
    check_slice<E>({40, 16}, {3, 2}, {1, 1}, {30, 12});
    check_slice<E>({9, 5000}, {8, 4999}, {-1, -1}, {9, 5000});
    check_slice<E>({9, 5000}, {0, 1}, {2, 2}, {5, 2499});
    check_slice<E>({6, 4, 5, 3}, {1, 0, 2, 0}, {1, 1, 1, 1}, {4, 4, 2, 3});
}

TEST_CASE("concat: pieces along each axis come back with slice") {
    threads_guard guard;
    for (const list& extents : {list{9}, list{7, 9, 4}, list{50, 60, 41}})
        for (int axis = 0; axis < rank_of(extents); ++axis) {
            const auto a = static_cast<std::size_t>(axis);
            const list lengths{2, 0, extents[a] - 3, 1};
            const auto whole = counted<float>(product(extents));
            std::vector<std::vector<float>> pieces;
            std::vector<const void*> inputs;
            list begin(extents.size(), 0), step(extents.size(), 1);
            for (auto length : lengths) {
                list cut = extents;
                cut[a] = length;
                pieces.emplace_back(static_cast<std::size_t>(product(cut)));
                cpu::slice(rank_of(extents), extents.data(), begin.data(), step.data(), cut.data(), 4, whole.data(),
                           pieces.back().data());
                begin[a] += length;
            }
            for (const auto& p : pieces) inputs.push_back(p.data());
            every_way([&] {
                std::vector<float> y(whole.size(), -77);
                cpu::concat(4, inputs.data(), lengths.data(), rank_of(extents), extents.data(), axis, 4, y.data());
                CHECK(y == whole);
            });
        }
}

TEST_CASE("broadcast_copy: missing and single axes repeat") {
    threads_guard guard;
    const std::pair<list, list> cases[] = {{{}, {3, 4}},           {{1}, {5}},
                                           {{4}, {3, 4}},          {{3, 1}, {3, 4}},
                                           {{2, 1, 3}, {2, 5, 3}}, {{1, 7, 1}, {4, 2, 7, 6}},
                                           {{1, 300}, {400, 300}}, {{400, 1}, {400, 301}},
                                           {{3, 4}, {3, 4}},       {{1, 3}, {0, 3}}};
    for (const auto& shapes : cases) {
        const list &from = shapes.first, &to = shapes.second;
        const auto x = counted<double>(product(from));
        std::vector<double> expected(static_cast<std::size_t>(product(to)));
        each(to, [&](const list& at, std::size_t i) {
            list source(from.size());
            for (std::size_t a = 0; a < from.size(); ++a)
                source[a] = from[a] == 1 ? 0 : at[a + to.size() - from.size()];
            expected[i] = x[linear(from, source)];
        });
        every_way([&] {
            std::vector<double> y(expected.size(), -77);
            cpu::broadcast_copy(rank_of(from), from.data(), rank_of(to), to.data(), 8, x.data(), y.data());
            CHECK(y == expected);
        });
    }
}

TEST_CASE("copy and zero, and an element size that is not supported") {
    threads_guard guard;
    for (std::int64_t n : {0, 1, 7, 300007}) {
        const auto x = counted<std::uint8_t>(n);
        std::vector<std::uint8_t> y(x.size(), 99);
        cpu::copy(x.size(), x.data(), y.data());
        CHECK(y == x);
        cpu::zero(y.size(), y.data());
        CHECK(y == std::vector<std::uint8_t>(x.size(), 0));
    }
    const std::int64_t extents[] = {2};
    const std::int64_t order[] = {0};
    char bytes[8]{}, out[8];
    CHECK_THROWS_AS(cpu::transpose(1, extents, order, 3, bytes, out), tg::dtype_error);
}

} // namespace layout_test
