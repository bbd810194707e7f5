#include <tapegraph/profile.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace profile_test {

namespace tg = tapegraph;
using tg::profiling::phase;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::dense(scope / "hidden", x, {.units = 5});
        return tg::dense(scope / "score", tg::batch_normalization(scope / "norm", tanh(h)), {.units = 3});
    }
};

template <class Mode>
auto make() {
    return tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 7>{}, tg::sparse_softmax_cross_entropy{},
                             tg::adam{.learning_rate = 1e-2}, {.seed = 3});
}
const auto x = tg::random::uniform<float>({4, 7}, {.seed = 1});
const tg::tensor<std::int32_t> y{0, 2, 1, 2};

// Every look at it is a second later.
double ticks = 0;
double ticking() { return ticks += 1; }
tg::profile_options few(int steps = 3) {
    return {.steps = steps, .warm_up = 1, .peak_flops = 1e9, .bandwidth = 1e9, .clock = ticking};
}

const tg::profiling::call& found(const tg::profile_result& r, phase p, std::string_view layer, std::string_view what) {
    for (const auto& c : r.calls)
        if (c.phase == p && c.layer == layer && c.operation.find(what) != std::string::npos) return c;
    FAIL("no call ", std::string(what), " of ", std::string(layer), "\n", r.text({.rows = -1}));
    return r.calls.front();
}

template <class Mode>
void check_training() {
    auto model = make<Mode>(), other = make<Mode>();
    for (int i = 0; i < 2; ++i) {
        model.train_on_batch(x, y);
        other.train_on_batch(x, y);
    }
    const tg::profile_result r = tg::profile(model, x, y, few());
    INFO(r.text({.rows = -1, .in_order = true}));
    CHECK(r.steps.size() == 3);
    CHECK(r.device == "cpu");
    double sum = 0, layers = 0;
    for (const auto& c : r.calls) {
        CHECK(c.count == 3);
        CHECK(c.seconds.median == 1); // begin and end are the looks at the clock of a call
        CHECK(c.seconds.least == 1);
        sum += c.seconds.median;
    }
    for (const auto& l : r.layers) {
        layers += l.seconds;
        CHECK(l.seconds == l.forward + l.backward + l.update);
    }
    CHECK(sum == layers);
    CHECK(sum == r.seconds_of(phase::forward) + r.seconds_of(phase::backward) + r.seconds_of(phase::update));
    // A step is two looks of its own and two for each call.
    CHECK(r.step.median == 2 * static_cast<double>(r.calls.size()) + 1);
    CHECK(r.calls_share == doctest::Approx(sum / r.step.median));
    CHECK(r.waited_share == 0);

    // 2 m n k of products: forward, and by the weights and the operand.
    const auto& forward = found(r, phase::forward, "hidden", "matmul");
    CHECK(forward.flops >= 2.0 * 4 * 7 * 5);
    CHECK(forward.flops <= 2.0 * 4 * 7 * 5 + 2 * 4 * 5);                      // what is fused into it
    const bool with_bias = forward.shape.find("f32[5]") != std::string::npos; // graph mode fuses it
    CHECK(forward.bytes == 4.0 * (4 * 7 + 7 * 5 + 4 * 5 + (with_bias ? 5 : 0)));
    CHECK(found(r, phase::backward, "hidden", "matmul").flops == 2.0 * 4 * 7 * 5);
    CHECK(found(r, phase::backward, "score", "matmul").flops == 2.0 * 4 * 5 * 3);
    CHECK(r.seconds_of(phase::update) > 0);
    CHECK(std::count_if(r.calls.begin(), r.calls.end(),
                        [](const auto& c) { return c.line.starts_with("profile_test"); }) >= 1);

    // What a model was it is again, also what follows.
    CHECK(model.step() == 2);
    for (int i = 0; i < model.variables().size(); ++i)
        CHECK(
            tg::all(model.variables().at(i).template value<float>() == other.variables().at(i).template value<float>())
                .item());
    CHECK(model.train_on_batch(x, y).loss == other.train_on_batch(x, y).loss);

    auto trained = few();
    trained.restore = false;
    tg::profile(model, x, y, trained);
    CHECK(model.step() == 3 + 4);
}

} // namespace

TEST_CASE("training steps in graph mode") {
    check_training<tg::graph>();
    auto model = make<tg::graph>();
    const tg::profile_result r = tg::profile(model, x, y, few());
    const auto& view = model.training_view();
    CHECK(static_cast<int>(r.calls.size()) >= view.steps.size());
    for (int s = 0; s < view.steps.size(); ++s) CHECK(r.calls[static_cast<std::size_t>(s)].number == s);
    CHECK(r.arena_bytes == model.arena_bytes());
    const auto live = tg::ir::live_bytes(model.training_program());
    for (const auto& c : r.calls) {
        CHECK(c.live_bytes <= r.arena_bytes);
        if (c.number >= 0) CHECK(static_cast<double>(c.live_bytes) == live[static_cast<std::size_t>(c.number)]);
    }
    // The loss needs what is forward, and nothing of the rest.
    const auto first_backward =
        std::find_if(r.calls.begin(), r.calls.end(), [](const auto& c) { return c.phase == phase::backward; });
    REQUIRE(first_backward != r.calls.end());
    CHECK(first_backward != r.calls.begin());
    CHECK(found(r, phase::forward, "score", "matmul").seconds.median == 1);
}
TEST_CASE("training steps in eager mode") { check_training<tg::eager>(); }

TEST_CASE("bounds and how much of them is reached") {
    auto model = make<tg::graph>();
    auto options = few();
    options.peak_flops = 1;
    options.bandwidth = 1e30;
    tg::profile_result r = tg::profile(model, x, y, options);
    for (const auto& c : r.calls) {
        CHECK(c.bound == doctest::Approx(c.flops));
        CHECK(c.reached == doctest::Approx(c.flops));
    }
    options.peak_flops = 1e30;
    options.bandwidth = 2;
    r = tg::profile(model, x, y, options);
    for (const auto& c : r.calls) CHECK(c.reached == doctest::Approx(c.bytes / 2));
    const auto off = r.off_the_bound(0, 100);
    std::size_t above = 0;
    for (const auto& c : r.calls) above += c.bytes / 2 > 100;
    CHECK(off.size() == above);
    CHECK(above > 0);
    CHECK(r.off_the_bound(0, 1e9).empty());

    tg::profiling::peaks p;
    CHECK(p.bound(10, 10, false) == 0);
    p = {.flops = 4, .bandwidth = {{8, 2}, {16, 1}}};
    CHECK(p.bound(8, 0, false) == 2);
    CHECK(p.bound(8, 0, true) == 4); // doubles
    CHECK(p.bound(0, 8, false) == 4);
    CHECK(p.bound(0, 9, false) == 9);
    CHECK(p.bound(0, 20, false) == 20); // larger than anything measured
    const auto& measured = tg::profiling::measured_peaks();
    CHECK(measured.flops > 1e8);
    CHECK(&measured == &tg::profiling::measured_peaks());
    for (std::size_t i = 1; i < measured.bandwidth.size(); ++i) {
        CHECK(measured.bandwidth[i].bytes > measured.bandwidth[i - 1].bytes);
        CHECK(measured.bandwidth[i].per_second <= measured.bandwidth[i - 1].per_second);
        CHECK(measured.bandwidth[i].per_second > 1e6);
    }
}

TEST_CASE_TEMPLATE("predictions are forward", Mode, tg::graph, tg::eager) {
    const auto model = make<Mode>();
    const tg::profile_result r = tg::profile_prediction(model, x, few(2));
    CHECK(r.calls.size() >= 2);
    for (const auto& c : r.calls) CHECK(c.phase == phase::forward);
    CHECK(found(r, phase::forward, "score", "matmul").count == 2);
}

TEST_CASE_TEMPLATE("steps over a data set report the time they waited", Mode, tg::graph, tg::eager) {
    auto model = make<Mode>();
    std::vector<float> images(7 * 10);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 11) / 11;
    tg::data::dataset set;
    set.add("image", images, {7}).add("label", std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
    // Two batches an epoch: more steps than there are batches.
    const tg::profile_result r = tg::profile(model, set.batch(5), few(5));
    const auto& wait = r.calls.front();
    CHECK(wait.phase == phase::ingestion);
    CHECK(wait.count == 5);
    CHECK(r.waited_share == doctest::Approx(1 / r.step.median));
    CHECK(r.seconds_of(phase::ingestion) == 1);
    CHECK(r.text().find("ingestion 1000.000 ms") != std::string::npos);
    CHECK(model.step() == 0);
}

TEST_CASE_TEMPLATE("functions, and whatever runs", Mode, tg::graph, tg::eager) {
    auto f = tg::function<Mode>([](auto a, auto b) { return sum(square(matmul(a, b))); }, tg::spec<float, tg::dyn, 7>{},
                                tg::spec<float, 7, 2>{});
    const auto w = tg::ones<float>({7, 2});
    const tg::profile_result r = tg::profile(f, x, w, few());
    CHECK(r.calls.size() == 2); // the product, and the sum of squares
    CHECK(r.calls.front().flops == 2.0 * 4 * 7 * 2);
    CHECK(r.calls.back().flops == 2.0 * 4 * 2);

    const tg::profile_result loose = tg::profile(
        [&] {
            tg::gradient_tape tape;
            tg::tensor<float> v = w;
            tape.watch(v);
            const tg::tensor<float> loss = sum(square(matmul(x, v)));
            return tape.gradient(loss, v);
        },
        few());
    CHECK(loose.seconds_of(phase::forward) == 2);
    CHECK(loose.seconds_of(phase::backward) >= 2);
}

TEST_CASE("calls that not every step has") {
    int step = 0;
    const tg::profile_result r = tg::profile(
        [&] {
            tg::tensor<float> a = x * 2.f;
            if (++step % 2 == 0) a = exp(a);
            a = a + 1.f;
        },
        few(4));
    REQUIRE(r.calls.size() == 3);
    CHECK(r.calls[0].operation == "multiply");
    CHECK(r.calls[0].count == 4);
    const auto& sometimes = found(r, phase::forward, "", "exp");
    CHECK(sometimes.count == 2);
}

TEST_CASE("ranges for tools that watch the process") {
    static std::vector<std::string> open, seen;
    auto& hooks = tg::profiling::ranges();
    const auto before = hooks;
    hooks.push = [](const char* name) {
        open.emplace_back(name);
        seen.emplace_back(name);
    };
    hooks.pop = [] { open.pop_back(); };
    auto model = make<tg::graph>();
    const tg::profile_result r = tg::profile(model, x, y, few(2));
    hooks = before;
    CHECK(open.empty());
    CHECK(seen.size() == 3 * (1 + r.calls.size())); // warming up, too
    CHECK(std::count(seen.begin(), seen.end(), "step") == 3);
    CHECK(std::count(seen.begin(), seen.end(), "hidden: " + found(r, phase::forward, "hidden", "matmul").operation) >=
          3);
}

TEST_CASE("no observer is left before, after, or when a step has thrown") {
    CHECK(tg::runtime::observer() == nullptr);
    auto model = make<tg::graph>();
    CHECK_THROWS_WITH_AS(tg::profile(model, x, y, {.steps = 0}), "profile: steps must be at least 1, given 0",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::profile(model, x, y, {.warm_up = -1}), "profile: warm_up must not be negative, given -1",
                         tg::argument_error);
    int left = 3;
    const auto fails = [&] {
        model.train_on_batch(x, y);
        if (--left == 0) throw tg::argument_error("enough");
    };
    CHECK_THROWS_WITH(tg::profile(fails, few()), "enough");
    CHECK(tg::runtime::observer() == nullptr);
    CHECK_FALSE(tg::detail::numeric_check::layers_wanted());
    CHECK_THROWS_AS(tg::profile(model, tg::ones<float>({4, 6}), y, few()), tg::shape_error);
    CHECK(model.step() == 3);
    CHECK(tg::detail::tape_storage::instance().visited() == -1);
}

} // namespace profile_test
