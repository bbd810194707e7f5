#include <cuda/whole_programs.hpp>

#include <doctest/doctest.h>

#include <future>
#include <vector>

namespace modes_test {

/// Whole programs on a GPU, or on the imitated device, whose memory the host cannot access and
/// which does everything as late as allowed: both modes give the same there as on the CPU, and a
/// captured step repeats its results.

namespace tg = tapegraph;
using on_device::late_device;

namespace {

struct perceptron {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 9});
        return tg::dense(scope / "score", tanh(h), {.units = 3});
    }
};

tg::tensor<float> points(int count, int seed) {
    auto x = tg::tensor<float>::uninitialized({count, 4});
    for (int i = 0; i < 4 * count; ++i) x.mutable_data()[i] = float((i * 37 + seed * 11) % 23) / 11 - 1;
    return x;
}
tg::tensor<std::int32_t> labels(int count, int seed) {
    auto y = tg::tensor<std::int32_t>::uninitialized({count});
    for (int i = 0; i < count; ++i) y.mutable_data()[i] = (i + seed) % 3;
    return y;
}

template <class Mode>
std::vector<double> losses(tg::device where, int steps) {
    auto model = tg::compile<Mode>(perceptron{}, tg::spec<float, tg::dyn, 4>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::adam{.learning_rate = 0.05}, {.seed = 3, .device = where});
    std::vector<double> all;
    for (int s = 0; s < steps; ++s) {
        const int count = s % 4 == 3 ? 5 : 7; // a smaller batch now and then
        all.push_back(model.train_on_batch(points(count, s), labels(count, s)).loss);
    }
    all.push_back(model.evaluate(points(6, 1), labels(6, 1)).loss);
    const auto out = model.predict(points(2, 5)).to_vector();
    all.insert(all.end(), out.begin(), out.end());
    const auto kernel = model.variables()["hidden/kernel"].template value<float>().to_vector();
    all.insert(all.end(), kernel.begin(), kernel.end());
    return all;
}

} // namespace

#ifdef TG_SIMT
TEST_CASE("who only reads leaves a tensor where it is") {
    const auto& machine = tg::cuda::driver::imitation::instance();
    const tg::device_scope on(tg::device::cuda(0));
    tg::tensor<float> x{1, 2, 3};
    {
        tg::gradient_tape outer;
        outer.watch(x);
        tg::tensor<float> slope;
        {
            tg::gradient_tape inner;
            inner.watch(x);
            slope = inner.gradient(tg::tensor<float>(x * x * x), x); // recorded: node by node, on the CPU
        }
        CHECK(outer.gradient(slope, x).to_vector() == std::vector<float>{6, 12, 18});
    }
    int copies = machine.copies;
    const tg::tensor<float> y = x * x; // x is on the device
    CHECK(x(2) == 3);                  // and on the host
    CHECK(machine.copies == copies);
    CHECK(y(2) == 9);
    x.set(4, 2); // from here on only the CPU's copy is valid
    CHECK(tg::tensor<float>(x * x).to_vector() == std::vector<float>{1, 4, 16});

    // Predictions only read the variables: the host's copies stay valid.
    auto model = tg::compile<tg::graph>(perceptron{}, tg::spec<float, tg::dyn, 4>{});
    (void)model.predict(tg::tensor<float>{{1, 2, 3, 4}});
    copies = machine.copies;
    for (const tg::variable& v : model.variables()) (void)v.value<float>();
    CHECK(machine.copies == copies);
}
#endif

TEST_CASE("a model trains on a device as on the CPU, in both modes") {
    const late_device late;
    const auto graph = losses<tg::graph>(tg::device::cuda(0), 12), eager = losses<tg::eager>(tg::device::cuda(0), 12);
    const auto cpu = losses<tg::graph>(tg::device::cpu(), 12);
    REQUIRE(graph.size() == cpu.size());
    for (std::size_t i = 0; i < cpu.size(); ++i) {
        CAPTURE(i);
        // Twelve steps of sums in another order.
        CHECK(graph[i] == doctest::Approx(cpu[i]).epsilon(1e-4));
        CHECK(eager[i] == doctest::Approx(cpu[i]).epsilon(1e-4));
    }
    CHECK(graph == losses<tg::graph>(tg::device::cuda(0), 12)); // bit for bit
}

TEST_CASE("captured steps give the bits of steps launched kernel by kernel") {
    const late_device late;
    const auto captured = losses<tg::graph>(tg::device::cuda(0), 20);
    tg::runtime::capture_steps() = false;
    const auto launched = losses<tg::graph>(tg::device::cuda(0), 20);
    tg::runtime::capture_steps() = true;
    CHECK(captured == launched);
}

TEST_CASE("threads share a device: each gets the bits that it gets alone") {
    const late_device late;
    const auto there = tg::device::cuda(0);
    const auto graph = losses<tg::graph>(there, 12), eager = losses<tg::eager>(there, 12);
    // They launch, capture, replay and wait concurrently.
    auto first = std::async(std::launch::async, losses<tg::graph>, there, 12);
    auto second = std::async(std::launch::async, losses<tg::graph>, there, 12);
    auto third = std::async(std::launch::async, losses<tg::eager>, there, 12);
    CHECK(first.get() == graph);
    CHECK(second.get() == graph);
    CHECK(third.get() == eager);
}

TEST_CASE("fit on a device does not wait for its losses, and reports those of the CPU") {
    const late_device late;
    const auto train = [](tg::device where) {
        tg::data::dataset set;
        const auto x = points(300, 2).to_vector();
        const auto y = labels(300, 2).to_vector();
        set.add("point", x, {4});
        set.add("label", y, {});
        auto model =
            tg::compile<tg::graph>(perceptron{}, tg::spec<float, tg::dyn, 4>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::sgd{.learning_rate = 0.1}, {.seed = 3, .device = where});
        return model.fit(set, {.epochs = 2, .batch_size = 7, .verbose = false});
    };
    const tg::history there = train(tg::device::cuda(0)), here = train(tg::device::cpu());
    for (std::size_t e = 0; e < 2; ++e) {
        CHECK(there.epochs[e].steps == here.epochs[e].steps);
        CHECK(there.epochs[e].loss == doctest::Approx(here.epochs[e].loss).epsilon(1e-5));
        CHECK(there.epochs[e].accuracy == doctest::Approx(here.epochs[e].accuracy));
    }
}

namespace {
/// Saves after every tenth step.
struct tenth {
    std::vector<std::int64_t> saved{};
    std::int64_t last = 0;
    bool in_order = true;
    void on_batch_begin(tg::training_state& s) const {
        if (s.next_step % 10 == 0) s.request_checkpoint();
    }
    void on_batch_end(tg::training_state& s) { in_order = in_order && s.step == ++last; }
    void on_checkpoint(tg::training_state& s) {
        if (s.model().step() == s.step) saved.push_back(s.step);
    }
};
struct stop_after {
    std::int64_t step;
    void on_batch_end(tg::training_state& s) const {
        if (s.step == step) s.interrupt("test");
    }
};
} // namespace

TEST_CASE("callbacks on a device see steps in order, save after the step they name, and a stopped run continues "
          "exactly") {
    const late_device late;
    tg::data::dataset set;
    set.add("point", points(150, 2).to_vector(), {4});
    set.add("label", labels(150, 2).to_vector(), {});
    const auto make = [] {
        return tg::compile<tg::graph>(perceptron{}, tg::spec<float, tg::dyn, 4>{}, tg::sparse_softmax_cross_entropy{},
                                      tg::sgd{.learning_rate = 0.1}, {.seed = 3, .device = tg::device::cuda(0)});
    };
    auto whole = make(), parts = make();
    tenth saving;
    const tg::history h = whole.fit(set, {.epochs = 2, .batch_size = 7, .verbose = 0}, saving);
    CHECK(saving.in_order);
    CHECK(saving.last == 44);
    CHECK(saving.saved == std::vector<std::int64_t>{10, 20, 30, 40});
    for (const std::int64_t step : {3, 25}) {
        parts.fit(set, {.epochs = 2, .batch_size = 7, .verbose = 0, .resume = true}, stop_after{step});
        CHECK(parts.step() >= step);
        CHECK(parts.step() <= step + 16); // sent by then
    }
    const tg::history rest = parts.fit(set, {.epochs = 2, .batch_size = 7, .verbose = 0, .resume = true});
    REQUIRE(rest.epochs.size() == 2);
    for (std::size_t e = 0; e < 2; ++e) CHECK(rest.epochs[e].loss == h.epochs[e].loss);
    CHECK(parts.variables()["hidden/kernel"].value<float>().to_vector() ==
          whole.variables()["hidden/kernel"].value<float>().to_vector());
}

TEST_CASE("a compiled function and a session run where the thread computes") {
    const late_device late;
    const auto there = [] {
        const tg::device_scope on(tg::device::cuda(0));
        auto f =
            tg::function<tg::graph>([](auto x) { return std::tuple(sum(exp(x)), x * 2); }, tg::spec<float, tg::dyn>{});
        const tg::tensor<float> x{1, 2, 3};
        f(x), f(x);
        return f(x);
    }();
    CHECK(std::get<0>(there).item() == doctest::Approx(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)));
    CHECK(std::get<1>(there).to_vector() == std::vector<float>{2, 4, 6});
}

#ifdef TG_SIMT
TEST_CASE_TEMPLATE("a step's loss and accuracy come to the host with one wait", Mode, tg::graph, tg::eager) {
    const late_device late;
    auto model = tg::compile<Mode>(perceptron{}, tg::spec<float, tg::dyn, 4>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::adam{.learning_rate = 0.05}, {.seed = 3, .device = tg::device::cuda(0)});
    int& waits = tg::cuda::driver::imitation::instance().waits;
    // Inputs in the device's memory, since inputs from the host may wait for the previous step.
    const tg::device_scope on(tg::device::cuda(0));
    const auto x = points(7, 1);
    const auto y = labels(7, 1);
    for (int s = 0; s < 4; ++s) {
        x.view(), y.view();
        const int before = waits;
        const tg::step_result r = model.train_on_batch(x, y);
        CHECK(r.loss > 0);
        if (s > 0) CHECK(waits - before == 1); // the first creates what it needs
        const int between = waits;
        CHECK(model.evaluate(x, y).accuracy >= 0);
        if (s > 0) CHECK(waits - between == 1);
    }
}

TEST_CASE("eager: a step takes the buffers of the step before, and sends no number twice") {
    auto& machine = tg::cuda::driver::imitation::instance();
    machine.devices = 2; // the first uses no buffer again (whole_programs.hpp)
    {
        const late_device late;
        auto model =
            tg::compile<tg::eager>(perceptron{}, tg::spec<float, tg::dyn, 4>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::sgd{.learning_rate = 0.05}, {.seed = 3, .device = tg::device::cuda(1)});
        const tg::device_scope on(tg::device::cuda(1));
        const auto x = points(7, 1);
        const auto y = labels(7, 1);
        for (int s = 0; s < 5; ++s) {
            const int allocations = machine.allocations, frees = machine.frees, copies = machine.copies;
            model.train_on_batch(x, y);
            if (s < 2) continue;
            CHECK(machine.allocations == allocations);
            CHECK(machine.frees == frees);
            CHECK(machine.copies - copies ==
                  2 + 1 + 3); // the batch; the seed of the gradient; loss, accuracy and faults
        }
    }
    CHECK(losses<tg::eager>(tg::device::cuda(1), 12) == losses<tg::eager>(tg::device::cuda(0), 12));
    machine.devices = 1;
}

TEST_CASE("a GPU that is not there") {
    using tg::cuda::driver::imitation;
    CHECK_THROWS_WITH_AS(tg::device_scope(tg::device::cuda(1)), "cuda:1 does not exist: this machine has cuda:0 alone",
                         tg::device_error);
    imitation::instance().devices = 0; // no GPU: the CPU instead
    {
        const tg::device_scope on(tg::device::cuda(0));
        CHECK(tg::current_device() == tg::device::cpu());
        auto model =
            tg::compile<tg::graph>(perceptron{}, tg::spec<float, tg::dyn, 4>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::sgd{}, {.device = tg::device::cuda(0)});
        CHECK(model.train_on_batch(points(3, 1), labels(3, 1)).loss > 0);
    }
    imitation::instance().devices = 1;
}
#endif

} // namespace modes_test
