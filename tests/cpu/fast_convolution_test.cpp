#include <tapegraph/fast_convolution.hpp>
#include <tapegraph/ops/convolution/cpu.hpp>
#include <tapegraph/ops/convolution/kernel.hpp>
#include <tapegraph/ops/pooling/cpu.hpp>

#include <support/poisoned.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace fast_convolution_test {

namespace cpu = tapegraph::cpu;
using cpu::convolution_pass;
using geometry = tapegraph::convolution_geometry;
using support::poisoned;

namespace {

std::vector<float> noise(std::int64_t count, std::uint32_t seed) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-31f; // uniform in [-1, 1)
    }
    return values;
}

using tapegraph::convolution_algorithm;

geometry resolved(const geometry& given, convolution_algorithm algorithm = convolution_algorithm::automatic,
                  convolution_pass pass = convolution_pass::forward) {
    if (given.algorithm != convolution_algorithm::automatic) return given;
    geometry g = given; // g++ 12.2 at -O1 changes a parameter that is passed by value before its caller has filled it
    g.algorithm = cpu::detail::algorithm_for_shape(given, algorithm, pass);
    return g;
}

std::int64_t elements_of_x(const geometry& g) { return g.batch * g.in_height * g.in_width * g.in_channels; }
std::int64_t elements_of_w(const geometry& g) {
    return g.kernel_height * g.kernel_width * g.in_channels * g.out_channels;
}
std::int64_t elements_of_y(const geometry& g) { return g.batch * g.out_height * g.out_width * g.out_channels; }

/// What the direct passes give, in double.
struct reference {
    std::vector<double> y, dx, dw;

    reference(const geometry& g, const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& dy)
        : y(dy.size()), dx(x.size()), dw(w.size()) {
        const std::vector<double> wide_x(x.begin(), x.end()), wide_w(w.begin(), w.end()), wide_dy(dy.begin(), dy.end());
        std::size_t bytes = 0;
        for (const auto pass :
             {convolution_pass::forward, convolution_pass::input_gradient, convolution_pass::filter_gradient})
            bytes = std::max(bytes, cpu::convolution_workspace_bytes<double>(g, pass, tapegraph::thread_count()));
        poisoned workspace(bytes);
        cpu::convolution_forward(g, wide_x.data(), wide_w.data(), y.data(), workspace.get());
        cpu::convolution_input_gradient(g, wide_dy.data(), wide_w.data(), dx.data(), workspace.get());
        cpu::convolution_filter_gradient(g, wide_x.data(), wide_dy.data(), dw.data(), workspace.get());
    }
};

double relative_error(const std::vector<double>& wanted, const std::vector<float>& got) {
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const double d = static_cast<double>(got[i]) - wanted[i];
        difference += d * d;
        size += wanted[i] * wanted[i];
    }
    return std::sqrt(difference / size);
}

struct passes {
    std::vector<float> y, dx, dw;

    passes(const geometry& given, const std::vector<float>& x, const std::vector<float>& w,
           const std::vector<float>& dy, const cpu::convolution_epilogue<float>& epilogue = {})
        : y(dy.size(), unset), dx(x.size(), unset), dw(w.size(), unset) {
        const geometry g = resolved(given);
        const auto bytes = [&](convolution_pass pass) {
            return cpu::fast_convolution.workspace(g, pass, tapegraph::thread_count(), false);
        };
        poisoned forward(bytes(convolution_pass::forward));
        cpu::fast_convolution.forward(g, x.data(), w.data(), y.data(), forward.get(), epilogue, false, nullptr);
        check_kept_filters(g, x, w, epilogue);
        poisoned input(bytes(convolution_pass::input_gradient));
        cpu::fast_convolution.input_gradient(g, dy.data(), w.data(), dx.data(), input.get());
        poisoned filter(bytes(convolution_pass::filter_gradient));
        cpu::fast_convolution.filter_gradient(g, x.data(), dy.data(), dw.data(), filter.get());
    }
    bool operator==(const passes&) const = default;

private:
    static constexpr float unset = std::numeric_limits<float>::quiet_NaN();

    // The same bits with filters that were transformed before, and memory for no others.
    void check_kept_filters(const geometry& g, const std::vector<float>& x, const std::vector<float>& w,
                            const cpu::convolution_epilogue<float>& epilogue) const {
        poisoned kept(static_cast<std::size_t>(cpu::fast_convolution.layout(g).floats) * sizeof(float));
        cpu::fast_convolution.filters(g, w.data(), static_cast<float*>(kept.get()));
        poisoned workspace(
            cpu::fast_convolution.workspace(g, convolution_pass::forward, tapegraph::thread_count(), true));
        std::vector<float> found(y.size(), unset);
        cpu::fast_convolution.forward(g, x.data(), nullptr, found.data(), workspace.get(), epilogue, false,
                                      static_cast<const float*>(kept.get()));
        CHECK((found.empty() || std::memcmp(found.data(), y.data(), y.size() * sizeof(float)) == 0));
    }
};

/// Every instruction set the processor has, on one thread and on three: within the bound, and the same bits on any number of threads.
void check(const geometry& given, convolution_algorithm algorithm = convolution_algorithm::automatic) {
    const geometry g = resolved(given, algorithm);
    INFO("batch " << g.batch << " image " << g.in_height << "x" << g.in_width << "x" << g.in_channels << " kernel "
                  << g.kernel_height << " out " << g.out_height << "x" << g.out_width << "x" << g.out_channels
                  << " pad " << g.pad_top << "," << g.pad_left << " kernel width " << g.kernel_width << " stride "
                  << g.stride_width);
    REQUIRE(g.algorithm != convolution_algorithm::direct);
    const auto x = noise(elements_of_x(g), 1), w = noise(elements_of_w(g), 2), dy = noise(elements_of_y(g), 3);
    const reference wanted(g, x, w, dy);
    // Of random values in [-1, 1): 6e-6 and 3e-6 are what 5 and 3 taps have over these shapes, and a half more. A product at a wrong
    // place is an error of 1e-2 and more.
    // Along a line transforms are Fourier's, and round as little as direct sums do: 1e-6.
    const double bound = g.kernel_height == 1 ? 2e-6 : g.kernel_height == 5 ? 1e-5 : 5e-6;
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        if (cpu::active_instruction_set() != set) continue;
        tapegraph::set_thread_count(1);
        const passes one(g, x, w, dy);
        CHECK(relative_error(wanted.y, one.y) < bound);
        CHECK(relative_error(wanted.dx, one.dx) < bound);
        CHECK(relative_error(wanted.dw, one.dw) < bound);
        tapegraph::set_thread_count(3);
        CHECK(passes(g, x, w, dy) == one);
    }
    tapegraph::set_thread_count(0);
    cpu::set_instruction_set(cpu::supported_instruction_set());
}

geometry valid(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t in, std::int64_t kernel,
               std::int64_t out) {
    return {batch, height, width, in, kernel, kernel, height - kernel + 1, width - kernel + 1, out};
}
geometry same(std::int64_t batch, std::int64_t height, std::int64_t width, std::int64_t in, std::int64_t kernel,
              std::int64_t out) {
    return {batch, height, width, in, kernel, kernel, height, width, out, 1, 1, kernel / 2, kernel / 2};
}

/// Along a line: `pad` before, and whatever the outputs ask for after.
geometry line(std::int64_t batch, std::int64_t width, std::int64_t in, std::int64_t kernel, std::int64_t out_width,
              std::int64_t out, std::int64_t stride = 1, std::int64_t pad = 0) {
    return {batch, 1, width, in, 1, kernel, 1, out_width, out, 1, stride, 0, pad};
}

} // namespace

TEST_CASE("fast convolution: long kernels along a line, strides as phases") {
    check(line(2, 109, 32, 10, 100, 32));         // transforms of 24 numbers
    check(line(1, 1403, 30, 41, 352, 40, 4, 19)); // 32: an image, a kernel and a padding of parts of phases
    check(line(1, 137, 64, 20, 137, 33, 1, 9));   // 48, padded to the same extent
    check(line(3, 140, 37, 20, 121, 41));         // 64, nothing whole
    check(line(1, 1001, 9, 99, 251, 33, 4, 49));  // 96: 36 channels of 9
    check(line(2, 400, 32, 48, 353, 35));         // 128
    check(line(1, 350, 33, 100, 251, 32));        // 192
    check(line(1, 500, 32, 150, 351, 40));        // 256
    check(line(2, 1400, 30, 40, 341, 34, 4));     // a stride of 4: 120 channels
    check(line(60, 70, 32, 20, 51, 32));          // several blocks and groups
    check(line(1, 90, 34, 20, 109, 32, 1, 19));   // padded by all but one of a kernel
    check(line(1, 301, 16, 60, 81, 32, 3, 1));    // a stride of 3
    check(line(2, 140, 30, 40, 35, 128, 4, 18));  // a short line: three tiles of 12
}

TEST_CASE("fast convolution: all passes near direct sums in double, the same bits on any number of threads") {
    check(valid(1, 20, 20, 32, 5, 32)); // whole tiles, panels and vectors
    check(valid(2, 19, 23, 37, 5, 41)); // nothing whole
    check(valid(3, 15, 15, 64, 3, 33)); // in channels a multiple of 64, a panel of one column
    check(same(2, 14, 13, 33, 3, 97));
    check(same(1, 16, 17, 150, 5, 65));
    check(same(5, 29, 31, 32, 3, 32));                    // several blocks of tiles, several groups
    check({2, 16, 16, 32, 3, 3, 18, 18, 32, 1, 1, 2, 2}); // padded by all but one of a kernel
    check({1, 14, 18, 40, 5, 5, 13, 14, 36, 1, 1, 0, 3}); // more on one side than on the other
    check({1, 4, 61, 32, 3, 3, 4, 61, 32, 1, 1, 1, 1});   // one row of tiles
    check(valid(13, 10, 10, 33, 3, 41));                  // four tiles an image
}

TEST_CASE("fast convolution: who names an algorithm has it where it does not pay") {
    using enum convolution_algorithm;
    check(same(1, 1, 1, 1, 3, 1), winograd); // a pixel
    check(valid(2, 5, 5, 3, 5, 2), winograd);
    check(same(3, 9, 7, 5, 3, 70), winograd); // six tiles of an image
    check(valid(1, 4, 40, 17, 3, 1), winograd);
    check(same(1, 6, 5, 180, 3, 170), winograd); // filters that no cache keeps
    check(line(1, 1, 1, 1, 1, 1), fourier);
    check(line(2, 11, 3, 2, 10, 5), fourier);
    check(line(3, 140, 1, 20, 121, 7), fourier);
    check(line(1, 64, 5, 9, 19, 3, 3, 1), fourier);
    CHECK(resolved(same(1, 40, 40, 64, 3, 64), direct).algorithm == direct);
    CHECK(resolved(same(1, 40, 40, 64, 3, 64), fourier).algorithm == direct);
    CHECK(resolved(same(1, 40, 40, 64, 7, 64), winograd).algorithm == direct);
    CHECK(resolved(line(1, 140, 64, 20, 121, 64), winograd).algorithm == direct);
    CHECK(resolved(line(1, 400, 64, 300, 101, 64), fourier).algorithm == direct); // longer than a transform
    CHECK(resolved(same(1, 0, 4, 64, 3, 64), winograd).algorithm == direct);      // nothing
}

TEST_CASE("fast convolution: bias, relu and the maximum of 2 by 2 pixels are those of separate passes") {
    const geometry g = resolved(same(2, 14, 18, 34, 3, 39));
    const auto x = noise(elements_of_x(g), 1), w = noise(elements_of_w(g), 2), bias = noise(g.out_channels, 4);
    const std::vector<float> dy = noise(elements_of_y(g), 3);
    std::vector<float> wanted = passes(g, x, w, dy).y;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        wanted[i] += bias[i % bias.size()];
        wanted[i] = wanted[i] <= 0 ? 0 : wanted[i];
    }
    CHECK(passes(g, x, w, dy, {bias.data(), true}).y == wanted);

    cpu::pool_geometry p{};
    p.batch = g.batch, p.channels = g.out_channels;
    p.in_height = g.out_height, p.in_width = g.out_width;
    p.out_height = g.out_height / 2, p.out_width = g.out_width / 2;
    p.window_height = p.window_width = p.stride_height = p.stride_width = 2;
    std::vector<float> pooled(wanted.size() / 4), got(wanted.size() / 4);
    cpu::max_pool_forward(p, wanted.data(), pooled.data());
    poisoned workspace(cpu::fast_convolution.workspace(g, convolution_pass::forward, tapegraph::thread_count(), false));
    cpu::fast_convolution.forward(g, x.data(), w.data(), got.data(), workspace.get(), {bias.data(), true}, true,
                                  nullptr);
    CHECK(got == pooled);
}

TEST_CASE("fast convolution: an image's results do not depend on the others of its batch") {
    const geometry g = same(7, 13, 13, 32, 5, 32);
    const auto x = noise(elements_of_x(g), 1), w = noise(elements_of_w(g), 2), dy = noise(elements_of_y(g), 3);
    const passes all(g, x, w, dy);
    geometry one = g;
    one.batch = 1;
    const auto in = static_cast<std::size_t>(elements_of_x(one)), out = static_cast<std::size_t>(elements_of_y(one));
    for (std::size_t image = 0; image < 7; ++image) {
        const auto part = [&](const std::vector<float>& of, std::size_t size) {
            return std::vector<float>(of.begin() + static_cast<std::ptrdiff_t>(image * size),
                                      of.begin() + static_cast<std::ptrdiff_t>((image + 1) * size));
        };
        const passes alone(one, part(x, in), w, part(dy, out));
        CHECK(alone.y == part(all.y, out));
        CHECK(alone.dx == part(all.dx, in));
    }
}

TEST_CASE("fast convolution: memory that is planned for a batch does for smaller ones, which may be direct") {
    for (const auto pass :
         {convolution_pass::forward, convolution_pass::input_gradient, convolution_pass::filter_gradient})
        for (const geometry& of : {same(8, 8, 8, 32, 3, 32), valid(40, 8, 8, 300, 5, 200), same(9, 4, 16, 40, 5, 33),
                                   same(12, 7, 7, 180, 3, 170)}) {
            const auto bytes = [&](std::int64_t batch) {
                geometry g = of;
                g.batch = batch;
                return tapegraph::runtime::detail::convolution_workspace<float>(g, pass);
            };
            for (std::int64_t batch = 0; batch < of.batch; ++batch) CHECK(bytes(batch) <= bytes(batch + 1));
        }
}

TEST_CASE("fast convolution: no images, a NaN, and shapes that stay direct") {
    geometry g = resolved(same(0, 16, 16, 32, 3, 32), convolution_algorithm::winograd);
    const std::vector<float> nothing;
    std::vector<float> dw(static_cast<std::size_t>(elements_of_w(g)), 7.0f);
    poisoned workspace(cpu::fast_convolution.workspace(g, convolution_pass::filter_gradient, 2, false) + 64);
    cpu::fast_convolution.filter_gradient(g, nothing.data(), nothing.data(), dw.data(), workspace.get());
    CHECK(dw == std::vector<float>(dw.size(), 0.0f));

    g.batch = 1;
    auto x = noise(elements_of_x(g), 1);
    x[0] = std::numeric_limits<float>::quiet_NaN();
    const passes with(g, x, noise(elements_of_w(g), 2), noise(elements_of_y(g), 3));
    CHECK(std::isnan(with.y[0])); // the first tile has it
    CHECK(!std::isnan(with.y.back()));

    const geometry base = same(1, 16, 16, 32, 3, 32);
    const auto taken = [&](const auto& change) {
        geometry changed = base;
        change(changed);
        return resolved(changed).algorithm == convolution_algorithm::winograd;
    };
    CHECK(taken([](geometry&) {}));
    CHECK(!taken([](geometry& of) { of.groups = 2; }));
    CHECK(!taken([](geometry& of) { of.stride_width = 2; }));
    CHECK(!taken([](geometry& of) { of.dilation_height = 2; }));
    CHECK(!taken([](geometry& of) { of.kernel_height = 5; }));
    CHECK(!taken([](geometry& of) { of.kernel_height = of.kernel_width = 7; }));
    CHECK(!taken([](geometry& of) { of.in_channels = 31; }));
    CHECK(!taken([](geometry& of) { of.out_channels = 3; }));
    CHECK(!taken([](geometry& of) { of.pad_left = 3; }));
    CHECK(!taken([](geometry& of) { of.batch = 0; }));

    const auto along = [](const geometry& of) { return resolved(of).algorithm == convolution_algorithm::fourier; };
    CHECK(along(line(1, 140, 64, 20, 121, 64)));
    CHECK(!along(line(1, 140, 64, 3, 138, 64)));     // as few products directly
    CHECK(!along(line(1, 140, 31, 20, 121, 64)));    // too few channels
    CHECK(!along(line(1, 140, 64, 20, 1, 64, 120))); // one output
    CHECK(!along(line(1, 140, 64, 300, 1, 64)));     // longer than a transform
    CHECK(along(line(1, 83, 64, 20, 64, 64)));       // as few pixels of the whole batch as pay
    CHECK(!along(line(1, 82, 64, 20, 63, 64)));
    CHECK(along(line(2, 51, 64, 20, 32, 64)));
    geometry dilated = line(1, 140, 64, 20, 102, 64);
    dilated.dilation_width = 2;
    CHECK(!along(dilated));
    geometry grouped = line(1, 140, 64, 20, 121, 64);
    grouped.groups = 2;
    CHECK(!along(grouped));
}

TEST_CASE("fast convolution: from which batch on transforms pay, pass by pass") {
    using enum convolution_pass;
    // The smallest batch; 0: none.
    const auto from = [](convolution_pass pass, std::int64_t outputs, std::int64_t channels, std::int64_t kernel = 3) {
        std::int64_t least = 0;
        for (std::int64_t batch = 200; batch > 0; --batch) {
            const auto g = resolved(same(batch, outputs, outputs, channels, kernel, channels),
                                    convolution_algorithm::automatic, pass);
            if (g.algorithm == convolution_algorithm::winograd)
                least = batch;
            else if (least != 0) // a larger batch never goes back
                return least;
        }
        return least;
    };
    // 170 channels are the most whose transformed filters, a million numbers, stay in a cache.
    CHECK(from(forward, 4, 32) == 4); // 1.75 + 8 / 4 products of 36 against 16 times 9
    CHECK(from(filter_gradient, 4, 32) == 6);
    CHECK(from(forward, 4, 512) == 9);
    CHECK(from(input_gradient, 4, 512) == 27);
    CHECK(from(forward, 7, 512) == 4);
    CHECK(from(input_gradient, 7, 512) == 12);
    CHECK(from(forward, 8, 170) == 1);
    CHECK(from(forward, 8, 171) == 3);
    CHECK(from(filter_gradient, 8, 170) == 2);
    CHECK(from(filter_gradient, 8, 171) == 7);
    CHECK(from(forward, 3, 32) == 17); // a tile for 9 outputs
    CHECK(from(forward, 5, 32) == 0);  // four for 25
    CHECK(from(forward, 2, 256) == 0);
    CHECK(from(forward, 9, 96, 5) == 1);
    CHECK(from(input_gradient, 9, 200, 5) == 4);
    for (std::int64_t outputs = 14; outputs < 40; ++outputs) {
        CHECK(from(forward, outputs, 512) == 1); // so that predictions of images do not depend on their batch
        CHECK((from(filter_gradient, outputs, 512) == 1) == (outputs >= 23));
    }
}

} // namespace fast_convolution_test
