#include <data/pipeline/collected.hpp>
#include <tapegraph/data/pipeline/cache_file.hpp>

#include <support/temporary_folder.hpp>

#include <array>
#include <tuple>

namespace pipeline_cache_file_test {

using namespace pipeline_test;

namespace {

struct record {
    std::vector<float> x;
    std::string name;
    tg::tensor<std::int32_t> t;
    std::array<double, 2> pair;
    bool good = false;
    std::vector<std::string> words;
};
record record_of(std::int64_t i) {
    const auto n = static_cast<std::size_t>(i);
    return {std::vector<float>(n, 0.5f),
            std::to_string(i),
            tg::full<std::int32_t>({i, 2}, static_cast<std::int32_t>(i)),
            {1.0 * static_cast<double>(i), -1},
            i % 2 == 1,
            std::vector<std::string>(n, "w")};
}
bool same(const record& a, const record& b) {
    return a.x == b.x && a.name == b.name && a.t.shape() == b.t.shape() && a.t.to_vector() == b.t.to_vector() &&
           a.pair == b.pair && a.good == b.good && a.words == b.words;
}

} // namespace

TEST_CASE("a cache in a file outlives the set that made it") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "made.cache";
    int made = 0;
    const auto set = [&] {
        return data::range(7).map([&](std::int64_t i) { return ++made, record_of(i); }).cache(data::in_file{path});
    };
    CHECK(elements_of(set().take(3)).size() == 3);
    CHECK(std::filesystem::is_empty(folder.path())); // nothing half-written
    made = 0;
    for (int round = 0; round < 3; ++round) {
        const auto all =
            elements_of(set().map([](record r) { return r; }, {.threads = 3}), static_cast<std::uint64_t>(round));
        REQUIRE(all.size() == 7);
        for (std::int64_t i = 0; i < 7; ++i) CHECK(same(all[static_cast<std::size_t>(i)], record_of(i)));
    }
    CHECK(made == 7);
    CHECK(set().size() == 7);
    CHECK(elements_of(data::range(0).cache(data::in_file{folder.path() / "empty"})).empty());
    CHECK(data::range(9).cache(data::in_file{folder.path() / "empty"}).size() == 0);
    const auto ragged = data::range(3)
                            .map([](std::int64_t i) { return counted(0, i); })
                            .ragged_batch(3)
                            .cache(data::in_file{folder.path() / "ragged"});
    elements_of(ragged);
    CHECK(elements_of(ragged)[0].values.to_vector() == numbers{0, 0, 1});
}

TEST_CASE("what is no cache of these elements is refused") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "c";
    elements_of(data::range(5).cache(data::in_file{path}));
    const std::string name = "'" + path.string() + "': ", sound = support::read_text(path);
    const auto refusal = [&](const std::string& bytes) {
        folder.write("c", bytes);
        return support::message_of<tg::data_error>([&] { elements_of(data::range(5).cache(data::in_file{path})); });
    };
    CHECK(refusal(sound).empty());
    CHECK(support::message_of<tg::data_error>([&] {
              elements_of(data::range(5).map([](std::int64_t i) { return float(i); }).cache(data::in_file{path}));
          }) == name + "is not a cache of elements of type f32");
    CHECK(refusal("short") == name + "is not a cache: 5 bytes");
    CHECK(refusal(sound.substr(0, sound.size() - 1)) ==
          name + "is not a cache, or is truncated: its end is not that of a cache");
    std::string changed = sound;
    changed[20] ^= 1; // a value of element 0
    CHECK(refusal(changed) == "data pipeline: epoch 0, element 0 (cached element 0): " + name +
                                  "element 0 at byte 19: the checksum differs");
    changed = sound;
    changed[sound.size() - 16] = 99;
    CHECK(refusal(changed) == name + "has no room for the 99 elements it says");
    changed = sound;
    changed[sound.size() - 24] ^= 1;
    CHECK(support::contains(refusal(changed), "its elements end at byte "));
}

} // namespace pipeline_cache_file_test
