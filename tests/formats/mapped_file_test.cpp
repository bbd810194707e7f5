#include <doctest/doctest.h>

#include <tapegraph/formats/mapped_file.hpp>

#include <support/temporary_folder.hpp>

namespace mapped_file_test {

using tapegraph::data_error;
using tapegraph::io::file_access;
using tapegraph::io::mapped_file;

namespace {

std::string text_of(const mapped_file& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

} // namespace

TEST_CASE("a mapped file is its bytes") {
    const support::temporary_folder folder;
    for (const std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 100003u}) {
        std::string bytes(size, '\0');
        for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
        const auto path = folder.write("file", bytes);
        for (const auto access : {file_access::random, file_access::sequential, file_access::all}) {
            const mapped_file file(path, access);
            CHECK(file.size() == size);
            CHECK(text_of(file) == bytes);
        }
    }
}

TEST_CASE("a mapping outlives its file's name, and moves") {
    const support::temporary_folder folder;
    mapped_file file(folder.write("a", std::string("first")));
    std::filesystem::remove(folder.path() / "a");
    mapped_file other(std::move(file));
    CHECK(text_of(other) == "first");
    CHECK(file.size() == 0); // NOLINT: what a moved one is, is said
    other = mapped_file(folder.write("b", std::string("second")));
    CHECK(text_of(other) == "second");
}

TEST_CASE("what cannot be mapped is named") {
    const support::temporary_folder folder;
    const auto message = [&](const char* name) {
        return support::message_of<data_error>([&] { mapped_file file(folder.path() / name); });
    };
    CHECK(support::contains(message("none"), "none': no such file"));
    std::filesystem::create_directory(folder.path() / "folder");
    CHECK(support::contains(message("folder"), "folder': not a regular file"));
}

} // namespace mapped_file_test
