#include <tapegraph/distributed.hpp>

#include <cstring>
#include <doctest/doctest.h>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace tree_sum_test {

// Values whose sums depend on their order: of many magnitudes, from a hash of shard and place.
template <class T>
T value(std::size_t shard, std::size_t i) {
    std::uint64_t x = (shard + 1) * 0x9E3779B97F4A7C15u ^ (i + 7) * 0xC2B2AE3D27D4EB4Fu;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
    return static_cast<T>(static_cast<float>(static_cast<std::int64_t>(x % 2000001) - 1000000) * (x % 3 == 0   ? 1e-3f
                                                                                                  : x % 3 == 1 ? 1.0f
                                                                                                               : 1e4f));
}
template <class T>
std::vector<T> shard_values(std::size_t shard, std::size_t count) {
    std::vector<T> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = value<T>(shard, i);
    return result;
}

// The reference: a recursion over shards.
template <class T>
T tree(std::size_t first, std::size_t shards, std::size_t i) {
    if (shards == 1) return value<T>(first, i);
    const T left = tree<T>(first, shards / 2, i), right = tree<T>(first + shards / 2, shards / 2, i);
    if constexpr (tg::storage_type<T>)
        return static_cast<T>(static_cast<float>(left) + static_cast<float>(right));
    else
        return left + right;
}
template <class T>
std::vector<T> reference(std::size_t shards, std::size_t count) {
    std::vector<T> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = tree<T>(0, shards, i);
    return result;
}
template <class T>
bool same_bits(const std::vector<T>& a, const T* b) {
    return a.empty() || std::memcmp(a.data(), b, a.size() * sizeof(T)) == 0;
}

template <class T>
void check_sum(int ranks, std::size_t shards, std::size_t count) {
    const std::vector<T> expected = reference<T>(shards, count);
    td::run_ranks(ranks, [&](td::exchange& mine) {
        const auto each = shards / static_cast<std::size_t>(ranks);
        td::tree_sum sum(mine, count, td::sum_of<T>, "bucket 0");
        for (int turn = 0; turn < 2; ++turn) { // the second is no other
            td::tree_accumulator<T> folded(count, static_cast<std::int64_t>(each));
            for (std::size_t s = 0; s < each; ++s)
                folded.add(shard_values<T>(static_cast<std::size_t>(mine.rank()) * each + s, count).data());
            sum.start_all_reduce(folded.sum());
            sum.wait();
            REQUIRE(same_bits(expected, folded.sum()));
        }
    });
}

TEST_CASE("the sum over shards has the same bits for any number of ranks") {
    for (const int ranks : {1, 2, 4, 8})
        for (const std::size_t count : {0u, 1u, 5u, 16u, 17u, 1021u, 4099u}) {
            CAPTURE(ranks);
            CAPTURE(count);
            check_sum<float>(ranks, 8, count);
        }
    for (const int ranks : {2, 8}) {
        check_sum<double>(ranks, 16, 1021);
        check_sum<tg::bfloat16>(ranks, 8, 1021);
    }
}

TEST_CASE("the order of the tree matters to these values, or the test above could not fail") {
    const std::vector<float> expected = reference<float>(8, 1021);
    std::vector<float> running = shard_values<float>(0, 1021);
    for (std::size_t s = 1; s < 8; ++s)
        for (std::size_t i = 0; i < running.size(); ++i) running[i] += value<float>(s, i);
    CHECK_FALSE(same_bits(expected, running.data()));
}

TEST_CASE("16-bit values are summed as float where the partial sums are") {
    td::tree_accumulator<float> folded(3, 4);
    CHECK(folded.partial_sums() == 2);
    for (std::size_t s = 0; s < 4; ++s) {
        std::vector<tg::bfloat16> values;
        for (std::size_t i = 0; i < 3; ++i) values.push_back(value<tg::bfloat16>(s, i));
        folded.add(values.data());
    }
    for (std::size_t i = 0; i < 3; ++i) {
        const auto v = [&](std::size_t s) { return static_cast<float>(value<tg::bfloat16>(s, i)); };
        CHECK(folded.sum()[i] == (v(0) + v(1)) + (v(2) + v(3)));
    }
}

TEST_CASE("a reduce-scatter leaves each rank its slice, and an all-gather gives all of them to all") {
    for (const std::size_t count : {3u, 40u, 1021u}) {
        const std::vector<float> expected = reference<float>(4, count);
        td::run_ranks(4, [&](td::exchange& mine) {
            std::vector<float> data = shard_values<float>(static_cast<std::size_t>(mine.rank()), count);
            td::tree_sum sum(mine, count, td::sum_of<float>, "bucket 1");
            sum.start_reduce_scatter(data.data());
            sum.wait();
            const td::slice own = sum.own();
            REQUIRE(std::memcmp(data.data() + own.begin, expected.data() + own.begin, own.size() * sizeof(float)) == 0);
            for (std::size_t i = 0; i < count; ++i)
                if (i < own.begin || i >= own.end) data[i] = -1;
            sum.start_all_gather(data.data());
            sum.wait();
            REQUIRE(same_bits(expected, data.data()));
        });
        // The slices cover the vector once.
        std::vector<int> covered(count);
        for (int rank = 0; rank < 4; ++rank)
            for (std::size_t i = td::slice_of(count, rank, 4).begin; i < td::slice_of(count, rank, 4).end; ++i)
                ++covered[i];
        CHECK(covered == std::vector<int>(count, 1));
    }
}

TEST_CASE("several sums are under way at a time, and progress drives them all") {
    const std::vector<float> first = reference<float>(4, 1000), second = reference<float>(4, 2000);
    td::run_ranks(4, [&](td::exchange& mine) {
        const auto r = static_cast<std::size_t>(mine.rank());
        std::vector<float> a = shard_values<float>(r, 1000), b = shard_values<float>(r, 2000);
        td::tree_sum one(mine, a.size(), td::sum_of<float>, "bucket 0"),
            other(mine, b.size(), td::sum_of<float>, "bucket 1");
        for (int turn = 0; turn < 3; ++turn) {
            a = shard_values<float>(r, 1000);
            b = shard_values<float>(r, 2000);
            one.start_all_reduce(a.data());
            other.start_all_reduce(b.data());
            while (!one.done() || !other.done()) mine.progress();
            REQUIRE(same_bits(first, a.data()));
            REQUIRE(same_bits(second, b.data()));
        }
    });
}

TEST_CASE("numbers of ranks and shards that make no tree") {
    CHECK_THROWS_WITH_AS(td::require_tree(1, 6), "shards: 6 is not a power of two", tg::argument_error);
    CHECK_THROWS_WITH_AS(td::require_tree(1, 0), "shards: 0 is not a power of two", tg::argument_error);
    CHECK_THROWS_WITH_AS(td::require_tree(3, 8),
                         "shards: 3 ranks cannot share 8 shards; expected a power of two from 1 to 8",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(td::require_tree(16, 8),
                         "shards: 16 ranks cannot share 8 shards; expected a power of two from 1 to 8",
                         tg::argument_error);
    td::tree_accumulator<float> folded(1, 2);
    const float x = 1;
    folded.add(&x);
    CHECK_THROWS_WITH_AS(folded.sum(), "tree_accumulator: got 1 of its 2 shards", tg::argument_error);
    folded.add(&x);
    CHECK(*folded.sum() == 2);
    CHECK_THROWS_WITH_AS(folded.add(&x), "tree_accumulator: got more than its 2 shards", tg::argument_error);
}

} // namespace tree_sum_test
