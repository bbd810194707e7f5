#include <cuda/whole_programs.hpp>

#include <tapegraph/eager/searching.hpp>

#include <doctest/doctest.h>

#include <tuple>
#include <vector>

namespace places_modes_test {

/// Searches, counts, extremes and sums of whole tensors, long enough for CUB and Thrust where they
/// are linked: in eager mode and as a captured graph, a device gives the same as the CPU.

namespace tg = tapegraph;
using on_device::late_device;
using tg::tensor;

namespace {

constexpr std::int64_t length = 20011;

// Ties, and more distinct numbers than a table in shared memory can hold.
tensor<float> ties(int seed) {
    auto x = tensor<float>::uninitialized({length});
    for (int i = 0; i < length; ++i) x.mutable_data()[i] = static_cast<float>((i * 37 + seed) % 10007) - 5000;
    return x;
}

constexpr auto program = [](auto x) {
    const auto number = tg::eval(tg::cast<std::int32_t>(x));
    const auto different = tg::unique(x, {.size = length});
    const auto found = tg::nonzero(x > 1000, 7000);
    return std::tuple{tg::searchsorted(tg::sort(x), x * 0.75),
                      tg::searchsorted(tg::sort(x), x, {.side = tg::search_side::right}),
                      found.positions,
                      found.count,
                      different.indices,
                      different.inverse,
                      different.counts,
                      different.count,
                      tg::histogram_fixed_width(x, -4000, 4000, 16),
                      tg::bincount(number, 200),
                      tg::bincount(number, 9000),
                      tg::argmax(x),
                      tg::argmin(x),
                      tg::sum(number),
                      tg::max(number),
                      tg::min(number)};
};

using numbers = std::vector<std::vector<std::int32_t>>;
numbers read(const auto& results) {
    return std::apply([](const auto&... t) { return numbers{t.to_vector()...}; }, results);
}

} // namespace

TEST_CASE("searching, counting and extremes of long rows: eager") {
    const late_device late;
    const numbers here = read(program(ties(1)));
    const tg::device_scope on(tg::device::cuda(0));
    CHECK(read(program(ties(1))) == here);
    const auto all = tg::unique(ties(2));
    CHECK(all.values.size() == 10007);
    CHECK(tg::bincount(all.inverse).to_vector() == all.counts.to_vector());
}

TEST_CASE("searching, counting and extremes of long rows: in a graph that is captured") {
    const late_device late;
    auto f = tg::function<tg::graph>(program, tg::spec<float, tg::dyn>{});
    for (const int seed : {1, 2, 3}) { // launched one by one, captured, replayed
        const auto x = ties(seed);
        const numbers here = read(program(x));
        const tg::device_scope on(tg::device::cuda(0));
        CHECK(read(f(x)) == here);
    }
}

} // namespace places_modes_test
