#include <support/settings_guard.hpp>

#include <tapegraph/cpu/reduce.hpp>
#include <tapegraph/ops/ordering/cpu_arg_reduce.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace reduce_test {

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using cpu::reduction;
using support::settings_guard;
using shape = std::vector<std::int64_t>;

std::int64_t size_of_shape(const shape& s) {
    std::int64_t n = 1;
    for (auto e : s) n *= e;
    return n;
}

template <class T>
std::vector<T> numbers(std::int64_t count, double centre, double spread) {
    std::vector<T> values(static_cast<std::size_t>(count));
    std::uint64_t state = 12345;
    for (auto& v : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v = static_cast<T>(centre + spread * (static_cast<double>(state >> 40) / (1 << 24) - 0.5));
    }
    return values;
}

// Kept index of every domain element, by counting up the coordinates.
template <class F>
void for_each_element(const shape& extents, std::uint32_t axes, F f) {
    const int rank = static_cast<int>(extents.size());
    shape at(extents.size(), 0);
    for (std::int64_t i = 0, n = size_of_shape(extents); i < n; ++i) {
        std::int64_t kept = 0;
        for (int a = 0; a < rank; ++a)
            if ((axes >> a & 1) == 0) kept = kept * extents[a] + at[a];
        f(i, kept);
        for (int a = rank; a-- > 0 && ++at[a] == extents[a];) at[a] = 0;
    }
}

std::int64_t kept_size(const shape& extents, std::uint32_t axes) {
    std::int64_t n = 1;
    for (std::size_t a = 0; a < extents.size(); ++a)
        if ((axes >> a & 1) == 0) n *= extents[a];
    return n;
}

template <class T>
void produce_copy(const void* state, std::int64_t begin, std::int64_t count, T* out) {
    if (count > 2048) std::abort(); // called inside parallel regions
    std::memcpy(out, static_cast<const T*>(state) + begin, static_cast<std::size_t>(count) * sizeof(T));
}

template <reduction R, class T>
std::vector<T> reduced(const shape& extents, std::uint32_t axes, const std::vector<T>& x, bool direct = true) {
    const int rank = static_cast<int>(extents.size());
    std::vector<T> out(static_cast<std::size_t>(kept_size(extents, axes)) + 1, T(-77)); // one guard past the end
    std::vector<char> scratch(cpu::reduce_workspace_bytes<T>(rank, extents.data(), axes), char(0x7f));
    cpu::reduce_source<T> source;
    if (direct)
        source.direct = x.data();
    else
        source = {nullptr, produce_copy<T>, x.data()};
    cpu::reduce_axes<R>(rank, extents.data(), axes, source, out.data(), scratch.data());
    CHECK(out.back() == T(-77));
    out.pop_back();
    return out;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <reduction R, class T>
void check(const shape& extents, std::uint32_t axes) {
    const std::int64_t outputs = kept_size(extents, axes), count = size_of_shape(extents);
    // Products of numbers near one neither overflow nor vanish.
    const auto x = R == reduction::product ? numbers<T>(count, 1, 1e-3) : numbers<T>(count, 0.25, 2);
    std::vector<long double> expected(static_cast<std::size_t>(outputs)), magnitude(expected.size(), 0);
    std::vector<char> seen(expected.size(), 0);
    for_each_element(extents, axes, [&](std::int64_t i, std::int64_t k) {
        const long double v = x[static_cast<std::size_t>(i)];
        auto& e = expected[static_cast<std::size_t>(k)];
        auto& s = seen[static_cast<std::size_t>(k)];
        magnitude[static_cast<std::size_t>(k)] += R == reduction::product ? 1 : std::fabs(v);
        if (s == 0)
            e = v;
        else if (R == reduction::sum)
            e += v;
        else if (R == reduction::product)
            e *= v;
        else if (R == reduction::maximum)
            e = v > e ? v : e;
        else
            e = v < e ? v : e;
        s = 1;
    });
    std::string what;
    for (auto e : extents) what += std::to_string(e) + " ";
    INFO("shape ", what, " axes ", axes);

    std::vector<T> first;
    for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
        for (int threads : {1, 2})
            for (bool direct : {true, false}) {
                cpu::set_instruction_set(set);
                tg::set_thread_count(threads);
                const auto y = reduced<R>(extents, axes, x, direct);
                if (first.empty()) first = y;
                CHECK(same_bits(first, y));
            }
    // A tile adds at most 2,048 / 16 = 128 values one after another in T, and everything else in double:
    // the error stays below 128 half-ulps of the sum of magnitudes.
    const double unit = 64 * std::numeric_limits<T>::epsilon();
    std::int64_t wrong = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
        const double bound = R == reduction::sum       ? unit * static_cast<double>(magnitude[k])
                             : R == reduction::product ? unit * static_cast<double>(magnitude[k] * expected[k])
                                                       : 0;
        if (!(std::fabs(static_cast<double>(first[k] - expected[k])) <= bound + 1e-300)) ++wrong;
    }
    CHECK(wrong == 0);
}

template <class T>
void check_all(const shape& extents, std::uint32_t axes) {
    check<reduction::sum, T>(extents, axes);
    check<reduction::maximum, T>(extents, axes);
    check<reduction::minimum, T>(extents, axes);
    if (size_of_shape(extents) < 20000) check<reduction::product, T>(extents, axes);
}

} // namespace

TEST_CASE_TEMPLATE("reduce_axes: every set of axes of small awkward shapes", T, float, double) {
    settings_guard guard;
    for (const shape& extents : {shape{}, shape{1}, shape{7}, shape{1, 1}, shape{5, 3}, shape{2, 17, 3},
                                 shape{3, 1, 5, 31}, shape{2, 3, 5, 7, 3}, shape{2, 1, 3, 2, 3, 2, 1, 3}})
        for (std::uint32_t axes = 0; axes < 1u << extents.size(); ++axes) check_all<T>(extents, axes);
}

TEST_CASE_TEMPLATE("reduce_axes: rows, columns and middles around the tile sizes", T, float, double) {
    settings_guard guard;
    for (std::int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 127, 1023, 1024, 1025, 2047, 2048, 2049, 4099, 70001})
        check_all<T>({n}, 1);
    for (const shape& extents :
         {shape{1009, 3}, shape{5003, 10}, shape{307, 300}, shape{3, 30011}, shape{40, 2500}, shape{64, 1025}})
        check_all<T>(extents, 2);
    for (const shape& extents :
         {shape{30011, 3}, shape{10007, 1}, shape{20011, 7}, shape{701, 63}, shape{701, 64}, shape{997, 150},
          shape{331, 300}, shape{77, 1023}, shape{77, 1025}, shape{11, 10007}, shape{2, 16385}})
        check_all<T>(extents, 1);
    for (const shape& extents : {shape{3, 1031, 5}, shape{101, 7, 67}, shape{2, 301, 1200}, shape{50, 2, 600}}) {
        check_all<T>(extents, 2);
        check_all<T>(extents, 5);
    }
    check_all<T>({3, 501, 40, 5}, 0b0101);
    check_all<T>({3, 51, 4, 50}, 0b1010);
}

TEST_CASE("reduce_axes: ten million floats are added to a relative error of 1e-6, and of doubles to 1e-14") {
    settings_guard guard;
    const std::int64_t n = 10'000'000;
    const auto x = numbers<float>(n, 1, 2);
    long double exact = 0;
    for (float v : x) exact += v;
    CHECK(std::fabs(static_cast<double>(reduced<reduction::sum>({n}, 1, x)[0] / exact - 1)) < 1e-6);
    const auto z = numbers<double>(n / 10, 1, 2);
    exact = 0;
    for (double v : z) exact += v;
    CHECK(std::fabs(static_cast<double>(reduced<reduction::sum>({n / 10}, 1, z)[0] / exact - 1)) < 1e-14);
}

TEST_CASE_TEMPLATE("reduce_axes: NaN, infinities and empty domains", T, float, double) {
    settings_guard guard;
    const T nan = std::numeric_limits<T>::quiet_NaN(), infinite = std::numeric_limits<T>::infinity();
    for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        for (std::int64_t n : {3, 40, 100, 5000})
            for (std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
                auto x = numbers<T>(n * 70, 0, 1);
                for (std::int64_t r = 0; r < 70; r += 3) x[static_cast<std::size_t>(r * n + at)] = nan;
                const auto high = reduced<reduction::maximum>({70, n}, 2, x),
                           low = reduced<reduction::minimum>({70, n}, 2, x);
                for (std::size_t r = 0; r < 70; ++r) {
                    CHECK((high[r] != high[r]) == (r % 3 == 0));
                    CHECK((low[r] != low[r]) == (r % 3 == 0));
                }
                const auto columns = reduced<reduction::maximum>({70, n}, 1, x);
                for (std::int64_t c = 0; c < n; ++c)
                    CHECK((columns[static_cast<std::size_t>(c)] != columns[static_cast<std::size_t>(c)]) == (c == at));
            }
        CHECK(reduced<reduction::maximum>({5}, 1, std::vector<T>(5, -infinite))[0] == -infinite);
        CHECK(reduced<reduction::minimum>({5}, 1, std::vector<T>(5, infinite))[0] == infinite);
    }
    const std::vector<T> nothing(1);
    CHECK(reduced<reduction::sum>({0}, 1, nothing) == std::vector<T>{0});
    CHECK(reduced<reduction::product>({2, 0}, 2, nothing) == std::vector<T>{1, 1});
    CHECK(reduced<reduction::sum>({0, 3}, 2, nothing).empty());
    CHECK(reduced<reduction::maximum>({0, 3}, 2, nothing).empty());
    CHECK_THROWS_WITH_AS(reduced<reduction::maximum>({2, 0}, 2, nothing), "max: axis 1 has no elements",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(reduced<reduction::minimum>({0}, 1, nothing), "min: axis 0 has no elements",
                         tg::argument_error);
}

TEST_CASE_TEMPLATE("arg_reduce: the first of the best along any axis", T, float, double) {
    settings_guard guard;
    for (const shape& extents : {shape{1}, shape{5000}, shape{7, 10}, shape{4001, 3}, shape{97, 33}, shape{41, 64},
                                 shape{301, 129}, shape{5, 13, 600}, shape{3, 700, 2}, shape{2, 2, 40000}}) {
        const int rank = static_cast<int>(extents.size());
        auto x = numbers<T>(size_of_shape(extents), 0, 1);
        for (auto& v : x) v = std::round(v * 30); // many ties
        for (std::size_t i = 0; i < x.size(); i += 611) x[i] = i % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : x[i];
        for (int axis = 0; axis < rank; ++axis) {
            std::int64_t inner = 1, outer = 1;
            const std::int64_t n = extents[axis];
            for (int a = 0; a < rank; ++a)
                if (a != axis) (a < axis ? outer : inner) *= extents[a];
            std::vector<std::int64_t> high, low;
            for (std::int64_t o = 0; o < outer; ++o)
                for (std::int64_t i = 0; i < inner; ++i) {
                    auto at = [&](std::int64_t k) { return x[static_cast<std::size_t>((o * n + k) * inner + i)]; };
                    std::int64_t h = 0, l = 0;
                    for (std::int64_t k = 1; k < n; ++k) {
                        if (at(h) == at(h) && (at(k) > at(h) || at(k) != at(k))) h = k;
                        if (at(l) == at(l) && (at(k) < at(l) || at(k) != at(k))) l = k;
                    }
                    high.push_back(h);
                    low.push_back(l);
                }
            for (auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512})
                for (int threads : {1, 2}) {
                    cpu::set_instruction_set(set);
                    tg::set_thread_count(threads);
                    std::vector<std::int64_t> wide(high.size(), -1);
                    cpu::arg_reduce<true>(rank, extents.data(), axis, x.data(), wide.data());
                    CHECK(wide == high);
                    std::vector<std::int32_t> narrow(low.size(), -1);
                    cpu::arg_reduce<false>(rank, extents.data(), axis, x.data(), narrow.data());
                    CHECK(std::vector<std::int64_t>(narrow.begin(), narrow.end()) == low);
                }
        }
    }
    const std::int64_t empty[] = {2, 0};
    std::int32_t at[2];
    const T* none = nullptr;
    CHECK_THROWS_WITH_AS(cpu::arg_reduce<true>(2, empty, 1, none, at), "argmax: axis 1 has no elements",
                         tg::argument_error);
    cpu::arg_reduce<true>(2, empty, 0, none, at);
}

// Several values at once: one read in place, others produced, and one added up where it lies once it has been written.
template <class T>
struct several_state {
    const T* x;
    T* written;
};
template <class T>
void produce_several(const void* state, std::int64_t begin, std::int64_t count, T* out) {
    const auto& s = *static_cast<const several_state<T>*>(state);
    for (std::int64_t i = 0; i < count; ++i) {
        out[cpu::reduce_detail::tile_elements + i] = s.x[begin + i] * s.x[begin + i];
        s.written[begin + i] = T(2) - s.x[begin + i];
    }
}

TEST_CASE_TEMPLATE("reduce_several: the bits of single reductions", T, float, double) {
    for (const shape& extents :
         {shape{}, shape{1}, shape{0, 3}, shape{7}, shape{5, 3}, shape{301, 150}, shape{4099}, shape{3, 7, 70},
          shape{2, 2117}, shape{1000, 5}, shape{9, 1, 13, 33}, shape{67, 2, 1029}})
        for (std::uint32_t axes = 0; axes < 1u << extents.size(); ++axes) {
            CAPTURE(extents);
            CAPTURE(axes);
            const auto x = numbers<T>(size_of_shape(extents), 0.25, 2);
            std::vector<T> squares, others, written(x.size() + 1);
            for (const T v : x) {
                squares.push_back(v * v);
                others.push_back(T(2) - v);
            }
            const int rank = static_cast<int>(extents.size());
            const auto outputs = static_cast<std::size_t>(kept_size(extents, axes));
            std::vector<T> out[3];
            T* to[3];
            for (int k = 0; k < 3; ++k) {
                out[k].resize(outputs + 1); // never null
                to[k] = out[k].data();
            }
            std::vector<double> scratch(
                3 * cpu::reduce_workspace_bytes<T>(rank, extents.data(), axes) / sizeof(double) + 1);
            const several_state<T> state{x.data(), written.data()};
            const cpu::reduce_sources<T> source{3, {x.data(), nullptr, written.data()}, produce_several<T>, &state};
            cpu::reduce_several<reduction::sum>(rank, extents.data(), axes, source, to, scratch.data());
            for (auto& o : out) o.resize(outputs);
            CHECK(same_bits(out[0], reduced<reduction::sum>(extents, axes, x)));
            CHECK(same_bits(out[1], reduced<reduction::sum>(extents, axes, squares)));
            CHECK(same_bits(out[2], reduced<reduction::sum>(extents, axes, others)));
        }
}

} // namespace reduce_test
