#define TG_SIMT
#define TG_CUDA
#include <simt/instructions.hpp>

#include <tapegraph/nn/scan.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

/// tg::scan in a program on a device: it runs on the CPU, between kernels that run on the device. In eager mode the cell's own
/// kernels run there.

namespace tg = tapegraph;
using tg::cuda::driver::imitation;

namespace {

const bool guarded = imitation::instance().guarded = true;

// v' = 2 v + x w: small whole numbers, so every order of summation gives the same.
constexpr auto model = [](auto xs, auto v, auto w) {
    const auto cell = [](auto state, auto x, auto factor) {
        const auto next = tg::eval(2 * state + x * factor);
        return std::pair{next, next};
    };
    const auto [last, sequence] = tg::scan(cell, v, tg::eval(xs + 1), w);
    return tg::eval(sum(sequence) + sum(last * last));
};

} // namespace

TEST_CASE("a scan of a program on a device runs on the CPU") {
    const auto differentiated = tg::value_and_gradient(model);
    const std::int64_t time = 4;
    const auto xs = tg::arange<float>(2 * time, -3), w = tg::arange<float>(3, 1), v = tg::arange<float>(6, -2);
    const auto sequence = [&] { return tg::tensor<float>(reshape(xs, {2, time, 1})); };
    const auto state = [&] { return tg::tensor<float>(reshape(v, {2, 3})); };
    const auto want = differentiated(sequence(), state(), w);
    const tg::device_scope on(tg::device::cuda(0));
    auto program = tg::function<tg::graph>(differentiated, tg::spec<float, 2, tg::dyn, 1>{}, tg::spec<float, 2, 3>{},
                                           tg::spec<float, 3>{});
    const auto check = [&](const auto& got) {
        CHECK(got.value.item() == want.value.item());
        CHECK(std::get<0>(got.gradient).to_vector() == std::get<0>(want.gradient).to_vector());
        CHECK(std::get<1>(got.gradient).to_vector() == std::get<1>(want.gradient).to_vector());
        CHECK(std::get<2>(got.gradient).to_vector() == std::get<2>(want.gradient).to_vector());
    };
    for (int i = 0; i < 3; ++i) check(program(sequence(), state(), w));
    check(differentiated(sequence(), state(), w));
}
