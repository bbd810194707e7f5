#include <tapegraph/cpu/map.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace map_test {

/// The driver of regions, on the region that hands its operand through (the gradient of a sum): the
/// operand repeated over the index space, as plain loops repeat it, on any number of threads.

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

namespace {

using extents = std::vector<std::int64_t>;

tg::buffer_view view_of(tg::dtype type, const extents& e, void* data) {
    tg::buffer_view v;
    v.type = type;
    v.data = data;
    v.rank = static_cast<int>(e.size());
    for (std::size_t i = 0; i < e.size(); ++i) v.extents[i] = e[i];
    return v;
}

// The operand's extents are the domain's or 1; leading ones may be missing.
struct shapes {
    extents operand, domain;
};
const shapes cases[]{{{}, {}},
                     {{}, {5}},
                     {{1}, {40000}},
                     {{3}, {3}},
                     {{7, 1}, {7, 5}},
                     {{1, 5}, {7, 5}},
                     {{5}, {9, 5}},
                     {{211, 1}, {211, 307}},
                     {{1, 307}, {211, 307}},
                     {{1, 9001}, {5, 9001}},
                     {{13, 1, 17}, {13, 211, 17}},
                     {{13, 1, 1}, {13, 61, 47}},
                     {{1, 61, 1}, {13, 61, 47}},
                     {{2, 1, 3, 1}, {2, 700, 3, 11}},
                     {{1, 1}, {0, 4}},
                     {{40000, 1}, {40000, 1}}};

template <class T>
void check() {
    constexpr tg::dtype type = tg::dtype_of<T>;
    for (const shapes& each : cases) {
        const std::size_t lead = each.domain.size() - each.operand.size();
        std::int64_t elements = 1, own = 1;
        for (const std::int64_t e : each.domain) elements *= e;
        for (const std::int64_t e : each.operand) own *= e;
        CAPTURE(own);
        CAPTURE(elements);
        std::vector<T> x(static_cast<std::size_t>(own)), want(static_cast<std::size_t>(elements));
        for (std::int64_t i = 0; i < own; ++i) x[static_cast<std::size_t>(i)] = static_cast<T>(i % 4093 + 1);
        for (std::int64_t i = 0; i < elements; ++i) {
            std::int64_t rest = i, at = 0, stride = 1;
            for (std::size_t k = each.domain.size(); k-- > 0; rest /= each.domain[k]) {
                const std::int64_t e = k < lead ? 1 : each.operand[k - lead];
                at += (e == 1 ? 0 : rest % each.domain[k]) * stride;
                stride *= e;
            }
            want[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(at)];
        }
        for (const int threads : {1, 3}) {
            tg::set_thread_count(threads);
            std::vector<T> got(want.size() + 1, T(-1));
            const tg::buffer_view in = view_of(type, each.operand, x.data()),
                                  out = view_of(type, each.domain, got.data());
            tg::kernel_call call;
            call.in = &in, call.inputs = 1, call.out = &out, call.outputs = 1;
            call.domain = out;
            cpu::run_map(&cpu::evaluate_tile<tg::region<tg::slots<type>, tg::results<0>>>, call);
            CHECK(got.back() == T(-1));
            got.pop_back();
            CHECK(got == want);
        }
    }
    tg::set_thread_count(0);
}

} // namespace

TEST_CASE("a region that hands its operand through repeats it") {
    check<float>(); // written where the result lies
    check<double>();
    check<std::int32_t>(); // tile by tile
}

} // namespace map_test
