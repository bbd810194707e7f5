#include <tapegraph/formats/file.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>

namespace file_test {

using tapegraph::data_error;
using tapegraph::io::atomic_file;
using tapegraph::io::read_file;

TEST_CASE("atomic_file replaces the old file at commit and not before") {
    const support::temporary_folder folder;
    const auto path = folder.write("a.txt", std::string("old"));
    {
        atomic_file out(path);
        out.write("new text");
        CHECK(support::read_text(path) == "old");
        out.commit();
    }
    CHECK(support::read_text(path) == "new text");
    {
        atomic_file out(path);
        out.write("never");
    }
    CHECK(support::read_text(path) == "new text");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1); // nothing temporary is left
}

TEST_CASE("files that cannot be written or read are named") {
    const support::temporary_folder folder;
    const auto missing = folder.path() / "none" / "a.txt";
    CHECK(support::contains(support::message_of<data_error>([&] { atomic_file out(missing); }), missing.string()));
    CHECK(support::message_of<data_error>([&] { read_file(missing); }) == "'" + missing.string() + "': no such file");
    CHECK(support::contains(support::message_of<data_error>([&] { read_file(folder.path()); }), "not a regular file"));
    CHECK(read_file(folder.write("empty", std::string())).empty());

    // A folder stands where the file should go: the rename fails, and the temporary file goes.
    std::filesystem::create_directories(folder.path() / "taken" / "inside");
    CHECK(support::contains(support::message_of<data_error>([&] {
                                atomic_file out(folder.path() / "taken");
                                out.commit();
                            }),
                            "cannot be replaced"));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

} // namespace file_test
