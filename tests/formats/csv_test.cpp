#include <tapegraph/formats/csv.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>
#include <string>

namespace csv_test {

using tapegraph::argument_error;
using tapegraph::data_error;
using tapegraph::io::csv_field;
using tapegraph::io::csv_writer;

TEST_CASE("fields are quoted only where a reader needs it") {
    CHECK(csv_field("plain text") == "plain text");
    CHECK(csv_field("") == "");
    CHECK(csv_field("a,b") == "\"a,b\"");
    CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
    CHECK(csv_field("two\nlines") == "\"two\nlines\"");
    CHECK(csv_field(" blank") == "\" blank\"");
}

TEST_CASE("numbers are the shortest text that reads back") {
    CHECK(csv_field(3) == "3");
    CHECK(csv_field(-7ll) == "-7");
    CHECK(csv_field(true) == "true");
    CHECK(csv_field(0.1) == "0.1");
    CHECK(csv_field(0.1f) == "0.1");
    CHECK(csv_field(std::numeric_limits<double>::quiet_NaN()) == "nan");
    const double third = 1.0 / 3;
    CHECK(std::strtod(csv_field(third).c_str(), nullptr) == third);
}

TEST_CASE("rows are in the file as soon as they are written") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "t.csv";
    csv_writer out(path, {"mode", "batch size", "loss, mean"});
    CHECK(support::read_text(path) == "mode,batch size,\"loss, mean\"\n");
    out.row("graph", 16, 0.25);
    out.row(std::string("eager"), std::int64_t{1}, 1e-300);
    CHECK(support::read_text(path) == "mode,batch size,\"loss, mean\"\ngraph,16,0.25\neager,1,1e-300\n");
    CHECK(
        support::contains(support::message_of<argument_error>([&] { out.row("graph", 1); }), "2 fields for 3 columns"));
    csv_writer single(folder.path() / "s.csv", {"x"});
    single.row("");
    CHECK(support::read_text(folder.path() / "s.csv") == "x\n\"\"\n");
}

TEST_CASE("a file that cannot be written is named") {
    const support::temporary_folder folder;
    CHECK(
        support::contains(support::message_of<data_error>([&] { csv_writer(folder.path() / "none" / "t.csv", {"x"}); }),
                          "t.csv': cannot be written: No such file or directory"));
    CHECK_THROWS_AS(csv_writer(folder.path() / "t.csv", {}), argument_error);
}

} // namespace csv_test
