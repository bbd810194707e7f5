#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

namespace memory_limit_test {

using namespace nn_test;

namespace {

std::size_t in_use() { return tg::runtime::arena_counters::instance().in_use; }

/// Lets buffers take so many bytes more than today, until the end of a test.
struct memory_limit {
    explicit memory_limit(std::size_t more) { tg::set_memory_limit(in_use() + more); }
    ~memory_limit() { tg::set_memory_limit(SIZE_MAX); }
    memory_limit(const memory_limit&) = delete;
    memory_limit& operator=(const memory_limit&) = delete;
};

constexpr std::size_t kib = 1024, mib = 1024 * kib;

} // namespace

TEST_CASE("a buffer beyond the memory limit is refused, and the error has the requested bytes") {
    const memory_limit limit(mib);
    const std::size_t before = in_use();
    {
        const tg::runtime::arena all(mib);
        CHECK(in_use() == before + mib);
        bool thrown = false;
        try {
            const tg::runtime::arena more(1);
        } catch (const tg::out_of_memory& e) {
            thrown = true;
            CHECK(e.requested_bytes == 1);
            CHECK(e.in_use == before + mib);
            CHECK(support::contains(e.what(), "out of memory on the CPU: 1 bytes requested"));
            CHECK(support::contains(e.what(), "limit"));
        }
        CHECK(thrown);
        CHECK(in_use() == before + mib);
    }
    CHECK(in_use() == before);
    CHECK_THROWS_AS(tg::runtime::arena(mib + 1), tg::out_of_memory);
    CHECK_NOTHROW(tg::runtime::arena{mib});
    CHECK_THROWS_AS(tg::runtime::arena(SIZE_MAX - 4 * mib), tg::out_of_memory); // a sum that would overflow
}

TEST_CASE("tensors kept for reuse are given up before memory runs out") {
    tg::trim_memory();
    { const auto kept = tg::tensor<float>::uninitialized({1024, 1024}); }
    CHECK(tg::eager_memory().cached >= static_cast<std::int64_t>(4 * mib));
    const memory_limit limit(0);
    const auto other = tg::tensor<float>::uninitialized({512, 1024}); // another size, and there is room only for one
    CHECK(tg::eager_memory().cached == 0);
    CHECK_THROWS_AS(tg::tensor<float>::uninitialized({1024, 1024}), tg::out_of_memory);
}

TEST_CASE("a step that exceeds the limit leaves a model that continues with smaller batches") {
    each_mode([](auto mode) {
        const auto make = [] {
            return tg::compile<decltype(mode)>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                               tg::sgd{.learning_rate = 0.1}, {.seed = 2});
        };
        auto model = make(), twin = make();
        const auto x = noise<float>({1 << 16, 6}, 1);
        const auto y = classes(1 << 16, 3, 1);
        const auto few = noise<float>({8, 6}, 2);
        const auto labels = classes(8, 3, 2);
        CHECK(model.train_on_batch(few, labels).loss == twin.train_on_batch(few, labels).loss);
        {
            // The hidden layer alone is 65,536 x 9 floats, 2.25 MiB.
            tg::trim_memory();
            const memory_limit limit(2 * mib);
            CHECK_THROWS_AS(model.train_on_batch(x, y), tg::out_of_memory);
            CHECK(model.step() == 1);
            CHECK(model.train_on_batch(few, labels).loss == twin.train_on_batch(few, labels).loss);
        }
        CHECK(model.train_on_batch(x, y).loss == twin.train_on_batch(x, y).loss);
        CHECK(first_difference(model, twin) == "");
    });
}

TEST_CASE("the error of a program names the bytes that its plan needs") {
    auto model = tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                        tg::sgd{.learning_rate = 0.1}, {.seed = 2});
    const auto x = noise<float>({4096, 6}, 1);
    const auto y = classes(4096, 3, 1);
    std::size_t requested_bytes = 0;
    {
        const memory_limit limit(64 * kib);
        try {
            model.train_on_batch(x, y);
        } catch (const tg::out_of_memory& e) {
            requested_bytes = e.requested_bytes;
        }
    }
    model.train_on_batch(x, y);
    CHECK(requested_bytes > 64 * kib);
    CHECK(requested_bytes == model.arena_bytes());
}

} // namespace memory_limit_test
