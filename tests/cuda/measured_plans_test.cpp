#include <cuda/device_array.hpp>

#include <tapegraph/cuda/ops/convolution/convolution.cuh>

#include <cuda/convolution_reference.hpp>
#ifdef TG_SIMT
#include <cuda/with_rules.hpp>
#endif
#include <support/captured_stderr.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace measured_plans_test {

/// The choice among kernels by trials. Plans last for the process, so every test has its own
/// shapes.

using namespace convolution_testing;
using namespace tapegraph::cuda;
using tapegraph::math_mode;

namespace {

constexpr convolution_pass passes[]{convolution_pass::forward, convolution_pass::input_gradient,
                                    convolution_pass::filter_gradient};
constexpr math_mode modes[]{math_mode::fp32, math_mode::tf32, math_mode::tf32x3};

/// Measures plans while it lives, without leaving measurements for other tests.
struct measuring {
    measuring() { set_plan_policy(plan_policy::measured); }
    measuring(const measuring&) = delete;
    measuring& operator=(const measuring&) = delete;
    ~measuring() {
        set_plan_policy(plan_policy::predicted);
        plan_memory::instance().forget();
    }
};

template <class T>
const convolution_plans& plans(const tg::convolution_geometry& g, convolution_pass pass) {
    switch (pass) {
    case convolution_pass::forward: return detail::convolution_run<T, convolution_pass::forward>::plans(g);
    case convolution_pass::input_gradient:
        return detail::convolution_run<T, convolution_pass::input_gradient>::plans(g);
    default: return detail::convolution_run<T, convolution_pass::filter_gradient>::plans(g);
    }
}

std::string device_name() { return context::of(0).properties().name; }

} // namespace

TEST_CASE("measured plans: every candidate of awkward shapes agrees with the multiply-adds") {
    const measuring on;
#ifdef TG_SIMT // it takes long
    constexpr std::size_t each = 6;
#else
    constexpr std::size_t each = 1;
#endif
    const std::string printed = test::captured_stderr([&] {
        for (auto pass : passes) {
            for (std::size_t i = 0; i < std::size(geometries); i += each) {
                const convolution_plans& all = plans<float>(geometries[i], pass);
                for (const convolution_plan& p : all.by_mode) CHECK(p.workspace <= all.workspace);
            }
            plans<double>(geometries[5], pass);
            // Channels that every tile supports, and several splits.
            plans<float>(geometry(1, 4, 5, 32, 3, 3, 24), pass);
        }
    });
    CHECK(printed == "");
    CHECK_FALSE(plan_memory::instance().empty());
}

TEST_CASE("measured plans: candidates are distinct, the predicted one first") {
    for (auto pass : passes)
        for (auto mode : modes)
            for (const auto& g : {geometry(8, 24, 24, 152, 5, 5, 304), geometry(8, 24, 24, 16, 5, 5, 32), geometries[6],
                                  geometries[9], geometry(32, 50, 50, 3, 3, 3, 150)}) {
                const auto all = convolution_candidates(g, pass, sizeof(float), mode, {132, true});
                const auto predicted = choose_convolution(g, pass, sizeof(float), mode, {132, true});
                CHECK(name_of(all.front()) == name_of(predicted));
                std::vector<std::string> names;
                bool in_float = false;
                for (const convolution_plan& p : all) {
                    names.push_back(name_of(p));
                    in_float = in_float || p.algorithm == convolution_algorithm::multiply_adds;
                    CHECK(p.workspace <= convolution_workspace_limit);
                    CHECK((mode != math_mode::fp32 || p.algorithm != convolution_algorithm::tensor_cores));
                }
                CHECK(in_float); // the reference of the others
                CHECK(all.size() > 1);
                std::sort(names.begin(), names.end());
                CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
            }
    // Only the library computes batches that are not countable, and an empty result needs no trial.
    for (const auto& g : {geometry(2148, 1000, 1000, 8, 3, 3, 8), geometry(0, 9, 9, 8, 3, 3, 8)})
        CHECK(convolution_candidates(g, convolution_pass::forward, 4, math_mode::fp32, {}).size() == 1);
}

TEST_CASE("measured plans: the least time that was admitted") {
    using times = std::vector<std::optional<double>>;
    CHECK(detail::fastest(times{3.0, 2.0, 1.0}, 0) == 2);
    CHECK(detail::fastest(times{3.0, 2.0, std::nullopt}, 0) == 1);
    CHECK(detail::fastest(times{2.0, 2.0, 2.0}, 1) == 1); // others must take less
    CHECK(detail::fastest(times{std::nullopt, 4.0, 5.0}, 0) == 1);
    CHECK(detail::fastest(times{std::nullopt, std::nullopt}, 1) == 1);
}

TEST_CASE("measured plans: remembered ones hold without trials, others are passed over") {
    const auto known = geometry(2, 9, 7, 12, 3, 3, 20), unknown = geometry(2, 9, 7, 12, 3, 3, 24);
    const auto work = [](const tg::convolution_geometry& g) {
        return detail::convolution_work(g, convolution_pass::forward, tg::dtype::f32, math_mode::fp32);
    };
    CHECK(work(known) == "convolution forward f32 fp32 images 2x9x7x12 filters 3x3x20 outputs 7x5 strides 1x1 pads 0x0 "
                         "dilations 1x1 groups 1");
    plan_memory::instance().keep(device_name(), work(known), {"multiply_adds 128x128x8", 1});
    plan_memory::instance().keep(device_name(), work(unknown), {"multiply_adds 1x1x1", 1});
    CHECK(name_of(plans<float>(known, convolution_pass::forward)[math_mode::fp32]) == "multiply_adds 128x128x8");
    const auto predicted =
        choose_convolution(unknown, convolution_pass::forward, 4, math_mode::fp32, detail::this_convolution_device());
    CHECK(name_of(plans<float>(unknown, convolution_pass::forward)[math_mode::fp32]) == name_of(predicted));
    plan_memory::instance().forget();
    // Scratch memory was sized by it.
    CHECK(name_of(plans<float>(known, convolution_pass::forward)[math_mode::fp32]) == "multiply_adds 128x128x8");
}

#ifdef TG_SIMT // tests set its clock, and break its kernels

using tapegraph::testing::with_rules;

namespace {

bool is_trial(const driver::launch_rules::launched& l) { return std::string(l.operation) == "trials of plans"; }
bool is_wide_tile(const driver::launch_rules::launched& l) { // multiply_adds 128x128x8
    return is_trial(l) && l.shape.block.x == 256 && l.shape.grid.x < 64 && l.shape.shared == 0;
}
int launches() { return driver::imitation::instance().launches; }

} // namespace

TEST_CASE("measured plans: the clock decides, once") {
    const measuring on;
    const with_rules set;
    blas::imitation::instance().cost = 9;
    driver::rules().cost = [](const auto& l) { return is_wide_tile(l) ? 2.0 : 8.0; };
    const auto g = geometry(2, 8, 7, 12, 3, 3, 20);
    CHECK(name_of(choose_convolution(g, convolution_pass::forward, 4, math_mode::fp32, {4, true})) !=
          "multiply_adds 128x128x8");
    const auto plan = [&] { return plans<float>(g, convolution_pass::forward)[math_mode::fp32]; };
    CHECK(name_of(plan()) == "multiply_adds 128x128x8");
    const auto kept = plan_memory::instance().find(
        device_name(), detail::convolution_work(g, convolution_pass::forward, tg::dtype::f32, math_mode::fp32));
    REQUIRE(kept);
    CHECK(kept->plan == "multiply_adds 128x128x8");
    CHECK(kept->microseconds == 2);
    // Other modes have been measured, too, because scratch memory is sized for all.
    for (auto mode : modes)
        CHECK(plan_memory::instance().find(
            device_name(), detail::convolution_work(g, convolution_pass::forward, tg::dtype::f32, mode)));
    const int before = launches();
    driver::rules().cost = [](const auto& l) { return is_wide_tile(l) ? 50.0 : 1.0; };
    CHECK(name_of(plan()) == "multiply_adds 128x128x8");
    known_convolution_plans::instance() = {}; // as a thread that has not asked before
    CHECK(name_of(plan()) == "multiply_adds 128x128x8");
    CHECK(launches() == before);
}

TEST_CASE("measured plans: a kernel that computes something else is never chosen, and reported") {
    const measuring on;
    const with_rules set;
    driver::rules().cost = [](const auto& l) { return is_wide_tile(l) ? 1.0 : 8.0; };
    driver::rules().wrong = is_wide_tile;
    blas::imitation::instance().cost = 9;
    const auto g = geometry(2, 8, 7, 12, 3, 3, 28);
    std::string chosen;
    const auto ask = [&] { chosen = name_of(plans<float>(g, convolution_pass::forward)[math_mode::fp32]); };
    const std::string printed = test::captured_stderr(ask);
    CHECK(chosen != "multiply_adds 128x128x8");
    CHECK(printed.find(
              "tapegraph: 'multiply_adds 128x128x8' is not used for convolution forward f32 fp32 images 2x8x7x12 "
              "filters 3x3x28") != std::string::npos);
    CHECK(printed.find("its results differ by inf from those of multiply_adds ") != std::string::npos);
    CHECK(printed.find(", of which rounding explains") != std::string::npos);
    CHECK(test::captured_stderr(ask) == "");
}

TEST_CASE("measured plans: nothing is measured while a graph is captured, nor without memory for it") {
    const measuring on;
    const context& c = context::of(0);
    const auto g = geometry(2, 8, 7, 12, 3, 3, 32), large = geometry(64, 99, 99, 12, 3, 3, 64);
    const int before = launches();
    driver::begin_capture(c.stream());
    c.memory().recording(true);
    plans<float>(g, convolution_pass::forward);
    c.memory().recording(false);
    driver::destroy_graph(driver::end_capture(c.stream()));
    CHECK(launches() == before);
    const std::size_t memory = driver::imitation::instance().memory;
    driver::imitation::instance().memory = driver::imitation::instance().taken + (std::size_t{1} << 20);
    const std::string printed = test::captured_stderr([&] { plans<float>(large, convolution_pass::forward); });
    driver::imitation::instance().memory = memory;
    CHECK(printed.find("tapegraph: the plan for convolution forward f32 fp32 images 64x99x99x12") == 0);
    CHECK(printed.find("is predicted, not measured: out of memory on cuda:0") != std::string::npos);
    CHECK(plan_memory::instance().empty());
}

#endif

namespace {

__global__ void store_scaled(float* to, std::int64_t count, float factor) {
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) to[i] = factor * static_cast<float>(i);
}

} // namespace

TEST_CASE("measured plans: of any work, by its largest difference") {
    const measuring on;
    context& c = context::of(0);
    for (const std::int64_t count : {1, 31, 257, 20011}) {
        planned_work work;
        work.name = "counting to " + std::to_string(count);
        work.candidates = {{"off by a tenth"}, {"right"}, {"off by little"}};
        work.predicted = 0, work.reference = 1;
        work.results = count, work.largest_difference = 0.01 * static_cast<double>(count);
        int made = 0;
        const auto choose = [&] {
            return detail::choose_candidate<float>(c, work, [&] {
                ++made;
                return [&](int candidate, float* results, void*) {
                    constexpr float factors[]{1.1f, 1, 1.001f};
                    driver::launch(c.stream(), "test", {static_cast<unsigned>(count + 255) / 256, 256u}, store_scaled,
                                   results, count, factors[candidate]);
                };
            });
        };
        int best = 0;
        const std::string printed = test::captured_stderr([&] { best = choose(); });
        CHECK(made == 1);
        if (count == 1) { // zero times anything
            CHECK(printed == "");
            continue;
        }
        CHECK(best != 0);
        CHECK(printed.find("tapegraph: 'off by a tenth' is not used for counting to " + std::to_string(count)) == 0);
        CHECK(printed.find("off by little") == std::string::npos);
        CHECK(choose() == best);
        CHECK(made == 1);
        work.name += " again"; // and with a single candidate
        work.candidates.resize(1);
        CHECK(choose() == 0);
        CHECK(made == 1);
    }
}

} // namespace measured_plans_test
