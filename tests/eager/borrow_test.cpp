#include <doctest/doctest.h>

#include <tapegraph/interop.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

#include <array>
#include <span>

#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#include <eigen3/unsupported/Eigen/CXX11/Tensor>
#endif
#if __has_include(<xtensor/xtensor.hpp>)
#include <xtensor/xarray.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>
#endif

namespace borrow_test {

namespace tg = tapegraph;

namespace {

using floats = std::vector<float>;

/// std::mdspan, which C++20 has not.
template <class T, int Rank>
struct small_mdspan {
    using element_type = T;
    small_mdspan(T* p, std::array<std::int64_t, Rank> e) : pointer(p), extents(e) {
        std::int64_t next = 1;
        for (int i = Rank - 1; i >= 0; next *= extents[static_cast<std::size_t>(i--)])
            strides[static_cast<std::size_t>(i)] = next;
    }
    static constexpr std::size_t rank() { return Rank; }
    T* data_handle() const { return pointer; }
    std::int64_t extent(std::size_t i) const { return extents[i]; }
    std::int64_t stride(std::size_t i) const { return strides[i]; }
    T* pointer;
    std::array<std::int64_t, Rank> extents, strides{};
};
struct kokkos_view {
    static constexpr int rank = 2;
    const double* values;
    const double* data() const { return values; }
    std::size_t extent(int i) const { return i == 0 ? 2 : 3; }
    std::size_t stride(int i) const { return i == 0 ? 3 : 1; }
};
/// The shape of cv::Mat.
struct mat {
    int rows, cols;
    unsigned char* data;
    struct {
        std::size_t bytes;
        operator std::size_t() const { return bytes; }
    } step;
    int number, planes;
    int channels() const { return planes; }
    int depth() const { return number; }
};

} // namespace

TEST_CASE("elements of others are read where they are") {
    floats v{1, 2, 3, 4, 5, 6};
    const auto before = tg::eager_memory();
    const auto t = tg::borrow(v.data(), {2, 3});
    CHECK(t.data() == v.data());
    CHECK(tg::to_string(t.shape()) == "[2, 3]");
    v[5] = 60;
    CHECK(t(1, 2) == 60);
    CHECK(tg::borrow(v).data() == v.data());
    CHECK(tg::borrow(std::as_const(v)).data() == v.data());
    CHECK(tg::borrow(std::span<const float>(v).subspan(1)).data() == v.data() + 1); // not on a boundary of 64
    std::array<std::int64_t, 3> a{1, 2, 3};
    CHECK(tg::borrow(a).data() == a.data());
    double c[2]{0.5, 1};
    CHECK(tg::borrow(c).data() == c);
    CHECK(tg::borrow(small_mdspan<float, 2>(v.data(), {3, 2})).data() == v.data());
    const double d[6]{1, 2, 3, 4, 5, 6};
    kokkos_view k{d};
    CHECK(tg::borrow(k).data() == d);
    CHECK(tg::borrow(k)(1, 0) == 4);
    CHECK(tg::eager_memory().in_use == before.in_use); // no element was copied

    // They are operands as any others.
    const tg::tensor<float> sum = tg::sum(tg::borrow(std::span<const float>(v).subspan(1)) * 2.0f);
    CHECK(sum.item() == 2 * (2 + 3 + 4 + 5 + 60));
    CHECK(tg::borrow(static_cast<const float*>(nullptr), {0, 3}).size() == 0);
    const float one = 7;
    CHECK(tg::borrow(&one, {}).item() == 7);
}

TEST_CASE("writing copies first, unless the tensor writes through") {
    floats v{1, 2, 3};
    auto t = tg::borrow(v);
    auto other = t;
    t.set(10, 0);
    CHECK(v[0] == 1);
    CHECK(t(0) == 10);
    CHECK(t.data() != v.data());
    CHECK(other.data() == v.data());
    auto w = tg::borrow_mutable(v);
    w.set(20, 0);
    CHECK(v[0] == 20);
    CHECK(w.data() == v.data());
    auto copy = w;
    copy.set(30, 0);
    CHECK(v[0] == 20);
    CHECK(copy(0) == 30);
}

TEST_CASE("an owner lives as long as anything that shares its elements") {
    int gone = 0;
    {
        auto* const p = new float[2]{1, 2};
        auto t = tg::borrow(p, {2}, std::shared_ptr<const void>(p, [&](const void* q) {
                                ++gone;
                                delete[] static_cast<const float*>(q);
                            }));
        tg::any_tensor kept = t.viewed({2, 1});
        t = tg::tensor<float>{5};
        CHECK(gone == 0);
        CHECK(static_cast<const float*>(kept.read())[1] == 2);
        kept = {};
        CHECK(gone == 1);
    }
    CHECK(gone == 1);
    floats v{1, 2, 3, 4};
    const float* const place = v.data();
    auto t = tg::adopt(std::move(v), {2, 2});
    CHECK(t.data() == place);
    t.set(9, 0, 0);
    CHECK(t.data() == place); // nobody else has it
    CHECK(tg::adopt(floats{1, 2, 3}).to_vector() == floats{1, 2, 3});
    CHECK(support::contains(support::message_of<tg::shape_error>([] {
                                tg::adopt(floats{1, 2, 3}, {2, 2});
                            }),
                            "adopt: 3 values for shape [2, 2]"));
}

TEST_CASE("models train on what is borrowed, and change nothing of it") {
    floats v{1, 2, 3};
    tg::gradient_tape tape;
    auto w = tg::borrow(v);
    tape.watch(w);
    const tg::tensor<float> y = tg::sum(w * w);
    CHECK(tg::tensor<float>(tape.gradient(y, w)).to_vector() == floats{2, 4, 6});
    CHECK(v == floats{1, 2, 3});
}

TEST_CASE("elements that are not row-major are refused, and copied on request") {
    floats v{1, 2, 3, 4, 5, 6};
    tg::strided_memory<float> columns{v.data(), 2, {3, 2}, {1, 3}};
    const auto refused = [&](auto m) { return support::message_of<tg::shape_error>([&] { tg::borrow(m); }); };
    CHECK(refused(columns) == "borrow: elements of shape [3, 2] are not row-major but column-major; "
                              "borrow_transposed(x), or copy_of(x)");
    CHECK(tg::copy_of(columns).to_vector() == floats{1, 4, 2, 5, 3, 6});
    const auto t = tg::borrow_transposed(columns);
    CHECK(t.data() == v.data());
    CHECK(tg::to_string(t.shape()) == "[2, 3]");
    tg::strided_memory<float> holes{v.data(), 2, {2, 2}, {3, 1}};
    CHECK(support::contains(refused(holes), "strides are [3, 1]; copy_of(x)"));
    CHECK(tg::copy_of(holes).to_vector() == floats{1, 2, 4, 5});
    CHECK(tg::borrow(tg::strided_memory<float>{v.data(), 2, {1, 6}, {77, 1}}).size() ==
          6); // the stride of one row does not matter
    CHECK(
        support::contains(refused(tg::strided_memory<float>{v.data(), 1, {-1}, {1}}), "negative extent in shape [-1]"));
    CHECK(support::contains(support::message_of<tg::argument_error>([&] {
                                tg::borrow(reinterpret_cast<const float*>(reinterpret_cast<const char*>(v.data()) + 1),
                                           {2});
                            }),
                            "f32 at an address that is not a multiple of 4"));
}

TEST_CASE("matrices of the shape of OpenCV's") {
    std::vector<unsigned char> bytes(2 * 12);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i);
    mat whole{2, 4, bytes.data(), {12}, 0, 3};
    const auto t = tg::borrow<std::uint8_t>(whole);
    CHECK(t.data() == bytes.data());
    CHECK(tg::to_string(t.shape()) == "[2, 4, 3]");
    CHECK(t(1, 3, 2) == 23);
    mat part{2, 3, bytes.data() + 3, {12}, 0, 3}; // a rectangle of it
    CHECK(support::contains(support::message_of<tg::shape_error>([&] { tg::borrow<std::uint8_t>(part); }),
                            "strides are [12, 3, 1]; copy_of(x)"));
    CHECK(tg::copy_of<std::uint8_t>(part)(1, 0, 0) == 15);
    CHECK(support::contains(support::message_of<tg::dtype_error>([&] { tg::borrow<float>(whole); }),
                            "the matrix is of depth 0 (u8), not of f32"));
    mat many{-1, -1, bytes.data(), {12}, 0, 3};
    CHECK(support::contains(support::message_of<tg::shape_error>([&] { tg::borrow<std::uint8_t>(many); }),
                            "more than two axes"));
}

TEST_CASE("views of a tensor") {
    tg::tensor<float> t{{1, 2, 3}, {4, 5, 6}};
    const auto m = tg::view_of(t);
    CHECK(m(1, 2) == 6);
    CHECK(m.data_handle() == t.data());
    CHECK(m.extent(1) == 3);
    CHECK(tg::view_as<small_mdspan<const float, 2>>(std::as_const(t)).data_handle() == t.data());
    auto view = tg::view_as<small_mdspan<float, 2>>(t);
    view.pointer[0] = 10;
    CHECK(t(0, 0) == 10);
    CHECK(support::contains(support::message_of<tg::shape_error>([&] { tg::view_as<small_mdspan<float, 3>>(t); }),
                            "view_as: a view of 3 axes of shape [2, 3]"));
    CHECK(tg::borrow(m).data() == t.data());
}

#if __has_include(<eigen3/Eigen/Core>)
TEST_CASE("Eigen's matrices, maps and tensors") {
    Eigen::Matrix<float, -1, -1, Eigen::RowMajor> rows(2, 3);
    rows << 1, 2, 3, 4, 5, 6;
    CHECK(tg::borrow(rows).data() == rows.data());
    CHECK(tg::borrow(rows).to_vector() == floats{1, 2, 3, 4, 5, 6});
    Eigen::MatrixXf columns = rows;
    CHECK(support::contains(support::message_of<tg::shape_error>([&] { tg::borrow(columns); }), "column-major"));
    CHECK(tg::copy_of(columns).to_vector() == floats{1, 2, 3, 4, 5, 6});
    CHECK(tg::borrow_transposed(columns).data() == columns.data());
    Eigen::VectorXd vector = Eigen::VectorXd::LinSpaced(5, 0, 4);
    CHECK(tg::borrow(vector).data() == vector.data());
    CHECK(tg::borrow(vector).rank() == 1);
    Eigen::Map<const Eigen::Matrix<float, -1, -1, Eigen::RowMajor>> map(rows.data(), 3, 2);
    CHECK(tg::borrow(map).data() == rows.data());
    auto block = rows.block(0, 0, 2, 2);
    CHECK(tg::copy_of(block).to_vector() == floats{1, 2, 4, 5});
    Eigen::Tensor<float, 3, Eigen::RowMajor> tensor(2, 3, 4);
    tensor.setRandom();
    CHECK(tg::borrow(tensor).data() == tensor.data());
    CHECK(tg::borrow(tensor)(1, 2, 3) == tensor(1, 2, 3));
    Eigen::Tensor<float, 3> left(2, 3, 4);
    left.setRandom();
    CHECK(tg::copy_of(left)(1, 0, 3) == left(1, 0, 3));
    CHECK(tg::borrow_transposed(left)(3, 0, 1) == left(1, 0, 3));
    // And back: Eigen computes on a tensor's elements.
    tg::tensor<float> t{{1, 2}, {3, 4}};
    Eigen::Map<Eigen::Matrix<float, -1, -1, Eigen::RowMajor>>(t.mutable_data(), 2, 2) *= 2;
    CHECK(t.to_vector() == floats{2, 4, 6, 8});
}
#endif

#if __has_include(<xtensor/xtensor.hpp>)
TEST_CASE("xtensor's containers and views") {
    xt::xtensor<float, 2> x{{1, 2, 3}, {4, 5, 6}};
    CHECK(tg::borrow(x).data() == x.data());
    CHECK(tg::to_string(tg::borrow(x).shape()) == "[2, 3]");
    xt::xarray<double> one{1.5, 2.5};
    CHECK(tg::borrow(one).to_vector() == std::vector<double>{1.5, 2.5});
    xt::xtensor<float, 2> row{{1, 2, 3}}; // the stride of its first axis is 0
    CHECK(tg::borrow(row).data() == row.data());
    xt::xtensor<float, 2, xt::layout_type::column_major> columns = x;
    CHECK(tg::copy_of(columns).to_vector() == floats{1, 2, 3, 4, 5, 6});
    auto second = xt::view(x, 1, xt::all());
    CHECK(tg::borrow(second).data() == x.data() + 3);
    CHECK(tg::borrow(second).to_vector() == floats{4, 5, 6});
}
#endif

} // namespace borrow_test
