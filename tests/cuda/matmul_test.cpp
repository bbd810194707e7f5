#include <cuda/device_array.hpp>

#include <support/messages.hpp>

#include <tapegraph/cuda/ops/product/matmul.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace matmul_test {

/// matmul and gemm against the CPU's kernel and against sums written out. Inputs are small
/// integers, so that every sum is exact in all element types and the comparison is equality.

namespace tg = tapegraph;
using namespace on_device;
using support::message_of;

namespace {

using shape = std::vector<std::int64_t>;

std::int64_t elements(const shape& s) {
    std::int64_t product = 1;
    for (std::int64_t e : s) product *= e;
    return product;
}

/// Runs both kernels on one call.
template <class T>
void compare(const shape& a, const shape& b, const shape& c, bool transpose_a, bool transpose_b) {
    CAPTURE(tg::name_of(tg::dtype_of<T>));
    const auto x = whole_numbers<T>(elements(a), 1, 2), y = whole_numbers<T>(elements(b), 2, 2);
    std::vector<T> want(static_cast<std::size_t>(elements(c)));
    const std::int64_t attributes[]{transpose_a, transpose_b};
    tg::kernel_call call;
    call.inputs = 2, call.outputs = 1, call.attributes = attributes;

    const tg::buffer_view host_in[]{view(x.data(), a), view(y.data(), b)}, host_out[]{view(want.data(), c)};
    call.in = host_in, call.out = host_out;
    const tg::runtime::kernel_pair reference = tg::runtime::kernel_for<tg::matmul_op, T>();
    std::vector<char> scratch(reference.workspace(call));
    call.workspace = scratch.data();
    reference.run(call);

    const device_array<T> dx(x), dy(y), got(elements(c));
    const tg::buffer_view in[]{view(dx.data(), a), view(dy.data(), b)}, out[]{view(got.data(), c)};
    call.in = in, call.out = out, call.workspace = nullptr;
    const tg::runtime::kernel_functions kernel = tg::cuda::kernel_for<tg::matmul_op, T>();
    CHECK(kernel.workspace(call) == 0);
    kernel.run(call);
    CHECK(got.host() == want);
}

/// Checks [leading..., m, k] by [leading..., k, n] with each transposition.
void check(const shape& leading_a, const shape& leading_b, const shape& leading_c, std::int64_t m, std::int64_t k,
           std::int64_t n) {
    const auto with = [](shape s, std::int64_t rows, std::int64_t columns, bool transposed) {
        s.push_back(transposed ? columns : rows);
        s.push_back(transposed ? rows : columns);
        return s;
    };
    for (int flags = 0; flags < 4; ++flags) {
        const bool ta = flags & 1, tb = flags & 2;
        const shape a = with(leading_a, m, k, ta), b = with(leading_b, k, n, tb), c = with(leading_c, m, n, false);
        const std::string where = std::to_string(m) + " " + std::to_string(k) + " " + std::to_string(n) + " flags " +
                                  std::to_string(flags) + " axes " + std::to_string(leading_c.size());
        CAPTURE(where);
        compare<float>(a, b, c, ta, tb);
        compare<double>(a, b, c, ta, tb);
        compare<tg::bfloat16>(a, b, c, ta, tb);
        compare<tg::half>(a, b, c, ta, tb);
    }
}

/// A product inside larger memory: rows longer than the matrix, gaps between matrices.
template <class T>
struct landscape {
    std::int64_t m, n, k, batch, lda, ldb, ldc, stride_a, stride_b, stride_c;
    bool transpose_a, transpose_b;
    std::vector<T> a, b, c, bias;

    landscape(std::int64_t m_, std::int64_t n_, std::int64_t k_, std::int64_t batch_, bool ta, bool tb)
        : m(m_),
          n(n_),
          k(k_),
          batch(batch_),
          lda((ta ? m : k) + 2),
          ldb((tb ? k : n) + 1),
          ldc(n + 3),
          stride_a(lda * (ta ? k : m) + 5),
          stride_b(batch % 2 == 0 ? 0 : ldb * (tb ? n : k)),
          stride_c(ldc * m + 4),
          transpose_a(ta),
          transpose_b(tb),
          a(whole_numbers<T>(stride_a * batch, 3)),
          b(whole_numbers<T>(ldb * (tb ? n : k) * batch, 4)),
          c(whole_numbers<T>(stride_c * batch, 5)),
          bias(whole_numbers<T>(n, 6, 9)) {}

    /// The expected C; everything outside the matrices stays unchanged.
    std::vector<T> expected(bool accumulate, bool with_bias, bool relu) const {
        std::vector<T> want = c;
        const auto at = [](const std::vector<T>& v, std::int64_t i) {
            return static_cast<double>(v[static_cast<std::size_t>(i)]);
        };
        for (std::int64_t x = 0; x < batch; ++x)
            for (std::int64_t i = 0; i < m; ++i)
                for (std::int64_t j = 0; j < n; ++j) {
                    const std::int64_t place = x * stride_c + i * ldc + j;
                    double sum = accumulate ? at(c, place) : 0;
                    for (std::int64_t l = 0; l < k; ++l)
                        sum += at(a, x * stride_a + (transpose_a ? l * lda + i : i * lda + l)) *
                               at(b, x * stride_b + (transpose_b ? j * ldb + l : l * ldb + j));
                    if (with_bias) sum += at(bias, j);
                    if (relu) sum = std::max(sum, 0.0);
                    want[static_cast<std::size_t>(place)] = static_cast<T>(sum);
                }
        return want;
    }
    std::vector<T> computed(bool accumulate, bool with_bias, bool relu) const {
        const device_array<T> da(a), db(b), dc(c), dbias(bias);
        tg::cuda::gemm_arguments<T> g;
        g.m = m, g.n = n, g.k = k, g.batch = batch, g.accumulate = accumulate, g.relu = relu;
        g.a = da.data(), g.lda = lda, g.transpose_a = transpose_a, g.stride_a = stride_a;
        g.b = db.data(), g.ldb = ldb, g.transpose_b = transpose_b, g.stride_b = stride_b;
        g.c = dc.data(), g.ldc = ldc, g.stride_c = stride_c;
        if (with_bias) g.bias = dbias.data();
        tg::cuda::gemm<T>(tg::cuda::context::current().stream(), "test", g);
        return dc.host();
    }
};

template <class T>
void check_landscapes() {
    CAPTURE(tg::name_of(tg::dtype_of<T>));
    for (int flags = 0; flags < 32; ++flags) {
        const bool ta = flags & 1, tb = flags & 2, accumulate = flags & 4, bias = flags & 8, relu = flags & 16;
        CAPTURE(flags);
        for (const auto& l : {landscape<T>(5, 3, 4, 1, ta, tb), landscape<T>(1, 7, 2, 2, ta, tb),
                              landscape<T>(11, 40, 13, 3, ta, tb), landscape<T>(3, 5, 0, 2, ta, tb)})
            CHECK(l.computed(accumulate, bias, relu) == l.expected(accumulate, bias, relu));
    }
}

} // namespace

TEST_CASE("matmul on a device: matrices of awkward sizes, transposed or not") {
    for (std::int64_t m : {1, 2, 7, 33})
        for (std::int64_t k : {1, 3, 37})
            for (std::int64_t n : {1, 5, 34}) check({}, {}, {}, m, k, n);
    check({}, {}, {}, 129, 65, 130);
}

TEST_CASE("matmul on a device: leading axes are batches and broadcast") {
    check({3}, {3}, {3}, 4, 5, 6);
    check({2, 3}, {2, 3}, {2, 3}, 2, 3, 4);
    check({4}, {}, {4}, 3, 5, 2); // one second factor: a tall matrix unless A is transposed
    check({}, {4}, {4}, 3, 5, 2); // one first factor
    check({3, 1}, {1, 4}, {3, 4}, 2, 3, 5);
    check({3, 1, 2}, {4, 1}, {3, 4, 2}, 3, 2, 3);
    check({1, 2, 1, 3}, {2, 2, 2, 1}, {2, 2, 2, 3}, 2, 3, 2);
    check({1}, {1, 1}, {1, 1}, 3, 4, 5);
    check({2, 1}, {3}, {2, 3}, 1, 4, 1);
}

TEST_CASE("matmul on a device: empty extents") {
    check({}, {}, {}, 0, 3, 4);
    check({}, {}, {}, 3, 4, 0);
    check({}, {}, {}, 3, 0, 4); // an empty sum is zero
    check({2}, {2}, {2}, 3, 0, 40);
    check({0}, {0}, {0}, 2, 3, 4);
    check({0, 1}, {1, 3}, {0, 3}, 2, 3, 4);
}

TEST_CASE("gemm: leading dimensions, strides, sums into C, bias and relu") {
    in_orders([] {
        check_landscapes<float>();
        check_landscapes<double>();
    });
    check_landscapes<tg::bfloat16>();
    check_landscapes<tg::half>();
}

TEST_CASE("gemm: more matrices than a grid's z holds") {
    const std::int64_t batch = 65535 + 2;
    const auto x = whole_numbers<float>(batch, 1);
    const device_array<float> a(x), b(std::vector<float>{3}), c(batch);
    tg::cuda::gemm_arguments<float> g;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
    g.batch = batch, g.stride_a = 1, g.stride_c = 1;
    g.a = a.data(), g.b = b.data(), g.c = c.data();
    tg::cuda::gemm<float>(nullptr, "test", g);
    auto want = x;
    for (float& v : want) v *= 3;
    CHECK(c.host() == want);
}

TEST_CASE("gemm: operands that are aligned to no more than an element") {
    const auto l = landscape<float>(9, 8, 7, 1, false, true);
    const device_array<float> a(1 + l.stride_a), b(3 + l.ldb * l.n), c(1 + l.stride_c), bias(1 + l.n);
    tg::cuda::driver::copy(a.data() + 1, l.a.data(), l.a.size() * sizeof(float), nullptr);
    tg::cuda::driver::copy(b.data() + 3, l.b.data(), l.b.size() * sizeof(float), nullptr);
    tg::cuda::driver::copy(c.data() + 1, l.c.data(), l.c.size() * sizeof(float), nullptr);
    tg::cuda::driver::copy(bias.data() + 1, l.bias.data(), l.bias.size() * sizeof(float), nullptr);
    tg::cuda::gemm_arguments<float> g;
    g.m = l.m, g.n = l.n, g.k = l.k, g.lda = l.lda, g.ldb = l.ldb, g.ldc = l.ldc, g.transpose_b = true;
    g.a = a.data() + 1, g.b = b.data() + 3, g.c = c.data() + 1, g.bias = bias.data() + 1;
    tg::cuda::gemm<float>(nullptr, "test", g);
    auto got = c.host();
    got.erase(got.begin());
    CHECK(got == l.expected(false, true, false));
}

TEST_CASE("gemm: relu keeps NaN") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const device_array<float> a(std::vector<float>{nan, -1, 2}), b(std::vector<float>{1}), c(3),
        bias(std::vector<float>{0});
    tg::cuda::gemm_arguments<float> g;
    g.m = 3, g.n = g.k = 1, g.lda = g.ldb = g.ldc = 1;
    g.a = a.data(), g.b = b.data(), g.c = c.data(), g.bias = bias.data(), g.relu = true;
    tg::cuda::gemm<float>(nullptr, "test", g);
    const auto got = c.host();
    CHECK(std::isnan(got[0]));
    CHECK(got[1] == 0);
    CHECK(got[2] == 2);
}

// The factors of one matrix are not exact in TF32: rounding them to 10 bits loses 2^-12 of each.
TEST_CASE("gemm: float is float unless TF32 is requested") {
    const device_array<float> a(std::vector<float>(64 * 64, 1 + 0x1p-12f)), b(std::vector<float>(64 * 64, 1)),
        c(64 * 64);
    tg::cuda::gemm_arguments<float> g;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 64;
    g.a = a.data(), g.b = b.data(), g.c = c.data();
    const float exact = 64 + 0x1p-6f;
    for (tg::math_mode p : {tg::math_mode::fp32, tg::math_mode::tf32x3}) {
        tg::cuda::gemm<float>(nullptr, "test", g, p);
        CHECK(c.host()[0] == exact);
    }
    CHECK(tg::current_math_mode() == tg::math_mode::fp32);
#ifdef TG_SIMT
    auto& products = tg::cuda::blas::imitation::instance().products;
    tg::set_math_mode(tg::math_mode::tf32);
    products.clear();
    tg::cuda::gemm<float>(nullptr, "test", g);
    REQUIRE(products.size() == 1);
    CHECK(products[0].tf32);
    products.clear();
    const landscape<double> l(2, 2, 2, 1, false, false);
    l.computed(false, false, false); // double has no such mode
    REQUIRE(products.size() == 1);
    CHECK(!products[0].tf32);
    tg::set_math_mode(tg::math_mode::fp32);
#endif
}

#ifndef TG_SIMT
TEST_CASE("gemm: what has run once can be captured, and replays give the same bits") {
    using tg::cuda::driver::check;
    tg::cuda::context& context = tg::cuda::context::current();
    const tg::cuda::driver::stream stream = context.stream();
    const landscape<float> l(33, 65, 129, 3, true, false);
    const device_array<float> a(l.a), b(l.b), bias(l.bias), c(l.stride_c * l.batch);
    tg::cuda::gemm_arguments<float> g;
    g.m = l.m, g.n = l.n, g.k = l.k, g.batch = l.batch, g.transpose_a = true, g.relu = true;
    g.a = a.data(), g.lda = l.lda, g.stride_a = l.stride_a, g.b = b.data(), g.ldb = l.ldb, g.stride_b = l.stride_b;
    g.c = c.data(), g.ldc = l.ldc, g.stride_c = l.stride_c, g.bias = bias.data();
    tg::cuda::gemm<float>(stream, "test", g);
    const auto once = c.host();

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    tg::cuda::gemm<float>(stream, "test", g);
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    for (int i = 0; i < 3; ++i) {
        tg::cuda::driver::fill(c.data(), 0xFF, static_cast<std::size_t>(c.size()) * sizeof(float), stream);
        check(cudaGraphLaunch(ready, stream), "cudaGraphLaunch");
        const auto again = c.host();
        CHECK(std::memcmp(again.data(), once.data(), once.size() * sizeof(float)) == 0);
    }
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
}
#endif

#ifdef TG_SIMT
TEST_CASE("matmul on a device: as few products as the shapes allow, one algorithm for a shape") {
    auto& blas = tg::cuda::blas::imitation::instance();
    const auto products = [&](const shape& a, const shape& b, const shape& c) {
        blas.products.clear();
        compare<float>(a, b, c, false, false);
        return blas.products;
    };
    auto made = products({7, 2, 3, 4}, {4, 5}, {7, 2, 3, 5});
    REQUIRE(made.size() == 1);
    CHECK(made[0].n == 42); // 7 times 2 times 3 rows
    CHECK(made[0].batch == 1);
    made = products({7, 2, 3, 4}, {7, 2, 4, 5}, {7, 2, 3, 5});
    REQUIRE(made.size() == 1);
    CHECK(made[0].batch == 14);
    CHECK(products({3, 1, 2, 4}, {1, 5, 4, 2}, {3, 5, 2, 2}).size() == 3); // a batch of 5, three times

    compare<float>({17, 19}, {19, 23}, {17, 23}, false, false);
    const int found = blas.found;
    compare<float>({17, 19}, {19, 23}, {17, 23}, false, false);
    CHECK(blas.found == found);
    compare<float>({19, 17}, {19, 23}, {17, 23}, true, false);
    CHECK(blas.found == found + 1);
}

TEST_CASE("gemm: scratch memory per stream") {
    auto& device = tg::cuda::driver::imitation::instance();
    const landscape<float> l(3, 3, 3, 1, false, false);
    l.computed(false, false, false);
    const std::size_t before = device.taken;
    const tg::cuda::driver::stream other = tg::cuda::driver::make_stream();
    const device_array<float> a(l.a), b(l.b), c(l.c);
    tg::cuda::gemm_arguments<float> g;
    g.m = g.n = g.k = 3, g.lda = l.lda, g.ldb = l.ldb, g.ldc = l.ldc;
    g.a = a.data(), g.b = b.data(), g.c = c.data();
    for (int i = 0; i < 2; ++i) tg::cuda::gemm<float>(other, "test", g);
    CHECK(device.taken == before + (std::size_t{32} << 20)); // compute capability 9
    CHECK(c.host() == l.expected(false, false, false));
    tg::cuda::context::current().blas().forget(other);
    tg::cuda::driver::destroy(other);
    CHECK(device.taken == before);
}

TEST_CASE("gemm: a bias that cuBLASLt does not add is added afterwards") {
    auto& blas = tg::cuda::blas::imitation::instance();
    const landscape<double> l(6, 5, 8, 3, false, false);
    blas.products.clear();
    CHECK(l.computed(false, true, false) == l.expected(false, true, false));
    CHECK(blas.products.back().bias);
    const landscape<double> other(6, 5, 9, 3, false, false);
    blas.bias_for_double = false;
    CHECK(other.computed(true, true, false) == other.expected(true, true, false));
    CHECK(!blas.products.back().bias);
    blas.bias_for_double = true;
}

TEST_CASE("gemm: a bias at an odd address is added afterwards") {
    auto& blas = tg::cuda::blas::imitation::instance();
    const landscape<float> l(5, 6, 7, 1, false, false);
    const device_array<float> a(l.a), b(l.b), c(l.stride_c), bias(std::vector<float>(7, 2.0f));
    tg::cuda::gemm_arguments<float> g;
    g.m = l.m, g.n = l.n, g.k = l.k;
    g.a = a.data(), g.lda = l.lda, g.b = b.data(), g.ldb = l.ldb, g.c = c.data(), g.ldc = l.ldc;
    const auto added = [&](const float* to) {
        g.bias = to;
        tg::cuda::gemm<float>(nullptr, "test", g);
        return std::pair(blas.products.back().bias, c.host());
    };
    const auto [inside, at_once] = added(bias.data());
    const auto [also, afterwards] = added(bias.data() + 1);
    CHECK(inside);
    CHECK(!also);
    CHECK(std::memcmp(at_once.data(), afterwards.data(), at_once.size() * sizeof(float)) == 0);
}

TEST_CASE("gemm: errors name the operation and the shapes") {
    tg::cuda::gemm_arguments<float> g;
    g.m = 4, g.n = 5, g.k = 3, g.lda = 3, g.ldb = 4, g.ldc = 5;
    const std::string text = message_of<tg::device_error>([&] { tg::cuda::gemm<float>(nullptr, "dense1", g); });
    CHECK(text == "imitated cuBLASLt for dense1 of f32 [4, 3] by [3, 5]: lda is less than A's rows");
    tg::cuda::blas::product p;
    p.type = tg::dtype::f16, p.n = 4, p.k = 3, p.m = 5, p.batch = 7, p.transpose_b = true;
    CHECK(tg::cuda::blas::text(p) == "f16 [3, 4] transposed by [3, 5], batch of 7");
}
#endif

} // namespace matmul_test
