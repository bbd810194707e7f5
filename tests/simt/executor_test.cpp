#include <simt/mutation.hpp>
#include <simt/synchronization.hpp>

#include <doctest/doctest.h>

#include <numeric>

/// Tests the executor itself: the words mean what CUDA's mean, and a missing barrier is found. For
/// mistakes that it reports see mistakes_test.cpp.

namespace kernels {

using namespace tapegraph::cuda::kernels; // NOLINT: synchronization.hpp's

constexpr int tile = 8;

/// c = a b, all n by n.
__global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float left[tile][tile], right[tile][tile];
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    const int row = static_cast<int>(blockIdx.y) * tile + y, column = static_cast<int>(blockIdx.x) * tile + x;
    float sum = 0;
    for (int k = 0; k < n; k += tile) {
        left[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
        right[y][x] = column < n && k + y < n ? b[(k + y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < tile; ++i) sum += left[y][i] * right[i][x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

/// Sums n numbers: lanes by shuffles, warps through shared memory, blocks by an atomic.
__global__ void sum(const int* x, int n, int* result) {
    __shared__ int warps[32];
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    int v = i < n ? x[i] : 0;
    for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(0xFFFFFFFFu, v, static_cast<unsigned>(by));
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    if (lane == 0) warps[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < static_cast<int>(blockDim.x) / 32 ? warps[lane] : 0;
        for (int bits = 16; bits > 0; bits /= 2) v += __shfl_xor_sync(0xFFFFFFFFu, v, bits);
        if (lane == 0) atomicAdd(result, v);
    }
}

/// Rows of softmax, one block each: uses one shared array twice, which needs a barrier between the
/// uses.
__global__ void softmax(const float* x, float* y, int width) {
    auto* row = static_cast<float*>(simt::dynamic_shared());
    __shared__ float folded[64];
    const int t = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const float* from = x + static_cast<int>(blockIdx.x) * width;
    float largest = -1e30f;
    for (int i = t; i < width; i += threads) row[i] = from[i], largest = std::fmax(largest, from[i]);
    folded[t] = largest;
    __syncthreads();
    for (int i = 0; i < threads; ++i) largest = std::fmax(largest, folded[i]);
    __syncthreads(); // all have read the maxima before sums replace them
    float total = 0;
    for (int i = t; i < width; i += threads) row[i] = std::exp(row[i] - largest), total += row[i];
    folded[t] = total;
    __syncthreads();
    total = 0;
    for (int i = 0; i < threads; ++i) total += folded[i];
    for (int i = t; i < width; i += threads) y[static_cast<int>(blockIdx.x) * width + i] = row[i] / total;
}

__global__ void votes(unsigned* out) {
    const unsigned t = threadIdx.x;
    if (t >= 40) return; // threads that have ended are not waited for
    const unsigned mask = t < 32 ? 0xFFFFFFFFu : 0xFFu;
    out[t * 6 + 0] = __ballot_sync(mask, t % 3 == 0);
    out[t * 6 + 1] = __any_sync(mask, t == 5);
    out[t * 6 + 2] = __all_sync(mask, t < 36);
    out[t * 6 + 3] = static_cast<unsigned>(__syncthreads_count(t % 2));
    out[t * 6 + 4] = __reduce_add_sync(mask, t);
    out[t * 6 + 5] = __shfl_sync(mask, t, 1, 4);
}

/// Every block doubles what its neighbour in the cluster wrote.
__global__ void neighbours(int* out) {
    auto* own = static_cast<int*>(simt::dynamic_shared());
    own[threadIdx.x] = static_cast<int>(blockIdx.x * 100 + threadIdx.x);
    simt::sync_cluster(SIMT_SITE);
    const unsigned next = (simt::cluster_rank() + 1) % simt::cluster_size();
    out[blockIdx.x * blockDim.x + threadIdx.x] = 2 * static_cast<int*>(simt::cluster_shared(next))[threadIdx.x];
    simt::sync_cluster(SIMT_SITE); // no block ends while others read its memory
}

__global__ void grid_phases(int* cells, int* out) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), n = static_cast<int>(gridDim.x * blockDim.x);
    cells[i] = i;
    simt::sync_grid(SIMT_SITE);
    out[i] = cells[n - 1 - i];
}

/// As above with the barrier in halves: each block writes only its own memory in between, and the
/// neighbour may still read.
__global__ void neighbours_in_halves(int* out) {
    auto* own = static_cast<int*>(simt::dynamic_shared());
    own[threadIdx.x] = static_cast<int>(blockIdx.x * 100 + threadIdx.x);
    arrive_at_cluster();
    const int kept = own[threadIdx.x];
    wait_for_cluster();
    const unsigned next = (simt::cluster_rank() + 1) % simt::cluster_size();
    static_cast<int*>(simt::cluster_shared(next))[blockDim.x + threadIdx.x] = kept;
    arrive_at_cluster();
    wait_for_cluster();
    out[blockIdx.x * blockDim.x + threadIdx.x] = own[blockDim.x + threadIdx.x];
}
/// In each round every block sends its numbers to the next of its cluster, into one of two
/// alternating slots, and adds the numbers that it received. Dynamic shared memory: two barriers,
/// two slots.
__global__ void rounds_of_a_ring(int rounds, float* out) {
    auto* const arrived = static_cast<arrivals*>(simt::dynamic_shared());
    auto* const places = reinterpret_cast<float*>(arrived + 2) + threadIdx.x;
    if (threadIdx.x == 0) begin_arrivals(arrived), begin_arrivals(arrived + 1);
    arrive_at_cluster();
    wait_for_cluster();
    const unsigned next = (cluster_rank() + 1) % simt::cluster_size();
    auto value = static_cast<float>(blockIdx.x * 100 + threadIdx.x);
    for (int round = 0; round < rounds; ++round) {
        const int turn = round % 2;
        send_to_cluster(places + turn * blockDim.x, next, value, arrived + turn);
        if (threadIdx.x == 0) expect_bytes(arrived + turn, blockDim.x * 4);
        wait_for_arrivals(arrived + turn, static_cast<unsigned>(round) / 2 % 2);
        value += places[turn * blockDim.x];
        __syncthreads(); // no warp may be two rounds ahead of another
        arrive_at_cluster();
        wait_for_cluster();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
/// Blocks of a grid pass a number on, each waiting for the one before it, the first one for the
/// last.
__global__ void relay(int* cell, unsigned* count) {
    for (unsigned round = 0; round < 3; ++round) {
        if (threadIdx.x == 0) {
            wait_for_count(count, round * gridDim.x + gridDim.x - 1 - blockIdx.x);
            *cell = *cell * 3 + static_cast<int>(blockIdx.x);
            add_to_count(count);
        }
        __syncthreads();
    }
}
__global__ void reads_first(float* out) {
    __shared__ float cell[2];
    out[0] = cell[0];
    out[1] = static_cast<float*>(simt::dynamic_shared())[1];
}

/// Some lanes end while others wait for the whole warp: the remaining ones continue.
__global__ void some_leave(int* out) {
    if (threadIdx.x % 2 == 1) return;
    out[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x), 4);
}
} // namespace kernels

namespace {

const simt::order orders[]{simt::order::forward, simt::order::reverse, simt::order::random, simt::order::greedy};

using simt::with_settings;

bool matmul_is_right() {
    constexpr int n = 19; // three tiles, the last one partial
    std::vector<float> a(n * n), b(n * n), c(n * n, NAN);
    for (int i = 0; i < n * n; ++i)
        a[i] = static_cast<float>(i * 7 % 11 - 5), b[i] = static_cast<float>(i * 5 % 13 - 6);
    simt::launch({{3, 3}, {kernels::tile, kernels::tile}}, kernels::matmul, a.data(), b.data(), c.data(), n);
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            float want = 0;
            for (int k = 0; k < n; ++k) want += a[i * n + k] * b[k * n + j];
            if (c[i * n + j] != want) return false; // integers: exact
        }
    return true;
}
bool sum_is_right() {
    std::vector<int> x(1000);
    std::iota(x.begin(), x.end(), 1);
    int result = 0;
    simt::launch({8, 128}, kernels::sum, x.data(), 1000, &result);
    return result == 500500;
}
bool softmax_is_right() {
    constexpr int rows = 3, width = 150;
    std::vector<float> x(rows * width), y(rows * width, NAN);
    for (int i = 0; i < rows * width; ++i) x[i] = static_cast<float>(i * 37 % 101) * 0.05f;
    simt::launch({rows, 64, width * sizeof(float)}, kernels::softmax, x.data(), y.data(), width);
    for (int r = 0; r < rows; ++r) {
        double total = 0;
        for (int i = 0; i < width; ++i) total += std::exp(double(x[r * width + i]));
        for (int i = 0; i < width; ++i)
            if (!(std::abs(y[r * width + i] - std::exp(double(x[r * width + i])) / total) < 1e-6)) return false;
    }
    return true;
}

} // namespace

TEST_CASE("simt: kernels give the right results in every order of threads") {
    for (simt::order o : orders)
        for (std::uint64_t seed : {1u, 2u}) {
            const with_settings set(o, seed);
            CHECK(matmul_is_right());
            CHECK(sum_is_right());
            CHECK(softmax_is_right());
        }
}

TEST_CASE("simt: votes, counts, reductions and shuffles of partial warps") {
    for (simt::order o : orders) {
        const with_settings set(o);
        std::vector<unsigned> out(40 * 6);
        simt::launch({1, 64}, kernels::votes, out.data());
        unsigned low = 0, high = 0;
        for (unsigned t = 0; t < 40; ++t)
            if (t % 3 == 0) (t < 32 ? low : high) |= 1u << t % 32;
        for (unsigned t = 0; t < 40; ++t) {
            const unsigned* r = &out[t * 6];
            CHECK(r[0] == (t < 32 ? low : high));
            CHECK(r[1] == (t < 32 ? 1 : 0));
            CHECK(r[2] == (t < 32 ? 1 : 0));
            CHECK(r[3] == 20);
            CHECK(r[4] == (t < 32 ? 496 : 32 + 33 + 34 + 35 + 36 + 37 + 38 + 39));
            CHECK(r[5] == (t & ~3u) + 1);
        }
    }
}

TEST_CASE("simt: lanes that have ended are not waited for") {
    for (simt::order o : orders) {
        const with_settings set(o);
        std::vector<int> out(32, -1);
        simt::launch({1, 32}, kernels::some_leave, out.data());
        for (int i = 0; i < 32; ++i) CHECK(out[i] == (i % 2 == 0 ? 4 : -1));
    }
}

TEST_CASE("simt: clusters and cooperative grids") {
    for (simt::order o : orders) {
        const with_settings set(o);
        std::vector<int> out(8 * 16), cells(8 * 16);
        simt::launch({8, 16, 16 * sizeof(int), 4}, kernels::neighbours, out.data());
        for (int b = 0; b < 8; ++b)
            for (int t = 0; t < 16; ++t) CHECK(out[b * 16 + t] == 2 * ((b / 4 * 4 + (b + 1) % 4) * 100 + t));
        simt::launch({8, 16, 0, 1, true}, kernels::grid_phases, cells.data(), out.data());
        for (int i = 0; i < 128; ++i) CHECK(out[i] == 127 - i);
    }
}

TEST_CASE("simt: a cluster's barrier in halves, and blocks that look at a counter") {
    for (simt::order o : orders) {
        const with_settings set(o);
        std::vector<int> out(8 * 16);
        simt::launch({8, 16, 32 * sizeof(int), 4}, kernels::neighbours_in_halves, out.data());
        for (int b = 0; b < 8; ++b)
            for (int t = 0; t < 16; ++t) CHECK(out[b * 16 + t] == (b / 4 * 4 + (b + 3) % 4) * 100 + t);
        for (std::uint64_t seed : {1u, 2u}) {
            const with_settings late(o, seed);
            std::vector<float> sums(8 * 48), next(sums.size()), got(sums.size());
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i / 48 * 100 + i % 48);
            for (int round = 0; round < 5; ++round, sums = next)
                for (std::size_t i = 0; i < sums.size(); ++i)
                    next[i] = sums[i] + sums[(i / 192 * 4 + (i / 48 + 3) % 4) * 48 + i % 48];
            simt::launch({8, 48, 16 + 2 * 48 * sizeof(float), 4}, kernels::rounds_of_a_ring, 5, got.data());
            CHECK(got == sums);
        }
        int cell = 0, want = 0;
        unsigned count = 0;
        simt::launch({5, 32, 0, 1, true}, kernels::relay, &cell, &count);
        for (int round = 0; round < 3; ++round)
            for (int b = 4; b >= 0; --b) want = want * 3 + b;
        CHECK(cell == want);
        CHECK(count == 15);
    }
}

TEST_CASE("simt: shared memory starts as NaN") {
    float out[2]{};
    simt::launch({1, 1, 16}, kernels::reads_first, out);
    CHECK(std::isnan(out[0]));
    CHECK(std::isnan(out[1]));
}

// A missing barrier is a race, which only the other builds can run.
#ifndef SIMT_TSAN
TEST_CASE("simt: without any one of its barriers a kernel is wrong, and that is seen") {
    struct {
        bool (*right)();
        std::size_t barriers;
    } const all[]{{matmul_is_right, 2}, {sum_is_right, 1}, {softmax_is_right, 3}};
    for (const auto& kernel : all) {
        std::size_t found = 0;
        CHECK(simt::unnoticed_barriers(kernel.right, found) == std::vector<std::string>{});
        CHECK(found == kernel.barriers);
    }
}

TEST_CASE("simt: a kernel that is right in one order alone is wrong before anything is left out") {
    std::size_t found = 0;
    const auto unnoticed = simt::unnoticed_barriers(
        [] { return simt::current_settings().order == simt::order::forward || simt::current_settings().seed < 3; },
        found, 4);
    CHECK(unnoticed == std::vector<std::string>{"wrong in greedy order 3 before anything was left out"});
}

TEST_CASE("simt: the environment says how many orders are tried") {
    const char* const before = std::getenv("TAPEGRAPH_MUTATION_SEEDS");
    const std::string kept = before == nullptr ? "" : before;
    ::setenv("TAPEGRAPH_MUTATION_SEEDS", "7", 1);
    CHECK(simt::mutation_seeds() == 7);
    for (const char* wrong : {"", "0", "-1", "7 "}) {
        ::setenv("TAPEGRAPH_MUTATION_SEEDS", wrong, 1);
        CHECK_THROWS_WITH_AS(simt::mutation_seeds(), doctest::Contains("TAPEGRAPH_MUTATION_SEEDS"), simt::error);
    }
    ::unsetenv("TAPEGRAPH_MUTATION_SEEDS");
    CHECK(simt::mutation_seeds() == 4);
    if (before != nullptr) ::setenv("TAPEGRAPH_MUTATION_SEEDS", kept.c_str(), 1);
}
#endif
