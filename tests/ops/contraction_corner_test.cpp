#include <support/messages.hpp>

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace contraction_corner_test {

/// Contractions and windows where the table does not look: messages, ties, NaN, threads.

namespace tg = tapegraph;
using support::message_of;
using tg::tensor;

namespace {

tensor<float> z(const tg::shape& dims) { return tg::zeros<float>(dims); }

template <class T>
tensor<T> waves(const tg::shape& dims, double step) {
    auto t = tensor<T>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i)
        t.mutable_data()[i] = static_cast<T>(std::sin(step * static_cast<double>(i)));
    return t;
}

} // namespace

TEST_CASE("einsum: what does not fit is named") {
    const auto says = [](const char* text, const tensor<float>& a, const tensor<float>& b) {
        return message_of([&] { tg::einsum(text, a, b); });
    };
    CHECK(says("ij,jk", z({2, 3}), z({4, 5})) == "einsum: extents of label j differ: f32[2, 3], f32[4, 5]");
    CHECK(says("bQ,bQ->b", z({2, 3}), z({2, 1})) == "einsum: extents of label Q differ: f32[2, 3], f32[2, 1]");
    CHECK(says("...i,...i", z({2, 3}), z({4, 3})) == "einsum: extents of ... do not broadcast: f32[2, 3], f32[4, 3]");
    CHECK(says("ij,jk->ix", z({2, 3}), z({3, 5})).find("label x of the result is in no operand") != std::string::npos);
    CHECK(says("ij,jk->ii", z({2, 3}), z({3, 5})).find("names label i twice") != std::string::npos);
    CHECK(says("ijk,jk", z({2, 3}), z({3, 5})).find("another number of axes") != std::string::npos);
    CHECK(says("ij", z({2, 3}), z({3, 5})).find("another number of operands") != std::string::npos);
    for (const char* wrong : {"i1,jk", "ij,jk->ik->", "ij,jk,k", "..ij,jk", "i...j...,jk", "ij-jk", "ij.,jk"})
        CHECK_MESSAGE(says(wrong, z({2, 3}), z({3, 5})).find("subscripts are letters") != std::string::npos, wrong);
    CHECK(message_of([] { tg::einsum("ii", z({2, 3})); }) == "einsum: extents of label i differ: f32[2, 3]");
    CHECK(message_of([] {
              tg::einsum("...,i...->...i", z({1, 2, 1, 2, 1, 2, 1, 2}), z({3, 2, 1, 2, 1, 2, 1, 2}));
          }).find("rank above 8") != std::string::npos);
    CHECK(tg::einsum(" i j , j k -> i k ", z({2, 3}), z({3, 5})).shape() == tg::shape{2, 5});
}

TEST_CASE("tensordot, matmul: what does not fit is named") {
    CHECK(message_of([] {
              tg::tensordot(z({2, 3}), z({4, 5}), 1);
          }) == "tensordot: extents of summed axes differ: f32[2, 3], f32[4, 5]");
    for (const tg::tensordot_axes& wrong :
         {tg::tensordot_axes(3), tg::tensordot_axes(-1), tg::tensordot_axes({0}, {2}), tg::tensordot_axes({0, 1}, {0}),
          tg::tensordot_axes({0, 0}, {0, 1}), tg::tensordot_axes({0, 1}, {1, 1})})
        CHECK(message_of([&] {
                  tg::tensordot(z({3, 3}), z({3, 3}), wrong);
              }).find("tensordot: axes are not pairs") == 0);
    CHECK(message_of([] { tg::matmul(z({3}), z({4})); }).find("matmul: inner extents differ") == 0);
    CHECK(message_of([] { tg::matmul(z({}), z({4})); }).find("matmul: an operand is a scalar") == 0);
    CHECK(message_of([] { tg::vdot(z({3}), z({2, 2})); }).find("tensordot: extents of summed axes differ") == 0);
}

TEST_CASE("windows: what does not fit is named") {
    CHECK(message_of([] {
              tg::conv2d_transpose(z({1, 2, 2, 3}), z({2, 2, 5, 4}));
          }).find("conv_transpose: channels differ") == 0);
    CHECK(message_of([] {
              tg::conv2d_transpose(z({1, 2, 3}), z({2, 5, 3}));
          }).find("conv2d_transpose: input must be") == 0);
    CHECK(message_of([] {
              tg::conv1d_transpose(z({1, 2, 2, 3}), z({2, 2, 5, 3}));
          }).find("conv1d_transpose: input must be") == 0);
    CHECK(message_of([] {
              tg::conv1d_transpose(z({1, 2, 3}), z({2, 5, 3}), {.stride = 2, .output_padding = 2});
          }).find("output_padding does not fit") != std::string::npos);
    CHECK(message_of([] {
              tg::depthwise_conv2d(z({1, 4, 4, 3}), z({2, 2, 4, 1}));
          }).find("depthwise_conv: channels differ") == 0);
    CHECK(message_of([] { tg::max_pooling2d(z({1, 4, 3})); }).find("pooling: input must be NHWC") == 0);
    CHECK(message_of([] { tg::max_pooling1d(z({1, 4, 4, 3})); }).find("pooling: input must be NWC") == 0);
    CHECK(message_of([] { tg::max_pooling1d(z({1, 4, 3}), {.pool_size = 5}); }).find("pooling: window larger") == 0);
    CHECK(message_of([] {
              tg::max_pooling1d(z({1, 4, 3}), {.padding = tg::padding::amounts(0, 0, 2, 0)});
          }).find("pooling: padding as large as the window") == 0);
    CHECK(message_of([] {
              tg::conv1d(z({1, 4, 3}), z({2, 3, 1}), {.padding = tg::padding::amounts(0, 0, -1, 0)});
          }).find("convolution: padding is negative") == 0);
    CHECK(message_of([] {
              tg::conv2d(z({1, 4, 4, 3}), z({2, 2, 3, 1}), {.padding = tg::padding::causal()});
          }) == "conv2d: causal padding is for conv1d: f32[1, 4, 4, 3], f32[2, 2, 3, 1]");
    CHECK(message_of([] {
              tg::conv1d_transpose(z({1, 4, 3}), z({2, 3, 3}), {.padding = tg::padding::causal()});
          }).find("conv_transpose: causal padding is for conv1d") == 0);
    CHECK(message_of([] {
              tg::max_pooling1d(z({1, 4, 3}), {.padding = tg::padding::causal()});
          }).find("pooling: causal padding is for conv1d") == 0);
}

TEST_CASE("causal padding: as many outputs as strides fit, none of nothing") {
    for (const std::int64_t width : {0, 1, 2, 7, 9, 10})
        for (const std::int64_t stride : {1, 2, 3})
            CHECK(tg::conv1d(z({2, width, 3}), z({4, 3, 5}), {.stride = stride, .padding = tg::padding::causal()})
                      .shape() == tg::shape{2, (width + stride - 1) / stride, 5});
}

TEST_CASE("max pooling: the first of equal maxima takes the derivative, NaN is a maximum") {
    tensor<double> x = reshape(tensor<double>{1, 3, 3, 2, 3, 3}, {1, 6, 1});
    tg::gradient_tape tape;
    tape.watch(x);
    const auto y = tg::max_pooling1d(x, {.pool_size = 3});
    CHECK(y.to_vector() == std::vector<double>{3, 3});
    const auto dx = tape.gradient(y, x);
    CHECK(dx.to_vector() == std::vector<double>{0, 1, 0, 0, 1, 0});

    const double nan = std::numeric_limits<double>::quiet_NaN();
    tensor<double> n = reshape(tensor<double>{1, nan, 3, nan, 2, 1}, {1, 6, 1});
    tg::gradient_tape second;
    second.watch(n);
    const auto m = tg::max_pooling1d(n, {.pool_size = 4, .stride = 2});
    CHECK(std::isnan(m.data()[0]));
    CHECK(std::isnan(m.data()[1]));
    const auto dn = second.gradient(m, n);
    CHECK(dn.to_vector() == std::vector<double>{0, 1, 0, 1, 0, 0});
}

TEST_CASE("batches of products: one thread gives the bits of two") {
    const auto run = [] {
        const auto small = matmul(waves<float>({301, 5, 9}, 0.7), waves<float>({301, 9, 4}, 0.3));
        const auto broadcast = matmul(waves<float>({3, 1, 40, 50}, 0.7), waves<float>({7, 50, 60}, 0.3));
        const auto tall = matmul(waves<float>({64, 40, 50}, 0.7), waves<float>({50, 60}, 0.3));
        const auto few = matmul(waves<double>({2, 90, 80}, 0.7), waves<double>({2, 80, 70}, 0.3));
        return std::tuple{small.to_vector(), broadcast.to_vector(), tall.to_vector(), few.to_vector()};
    };
    tg::set_thread_count(1);
    const auto one = run();
    tg::set_thread_count(2);
    const auto two = run();
    tg::set_thread_count(7); // more threads than products of one case
    const auto seven = run();
    tg::set_thread_count(0);
    CHECK(one == two);
    CHECK(one == seven);
}

} // namespace contraction_corner_test
