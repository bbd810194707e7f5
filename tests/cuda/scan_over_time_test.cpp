#include <cuda/whole_programs.hpp>

#include <tapegraph/nn/scan.hpp>

#include <support/captured_stderr.hpp>
#include <support/graph_runner.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

/// tg::scan in a program on a device: all steps are launched into the program's stream, which is
/// captured. The results are compared with the CPU and with eager mode on the device, where a
/// cell's kernels are launched one by one.

namespace tg = tapegraph;
using on_device::late_device;
using tapegraph::testing::difference;
using tapegraph::testing::drawn;
using tapegraph::testing::flattened;

namespace {

// Small integers, so every order of summation gives the same. (a, b) becomes (b, a + x w - 1); the
// output, whose rank is higher than that of xs without time, is made of both.
constexpr auto exchange = [](auto state, auto x, auto w) {
    const auto& [a, b] = state;
    const auto next = tg::eval(a + matmul(x, w) - 1);
    return std::pair{std::tuple{b, next}, tg::eval(tg::expand_dims(next, -1) * tg::expand_dims(b, -2))};
};
constexpr auto masked = [](auto xs, auto a, auto b, auto w, auto mask) {
    return tg::value_and_gradient([mask](auto xs, auto a, auto b, auto w) {
        const auto [last, sequence] =
            tg::scan(exchange, std::tuple{a, b}, tg::eval(xs + 1), {.go_backwards = true}, tg::step_mask{mask}, w);
        return tg::eval(sum(sequence) + sum(std::get<0>(last) * std::get<1>(last)));
    })(xs, a, b, w);
};

// Tokens, time first: the cell looks up rows of a table, and its output is the result of an inner
// scan over them.
constexpr auto tokens = [](auto ids, auto v, auto table) {
    const auto cell = [](auto h, auto id, auto rows) {
        const auto row = tg::gather(rows, id, 0);
        const auto running = [](auto s, auto x) {
            const auto next = tg::eval(s + 2 * x);
            return std::pair{next, next};
        };
        const auto [last, sums] = tg::scan(running, tg::take(row, 0, 1), row);
        return std::pair{tg::eval(h + sums), tg::eval(h * tg::expand_dims(last, -1))};
    };
    const auto [last, sequence] = tg::scan(cell, v, ids, {.axis = 0}, table);
    return std::tuple{last, sequence};
};

// The number of launches on the imitated device so far; replaying a captured graph launches nothing
// by itself.
int launches() {
#ifdef TG_SIMT
    return on_device::launches();
#else
    return 0;
#endif
}

void check_same(const auto& got, const auto& want) {
    const std::string found = difference(flattened(got), flattened(want));
    CHECK_MESSAGE(found.empty(), found);
}

tg::tensor<float> numbers(const tg::shape& dims, std::int64_t first) {
    const tg::tensor<float> line = tg::arange<float>(dims.size().value, static_cast<double>(first));
    return reshape(line - 3 * tg::floor(line / 3) - 1, dims); // alternating -1, 0, 1
}

} // namespace

TEST_CASE("a scan on a device: carries that change places, masks, lengths that change, and gradients") {
    using state = tg::spec<float, tg::dyn, 3>;
    auto make = [] {
        return tg::function<tg::graph>(masked, tg::spec<float, tg::dyn, tg::dyn, 2>{}, state{}, state{},
                                       tg::spec<float, 2, 3>{}, tg::spec<bool, tg::dyn, tg::dyn>{});
    };
    auto here = make();
    const late_device late;
    const tg::device_scope on(tg::device::cuda(0));
    auto there = make();
    for (const std::int64_t time : {5, 1, 7, 5})
        for (const std::int64_t batch : {3, 0, 1}) {
            CAPTURE(time);
            CAPTURE(batch);
            auto mask = tg::full<bool>({batch, time}, true);
            for (std::int64_t i = 0; i < mask.size(); ++i) mask.mutable_data()[i] = i % 4 != 1;
            const auto xs = numbers({batch, time, 2}, 0), a = numbers({batch, 3}, 1), b = numbers({batch, 3}, 2),
                       w = numbers({2, 3}, 0);
            const auto want = [&] {
                const tg::device_scope host(tg::device::cpu());
                return here(xs, a, b, w, mask);
            }();
            for (int run = 0; run < 3; ++run) check_same(there(xs, a, b, w, mask), want);
        }
    const auto run = [&](std::int64_t time) {
        return there(numbers({2, time, 2}, 0), numbers({2, 3}, 1), numbers({2, 3}, 2), numbers({2, 3}, 0),
                     tg::full<bool>({2, time}, true));
    };
    CHECK_THROWS_WITH_AS(run(0), doctest::Contains("is 0, at least 1"), tg::shape_error);
}

TEST_CASE("a scan in a cell, and an index outside its axis in a step") {
    const late_device late;
    const tg::device_scope on(tg::device::cuda(0));
    const auto make = [] {
        return tg::function<tg::graph>(tokens, tg::spec<std::int32_t, tg::dyn, 16>{}, tg::spec<float, 16, 4>{},
                                       tg::spec<float, 6, 4>{});
    };
    auto program = make(), other = make();
    const auto v = numbers({16, 4}, 0), table = tg::tensor<float>(reshape(tg::arange<float>(24, -11), {6, 4}));
    const auto ids = [](std::int64_t time) {
        auto made = tg::tensor<std::int32_t>::uninitialized({time, 16});
        for (std::int64_t i = 0; i < made.size(); ++i) made.mutable_data()[i] = static_cast<std::int32_t>(i * 5 % 6);
        return made;
    };
    for (const std::int64_t time : {1, 4}) // ids are read in place, as aligned as buffers of programs are
        for (int run = 0; run < 3; ++run) check_same(program(ids(time), v, table), tokens(ids(time), v, table));

    // Plans of steps are discarded when a thread has had eight others: before a capture, and while
    // a captured graph lives.
    check_same(program(ids(3), v, table), tokens(ids(3), v, table));
    for (const std::int64_t time : {5, 6, 7, 8, 9, 10, 11, 12, 13}) (void)other(ids(time), v, table);
    for (int run = 0; run < 2; ++run) check_same(program(ids(3), v, table), tokens(ids(3), v, table));
    check_same(program(ids(4), v, table), tokens(ids(4), v, table));

    for (int run = 0; run < 3; ++run) {
        auto wrong = ids(7);
        wrong.set(6, 3, 1);
        CHECK_THROWS_WITH_AS((void)std::get<0>(program(wrong, v, table)).to_vector(),
                             "gather: index 6 at position 1 is outside [0, 6)", tg::range_error);
    }
    check_same(program(ids(7), v, table), tokens(ids(7), v, table));
}

namespace {

// A gated recurrent unit without biases (Cho et al. 2014), over time at axis 1.
struct gated_cell {
    constexpr auto operator()(auto h, auto x, auto w, auto r) const {
        const auto from_x = tg::split<3>(matmul(x, w), 1), from_h = tg::split<3>(matmul(h, r), 1);
        const auto update = tg::eval(tg::sigmoid(from_x[0] + from_h[0]));
        const auto candidate = tanh(from_x[1] + tg::sigmoid(from_x[2] + from_h[2]) * from_h[1]);
        const auto next = tg::eval(update * h + (1 - update) * candidate);
        return std::pair{next, next};
    }
};
struct gated_model {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = scope.variable_like(x, "kernel", {2, 12}, {.initializer = tg::init::glorot_uniform{}});
        const auto r = scope.variable_like(x, "recurrent", {4, 12}, {.initializer = tg::init::glorot_uniform{}});
        tg::shape state;
        state.push_back(tg::shape_of(x)[0]);
        state.push_back(4);
        const auto [last, sequence] =
            tg::scan(gated_cell{}, tg::fill<float>(x, state, 0), x, {.recompute = true}, w, r);
        return tg::dense(scope / "score", last, {.units = 1});
    }
};

struct trained {
    std::vector<double> losses;
    std::vector<int> launched; // per step
};
template <class Mode>
auto make_model(const tg::compile_options& options) {
    return tg::compile<Mode>(gated_model{}, tg::spec<float, tg::dyn, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{},
                             tg::sgd{.learning_rate = 0.5}, options);
}
template <class Mode>
trained train(tg::device where) {
    auto model = make_model<Mode>({.seed = 3, .device = where});
    trained all;
    for (int step = 0; step < 8; ++step) {
        const std::int64_t batch = 5, time = 4 - step % 2;
        const auto x = drawn<float>({batch, time, 2}, 1 + static_cast<std::uint64_t>(step));
        auto y = tg::zeros<float>({batch, 1});
        for (std::int64_t b = 0; b < batch; ++b) y.set(x(b, 0, 0) > 0, b, 0);
        const int before = launches();
        all.losses.push_back(model.train_on_batch(x, y).loss);
        all.launched.push_back(launches() - before);
    }
    return all;
}

} // namespace

TEST_CASE("a model with a cell of its own trains on a device as on the CPU; its steps are captured") {
    const late_device late;
    const auto gpu = tg::device::cuda(0);
    const std::string text = test::captured_stderr([&] {
        tg::log_placement(true);
        (void)train<tg::graph>(gpu);
        tg::log_placement(false);
    });
    CHECK(text.find(": scan f32") != text.npos);
    CHECK(text.find("on cpu") == text.npos);

    const auto captured = train<tg::graph>(gpu);
#ifdef TG_SIMT
    for (std::size_t step = 0; step < 8; ++step) {
        CAPTURE(step);
        // Both lengths are launched, then captured, then replayed.
        CHECK((captured.launched[step] > 0) == (step < 4));
    }
    // One time step less means correspondingly fewer launches.
    CHECK(captured.launched[1] < captured.launched[0]);
    CHECK(captured.launched[2] == captured.launched[0]);
#endif
    tg::runtime::capture_steps() = false;
    CHECK(train<tg::graph>(gpu).losses == captured.losses);
    tg::runtime::capture_steps() = true;
    const auto cpu = train<tg::graph>(tg::device::cpu()), eager = train<tg::eager>(gpu);
    for (std::size_t step = 0; step < 8; ++step) {
        CAPTURE(step);
        // Eight updates by sums of floats that are added in another order.
        CHECK(captured.losses[step] == doctest::Approx(cpu.losses[step]).epsilon(1e-5));
        CHECK(captured.losses[step] == doctest::Approx(eager.losses[step]).epsilon(1e-5));
    }
}

TEST_CASE("a value that is not finite in a scan on a device is found after it") {
    auto model = make_model<tg::graph>({.check_finite = true, .device = tg::device::cuda(0)});
    auto x = tg::zeros<float>({2, 3, 2});
    const auto y = tg::zeros<float>({2, 1});
    CHECK(model.train_on_batch(x, y).loss == doctest::Approx(std::log(2.0)));
    x.set(std::numeric_limits<float>::quiet_NaN(), 1, 2, 0);
    CHECK_THROWS_WITH_AS(model.train_on_batch(x, y), doctest::Contains("scan: element "), tg::numeric_error);
}

namespace {

// Reverses the elements, on the CPU only.
struct mirrored_op : tg::custom_op<1> {
    static constexpr std::string_view name = "mirrored";
    static constexpr void infer(const attributes&, tg::inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
    }
};
constexpr auto mirror = [](auto xs, auto v) {
    const auto cell = [](auto h, auto x) {
        const auto next = tg::eval(tg::invoke<mirrored_op>({}, nullptr, std::source_location::current(), h) + x);
        return std::pair{next, next};
    };
    return tg::scan(cell, v, tg::eval(xs * 2)).sequence;
};

} // namespace

template <class T>
struct tapegraph::runtime::kernel<mirrored_op, T> {
    static void run(const kernel_call& call) {
        const std::int64_t count = call.in[0].elements();
        for (std::int64_t i = 0; i < count; ++i) call.out[0].as<T>()[i] = call.in[0].as<const T>()[count - 1 - i];
    }
};

TEST_CASE(
    "a scan whose cell has an operation without a device kernel runs on the CPU as a whole, and the log says so") {
    const tg::device_scope on(tg::device::cuda(0));
    auto program = tg::function<tg::graph>(mirror, tg::spec<float, 1, tg::dyn, 3>{}, tg::spec<float, 1, 3>{});
    const auto xs = numbers({1, 4, 3}, 0), v = numbers({1, 3}, 1);
    const auto want = mirror(xs, v);
    const std::string text = test::captured_stderr([&] {
        tg::log_placement(true);
        for (int run = 0; run < 3; ++run) {
            [[maybe_unused]] const int before = launches();
            CHECK(program(xs, v).to_vector() == want.to_vector());
#ifdef TG_SIMT
            CHECK(launches() > before); // nothing is replayed
#endif
        }
        tg::log_placement(false);
    });
    CHECK(text.find(": scan f32[15] on cpu, cuda:0 has no kernel for it\n") != text.npos);
    CHECK(text.find(": mirrored f32[1, 3] on cpu\n") != text.npos); // of the step's program
}
