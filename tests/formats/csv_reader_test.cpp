#include <tapegraph/formats/csv.hpp>
#include <tapegraph/formats/csv_reader.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace csv_reader_test {

using tapegraph::argument_error;
using tapegraph::data_error;
using tapegraph::io::csv_reader;
using tapegraph::io::csv_reader_options;
using tapegraph::io::csv_writer;
using rows = std::vector<std::vector<std::string>>;

namespace {

rows read_all(csv_reader& in) {
    rows all;
    while (in.next()) all.push_back(in.fields());
    return all;
}

/// A file of its own for every text.
struct files {
    support::temporary_folder folder;
    int count = 0;

    std::filesystem::path of(std::string_view text) {
        return folder.write("t" + std::to_string(++count) + ".csv", text);
    }
    rows all(std::string_view text, const csv_reader_options& options = {.header = false}) {
        csv_reader in(of(text), options);
        return read_all(in);
    }
    std::string error(std::string_view text, const csv_reader_options& options = {}) {
        return support::message_of<data_error>([&] { all(text, options); });
    }
};

void check_says(const std::string& message, const std::vector<std::string>& parts) {
    for (const auto& part : parts) {
        CAPTURE(message);
        CAPTURE(part);
        CHECK(support::contains(message, part));
    }
    CHECK(message.find('\n') == std::string::npos);
}

} // namespace

TEST_CASE("fields, rows and line ends as RFC 4180 has them") {
    files f;
    CHECK(f.all("a,b\n1,2\n") == rows{{"a", "b"}, {"1", "2"}});
    CHECK(f.all("a,b\r\n1,2\r\n") == rows{{"a", "b"}, {"1", "2"}});
    CHECK(f.all("a,b\n1,2") == rows{{"a", "b"}, {"1", "2"}}); // the last line may end with the file
    CHECK(f.all("\"a,b\",\"say \"\"hi\"\"\"\n") == rows{{"a,b", "say \"hi\""}});
    CHECK(f.all("\"two\nlines\",\"two\r\nmore\"\n") == rows{{"two\nlines", "two\r\nmore"}});
    CHECK(f.all("\"\",\n,\"\"\n") == rows{{"", ""}, {"", ""}});
    CHECK(f.all(",,\n") == rows{{"", "", ""}});
    CHECK(f.all(",") == rows{{"", ""}});
    CHECK(f.all("\"\"") == rows{{""}});
    CHECK(f.all("\"\"\"\"\n") == rows{{"\""}});
    CHECK(f.all(" a , \tb\n") == rows{{" a ", " \tb"}});               // blanks belong to the field
    CHECK(f.all("\n\na\n\r\n\nb\n\n") == rows{{"a"}, {"b"}});          // empty lines are no rows
    CHECK(f.all("\xEF\xBB\xBF\"x\",y\n") == rows{{"x", "y"}});         // byte order mark
    CHECK(f.all("a\xEF\xBB\xBF,y\n") == rows{{"a\xEF\xBB\xBF", "y"}}); // only at the start
    CHECK(f.all("\xEFx\n") == rows{{"\xEFx"}});                        // and whole
    CHECK(f.all("caf\xC3\xA9,\xF0\x9F\x9B\xAB\n") == rows{{"caf\xC3\xA9", "\xF0\x9F\x9B\xAB"}});
    CHECK(f.all("a;b,c\n", {.header = false, .separator = ';'}) == rows{{"a", "b,c"}});
    CHECK(f.all("a\n") == rows{{"a"}});
    CHECK(f.all(std::string_view("a\0b,c\n", 6)) == rows{{std::string("a\0b", 3), "c"}});
}

TEST_CASE("columns are found by name, rows and lines are counted") {
    files f;
    csv_reader in(f.of("name,\"the text\"\n\nx,\"1\n2\n3\"\ny,4\n"));
    CHECK(in.columns() == std::vector<std::string>{"name", "the text"});
    CHECK(in.column("the text") == 1);
    CHECK(in.row() == 1);
    REQUIRE(in.next());
    CHECK(in.row() == 2);
    CHECK(in.line() == 3); // an empty line lies between
    CHECK(in[1] == "1\n2\n3");
    CHECK(support::contains(in.position(), "t1.csv', row 2 (line 3)"));
    REQUIRE(in.next());
    CHECK(in.row() == 3);
    CHECK(in.line() == 6);
    CHECK(in[0] == "y");
    CHECK(in.number<int>(1) == 4);
    CHECK_THROWS_AS(in[2], argument_error);
    CHECK_FALSE(in.next());
    CHECK_FALSE(in.next());
    CHECK_THROWS_AS(in[0], argument_error); // no row
}

TEST_CASE("numbers") {
    files f;
    csv_reader in(f.of("x,y\n-7,1e-3\n300, 2\n12a,\n1.5,nan\n"));
    REQUIRE(in.next());
    CHECK(in.number<std::int32_t>(0) == -7);
    CHECK(in.number<double>(1) == 1e-3);
    REQUIRE(in.next());
    CHECK(in.number<float>(0) == 300.0f);
    check_says(support::message_of<data_error>([&] { in.number<std::int8_t>(0); }),
               {"t1.csv'", "row 3 (line 3)", "column 'x'", "'300' is out of range"});
    check_says(support::message_of<data_error>([&] { in.number<double>(1); }), {"column 'y'", "' 2' is not a number"});
    REQUIRE(in.next());
    check_says(support::message_of<data_error>([&] { in.number<int>(0); }), {"'12a' is not a whole number"});
    check_says(support::message_of<data_error>([&] { in.number<double>(1); }), {"'' is not a number"});
    REQUIRE(in.next());
    CHECK_THROWS_AS(in.number<int>(0), data_error);
    CHECK(in.number<double>(0) == 1.5);
}

TEST_CASE("broken quoting is named with file, row, line, column and value") {
    files f;
    check_says(f.error("a,b\nx,\"1\n\ny,2\n"), {"t1.csv'", "row 2 (line 2)", "column 'b'",
                                                "the quote opened in line 2 is never closed", "'1\\n\\ny,2\\n'"});
    check_says(f.error("a,b\n\"p\nq\",\"open"), {"row 2 (line 2)", "column 'b'", "opened in line 3", "'open'"});
    check_says(f.error("a,b\n1,2\n\"x\"y,2\n"),
               {"row 3 (line 3)", "column 'a'", "text after the closing quote of 'x'", ": 'y'"});
    check_says(f.error("a,b\n1,\"x\" \n"), {"row 2", "column 'b'", "text after the closing quote of 'x': ' '"});
    check_says(f.error("a,b\n1,5\" disk\n"), {"row 2 (line 2)", "column 'b'", "a quote inside a field", "'5\" disk'"});
    check_says(f.error("a,b\n1, \"x\"\n"), {"a quote inside a field", "' \"x\"'"}); // a blank before the quote
    check_says(f.error("a,b\n1,2\r3,4\n"), {"row 2", "column 'b'", "carriage return", "'2'"});
    check_says(f.error("a,b\n1,\"2\"\r"), {"row 2", "carriage return", "'2'"});
    check_says(f.error("a\n\rx\n"), {"row 2 (line 2)", "carriage return"});
    check_says(f.error("a,\"b\n"), {"row 1 (line 1)", "field 2", "never closed"}); // in the header
    const std::string text = "a\n\"" + std::string(39, 'z') + "\xC3\xA9 and more\n";
    check_says(f.error(text), {": '" + std::string(39, 'z') + "'..."}); // cut before the letter of two bytes
}

TEST_CASE("another number of fields is named with the value that is one too many, or the last") {
    files f;
    check_says(f.error("a,b\n1,2\n1,2,three,4\n"),
               {"t1.csv'", "row 3 (line 3)", "4 fields", "the header has 2", "surplus one is 'three'"});
    check_says(f.error("a,b,c\n1,only\n"), {"row 2", "2 fields", "the header has 3", "the last one is 'only'"});
    check_says(f.error("1,2\n3\n", {.header = false}), {"row 2", "1 fields", "the first row has 2", "'3'"});
}

TEST_CASE("missing columns and files") {
    files f;
    const csv_reader in(f.of("a,b,\"a\"\n"));
    check_says(support::message_of<data_error>([&] { in.column("text"); }),
               {"t1.csv'", "no column 'text'", "'a', 'b', 'a'"});
    check_says(support::message_of<data_error>([&] { in.column("a"); }), {"columns 1 and 3", "'a'"});
    CHECK(in.column("b") == 1);
    const csv_reader bare(f.of("a,b\n"), {.header = false});
    CHECK(bare.columns().empty());
    CHECK_THROWS_AS(bare.column("a"), data_error);
    check_says(f.error(""), {"empty file"});
    check_says(f.error("\n\r\n"), {"no header"});
    check_says(support::message_of<data_error>([&] { csv_reader(f.folder.path() / "none.csv"); }),
               {"none.csv", "no such file"});
    CHECK_THROWS_AS(csv_reader(f.folder.path()), data_error);
    CHECK_THROWS_AS(csv_reader(f.of("a\n"), {.separator = '"'}), argument_error);
}

TEST_CASE("a quote left open ends at the limit of a row, not with the memory") {
    files f;
    const std::string field(60, 'x');
    CHECK(f.all(field + "," + field + "\n", {.header = false, .largest_row = 120}).size() == 1);
    check_says(f.error(field + "," + field + "y\n", {.header = false, .largest_row = 120}),
               {"row 1", "longer than 120 bytes", "begins 'xxx"});
}

TEST_CASE("files longer than the buffer, and whatever the writer wrote") {
    // 3,000 rows of 17 to 116 bytes cross the reader's 64 KiB at every kind of byte.
    const support::temporary_folder folder;
    const auto path = folder.path() / "long.csv";
    const std::vector<std::string> hard{"plain", "a,b", "\"", "\"\"", "line\nline", "\r\n", " ends ", "", "\xC3\xBC"};
    rows expected;
    {
        csv_writer out(path, {"a", "b", "c"});
        for (std::size_t i = 0; i < 3000; ++i) {
            expected.push_back(
                {hard[i % hard.size()], std::string(i % 101, 'x'), hard[i / 7 % hard.size()] + "," + "end"});
            out.row(expected.back());
        }
    }
    csv_reader in(path);
    CHECK(read_all(in) == expected);
    CHECK(in.row() == 3001);
}

} // namespace csv_reader_test
