#include <simt/executor.hpp>
#include <simt/synchronization.hpp>

#include <doctest/doctest.h>

#include <string>

/// Kernels whose behaviour CUDA does not define: the executor stops them, and reports what was
/// wrong.

// A failed launch abandons its fibres, which ThreadSanitizer does not support.
#ifndef SIMT_TSAN

namespace simt_mistakes_test {

namespace kernels {

using namespace tapegraph::cuda::kernels; // NOLINT: synchronization.hpp's

__global__ void expects_twice(int*) {
    auto* const arrived = static_cast<arrivals*>(simt::dynamic_shared());
    begin_arrivals(arrived);
    expect_bytes(arrived, 4);
    expect_bytes(arrived, 4);
}
__global__ void sends_to_the_ended(unsigned* count) {
    auto* const arrived = static_cast<arrivals*>(simt::dynamic_shared());
    begin_arrivals(arrived);
    arrive_at_cluster();
    wait_for_cluster();
    if (cluster_rank() == 0) return add_to_count(count);
    wait_for_count(count, 1);
    send_to_cluster(reinterpret_cast<float*>(arrived + 1), 0, 1.0f, arrived);
}
__global__ void waits_for_nobody(const unsigned* count) { wait_for_count(count, 1); }
__global__ void arrives_twice(int*) {
    arrive_at_cluster();
    arrive_at_cluster();
}

__global__ void half_waits(int*) {
    if (threadIdx.x < 16) simt::sync_cluster(SIMT_SITE);
    __syncthreads();
}
__global__ void two_barriers(int*) {
    if (threadIdx.x < 16)
        __syncthreads();
    else
        __syncthreads();
}
__global__ void disagree(int*) {
    if (threadIdx.x < 16)
        __syncwarp(0xFFFFFFFFu);
    else
        __syncwarp(0xFFFF0000u);
}
__global__ void writes_past_the_end(int*) { static_cast<unsigned char*>(simt::dynamic_shared())[16] = 1; }
__global__ void counts(int* sum) { atomicAdd(sum, 1); }

} // namespace kernels

namespace {

template <class F>
std::string thrown(const F& f) {
    try {
        f();
    } catch (const simt::error& e) {
        return e.what();
    }
    return "nothing";
}

} // namespace

TEST_CASE("simt: mistakes are named") {
    int unused = 0;
    unsigned ended = 0;
    const std::string stuck = thrown([&] { simt::launch({1, 32}, kernels::half_waits, &unused); });
    CHECK(stuck.find("deadlock: 16 threads at a cluster barrier") != std::string::npos);
    CHECK(stuck.find("16 threads at __syncthreads (") != std::string::npos);
    CHECK(thrown([&] {
              simt::launch({1, 1, 64, 1}, kernels::expects_twice, &unused);
          }).find("expected twice") != std::string::npos);
    CHECK(thrown([&] {
              simt::launch({2, 1, 64, 2}, kernels::sends_to_the_ended, &ended);
          }).find("sent to that has ended") != std::string::npos);
    CHECK(thrown([&] {
              simt::launch({1, 32}, kernels::two_barriers, &unused);
          }).find("different barriers") != std::string::npos);
    CHECK(thrown([&] {
              simt::launch({1, 32}, kernels::disagree, &unused);
          }).find("lanes of a warp disagree") != std::string::npos);
    CHECK(thrown([&] {
              simt::launch({1, 32, 16}, kernels::writes_past_the_end, &unused);
          }).find("past the end of the dynamic shared") != std::string::npos);
    const unsigned never = 0;
    CHECK(thrown([&] {
              simt::launch({2, 32, 0, 1, true}, kernels::waits_for_nobody, &never);
          }).find("64 threads at a loop") != std::string::npos);
    CHECK(thrown([&] {
              simt::launch({2, 32, 0, 2}, kernels::arrives_twice, &unused);
          }).find("twice") != std::string::npos);
    CHECK(thrown([&] { simt::launch({1, 1025}, kernels::disagree, &unused); }).find("1,024") != std::string::npos);
    int counted = 0;
    simt::launch({3, 40}, kernels::counts, &counted); // the next launch works normally
    CHECK(counted == 120);
}

} // namespace simt_mistakes_test

#endif
