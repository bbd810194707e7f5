#include <tapegraph/distributed.hpp>

#include <cstring>
#include <doctest/doctest.h>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace collectives_test {

TEST_CASE("blocks of any size are gathered in order of ranks, by any number of ranks") {
    for (const int ranks : {1, 2, 3, 4, 7})
        td::run_ranks(ranks, [&](td::exchange& mine) {
            td::block_gather gather(mine, "rows of 'words'");
            for (int turn = 0; turn < 3; ++turn) {
                // Rank r brings r + turn numbers: none, too.
                std::vector<int> own(static_cast<std::size_t>((mine.rank() + turn) % ranks), 10 * turn + mine.rank());
                gather.start(std::as_bytes(std::span(own)));
                gather.wait();
                std::vector<int> expected;
                for (int r = 0; r < ranks; ++r)
                    expected.insert(expected.end(), static_cast<std::size_t>((r + turn) % ranks), 10 * turn + r);
                const auto all = gather.blocks();
                REQUIRE(all.size() == expected.size() * sizeof(int));
                REQUIRE((expected.empty() || std::memcmp(all.data(), expected.data(), all.size()) == 0));
                REQUIRE(gather.block(mine.rank()).size() == own.size() * sizeof(int));
            }
        });
}

TEST_CASE("a broadcast reaches every rank from any") {
    for (const int ranks : {1, 2, 3, 5, 8})
        for (const int root : {0, ranks - 1, ranks / 2})
            td::run_ranks(ranks, [&](td::exchange& mine) {
                double value = mine.rank() == root ? 3.5 : 0;
                td::broadcast(mine, root, std::as_writable_bytes(std::span(&value, 1)));
                td::barrier(mine);
                REQUIRE(value == 3.5);
            });
}

TEST_CASE("no rank passes a barrier before the last has reached it") {
    for (const int ranks : {1, 2, 3, 6}) {
        std::atomic<int> came{0};
        td::run_ranks(ranks, [&](td::exchange& mine) {
            for (int turn = 1; turn <= 5; ++turn) {
                ++came;
                td::barrier(mine);
                REQUIRE(came.load() >= turn * ranks);
            }
        });
    }
}

TEST_CASE("sums of metrics in double") {
    td::run_ranks(4, [](td::exchange& mine) {
        std::vector<double> values{1.0 + mine.rank(), 0.5};
        td::sum_over_ranks(mine, std::span(values));
        REQUIRE(values == std::vector<double>{10, 2});
    });
}

TEST_CASE("a silent peer is an error that names rank, peer, step and what is waited for") {
    td::thread_group group(2);
    td::exchange& mine = group.rank(0);
    mine.set_deadline(0.02);
    mine.set_step(12);
    std::vector<float> data(1000);
    td::tree_sum sum(mine, data.size(), td::sum_of<float>, "bucket 2 (conv2/kernel)");
    sum.start_all_reduce(data.data());
    std::string what;
    try {
        sum.wait();
    } catch (const tg::exchange_error& e) {
        what = e.what();
    }
    CHECK(what.starts_with(
        "exchange: rank 0 waited 0.0 s for rank 1 in step 12, bucket 2 (conv2/kernel), reduce-scatter round 1 of 1 "
        "(1952 bytes to send, 2048 to receive)"));
    CHECK_THROWS_WITH_AS(mine.set_deadline(0), "exchange: a deadline of 0 s; expected more than 0", tg::argument_error);
}

TEST_CASE("a rank that ends by an exception ends the others, and its own is what is reported") {
    const auto job = [](td::exchange& mine) {
        if (mine.rank() == 2) throw tg::data_error("'train.csv' is missing");
        try {
            td::barrier(mine);
        } catch (const tg::exchange_error& e) {
            REQUIRE(std::string(e.what()) == "exchange: rank 2 ended: 'train.csv' is missing");
            throw;
        }
        FAIL("passed a barrier that a rank never came to");
    };
    CHECK_THROWS_WITH_AS(td::run_ranks(4, job), "'train.csv' is missing", tg::data_error);
}

TEST_CASE("messages of different lengths, and peers that do not exist") {
    CHECK_THROWS_WITH_AS(td::run_ranks(2,
                                       [](td::exchange& mine) {
                                           std::vector<float> data(mine.rank() == 0 ? 600 : 620);
                                           td::sum_over_ranks(mine, std::span(data));
                                       }),
                         doctest::Contains("expects"), tg::exchange_error);
    td::thread_group group(2);
    CHECK_THROWS_WITH_AS(group.rank(1).start(1, {}, {}, 0, "x"), "exchange: rank 1 has no peer 1 among 2 ranks",
                         tg::range_error);
    CHECK_THROWS_WITH_AS(group.rank(1).start(2, {}, {}, 0, "x"), "exchange: rank 1 has no peer 2 among 2 ranks",
                         tg::range_error);
    CHECK_THROWS_WITH_AS(td::thread_group(0), "thread_group: 0 ranks; expected at least 1", tg::argument_error);
}

} // namespace collectives_test
