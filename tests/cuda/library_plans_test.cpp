#include <cuda/device_array.hpp>

#include <cuda/convolution_calls.hpp>

#include <tapegraph/cuda/ops/convolution/convolution.cuh>
#include <tapegraph/cuda/ops/convolution/storage.cuh>
#include <tapegraph/cuda/ops/pooling/of_convolution.cuh>
#include <tapegraph/ops/convolution/kernel.hpp>
#include <tapegraph/ops/pooling/kernel_of_convolution.hpp>

#include <cuda/imitated_convolutions.hpp>
#ifdef TG_SIMT
#include <cuda/with_rules.hpp>
#endif
#include <support/captured_stderr.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace library_plans_test {

/// Convolutions by warpgroups as candidates of measured plans, and as predicted ones. Plans last
/// for the process, so every test has its own shapes.

namespace tg = tapegraph;
using namespace tapegraph::cuda;
using namespace tapegraph::testing;
using convolution_testing::geometry;
using tg::convolution_geometry;
using tg::math_mode;

namespace {

constexpr auto forward = convolution_pass::forward, input_gradient = convolution_pass::input_gradient,
               filter_gradient = convolution_pass::filter_gradient;
constexpr convolution_pass passes[]{forward, input_gradient, filter_gradient};
constexpr math_mode modes[]{math_mode::fp32, math_mode::tf32, math_mode::tf32x3};

struct without_memory {
    without_memory() = default;
    without_memory(const without_memory&) = delete;
    without_memory& operator=(const without_memory&) = delete;
    ~without_memory() {
        set_plan_policy(plan_policy::predicted);
        plan_memory::instance().forget();
    }
};

std::string device_name() { return context::of(0).properties().name; }
void remember(const convolution_geometry& g, convolution_pass pass) {
    const std::string work = detail::convolution_work(g, pass, tg::dtype::f32, math_mode::tf32);
    plan_memory::instance().keep(device_name(), work, {"warpgroups", 1});
}
template <convolution_pass Pass, class T = float>
const convolution_plans& plans(const convolution_geometry& g) {
    return detail::convolution_run<T, Pass>::plans(g);
}
bool is_candidate(const convolution_geometry& g, convolution_pass pass, math_mode mode,
                  std::size_t element = sizeof(float), bool tensor_cores = true,
                  std::size_t limit = convolution_workspace_limit) {
    int found = 0;
    for (const convolution_plan& p : convolution_candidates(g, pass, element, mode, {132, tensor_cores}, limit)) {
        if (name_of(p) != "warpgroups") continue;
        ++found;
        CHECK(p.workspace >= convolution_of_library.scratch_bytes(g, pass, tg::dtype::f32));
        CHECK(p.workspace <= limit);
    }
    CHECK(found <= 1);
    return found == 1;
}

} // namespace

TEST_CASE("library plans: a candidate where floats may be rounded to TF32 and the library takes the shape; predicted "
          "for large "
          "ones") {
    const auto plain = geometry(2, 13, 9, 20, 3, 3, 36, 1, 1, 1, 1, 1, 1),
               strided = geometry(2, 13, 9, 20, 3, 3, 36, 2, 2, 1, 1, 1, 1),
               grouped = geometry(2, 13, 9, 20, 3, 3, 36, 1, 1, 1, 1, 1, 1, 1, 1, 2);
    const auto of_all = [&](auto pass, auto mode) {
        return is_candidate(plain, pass, mode) || is_candidate(strided, pass, mode) ||
               is_candidate(grouped, pass, mode);
    };
    if (convolution_of_library.takes == nullptr)
        for (auto pass : passes)
            for (auto mode : modes) CHECK_FALSE(of_all(pass, mode));
    const imitated_convolutions here;
    const bool taken = library_takes(plain, forward); // not on every GPU
    for (auto mode : modes) {
        const bool rounded = taken && mode == math_mode::tf32;
        CHECK(is_candidate(plain, forward, mode) == rounded);
        CHECK(is_candidate(plain, input_gradient, mode) == rounded);
        CHECK(is_candidate(strided, forward, mode) == rounded);
        CHECK_FALSE(is_candidate(strided, input_gradient, mode));
        CHECK(is_candidate(plain, filter_gradient, mode) == rounded);
        CHECK(is_candidate(strided, filter_gradient, mode) == rounded);
        CHECK_FALSE(is_candidate(grouped, filter_gradient, mode));
        CHECK_FALSE(is_candidate(grouped, forward, mode));
        CHECK_FALSE(is_candidate(plain, forward, mode, sizeof(double)));
        CHECK_FALSE(is_candidate(plain, forward, mode, sizeof(float), false));
        CHECK(choose_convolution(plain, forward, 4, mode, {}).algorithm != convolution_algorithm::warpgroups);
        for (const auto pass : passes)
            for (const int batch : {32, 1024}) { // the latter in chunks
                const auto large = geometry(batch, 24, 24, 150, 5, 5, 300);
                const convolution_plan p = choose_convolution(large, pass, 4, mode, {});
                const bool chosen = p.algorithm == convolution_algorithm::warpgroups;
                CHECK(chosen == (rounded && library_takes(large, pass)));
                if (chosen) CHECK(p.workspace == library_workspace(large, pass));
                CHECK(p.workspace <= convolution_workspace_limit);
            }
    }
    if (!taken) return;
    const std::size_t needed = library_workspace(plain, forward);
    CHECK(is_candidate(plain, forward, math_mode::tf32, 4, true, needed));
    CHECK_FALSE(is_candidate(plain, forward, math_mode::tf32, 4, true, needed - 1));
}

// The scratch memory of these calls begins 64 bytes after a multiple of 256.
TEST_CASE("library plans: every operation's numbers, in scratch memory that begins anywhere") {
    const imitated_convolutions here;
    const without_memory at_the_end;
    const convolution_geometry shapes[]{
        geometry(2, 9, 8, 36, 3, 3, 22, 1, 1, 1, 1, 1, 1), geometry(1, 2, 2, 1, 2, 2, 67),
        geometry(3, 11, 7, 5, 2, 3, 19, 2, 1, 1, 0, 0, 1), geometry(1, 1, 41, 34, 1, 5, 70, 1, 1, 0, 1, 0, 2)};
    for (const convolution_geometry& g : shapes) {
        for (auto pass : passes) remember(g, pass);
        const auto attributes = attributes_of(g);
        const argument x = whole<float>(image(g), 1), w = whole<float>(filter(g), 2),
                       dy = whole<float>(convolved(g), 3), bias = whole<float>({g.out_channels}, 4),
                       to_image = shaped<float>(image(g)), to_filter = shaped<float>(filter(g)),
                       y = shaped<float>(convolved(g));
        const tg::math_mode_scope in(math_mode::tf32);
        check_same<tg::convolution_op, float>(attributes, {x, w}, {y});
        check_same<tg::convolution_bias_op<false>, float>(attributes, {x, w, bias}, {y});
        check_same<tg::convolution_bias_op<true>, float>(attributes, {x, w, bias}, {y});
        check_same<tg::convolution_input_gradient_op, float>(attributes, {dy, w}, {to_image});
        check_same<tg::convolution_filter_gradient_op, float>(attributes, {x, dy}, {to_filter});
        if (g.out_height > 1 && g.out_width > 1)
            check_same<tg::convolution_bias_pool_op<true>, float>(attributes, {x, w, bias}, {shaped<float>(pooled(g))});
        if (!library_takes(g, forward)) continue;
        const bool gradient = library_takes(g, input_gradient);
        CHECK(gradient == (g.stride_height == 1));
        CHECK(name_of(plans<forward>(g)[math_mode::tf32]) == "warpgroups");
        CHECK((name_of(plans<input_gradient>(g)[math_mode::tf32]) == "warpgroups") == gradient);
        CHECK(name_of(plans<filter_gradient>(g)[math_mode::tf32]) == "warpgroups");
        CHECK(plans<filter_gradient>(g).workspace >= library_workspace(g, filter_gradient));
        CHECK(name_of(plans<forward>(g)[math_mode::fp32]) != "warpgroups");
        CHECK(plans<forward>(g).workspace >= library_workspace(g, forward));
    }
#ifdef TG_SIMT
    CHECK(imitated_convolutions::runs == 2 * (6 + 5 + 5 + 5)); // in both orders of threads
#endif
}

namespace {

template <class T>
void check_narrow(const convolution_geometry& g) {
    const imitated_convolutions here;
    CAPTURE(static_cast<int>(tg::dtype_of<T>));
    for (const auto pass : {forward, input_gradient}) {
        const convolution_plan p =
            choose_narrow_convolution(g, pass, tg::dtype_of<T>, detail::this_convolution_device());
        const bool taken = library_takes(g, pass, tg::dtype_of<T>);
        CHECK((p.algorithm == convolution_algorithm::warpgroups) == taken);
        if (taken) CHECK(p.workspace == library_workspace(g, pass, tg::dtype_of<T>));
        const auto small = geometry(1, 5, 5, 16, 3, 3, 16);
        CHECK(choose_narrow_convolution(small, pass, tg::dtype_of<T>, {}).algorithm ==
              convolution_algorithm::tensor_cores);
    }
    for (const int batch : {1, 128}) { // few images do not fill a step of k
        const auto many = geometry(batch, 24, 24, 64, 3, 3, 128);
        const bool taken = batch > 1 && library_takes(many, filter_gradient, tg::dtype_of<T>);
        CHECK((choose_narrow_convolution(many, filter_gradient, tg::dtype_of<T>, {}).algorithm ==
               convolution_algorithm::warpgroups) == taken);
    }
    tg::window_attributes attributes = attributes_of(g);
    attributes.algorithm =
        static_cast<std::int64_t>(tg::convolution_algorithm::direct); // the CPU's transforms are not exact
    const argument x = whole<T>(image(g), 1), w = whole<T>(filter(g), 2), dy = whole<T>(convolved(g), 3),
                   bias = whole<T>({g.out_channels}, 4);
    check_same<tg::convolution_op, T>(attributes, {x, w}, {shaped<T>(convolved(g))});
    check_same<tg::convolution_bias_op<true>, T>(attributes, {x, w, bias}, {shaped<T>(convolved(g))});
    check_same<tg::convolution_input_gradient_op, T>(attributes, {dy, w}, {shaped<T>(image(g))});
    check_same<tg::convolution_filter_gradient_op, T>(attributes, {x, dy}, {shaped<T>(filter(g))});
}

} // namespace

TEST_CASE("library plans: 16-bit elements of large shapes, rounded once, then with bias and relu") {
#ifdef TG_SIMT // a device of four multiprocessors
    const auto large = geometry(2, 12, 12, 64, 3, 3, 128);
#else
    const auto large = geometry(32, 24, 24, 64, 3, 3, 128);
#endif
    check_narrow<tg::bfloat16>(large);
    check_narrow<tg::half>(large);
}

TEST_CASE("library plans: files name them, and where they are not, the prediction holds") {
    const without_memory at_the_end;
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "plans.txt").string();
    const auto here = geometry(2, 10, 8, 12, 3, 3, 18), elsewhere = geometry(2, 10, 8, 12, 3, 3, 26);
    remember(here, forward), remember(elsewhere, forward);
    save_plans(path);
    plan_memory::instance().forget();
    load_plans(path);
    {
        const imitated_convolutions there;
        const std::string name = name_of(plans<forward>(here)[math_mode::tf32]);
        CHECK((name == "warpgroups") == library_takes(here, forward));
    }
    if (convolution_of_library.takes != nullptr) return;
    std::string name;
    const auto ask = [&] { name = name_of(plans<forward>(elsewhere)[math_mode::tf32]); };
    CHECK(test::captured_stderr(ask) == "");
    CHECK(name ==
          name_of(choose_convolution(elsewhere, forward, 4, math_mode::tf32, detail::this_convolution_device())));
}

#ifdef TG_SIMT // tests set its clock, and break its kernels
namespace {

bool is_of_library(const driver::launch_rules::launched& l) {
    return std::string(l.operation) == "trials of plans" &&
           (l.shape.block.x == 384 || l.kernel == reinterpret_cast<const void*>(&kernels::pack_rows<float>) ||
            l.kernel == reinterpret_cast<const void*>(&kernels::turn_filters<float>));
}

} // namespace

TEST_CASE("library plans: the clock decides for them, unless they are wrong") {
    const imitated_convolutions here;
    const without_memory at_the_end;
    const with_rules set;
    set_plan_policy(plan_policy::measured);
    blas::imitation::instance().cost = 9;
    const auto name = [](const convolution_geometry& g, math_mode mode) { return name_of(plans<forward>(g)[mode]); };
    driver::rules().cost = [](const auto& l) { return is_of_library(l) ? 2.0 : 8.0; };
    const auto fast = geometry(2, 9, 8, 12, 3, 3, 18);
    CHECK(test::captured_stderr([&] { plans<forward>(fast); }) == "");
    CHECK(name(fast, math_mode::tf32) == "warpgroups");
    CHECK(name(fast, math_mode::fp32) != "warpgroups");
    CHECK(name(fast, math_mode::tf32x3) != "warpgroups");
    CHECK(plan_memory::instance().text().find("\twarpgroups\t6.00\n") !=
          std::string::npos); // two copies before the product
    const auto slow = geometry(2, 9, 8, 12, 3, 3, 20);
    driver::rules().cost = [](const auto& l) { return is_of_library(l) ? 3.0 : 8.0; };
    plans<forward>(slow);
    CHECK(name(slow, math_mode::tf32) != "warpgroups");
    const auto wrong = geometry(2, 9, 8, 12, 3, 3, 24);
    driver::rules().cost = [](const auto& l) { return is_of_library(l) ? 2.0 : 8.0; };
    driver::rules().wrong = [](const auto& l) { return l.shape.block.x == 384; };
    const std::string printed = test::captured_stderr([&] { plans<forward>(wrong); });
    CHECK(name(wrong, math_mode::tf32) != "warpgroups");
    CHECK(printed.find("tapegraph: 'warpgroups' is not used for convolution forward f32 tf32 images 2x9x8x12") == 0);
}
#endif

} // namespace library_plans_test
