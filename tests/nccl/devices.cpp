#define TG_CUDA
#define TG_SIMT
#include <simt/instructions.hpp>

#include <tapegraph/tapegraph.hpp>

#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cuda/nccl.cuh>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

/// Sums over NCCL of what lies in the memory of the library's devices, here imitated ones, one for each thread.

namespace nccl_devices_test {

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace {

template <class T>
std::vector<T> own(int rank, std::size_t count) {
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i)
        values.push_back(
            static_cast<T>(static_cast<float>((i * 37 + static_cast<std::size_t>(rank) * 101) % 211) * 0.37f));
    return values;
}
/// The tree over threads, on the host.
template <class T>
std::vector<T> expected(int size, std::size_t count) {
    std::vector<T> sum;
    td::run_ranks(size, [&](td::exchange& ranks) {
        std::vector<T> data = own<T>(ranks.rank(), count);
        td::tree_sum tree(ranks, count, td::sum_of<T>, "on the host");
        tree.start_all_reduce(data.data());
        tree.wait();
        td::barrier(ranks);
        if (ranks.rank() == 0) sum = data;
    });
    return sum;
}
template <class T>
void compare(const td::nccl_library& library, int size, std::size_t count) {
    const std::vector<T> sum = expected<T>(size, count);
    td::run_ranks(size, [&](td::exchange& threads) {
        const tg::device where = tg::device::cuda(threads.rank());
        const tg::device_scope on(where);
        auto& gpu = tg::runtime::runtime_of(where);
        td::nccl_exchange ranks(threads, tg::cuda::nccl_device_of(), library);
        void* const data = gpu.allocate(count * sizeof(T), "data");
        {
            td::tree_sum tree(ranks, count, td::sum_of<T>, "bucket 0");
            for (int turn = 0; turn < 2; ++turn) {
                const std::vector<T> mine = own<T>(ranks.rank(), count);
                gpu.upload(data, mine.data(), count * sizeof(T));
                tree.start_all_reduce(data);
                CHECK(tree.done()); // the stream has all of it
                ranks.finish();
                std::vector<T> found(count);
                gpu.download(found.data(), data, count * sizeof(T));
                CHECK(std::memcmp(found.data(), sum.data(), count * sizeof(T)) == 0);
                td::barrier(threads);
            }
        }
        gpu.release(data);
    });
}

} // namespace

TEST_CASE("sums in the memory of devices have the bits of sums on the host, for every type that has a kernel") {
    auto& machine = tg::cuda::driver::imitation::instance();
    machine.devices = 4;
    const td::nccl_library library;
    const int before = machine.launches;
    for (const int size : {1, 2, 4})
        for (const std::size_t count : {1u, 257u, 4099u}) {
            CAPTURE(size);
            CAPTURE(count);
            compare<float>(library, size, count);
            compare<double>(library, size, count);
        }
    compare<tg::half>(library, 4, 700);
    compare<tg::bfloat16>(library, 4, 700);
    compare<std::int32_t>(library, 4, 700);
    compare<std::int64_t>(library, 4, 700);
    CHECK(machine.launches > before);
}

TEST_CASE("a type without a kernel, and the CPU, are refused") {
    tg::cuda::driver::imitation::instance().devices = 2;
    const td::nccl_library library;
    try {
        compare<std::uint8_t>(library, 2, 4000);
        CHECK(false);
    } catch (const tg::argument_error& e) {
        CHECK(std::string(e.what()) == "nccl_device_of: sums of u8 have no kernel");
    }
    CHECK_THROWS_AS(tg::cuda::nccl_device_of(tg::device::cpu()), tg::device_error);
}

} // namespace nccl_devices_test
