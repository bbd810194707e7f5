#include <tapegraph/data/tables/hashing.hpp>
#include <tapegraph/data/tables/lookup.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Expected numbers are those of the layers of Keras 3.15 with TensorFlow 2.21.

namespace lookup_test {

using namespace tapegraph;
using reals = std::vector<float>;
using doubles = std::vector<double>;
using words = std::vector<std::string>;
using longs = std::vector<std::int64_t>;
using mode = data::output_mode;
using options = data::lookup_options<std::string>;

namespace {

void check_near(const doubles& got, const doubles& expected, double tolerance) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(tolerance));
}

} // namespace

TEST_CASE("lookups of words") {
    const words vocabulary{"a", "b", "c"};
    const auto indices = [&](const options& chosen, const words& looked_up) {
        return data::string_lookup(chosen, vocabulary).indices_of(looked_up);
    };
    CHECK(indices({}, {"a", "c", "z", ""}) == longs{1, 3, 0, 0});
    CHECK(indices({.mask_token = ""}, {"a", "c", "z", ""}) == longs{2, 4, 1, 0});
    CHECK(indices({.num_oov_indices = 3, .mask_token = ""}, {"a", "c", "z", "y", ""}) == longs{4, 6, 2, 3, 0});
    CHECK(indices({.num_oov_indices = 0}, {"a", "b"}) == longs{0, 1});
    CHECK(support::message_of<range_error>([&] { indices({.num_oov_indices = 0}, {"z"}); }) ==
          "lookup: 'z' is not in the vocabulary");
    const words record{"a", "c", "z", "a"};
    const auto encoded = [&](const options& chosen, const words& looked_up) {
        return data::string_lookup(chosen, vocabulary)(looked_up);
    };
    CHECK(encoded({.mode = mode::one_hot}, record) == reals{0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0});
    CHECK(encoded({.mode = mode::multi_hot}, record) == reals{1, 1, 0, 1});
    CHECK(encoded({.mode = mode::count}, record) == reals{1, 2, 0, 1});
    CHECK(encoded({.mask_token = "", .mode = mode::count}, {"a", "", "z", "a"}) == reals{1, 2, 0, 0});
    CHECK(encoded({.num_oov_indices = 2, .mask_token = "", .mode = mode::count}, {"a", "", "z", "y"}) ==
          reals{0, 2, 1, 0, 0});
    CHECK(encoded({.max_tokens = 6, .mode = mode::count, .pad_to_max_tokens = true}, record) ==
          reals{1, 2, 0, 1, 0, 0});
    CHECK(encoded({.mask_token = "", .mode = mode::one_hot}, {"", "b"}) == reals{0, 0, 0, 0, 0, 0, 1, 0});

    const data::string_lookup l({.mask_token = "-"}, vocabulary);
    CHECK(l.size() == 5);
    CHECK(l.token_of(0) == "-");
    CHECK(l.token_of(1) == "[UNK]");
    CHECK(l.token_of(4) == "c");
    CHECK_THROWS_AS(l.token_of(5), range_error);
    CHECK(data::string_lookup::from_json(l.to_json()).to_json() == l.to_json());
    const auto refusal = [](const options& chosen, words given) {
        return support::message_of<argument_error>([&] { data::string_lookup(chosen, std::move(given)); });
    };
    CHECK(refusal({}, {"a", "a"}) == "lookup: 'a' appears twice in the vocabulary");
    CHECK(refusal({.mask_token = "a"}, {"a"}) == "lookup: the mask token 'a' is in the vocabulary");
    CHECK(refusal({.max_tokens = 2}, {"a", "b"}) == "lookup: mask, unknown and vocabulary are 3, max_tokens is 2");
    CHECK(refusal({.mode = mode::tf_idf}, {"a"}) == "lookup: 0 idf_weights for 1 categories and the mode tf_idf");
    CHECK(refusal({.pad_to_max_tokens = true}, {"a"}) == "lookup: pad_to_max_tokens needs max_tokens");
    CHECK_FALSE(refusal({.num_oov_indices = -1}, {"a"}).empty());
}

TEST_CASE("lookups that learn: by frequency, of equal ones the greater first; tf-idf") {
    data::lookup_counter<std::string> seen;
    seen.add(words{"b", "a", "c", "a", "d", "[UNK]", "e"});
    CHECK(data::string_lookup({}, seen).vocabulary() == words{"a", "e", "d", "c", "b"});
    CHECK(data::string_lookup({.max_tokens = 3}, seen).vocabulary() == words{"a", "e"});
    CHECK(data::string_lookup({.mask_token = "e"}, seen).vocabulary() == words{"a", "d", "c", "b"});
    data::lookup_counter<std::string> records;
    for (const words& each : {words{"a", "b", "a"}, words{"a", "c", "c"}, words{"d", "a", "b"}}) records.add(each);
    const data::string_lookup tf({.mode = mode::tf_idf}, records);
    CHECK(tf.vocabulary() == words{"a", "c", "b", "d"});
    check_near(tf.idf_weights(),
               {0.7713361382484436, 0.5596157908439636, 0.9162907600402832, 0.6931471824645996, 0.9162907600402832},
               1e-6); // float32 in Keras
    const reals row = tf(words{"a", "c", "z", "c"});
    check_near(doubles(row.begin(), row.end()), {0.7713361382484436, 0.5596157908439636, 1.8325815200805664, 0, 0},
               1e-6);
    CHECK(data::string_lookup({.mode = mode::tf_idf}, {"a", "b", "c"}, {0.5, 0.25, 0.75})(words{"a", "c", "z", "c"}) ==
          reals{0.5f, 0.5f, 0, 1.5f});
    CHECK(data::string_lookup::from_json(tf.to_json()).idf_weights() == tf.idf_weights());
}

TEST_CASE("lookups of whole numbers") {
    data::lookup_counter<std::int64_t> seen;
    seen.add(longs{12, 1138, 42, 42, 7, 1138});
    const data::integer_lookup l({}, seen);
    CHECK(l.vocabulary() == longs{1138, 42, 12, 7});
    CHECK(l.indices_of({12, 42, 5}) == longs{3, 2, 0});
    CHECK(l.token_of(0) == -1);
    CHECK(data::integer_lookup::from_json(l.to_json()).to_json() == l.to_json());
    const data::integer_lookup several({.num_oov_indices = 3, .mask_token = 0}, {12, 36});
    CHECK(several.indices_of({12, 36, 5, -5, 0, 7}) == longs{4, 5, 3, 2, 0, 2});
    const std::string other = data::string_lookup({}, {"a"}).to_json();
    CHECK(support::contains(support::message_of<data_error>([&] { data::integer_lookup::from_json(other); }),
                            "holds a 'string_lookup', not a 'integer_lookup'"));
}

TEST_CASE("hashing and crossing: TensorFlow's bins") {
    const words letters{"A", "B", "C", "D", "E"};
    CHECK(data::hashing({.num_bins = 3}).indices_of(letters) == longs{1, 0, 1, 1, 2});
    CHECK(data::hashing({.num_bins = 3, .mask_value = ""}).indices_of(words{"A", "B", "", "D"}) == longs{1, 1, 0, 2});
    CHECK(data::hashing({.num_bins = 3, .salt = {{133, 137}}}).indices_of(letters) == longs{1, 2, 1, 0, 2});
    CHECK(data::hashing({.num_bins = 100, .salt = {{7, 7}}}).index_of("A") == 2);
    CHECK(data::hashing({.num_bins = 10}).indices_of(std::vector<std::int32_t>{1, -2, 12345}) == longs{9, 5, 8});
    CHECK(data::hashing({.num_bins = 10}).indices_of(doubles{1.9, -2.9}) == longs{9, 5});
    CHECK(data::hashing({.num_bins = 4, .mode = mode::count})(letters) == reals{3, 0, 0, 2});
    CHECK_THROWS_AS(data::hashing({.num_bins = 10}).index_of(std::nan("")), range_error);
    CHECK_THROWS_AS(data::hashing({.num_bins = 0}), argument_error);
    // The example of SipHash's paper: key 00 to 0f, bytes 00 to 0e
    const std::string bytes("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C\x0D\x0E", 15);
    CHECK(data::keyed_hash(bytes, 0x0706050403020100, 0x0f0e0d0c0b0a0908) == 0xa129ca6149be45e5);
    // tf.strings.to_hash_bucket_fast(text, 1000003): lengths on either side of each way to hash
    const std::vector<std::pair<std::size_t, std::uint64_t>> expected{
        {0, 377723},  {7, 128959},  {14, 707725}, {21, 616816},  {28, 538946},  {35, 453005},
        {56, 100517}, {63, 310212}, {70, 295930}, {126, 956941}, {133, 168263}, {294, 606486}};
    for (const auto& [length, bin] : expected) {
        std::string text;
        for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + (i * i + length) % 26);
        CHECK(data::fingerprint64(text) % 1000003 == bin);
    }

    const data::hashed_crossing five({.num_bins = 5});
    CHECK(five.of_columns({{"A", "B", "A", "B", "A"}, {101, 101, 101, 102, 102}}) == longs{1, 4, 1, 1, 3});
    const data::hashed_crossing cross({.num_bins = 1000});
    CHECK(cross.index_of({"A", -3, "x"}) == 961);
    CHECK(cross.index_of({std::string(), 0, std::string("y")}) == 901);
    CHECK(data::hashed_crossing({.num_bins = 5, .mode = mode::one_hot})({"B", 101}) == reals{0, 0, 0, 0, 1});
    CHECK_THROWS_AS(cross.index_of({"A"}), argument_error);
    CHECK_THROWS_AS(five.of_columns({{"A"}, {1, 2}}), shape_error);
    CHECK_THROWS_AS(data::hashed_crossing({.num_bins = 5, .mode = mode::count}), argument_error);
}

TEST_CASE("category encoding") {
    const std::vector<std::int32_t> record{0, 1, 1};
    CHECK(data::category_encoding({.num_tokens = 3, .mode = mode::one_hot})(record) ==
          reals{1, 0, 0, 0, 1, 0, 0, 1, 0});
    CHECK(data::category_encoding({.num_tokens = 3})(record) == reals{1, 1, 0});
    const data::category_encoding counted({.num_tokens = 4, .mode = mode::count});
    CHECK(counted(record) == reals{1, 2, 0, 0});
    CHECK(counted(record, reals{0.1f, 0.2f, 0.3f}) == reals{0.1f, 0.5f, 0, 0});
    CHECK(support::message_of<range_error>([&] {
              counted(std::vector<std::int32_t>{0, 4});
          }) == "encode_indices: index 4 at position 1 is outside [0, 4)");
    CHECK_THROWS_AS(counted(std::vector<std::int32_t>{-1}), range_error);
    CHECK_THROWS_AS(counted(record, reals{1}), argument_error);
    CHECK_THROWS_AS(data::category_encoding({.num_tokens = 3})(record, reals{1, 1, 1}), argument_error);
    CHECK_THROWS_AS(data::category_encoding(data::category_encoding_options{}), argument_error);
    CHECK_THROWS_AS(data::category_encoding({.num_tokens = 3, .mode = mode::index}), argument_error);
}

} // namespace lookup_test
