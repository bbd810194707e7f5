#include <tapegraph/data/dataset.hpp>
#include <tapegraph/data/loader.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dataset_test {

using tapegraph::argument_error;
using tapegraph::dtype_error;
using tapegraph::range_error;
using tapegraph::shape_error;
using namespace tapegraph;

namespace {

/// n records: x = [10 i, 10 i + 1] and label = i.
data::dataset numbered(std::int64_t n) {
    std::vector<float> x;
    std::vector<std::int32_t> label;
    for (std::int64_t i = 0; i < n; ++i) {
        x.push_back(static_cast<float>(10 * i));
        x.push_back(static_cast<float>(10 * i + 1));
        label.push_back(static_cast<std::int32_t>(i));
    }
    data::dataset set;
    set.add("x", std::move(x), {2}).add("label", std::move(label));
    return set;
}

std::vector<std::int64_t> records_of(const data::dataset& set) {
    std::vector<std::int64_t> records;
    for (std::int64_t i = 0; i < set.size(); ++i) records.push_back(set.record_at(i));
    return records;
}

} // namespace

TEST_CASE("columns keep their names, types and shapes") {
    const auto set = numbered(5);
    CHECK(set.size() == 5);
    REQUIRE(set.columns().size() == 2);
    CHECK(set.columns()[0].name == "x");
    CHECK(set.columns()[0].type == dtype::f32);
    CHECK(set.columns()[0].record_size() == 2);
    CHECK(set.columns()[1].type == dtype::i32);
    CHECK(set.columns()[1].record_bytes() == 4);
    CHECK(set.batch_size() == 0);
    CHECK(set.batch(2).batches_per_epoch() == 3);
    CHECK(set.batch(2, {.drop_remainder = true}).batches_per_epoch() == 2);
    CHECK(set.batch(INT64_MAX).batches_per_epoch() == 1);
}

TEST_CASE("a data set is a value: options and columns of a copy leave the original alone") {
    auto set = numbered(4);
    const auto before = set;
    set.add("weight", std::vector<double>(4, 1.0));
    CHECK(before.columns().size() == 2);
    CHECK(set.columns().size() == 3);
    const auto shuffled = before.shuffle(1).batch(2).prefetch(3);
    CHECK(shuffled.prefetch_depth() == 3);
    CHECK_FALSE(before.shuffle_seed().has_value());
    CHECK(before.batch_size() == 0);
}

TEST_CASE("what does not fit is refused, naming column and numbers") {
    auto set = numbered(4);
    const auto shape = [](const auto& f) { return support::message_of<shape_error>(f); };
    const auto argument = [](const auto& f) { return support::message_of<argument_error>(f); };
    CHECK(shape([&] { set.add("y", std::vector<float>(3)); }) ==
          "data set: column 'y' holds 3 records, column 'x' holds 4");
    CHECK(shape([&] {
              set.add("y", std::vector<float>(7), {2, 3});
          }) == "data set: column 'y': 7 values are not a whole number of records of shape [2,3] (6 values)");
    CHECK(support::contains(shape([&] { set.add("y", std::vector<float>(4), {0}); }), "impossible record shape [0]"));
    CHECK(support::contains(shape([&] { set.add("y", std::vector<float>(4), {1LL << 40, 1LL << 40}); }), "impossible"));
    CHECK(argument([&] { set.add("x", std::vector<float>(4)); }) == "data set: two columns are named 'x'");
    CHECK(set.columns().size() == 2);
    CHECK(argument([&] { set.batch(0); }) == "dataset.batch: batch size must be at least 1, got 0");
    CHECK(argument([&] { set.batch(-3); }) == "dataset.batch: batch size must be at least 1, got -3");
    CHECK(argument([&] { set.prefetch(-1); }) == "dataset.prefetch: depth must be 0 to 4096, got -1");
    CHECK_THROWS_AS(set.batches_per_epoch(), argument_error);
    CHECK_THROWS_AS(set.take(-1), argument_error);
    CHECK_THROWS_AS(set.take(2).add("y", std::vector<float>(2)), argument_error);
    const std::array<std::int64_t, 2> outside{0, 4};
    CHECK(support::message_of<range_error>([&] { set.subset(outside); }) == "dataset.subset: record 4 of 4");
}

TEST_CASE("subsets compose") {
    const auto set = numbered(10);
    const std::array<std::int64_t, 4> some{8, 2, 5, 2};
    const std::array<std::int64_t, 2> of_those{3, 0};
    CHECK(records_of(set.subset(some)) == std::vector<std::int64_t>{8, 2, 5, 2});
    CHECK(records_of(set.subset(some).subset(of_those)) == std::vector<std::int64_t>{2, 8});
    CHECK(records_of(set.take(3)) == std::vector<std::int64_t>{0, 1, 2});
    CHECK(set.take(99).size() == 10);
    CHECK(set.take(0).size() == 0);
}

TEST_CASE("a split holds every record once and depends on the seed alone") {
    const auto set = numbered(103);
    const auto [train, validation] = data::train_validation_split(set, 7, 0.2);
    CHECK(validation.size() == 21); // round(20.6)
    CHECK(train.size() == 82);
    auto all = records_of(train);
    const auto held = records_of(validation);
    all.insert(all.end(), held.begin(), held.end());
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == static_cast<std::int64_t>(i));
    CHECK(records_of(data::train_validation_split(set, 7, 0.2).validation) == held);
    CHECK(records_of(data::train_validation_split(set, 8, 0.2).validation) != held);

    CHECK(data::train_validation_split(numbered(2), 1, 0.001).validation.size() == 1);
    CHECK(data::train_validation_split(numbered(2), 1, 0.999).train.size() == 1);
    for (const double fraction : {0.0, 1.0, -0.5, 2.0})
        CHECK_THROWS_AS(data::train_validation_split(set, 1, fraction), argument_error);
    CHECK_THROWS_AS(data::train_validation_split(numbered(1), 1, 0.5), argument_error);
}

TEST_CASE("a generator writes through checked places") {
    std::array<std::byte, 8> memory{};
    std::byte* const place = memory.data();
    const std::vector<data::column_spec> columns{{"x", dtype::f32, {2}}};
    const data::record_writer out(columns, {&place, 1});
    out.values<float>("x")[1] = 2.5f;
    CHECK(out.values<float>(0).size() == 2);
    CHECK(out.values<float>(0)[1] == 2.5f);
    CHECK(support::message_of<dtype_error>([&] { (void)out.values<double>("x"); }) ==
          "data set: column 'x' holds f32, not f64");
    CHECK(support::message_of<argument_error>([&] { (void)out.values<float>("y"); }) ==
          "data set: no column 'y', there are 'x'");
    CHECK_THROWS_AS((void)out.values<float>(1), argument_error);
    CHECK_THROWS_AS(data::dataset::from_generator(-1, columns, [](std::int64_t, const data::record_writer&) {}),
                    argument_error);
}

TEST_CASE("a tensor is a column: a record per place of its first axis, its elements shared") {
    data::dataset set;
    tensor<float> x{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}};
    const float* const first = x.data();
    const tensor<std::int64_t> label{7, 8, 9};
    set.add("x", x).add("label", label).add("flag", tensor<bool>{true, false, true});
    CHECK(x.data() == first);
    x.set(99, 1, 0, 0); // a copy: the data set keeps what it was given
    REQUIRE(set.size() == 3);
    CHECK(set.columns()[0].shape == std::vector<std::int64_t>{2, 2});
    CHECK(set.columns()[1].type == dtype::i64);
    CHECK(set.columns()[1].shape.empty());
    CHECK(set.columns()[2].type == dtype::boolean);
    data::loader batches(set.batch(3));
    for (const data::batch& b : batches.epoch(0)) {
        CHECK(b.values<float>("x")[2] == 3);
        CHECK(b.values<float>("x")[8] == 9);
        CHECK(b.values<std::int64_t>("label")[2] == 9);
    }
    CHECK_THROWS_WITH_AS(set.add("y", tensor<float>(1.F)),
                         "data set: column 'y' is a tensor of rank 0, it has no records", shape_error);
    CHECK_THROWS_WITH_AS(set.add("y", label.to_vector()).add("z", tensor<float>{1, 2}),
                         "data set: column 'z' holds 2 records, column 'x' holds 3", shape_error);
}

} // namespace dataset_test
