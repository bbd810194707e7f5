#include <tapegraph/cuda/plan_memory.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <string>

namespace plan_memory_test {

namespace tg = tapegraph;
namespace cuda = tapegraph::cuda;

TEST_CASE("remembered plans: a text has all of them, and gives them back") {
    cuda::plan_memory memory, again;
    CHECK(memory.empty());
    CHECK_FALSE(memory.find("device", "work"));
    memory.keep("device one", "work of a shape", {"kernel 64x64x16 in 3", 12.5});
    memory.keep("device two", "work of a shape", {"other", 0.25});
    memory.keep("device one", "work of a shape", {"kernel 128x128x8", 11});
    CHECK(memory.text() == "tapegraph plans 1\n"
                           "device one\twork of a shape\tkernel 128x128x8\t11.00\n"
                           "device two\twork of a shape\tother\t0.25\n");
    again.add(memory.text(), "test");
    CHECK(again.text() == memory.text());
    REQUIRE(again.find("device two", "work of a shape"));
    CHECK(again.find("device two", "work of a shape")->plan == "other");
    CHECK(again.find("device two", "work of a shape")->microseconds == 0.25);
    // What is read replaces what is known, and keeps the rest.
    again.add("tapegraph plans 1\ndevice two\twork of a shape\tnewer\t3", "test");
    CHECK(again.find("device two", "work of a shape")->plan == "newer");
    CHECK(again.find("device one", "work of a shape")->plan == "kernel 128x128x8");
    again.add("tapegraph plans 1\n", "test");
    again.forget();
    CHECK(again.empty());
}

TEST_CASE("remembered plans: what is no file of plans is refused whole, with the line") {
    cuda::plan_memory memory;
    const auto refused = [&](const std::string& text, const char* why) {
        CHECK_THROWS_WITH_AS(memory.add(text, "plans.txt"), why, tg::data_error);
        CHECK(memory.empty());
    };
    const std::string head = "tapegraph plans 1\n", sound = "d\tw\tp\t1.5\n";
    const char* const fields =
        "plans.txt, line 3: expected device, work, plan and microseconds, with tabs between them";
    refused("", "plans.txt, line 0: the file is empty");
    refused("tapegraph plans 2\n", "plans.txt, line 1: not a file of plans, which begins with 'tapegraph plans 1'");
    refused(sound, "plans.txt, line 1: not a file of plans, which begins with 'tapegraph plans 1'");
    for (const char* line : {"d\tw\tp\n", "d\tw\tp\t\n", "\tw\tp\t1\n", "d\t\tp\t1\n", "d\tw\t\t1\n", "\n", "d w p 1"})
        refused(head + sound + line, fields);
    for (const char* time : {"x", "-1", "1.5x", "nan", "inf", "1e3", " 1"})
        refused(head + sound + "d\tv\tp\t" + time + "\n",
                ("plans.txt, line 3: '" + std::string(time) + "' is not a number of microseconds").c_str());
    refused(head + sound + "d\tv\tp\t1\t2\n", "plans.txt, line 3: a field has a control character");
    refused(head + sound + "d\tv\r\tp\t1\n", "plans.txt, line 3: a field has a control character");
    refused(head + sound + sound, "plans.txt, line 3: a second plan for the same work of one device");
}

TEST_CASE("remembered plans: files are written and read, or named") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "plans.txt").string();
    cuda::plan_memory& memory = cuda::plan_memory::instance();
    memory.keep("d", "w", {"p", 2});
    cuda::save_plans(path);
    memory.forget();
    cuda::load_plans(path);
    CHECK(memory.find("d", "w")->plan == "p");
    memory.forget();
    CHECK_THROWS_WITH_AS(cuda::load_plans(path + "x"), ("load_plans: '" + path + "x' cannot be read").c_str(),
                         tg::data_error);
    CHECK_THROWS_AS(cuda::load_plans(folder.path().string()), tg::data_error);
    CHECK_THROWS_WITH_AS(cuda::save_plans(path + "/below"),
                         ("save_plans: '" + path + "/below': cannot be written: Not a directory").c_str(),
                         tg::data_error);
    std::ofstream(path, std::ios::app) << "and more\n";
    CHECK_THROWS_WITH_AS(
        cuda::load_plans(path),
        ("load_plans: '" + path + "', line 3: expected device, work, plan and microseconds, with tabs between them")
            .c_str(),
        tg::data_error);
}

TEST_CASE("remembered plans: the first that is given out lasts") {
    cuda::lasting_plans<int, std::string> plans;
    CHECK_FALSE(plans.find(1));
    CHECK(plans.keep(1, "first") == "first");
    CHECK(plans.keep(1, "second") == "first");
    CHECK(plans.find(1) == "first");
    CHECK_FALSE(plans.find(2));
}

} // namespace plan_memory_test
