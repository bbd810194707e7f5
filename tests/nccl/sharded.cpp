#define TG_CUDA
#define TG_SIMT
#include <simt/instructions.hpp>

#include <cuda/shards_on_devices.hpp>

#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cuda/nccl.cuh>

#include <doctest/doctest.h>

#include <string>
#include <vector>

/// Models whose gradients stay on their devices and go from one to the other: the bits of sums in the CPU's memory.

namespace nccl_sharded_test {

using namespace shards_on_devices;

namespace {

/// What the CPU and a rank that has sums on its device refuse.
template <class Mode, class Optimizer>
std::string refusal(const tg::sharded& how, const Optimizer& optimizer) {
    try {
        auto model = tg::compile<Mode>(words_and_norm<false>{}, tg::spec<std::int32_t, tg::dyn, 5>{},
                                       tg::sparse_softmax_cross_entropy{}, optimizer, how);
        model.fit(texts(), {.epochs = 1, .batch_size = 16, .verbose = 0});
    } catch (const tg::argument_error& e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST_CASE_TEMPLATE("shards whose sums go from device to device: the bits of one device and of sums on the host",
                   Together, std::false_type, std::true_type) { // shards that wait for each other
    tg::cuda::driver::imitation::instance().devices = 4;
    const td::nccl_library library;
    const std::string expected = trained<tg::graph, Together::value>({.shards = 4});
    for (const int size : {1, 2, 4}) {
        CAPTURE(size);
        std::vector<std::string> found(static_cast<std::size_t>(size));
        std::vector<std::int64_t> sent(found.size());
        td::run_ranks(size, [&](td::exchange& ranks) {
            const tg::device_scope on(tg::device::cuda(ranks.rank()));
            td::nccl_exchange gpus(ranks, tg::cuda::nccl_device_of(), library);
            const auto r = static_cast<std::size_t>(ranks.rank());
            found[r] =
                trained<tg::graph, Together::value>({.shards = 4, .ranks = &ranks, .devices = &gpus}, ranks.rank());
            sent[r] = gpus.bytes_sent();
        });
        for (const std::string& each : found) CHECK(each == expected);
        for (const std::int64_t each : sent) CHECK((each > 0) == (size > 1)); // it was they
    }
}

TEST_CASE("sums on devices are for models in graph mode on a GPU, and of the same ranks") {
    tg::cuda::driver::imitation::instance().devices = 2;
    const td::nccl_library library;
    td::run_ranks(2, [&](td::exchange& ranks) {
        const tg::device where = tg::device::cuda(ranks.rank());
        const tg::device_scope on(where);
        td::nccl_exchange gpus(ranks, tg::cuda::nccl_device_of(), library);
        const tg::sharded here{.shards = 2, .options = {.device = where}, .ranks = &ranks, .devices = &gpus};
        tg::sharded home = here, alone = here;
        home.options.device = tg::device::cpu();
        alone.ranks = nullptr;
        CHECK(refusal<tg::graph>(home, tg::adam{}) ==
              "shards: `.devices` adds up on GPUs, and this model computes on the CPU");
        CHECK(refusal<tg::eager>(here, tg::adam{}) ==
              "shards: `.devices` adds up on GPUs, and eager mode in the CPU's memory");
        CHECK(refusal<tg::graph>(alone, tg::adam{}) ==
              "shards: `.devices` are 2 ranks, `.ranks` 1; they have to be the same");
        td::barrier(ranks);
    });
}

} // namespace nccl_sharded_test
