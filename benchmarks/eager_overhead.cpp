#include "fma_peak.hpp"

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/elementwise/activation.hpp>
#include <tapegraph/ops/elementwise/arithmetic.hpp>
#include <tapegraph/ops/product/matmul.hpp>
#include <tapegraph/ops/reduction/reduction.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

/// Measures the cost of a tiny eager operation: nanoseconds per operation, medians over many short
/// blocks on one thread. The goals: an add of 8 floats takes under 200 when recorded, and under 500
/// when recorded and differentiated.
/// Usage: eager_overhead [case [seconds]] runs one case for a profiler; without a name it runs all
/// of them.

namespace {

namespace tg = tapegraph;

constexpr int operations = 1000; // per block: longer than the clock's grain, shorter than a scheduler's quantum

struct measurement {
    std::string_view name;
    double goal; // nanoseconds; 0: none
    void (*block)();
};

tg::tensor<float>& left() {
    static tg::tensor<float> t = tg::ones<float>({8});
    return t;
}
tg::tensor<float>& right() {
    static tg::tensor<float> t = tg::ones<float>({8});
    return t;
}

// The lower bound: a buffer from the pool and back.
void allocate() {
    for (int i = 0; i < operations; ++i) auto t = tg::tensor<float>::uninitialized({8});
}

void unrecorded() {
    for (int i = 0; i < operations; ++i) tg::tensor<float> z = left() + right();
}

void recorded() {
    tg::gradient_tape tape;
    tape.watch(left());
    for (int i = 0; i < operations; ++i) tg::tensor<float> z = left() + right();
}

// A chain, so that every record takes part in the gradient.
void differentiated() {
    tg::gradient_tape tape;
    tape.watch(left());
    tg::tensor<float> z = left();
    for (int i = 0; i < operations; ++i) z = tg::tensor<float>(z + right());
    auto gradient = tape.gradient(z, left());
    if (gradient(0) != 1) std::abort();
}

// Reads its operands in the backward pass, so both stay alive on the tape.
void multiplied() {
    tg::gradient_tape tape;
    tape.watch(left());
    tg::tensor<float> z = left();
    for (int i = 0; i < operations; ++i) z = tg::tensor<float>(z * right());
    auto gradient = tape.gradient(z, left());
    if (gradient(0) != 1) std::abort();
}

// Five operations in one formula form one record.
void formula() {
    tg::gradient_tape tape;
    tape.watch(left());
    tg::tensor<float> z = left();
    for (int i = 0; i < operations; ++i) z = tg::tensor<float>(relu(z * right() + right()) - z * right());
    auto gradient = tape.gradient(z, left());
    if (!(gradient(0) < 2)) std::abort();
}

// One tape per operation, as in the training loop of a tiny model: opening, watching,
// differentiating, clearing.
void tape_each() {
    for (int i = 0; i < operations; ++i) {
        tg::gradient_tape tape;
        tape.watch(left());
        const tg::tensor<float> z = left() + right();
        auto gradient = tape.gradient(z, left());
        if (gradient(0) != 1) std::abort();
    }
}

void products() {
    static const auto a = tg::ones<float>({8, 8}), b = tg::ones<float>({8, 8});
    for (int i = 0; i < operations; ++i) tg::tensor<float> z = matmul(a, b);
}

const measurement all[] = {{"buffer of 8 floats, taken and returned", 0, &allocate},
                           {"add", 0, &unrecorded},
                           {"add, recorded", 200, &recorded},
                           {"add, recorded and differentiated", 500, &differentiated},
                           {"multiply, recorded and differentiated", 0, &multiplied},
                           {"formula of 5 operations, recorded and differentiated", 0, &formula},
                           {"add on a tape of its own, differentiated", 0, &tape_each},
                           {"matmul 8 x 8 x 8", 0, &products}};

} // namespace

int main(int argc, char** argv) {
    tg::set_thread_count(1);
    if (argc > 1) {
        const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
        for (const measurement& m : all) {
            if (m.name != argv[1]) continue;
            const double start = benchmarks::seconds_now();
            while (benchmarks::seconds_now() < start + seconds) m.block();
            return 0;
        }
        std::fprintf(stderr, "eager_overhead: no case '%s'\n", argv[1]);
        return 2;
    }
    constexpr int count = sizeof all / sizeof *all, rounds = 1500;
    std::vector<double> times[count];
    for (int i = 0; i < 3; ++i) // pools and the tape's memory reach their steady state
        for (const measurement& m : all) m.block();
    for (int round = 0; round < rounds; ++round)
        for (int i = 0; i < count; ++i) times[i].push_back(benchmarks::seconds_of(all[i].block) / operations * 1e9);
    std::printf("| float[8], one thread | ns, median | best | goal |\n| --- | ---: | ---: | ---: |\n");
    for (int i = 0; i < count; ++i) {
        char goal[16] = "";
        if (all[i].goal > 0) std::snprintf(goal, sizeof goal, "< %.0f", all[i].goal);
        std::printf("| %s | %.0f | %.0f | %s |\n", all[i].name.data(), benchmarks::median(times[i]),
                    *std::min_element(times[i].begin(), times[i].end()), goal);
    }
}
