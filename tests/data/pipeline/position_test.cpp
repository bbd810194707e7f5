#include <data/pipeline/collected.hpp>

#include <string>

namespace pipeline_position_test {

using namespace pipeline_test;

namespace {

/// Every position of two epochs is saved as text and gone on from in a walk of its own; `same` compares elements.
template <class Set, class Same>
void resumes(const Set& set, const Same& same) {
    auto all = set.iterator();
    for (const std::uint64_t epoch : {0, 1}) {
        if (epoch > 0) all.initialize();
        const auto expected = elements_of(set, epoch);
        for (std::size_t done = 0; done <= expected.size(); ++done) {
            const auto saved = all.position().text();
            CHECK(saved == "epoch " + std::to_string(epoch) + " element " + std::to_string(done));
            auto later = set.iterator();
            later.restore(data::pipeline_position::parse(saved));
            for (std::size_t i = done; i < expected.size(); ++i) {
                const auto e = later.next();
                REQUIRE(e);
                REQUIRE(same(*e, expected[i]));
            }
            CHECK_FALSE(later.next());
            CHECK(static_cast<bool>(all.next()) == (done < expected.size()));
        }
    }
}

} // namespace

TEST_CASE("a walk resumes exactly from every position") {
    const auto equal = [](std::int64_t a, std::int64_t b) { return a == b; };
    const auto rows = [](const auto& a, const auto& b) { return a.to_vector() == b.to_vector(); };
    const auto drawn = [](std::int64_t i, data::counter_random& random) {
        return 100 * i + static_cast<std::int64_t>(random.below(100));
    };
    const auto base = data::range(13).shuffle(1, {.buffer = 5}).map(drawn, {.threads = 2, .seed = 2});
    resumes(base, equal);
    resumes(base.filter([](std::int64_t i) { return i % 3 != 0; }).prefetch(2), equal);
    resumes(base.batch(4).prefetch(2), rows);
    resumes(base.batch(4, {.drop_remainder = true}).shuffle(3).prefetch(1), rows);
    resumes(base.repeat(2).skip(3).take(17), equal);
    resumes(data::range(6).flat_map([](std::int64_t i) { return data::range(i); }).map(drawn), equal);
    resumes(data::range(5).interleave([](std::int64_t i) { return data::range(i); }, {.cycle = 2}), equal);
    resumes(base.cache().map(drawn, {.threads = 3}), equal);
    resumes(base.concatenate(data::range(3)), equal);
    resumes(base.batch(3).unbatch(), [](const auto& a, const auto& b) { return a.item() == b.item(); });
    resumes(base.window({.size = 3, .shift = 2}), [](const numbers& a, const numbers& b) { return a == b; });
    resumes(data::range(0), equal);
}

TEST_CASE("what lies before a position is not made again") {
    std::int64_t made = 0;
    const auto set = data::range(1000).shuffle(1).map([&](std::int64_t i) { return ++made, i; }).batch(10);
    auto at = set.iterator();
    at.restore({0, 99});
    CHECK(at.next());
    CHECK(made == 10);
    CHECK_FALSE(at.next());
}

TEST_CASE("positions as text") {
    CHECK(data::pipeline_position::parse("epoch 3 element 17") == data::pipeline_position{3, 17});
    for (const char* bad : {"", "epoch", "epoch 3", "epoch 3 element", "epoch -3 element 1", "epoch 3 element 1 ",
                            "epoch 3 element -1", "epoch 99999999999999999999 element 1"})
        CHECK_THROWS_WITH_AS(
            data::pipeline_position::parse(bad),
            ("data pipeline: '" + std::string(bad) + "' is not a position, such as 'epoch 3 element 17'").c_str(),
            tg::data_error);
}

} // namespace pipeline_position_test
