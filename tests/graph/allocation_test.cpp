#include <support/builders.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

/// A step makes no heap allocation after the first, for smaller batches neither. Counts everything malloc hands out, which
/// is also where new gets its own.

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TG_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TG_SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(TG_SANITIZED)

namespace {
std::atomic<long> allocations{0};
}

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
    ++allocations;
    return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
    ++allocations;
    return __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) {
    ++allocations;
    return __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    ++allocations;
    return __libc_memalign(alignment, size);
}
}

namespace tg = tapegraph;
using namespace builders;

namespace {

struct step { // convolution, batch statistics, pooling, matrix product, loss, gradient, update, in the sizes of a real step
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {12, 12, 3}), labels = batch_input(t, "labels", {4});
        const node k = variable(t, "kernel", {3, 3, 3, 8}), b = variable(t, "bias", {8}), w = variable(t, "w", {200, 4});
        const node h = relu(conv2d(x, k) + b);
        const node centered = (h - mean(h, {0, 1, 2})) * rsqrt(variance(h, {0, 1, 2}) + 0.001);
        const node y = matmul(tg::flatten(tg::max_pooling2d(centered, {.pool_size = {2, 2}})), w);
        const node loss = mean(-sum(log_softmax(y) * labels, -1));
        output(t, "loss", loss);
        const auto g = tg::ir::gradient(t, loss.id(), {k.id(), b.id(), w.id()});
        assign(t, k, k - node(&t, g[0]) * 0.1);
        assign(t, b, b - node(&t, g[1]) * 0.1);
        assign(t, w, w - node(&t, g[2]) * 0.1);
    }
};

// Elements of 16 bits: what is converted to float on the way lies in the planned workspace.
struct narrow_step {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {12, 12, 3}, "batch", dtype::bf16);
        const node k = input(t, "kernel", {3, 3, 3, 8}, dtype::bf16), b = input(t, "bias", {8}, dtype::bf16);
        const node w = input(t, "w", {200, 4}, dtype::bf16);
        const node h = relu(conv2d(x, k) + b);
        const node y = matmul(tg::flatten(tg::max_pooling2d(h * b, {.pool_size = {2, 2}})), w);
        const node loss = mean(square(log_softmax(y)));
        const auto g = tg::ir::gradient(t, loss.id(), {k.id(), b.id(), w.id()});
        output(t, "loss", loss);
        for (const int gradient : g) output(t, "gradient", node(&t, gradient));
    }
};

} // namespace

TEST_CASE("steps of 16-bit elements after the first allocate nothing") {
    static_assert(first_problem<narrow_step>() == nullptr);
    tg::ir::program p(tg::ir::compile_program<narrow_step>());
    std::vector<tg::bfloat16> memory(64 * 12 * 12 * 3, tg::bfloat16(0.01));
    const auto run = [&](std::int64_t batch) {
        const std::vector<std::vector<std::int64_t>> shapes{{batch, 12, 12, 3}, {3, 3, 3, 8}, {8}, {200, 4}};
        for (int i = 0; i < 4; ++i) {
            tg::buffer_view v;
            v.data = memory.data();
            v.type = dtype::bf16;
            for (const std::int64_t extent : shapes[static_cast<std::size_t>(i)]) v.extents[v.rank++] = extent;
            p.set_input(i, v);
        }
        const long before = allocations;
        p.run({});
        return allocations - before;
    };
    CHECK(run(64) > 0);
    static_cast<void>(run(64));
    for (const std::int64_t batch : {64, 17, 64, 1, 64}) CHECK(run(batch) == 0);
    CHECK(p.scalar_output(0) == doctest::Approx(1.9218).epsilon(0.01)); // log(4)^2: all logits are equal
}

TEST_CASE("steps after the first allocate nothing") {
    runner p(tg::ir::compile_program<step>());
    for (std::size_t v = 0; v < 3; ++v) p.variables[v].assign(p.variables[v].size(), 0.01);
    for (int v = 0; v < 3; ++v) p.program.set_variable(v, p.variables[static_cast<std::size_t>(v)].data());
    const std::vector<double> x = values(64 * 12 * 12 * 3, 1), labels = values(64 * 4, 2);
    const auto run = [&](std::int64_t batch) {
        p.feed(0, x, {batch, 12, 12, 3});
        p.feed(1, labels, {batch, 4});
        p.run();
    };
    const long before_first = allocations;
    run(64);
    CHECK(allocations > before_first); // the counter counts
    run(64);
    const long before = allocations;
    for (int i = 0; i < 5; ++i) run(64);
    CHECK(allocations == before);
    run(17); // the last batch of an epoch
    run(64);
    run(1);
    run(64);
    CHECK(allocations == before);
}

#endif
