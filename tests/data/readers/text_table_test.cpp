#include <tapegraph/data/readers/text_table.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace text_table_test {

using namespace tapegraph;
using words = std::vector<std::string>;

TEST_CASE("texts and classes of a table") {
    const support::temporary_folder folder;
    const auto path = folder.write("t.csv", std::string("mood,id,text\ngood,1,\"a, b\nc\"\nbad,2,\ngood,3,d\n"));
    const auto all = data::read_text_table(path, {.label = "mood"});
    CHECK(all.texts == words{"a, b\nc", "", "d"});
    CHECK(all.labels == std::vector<std::int32_t>{1, 0, 1});
    CHECK(all.class_names == words{"bad", "good"});
    CHECK(support::contains(all.name_of(2), "t.csv', row 4"));
    const auto ordered =
        data::read_text_table(path, {.text = "id", .label = "mood", .classes = {"good", "fair", "bad"}});
    CHECK(ordered.texts == words{"1", "2", "3"});
    CHECK(ordered.labels == std::vector<std::int32_t>{0, 2, 0});
    CHECK(ordered.class_names.size() == 3);
}

TEST_CASE("what is wrong with a table is named with its row and value") {
    const support::temporary_folder folder;
    const auto error = [&](const std::string& text, const data::text_table_options& options = {}) {
        const auto path = folder.write("t.csv", text);
        return support::message_of<data_error>([&] { data::read_text_table(path, options); });
    };
    CHECK(support::contains(error("label,words\nx,y\n"), "t.csv': no column 'text', there are 'label', 'words'"));
    CHECK(support::contains(error("text\nx\n"), "no column 'label'"));
    CHECK(support::contains(error("label,text\nx,y\n,z\n"), "row 3 (line 3), column 'label': the label is empty"));
    CHECK(support::contains(error("label,text\nx,y\nz,t\n", {.classes = {"x", "y"}}),
                            "row 3 (line 3), column 'label': 'z' is not one of 'x', 'y'"));
    CHECK(support::contains(error("label,text\n"), "no rows"));
    CHECK(support::contains(error("label,text\nx,\"y\n"), "never closed"));
    CHECK(support::contains(error("label,text\nx,y,z\n"), "row 2 (line 2): 3 fields"));
}

} // namespace text_table_test
