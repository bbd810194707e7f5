#include <tapegraph/interop.hpp>
#include <tapegraph/tensor.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace content_marks_test {

namespace tg = tapegraph;

// Programs keep what they pack of a variable only while its buffer was not handed out for writing
// (docs/design/cpu/kept_memory.md). What the library itself fills must not count as handed out.
TEST_CASE("tensors that the library fills keep their marks; those whose elements were handed out do not") {
    const tg::tensor<float> x{{1, 2}, {3, 4}};
    const std::vector<float> numbers{1, 2, 3};
    const std::vector<tg::any_tensor> filled{x,
                                             tg::tensor<float>(numbers),
                                             tg::zeros<float>({2, 3}),
                                             tg::ones<float>({2, 3}),
                                             tg::full<float>({2}, 3.0f),
                                             tg::arange<float>(5),
                                             tg::eye<float>(3),
                                             tg::linspace<float>(0, 1, 4),
                                             tg::random::normal<float>({3}, {.seed = 1}),
                                             tg::copy_of(numbers),
                                             tg::tensor<float>(matmul(x, x) + x),
                                             tg::tensor<float>(tg::cast<float>(tg::cast<tg::half>(x))),
                                             tg::tensor<float>(gather(x, tg::tensor<std::int32_t>{1, 0})),
                                             tg::tensor<float>(cumulative_sum(x, 0))};
    for (std::size_t i = 0; i < filled.size(); ++i) {
        CAPTURE(i);
        REQUIRE(filled[i].content() != nullptr);
        CHECK(filled[i].content()->number() != 0);
        CHECK(filled[i].content()->number() == filled[i].content()->number());
    }

    tg::gradient_tape outer, inner;
    tg::tensor<float> y = x;
    outer.watch(y), inner.watch(y);
    const tg::tensor<float> first = inner.gradient(sum(y * y * y), y);
    const tg::tensor<float> second = outer.gradient(sum(first), y);
    CHECK(first.content()->number() != 0);
    CHECK(second.content()->number() != 0);

    tg::tensor<float> written = tg::zeros<float>({2});
    const std::uint64_t before = written.content()->number();
    written.overwrite();
    CHECK(written.content()->number() != before);
    written.mutable_data()[0] = 1;
    CHECK(written.content()->number() == 0);
}

} // namespace content_marks_test
