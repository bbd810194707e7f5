#include <tapegraph/minimize.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

/// Iterations allocate nothing: longer minimizations allocate as often as short ones.

namespace {
std::atomic<long> allocations{0};
}
void* operator new(std::size_t size) {
    ++allocations;
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace allocations_test {

namespace tg = tapegraph;

constexpr auto rosenbrock = [](const auto& x) {
    std::remove_cvref_t<decltype(x[0])> sum = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const auto b = x[i + 1] - x[i] * x[i];
        sum += 100 * b * b + (1 - x[i]) * (1 - x[i]);
    }
    return sum;
};

template <class M>
long allocations_of(const M& method, std::int64_t iterations) {
    const std::array<double, 20> start{-1.2, 1, -1.2, 1, -1.2, 1};
    const tg::minimization_options options{.gradient_tolerance = 0, .max_iterations = iterations};
    const long before = allocations;
    const auto r = tg::minimize(rosenbrock, start, method, options);
    REQUIRE(r.iterations == iterations);
    return allocations - before;
}

TEST_CASE("minimize: iterations allocate nothing") {
    (void)allocations_of(tg::lbfgs{}, 3); // the thread's memory for tapes
    (void)allocations_of(tg::newton_cg{}, 3);
    CHECK(allocations_of(tg::lbfgs{}, 2) == allocations_of(tg::lbfgs{}, 40));
    CHECK(allocations_of(tg::newton_cg{}, 2) == allocations_of(tg::newton_cg{}, 20));
    CHECK(allocations_of(tg::lbfgs{}, 2) > 0); // they are counted
}

} // namespace allocations_test
