#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/random/random.cuh>

namespace random_test {

/// Random numbers of a device against the CPU's: the same bits, from a state in device memory.

namespace {

namespace tg = tapegraph;
using namespace tapegraph::testing;

/// The numbers of a call with the given state.
template <class Op, class T>
std::vector<unsigned char> drawn(bool on_device, const typename Op::attributes& attributes, const extents& e,
                                 tg::random_state state, std::size_t shift) {
    const auto words = tg::attributes_to_words<Op>(attributes);
    tg::buffer_view out = shaped<T>(e).view;
    guarded memory(on_device, out.bytes(), shift);
    out.data = memory.data();
    const on_device::device_array<tg::random_state> remote(std::vector<tg::random_state>{state});
    tg::kernel_call call;
    call.out = &out, call.outputs = 1;
    call.attributes = reinterpret_cast<const std::int64_t*>(&words);
    call.random = on_device ? remote.data() : &state;
    on_device ? tg::cuda::kernel_for<Op, T>().run(call) : tg::runtime::kernel_for<Op, T>().run(call);
    CHECK(memory.intact());
    return memory.bytes();
}

template <class Op, class T>
void same_numbers(const typename Op::attributes& attributes) {
    // None, fewer than a block of Philox has, beyond a block of threads; every alignment; large
    // words everywhere.
    const struct {
        extents e;
        std::size_t shift;
        tg::random_state state;
    } cases[]{{{0}, 0, {1, 2}},
              {{1}, 0, {1, 2}},
              {{3}, 0, {0, 0}},
              {{5, 7}, 0, {~0ull, 0xFFFFFFFFFFFFull}},
              {{1031}, sizeof(T), {7, 1ull << 40}},
              {{1030}, 3 * sizeof(T), {1ull << 63, 3}},
              {{4, 5, 103}, 0, {12345, 678}}};
    for (const auto& c : cases) {
        const auto want = drawn<Op, T>(false, attributes, c.e, c.state, c.shift);
        on_device::in_orders([&] { CHECK(drawn<Op, T>(true, attributes, c.e, c.state, c.shift) == want); });
    }
}

template <class T>
void all_laws() {
    const auto law = [](tg::distribution d, double a, double b, std::int64_t ordinal) {
        same_numbers<tg::random_op<T>, T>({ordinal, static_cast<std::int64_t>(d), a, b});
    };
    law(tg::distribution::uniform, 0, 1, 0);
    law(tg::distribution::uniform, -3, 5, 70000);
    law(tg::distribution::uniform, 1, 1.0000001, 1); // rounding reaches the end, which is excluded
    law(tg::distribution::normal, 0, 1, 2);
    law(tg::distribution::normal, 10, 0.1, 0xFFFFFFFF);
    law(tg::distribution::truncated_normal, 1, 2, 3);
    law(tg::distribution::exponential, 4, 0, 4);
    law(tg::distribution::bernoulli, 0.3, 0, 5);
    law(tg::distribution::bernoulli, 0, 0, 6);
    law(tg::distribution::bernoulli, 1, 0, 7);
}

} // namespace

TEST_CASE("random numbers of a device: every law has the CPU's bits") {
    all_laws<float>();
    all_laws<double>();
    all_laws<tg::half>();
    all_laws<tg::bfloat16>();
}

TEST_CASE("random numbers of a device: whole numbers") {
    same_numbers<tg::random_integer_op<std::int32_t>, std::int32_t>({1, 0, 6});
    same_numbers<tg::random_integer_op<std::int32_t>, std::int32_t>({2, INT32_MIN, std::int64_t{INT32_MAX} + 1});
    same_numbers<tg::random_integer_op<std::int64_t>, std::int64_t>({3, -5, 1});
    same_numbers<tg::random_integer_op<std::int64_t>, std::int64_t>({4, INT64_MIN, INT64_MAX});
}

TEST_CASE("random numbers of a device: the state is read when the kernel runs") {
    using op = tg::random_op<float>;
    const op::attributes attributes{};
    const auto words = tg::attributes_to_words<op>(attributes);
    on_device::device_array<float> numbers(100);
    on_device::device_array<tg::random_state> state(std::vector<tg::random_state>{{1, 1}});
    const tg::buffer_view out = on_device::view(numbers.data(), {100});
    tg::kernel_call call;
    call.out = &out, call.outputs = 1;
    call.attributes = words.value;
    call.random = state.data();
    tg::cuda::kernel_for<op, float>().run(call);
    const auto first = numbers.host();
    const tg::random_state next{1, 2};
    state.assign(&next);
    tg::cuda::kernel_for<op, float>().run(call);
    const auto second = numbers.host();
    CHECK(first != second);
    for (int i = 0; i < 100; ++i)
        CHECK(second[static_cast<std::size_t>(i)] ==
              tg::random::uniform_at<float>(1, 2, 0, static_cast<std::uint64_t>(i)));
}

} // namespace random_test
