#include <data/pipeline/collected.hpp>

#include <algorithm>
#include <array>
#include <list>
#include <ranges>
#include <tuple>

namespace pipeline_stages_test {

using namespace pipeline_test;

TEST_CASE("ranges") {
    CHECK(elements_of(data::range(4)) == numbers{0, 1, 2, 3});
    CHECK(elements_of(data::range(2, 9, 3)) == numbers{2, 5, 8});
    CHECK(elements_of(data::range(5, -2, -3)) == numbers{5, 2, -1});
    CHECK(elements_of(data::range(3, 3)).empty());
    CHECK(elements_of(data::range(4, 2)).empty());
    CHECK(data::range(5, -2, -3).size() == 3);
    CHECK_THROWS_WITH_AS(data::range(0, 1, 0), "data::range: the step is 0", tg::argument_error);
}

TEST_CASE("slices of vectors and tensors") {
    const tg::tensor<float> x{{1, 2}, {3, 4}, {5, 6}};
    const auto set = data::slices(x, std::vector<int>{7, 8, 9}, std::vector<std::string>{"a", "b", "c"});
    const auto all = elements_of(set);
    REQUIRE(all.size() == 3);
    const auto& [row, number, word] = all[2];
    CHECK(row.to_vector() == std::vector<float>{5, 6});
    CHECK(number == 9);
    CHECK(word == "c");
    CHECK(elements_of(data::slices(std::vector<double>{})).empty());
    CHECK(elements_of(data::slices(tg::tensor<int>{4, 5}))[1].item() == 5);
    CHECK_THROWS_WITH_AS(data::slices(x, std::vector<int>{1, 2}), "slices: column 1 has 2 records, column 0 has 3",
                         tg::shape_error);
    CHECK_THROWS_WITH_AS(data::slices(tg::tensor<int>(4)), "slices: a tensor of rank 0 has no records",
                         tg::shape_error);
    const auto one = elements_of(data::whole(x));
    REQUIRE(one.size() == 1);
    CHECK(one[0].shape() == x.shape());
}

TEST_CASE("generators and ranges of C++") {
    const auto counting =
        data::generator([] { return [i = 0]() mutable { return i < 5 ? std::optional(i++) : std::nullopt; }; });
    CHECK(elements_of(counting) == std::vector<int>{0, 1, 2, 3, 4});
    CHECK(elements_of(counting, 1) == std::vector<int>{0, 1, 2, 3, 4}); // each epoch anew
    CHECK(counting.size() == data::unknown_size);
    CHECK(elements_of(data::elements(std::list<int>{3, 1})) == std::vector<int>{3, 1});
    CHECK(elements_of(data::elements(std::views::iota(2, 5))) == std::vector<int>{2, 3, 4});
    CHECK(data::elements(std::list<int>{3, 1}).size() == 2);
}

TEST_CASE("map takes elements or their fields, and random numbers") {
    const auto pairs = data::range(5).map([](std::int64_t i) { return std::tuple(i, 10 * i); });
    CHECK(elements_of(pairs.map([](auto a, auto b) { return a + b; })) == numbers{0, 11, 22, 33, 44});
    CHECK(elements_of(pairs.map([](const std::tuple<std::int64_t, std::int64_t>& t) { return std::get<1>(t); })) ==
          numbers{0, 10, 20, 30, 40});
    const auto drawn = data::range(5).map(
        [](std::int64_t i, data::counter_random& random) {
            return i + static_cast<std::int64_t>(random.below(1000)) * 10;
        },
        {.seed = 3});
    const auto first = elements_of(drawn);
    CHECK(first == elements_of(drawn));
    CHECK(first != elements_of(drawn, 1));
    CHECK(elements_of(drawn, 1) != elements_of(drawn, 2));
    // The numbers are of the element, wherever it is.
    auto mixed = elements_of(drawn.shuffle(9));
    CHECK(mixed != first);
    std::sort(mixed.begin(), mixed.end());
    auto sorted = first;
    std::sort(sorted.begin(), sorted.end());
    CHECK(mixed == sorted);
}

TEST_CASE("filter, take, skip, shard") {
    const auto ten = data::range(11);
    CHECK(elements_of(ten.filter([](std::int64_t i) { return i % 4 == 1; })) == numbers{1, 5, 9});
    CHECK(elements_of(ten.filter([](std::int64_t) { return false; })).empty());
    CHECK(elements_of(ten.take(3)) == numbers{0, 1, 2});
    CHECK(elements_of(ten.take(0)).empty());
    CHECK(elements_of(ten.take(99)).size() == 11);
    CHECK(elements_of(ten.skip(9)) == numbers{9, 10});
    CHECK(elements_of(ten.skip(11)).empty());
    CHECK(elements_of(ten.skip(99)).empty());
    CHECK(elements_of(ten.shard(3, 0)) == numbers{0, 3, 6, 9});
    CHECK(elements_of(ten.shard(3, 2)) == numbers{2, 5, 8});
    CHECK(elements_of(ten.shard(1, 0)).size() == 11);
    CHECK(ten.take(3).size() == 3);
    CHECK(ten.skip(4).size() == 7);
    CHECK(ten.shard(3, 2).size() == 3);
    CHECK(ten.filter([](std::int64_t) { return true; }).size() == data::unknown_size);
    CHECK_THROWS_WITH_AS(ten.shard(3, 3), "data::set.shard: shard 3 of 3", tg::range_error);
    CHECK_THROWS_WITH_AS(ten.take(-1), "data::set.take: -1 elements", tg::argument_error);
}

TEST_CASE("shuffle") {
    const auto set = data::range(23);
    for (const std::int64_t buffer : {0, 1, 2, 7, 23, 100}) {
        const auto mixed = set.shuffle(5, {.buffer = buffer});
        auto first = elements_of(mixed), second = elements_of(mixed, 1);
        CHECK(first == elements_of(mixed));
        if (buffer == 1)
            CHECK(first == counted(0, 23));
        else
            CHECK(first != second);
        if (buffer > 0)
            for (std::size_t i = 0; i < first.size(); ++i) // nothing comes before it was read
                CHECK(first[i] < static_cast<std::int64_t>(i) + buffer);
        std::sort(first.begin(), first.end());
        CHECK(first == counted(0, 23));
        const auto same = set.shuffle(5, {.buffer = buffer, .each_epoch = false});
        CHECK(elements_of(same) == elements_of(same, 1));
    }
    CHECK(elements_of(set.shuffle(5)) != elements_of(set.shuffle(6)));
    // The order that data::dataset has.
    std::vector<std::int64_t> order(23);
    data::shuffle_order(5, 2, order);
    CHECK(elements_of(set.shuffle(5), 2) == order);
}

TEST_CASE("repeat") {
    CHECK(elements_of(data::range(3).repeat(2)) == numbers{0, 1, 2, 0, 1, 2});
    CHECK(elements_of(data::range(3).repeat(0)).empty());
    CHECK(elements_of(data::range(0).repeat()).empty()); // not for ever
    CHECK(elements_of(data::range(3).repeat().take(7)) == numbers{0, 1, 2, 0, 1, 2, 0});
    CHECK(data::range(3).repeat(2).size() == 6);
    CHECK(data::range(3).repeat().size() == data::endless);
    CHECK(data::range(3).repeat().take(7).size() == 7);
    // Each pass is an epoch to what lies below.
    const auto twice = elements_of(data::range(9).shuffle(1).repeat(2));
    CHECK(numbers(twice.begin(), twice.begin() + 9) == elements_of(data::range(9).shuffle(1), 0));
    CHECK(numbers(twice.begin() + 9, twice.end()) == elements_of(data::range(9).shuffle(1), 1));
    CHECK(elements_of(data::range(9).shuffle(1).repeat(2), 1) != twice);
}

TEST_CASE("zip and concatenate") {
    const auto a = data::range(3), b = data::range(10, 14);
    const auto both = elements_of(data::zip(a, b.map([](std::int64_t i) { return std::to_string(i); })));
    REQUIRE(both.size() == 3);
    CHECK(both[2] == std::tuple<std::int64_t, std::string>(2, "12"));
    CHECK(data::zip(a, b).size() == 3);
    CHECK(data::zip(a, b.repeat()).size() == 3);
    CHECK(data::zip(a, b.filter([](std::int64_t) { return true; })).size() == data::unknown_size);
    CHECK(elements_of(a.concatenate(b)) == numbers{0, 1, 2, 10, 11, 12, 13});
    CHECK(elements_of(data::range(0).concatenate(b).concatenate(data::range(0))) == numbers{10, 11, 12, 13});
    CHECK(a.concatenate(b).size() == 7);
    CHECK(a.concatenate(b.repeat()).size() == data::endless);
}

TEST_CASE("flat_map and interleave") {
    const auto inner = [](std::int64_t i) { return data::range(10 * i, 10 * i + i); };
    CHECK(elements_of(data::range(4).flat_map(inner)) == numbers{10, 20, 21, 30, 31, 32});
    CHECK(elements_of(data::range(0).flat_map(inner)).empty());
    CHECK(elements_of(data::range(3).flat_map([](std::int64_t i) {
              return std::vector<std::int64_t>{i, i};
          })) == numbers{0, 0, 1, 1, 2, 2});
    // As tf.data.Dataset.range(1, 6).interleave(lambda x: Dataset.from_tensors(x).repeat(6), 2, 4) in its documentation.
    const auto six = [](std::int64_t x) { return data::whole(x).repeat(6); };
    CHECK(elements_of(data::range(1, 6).interleave(six, {.cycle = 2, .block = 4})) ==
          numbers{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 3, 3, 4, 4, 5, 5, 5, 5, 5, 5});
    CHECK(elements_of(data::range(2).interleave(six, {.cycle = 9})) == numbers{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
}

TEST_CASE("windows") {
    using windows = std::vector<numbers>;
    const auto set = data::range(7);
    CHECK(elements_of(set.window({.size = 3})) == windows{{0, 1, 2}, {3, 4, 5}, {6}});
    CHECK(elements_of(set.window({.size = 3, .drop_remainder = true})) == windows{{0, 1, 2}, {3, 4, 5}});
    CHECK(elements_of(set.window({.size = 3, .shift = 2, .drop_remainder = true})) ==
          windows{{0, 1, 2}, {2, 3, 4}, {4, 5, 6}});
    CHECK(elements_of(set.window({.size = 3, .shift = 1, .stride = 2, .drop_remainder = true})) ==
          windows{{0, 2, 4}, {1, 3, 5}, {2, 4, 6}});
    CHECK(elements_of(set.window({.size = 2, .shift = 3})) == windows{{0, 1}, {3, 4}, {6}});
    CHECK(elements_of(set.window({.size = 2, .shift = 1})).back() == numbers{6});
    for (const data::window_options o :
         {data::window_options{3, 0, 1, false}, {3, 2, 1, true}, {2, 3, 2, false}, {8, 1, 1, true}}) {
        const auto w = set.window(o);
        CHECK(w.size() == static_cast<std::int64_t>(elements_of(w).size()));
    }
}

TEST_CASE("batches") {
    CHECK(batches_of(data::range(7).batch(3)) == std::vector<numbers>{{0, 1, 2}, {3, 4, 5}, {6}});
    CHECK(batches_of(data::range(7).batch(3, {.drop_remainder = true})) == std::vector<numbers>{{0, 1, 2}, {3, 4, 5}});
    CHECK(batches_of(data::range(6).batch(3)).size() == 2);
    CHECK(batches_of(data::range(0).batch(3)).empty());
    CHECK(batches_of(data::range(2).batch(3, {.drop_remainder = true})).empty());
    CHECK(batches_of(data::range(7).batch(3).skip(1).take(1)) == std::vector<numbers>{{3, 4, 5}});
    CHECK(data::range(7).batch(3).size() == 3);
    CHECK(data::range(7).batch(3, {.drop_remainder = true}).size() == 2);

    struct record {
        std::vector<float> x;
        std::array<std::array<int, 2>, 3> y;
        std::string name;
        bool good;
    };
    const auto set = data::range(5)
                         .map([](std::int64_t i) {
                             const int k = static_cast<int>(i);
                             return record{{float(k), 0.5f}, {{{k, 1}, {2, 3}, {4, 5}}}, std::to_string(k), k % 2 == 0};
                         })
                         .batch(2);
    const auto all = elements_of(set);
    REQUIRE(all.size() == 3);
    const auto& [x, y, name, good] = all[1];
    CHECK(x.shape() == tg::shape{2, 2});
    CHECK(x(1, 0) == 3);
    CHECK(y.shape() == tg::shape{2, 3, 2});
    CHECK(y(1, 2, 1) == 5);
    CHECK(name == std::vector<std::string>{"2", "3"});
    CHECK(good(0));
    CHECK_FALSE(good(1));
    CHECK(std::get<0>(all[2]).shape() == tg::shape{1, 2});

    // Written in place, without a value of its own.
    const auto in_place = data::range(3)
                              .map([](std::int64_t i) {
                                  return data::written<float>({2, 2}, [i](std::span<float> to) {
                                      for (float& v : to) v = static_cast<float>(i);
                                  });
                              })
                              .batch(3);
    CHECK(elements_of(in_place)[0].to_vector() == std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
    const auto uneven =
        data::range(1, 4).map([](std::int64_t i) { return std::vector<float>(static_cast<std::size_t>(i)); });
    CHECK_THROWS_WITH_AS(
        elements_of(uneven.batch(3)),
        "data pipeline: epoch 0, element 1 (range record 1): batch: a record has shape [2], the others "
        "have [1]; padded_batch and ragged_batch take records of any length",
        data::record_error);
    CHECK_THROWS_WITH_AS(data::range(3).batch(2, {.record_shapes = {{2}, {3}}}),
                         "batch: 2 shapes are given of records of 1 columns", tg::argument_error);
}

TEST_CASE("a batch that is kept stays as it was") {
    std::vector<tg::tensor<std::int64_t>> kept;
    for (auto& b : data::range(40).batch(4).prefetch(1)) kept.push_back(b);
    for (std::size_t i = 0; i < kept.size(); ++i)
        CHECK(kept[i].to_vector() == counted(static_cast<std::int64_t>(4 * i), static_cast<std::int64_t>(4 * i + 4)));
}

TEST_CASE("padded and ragged batches, buckets") {
    const auto uneven =
        data::range(5).map([](std::int64_t i) { return std::tuple(counted(0, i % 3 + 1), static_cast<int>(i)); });
    const auto padded = elements_of(uneven.padded_batch(3, {.padding = {-1, 0}}));
    REQUIRE(padded.size() == 2);
    CHECK(std::get<0>(padded[0]).to_vector() == numbers{0, -1, -1, 0, 1, -1, 0, 1, 2});
    CHECK(std::get<1>(padded[1]).to_vector() == std::vector<int>{3, 4});
    CHECK(std::get<0>(padded[1]).shape() == tg::shape{2, 2});
    const auto wide = elements_of(uneven.padded_batch(3, {.record_shapes = {{4}, {}}, .drop_remainder = true}));
    REQUIRE(wide.size() == 1);
    CHECK(std::get<0>(wide[0]).shape() == tg::shape{3, 4});
    CHECK_THROWS_WITH_AS(elements_of(uneven.padded_batch(3, {.record_shapes = {{2}, {}}})),
                         "data pipeline: epoch 0, element 2 (range record 2): padded_batch: column 0 has a record of shape "
                         "[3], to be padded to [2]",
                         data::record_error);
    const auto images = data::range(1, 3).map([](std::int64_t i) { return tg::full<float>({i, 3 - i}, float(i)); });
    CHECK(elements_of(images.padded_batch(2))[0].to_vector() == std::vector<float>{1, 1, 0, 0, 2, 0, 2, 0});

    const auto ragged = elements_of(uneven.ragged_batch(3));
    const auto& rows = std::get<0>(ragged[0]);
    CHECK(rows.values.to_vector() == numbers{0, 0, 1, 0, 1, 2});
    CHECK(rows.row_splits.to_vector() == numbers{0, 1, 3, 6});
    CHECK(rows.row(1).size() == 2);
    const auto back = elements_of(uneven.ragged_batch(3).unbatch());
    REQUIRE(back.size() == 5);
    CHECK(std::get<0>(back[4]) == numbers{0, 1});
    CHECK(std::get<1>(back[4]).item() == 4);

    const auto bucketed = uneven.bucket_by_length([](const auto& x, int) { return x.size(); },
                                                  {.boundaries = {2, 3}, .batch_sizes = {2}});
    std::vector<std::vector<int>> order;
    for (auto& [x, y] : bucketed.epoch(0)) {
        order.push_back(y.to_vector());
        CHECK(x.shape()[1].value == y(0) % 3 + 1); // nothing is padded
    }
    CHECK(order == std::vector<std::vector<int>>{{0, 3}, {1, 4}, {2}});
    CHECK_THROWS_WITH_AS(
        uneven.bucket_by_length([](const auto&, int) { return 1; }, {.boundaries = {3, 3}, .batch_sizes = {2}}),
        "bucket_by_length: boundary 1 is 3; they rise, from 1 on", tg::argument_error);
}

TEST_CASE("unbatch") {
    const auto set = data::range(7).map([](std::int64_t i) { return std::tuple(i, std::to_string(i)); });
    const auto back = elements_of(set.batch(3).unbatch());
    REQUIRE(back.size() == 7);
    CHECK(std::get<0>(back[5]).item() == 5);
    CHECK(std::get<1>(back[5]) == "5");
    CHECK(elements_of(data::range(3).map([](std::int64_t i) { return counted(0, i); }).unbatch()) == numbers{0, 0, 1});
    CHECK(batches_of(data::range(7).batch(3).unbatch().batch(2)).size() == 4);
}

TEST_CASE("cache") {
    int made = 0;
    const auto set = data::range(5).map([&](std::int64_t i) { return ++made, i; }).cache();
    CHECK(elements_of(set.take(2)).size() == 2);
    CHECK(made == 2); // no whole epoch, nothing is kept
    CHECK(elements_of(set) == counted(0, 5));
    CHECK(made == 7);
    CHECK(elements_of(set, 3) == counted(0, 5));
    CHECK(elements_of(set.shuffle(1), 3).size() == 5);
    CHECK(made == 7);
    CHECK(set.size() == 5);
    // The elements are those of epoch 0, whichever epoch made them.
    const auto mixed = data::range(9).shuffle(4);
    CHECK(elements_of(mixed.cache(), 5) == elements_of(mixed, 0));
}

TEST_CASE("loops and iterators") {
    auto set = data::range(9).shuffle(4);
    numbers first, second;
    for (const auto i : set) first.push_back(i);
    for (const auto i : set) second.push_back(i);
    CHECK(first == elements_of(set, 0));
    CHECK(second == elements_of(set, 1));
    int pairs = 0;
    for (const auto i : set)
        for (const auto j : set) pairs += i == j; // a loop within a loop is an epoch of its own
    CHECK(pairs == 9);
    auto at = set.iterator();
    for (int i = 0; i < 9; ++i) CHECK(at.get_next() == first[static_cast<std::size_t>(i)]);
    CHECK_FALSE(at.next());
    CHECK_FALSE(at.next());
    CHECK_THROWS_WITH_AS(at.get_next(), "data pipeline: end of sequence, epoch 0 has 9 elements", tg::range_error);
    at.initialize();
    CHECK(at.next() == second[0]);
    at.initialize(0);
    CHECK(at.next() == first[0]);
    auto once = set.one_shot();
    CHECK(once.next() == first[0]);
    CHECK_THROWS_WITH_AS(once.initialize(),
                         "data pipeline: a one-shot iterator has begun and cannot start over; take iterator()",
                         tg::argument_error);
    static_assert(std::ranges::input_range<decltype(set.epoch(0))>);
    static_assert(std::ranges::input_range<decltype(set)>);
}

} // namespace pipeline_stages_test
