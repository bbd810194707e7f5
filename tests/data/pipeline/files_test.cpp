#include <data/pipeline/collected.hpp>
#include <tapegraph/data/pipeline/csv_rows.hpp>

#include <support/temporary_folder.hpp>

#include <tuple>

#if __has_include(<zlib.h>)
#include <tapegraph/data/pipeline/gzip_lines.hpp>
#endif

namespace pipeline_files_test {

using namespace pipeline_test;
using texts = std::vector<std::string>;

TEST_CASE("files by pattern, and in class folders") {
    const support::temporary_folder folder;
    const std::string root = folder.path().string();
    for (const char* name : {"dog", "cat", "cat/deep.png"}) std::filesystem::create_directory(folder.path() / name);
    for (const char* name : {"b.txt", "a.txt", "c.csv", "dog/1.PNG", "dog/notes", "cat/2.jpg", "cat/10.jpeg"})
        folder.write(name, "x");
    CHECK(elements_of(data::files(root + "/*.txt")) == texts{root + "/a.txt", root + "/b.txt"});
    CHECK(elements_of(data::files({root + "/[bc].*", root + "/b.*"})) == texts{root + "/b.txt", root + "/c.csv"});
    CHECK(elements_of(data::files(root + "/cat/*")).size() == 2); // no folders
    CHECK_THROWS_WITH_AS(data::files(root + "/*.npy"), ("files: nothing matches '" + root + "/*.npy'").c_str(),
                         tg::data_error);
    CHECK(data::class_folders(root) == texts{"cat", "dog"});
    const auto labelled = elements_of(data::labelled_files(root));
    using pair = std::tuple<std::string, std::int32_t>;
    CHECK(labelled ==
          std::vector<pair>{{root + "/cat/10.jpeg", 0}, {root + "/cat/2.jpg", 0}, {root + "/dog/1.PNG", 1}});
    CHECK(data::labelled_files(root, {}).size() == 4);
    CHECK_THROWS_WITH_AS(data::labelled_files(root, {"jpg"}), ("'" + root + "/dog': no files of the class").c_str(),
                         tg::data_error);
    CHECK_THROWS_WITH_AS(data::labelled_files(root + "/cat/deep.png"),
                         ("'" + root + "/cat/deep.png': no class folders").c_str(), tg::data_error);
    const auto decoded = data::labelled_files(root).map(
        [](const std::string&, int label) {
            if (label == 1) throw tg::data_error("no picture");
            return label;
        },
        {.threads = 2});
    CHECK_THROWS_WITH_AS(elements_of(decoded),
                         ("data pipeline: epoch 0, element 2 ('" + root + "/dog/1.PNG'): no picture").c_str(),
                         data::record_error);
}

TEST_CASE("lines of text") {
    const support::temporary_folder folder;
    const std::string a = folder.write("a", std::string("one\r\n\ntwo")), b = folder.write("b", std::string("")),
                      c = folder.write("c", std::string("three\n"));
    const std::string big(70001, 'x'); // more than a block
    const std::string d = folder.write("d", big + "\n" + big);
    CHECK(elements_of(data::text_lines({a, b, c})) == texts{"one", "", "two", "three"});
    CHECK(elements_of(data::text_lines(b)).empty());
    CHECK(elements_of(data::text_lines({d, a})) == texts{big, big, "one", "", "two"});
    CHECK_THROWS_WITH_AS(elements_of(data::text_lines({a, d}, 1000)),
                         ("data pipeline: epoch 0, element 3: '" + d + "', line 1: longer than 1000 bytes").c_str(),
                         data::record_error);
    CHECK_THROWS_WITH_AS(elements_of(data::text_lines(a + "x")),
                         ("data pipeline: epoch 0, element 0: '" + a + "x': cannot be opened").c_str(),
                         data::record_error);
    const auto parsed = data::text_lines({a, c}).map([](const std::string& line) {
        if (line == "two") throw tg::data_error("no number");
        return line.size();
    });
    CHECK_THROWS_WITH_AS(elements_of(parsed),
                         ("data pipeline: epoch 0, element 2 ('" + a + "', line 3): no number").c_str(),
                         data::record_error);
    const auto nested = data::files(folder.path().string() + "/[ac]").flat_map([](const std::string& path) {
        return data::text_lines(path);
    });
    CHECK(elements_of(nested) == texts{"one", "", "two", "three"});
}

TEST_CASE("rows of CSV files") {
    const support::temporary_folder folder;
    const std::string a = folder.write("a.csv", std::string("x,y,name\n1,2.5,\"a,b\"\n3,4.5,c\n")),
                      b = folder.write("b.csv", std::string("name,x\nd,7\n"));
    using row = std::tuple<std::string, int>;
    CHECK(elements_of(data::csv_rows<std::string, int>({a, b}, {"name", "x"})) ==
          std::vector<row>{{"a,b", 1}, {"c", 3}, {"d", 7}});
    CHECK(elements_of(data::csv_rows<int, float>({a})) == std::vector<std::tuple<int, float>>{{1, 2.5f}, {3, 4.5f}});
    CHECK(elements_of(data::csv_rows({b})) == std::vector<texts>{{"d", "7"}});
    CHECK(elements_of(data::csv_rows({a}, {"y"})) == std::vector<texts>{{"2.5"}, {"4.5"}});
    CHECK_THROWS_AS(elements_of(data::csv_rows<int, int>({a})), data::record_error);
    CHECK_THROWS_WITH_AS((data::csv_rows<int>({a}, {"x", "y"})), "csv_rows: 2 columns are named for 1 fields",
                         tg::argument_error);
}

TEST_CASE("records of a data set") {
    data::dataset set;
    set.add("image", std::vector<float>{0, 1, 2, 3, 4, 5}, {2}).add("label", std::vector<std::int32_t>{7, 8, 9});
    const auto all =
        elements_of(data::records<tg::tensor<float>, std::int32_t>(set.subset(std::vector<std::int64_t>{2, 0})));
    REQUIRE(all.size() == 2);
    CHECK(std::get<0>(all[0]).to_vector() == std::vector<float>{4, 5});
    CHECK(std::get<1>(all[1]) == 7);
    CHECK(elements_of(data::records<std::int32_t>(set, {"label"})) == std::vector<std::int32_t>{7, 8, 9});
    CHECK(elements_of(data::records<std::array<float, 2>>(set, {"image"}))[1] == std::array<float, 2>{2, 3});
    CHECK_THROWS_WITH_AS((data::records<float>(set)), "records: 1 fields for 2 columns", tg::argument_error);
    CHECK_THROWS_WITH_AS((data::records<float>(set, {"image"})),
                         "records: column 'image' has records of shape [2], its field 1 values", tg::shape_error);
    CHECK_THROWS_WITH_AS((data::records<double>(set, {"label"})), "data set: column 'label' holds i32, not f64",
                         tg::dtype_error);
    data::labelled_images images{{1, 2, 3, 4}, 2, 1, 2, 1, {0, 1}, {"a", "b"}};
    CHECK(std::get<0>(elements_of(data::records(images))[1]).shape() == tg::shape{1, 2, 1});
}

#if __has_include(<zlib.h>)
TEST_CASE("lines of compressed text") {
    const support::temporary_folder folder;
    std::string text;
    for (int i = 0; i < 20000; ++i) text += "line " + std::to_string(i) + "\n";
    const std::string path = (folder.path() / "a.gz").string();
    const gzFile out = ::gzopen(path.c_str(), "wb");
    ::gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
    ::gzclose(out);
    const auto lines = elements_of(data::gzip_lines({path, folder.write("plain", std::string("end"))}));
    REQUIRE(lines.size() == 20001);
    CHECK(lines[19999] == "line 19999");
    CHECK(lines.back() == "end");
    const std::string whole = support::read_text(path);
    const std::string half = folder.write("half.gz", whole.substr(0, whole.size() / 2));
    try {
        elements_of(data::gzip_lines(half));
        CHECK(false);
    } catch (const data::record_error& e) {
        CHECK(std::string(e.what()).find("'" + half + "': corrupt gzip data at byte ") != std::string::npos);
    }
}
#endif

} // namespace pipeline_files_test
