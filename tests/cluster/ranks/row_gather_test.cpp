#include <tapegraph/distributed.hpp>

#include <doctest/doctest.h>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace row_gather_test {

// Shard s has s % 3 rows of two elements, whose indices meet those of other shards.
void append_shard(std::size_t shard, std::vector<std::int64_t>& indices, std::vector<float>& rows) {
    for (std::size_t k = 0; k < shard % 3; ++k) {
        indices.push_back(static_cast<std::int64_t>((shard + 5 * k) % 4));
        rows.push_back(static_cast<float>(shard) + 0.1f);
        rows.push_back(1e6f / static_cast<float>(shard + k));
    }
}

TEST_CASE("rows come in order of shards, whatever the number of ranks") {
    std::vector<std::int64_t> indices;
    std::vector<float> rows;
    for (std::size_t s = 0; s < 8; ++s) append_shard(s, indices, rows);
    for (const int ranks : {1, 2, 4, 8})
        td::run_ranks(ranks, [&](td::exchange& mine) {
            td::row_gather<float> gather(mine, 2, "rows of 'words/table'");
            const std::size_t each = 8 / static_cast<std::size_t>(ranks),
                              first = each * static_cast<std::size_t>(mine.rank());
            for (int turn = 0; turn < 2; ++turn) {
                std::vector<std::int64_t> own_indices;
                std::vector<float> own_rows;
                for (std::size_t s = first; s < first + each; ++s) append_shard(s, own_indices, own_rows);
                gather.start(own_indices, own_rows);
                gather.wait();
                REQUIRE(gather.done());
                REQUIRE(std::vector<std::int64_t>(gather.indices().begin(), gather.indices().end()) == indices);
                REQUIRE(std::vector<float>(gather.rows().begin(), gather.rows().end()) == rows);
            }
        });
}

TEST_CASE("no rows at all, and rows that are not as wide") {
    td::run_ranks(2, [](td::exchange& mine) {
        td::row_gather<double> gather(mine, 3, "rows");
        gather.start({}, {});
        gather.wait();
        REQUIRE(gather.indices().empty());
        REQUIRE(gather.rows().empty());
        const std::int64_t index = 0;
        const double row[2] = {};
        REQUIRE_THROWS_WITH_AS(gather.start({&index, 1}, row), "row_gather: 2 elements for 1 rows of 3",
                               tg::shape_error);
    });
}

} // namespace row_gather_test
