#include <nn/every_loss.hpp>
#include <support/messages.hpp>

#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>

/// label_shapes_test.cpp on tensors: every loss is compiled for them.

namespace label_shapes_by_hand_test {

namespace tg = tapegraph;
using tg::dtype;

namespace {

/// The error of call(x, z) with tensors of ones; empty if there is none.
template <class T, class Call>
std::string message_from_tensors(const Call& call, const tg::shape& output, const tg::shape& labels) {
    const auto x = tg::ones<float>(output);
    const auto z = tg::ones<T>(labels);
    return support::message_of<tg::shape_error>([&] { call(x, z); });
}

bool is_one_of(const std::string& text, std::initializer_list<const char*> all) {
    for (const char* each : all)
        if (support::contains(text, each)) return true;
    return false;
}

} // namespace

TEST_CASE("a loss of labels of another shape is refused by hand") {
    every_loss::for_every_loss([]<class Loss>(const Loss& loss) {
        INFO(Loss::name);
        const tg::shape output = std::is_same_v<Loss, tg::ctc> ? tg::shape{3, 3, 4} : tg::shape{3, 4};
        const tg::tensor_spec right = Loss::labels(dtype::f32, output);
        const auto message = [&](const tg::shape& labels) {
            constexpr bool numbers = Loss::labels(dtype::f32, tg::shape{3, 4}).type == dtype::f32;
            return message_from_tensors<std::conditional_t<numbers, float, std::int32_t>>(loss, output, labels);
        };
        CHECK(message(std::is_same_v<Loss, tg::ctc> ? tg::shape{3, 1} : right.dims).empty());
        for (const tg::shape& labels : {tg::shape{1}, tg::shape{4}, tg::shape{1, 4}, tg::shape{1, 3}})
            CHECK(is_one_of(message(labels), {"output and labels differ in shape", "labels are not"}));
    });
}

} // namespace label_shapes_by_hand_test
