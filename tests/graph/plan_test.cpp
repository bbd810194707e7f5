#include <tapegraph/graph/plan.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace plan_test {

using tapegraph::list;
using tapegraph::ir::buffer_request;
using tapegraph::ir::plan_buffers;

namespace {

constexpr bool lives_together(const buffer_request& a, const buffer_request& b) {
    return a.birth <= b.death && b.birth <= a.death;
}
constexpr bool overlaps(const buffer_request& a, const buffer_request& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}
constexpr bool sound(const list<buffer_request>& requests, std::int64_t size) {
    for (int i = 0; i < requests.size(); ++i) {
        if (requests[i].offset < 0 || requests[i].offset + requests[i].bytes > size) return false;
        for (int k = 0; k < i; ++k)
            if (lives_together(requests[i], requests[k]) && overlaps(requests[i], requests[k])) return false;
    }
    return true;
}
constexpr std::int64_t live_peak(const list<buffer_request>& requests) {
    std::int64_t peak = 0;
    for (const buffer_request& at : requests) {
        std::int64_t live = 0;
        for (const buffer_request& r : requests)
            if (r.birth <= at.birth && at.birth <= r.death) live += r.bytes;
        peak = live > peak ? live : peak;
    }
    return peak;
}

constexpr bool a_chain_needs_two_buffers() {
    list<buffer_request> chain;
    for (int i = 0; i < 20; ++i) chain.push_back({64, i, i + 1, 0});
    return plan_buffers(chain) == 128 && sound(chain, 128);
}
constexpr bool what_lives_at_once_stands_side_by_side() {
    list<buffer_request> all;
    for (int i = 0; i < 10; ++i) all.push_back({64 * (i + 1), 0, 5, 0});
    return plan_buffers(all) == 64 * 55 && sound(all, 64 * 55);
}
constexpr bool nothing_needs_nothing() {
    list<buffer_request> none, empty{{0, 0, 3, 0}, {0, 1, 2, 0}};
    return plan_buffers(none) == 0 && plan_buffers(empty) == 0;
}
static_assert(a_chain_needs_two_buffers());
static_assert(what_lives_at_once_stands_side_by_side());
static_assert(nothing_needs_nothing());

} // namespace

TEST_CASE("small plans") {
    CHECK(a_chain_needs_two_buffers());
    CHECK(what_lives_at_once_stands_side_by_side());
    CHECK(nothing_needs_nothing());
}

TEST_CASE("random requests: nothing that lives at once overlaps, and little is wasted") {
    std::uint32_t state = 1;
    const auto next = [&](int count) { return static_cast<int>((state = state * 1664525u + 1013904223u) >> 8) % count; };
    double wasted = 0;
    constexpr int rounds = 60;
    for (int round = 0; round < rounds; ++round) {
        list<buffer_request> requests;
        const int count = 1 + next(150);
        for (int i = 0; i < count; ++i) {
            // As in a training step: some live for long, most for a step or two.
            const int birth = next(count), death = birth + (next(4) == 0 ? next(count) : next(3));
            requests.push_back({64 * (1 + (next(5) == 0 ? next(1000) : next(20))), birth, death, -1});
        }
        const std::int64_t size = plan_buffers(requests), peak = live_peak(requests);
        CHECK(sound(requests, size));
        CHECK(size >= peak);
        // Greedy placement has no small worst case; these seeds stay below 1.4 each.
        CHECK(size <= peak * 7 / 5);
        wasted += static_cast<double>(size) / static_cast<double>(peak) - 1;
    }
    CHECK(wasted / rounds < 0.1);
}

} // namespace plan_test
