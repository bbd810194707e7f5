#include <cuda/whole_programs.hpp>

#include <cuda/shards_on_devices.hpp>

#include <tapegraph/cluster/ranks/thread_exchange.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ranks_on_devices_test {

/// Threads as ranks, each with its own device, as many as there are: the bits are those of one.

using namespace shards_on_devices;

TEST_CASE_TEMPLATE("several devices in one process: the bits of one device, in both modes", Together, std::false_type,
                   std::true_type) { // shards that wait for each other
#ifdef TG_SIMT
    auto& machine = tg::cuda::driver::imitation::instance();
    const struct four_devices {
        int& number;
        ~four_devices() { number = 1; }
    } four{machine.devices = 4};
#endif
    int devices = -1; // without the CPU
    for (const auto& each : tg::list_devices()) devices += each.id.name().empty() ? 0 : 1;
    if (devices < 1) return;
    const auto compare = [&](auto mode) {
        using m = decltype(mode);
        const std::string expected = trained<m, Together::value>({.shards = 4});
        for (const int size : {1, 2, 4}) {
            CAPTURE(size);
            std::vector<std::string> found(static_cast<std::size_t>(size));
            td::run_ranks(size, [&](td::exchange& ranks) {
                found[static_cast<std::size_t>(ranks.rank())] =
                    trained<m, Together::value>({.shards = 4, .ranks = &ranks}, ranks.rank() % devices);
            });
            for (const std::string& each : found) CHECK(each == expected);
        }
        // Ranks may share a device.
        if (devices < 2) return expected;
        std::vector<std::string> shared(2);
        td::run_ranks(2, [&](td::exchange& ranks) {
            shared[static_cast<std::size_t>(ranks.rank())] =
                trained<m, Together::value>({.shards = 4, .ranks = &ranks}, 1);
        });
        CHECK(shared[0] == expected);
        CHECK(shared[1] == expected);
        return expected;
    };
#ifdef TG_SIMT
    const int before = machine.launches;
#endif
    const std::string in_graph = compare(tg::graph{}), in_eager = compare(tg::eager{});
    CHECK(in_graph == in_eager);
#ifdef TG_SIMT
    CHECK(machine.launches > before + 1000); // the devices did the computation
#endif
}

} // namespace ranks_on_devices_test
