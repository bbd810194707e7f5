#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <nn/models.hpp>

#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/nn/scan.hpp>

#include <support/temporary_folder.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

// Counts what a step asks of the heap. The C functions are replaced where glibc offers its own under another name, so that
// the library's direct calls count, too; sanitizers bring their own and are left alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NN_TEST_COUNTS_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define NN_TEST_COUNTS_MALLOC 0
#endif
#endif
#if !defined(NN_TEST_COUNTS_MALLOC)
#if defined(__GLIBC__)
#define NN_TEST_COUNTS_MALLOC 1
#else
#define NN_TEST_COUNTS_MALLOC 0
#endif
#endif

#if NN_TEST_COUNTS_MALLOC
namespace {
std::atomic<long> heap_calls{0};
}

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
    heap_calls.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
    heap_calls.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
    heap_calls.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    heap_calls.fetch_add(1, std::memory_order_relaxed);
    return __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
    heap_calls.fetch_add(1, std::memory_order_relaxed);
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
    heap_calls.fetch_add(1, std::memory_order_relaxed);
    *to = __libc_memalign(alignment, bytes);
    return *to == nullptr ? 12 : 0; // ENOMEM
}
}
#endif

using namespace nn_test;

#if NN_TEST_COUNTS_MALLOC
namespace {
struct sparse_words {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::embedding(scope / "words", x, {.input_dim = 50, .output_dim = 40, .sparse = true});
        return tg::dense(scope / "score", mean(h, 1), {.units = 3});
    }
};
} // namespace
#endif

#if NN_TEST_COUNTS_MALLOC
TEST_CASE("the counter of heap calls counts") {
    const long before = heap_calls;
    int* volatile number = new int(7);
    delete number;
    void* volatile block = std::aligned_alloc(64, 128);
    std::free(block);
    CHECK(heap_calls == before + 2);
}

TEST_CASE("a graph-mode training step asks the heap for nothing after the first") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        const thread_limit limit(threads);
        auto cnn = tg::compile<tg::graph>(small_cnn{}, cnn_spec<float>{}, tg::sigmoid_cross_entropy{}, tg::adam{},
                                          {.seed = 1});
        const auto x = noise<float>({16, 26, 26, 3}, 1);
        const auto y = coin_flips<float>(16, 2);
        const auto last_x = noise<float>({5, 26, 26, 3}, 3); // an epoch's last batch
        const auto last_y = coin_flips<float>(5, 4);
        const auto one_x = noise<float>({1, 26, 26, 3}, 5);
        const auto one_y = coin_flips<float>(1, 6);

        cnn.train_on_batch(x, y);
        const std::size_t arena = cnn.arena_bytes();
        const long before = heap_calls;
        cnn.train_on_batch(x, y);
        const long same_size = heap_calls - before;
        cnn.train_on_batch(last_x, last_y);
        const long smaller = heap_calls - before - same_size;
        cnn.train_on_batch(x, y);
        cnn.train_on_batch(one_x, one_y);
        cnn.train_on_batch(last_x, last_y);
        cnn.optimizer().learning_rate = 1e-4;
        cnn.train_on_batch(x, y);
        const long all = heap_calls - before;
        CHECK(same_size == 0);
        CHECK(smaller == 0);
        CHECK(all == 0);
        CHECK(cnn.arena_bytes() == arena);
    }
}

TEST_CASE("nor does fit, with callbacks at every step, from the second step of an epoch on") {
    auto model =
        tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{},
                               tg::metrics{tg::sparse_categorical_accuracy{},
                                           tg::sparse_top_k_categorical_accuracy<2>{}, tg::confusion_matrix<3>{}});
    const support::temporary_folder folder;
    tg::data::dataset set;
    set.add("x", noise<float>({40, 6}, 1).to_vector(), {6}).add("label", classes(40, 3, 1).to_vector());
    long before = 0, during = 0, steps = 0;
    double sum = 0;
    for (const std::int64_t prefetch : {0, 2}) {
        steps = 0;
        model.fit(set, {.epochs = 3, .batch_size = 4, .verbose = 0, .prefetch = prefetch},
                  tg::on_batch_begin([&](tg::training_state& s) { sum += s.logs.size() > 0 ? s.logs["loss"] : 0; }),
                  tg::terminate_on_nan{}, tg::time_limit{.seconds = 1e9},
                  tg::early_stopping{.monitor = "loss", .patience = 9},
                  tg::csv_logger{.path = (folder.path() / "log.csv").string()},
                  tg::learning_rate_scheduler([](std::int64_t epoch) { return 0.01 / static_cast<double>(epoch + 1); }),
                  tg::on_batch_end([&](tg::training_state& s) {
                      if (s.batch > 2) during += heap_calls - before, ++steps;
                      before = heap_calls;
                  }));
        CHECK(steps == 24);
        CHECK(during == 0);
    }
    CHECK(sum > 0);
}

TEST_CASE("nor does one of small matrix products, which turn into vectors for a batch of one") {
    auto mlp = tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{});
    const auto x = noise<float>({16, 6}, 1), last_x = noise<float>({1, 6}, 2);
    const auto y = classes(16, 3, 1), last_y = classes(1, 3, 2);
    mlp.train_on_batch(x, y);
    const long before = heap_calls;
    mlp.train_on_batch(last_x, last_y);
    mlp.train_on_batch(x, y);
    const long all = heap_calls - before;
    CHECK(all == 0);
}

namespace {
struct scanned_model {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = scope.variable_like(x, "kernel", {3, 3}, {.initializer = tg::init::glorot_uniform{}});
        const auto cell = [](auto h, auto v, auto kernel) {
            const auto next = tg::eval(tanh(matmul(h + v, kernel)));
            return std::pair{next, next};
        };
        const auto [last, sequence] = tg::scan(cell, tg::take(x, 0, 1), x, w);
        return tg::dense(scope / "score", last, {.units = 1});
    }
};
} // namespace

TEST_CASE("nor does one with a scan, at extents that it has had") {
    auto model = tg::compile<tg::graph>(scanned_model{}, tg::spec<float, tg::dyn, tg::dyn, 3>{},
                                        tg::sigmoid_cross_entropy{}, tg::adam{});
    const auto x = noise<float>({6, 5, 3}, 1), last_x = noise<float>({2, 4, 3}, 1);
    const auto y = coin_flips<float>(6, 2), last_y = coin_flips<float>(2, 2);
    model.train_on_batch(x, y);
    model.train_on_batch(last_x, last_y);
    const long before = heap_calls;
    model.train_on_batch(x, y);
    model.train_on_batch(last_x, last_y);
    const long all = heap_calls - before;
    CHECK(all == 0);
}

TEST_CASE("nor does one that updates the rows of an embedding") {
    for (const int threads : {1, 2}) {
        const thread_limit limit(threads);
        auto model = tg::compile<tg::graph>(sparse_words{}, tg::spec<std::int32_t, tg::dyn, 30>{},
                                            tg::sparse_softmax_cross_entropy{}, tg::adam{});
        const auto x = tg::eval(tg::zeros<std::int32_t>({64, 30}) + 7), last_x = tg::zeros<std::int32_t>({1, 30});
        const auto y = classes(64, 3, 1), last_y = classes(1, 3, 2);
        model.train_on_batch(x, y);
        const long before = heap_calls;
        model.train_on_batch(last_x, last_y);
        model.train_on_batch(x, y);
        const long all = heap_calls - before;
        CHECK(all == 0);
    }
}
#endif
