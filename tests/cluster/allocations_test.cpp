#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/distributed.hpp>
#include <tapegraph/nn/layers/embedding.hpp>

#include <nn/models.hpp>

#include <cstdlib>
#include <doctest/doctest.h>
#include <new>

namespace td = tapegraph::distributed;

namespace allocations_test {
std::atomic<long> count{0};
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations_test::count;
    if (void* const p = std::malloc(bytes == 0 ? 1 : bytes)) return p;
    throw std::bad_alloc();
}
// std::stable_sort asks for it; without one here AddressSanitizer's own would be freed by ours.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    ++allocations_test::count;
    return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace allocations_test {

namespace {
/// Steps without the tests' check of marks (main.cpp), for which a program keeps what it derives from
/// weights at once: here they change in every step.
struct marks_unchecked {
    marks_unchecked() { tapegraph::runtime::content_mark::checked = false; }
    ~marks_unchecked() { tapegraph::runtime::content_mark::checked = true; }
};

/// What all ranks allocate in ten steps, after the first three.
template <class F>
void count_in(td::exchange& mine, long& during, const F& step) {
    for (int i = 0; i < 3; ++i) step();
    td::barrier(mine, "begin");
    if (mine.rank() == 0) during = count.load();
    td::barrier(mine, "counted");
    for (int i = 0; i < 10; ++i) step();
    td::barrier(mine, "end");
    if (mine.rank() == 0) during = count.load() - during;
    td::barrier(mine, "counted");
}
} // namespace

TEST_CASE("between threads nothing is allocated after the first steps") {
    long during = -1;
    td::run_ranks(4, [&](td::exchange& mine) {
        std::vector<float> a(5000), b(100);
        td::tree_sum large(mine, a.size(), td::sum_of<float>, "bucket 0"),
            small(mine, b.size(), td::sum_of<float>, "bucket 1");
        td::block_gather rows(mine, "rows");
        const auto step = [&] {
            large.start_all_reduce(a.data());
            small.start_all_reduce(b.data());
            rows.start(std::as_bytes(std::span(b)));
            large.wait();
            small.wait();
            rows.wait();
            td::barrier(mine, "end");
        };
        // How many messages wait at a time depends on who comes first: mailboxes have room for eight from the beginning.
        count_in(mine, during, step);
    });
    CHECK(during == 0);
}

namespace {

template <bool Together>
struct words {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tapegraph::flatten(
            tapegraph::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4, .sparse = true}));
        h = tapegraph::dense(scope / "hidden", h, {.units = 300});
        if constexpr (Together)
            h = tapegraph::batch_normalization(scope / "norm", h, {}, tapegraph::synchronized);
        else
            h = tapegraph::batch_normalization(scope / "norm", h);
        return tapegraph::dense(scope / "score", h, {.units = 300});
    }
};

} // namespace

TEST_CASE_TEMPLATE("a step that ranks share allocates nothing after the first", Together, std::false_type,
                   std::true_type) { // shards that wait for each other
    const nn_test::thread_limit one(1);
    auto x = tapegraph::tensor<std::int32_t>::uninitialized({16, 5});
    for (int i = 0; i < 80; ++i) x.mutable_data()[i] = i * 7 % 11;
    const auto y = nn_test::classes(16, 300, 2);
    long during = -1;
    td::run_ranks(4, [&](td::exchange& mine) {
        auto model = tapegraph::compile<tapegraph::graph>(words<Together::value>{},
                                                          tapegraph::spec<std::int32_t, tapegraph::dyn, 5>{},
                                                          tapegraph::sparse_softmax_cross_entropy{}, tapegraph::adam{},
                                                          tapegraph::sharded{.shards = 8, .ranks = &mine});
        count_in(mine, during, [&] { model.train_on_batch(x, y); });
    });
    CHECK(during == 0);
}

namespace {

/// Layers on two tasks, one of which reads what the other has, of a batch of which each has all.
struct on_two_tasks {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = hidden(scope, x);
        return tapegraph::dense(scope / "score", h, {.units = 30});
    }
    constexpr auto hidden(auto scope, auto x) const {
        const auto on = scope.with_device("/job:worker/task:1");
        auto h = tapegraph::flatten(tapegraph::embedding(scope / "words", x, {.input_dim = 11, .output_dim = 4}));
        h = tapegraph::batch_normalization(scope / "norm", tapegraph::dense(scope / "hidden", h, {.units = 300}));
        return tapegraph::dropout(scope / "drop", h, {.rate = 0.5});
    }
};

} // namespace

TEST_CASE("a step whose parts are on several tasks allocates nothing after the first") {
    const nn_test::thread_limit one(1);
    const marks_unchecked quick;
    auto x = tapegraph::tensor<std::int32_t>::uninitialized({16, 5});
    for (int i = 0; i < 80; ++i) x.mutable_data()[i] = i * 7 % 11;
    const auto y = nn_test::classes(16, 30, 2);
    const tapegraph::cluster_spec cluster{{"worker", {"one", "two"}}};
    long during = -1;
    td::run_ranks(2, [&](td::exchange& mine) {
        tapegraph::server server(mine, cluster);
        auto model = tapegraph::compile<tapegraph::graph>(
            on_two_tasks{}, tapegraph::spec<std::int32_t, tapegraph::dyn, 5>{},
            tapegraph::sparse_softmax_cross_entropy{}, tapegraph::adam{}, {.tasks = server.tasks()});
        count_in(mine, during, [&] { model.train_on_batch(x, y); });
    });
    CHECK(during == 0);
}

} // namespace allocations_test
