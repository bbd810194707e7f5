#include "fma_peak.hpp"

#include <tapegraph/ops/gather/cpu.hpp>
#include <tapegraph/ops/movement/cpu.hpp>
#include <tapegraph/ops/movement/cpu_pad.hpp>
#include <tapegraph/ops/movement/cpu_index_map.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <vector>

/// Measures kernels that move elements relative to a plain copy of as many bytes in the same run:
/// nanoseconds per element, and GB/s of the bytes that have to be read and written. Usage: movement
/// [threads [megabytes]]

namespace {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;
using extents = std::vector<std::int64_t>;

struct buffer {
    explicit buffer(std::size_t bytes)
        : memory(static_cast<char*>(std::aligned_alloc(1 << 21, (bytes + (1 << 21)) >> 21 << 21)), std::free) {
        for (std::size_t i = 0; i < bytes; ++i) memory.get()[i] = static_cast<char>(i * 7);
    }
    std::unique_ptr<char, void (*)(void*)> memory;
    char* get() const { return memory.get(); }
};

double copy_rate = 0;

/// `moved`: bytes read and written.
template <class F>
double report(const char* name, std::int64_t elements, double moved, const F& f) {
    for (int i = 0; i < 2; ++i) f();
    std::vector<double> times;
    const int repeats = static_cast<int>(std::max(1.0, 1e6 / moved));
    for (double spent = 0; spent < 0.25 || times.size() < 7;) {
        const double time = benchmarks::seconds_of([&] {
            for (int i = 0; i < repeats; ++i) f();
        });
        spent += time;
        times.push_back(time / repeats);
    }
    const double time = benchmarks::median(times), rate = moved / time / 1e9;
    std::printf("| %s | %.1f | %.3f | %.1f | %.0f %% |\n", name, moved / 2e6, time / static_cast<double>(elements) * 1e9, rate,
                copy_rate > 0 ? 100 * rate / copy_rate : 100.0);
    std::fflush(stdout);
    return rate;
}

std::int64_t product(const extents& e) {
    std::int64_t n = 1;
    for (std::int64_t x : e) n *= x;
    return n;
}

void transposed(const char* name, const buffer& x, const buffer& y, std::size_t size, const extents& e, const extents& order) {
    report(name, product(e), 2.0 * static_cast<double>(product(e)) * static_cast<double>(size), [&] {
        cpu::transpose(static_cast<int>(e.size()), e.data(), order.data(), size, x.get(), y.get());
    });
}

/// Measures everything at about `n` floats.
void measure(std::int64_t n, int threads) {
    const buffer x(static_cast<std::size_t>(n) * 9), y(static_cast<std::size_t>(n) * 9);
    const double bytes = 4.0 * static_cast<double>(n);
    copy_rate = 0;
    // A triad writes half of its bytes without reading them first, so a copy is measured
    // separately: the faster of the system's memcpy, one piece per thread, and the library's.
    const std::int64_t part = 4 * n / threads;
    const double plain = report("memcpy, a piece a thread", n, 2 * bytes, [&] {
        cpu::parallel_team(threads > 1 && n > 32768, [&](int thread, int team) {
            const std::int64_t length = team == 1 ? 4 * n : part;
            std::memcpy(y.get() + thread * length, x.get() + thread * length, static_cast<std::size_t>(length));
        });
    });
    const double own = report("copy", n, 2 * bytes, [&] { cpu::copy(static_cast<std::size_t>(4 * n), x.get(), y.get()); });
    copy_rate = std::max(plain, own);

    std::int64_t side = 16;
    while ((side + 16) * (side + 16) <= n) side += 16;
    std::int64_t power = 16;
    while (4 * power * power <= n) power *= 2;
    transposed("transpose, float", x, y, 4, {side, side}, {1, 0});
    transposed("transpose, float, sides a power of two", x, y, 4, {power, power}, {1, 0});
    transposed("transpose, float, odd sides", x, y, 4, {side - 3, side + 1}, {1, 0});
    transposed("transpose, 8 bytes", x, y, 8, {side, side}, {1, 0});
    transposed("transpose, 2 bytes", x, y, 2, {side, side}, {1, 0});
    transposed("transpose, 1 byte", x, y, 1, {side, side}, {1, 0});
    const std::int64_t matrices = std::max<std::int64_t>(1, n / (64 * 48));
    transposed("batches of 64 x 48", x, y, 4, {matrices, 64, 48}, {0, 2, 1});
    const std::int64_t images = std::max<std::int64_t>(1, n / (26 * 26 * 32)), wide = std::max<std::int64_t>(1, n / (64 * 64 * 3));
    transposed("NHWC to NCHW, 26 x 26 x 32", x, y, 4, {images, 26, 26, 32}, {0, 3, 1, 2});
    transposed("NCHW to NHWC, 26 x 26 x 32", x, y, 4, {images, 32, 26, 26}, {0, 2, 3, 1});
    transposed("NHWC to NCHW, 64 x 64 x 3", x, y, 4, {wide, 64, 64, 3}, {0, 3, 1, 2});
    transposed("NCHW to NHWC, 64 x 64 x 3", x, y, 4, {wide, 3, 64, 64}, {0, 2, 3, 1});
    const std::int64_t tokens = std::max<std::int64_t>(1, n / (8 * 64 * 16));
    transposed("heads: [b, 16, 8, 64] to [b, 8, 16, 64]", x, y, 4, {tokens, 16, 8, 64}, {0, 2, 1, 3});

    const auto slice = [&](const char* name, const extents& e, const extents& begin, const extents& step, const extents& cut) {
        report(name, product(cut), 8.0 * static_cast<double>(product(cut)), [&] {
            cpu::slice(static_cast<int>(e.size()), e.data(), begin.data(), step.data(), cut.data(), 4, x.get(), y.get());
        });
    };
    const std::int64_t rows = std::max<std::int64_t>(2, n / 512);
    slice("slice, rows of 500 of 512", {rows, 512}, {0, 5}, {1, 1}, {rows, 500});
    slice("slice, rows of 12 of 16", {rows * 32, 16}, {0, 2}, {1, 1}, {rows * 32, 12});
    slice("reverse, last axis", {rows, 512}, {0, 511}, {1, -1}, {rows, 512});
    slice("slice, every second", {n}, {0}, {2}, {n / 2});
    const std::int64_t half = n / 2 / 256;
    const void* const parts[]{x.get(), x.get() + 4 * half * 256, x.get()};
    const std::int64_t lengths[]{256, 256}, together[]{half, 512}, thin[]{n / 16, 5, 8, 3}, narrow[]{n / 16, 16};
    report("concat, rows of 256 and 256", half * 512, 8.0 * static_cast<double>(half) * 512,
           [&] { cpu::concat(2, parts, lengths, 2, together, 1, 4, y.get()); });
    report("concat, rows of 5, 8 and 3", n, 2 * bytes, [&] { cpu::concat(3, parts, thin + 1, 2, narrow, 1, 4, y.get()); });
    const std::int64_t picture[]{images, 26, 26, 32}, framed[]{images, 28, 28, 32}, at[]{0, 1, 1, 0}, one[]{1, 1, 1, 1};
    const double framed_bytes = 4.0 * static_cast<double>(images) * (26 * 26 + 28 * 28) * 32;
    report("pad with zeros, 26 x 26 x 32 to 28 x 28", images * 28 * 28 * 32, framed_bytes,
           [&] { cpu::pad(4, picture, at, one, framed, 4, x.get(), y.get()); });
    const std::int64_t reflect[]{0, 1, 1, 0};
    report("pad by reflection, the same", images * 28 * 28 * 32, framed_bytes,
           [&] { cpu::apply_index_map(4, picture, reflect, at, framed, 4, x.get(), y.get()); });
    const std::int64_t repeat[]{5}, twice[]{2}, short_line[]{n / 2}, line[]{n}, wrap[]{4}, none[]{0}, shift[]{1001};
    report("repeat each twice", n, 1.5 * bytes,
           [&] { cpu::apply_index_map(1, short_line, repeat, twice, line, 4, x.get(), y.get()); });
    report("tile twice", n, 1.5 * bytes,
           [&] { cpu::apply_index_map(1, short_line, wrap, none, line, 4, x.get(), y.get()); });
    report("roll", n, 2 * bytes, [&] { cpu::apply_index_map(1, line, wrap, shift, line, 4, x.get(), y.get()); });

    const auto gather = [&](const char* name, std::int64_t width) {
        const std::int64_t count = std::max<std::int64_t>(1, n / width);
        std::vector<std::int32_t> index(static_cast<std::size_t>(count));
        std::uint32_t state = 1;
        for (auto& i : index) i = static_cast<std::int32_t>((state = state * 1664525u + 1013904223u) % static_cast<std::uint32_t>(count));
        report(name, count * width, 8.0 * static_cast<double>(count * width), [&] {
            cpu::gather_rows(count, width, 4, x.get(), count, index.data(), y.get());
        });
    };
    gather("gather, random rows of 512", 512);
    gather("gather, random rows of 64", 64);
    gather("gather, random rows of 8", 8);
    gather("gather, random elements", 1);
}

} // namespace

int main(int argc, char** argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
    const int megabytes = argc > 2 ? std::atoi(argv[2]) : 256;
    if (threads < 1 || megabytes < 1) {
        std::fprintf(stderr, "usage: movement [threads [megabytes]]\n");
        return 2;
    }
    tg::set_thread_count(threads);
    benchmarks::processor_time() = threads == 1; // robust where others use the machine
    std::printf("%d threads (small tensors run on one)\n\n| kernel | MB of result | ns an element | GB/s | of copy |\n"
                "| --- | ---: | ---: | ---: | ---: |\n",
                threads);
    for (const std::int64_t n : {std::int64_t{30000}, std::int64_t{megabytes} * 250000}) measure(n, threads);
}
