#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/tables/columns.hpp>
#include <tapegraph/data/tables/discretization.hpp>
#include <tapegraph/data/tables/normalization.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

/// Expected numbers are those of the layers of Keras 3.15.

namespace normalization_test {

using namespace tapegraph;
using reals = std::vector<float>;
using doubles = std::vector<double>;
using mode = data::output_mode;

namespace {

template <class T>
std::span<const T> span_of(const std::vector<T>& values) {
    return values;
}
void check_near(const doubles& got, const doubles& expected, double tolerance) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(tolerance));
}

} // namespace

TEST_CASE("statistics of columns, in one pass and in parts") {
    data::column_statistics whole, left, right;
    const doubles rows{1e9 + 1, 5, 1e9 + 2, 5, 1e9 + 4, 5, 1e9 + 9, -7};
    whole.add_rows(span_of(rows), 2);
    left.add_rows(span_of(rows).first(2), 2);
    right.add_rows(span_of(rows).subspan(2), 2);
    left.merge(right);
    left.merge({});
    CHECK(whole.count() == 4);
    CHECK(whole.mean() == doubles{1e9 + 4, 2});
    check_near(whole.variance(), {9.5, 27}, 1e-7); // an ulp of 1e9 is 1e-7; of the squares it would be 128
    check_near(left.mean(), whole.mean(), 1e-15);
    check_near(left.variance(), whole.variance(), 1e-7);
    CHECK(left.minimum() == doubles{1e9 + 1, -7});
    CHECK(left.maximum() == doubles{1e9 + 9, 5});
    CHECK(support::message_of<shape_error>([&] { whole.add(span_of(reals{1})); }) ==
          "column_statistics: record 4 has 1 values, the first has 2");
    CHECK(support::message_of<numeric_error>([&] {
              whole.add(span_of(reals{1, NAN}));
          }) == "column_statistics: record 4, column 1: the value is not finite");
    CHECK(whole.count() == 4);
    CHECK_THROWS_AS(whole.add_rows(span_of(reals{1, 2, 3}), 2), shape_error);
}

TEST_CASE("normalization, and back; given statistics; state") {
    data::column_statistics seen;
    seen.add_rows(span_of(reals{1, 5, 2, 5, 4, 5}), 2);
    const data::normalization n(seen);
    CHECK(n(reals{3, 6})[0] == doctest::Approx(0.5345225).epsilon(1e-6));
    CHECK(n(reals{3, 6})[1] == doctest::Approx(1e7).epsilon(1e-6)); // a column of one value
    doubles scaled(2), back(2);
    n.apply(span_of(doubles{3, 5}), std::span<double>(scaled));
    n.invert(span_of(scaled), std::span<double>(back));
    check_near(back, {3, 5}, 1e-15);
    const data::normalization one({10}, {4});
    CHECK(one(std::vector<std::int32_t>{10, 12, 7}) == reals{0, 1, -1.5f});
    CHECK_THROWS_AS(n(reals{1, 2, 3}), shape_error);
    CHECK(support::message_of<argument_error>([] {
              data::normalization({1, 2}, {1});
          }) == "normalization: 2 means, 1 variances");
    CHECK_THROWS_AS(data::normalization({0}, {-1}), argument_error);
    CHECK_THROWS_AS(data::normalization(data::column_statistics{}), argument_error);

    const support::temporary_folder folder;
    data::save_state(folder.path() / "n.json", n);
    const auto read = data::load_state<data::normalization>(folder.path() / "n.json");
    CHECK(read.mean() == n.mean());
    CHECK(read.variance() == n.variance());
    const auto wrong = [](const std::string& text) {
        return support::message_of<data_error>([&] { data::normalization::from_json(text, "'n.json'"); });
    };
    CHECK(wrong(R"({"tapegraph": "normalization", "mean": [1], "variance": []})") ==
          "'n.json': normalization: 1 means, 0 variances");
    CHECK(
        support::contains(wrong(R"({"tapegraph": "hashing"})"), "'n.json': holds a 'hashing', not a 'normalization'"));
    CHECK(support::contains(wrong(R"({"tapegraph": "normalization", "size": 1})"), "a normalization has no 'size'"));
    CHECK(wrong("{}") == "'n.json': does not say that it is a 'normalization'");
    CHECK(support::contains(wrong("[]"), "'n.json'"));
}

TEST_CASE("min-max scaling") {
    data::column_statistics seen;
    seen.add_rows(span_of(reals{1, 5, 2, 5, 5, 5}), 2);
    const data::min_max_scaling s(seen, -1, 1);
    CHECK(s(reals{1, 5}) == reals{-1, -1});
    CHECK(s(reals{5, 5.5f}) == reals{1, 0});
    CHECK(s(reals{3, 5}) == reals{0, -1});
    reals back(2);
    s.invert(span_of(reals{0, -1}), std::span<float>(back));
    CHECK(back == reals{3, 5});
    const auto read = data::min_max_scaling::from_json(s.to_json());
    CHECK(read.to_json() == s.to_json());
    CHECK(read.low() == -1);
    CHECK_THROWS_AS(data::min_max_scaling({0}, {1}, 1, 1), argument_error);
    CHECK_THROWS_AS(data::min_max_scaling({1}, {0}), argument_error);
    CHECK_THROWS_AS(data::min_max_scaling::from_json(R"({"tapegraph": "min_max_scaling", "range": [1]})"), data_error);
}

TEST_CASE("discretization with given boundaries") {
    const data::discretization d({0, 0.7, 2});
    CHECK(d.indices_of(reals{-1, 0, 0.5f, 0.7f, 2, 3, NAN}) == std::vector<std::int32_t>{0, 1, 1, 2, 3, 3, 3});
    CHECK(d.index_of(std::int32_t{1}) == 2);
    CHECK(d.depth() == 4);
    CHECK(d(reals{-1, 3}) == reals{0, 3});
    const reals record{-1, 0, 0.5f};
    CHECK(data::discretization({0, 0.7, 2}, mode::one_hot)(record) == reals{1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0});
    CHECK(data::discretization({0, 0.7, 2}, mode::multi_hot)(record) == reals{1, 1, 0, 0});
    const data::discretization counted({0, 0.7, 2}, mode::count);
    CHECK(counted(record) == reals{1, 2, 0, 0});
    CHECK(data::discretization::from_json(counted.to_json()).to_json() == counted.to_json());
    CHECK(data::discretization(doubles{}).index_of(5.0) == 0);
    CHECK(support::message_of<argument_error>([] {
              data::discretization({2, 1});
          }) == "discretization: boundary 1 is 1, the one before it 2");
    CHECK_THROWS_AS(data::discretization(doubles{1}, mode::tf_idf), argument_error);
    CHECK_THROWS_AS(data::discretization::from_json(R"({"tapegraph": "discretization", "mode": "x"})"), data_error);
}

TEST_CASE("discretization by quantiles, in parts") {
    reals values(250);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(static_cast<double>(i * 7919 % 1009) / 10.0);
    data::quantile_summary seen;
    seen.add(span_of(values));
    check_near(data::discretization(seen, 4).boundaries(), {24.70000457763672, 50.100013732910156, 75.0999984741211},
               1e-7);
    data::quantile_summary parts(0.1);
    parts.add(span_of(values).first(100));
    parts.add(span_of(values).subspan(100));
    check_near(parts.boundaries(4), {25.05000114440918, 50.90000534057617, 75.9000015258789}, 1e-7);
    data::quantile_summary few;
    few.add(span_of(std::vector<std::int32_t>{5, 1, 3, 2, 4}));
    check_near(few.boundaries(3), {1.6666666269302368, 3.3333332538604736}, 1e-7);
    data::quantile_summary fewer;
    fewer.add(span_of(doubles{1, 2, 3}));
    CHECK(fewer.boundaries(10) == doubles{1, 2});
    CHECK(fewer.boundaries(1).empty());
    CHECK_THROWS_AS(data::quantile_summary().boundaries(4), argument_error);
    CHECK_THROWS_AS(fewer.boundaries(0), argument_error);
    CHECK_THROWS_AS(data::quantile_summary(0), argument_error);
    CHECK_THROWS_AS(fewer.add(span_of(reals{INFINITY})), numeric_error);
}

TEST_CASE("steps on the columns of a data set") {
    data::dataset set;
    set.add("id", std::vector<std::int32_t>{0, 1, 2, 3});
    set.add("age", reals{10, 20, 30, 40}, {1}).add("label", std::vector<std::int32_t>{0, 1, 0, 1});
    data::column_statistics seen;
    data::for_each_record(set, "age", [&](auto record) { seen.add(record); });
    CHECK(seen.mean() == doubles{25});
    const auto scaled = data::transform_column(set.take(3).batch(2).prefetch(1), "age", data::min_max_scaling(seen));
    const auto hot = data::transform_column(scaled, "id", data::category_encoding({.num_tokens = 4}));
    CHECK(hot.size() == 3);
    CHECK(hot.batch_size() == 2);
    CHECK(hot.prefetch_depth() == 1);
    CHECK(hot.columns()[0].shape == std::vector<std::int64_t>{4});
    CHECK(hot.columns()[1].shape == std::vector<std::int64_t>{1});
    data::loader batches(hot);
    batches.begin_epoch(0);
    const data::batch* b = batches.next();
    CHECK(reals(b->values<float>("age").begin(), b->values<float>("age").end()) == reals{0, 1.0f / 3});
    CHECK(reals(b->values<float>("id").begin(), b->values<float>("id").end()) == reals{1, 0, 0, 0, 0, 1, 0, 0});
    CHECK(b->values<std::int32_t>("label")[1] == 1);
    const auto binned = data::transform_column<std::int32_t>(set, "age", data::discretization({15, 35}));
    CHECK(binned.columns()[1].type == dtype::i32);
    CHECK_THROWS_AS(data::transform_column(set, "ages", data::discretization(doubles{15})), argument_error);
    CHECK(data::transform_column(set.shuffle(7), "age", data::discretization(doubles{15})).shuffle_seed() == 7);
}

} // namespace normalization_test
