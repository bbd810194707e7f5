#include <cuda/device_array.hpp>

#include <cuda/calls.hpp>

#include <tapegraph/cuda/recurrent.cuh>

#include <cmath>

/// The operations behind lstm on a device against the CPU's kernels, the numbers of which tests/cpu compares with loops.
///
/// Tolerances are relative L2 errors. Both sum up to 40 products in different orders and the CPU's float functions are
/// within 2e-7, behind slopes of at most 1 and gates that forget: 1e-5 and, for double, 1e-12 are far above that, and far
/// below what a wrong element makes.

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
template <class Op, class T>
void check_near(const lstm_attributes& a, const std::vector<argument>& in, const argument& out) {
    const outcome want = run_on_cpu<Op, T>(a, in, {out});
    REQUIRE(want.error.empty());
    outcome first;
    on_device::in_orders([&] {
        const outcome got = run_on_device<Op, T>(a, in, {out});
        CHECK(got.error.empty());
        CHECK(distance<T>(got, want) <= tolerance<T>);
        if (first.out.empty()) first = got;
        CHECK(got.out == first.out);
    });
}

struct layer {
    std::int64_t batch, time, units;
};

template <int Extras, class T>
void check_layer(const layer& l, const lstm_attributes& a) {
    CAPTURE(Extras);
    CAPTURE(l.batch);
    CAPTURE(l.time);
    CAPTURE(l.units);
    CAPTURE(a.rows);
    constexpr bool initial = (Extras & 4) != 0;
    const extents of_state{l.batch, l.units};
    const auto with = [](std::vector<argument> front, const std::vector<argument>& rest) {
        front.insert(front.end(), rest.begin(), rest.end());
        return front;
    };
    std::vector<argument> operands{numbers<T>({l.batch, l.time, 4 * l.units}, 1, 1.5),
                                   numbers<T>({l.units, 4 * l.units}, 2, 1.5 / std::sqrt(double(l.units)))};
    if (initial) operands = with(operands, {numbers<T>(of_state, 3), numbers<T>(of_state, 4)});
    if ((Extras & 1) != 0)
        operands.push_back(filled<bool>({l.batch, l.time}, [](std::int64_t i) { return scattered(i, 4, 5) != 0; }));
    if ((Extras & 2) != 0)
        operands.push_back(filled<T>(of_state, [](std::int64_t i) { return 1.5 * scattered(i, 2, 6); }));

    const argument of_states = shaped<T>({6, l.batch, l.time, l.units});
    check_near<lstm_states_op<Extras>, T>(a, operands, of_states);
    const extents rows{l.batch, a.count(l.time).value, l.units};
    if (a.rows != lstm_attributes::previous) check_near<lstm_op<Extras>, T>(a, operands, shaped<T>(rows));
    argument states = of_states;
    states.values = run_on_cpu<lstm_states_op<Extras>, T>(a, operands, {of_states}).out[0];
    check_same<lstm_result_op<Extras>, T>(a, with({states}, operands), {shaped<T>(rows)});
    check_near<lstm_gradient_op<Extras>, T>(a, with({numbers<T>(rows, 7), states}, operands),
                                            initial ? shaped<T>({l.batch, 4 * l.time + 2, l.units})
                                                    : shaped<T>({l.batch, l.time, 4 * l.units}));
}

constexpr std::int64_t last = lstm_attributes::last, sequence = lstm_attributes::sequence,
                       previous = lstm_attributes::previous;

/// Calls f for each way of running all steps that the device can be said to have.
template <class F>
void in_every_way(const F& f) {
#ifdef TG_SIMT
    auto& device = cuda::driver::imitation::instance();
    for (const auto& [clusters, blocks] : {std::pair{1, 1}, std::pair{0, 1}, std::pair{0, 0}}) {
        CAPTURE(clusters);
        CAPTURE(blocks);
        const with_value<int> may_cluster(device.resident_clusters, clusters), may_meet(device.resident_blocks, blocks);
        f();
    }
#else
    f();
#endif
}

template <int... Extras>
void check_extras(std::integer_sequence<int, Extras...>, const layer& l, const lstm_attributes& a) {
    (check_layer<Extras, double>(l, a), ...);
}

} // namespace

TEST_CASE("lstm on a device: all that it may be given, all rows") {
    in_every_way([] {
        for (const lstm_attributes& a :
             {lstm_attributes{0, 0, last, 0}, lstm_attributes{0, 0, sequence, 1}, lstm_attributes{0, 0, previous, 0}})
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

TEST_CASE("lstm on a device: what has no kernel there runs on the CPU") {
    CHECK(cuda::has_kernel<lstm_op<3>, float>);
    CHECK(!cuda::has_kernel<lstm_second_op<3>, float>);
    CHECK(!cuda::has_kernel<lstm_tangent_op<3>, double>);
}
