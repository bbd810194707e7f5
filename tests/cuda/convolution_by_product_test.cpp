#include <cuda/device_array.hpp>

#include <tapegraph/cuda/ops/convolution/by_product.cuh>

#include <cuda/convolution_reference.hpp>

#include <doctest/doctest.h>

namespace convolution_by_product_test {

using namespace convolution_testing;
namespace cuda = tapegraph::cuda;

namespace {

// The scratch memory has exactly the requested size, so that a window too many would be seen after
// it.
template <class T>
void check_passes(const tg::convolution_geometry& g, std::size_t limit) {
    const sizes n(g);
    const expected<T> e(g);
    const device_array<T> x(e.x), w(e.w), dy(e.dy), bias(e.bias), y(n.y), activated(n.y), dx(n.x), dw(n.w);
    const auto bytes = static_cast<std::int64_t>(cuda::detail::chunk_bytes(g, sizeof(T), limit));
    const device_array<unsigned char> scratch(bytes + 256);
    const tg::kernel_call call;
    const auto multiply = [](const cuda::gemm_arguments<T>& a) {
        cuda::gemm(nullptr, "convolution", a, tg::math_mode::fp32);
    };
    const cuda::convolution_by_product<T, decltype(multiply)> product(call, "convolution", g, scratch.data(), limit,
                                                                      multiply);
    product.forward(x.data(), w.data(), nullptr, false, y.data());
    product.forward(x.data(), w.data(), bias.data(), true, activated.data());
    product.input_gradient(dy.data(), w.data(), dx.data());
    product.filter_gradient(x.data(), dy.data(), dw.data());
    CHECK(y.host() == e.y);
    CHECK(activated.host() == e.activated);
    CHECK(dx.host() == e.dx);
    CHECK(dw.host() == e.dw);
    const auto after = scratch.host();
    CHECK(std::all_of(after.begin() + bytes, after.end(), [](unsigned char c) { return c == 0xFF; }));
}

} // namespace

TEST_CASE("convolution by products: all passes are exact, whatever the chunks") {
    for (const auto& g : geometries) {
        if (g.groups > 1) continue;
        in_orders([&] { check_passes<float>(g, std::size_t{1} << 30); });
        check_passes<double>(g, 1); // an image at a time
    }
    const auto g = geometry(5, 6, 7, 3, 3, 2, 4, 2, 1, 1, 0, 1, 1);
    const std::size_t image = cuda::detail::chunk_bytes(g, sizeof(float), 1);
    for (std::size_t images : {1, 2, 3, 5, 9}) {
        CHECK(cuda::detail::images_of_chunk(g, sizeof(float), images * image) == std::min<std::size_t>(images, 5));
        check_passes<float>(g, images * image + image / 2);
    }
}

TEST_CASE("convolution by products: of single pixels, in place of windows") {
    const auto pixels = geometry(3, 5, 7, 6, 1, 1, 10);
    REQUIRE(cuda::detail::is_pixelwise(pixels));
    REQUIRE(cuda::detail::chunk_bytes(pixels, sizeof(float), 1) == 0);
    in_orders([&] { check_passes<float>(pixels, 1); });
    check_passes<double>(pixels, 1);
    check_passes<float>(geometry(1, 1, 1, 1, 1, 1, 1), 1);
    // Convolutions with windows of one pixel that are not the image itself.
    check_passes<float>(geometry(2, 5, 7, 6, 1, 1, 5, 2, 3), 1);
    check_passes<float>(geometry(2, 5, 4, 6, 1, 1, 5, 1, 1, 1, 0, 0, 2), 1);
}

TEST_CASE("convolution by products: nothing to compute, and nothing to add") {
    for (auto [batch, in, out] : {std::array{0, 3, 4}, {2, 0, 4}, {2, 3, 0}})
        check_passes<float>(geometry(batch, 5, 5, in, 3, 3, out, 1, 1, 1, 1, 1, 1), 1);
}

} // namespace convolution_by_product_test
