#include <tapegraph/data/loader.hpp>

#include <support/temporary_folder.hpp>

#include <tapegraph/tensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

// Counts every allocation of the program, on all threads. Not inlined: g++ would pair the library's operator new with the
// free() in here and warn.
static std::atomic<long> allocations{0};
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}
// std::stable_sort asks for it; without one here AddressSanitizer's own would be freed by ours.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using tapegraph::argument_error;
using tapegraph::dtype_error;
using namespace tapegraph;

namespace {

data::dataset numbered(std::int64_t n) {
    std::vector<float> x;
    std::vector<std::int32_t> label;
    for (std::int64_t i = 0; i < n; ++i) {
        for (int k = 0; k < 3; ++k) x.push_back(static_cast<float>(10 * i + k));
        label.push_back(static_cast<std::int32_t>(i));
    }
    data::dataset set;
    set.add("x", std::move(x), {3}).add("label", std::move(label));
    return set;
}

/// The labels of one epoch in order; checks that the columns stay together and batches are as large as they should be.
std::vector<std::int32_t> labels_of(data::loader& batches, std::uint64_t epoch) {
    std::vector<std::int32_t> labels;
    std::int64_t index = 0;
    for (const data::batch& b : batches.epoch(epoch)) {
        CHECK(b.index() == index++);
        const auto label = b.values<std::int32_t>("label");
        const auto x = b.values<float>("x");
        REQUIRE(label.size() == static_cast<std::size_t>(b.count()));
        REQUIRE(x.size() == label.size() * 3);
        for (std::size_t i = 0; i < label.size(); ++i)
            for (std::size_t k = 0; k < 3; ++k) REQUIRE(x[3 * i + k] == 10.0f * label[i] + static_cast<float>(k));
        labels.insert(labels.end(), label.begin(), label.end());
    }
    CHECK(index == batches.batches_per_epoch());
    return labels;
}

} // namespace

TEST_CASE("batch: a column as a tensor") {
    data::dataset set;
    set.add("image", std::vector<float>{1, 2, 3, 4, 5, 6}, {1, 2}).add("label", std::vector<std::int32_t>{7, 8, 9});
    data::loader batches(set.batch(2));
    std::vector<float> seen;
    for (const data::batch& b : batches.epoch(0)) {
        const auto image = b.tensor<float>("image");
        CHECK(image.shape() == shape{b.count(), 1, 2});
        CHECK(b.tensor<std::int32_t>("label")(0) == (b.index() == 0 ? 7 : 9));
        for (const float value : image.values()) seen.push_back(value);
        CHECK_THROWS_AS(b.tensor<double>("image"), dtype_error);
        CHECK_THROWS_AS(b.tensor<float>("images"), argument_error);
    }
    CHECK(seen == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("order depends on seed and epoch alone, not on threads, batches or what ran before") {
    const auto set = numbered(23).shuffle(5);
    data::loader reference(set.batch(23));
    const auto first = labels_of(reference, 0), second = labels_of(reference, 1);
    CHECK(first != second);
    for (const std::int64_t depth : {0, 1, 2, 64})
        for (const std::int64_t size : {1, 4, 7, 22, 23, 24, 1000}) {
            data::loader batches(set.batch(size).prefetch(depth));
            CHECK(labels_of(batches, 1) == second);
            CHECK(labels_of(batches, 0) == first);
        }
    auto sorted = first;
    std::sort(sorted.begin(), sorted.end());
    data::loader plain(numbered(23).batch(4).prefetch(2));
    CHECK(labels_of(plain, 9) == sorted);
}

TEST_CASE("the last batch is smaller, or dropped") {
    data::loader kept(numbered(10).batch(4).prefetch(1));
    std::vector<std::int64_t> counts;
    for (const auto& b : kept.epoch(0)) counts.push_back(b.count());
    CHECK(counts == std::vector<std::int64_t>{4, 4, 2});
    data::loader dropped(numbered(10).batch(4, {.drop_remainder = true}).prefetch(1));
    CHECK(labels_of(dropped, 0) == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("a subset is walked through in its own order") {
    const std::vector<std::int64_t> some{7, 1, 4};
    data::loader batches(numbered(10).subset(some).batch(2).prefetch(1));
    CHECK(labels_of(batches, 0) == std::vector<std::int32_t>{7, 1, 4});
    data::loader shuffled(numbered(10).subset(some).shuffle(1).batch(2).prefetch(1));
    const auto labels = labels_of(shuffled, 3);
    CHECK(std::set<std::int32_t>(labels.begin(), labels.end()) == std::set<std::int32_t>{1, 4, 7});
}

TEST_CASE("buffers are made once and aligned") {
    for (const std::int64_t depth : {0, 1, 3}) {
        data::loader batches(numbered(50).shuffle(1).batch(4).prefetch(depth));
        std::set<const std::byte*> places;
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
            for (const auto& b : batches.epoch(epoch)) {
                places.insert(b.data(0));
                REQUIRE(reinterpret_cast<std::uintptr_t>(b.data(0)) % 64 == 0);
                REQUIRE(reinterpret_cast<std::uintptr_t>(b.data(1)) % 64 == 0);
            }
        CHECK(places.size() == static_cast<std::size_t>(depth + 1));
    }
}

TEST_CASE("no step and no epoch allocates") {
    for (const std::int64_t depth : {0, 1, 3}) {
        data::loader batches(numbered(50).shuffle(1).batch(4).prefetch(depth));
        const long before = allocations;
        double sum = 0;
        for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
            for (const auto& b : batches.epoch(epoch)) sum += b.values<float>("x")[0];
        CHECK(allocations == before);
        CHECK(sum > 0);
    }
}

TEST_CASE("the thread runs ahead as far as it may and never overwrites the batch in use") {
    std::atomic<std::int64_t> made{0};
    const auto set = data::dataset::from_generator(100, {{"x", dtype::i64, {}}},
                                                   [&](std::int64_t record, const data::record_writer& out) {
                                                       out.values<std::int64_t>(0)[0] = record;
                                                       ++made;
                                                   });
    data::loader batches(set.batch(10).prefetch(2));
    batches.begin_epoch(0);
    const auto* first = batches.next();
    while (made < 30) std::this_thread::yield(); // the one in use and two ahead
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(made == 30);
    for (std::int64_t i = 0; i < 10; ++i) CHECK(first->values<std::int64_t>("x")[static_cast<std::size_t>(i)] == i);
    std::int64_t sum = 0;
    for (const auto* b = first; b != nullptr; b = batches.next())
        for (const auto value : b->values<std::int64_t>(0)) sum += value;
    CHECK(sum == 4950);
    CHECK(batches.next() == nullptr); // the end stays the end
}

TEST_CASE("an epoch left early ends cleanly") {
    for (const std::int64_t depth : {0, 1, 4}) {
        const auto set = numbered(1000).shuffle(2).batch(3).prefetch(depth);
        { data::loader never_started(set); }
        {
            data::loader batches(set);
            batches.begin_epoch(0); // destroyed while the thread is at work
        }
        data::loader batches(set);
        for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
            batches.begin_epoch(epoch);
            for (std::uint64_t i = 0; i < epoch; ++i) REQUIRE(batches.next() != nullptr);
        }
        data::loader whole(numbered(1000).shuffle(2).batch(1000));
        CHECK(labels_of(batches, 4) == labels_of(whole, 4));
    }
}

TEST_CASE("what the source throws reaches the consumer, after the batches before it") {
    for (const std::int64_t depth : {0, 1, 8}) {
        std::atomic<bool> broken{true};
        const auto set = data::dataset::from_generator(20, {{"x", dtype::f32, {}}},
                                                       [&](std::int64_t record, const data::record_writer& out) {
                                                           if (broken && record == 13)
                                                               throw std::runtime_error("record 13 is broken");
                                                           out.values<float>("x")[0] = 1;
                                                       });
        data::loader batches(set.batch(4).prefetch(depth));
        batches.begin_epoch(0);
        for (int i = 0; i < 3; ++i) REQUIRE(batches.next() != nullptr);
        for (int again = 0; again < 2; ++again)
            CHECK(support::message_of<std::runtime_error>([&] { batches.next(); }) == "record 13 is broken");
        broken = false;
        std::int64_t count = 0;
        for (const auto& b : batches.epoch(1)) count += b.count();
        CHECK(count == 20);
    }
}

TEST_CASE("the time spent waiting is measured") {
    const auto slow =
        data::dataset::from_generator(3, {{"x", dtype::f32, {}}}, [](std::int64_t, const data::record_writer&) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        });
    for (const std::int64_t depth : {0, 1}) {
        data::loader batches(slow.batch(1).prefetch(depth));
        for (const auto& b : batches.epoch(0)) (void)b;
        CHECK(batches.wait_seconds() >= 0.005); // the first batch at least cannot be ready
        batches.begin_epoch(1);
        CHECK(batches.wait_seconds() == 0);
    }
}

TEST_CASE("sets that cannot be walked through are refused") {
    const auto message = [](const data::dataset& set) {
        return support::message_of<argument_error>([&] { data::loader batches(set); });
    };
    CHECK(message(numbered(3)) == "data set: no batch size; call batch(n)");
    CHECK(message(numbered(0).batch(1)) == "data set: no records in column 'x'");
    CHECK(message(data::dataset().batch(1)) == "data set: no columns");
    CHECK(message(numbered(3).batch(4, {.drop_remainder = true})) ==
          "data set: 3 records make no full batch of 4, and the remainder is dropped");
    for (const std::int64_t depth : {0, 1}) {
        data::loader batches(numbered(3).batch(2).prefetch(depth));
        CHECK_THROWS_AS(batches.next(), argument_error);
        batches.begin_epoch(0);
        const auto* b = batches.next();
        CHECK_THROWS_AS((void)b->values<double>("x"), dtype_error);
        CHECK_THROWS_AS((void)b->values<float>("y"), argument_error);
        CHECK_THROWS_AS((void)b->values<float>(2), argument_error);
    }
}
