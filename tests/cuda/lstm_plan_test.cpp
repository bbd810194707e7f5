#define TG_SIMT
#include <simt/words.hpp>

#include <tapegraph/cuda/ops/recurrent/recurrence.cuh>

#include <cuda/lstm_reference.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace lstm_plan_test {

/// Tests which way an LSTM is run, what happens when the device cannot hold it, and calls with
/// nothing or too much to do.

namespace tg = tapegraph;
namespace cuda = tapegraph::cuda;

using namespace lstm_reference; // NOLINT
using cuda::recurrent_pass;
using cuda::recurrent_stage;

TEST_CASE("LSTM: how a pass is run follows from shape and device") {
    const auto chosen = [](std::int64_t batch, std::int64_t units, int major, int multiprocessors, std::size_t shared,
                           recurrent_pass pass = recurrent_pass::forward) {
        return cuda::choose_recurrence<lstm_cell, float>({batch, 40, units}, {"", 0, major, 0, multiprocessors, shared},
                                                         pass);
    };
    for (recurrent_pass pass :
         {recurrent_pass::forward, recurrent_pass::backward}) { // a device of compute capability 9.0 with 132
        const auto small = chosen(32, 128, 9, 132, 232448, pass);
        CHECK(small.stage == recurrent_stage::cluster);
        CHECK(small.split.unit_blocks == 8);
        CHECK(small.warps == 8);
        CHECK(small.parts == 8);
        CHECK(!small.more_resident);
        const auto middle = chosen(32, 512, 9, 132, 232448, pass);
        CHECK(middle.stage == recurrent_stage::cluster);
        CHECK(middle.split.unit_blocks == 16);
        const auto wide = chosen(8, 1024, 9, 132, 232448, pass);
        CHECK(wide.stage == recurrent_stage::grid);
        CHECK(wide.blocks() <= 132);
        const auto older = chosen(32, 128, 8, 108, 166912, pass);
        CHECK(older.stage == recurrent_stage::grid);
        CHECK(older.blocks() <= 108);
        CHECK(older.parts * older.split.rows >= 32);
        CHECK((older.parts - 1) * older.split.rows < 32); // no part is empty
        // Sixteen waves of clusters would take longer than one grid.
        const auto waves = chosen(1024, 128, 9, 132, 232448, pass);
        CHECK(waves.stage == recurrent_stage::grid);
        CHECK(waves.blocks() <= 132);
        CHECK(chosen(32, 4096, 9, 132, 232448, pass).stage == recurrent_stage::steps);
        CHECK(chosen(100000, 128, 9, 132, 232448, pass).stage == recurrent_stage::steps);
        CHECK(chosen(100000, 128, 9, 132, 232448, pass).large_tile);
        CHECK(!chosen(4, 4096, 7, 40, 65536, pass).large_tile);
    }
    // Every plan is valid: threads and shared memory fit, and every sample and unit is assigned.
    const auto valid = [](const cuda::recurrent_plan& p, int batch, int units, int major, std::size_t shared,
                          int most_warps) {
        if (p.stage == recurrent_stage::steps) return;
        CHECK(p.warps >= 1);
        CHECK(p.warps <= most_warps);
        CHECK(p.shared <= shared);
        CHECK(p.split.unit_blocks * p.warps * 2 >= units);
        CHECK(p.parts * p.split.rows >= batch);
        CHECK((p.parts - 1) * p.split.rows < batch);
        if (p.stage == recurrent_stage::cluster) CHECK(major == 9);
        if (p.stage == recurrent_stage::grid) CHECK(p.blocks() <= 60);
    };
    for (int units : {1, 2, 17, 64, 100, 192, 256, 300, 511, 700, 1500})
        for (int batch : {1, 5, 64, 300})
            for (int major : {7, 8, 9})
                for (std::size_t shared : {65536u, 101376u, 232448u})
                    for (recurrent_pass pass : {recurrent_pass::forward, recurrent_pass::backward}) {
                        const cuda::driver::device_properties device{"", 0, major, 0, 60, shared};
                        const recurrent_geometry g{batch, 40, units};
                        valid(cuda::choose_recurrence<lstm_cell, float>(g, device, pass), batch, units, major, shared,
                              16);
                        valid(cuda::choose_recurrence<lstm_cell, double>(g, device, pass), batch, units, major, shared,
                              8);
                    }
}

TEST_CASE("LSTM: products on tensor cores where the math_mode allows them and a step is expected to take less time") {
    const auto chosen = [](std::int64_t batch, std::int64_t units, tg::math_mode mode,
                           recurrent_pass pass = recurrent_pass::forward, int major = 9) {
        return cuda::choose_recurrence<lstm_cell, float>({batch, 40, units}, {"", 0, major, 0, 132, 232448}, pass,
                                                         recurrent_stage::cluster, mode);
    };
    using tg::math_mode;
    for (const recurrent_pass pass : {recurrent_pass::forward, recurrent_pass::backward}) {
        // A launch takes longer than a step of a few units in float.
        CHECK(chosen(32, 128, math_mode::tf32, pass).stage == recurrent_stage::cluster);
        for (const math_mode mode : {math_mode::tf32, math_mode::tf32x3}) {
            const auto wide = chosen(128, 1024, mode, pass);
            CHECK(wide.stage == recurrent_stage::steps);
            CHECK(wide.tensor);
            CHECK(wide.exact == (mode == math_mode::tf32x3));
            CHECK(!wide.large_tile);
        }
        CHECK(chosen(2048, 1024, math_mode::tf32, pass).large_tile);
        CHECK(!chosen(2048, 1024, math_mode::tf32x3, pass).large_tile); // there is none
        CHECK(!chosen(128, 4096, math_mode::fp32, pass).tensor);
        CHECK(!chosen(128, 4096, math_mode::tf32, pass, 7).tensor);
        CHECK(!cuda::choose_recurrence<lstm_cell, double>({128, 40, 4096}, {"", 0, 9, 0, 132, 232448}, pass,
                                                          recurrent_stage::cluster, math_mode::tf32)
                   .tensor);
    }
    // Four waves of clusters in float.
    CHECK(chosen(128, 512, math_mode::fp32).stage == recurrent_stage::cluster);
    CHECK(chosen(128, 512, math_mode::tf32).tensor);
}

TEST_CASE("LSTM: what the device cannot hold at once is run another way") {
    auto& device = cuda::driver::imitation::instance();
    const auto properties = cuda::driver::properties(0);
    const layer<float> l(5, 3, 9);
    const auto want = reference(l);
    const auto launches = [&] {
        results<float> r;
        scratch workspace(cuda::recurrent_workspace<lstm_cell, float>(l.g, recurrent_pass::backward));
        const int before = device.launches;
        cuda::recurrent_forward<lstm_cell>(nullptr, "lstm", properties, l.g, forward_operands(l, r), workspace.at);
        const int forward = device.launches - before;
        cuda::recurrent_backward<lstm_cell>(nullptr, "lstm", properties, l.g, backward_operands(l, r), workspace.at);
        CHECK(distance(r, want) < tolerance<float>);
        return std::pair{forward, device.launches - before - forward};
    };
    device.devices = 3;
    device.residents[1] = {1, 0};
    device.residents[2] = {0, 0};
    CHECK(launches() == std::pair{1, 1});
    cuda::driver::use(1);
    CHECK(launches() == std::pair{1, 1}); // a grid
    cuda::driver::use(2);
    CHECK(launches() == std::pair{3, 4}); // a launch a step
    const int questions_before = device.questions;
    for (int i = 0; i < 3; ++i) {
        cuda::driver::use(i);
        CHECK(launches() == (i < 2 ? std::pair{1, 1} : std::pair{3, 4})); // the cached answers
    }
    CHECK(device.questions == questions_before); // no question is repeated
    device.devices = 1;
    cuda::driver::use(0);
}

TEST_CASE("attributes of kernels: none is set twice, or to less than before") {
    cuda::detail::kernel_allowances allowances;
    std::vector<std::size_t> shared;
    int wide = 0;
    const auto allow = [&](int device, const void* kernel, std::size_t bytes, bool clusters = false) {
        allowances(
            device, kernel, bytes, clusters, [&](std::size_t n) { shared.push_back(n); }, [&] { ++wide; });
    };
    const int kernels[2]{};
    for (int time = 0; time < 2; ++time)
        for (std::size_t bytes : {100, 70, 100, 120, 70}) allow(0, kernels, bytes);
    CHECK(shared == std::vector<std::size_t>{100, 120});
    allow(1, kernels, 70), allow(0, kernels + 1, 80);
    CHECK(shared == std::vector<std::size_t>{100, 120, 70, 80});
    for (int time = 0; time < 2; ++time) allow(0, kernels, 0, true), allow(1, kernels, 0, true);
    CHECK(wide == 2);
    CHECK(shared.size() == 4);
    const auto refused = [&] {
        allowances(
            0, kernels, 200, false, [](std::size_t) { throw tg::device_error("refused"); }, [] {});
    };
    CHECK_THROWS_AS(refused(), tg::device_error);
    CHECK_THROWS_AS(refused(), tg::device_error); // it was not granted
}

TEST_CASE("LSTM: nothing to do, and too much") {
    auto& device = cuda::driver::imitation::instance();
    const auto properties = cuda::driver::properties(0);
    const int before = device.launches;
    results<float> r;
    for (const auto& l : {layer<float>(0, 3, 5), layer<float>(2, 3, 0)}) {
        cuda::recurrent_forward<lstm_cell>(nullptr, "lstm", properties, l.g, forward_operands(l, r), nullptr);
        cuda::recurrent_backward<lstm_cell>(nullptr, "lstm", properties, l.g, backward_operands(l, r), nullptr);
    }
    CHECK(device.launches == before);
    const layer<float> no_steps(2, 0, 5); // its last states are its first
    scratch workspace(cuda::recurrent_workspace<lstm_cell, float>(no_steps.g, recurrent_pass::backward));
    cuda::recurrent_forward<lstm_cell>(nullptr, "lstm", properties, no_steps.g, forward_operands(no_steps, r),
                                       workspace.at);
    cuda::recurrent_backward<lstm_cell>(nullptr, "lstm", properties, no_steps.g, backward_operands(no_steps, r),
                                        workspace.at);
    CHECK(r.dh0 == no_steps.dh_last);
    CHECK(r.dc0 == no_steps.dc_last);

    const auto refused = [&](recurrent_geometry g) {
        try {
            cuda::recurrent_forward<lstm_cell>(nullptr, "lstm", properties, g,
                                               cuda::recurrent_forward_operands<float>{}, nullptr);
        } catch (const tg::argument_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(refused({-1, 2, 3}) == "lstm: batch -1 is out of range");
    CHECK(refused({1, 2, 1ll << 30}) == "lstm: units 1073741824 is out of range");
}

} // namespace lstm_plan_test
