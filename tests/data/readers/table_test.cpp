#include <tapegraph/data/readers/table.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace table_test {

namespace data = tapegraph::data;
using data::csv_kind;
using data::csv_missing;
using data::csv_options;
using tapegraph::argument_error;
using tapegraph::data_error;

namespace {
/// A file of its own for every text.
struct files {
    support::temporary_folder folder;
    int count = 0;
    data::csv_data read(std::string_view text, const csv_options& options = {}) {
        return data::read_csv<double>(folder.write("t" + std::to_string(++count) + ".csv", text), options);
    }
    template <class Error = data_error>
    std::string error(std::string_view text, const csv_options& options = {}) {
        return support::message_of<Error>([&] { read(text, options); });
    }
};

template <class T>
std::vector<T> column(const data::dataset& set, std::string_view name) {
    const auto& columns = set.columns();
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::byte*> places;
    std::size_t at = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        bytes.emplace_back(columns[c].record_bytes());
        if (columns[c].name == name) at = c;
    }
    REQUIRE(columns[at].name == name);
    REQUIRE(columns[at].type == tapegraph::dtype_of<T>);
    for (auto& each : bytes) places.push_back(each.data());
    std::vector<T> result;
    for (std::int64_t i = 0; i < set.size(); ++i) {
        set.records().fill(i, places);
        const auto* const values = reinterpret_cast<const T*>(bytes[at].data());
        result.insert(result.end(), values, values + columns[at].record_size());
    }
    return result;
}
std::vector<std::string> names(const data::dataset& set) {
    std::vector<std::string> result;
    for (const auto& each : set.columns()) result.push_back(each.name);
    return result;
}
constexpr std::string_view flowers = "length,width,species,id\n"
                                     "5.1, 3.5,setosa,7\n"
                                     "6.2,+2.9,virginica,8\n"
                                     "4.9,3e0,setosa,9\n";
} // namespace

TEST_CASE("read_csv: columns by their names, numbers and words") {
    files f;
    const auto all = f.read(flowers);
    CHECK(names(all.records) == std::vector<std::string>{"length", "width", "species", "id"});
    CHECK(all.records.size() == 3);
    CHECK(column<double>(all.records, "width") == std::vector<double>{3.5, 2.9, 3});
    CHECK(column<std::int32_t>(all.records, "species") == std::vector<std::int32_t>{0, 1, 0});
    CHECK(all.words("species") == std::vector<std::string>{"setosa", "virginica"});
    CHECK(all.features == std::vector<std::string>{"length", "width", "id"});
    CHECK(all.records.columns()[0].shape == std::vector<std::int64_t>{1});
    CHECK(all.records.columns()[2].shape.empty());

    const auto joined = f.read(flowers, {.features = {"width", "length"}, .label = "species", .join = "flower"});
    CHECK(names(joined.records) == std::vector<std::string>{"flower", "species"});
    CHECK(column<double>(joined.records, "flower") == std::vector<double>{3.5, 5.1, 2.9, 6.2, 3, 4.9});
    CHECK(joined.records.columns()[0].shape == std::vector<std::int64_t>{2});
    CHECK(joined.features == std::vector<std::string>{"width", "length"});

    const auto first = f.read(flowers, {.label = "length"});
    CHECK(names(first.records) == std::vector<std::string>{"width", "species", "id", "length"});
}

TEST_CASE("read_csv: kinds and words that are given") {
    files f;
    const auto kinds = f.read(
        flowers, {.features = {"id", "width"}, .kinds = {{"id", csv_kind::index}, {"width", csv_kind::category}}});
    CHECK(column<std::int32_t>(kinds.records, "id") == std::vector<std::int32_t>{7, 8, 9});
    CHECK(kinds.words("width") == std::vector<std::string>{"+2.9", "3.5", "3e0"});
    const auto known =
        f.read(flowers, {.label = "species", .categories = {{"species", {"virginica", "lily", "setosa"}}}});
    CHECK(column<std::int32_t>(known.records, "species") == std::vector<std::int32_t>{2, 0, 2});
    CHECK(known.words("species").size() == 3);
    const auto bare = f.read("1;a\n2;b\n", {.names = {"x", "y"}, .csv = {.header = false, .separator = ';'}});
    CHECK(column<double>(bare.records, "x") == std::vector<double>{1, 2});
    CHECK(bare.words("y") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("read_csv: missing values are an error, filled in, or their rows left out") {
    files f;
    const std::string_view text = "a,b,kind,y\nNA,2,x,0\n3,,,1\n5,6,w,\n7,8,x,1\n";
    const auto name = "'" + (f.folder.path() / "t1.csv").string() + "'";
    CHECK(f.error(text) == name + ", row 2 (line 2), column 'a': the value is missing");
    const auto dropped = f.read(text, {.label = "y", .missing = csv_missing::drop});
    CHECK(dropped.dropped == 3);
    CHECK(column<double>(dropped.records, "a") == std::vector<double>{7});
    CHECK(dropped.words("kind") == std::vector<std::string>{"x"});
    const csv_options fill{
        .features = {"a", "b", "kind"}, .missing = csv_missing::fill, .fill = -1, .fill_word = "none"};
    const auto filled = f.read(text, fill);
    CHECK(filled.filled == 3);
    CHECK(column<double>(filled.records, "a") == std::vector<double>{-1, 3, 5, 7});
    CHECK(column<double>(filled.records, "b") == std::vector<double>{2, -1, 6, 8});
    CHECK(filled.words("kind") == std::vector<std::string>{"none", "w", "x"});
    CHECK(column<std::int32_t>(filled.records, "kind") == std::vector<std::int32_t>{2, 0, 1, 2});
    CHECK(support::contains(f.error(text, {.label = "y", .missing = csv_missing::fill}), "the label is missing"));
    CHECK(support::contains(f.error("a,b\n,1\n,2\n", {.missing = csv_missing::fill}), "no value in column 'a'"));
    CHECK(support::contains(f.error("a,b\n,1\n,2\n", {.missing = csv_missing::drop}), "every row misses a value"));
    CHECK(f.read("a\n?\n-\n",
                 {.kinds = {{"a", csv_kind::category}}, .missing = csv_missing::drop, .missing_values = {"-"}})
              .words("a") == std::vector<std::string>{"?"});
}

TEST_CASE("read_csv: what does not fit is refused with its place") {
    files f;
    const auto says = [](const std::string& message, std::string_view part) {
        CAPTURE(message);
        CHECK(support::contains(message, part));
        CHECK(message.find('\n') == std::string::npos);
    };
    says(f.error("a,b\n1,2\n\n3,4x\n"), "row 3 (line 4), column 'b': '4x' is not a number");
    says(f.error("a\n1\ninf\n"), "row 3 (line 3), column 'a': 'inf' is not finite");
    says(f.error("a\n1\n1e999\n"), "'1e999' is out of range");
    says(f.error("a\n1.5\n", {.kinds = {{"a", csv_kind::index}}}), "'1.5' is not a whole number");
    says(f.error("a\nx\n", {.categories = {{"a", {"y", "z"}}}}), "'x' is not one of 'y', 'z'");
    says(f.error("a,b\n1\n"), "1 fields, the header has 2");
    says(f.error("a,b\n"), "no rows");
    says(f.error("a,a\n1,2\n"), "columns 1 and 2 are both named 'a'");
    says(f.error("a,b\n1,2\n", {.label = "c"}), "no column 'c', there are 'a', 'b'");
    says(f.error<argument_error>("a,b\n1,2\n", {.features = {"a", "b"}, .label = "a"}), "column 'a' is named twice");
    says(f.error<argument_error>("a,b\n1,2\n", {.features = {"a"}, .kinds = {{"b", csv_kind::index}}}),
         "column 'b' is given a kind but not read");
    says(f.error<argument_error>("a\n1\n", {.categories = {{"a", {}}}}), "category 'a' has no words");
    says(f.error<argument_error>("a,b\n1,1\n?,2\n",
                                 {.kinds = {{"a", csv_kind::index}}, .missing = csv_missing::fill, .fill = 0.5}),
         "cannot fill in column 'a' of indices");
    says(f.error<argument_error>("a\n1\n", {.fill = NAN}), "is not finite");
    says(f.error<argument_error>("1\n", {.csv = {.header = false}}), "needs names");
    says(f.error<argument_error>("1,2\n", {.names = {"a"}, .csv = {.header = false}}), "1 names for 2 columns");
    says(support::message_of<argument_error>([&] { (void)f.read("a\n1\n").words("a"); }),
         "no category 'a', there are none");
}

} // namespace table_test
