#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/ops/recurrent/recurrent.cuh>
#include <tapegraph/ops/recurrent/gru.hpp>
#include <tapegraph/ops/recurrent/layers_kernel.hpp>
#include <tapegraph/ops/recurrent/lstm.hpp>
#include <tapegraph/ops/recurrent/simple_rnn.hpp>

#include <cmath>
#include <type_traits>

namespace recurrent_test {

/// The operations of recurrent layers on a device against the CPU's kernels, which tests/cpu
/// compares with loops.
///
/// Tolerances are relative L2 errors. Both sum up to 40 products in different orders and the CPU's
/// float functions are within 2e-7, followed by slopes of at most 1 and gates that forget: 1e-5
/// and, for double, 1e-12 are far above that, and far below the effect of a wrong element.

using namespace tapegraph;
using namespace tapegraph::testing;

namespace {

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;

template <class T>
argument numbers(const extents& e, std::uint32_t seed, double most = 1) {
    return filled<T>(e, [&](std::int64_t i) { return most * (scattered(i, 20001, seed) / 1e4 - 1); });
}

template <class T>
double distance(const outcome& a, const outcome& b) {
    const std::vector<T> x = a.values<T>(), y = b.values<T>();
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double d = double(x[i]) - double(y[i]);
        apart += d * d, size += double(y[i]) * double(y[i]);
    }
    return apart == 0 ? 0 : std::sqrt(apart / size);
}
/// With `exact`, where nothing is rounded, the numbers are equal, though zeros may differ in sign.
template <class Op, class T>
void check_near(const recurrent_attributes& a, const std::vector<argument>& in, const argument& out,
                bool exact = false) {
    const outcome want = run_on_cpu<Op, T>(a, in, {out});
    REQUIRE(want.error.empty());
    outcome first;
    on_device::in_orders([&] {
        const outcome got = run_on_device<Op, T>(a, in, {out});
        CHECK(got.error.empty());
        CHECK(distance<T>(got, want) <= (exact ? 0 : tolerance<T>));
        if (first.out.empty()) first = got;
        CHECK(got.out == first.out);
    });
}

struct layer {
    std::int64_t batch, time, units;
};

/// All arguments of a call of a layer of `Cell`, filled with numbers. `whole`: small integers, and
/// gates that are 0 or 1 if they are hard, so that no sum is rounded.
template <class Cell, int Extras, class T>
std::vector<argument> operands_of(const layer& l, bool whole) {
    const extents of_state{l.batch, l.units};
    const std::int64_t columns = Cell::gates * l.units;
    const auto some = [&](const extents& e, std::uint32_t seed, double most) {
        if (!whole) return numbers<T>(e, seed, most);
        return filled<T>(e, [&](std::int64_t i) { return static_cast<int>(scattered(i, 5, seed)) - 2; });
    };
    argument projected = some({l.batch, l.time, columns}, 1, 1.5);
    if (whole)
        projected = filled<T>({l.batch, l.time, columns}, [&](std::int64_t i) {
            const int small = static_cast<int>(scattered(i, 5, 1)) - 2;
            const bool candidate = i % columns / l.units == Cell::gates - 1;
            return candidate ? small : (2 * small + 1) * 100000;
        });
    argument recurrent = some({l.units, columns}, 2, 1.5 / std::sqrt(double(l.units)));
    if (whole) // few weights of a unit are nonzero, or states would grow with every step
        recurrent = filled<T>({l.units, columns}, [&](std::int64_t i) {
            return scattered(i, 3 * static_cast<std::uint32_t>(l.units), 2) < 3 ? 1 - 2 * (i % 2) : 0;
        });
    std::vector<argument> all{projected, recurrent};
    if ((Extras & 8) != 0) all.push_back(some({l.units}, 8, 1));
    for (int i = 0; (Extras & 4) != 0 && i < Cell::states; ++i)
        all.push_back(some(of_state, 3 + static_cast<std::uint32_t>(i), 1));
    if ((Extras & 1) != 0)
        all.push_back(filled<bool>({l.batch, l.time}, [](std::int64_t i) { return scattered(i, 4, 5) != 0; }));
    if ((Extras & 2) != 0)
        all.push_back(filled<T>(of_state, [&](std::int64_t i) { return (whole ? 2 : 1.5) * scattered(i, 2, 6); }));
    return all;
}

template <class Cell, int Extras, class T>
void check_layer_of(const layer& l, const recurrent_attributes& a, bool whole = false) {
    CAPTURE(Cell::name.text);
    CAPTURE(Extras);
    CAPTURE(l.batch);
    CAPTURE(l.time);
    CAPTURE(l.units);
    CAPTURE(a.rows);
    CAPTURE(a.reset_after);
    const auto check = [&]<class Op>(std::type_identity<Op>, const std::vector<argument>& in, const argument& out) {
        check_near<Op, T>(a, in, out, whole);
    };
    const auto with = [](std::vector<argument> front, const std::vector<argument>& rest) {
        front.insert(front.end(), rest.begin(), rest.end());
        return front;
    };
    const std::vector<argument> operands = operands_of<Cell, Extras, T>(l, whole);
    const bool previously = a.rows == recurrent_attributes::previous;
    const argument of_states = shaped<T>({Cell::planes(a), l.batch, l.time, l.units});
    check(std::type_identity<recurrent_states_op<Cell, Extras>>{}, operands, of_states);
    const extents rows{l.batch, a.count(l.time).value, previously ? Cell::given(a) * l.units : l.units};
    if (!previously) check(std::type_identity<recurrent_op<Cell, Extras>>{}, operands, shaped<T>(rows));
    argument states = of_states;
    states.values = run_on_cpu<recurrent_states_op<Cell, Extras>, T>(a, operands, {of_states}).out[0];
    check_same<recurrent_result_op<Cell, Extras>, T>(a, with({states}, operands), {shaped<T>(rows)});
    const argument seeds =
        whole ? filled<T>(rows, [](std::int64_t i) { return static_cast<int>(scattered(i, 5, 7)) - 2; })
              : numbers<T>(rows, 7);
    const std::int64_t columns = Cell::columns(a);
    check(std::type_identity<recurrent_gradient_op<Cell, Extras>>{}, with({seeds, states}, operands),
          (Extras & 4) != 0 ? shaped<T>({l.batch, columns * l.time + Cell::states, l.units})
                            : shaped<T>({l.batch, l.time, columns * l.units}));
}
template <int Extras, class T>
void check_layer(const layer& l, const recurrent_attributes& a) {
    check_layer_of<detail::lstm_layer_cell, Extras, T>(l, a);
}
/// Both forms of a gru, whose candidate has a bias with bit 3 of `Extras`, and a simple RNN, which
/// has none.
template <int Extras, class T>
void check_others(const layer& l, recurrent_attributes a, bool whole = false) {
    for (a.reset_after = 0; a.reset_after < 2; ++a.reset_after)
        check_layer_of<detail::gru_layer_cell, Extras, T>(l, a, whole);
    check_layer_of<detail::simple_rnn_layer_cell, Extras & 7, T>(l, a, whole);
}

constexpr std::int64_t last = recurrent_attributes::last, sequence = recurrent_attributes::sequence,
                       previous = recurrent_attributes::previous;

/// Calls f for each way of running all steps, each on a device whose properties select it.
template <class F>
void in_every_way(const F& f) {
#ifdef TG_SIMT
    auto& device = cuda::driver::imitation::instance();
    const with_value<int> three(device.devices, 3);
    device.residents[1] = {1, 0}, device.residents[2] = {0, 0};
    for (int i = 2; i >= 0; --i) {
        CAPTURE(device.residents[static_cast<std::size_t>(i)].clusters);
        CAPTURE(device.residents[static_cast<std::size_t>(i)].blocks);
        cuda::driver::use(i);
        f();
    }
#else
    f();
#endif
}

template <int... Extras>
void check_extras(std::integer_sequence<int, Extras...>, const layer& l, const recurrent_attributes& a) {
    (check_layer<Extras, double>(l, a), ...);
}

} // namespace

TEST_CASE("lstm on a device: all that it may be given, all rows") {
    in_every_way([] {
        for (const recurrent_attributes& a :
             {recurrent_attributes{0, 0, last, 0}, recurrent_attributes{0, 0, sequence, 1},
              recurrent_attributes{0, 0, previous, 0}})
            check_extras(std::make_integer_sequence<int, 8>{}, {5, 3, 6}, a);
        check_layer<7, double>({5, 4, 7}, {0, 0, last, 1});
        check_layer<7, double>({2, 3, 5}, {0, 0, sequence, 0});
    });
}

TEST_CASE("lstm on a device: other functions") {
    in_every_way([] {
        check_layer<7, double>({3, 4, 5}, {1, 0, sequence, 1});
        check_layer<0, double>({3, 4, 5}, {0, 1, last, 1});
        check_layer<7, double>({3, 4, 5}, {1, 1, sequence, 0});
    });
}

TEST_CASE("lstm on a device: awkward shapes, in float") {
    in_every_way([] {
        for (const layer& l : {layer{1, 1, 1}, layer{3, 2, 33}, layer{33, 2, 7}, layer{0, 3, 5}, layer{2, 0, 5}})
            for (std::int64_t cell : {0, 1}) {
                check_layer<0, float>(l, {0, 0, last, cell});
                check_layer<7, float>(l, {0, 0, cell == 0 ? last : sequence, cell});
            }
        check_layer<7, float>({2, 1, 5}, {0, 0, previous, 0});
    });
}

TEST_CASE("gru and simple_rnn on a device: all that they may be given, all rows") {
    in_every_way([] {
        for (std::int64_t rows : {last, sequence, previous}) {
            check_others<0, double>({5, 3, 6}, {0, 0, rows, 0});
            check_others<5, double>({5, 4, 6}, {0, 0, rows, 0});
            check_others<15, double>({5, 4, 6}, {0, 0, rows, 0});
        }
        check_others<10, double>({3, 4, 5}, {0, 0, last, 0});
    });
}

TEST_CASE("gru and simple_rnn on a device: other functions, and whole numbers exactly") {
    in_every_way([] {
        for (std::int64_t rows : {last, sequence, previous}) {
            check_others<15, double>({3, 4, 5}, {1, 0, rows, 0});
            check_others<15, double>({3, 4, 5}, {0, 1, rows, 0});
            check_others<15, double>({5, 3, 33}, {1, 1, rows, 0}, true);
            check_others<0, float>({5, 3, 40}, {1, 1, rows, 0}, true);
        }
    });
}

TEST_CASE("gru and simple_rnn on a device: awkward shapes") {
    in_every_way([] {
        check_others<0, double>({1, 2, 130}, {0, 0, last, 0}); // positions of weights as in gru_test.cpp
        for (const layer& l : {layer{1, 1, 1}, layer{1, 2, 129}, layer{33, 1, 31}, layer{3, 2, 64}, layer{40, 2, 17},
                               layer{2, 40, 7}, layer{0, 3, 5}, layer{2, 0, 5}}) {
            check_others<0, float>(l, {0, 0, last, 0});
            check_others<15, float>(l, {0, 0, l.units % 2 == 0 ? previous : sequence, 0});
        }
    });
}

TEST_CASE("recurrent layers on a device: what has no kernel there runs on the CPU") {
    CHECK(cuda::has_kernel<recurrent_op<detail::lstm_layer_cell, 3>, float>);
    CHECK(cuda::has_kernel<recurrent_gradient_op<detail::gru_layer_cell, 8>, double>);
    CHECK(!cuda::has_kernel<recurrent_second_op<detail::lstm_layer_cell, 3>, float>);
    CHECK(!cuda::has_kernel<recurrent_tangent_op<detail::lstm_layer_cell, 3>, double>);
}

} // namespace recurrent_test
