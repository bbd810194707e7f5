#include <tapegraph/distributed.hpp>

#include <cstring>
#include <doctest/doctest.h>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace imitated_network_test {

double largest(const std::vector<double>& of) { return *std::max_element(of.begin(), of.end()); }

TEST_CASE("a sum takes the predicted time: 2 log2 W latencies, 2 (W - 1) / W of the bytes") {
    constexpr std::size_t count = 1 << 18; // 1 MiB
    for (const int ranks : {2, 4, 8}) {
        std::vector<double> ended(static_cast<std::size_t>(ranks));
        const td::imitated_link link{.bits_per_second = 1e9, .latency = 1e-4};
        td::run_on_network(ranks, link, [&](td::imitated_exchange& mine) {
            std::vector<float> data(count, 1.0f);
            td::tree_sum sum(mine, count, td::sum_of<float>, "bucket 0");
            sum.start_all_reduce(data.data());
            sum.wait();
            REQUIRE(data[count - 1] == static_cast<float>(ranks));
            ended[static_cast<std::size_t>(mine.rank())] = mine.now();
            CHECK(mine.waited() <= mine.now());
        });
        const int rounds = ranks == 2 ? 1 : ranks == 4 ? 2 : 3;
        const double formula = 2 * rounds * 1e-4 + 2.0 * (ranks - 1) / ranks * count * 4 * 8 / 1e9;
        CHECK(largest(ended) >= formula);
        CHECK(largest(ended) < formula + 50e-6); // some hundred looks of 100 ns
    }
}

TEST_CASE("messages that come late and in another order change no bit, and times are the same each time") {
    std::vector<float> expected;
    std::vector<double> times;
    for (const std::uint64_t seed : {0u, 0u, 1u, 2u, 3u}) {
        std::vector<float> result;
        double end = 0;
        const td::imitated_link link{.jitter = seed == 0 ? 0.0 : 2e-3, .seed = seed};
        td::run_on_network(4, link, [&](td::imitated_exchange& mine) {
            std::vector<std::vector<float>> data(5);
            std::vector<std::unique_ptr<td::tree_sum>> sums;
            for (std::size_t b = 0; b < data.size(); ++b) {
                for (std::size_t i = 0; i < 1000 + 100 * b; ++i)
                    data[b].push_back(
                        1e-3f * static_cast<float>(
                                    (i * 7919 + b * 31 + static_cast<std::size_t>(mine.rank()) * 104729) % 65521));
                sums.push_back(std::make_unique<td::tree_sum>(mine, data[b].size(), td::sum_of<float>, "bucket"));
            }
            for (std::size_t b = 0; b < data.size(); ++b) {
                sums[b]->start_all_reduce(data[b].data());
                mine.compute(1e-4 * (1 + mine.rank()), 2e-5);
            }
            for (const auto& each : sums) each->wait();
            if (mine.rank() == 3) {
                for (const auto& each : data) result.insert(result.end(), each.begin(), each.end());
                end = mine.now();
            }
        });
        if (expected.empty()) expected = result;
        CHECK(result == expected);
        times.push_back(end);
    }
    CHECK(times[0] == times[1]);
    CHECK(times[2] != times[3]);
    CHECK(times[2] > times[0]);
}

// A step of the batch study's CNN, 8 ranks of batch 16, 117 ms: which gradients are ready at which part of it (the cost model on its
// schedule, filter gradients first), and the seconds that it waits at its end.
// Large ones in pieces, so that one piece moves while another waits for the next look at the network.
double exposed(double bits_per_second, bool early, std::size_t piece = 1 << 18) {
    std::vector<double> waited(8);
    td::run_on_network(8, {.bits_per_second = bits_per_second}, [&](td::imitated_exchange& mine) {
        constexpr double step = 0.117, ready[] = {0.35, 0.62, 0.98};
        const std::size_t counts[] = {540'000, 1'125'000, 2'400};
        std::vector<std::vector<float>> gradients;
        std::vector<std::vector<std::unique_ptr<td::tree_sum>>> sums(3);
        for (std::size_t b = 0; b < 3; ++b) {
            gradients.emplace_back(counts[b], 1.0f);
            for (std::size_t first = 0; first < counts[b]; first += piece)
                sums[b].push_back(std::make_unique<td::tree_sum>(mine, std::min(piece, counts[b] - first),
                                                                 td::sum_of<float>, "bucket"));
        }
        const auto start = [&](std::size_t b) {
            for (std::size_t p = 0; p < sums[b].size(); ++p)
                sums[b][p]->start_all_reduce(gradients[b].data() + p * piece);
        };
        for (std::size_t b = 0; b < 3; ++b) {
            mine.compute(step * (ready[b] - (b == 0 ? 0 : ready[b - 1])));
            if (early) start(b);
        }
        mine.compute(step * 0.02);
        for (std::size_t b = 0; b < 3; ++b) {
            if (!early) start(b);
            for (const auto& each : sums[b]) each->wait();
        }
        CHECK(gradients[1].back() == 8);
        waited[static_cast<std::size_t>(mine.rank())] = mine.waited() / step;
    });
    return largest(waited);
}

TEST_CASE("what of the CNN's communication is exposed") {
    CHECK(exposed(10e9, false) > 0.07); // after the backward pass: 8 % and 80 %
    CHECK(exposed(1e9, false) > 0.75);
    CHECK(exposed(10e9, true) < 0.01);
    CHECK(exposed(1e9, true) < 0.20);
    CHECK(exposed(1e9, true, 1 << 21) > exposed(1e9, true)); // in one piece
}

TEST_CASE("ten minutes of silence pass at once") {
    std::string what;
    td::run_on_network(2, {}, [&](td::imitated_exchange& mine) {
        if (mine.rank() == 1) return;
        mine.set_step(41);
        try {
            td::barrier(mine);
        } catch (const tg::exchange_error& e) {
            what = e.what();
        }
        CHECK(mine.now() == doctest::Approx(mine.deadline()));
    });
    CHECK(what == "exchange: rank 0 waited 600.0 s for rank 1 in step 41, barrier (0 bytes to send, 1 to receive)");
}

TEST_CASE("messages of a barrier that is given up never arrive") {
    int late = 0;
    td::run_on_network(2, {}, [&](td::imitated_exchange& mine) {
        if (mine.rank() == 1) mine.compute(2 * mine.deadline()); // rank 0 has gone on by then
        try {
            td::barrier(mine);
        } catch (const tg::exchange_error&) {
            ++late;
        }
    });
    CHECK(late == 2);
}

TEST_CASE("a rank that ends by an exception ends the others; links that are none") {
    CHECK_THROWS_WITH_AS(td::run_on_network(3, {},
                                            [](td::imitated_exchange& mine) {
                                                if (mine.rank() == 1) throw tg::data_error("'train.csv' is missing");
                                                td::barrier(mine);
                                            }),
                         "'train.csv' is missing", tg::data_error);
    CHECK_THROWS_AS(td::imitated_network(2, {.bits_per_second = 0}), tg::argument_error);
    CHECK_THROWS_AS(td::imitated_network(0, {}), tg::argument_error);
}

} // namespace imitated_network_test
