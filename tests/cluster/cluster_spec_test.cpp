#include <tapegraph/distributed.hpp>

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>

namespace tg = tapegraph;
namespace td = tapegraph::distributed;

namespace cluster_spec_test {

const tg::cluster_spec two_jobs{{"worker", {"one:2222", "one:2223", "two:2222"}}, {"ps", {"three:2222"}}};

TEST_CASE("tasks are ranks in order") {
    CHECK(two_jobs.size() == 4);
    CHECK(two_jobs.tasks("ps") == std::vector<std::string>{"three:2222"});
    const char* const names[] = {"/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2", "/job:ps/task:0"};
    for (int rank = 0; rank < 4; ++rank) {
        CHECK(two_jobs.task_of(rank).text() == names[rank]);
        CHECK(two_jobs.rank_of(tg::parse_task_name(names[rank])) == rank);
    }
    CHECK(tg::parse_task_name("/job:ps") == tg::task_name{"ps", 0});
    CHECK(tg::parse_task_name("/job:worker/replica:0/task:2/device:CPU:0") == tg::task_name{"worker", 2});
    CHECK_THROWS_WITH_AS(two_jobs.tasks("evaluator"), "cluster_spec: no job 'evaluator'; there are: worker, ps",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(two_jobs.rank_of({"worker", 3}),
                         "cluster_spec: no /job:worker/task:3; job 'worker' has 3 tasks", tg::range_error);
    CHECK_THROWS_WITH_AS(two_jobs.task_of(4), "cluster_spec: no rank 4 among 4", tg::range_error);
    for (const char* wrong :
         {"", "worker", "/worker", "/job:", "/job:worker/task:x", "/task:1", "/job:a/thing:1", "/job:a/task:-1"})
        CHECK_THROWS_WITH_AS(tg::parse_task_name(wrong),
                             doctest::Contains("names no task; expected /job:NAME/task:NUMBER"), tg::argument_error);
}

TEST_CASE("from text, JSON, a file and TF_CONFIG") {
    const char* const json = R"({"worker": ["one:2222", "one:2223", "two:2222"], "ps": {"0": "three:2222"}})";
    CHECK(tg::cluster_spec::from_string("worker=one:2222,one:2223,two:2222;ps=three:2222") == two_jobs);
    CHECK(tg::cluster_spec::from_string(two_jobs.text()) == two_jobs);
    CHECK(tg::cluster_spec::from_json(json) == two_jobs);
    const std::string path = "cluster_spec_test.json";
    std::ofstream(path) << json;
    CHECK(tg::cluster_spec::from_file(path) == two_jobs);
    std::remove(path.c_str());
    CHECK_THROWS_AS(tg::cluster_spec::from_file("missing_cluster.json"), tg::data_error);

    ::unsetenv("TF_CONFIG");
    CHECK_FALSE(tg::cluster_of_environment());
    ::setenv(
        "TF_CONFIG",
        (R"({"cluster": )" + std::string(json) + R"(, "task": {"type": "ps", "index": 0}, "environment": "cloud"})")
            .c_str(),
        1);
    const auto config = tg::cluster_of_environment();
    REQUIRE(config);
    CHECK(config->cluster == two_jobs);
    CHECK(config->task == tg::task_name{"ps", 0});
    ::setenv("TF_CONFIG", R"({"cluster": {"worker": ["a"]}, "task": {"type": "ps", "index": 0}})", 1);
    CHECK_THROWS_WITH_AS(tg::cluster_of_environment(), "cluster_spec: no job 'ps'; there are: worker",
                         tg::argument_error);
    ::setenv("TF_CONFIG", R"({"task": {"type": "ps", "index": 0}})", 1);
    CHECK_THROWS_WITH_AS(tg::cluster_of_environment(), "TF_CONFIG: no \"cluster\"", tg::data_error);
    ::setenv("TF_CONFIG", "worker", 1);
    CHECK_THROWS_WITH_AS(tg::cluster_of_environment(), doctest::Contains("TF_CONFIG: "), tg::data_error);
    ::unsetenv("TF_CONFIG");
}

TEST_CASE("specifications that are none") {
    using spec = tg::cluster_spec;
    CHECK_THROWS_WITH_AS((spec{{"worker", {"a"}}, {"worker", {"b"}}}), "cluster_spec: job 'worker' appears twice",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS((spec{{"worker", {}}}), "cluster_spec: job 'worker' has no task", tg::argument_error);
    CHECK_THROWS_WITH_AS((spec{{"", {"a"}}}), "cluster_spec: '' names no job", tg::argument_error);
    CHECK_THROWS_WITH_AS((spec{{"ps", {":2222"}}}), "cluster_spec: job 'ps': ':2222' names no host",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(spec(std::vector<spec::job>{}), "cluster_spec: no job", tg::argument_error);
    CHECK_THROWS_WITH_AS(spec::from_string("one:2222"), "cluster_spec: 'one:2222'; expected JOB=HOST,HOST",
                         tg::argument_error);
    CHECK_THROWS_WITH_AS(spec::from_json(R"({"worker": {"1": "a"}})"),
                         doctest::Contains("job 'worker' has task '1' where 0 is expected"), tg::data_error);
    CHECK_THROWS_WITH_AS(spec::from_json(R"({"worker": []})"), doctest::Contains("job 'worker' has no task"),
                         tg::data_error);
    CHECK_THROWS_AS(spec::from_json(R"({"worker": [1]})"), tg::data_error);
}

TEST_CASE("host files and the line that starts all") {
    CHECK(two_jobs.host_file() == "one slots=2\ntwo slots=1\nthree slots=1\n");
    CHECK(two_jobs.host_file(true) == "one:2\ntwo:1\nthree:1\n");
    CHECK(two_jobs.mpirun_line("./train") ==
          "mpirun -n 2 --host one:2 ./train : -n 1 --host two:1 ./train : -n 1 --host three:1 ./train");
    const tg::cluster_spec mixed{{"worker", {"one", "two"}}, {"ps", {"one"}}};
    CHECK_THROWS_WITH_AS(mixed.host_file(),
                         "cluster_spec: the tasks of host 'one' are not consecutive; mpirun_line says where each runs",
                         tg::argument_error);
    CHECK(mixed.mpirun_line("./train", true) ==
          "mpirun -n 1 -host one ./train : -n 1 -host two ./train : -n 1 -host one ./train");
    CHECK(tg::cluster_spec{{"worker", {"[::1]:2222"}}}.host_file() == "::1 slots=1\n");
}

TEST_CASE("a server joins: every rank is its task, or every rank hears why not") {
    td::run_ranks(4, [](td::exchange& ranks) {
        const tg::server server(ranks, two_jobs);
        REQUIRE(server.task() == two_jobs.task_of(ranks.rank()));
        REQUIRE(server.is_chief() == (ranks.rank() == 0));
        const tg::server named(ranks, two_jobs, two_jobs.task_of(ranks.rank()));
        REQUIRE(named.task() == server.task());
    });
    const auto messages = [](int size, auto make) {
        std::vector<std::string> result(static_cast<std::size_t>(size));
        td::run_ranks(size, [&](td::exchange& ranks) {
            try {
                make(ranks);
            } catch (const tg::exchange_error& e) {
                result[static_cast<std::size_t>(ranks.rank())] = e.what();
            }
        });
        return result;
    };
    CHECK(messages(2, [](td::exchange& ranks) { tg::server(ranks, two_jobs); }) ==
          std::vector<std::string>(2, "server: 2 ranks cannot be the 4 tasks of the cluster"));
    CHECK(messages(4,
                   [](td::exchange& ranks) {
                       tg::server(ranks, two_jobs,
                                  ranks.rank() == 3 ? tg::task_name{"worker", 2} : two_jobs.task_of(ranks.rank()));
                   }) ==
          std::vector<std::string>(
              4, "ranks do not agree: rank 3 has tasks /job:worker/task:2, rank 0 has in order of ranks"));
    CHECK(
        messages(2, [](td::exchange& ranks) {
            tg::server(ranks, ranks.rank() == 0 ? tg::cluster_spec{{"worker", {"a", "b"}}}
                                                : tg::cluster_spec{{"worker", {"a", "c"}}});
        }) == std::vector<std::string>(2, "ranks do not agree: rank 1 has cluster worker=a,c, rank 0 has worker=a,b"));
}

} // namespace cluster_spec_test
