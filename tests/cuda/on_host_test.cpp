#define TG_SIMT
#define TG_CUDA
#include <simt/instructions.hpp>

#include <support/captured_stderr.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

/// An operation without a device kernel runs on the CPU, between kernels that run on the device,
/// and the log reports it.

namespace tg = tapegraph;
using tg::cuda::driver::imitation;

namespace {

const bool guarded = imitation::instance().guarded = true;

// Reverses the elements.
struct reversed_op : tg::custom_op<1> {
    static constexpr std::string_view name = "reversed";
    static constexpr void infer(const attributes&, tg::inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto, auto) {
        return tg::invoke<reversed_op>(a, nullptr, std::source_location::current(), dy);
    }
};
constexpr auto reversed = [](const auto& x) {
    return tg::invoke<reversed_op>({}, nullptr, std::source_location::current(), x);
};

constexpr auto model = [](auto x) {
    const auto y = reversed(x * 2) + x;
    return tg::eval(sum(y * y * x));
};

} // namespace

template <class T>
struct tapegraph::runtime::kernel<reversed_op, T> {
    static void run(const kernel_call& call) {
        const std::int64_t count = call.in[0].elements();
        for (std::int64_t i = 0; i < count; ++i) call.out[0].as<T>()[i] = call.in[0].as<const T>()[count - 1 - i];
    }
};

TEST_CASE("an operation without a device kernel runs on the CPU, in both modes") {
    const auto differentiated = tg::value_and_gradient(model);
    // y = 2 * reversed(x) + x: small integers, so every order of summation gives the same.
    const std::vector<float> x{1, -2, 3, 0, 5};
    float value = 0;
    std::vector<float> gradient(5);
    for (std::size_t i = 0; i < 5; ++i) {
        const float y = 2 * x[4 - i] + x[i], mirrored = 2 * x[i] + x[4 - i];
        value += y * y * x[i];
        gradient[i] = y * y + 2 * y * x[i] + 4 * mirrored * x[4 - i];
    }
    const tg::device_scope on(tg::device::cuda(0));
    const auto input = tg::from_range<float>(x, {5});
    auto program = tg::function<tg::graph>(differentiated, tg::spec<float, tg::dyn>{});
    std::string text = test::captured_stderr([&] {
        tg::log_placement(true);
        for (int i = 0; i < 3; ++i) { // it is not captured
            const auto [loss, dx] = program(input);
            CHECK(loss.item() == value);
            CHECK(dx.to_vector() == gradient);
        }
        tg::log_placement(false);
    });
    const auto occurrences = [&](const std::string& part) {
        int count = 0;
        for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
        return count;
    };
    CHECK(occurrences("tapegraph: call 0 of ") == 1);
    CHECK(occurrences(": reversed f32[5] on cpu, cuda:0 has no kernel for it\n") == 2); // and its derivative
    CHECK(occurrences(" on cuda:0\n") > 0);

    text = test::captured_stderr([&] {
        tg::log_placement(true);
        const auto [loss, dx] = differentiated(input);
        tg::log_placement(false);
        CHECK(loss.item() == value);
        CHECK(dx.to_vector() == gradient);
    });
    CHECK(occurrences("tapegraph: reversed f32[5] on cpu, cuda:0 has no kernel for it\n") == 2);
    CHECK(occurrences("tapegraph: multiply f32[5] on cuda:0\n") == 1);
}
