#include <tapegraph/distributed.hpp>

#include <doctest/doctest.h>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace agreement_test {

// The error message of every rank, given the fields of the one that differs.
std::vector<std::string> messages(int ranks, int other, const std::vector<td::agreed_field>& usual,
                                  const std::vector<td::agreed_field>& its) {
    std::vector<std::string> result(static_cast<std::size_t>(ranks));
    td::run_ranks(ranks, [&](td::exchange& mine) {
        try {
            td::agree(mine, mine.rank() == other ? its : usual);
        } catch (const tg::exchange_error& e) {
            result[static_cast<std::size_t>(mine.rank())] = e.what();
        }
    });
    return result;
}

TEST_CASE("ranks that agree continue; otherwise every rank's error names the one that differs") {
    const std::vector<td::agreed_field> usual{{"schedule", 0xABC}, td::agreed_value("shards", "8"), {"weights", 7}};
    CHECK(messages(4, 2, usual, usual) == std::vector<std::string>(4));
    CHECK(messages(1, 0, usual, usual) == std::vector<std::string>(1));
    const auto all = [](const char* what) { return std::vector<std::string>(4, what); };
    CHECK(messages(4, 2, usual, {{"schedule", 0xABC}, td::agreed_value("shards", "4"), {"weights", 7}}) ==
          all("ranks do not agree: rank 2 has shards 4, rank 0 has 8"));
    CHECK(messages(4, 3, usual, {{"schedule", 0xABD}, td::agreed_value("shards", "8"), {"weights", 7}}) ==
          all("ranks do not agree: rank 3 has schedule 0xabd, rank 0 has 0xabc"));
    CHECK(messages(4, 1, usual, {{"schedule", 0xABC}, td::agreed_value("shards", "8")}) ==
          all("ranks do not agree: rank 1 compares less than rank 0"));
    CHECK(messages(4, 1, usual, {{"schedule", 0xABC}, {"seed", 1}, {"weights", 7}}) ==
          all("ranks do not agree: rank 1 compares seed, rank 0 shards"));
    // Rank 0 is as good as any other.
    CHECK(messages(4, 0, usual, {{"schedule", 1}}) ==
          all("ranks do not agree: rank 1 has schedule 0xabc, rank 0 has 0x1"));
}

TEST_CASE("hashes depend on values, their order and their number") {
    std::vector<float> values(1001);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto hash = [](const std::vector<float>& of) { return td::hash_values(std::as_bytes(std::span(of))); };
    const std::uint64_t first = hash(values);
    CHECK(first == hash(values));
    for (const std::size_t i : {0u, 7u, 500u, 1000u}) {
        std::vector<float> other = values;
        other[i] = -1;
        CHECK(hash(other) != first);
    }
    std::vector<float> swapped = values;
    std::swap(swapped[3], swapped[11]); // the same lane
    CHECK(hash(swapped) != first);
    swapped = values;
    swapped.pop_back();
    CHECK(hash(swapped) != first);
    CHECK(td::hash_text("") == 0xCBF29CE484222325u);
    CHECK(td::hash_text("a") == 0xAF63DC4C8601EC8Cu); // the tables of FNV-1a
}

} // namespace agreement_test
