#include <tapegraph/formats/atomic_folder.hpp>
#include <tapegraph/formats/folder_claim.hpp>

#include <support/child_process.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>

/// What is left of processes that were killed while they wrote, and what several processes do to one folder.

namespace unfinished_test {

namespace io = tapegraph::io;
using support::child_process;
using support::contains;
using support::message_of;

namespace {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}
std::size_t unfinished_in(const std::filesystem::path& folder) {
    const auto names = names_in(folder);
    return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [](const std::string& name) {
        return name.starts_with(io::detail::unfinished_prefix);
    }));
}
std::string name_of(const io::detail::process_mark& mark) {
    char place[20];
    const auto end = std::to_chars(place, place + sizeof place, mark.place, 16);
    return std::string(io::detail::unfinished_prefix) + std::string(place, end.ptr) + "-" +
           std::to_string(mark.process) + "-" + std::to_string(mark.start) + "-7";
}

} // namespace

TEST_CASE("what a killed process leaves goes with the next that starts, what a living one writes stays") {
    const support::temporary_folder folder;
    const support::bell begun;
    child_process child([&] {
        io::atomic_file file(folder.path() / "a.txt");
        io::atomic_folder inner(folder.path() / "b");
        io::atomic_file part(inner.path() / "part");
        part.write("x");
        begun.ring();
        for (;;) ::pause();
    });
    begun.wait();
    CHECK(unfinished_in(folder.path()) == 2);
    io::remove_unfinished(folder.path());
    CHECK(unfinished_in(folder.path()) == 2);
    child.signal_kill();
    while (io::detail::status_of(static_cast<std::uint64_t>(child.number())).state != 'Z') ::usleep(100);
    // Its number is not free yet: in a container without an init process it never is.
    io::atomic_file next(folder.path() / "c.txt");
    CHECK(unfinished_in(folder.path()) == 1);
    next.write("whole");
    next.commit();
    CHECK(names_in(folder.path()) == std::vector<std::string>{"c.txt"});
    child.wait();
}

TEST_CASE("whose a name is: numbers are given again, and other places have the same ones") {
    const support::temporary_folder folder;
    const io::detail::process_mark own = io::detail::own_mark();
    REQUIRE(own.process == static_cast<std::uint64_t>(::getpid()));
    const auto stays = [&](const std::string& name) {
        const auto path = folder.write(name, std::string());
        io::remove_unfinished(folder.path());
        return std::filesystem::exists(path);
    };
    CHECK(stays(name_of(own)));
    if (own.place != 0 && own.start != 0) { // where /proc is there
        CHECK(!stays(name_of({own.place, own.process, own.start - 1})));
        CHECK(!stays(name_of({own.place, 4194304, own.start}))); // above the largest number that Linux gives
        CHECK(stays(name_of({own.place, 1, io::detail::status_of(1).start})));
    }
    // Of another container, or another machine: the lock tells, where there can be no other machine.
    const auto elsewhere = folder.write(name_of({own.place + 1, own.process, own.start}), std::string());
    const int file = ::open(elsewhere.c_str(), O_RDONLY | O_CLOEXEC);
    const bool local = io::detail::is_local(file);
    REQUIRE(io::detail::hold_unfinished(file, elsewhere));
    io::remove_unfinished(folder.path());
    CHECK(std::filesystem::exists(elsewhere));
    ::close(file);
    io::remove_unfinished(folder.path());
    CHECK(std::filesystem::exists(elsewhere) == !local);
    // Names that say nothing, as of earlier versions: when they are old.
    for (const char* const name : {".unfinished-12-3", ".unfinished-", ".unfinished-x-1-2-3", ".unfinished-1-2-3-4x"}) {
        CHECK(stays(name));
        const ::timespec past[2]{{1000000000, 0}, {1000000000, 0}};
        REQUIRE(::utimensat(AT_FDCWD, (folder.path() / name).c_str(), past, 0) == 0);
        io::remove_unfinished(folder.path());
        CHECK(!std::filesystem::exists(folder.path() / name));
    }
    CHECK(stays("unfinished-1-1-1-1"));
    io::remove_unfinished(folder.path() / "none"); // no error
}

TEST_CASE("a file that is removed as left behind before it is locked is created again") {
    const support::temporary_folder folder;
    const auto path = folder.write("x", std::string());
    const int first = ::open(path.c_str(), O_RDONLY | O_CLOEXEC), second = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    CHECK(io::detail::hold_unfinished(first, path));
    CHECK(!io::detail::hold_unfinished(second, path)); // somebody is about to remove it
    ::close(first);
    std::filesystem::remove(path);
    CHECK(!io::detail::hold_unfinished(second, path)); // it is removed
    folder.write("x", std::string());
    CHECK(!io::detail::hold_unfinished(second, path)); // and another one is there
    ::close(second);
}

TEST_CASE("processes that write one folder all succeed, and it is whole at any moment") {
    const support::temporary_folder folder;
    const auto name = folder.path() / "run";
    const auto write = [&](char mark, int rounds) {
        for (int i = 0; i < rounds; ++i) {
            io::atomic_folder to(name);
            for (const char* const file : {"a", "b"}) {
                io::atomic_file out(to.path() / file);
                out.write(std::string(1000, mark));
                out.commit();
            }
            to.commit();
            if (i % 3 == 0) io::remove_folder(name);
        }
    };
    child_process first([&] { write('1', 40); }), second([&] { write('2', 40); });
    write('3', 40);
    CHECK(first.wait() == 0);
    CHECK(second.wait() == 0);
    write('4', 2); // the last round does not remove it
    for (const char* const file : {"a", "b"}) CHECK(support::read_text(name / file) == std::string(1000, '4'));
    CHECK(names_in(folder.path()) == std::vector<std::string>{"run"});
}

TEST_CASE("a folder that was removed while it was written is reported") {
    const support::temporary_folder folder;
    io::atomic_folder to(folder.path() / "run");
    std::filesystem::remove_all(to.path().string());
    const std::string text = message_of<tapegraph::data_error>([&] { to.commit(); });
    CHECK(contains(text, "run': cannot be replaced: another process has removed '"));
}

TEST_CASE("one process at a time claims a folder, and the error names it") {
    const support::temporary_folder folder;
    const support::bell begun;
    child_process child([&] {
        const io::folder_claim claim(folder.path());
        begun.ring();
        for (;;) ::pause();
    });
    begun.wait();
    const std::string text = message_of<tapegraph::data_error>([&] { io::folder_claim claim(folder.path()); });
    CHECK(contains(text, folder.path().string() + "': process " + std::to_string(child.number()) + " of '"));
    CHECK(contains(text, "' writes here; two at once would remove"));
    child.kill();
    {
        std::optional<io::folder_claim> claim(folder.path()),
            another(folder.path()); // in one process as many as it likes
        child_process late([&] { io::folder_claim refused(folder.path()); });
        CHECK(late.wait() == 1);
        claim.reset(); // does not end the other one's
        child_process later([&] { io::folder_claim refused(folder.path()); });
        CHECK(later.wait() == 1);
    }
    CHECK(names_in(folder.path()).empty());
    child_process next([&] { io::folder_claim claim(folder.path()); });
    CHECK(next.wait() == 0);
    const io::folder_claim nowhere(folder.path() / "none"); // what writes there says what is wrong
}

} // namespace unfinished_test
