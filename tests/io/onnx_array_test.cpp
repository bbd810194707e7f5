#include <tapegraph/io/onnx_import/array.hpp>

#include <doctest/doctest.h>

#include <numeric>

namespace onnx_array_test {

/// Arrays of a file share their elements with copies and tensors, and no write is seen by another.

namespace tg = tapegraph;
using tg::io::onnx_import::array;

namespace {

array counted(tg::dtype type, const std::vector<std::int64_t>& dims) {
    array a(type, dims);
    for (std::int64_t i = 0; i < a.size(); ++i) static_cast<float*>(a.data())[i] = static_cast<float>(i);
    return a;
}

} // namespace

TEST_CASE("arrays of a file: elements are shared until they are written") {
    array a = counted(tg::dtype::f32, {3, 5});
    array b = a;
    tg::any_tensor t = a.tensor();
    CHECK(std::as_const(b).data() == std::as_const(a).data());
    CHECK(t.read() == std::as_const(a).data());
    static_cast<float*>(t.write())[7] = -1;
    CHECK(a.number(7) == 7);
    static_cast<float*>(b.data())[7] = -2;
    CHECK(a.number(7) == 7);
    CHECK(static_cast<const float*>(t.read())[7] == -1);
    CHECK(b.number(7) == -2);
    a.set_dims({15});
    const tg::any_tensor flat = a.tensor(); // of another shape
    CHECK(flat.rank() == 1);
    CHECK(static_cast<const float*>(flat.read())[7] == 7);
}

TEST_CASE("arrays of a file: zeros, no elements, more axes than a tensor has") {
    const array zeros(tg::dtype::i16, {2, 3});
    for (std::int64_t i = 0; i < zeros.size(); ++i) CHECK(zeros.integer(i) == 0);
    CHECK(array(tg::dtype::f32, {4, 0, 2}).tensor().size() == 0);
    const array deep = counted(tg::dtype::f32, {1, 1, 1, 2, 1, 1, 1, 1, 3});
    CHECK(deep.rank() == 9);
    CHECK(deep.number(5) == 5);
    CHECK_THROWS_AS(deep.tensor(), tg::shape_error);
}

TEST_CASE("arrays of a file: axes and blocks in another order") {
    const array a = counted(tg::dtype::f32, {2, 6, 3});
    const array turned = a.transposed({2, 0, 1});
    CHECK(turned.dims() == std::vector<std::int64_t>{3, 2, 6});
    for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < 6; ++j)
            for (std::int64_t k = 0; k < 3; ++k)
                CHECK(turned.number((k * 2 + i) * 6 + j) == a.number((i * 6 + j) * 3 + k));
    CHECK(array(tg::dtype::f32, {4, 0, 2}).transposed({2, 0, 1}).dims() == std::vector<std::int64_t>{2, 4, 0});
    CHECK(counted(tg::dtype::f32, {}).transposed({}).number(0) == 0);
    const array blocks = a.with_blocks({2, 0, 1}); // blocks of two rows
    for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t j = 0; j < 6; ++j)
            CHECK(blocks.number((i * 6 + j) * 3) ==
                  a.number((i * 6 + (std::vector<int>{2, 0, 1})[std::size_t(j / 2)] * 2 + j % 2) * 3));
    CHECK(a.number(6) == 6);
}

} // namespace onnx_array_test
