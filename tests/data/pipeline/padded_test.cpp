#include <data/pipeline/collected.hpp>

#include <tapegraph/tapegraph.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <tuple>
#include <vector>

namespace padded_test {

using namespace pipeline_test;

namespace {

/// Lengths around none, one and a prime.
std::int64_t length_of(std::int64_t i) { return i * i % 8; }

/// (vector, matrix, array, number, text) of element i.
auto uneven(std::int64_t count, int threads, bool deterministic = true) {
    return data::range(count).map(
        [](std::int64_t i) {
            return std::tuple(std::vector<float>(static_cast<std::size_t>(length_of(i)), static_cast<float>(i)),
                              tg::full<std::int32_t>({i % 3 + 1, 4 - i % 3}, static_cast<int>(i)),
                              std::array<double, 2>{double(i), -1}, i % 2 == 0, std::to_string(i));
        },
        {.threads = threads, .deterministic = deterministic});
}

/// All numbers of all batches, and their extents.
template <class Set>
std::vector<double> flat(const Set& set) {
    std::vector<double> all;
    const auto add = [&](const auto& t) {
        for (int a = 0; a < t.rank(); ++a) all.push_back(static_cast<double>(t.shape()[a].value));
        for (const auto v : t.to_vector()) all.push_back(static_cast<double>(v));
    };
    for (auto& [v, m, a, b, text] : set.epoch(0)) {
        add(v), add(m), add(a), add(b);
        for (const std::string& t : text) all.push_back(std::stod(t));
    }
    return all;
}

/// By loops: padding -1, 7, 0, and whatever the largest extents are.
std::vector<double> expected(std::int64_t count, std::int64_t rows, bool given) {
    std::vector<double> all;
    for (std::int64_t first = 0; first < count; first += rows) {
        const std::int64_t n = std::min(rows, count - first);
        std::int64_t longest = given ? 9 : 0, high = given ? 3 : 0, wide = given ? 5 : 0;
        for (std::int64_t i = first; i < first + n && !given; ++i) {
            longest = std::max(longest, length_of(i));
            high = std::max(high, i % 3 + 1);
            wide = std::max(wide, 4 - i % 3);
        }
        const auto add = [&](std::int64_t v) { all.push_back(static_cast<double>(v)); };
        add(n), add(longest);
        for (std::int64_t i = first; i < first + n; ++i)
            for (std::int64_t k = 0; k < longest; ++k) add(k < length_of(i) ? i : -1);
        add(n), add(high), add(wide);
        for (std::int64_t i = first; i < first + n; ++i)
            for (std::int64_t y = 0; y < high; ++y)
                for (std::int64_t x = 0; x < wide; ++x) add(y < i % 3 + 1 && x < 4 - i % 3 ? i : 7);
        add(n), add(2);
        for (std::int64_t i = first; i < first + n; ++i) add(i), add(-1);
        add(n);
        for (std::int64_t i = first; i < first + n; ++i) add(i % 2 == 0);
        for (std::int64_t i = first; i < first + n; ++i) add(i);
    }
    return all;
}

} // namespace

TEST_CASE("padded batches by any number of threads, shapes given or not, full or not") {
    const data::padded_options open{.padding = {-1, 7}, .record_shapes = {}},
        given{.padding = {-1, 7}, .record_shapes = {{9}, {3, 5}, {}, {}, {}}},
        in_part{.padding = {-1, 7}, .record_shapes = {{0}, {0, 0}, {}, {}, {}}};
    for (const std::int64_t count : {1, 31, 40})
        for (const std::int64_t rows : {1, 8, 64})
            for (const int threads : {0, 1, 3}) {
                const auto set = uneven(count, threads);
                CHECK(flat(set.padded_batch(rows, open)) == expected(count, rows, false));
                CHECK(flat(set.padded_batch(rows, in_part).prefetch(2)) == expected(count, rows, false));
                CHECK(flat(set.padded_batch(rows, given).prefetch(2)) == expected(count, rows, true));
            }
    CHECK(flat(uneven(0, 2).padded_batch(4, given)).empty());
    // Through another stage, which is given whole batches, and in free order.
    const auto same = [](const auto&... fields) { return std::tuple(fields...); };
    CHECK(flat(uneven(31, 2).padded_batch(8, given).map(same)) == expected(31, 8, true));
    CHECK(flat(uneven(31, 2).padded_batch(8, open).map(same)) == expected(31, 8, false));
    std::vector<double> free = flat(uneven(40, 3, false).padded_batch(40, given)), all = expected(40, 40, true);
    std::sort(free.begin(), free.end());
    std::sort(all.begin(), all.end());
    CHECK(free == all);
    CHECK(flat(uneven(31, 2).padded_batch(8, {.padding = {-1, 7}, .drop_remainder = true})) == expected(24, 8, false));
}

TEST_CASE("with its shape given a padded batch is written where it will stand, in the ring and nothing else") {
    constexpr std::int64_t rows = 16, length = 256, records = 1600;
    std::vector<std::atomic<const float*>> written(records);
    const auto set = data::range(records)
                         .map(
                             [&](std::int64_t i) {
                                 return data::written<float>({i % length + 1}, [&written, i](std::span<float> to) {
                                     written[static_cast<std::size_t>(i)] = to.data();
                                     std::fill(to.begin(), to.end(), static_cast<float>(i));
                                 });
                             },
                             {.threads = 3})
                         .padded_batch(rows, {.record_shapes = {{length}}})
                         .prefetch(3);
    const std::int64_t ring = 4 * rows * length * static_cast<std::int64_t>(sizeof(float));
    CHECK(set.memory_bytes() >= ring); // known before anything is made
    CHECK(written[0] == nullptr);
    CHECK(set.memory_bytes() < ring + 4 * rows * 200); // with the tickets
    const std::int64_t before = tg::eager_memory().in_use;
    std::int64_t most = 0, first = 0;
    std::set<const float*> buffers;
    bool there = true, padded = true;
    for (auto& batch : set.epoch(0)) {
        most = std::max(most, tg::eager_memory().in_use - before);
        buffers.insert(batch.data());
        for (std::int64_t r = 0; r < rows; ++r, ++first) {
            const float* const row = batch.data() + r * length;
            there = there && written[static_cast<std::size_t>(first)] == row;
            for (std::int64_t k = 0; k < length; ++k)
                padded = padded && row[k] == (k <= first % length ? static_cast<float>(first) : 0);
        }
    }
    CHECK(there);
    CHECK(padded);
    CHECK(buffers.size() <= 4);
    CHECK(most <= ring + ring / 4 + 4096); // buffers come in sizes of at most a quarter more
    CHECK(tg::eager_memory().in_use == before);
    // A batch that somebody keeps is not written again.
    std::vector<tg::tensor<float>> kept;
    for (auto& batch : set.epoch(0)) kept.push_back(batch);
    CHECK(kept[0](3, 3) == 3);
    CHECK(kept[99](rows - 1, 0) == records - 1);
}

TEST_CASE("records that do not fit are named, wherever that is found") {
    const auto set = data::range(9).map(
        [](std::int64_t i) { return std::vector<int>(static_cast<std::size_t>(i == 7 ? 5 : 2)); }, {.threads = 2});
    CHECK_THROWS_WITH_AS(elements_of(set.padded_batch(4, {.record_shapes = {{4}}}).prefetch(2)),
                         "data pipeline: epoch 0, element 7 (range record 7): padded_batch: column 0 has a record of "
                         "shape [5], to be padded to [4]",
                         data::record_error);
    const auto ranks = data::range(9).map([](std::int64_t i) {
        return i == 6 ? tg::zeros<float>({2}) : tg::zeros<float>({1, 1});
    });
    CHECK_THROWS_WITH_AS(elements_of(ranks.padded_batch(4).prefetch(2)),
                         "data pipeline: epoch 0, element 4 (batch from range record 4 on): padded_batch: column 0 has "
                         "records of shapes [1,1] and [2], of different rank",
                         data::record_error);
    CHECK_THROWS_WITH_AS(elements_of(ranks.padded_batch(4, {.record_shapes = {{2, 0}}})),
                         "data pipeline: epoch 0, element 4 (batch from range record 4 on): padded_batch: column 0 has "
                         "records of shapes [1,1] and [2], of different rank",
                         data::record_error);
    // Batches before the one that fails are given.
    auto walk = ranks.padded_batch(4).prefetch(2);
    auto it = walk.iterator();
    CHECK(it.next().has_value());
    CHECK_THROWS_AS(it.next(), data::record_error);
}

TEST_CASE("a position of padded batches, and fit's data set of them") {
    const auto set = uneven(40, 2).padded_batch(8, {.record_shapes = {{9}, {3, 5}, {}, {}, {}}}).prefetch(2);
    auto walk = set.iterator();
    walk.next(), walk.next();
    auto other = set.iterator();
    other.restore(walk.position());
    CHECK(std::get<0>(*other.next()).to_vector() == std::get<0>(*walk.next()).to_vector());
    CHECK(set.size() == 5);
}

} // namespace padded_test
