#include <support/temporary_folder.hpp>

#include <tapegraph/train/history.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

namespace history_file_test {

/// The file of a history: whole, or what stood there before.

namespace tg = tapegraph;
using support::message_of;

namespace {
tg::history trained(double loss) {
    tg::history h;
    h.epochs.resize(1);
    h.epochs[0].logs.set("loss", loss);
    return h;
}
std::size_t entries(const std::filesystem::path& folder) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) ++count;
    return count;
}
} // namespace

TEST_CASE("a history's file is written whole, over what stood there") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "history.csv").string();
    trained(0.5).write_csv(path);
    trained(0.25).write_csv(path);
    CHECK(support::read_text(path) == "epoch,loss,seconds\n1,0.25,0\n");
    CHECK(entries(folder.path()) == 1);
}

TEST_CASE("where it cannot be written, the error says which file and why, and nothing is left") {
    const support::temporary_folder folder;
    const std::string nowhere = (folder.path() / "none" / "history.csv").string();
    CHECK(message_of<tg::data_error>([&] { trained(1).write_csv(nowhere); }) ==
          "'" + nowhere + "': cannot be written: No such file or directory");
    const std::string taken = (folder.path() / "folder").string();
    std::filesystem::create_directories(taken + "/something");
    CHECK(message_of<tg::data_error>([&] { trained(1).write_csv(taken); }) ==
          "'" + taken + "': cannot be replaced: Is a directory");
    CHECK(entries(folder.path()) == 1);
}

} // namespace history_file_test
