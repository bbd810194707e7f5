#include <tapegraph/formats/folder.hpp>
#include <tapegraph/formats/path.hpp>

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <support/temporary_folder.hpp>
#include <system_error>
#include <vector>

namespace path_test {

namespace files = tapegraph::files;

TEST_CASE("files::path: parts of names are those that std::filesystem finds") {
    for (const char* const name : {"", "a", ".", "..", "/", "/a", "a/b", "a/b/", "a//b", "//a", ".hidden", "a.b",
                                   "a.b.c", "a.", "..a", "d.e/f", "x/..", "x/.y"}) {
        CAPTURE(name);
        const files::path ours = name;
        const std::filesystem::path theirs = name;
        CHECK(ours.filename().string() == theirs.filename().string());
        CHECK(ours.extension().string() == theirs.extension().string());
        CHECK(ours.stem().string() == theirs.stem().string());
        CHECK(ours.is_absolute() == theirs.is_absolute());
        CHECK(ours.empty() == theirs.empty());
        for (const char* const inner : {"", "z", "/z", "y/z"}) {
            CAPTURE(inner);
            CHECK((ours / inner).string() == (theirs / inner).string());
        }
        // Of "/" and "//" the standard says nothing that anybody asks here.
        if (theirs.has_filename()) CHECK(ours.parent_path().string() == theirs.parent_path().string());
    }
}

TEST_CASE("files::path: made of what names a file, and given to who wants a std::filesystem::path") {
    const auto length = [](const files::path& p) { return p.string().size(); };
    CHECK(length("abc") == 3);
    CHECK(length(std::string("abc")) == 3);
    CHECK(length(std::string_view("abc")) == 3);
    CHECK(length(std::filesystem::path("abc")) == 3);
    const files::path name = "a/b";
    const std::filesystem::path given = name;
    CHECK(given == "a/b");
    CHECK(name == given);
    CHECK(given == name);
    CHECK(name == "a/b");
    CHECK_FALSE(name == std::filesystem::path("a"));
    CHECK(files::path("a") < files::path("b"));
    std::ostringstream out;
    out << name;
    CHECK(out.str() == "\"a/b\"");
}

TEST_CASE("files: folders are made, listed and removed") {
    const support::temporary_folder folder;
    const files::path root = folder.path();
    std::error_code failure;
    CHECK(files::create_directories(root / "a/b//c/", failure));
    CHECK(std::filesystem::is_directory(folder.path() / "a" / "b" / "c"));
    CHECK(files::create_directories(root / "a", failure)); // it is there
    CHECK_FALSE(failure);
    std::ofstream((root / "a/file").c_str()) << "text";
    CHECK(files::exists(root / "a/file", failure));
    CHECK_FALSE(files::exists(root / "a/file/inner", failure));
    CHECK_FALSE(failure);
    CHECK_FALSE(files::is_directory(root / "a/file", failure));
    CHECK_FALSE(files::create_directories(root / "a/file/inner", failure));
    CHECK(failure == std::errc::not_a_directory);

    std::vector<std::string> names;
    for (const auto& entry : files::directory_iterator(root / "a", failure))
        names.push_back(entry.path().filename().string() + (entry.is_directory() ? "/" : ""));
    CHECK_FALSE(failure);
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"b/", "file"});
    CHECK(files::directory_iterator(root / "a/b/c", failure) == files::directory_iterator());
    CHECK(files::directory_iterator(root / "none", failure) == files::directory_iterator());
    CHECK(failure == std::errc::no_such_file_or_directory);

    // What a link names stays.
    std::filesystem::create_directory(folder.path() / "kept");
    std::filesystem::create_directory_symlink(folder.path() / "kept", folder.path() / "a" / "link");
    CHECK(files::remove(root / "a/file", failure));
    CHECK_FALSE(files::remove(root / "a/file", failure));
    CHECK_FALSE(failure);
    CHECK_FALSE(files::remove(root / "a", failure)); // there is something in it
    CHECK(failure);
    files::remove_all(root / "a", failure);
    CHECK_FALSE(failure);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "a"));
    CHECK(std::filesystem::is_directory(folder.path() / "kept"));
    files::remove_all(root / "a", failure);
    CHECK_FALSE(failure);
}

} // namespace path_test
