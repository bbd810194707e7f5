#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/server.hpp>
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/io/callbacks/saving.hpp>
#include <tapegraph/io/callbacks/tensorboard.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/// Who writes files, and what is left of a job that is killed.

namespace chief_test {

using namespace nn_test;
namespace td = tg::distributed;
namespace fs = std::filesystem;

namespace {

tg::data::dataset points(std::int64_t count) {
    tg::data::dataset set;
    set.add("x", noise<float>({count, 6}, 1).to_vector(), {6}).add("label", classes(count, 3, 2).to_vector());
    return set;
}
auto made(td::exchange* ranks) {
    return tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{},
                                  tg::adam{.learning_rate = 0.01},
                                  tg::sharded{.shards = 8, .options = {.seed = 4}, .ranks = ranks});
}
const tg::fit_options options{.epochs = 3, .batch_size = 16, .verbose = 0}; // of five steps each

std::size_t files_in(const fs::path& folder) {
    std::size_t count = 0;
    if (fs::exists(folder))
        for (const auto& each : fs::recursive_directory_iterator(folder)) count += each.is_regular_file() ? 1 : 0;
    return count;
}

} // namespace

TEST_CASE("the chief alone writes, and the others' calls do nothing") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const auto place = [&](int rank) { return folder.path() / std::to_string(rank); };
    // The chief is the first worker, which is rank 1 here.
    const tg::cluster_spec cluster{{"evaluator", {"one"}}, {"worker", {"one", "two", "two"}}};
    td::run_ranks(4, [&](td::exchange& ranks) {
        const tg::server server(ranks, cluster);
        CHECK(ranks.chief() == 1);
        const std::string own = place(ranks.rank()).string();
        if (server.is_chief()) fs::create_directory(own);
        auto model = made(&ranks);
        CHECK(model.writes_files() == server.is_chief());
        tg::tensorboard events{.folder = own + "/events", .update_freq = {1}};
        model.fit(points(70), options, tg::csv_logger{.path = own + "/log.csv"}, events,
                  tg::keep_checkpoints{.folder = own + "/kept"},
                  tg::model_checkpoint{.path = own + "/model-{epoch}.safetensors", .keep = 2},
                  tg::backup_and_restore{.path = own + "/backup.safetensors", .delete_checkpoint = false},
                  tg::on_epoch_end([&](tg::training_state& s) { events.train().scalar("own", 1, s.epoch); }));
        model.save(own + "/last.safetensors");
        tg::checkpoint_manager manager(own + "/by_hand", {.writes = ranks.is_chief()});
        manager.save(model);
        manager.close();
        CHECK(manager.latest().has_value() == ranks.is_chief());
    });
    for (const int rank : {0, 2, 3}) CHECK(!fs::exists(place(rank)));
    // log, backup, last; two of model_checkpoint; events; three checkpoints and one by hand, of two files each.
    CHECK(files_in(place(1)) == 3 + 2 + 1 + 4 * 2);
}

TEST_CASE("ranks read what the chief has kept, and a second fit waits for it") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const std::string kept = (folder.path() / "kept").string();
    auto whole = made(nullptr);
    whole.fit(points(70), options);
    td::run_ranks(4, [&](td::exchange& ranks) {
        auto model = made(&ranks);
        for (const std::int64_t epochs : {1, 2, 3})
            model.fit(points(70), {.epochs = epochs, .batch_size = 16, .verbose = 0},
                      tg::keep_checkpoints{.folder = kept});
        CHECK(first_difference(model, whole) == "");
    });
}

TEST_CASE("a job that is killed continues with half its ranks, to the bits of one that was not") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const std::string kept = (folder.path() / "kept").string();
    const tg::keep_checkpoints keeps{.folder = kept, .every_steps = 2};
    auto whole = made(nullptr);
    const auto history = whole.fit(points(70), options);
    // Killed by its rank 3 after step 8, in the second epoch, while rank 0 may be writing.
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        td::run_ranks(4, [&](td::exchange& ranks) {
            auto model = made(&ranks);
            model.fit(points(70), options, tg::keep_checkpoints(keeps), tg::on_batch_end([&](tg::training_state& s) {
                          if (s.step == 8 && ranks.rank() == 3) ::kill(::getpid(), SIGKILL);
                      }));
        });
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
    const auto left = tg::checkpoint_manager(kept).latest();
    REQUIRE(left.has_value());
    CHECK(*left >= 4); // that of step 6 waits for it
    CHECK(*left <= 8);
    for (const int size : {2, 1}) {
        const support::temporary_folder copy;
        fs::copy(kept, copy.path() / "kept", fs::copy_options::recursive);
        td::run_ranks(size, [&](td::exchange& ranks) {
            auto model = made(&ranks);
            const auto h = model.fit(points(70), options,
                                     tg::keep_checkpoints{.folder = (copy.path() / "kept").string(), .every_steps = 2});
            CHECK(model.step() == 15);
            CHECK(h.epochs.size() == 3);
            for (std::size_t e = 0; e < h.epochs.size(); ++e) CHECK(h.epochs[e].loss == history.epochs[e].loss);
            CHECK(first_difference(model, whole) == "");
        });
    }
}

} // namespace chief_test
