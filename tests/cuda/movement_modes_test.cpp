#include <cuda/imitated_results.hpp>

#include <string>
#include <vector>

namespace movement_modes_test {

/// Movement, indexing, ordering, pooling and effects in programs: on the imitated device, whose
/// memory the host cannot access, values, derivatives and errors are the same as on the CPU.

namespace tg = tapegraph;
using tapegraph::testing::check_same;
using tg::tensor;

namespace {

const tensor<float> plane = [] {
    auto x = tensor<float>::uninitialized({6, 5});
    for (int i = 0; i < 30; ++i) x.mutable_data()[i] = static_cast<float>(i * 7 % 11) / 3 - 1;
    return x;
}();
const tensor<std::int32_t> picks{4, 0, 4, 2};

/// The value of f(x) and the derivative of the sum of its squares, concatenated.
template <class F>
void check_with_gradient(const tensor<float>& x, const F& f) {
    check_same([&] {
        tensor<float> own = x;
        tg::gradient_tape tape;
        tape.watch(own);
        const auto y = tg::eval(f(own));
        const auto gradient = tape.gradient(tensor<float>(y * y), own);
        auto all = y.to_vector();
        const auto more = gradient.to_vector();
        all.insert(all.end(), more.begin(), more.end());
        return all;
    });
}

} // namespace

TEST_CASE("movement on the device, in programs") {
    check_with_gradient(plane, [](auto x) { return transpose(x); });
    check_with_gradient(plane, [](auto x) { return slice(x, {{1, 6, 2}, {4, tg::all.end, -1}}); });
    for (const auto mode : {tg::pad_mode::constant, tg::pad_mode::reflect, tg::pad_mode::symmetric, tg::pad_mode::edge,
                            tg::pad_mode::wrap})
        check_with_gradient(plane, [&](auto x) { return pad(x, {{2, 1}, {0, 7}}, {.mode = mode, .value = 3}); });
    check_with_gradient(plane, [](auto x) { return tile(x, {2, 3}); });
    check_with_gradient(plane, [](auto x) { return repeat(x, 3, 1); });
    check_with_gradient(plane, [](auto x) { return roll(x, -8, 1); });
    check_with_gradient(plane, [](auto x) { return concat(x, tg::eval(x * 2), 0); });
    check_same([] { return tg::linspace<double>(plane, 0, 1, 7).to_vector(); });
}

TEST_CASE("indexing on the device, in programs") {
    check_with_gradient(plane, [](auto x) { return gather(x, picks); });
    check_with_gradient(plane, [](auto x) { return gather(x, picks, 1); });
    check_with_gradient(plane, [](auto x) { return gather_nd(x, tensor<std::int32_t>{{1, 2}, {5, 4}, {1, 2}}); });
    check_with_gradient(plane, [](auto x) { return take_along(x, tensor<std::int32_t>{{0, 5, 5, 1, 2}}, 0); });
    check_with_gradient(plane, [](auto x) { return scatter_add(slice(x, {{0, 4}}), picks, {9, 5}); });
    check_same([] { return tg::one_hot<float>(picks, 5).to_vector(); });
}

TEST_CASE("order on the device, in programs") {
    check_with_gradient(plane, [](auto x) { return sort(x, 0); });
    check_with_gradient(plane, [](auto x) { return top_k(x, 3).values; });
    check_with_gradient(plane, [](auto x) { return cumulative_sum(x, 0); });
    check_with_gradient(plane, [](auto x) { return cumulative_product(x, 1); });
    check_same([] { return argsort(plane, {.descending = true}).to_vector(); });
    check_same([] { return argmax(plane, 1).to_vector(); });
    check_same([] { return argmin(plane).to_vector(); });
}

TEST_CASE("pooling on the device, in programs") {
    const auto image = tg::eval(reshape(plane, {1, 6, 5, 1}));
    check_with_gradient(image, [](auto x) { return tg::max_pooling2d(x, {.pool_size = {2, 2}}); });
    check_with_gradient(image, [](auto x) { return tg::max_pooling2d(x, {.pool_size = {3, 2}, .stride = {1, 1}}); });
    check_with_gradient(image, [](auto x) {
        return tg::average_pooling2d(x, {.pool_size = {2, 3}, .stride = {2, 1}});
    });
}

TEST_CASE("what kernels on the device cannot throw comes when the host waits") {
    const tg::device_scope on(tg::device::cuda(0));
    const tensor<std::int32_t> bad{0, 6, 7};
    CHECK_THROWS_WITH_AS((void)gather(plane, bad).to_vector(), "gather: index 6 at position 1 is outside [0, 6)",
                         tg::range_error);
    CHECK(gather(plane, tensor<std::int32_t>{0}).to_vector() == slice(plane, {{0, 1}}).to_vector()); // no fault remains
    tensor<float> x{1, 2, 4};
    const auto look = [](const tensor<float>& of) {
        tensor<float> y = tg::check_finite<"inverse">(tensor<float>(1 / of));
        return y.to_vector();
    };
    CHECK(look(x) == std::vector<float>{1, 0.5f, 0.25f});
    CHECK_THROWS_WITH_AS(look(x - 2), "inverse: element [1] of f32[3] is inf", tg::numeric_error);
    const auto positive = [](const tensor<float>& of) {
        tg::check<"rates are positive">(tensor<bool>(of > 0));
        return of.to_vector();
    };
    CHECK_NOTHROW(positive(x));
    CHECK_THROWS_WITH_AS(positive(tensor<float>(x - 2)), "rates are positive: false at element [0] of bool[3]",
                         tg::check_error);
}

TEST_CASE("prints from the device") {
    static std::string printed;
    const tg::print_sink before = tg::set_print_sink([](std::string_view text) { printed += text; });
    {
        const tg::device_scope on(tg::device::cuda(0));
        tensor<float> x{1, 2};
        tensor<float> y = tg::print<"twice">(tensor<float>(x * 2));
        CHECK(y.to_vector() == std::vector<float>{2, 4});
    }
    tg::set_print_sink(before);
    CHECK(printed == "twice: f32[2] [2. 4.]\n");
}

namespace {

constexpr auto careful = [](auto x) {
    const auto y = tg::print<"y">(tg::check_finite<"logarithm">(tg::log(x)));
    tg::check<"logarithms stay below four">(y < 4);
    return tg::eval(sum(gather(y, tg::cast<std::int32_t>(x), 0)));
};

} // namespace

// From the second call on a captured graph is replayed.
TEST_CASE("effects and faults in a step that is captured") {
    static std::string printed;
    const tg::print_sink before = tg::set_print_sink([](std::string_view text) { printed += text; });
    const tg::device_scope on(tg::device::cuda(0));
    auto f = tg::function<tg::graph>(careful, tg::spec<float, 3>{});
    for (int times = 0; times < 4; ++times) {
        printed.clear();
        CHECK(f(tensor<float>{1, 2, 1}).item() == doctest::Approx(std::log(2.0) * 2));
        CHECK(printed == "y: f32[3] [0.        0.6931472 0.       ]\n");
    }
    CHECK_THROWS_WITH_AS((void)f(tensor<float>{1, 2, 3}).item(), "gather: index 3 at position 2 is outside [0, 3)",
                         tg::range_error);
    CHECK_THROWS_WITH_AS((void)f(tensor<float>{1, 0, 2}).item(), "logarithm: element [1] of f32[3] is -inf",
                         tg::numeric_error);
    CHECK_THROWS_WITH_AS((void)f(tensor<float>{1, 2, 60}).item(),
                         "logarithms stay below four: false at element [2] of bool[3]", tg::check_error);
    CHECK(f(tensor<float>{2, 1, 2}).item() == doctest::Approx(std::log(2.0) * 2));
    tg::set_print_sink(before);
}

} // namespace movement_modes_test
