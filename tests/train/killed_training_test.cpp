#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/data/pipeline/cache_file.hpp>
#include <tapegraph/formats/safetensors_reader.hpp>
#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/io/callbacks/saving.hpp>
#include <tapegraph/tapegraph.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <support/child_process.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/resource.h>

/// A training that is killed at any moment, started again until it ends, has the bits of one that nobody disturbed; whatever ended a start, its
/// files are whole and nothing else is left. TAPEGRAPH_KILLS says how many times, ten without.

namespace killed_training_test {

namespace tg = tapegraph;
namespace data = tapegraph::data;
using support::child_process;
using path = std::filesystem::path;

namespace {

/// Who throws what in the middle of a training: 0 nobody, else the call that does.
struct faults {
    inline static int callback = 0, pipeline = 0, model = 0;
    static void meet(int& left, const char* who) {
        if (left > 0 && --left == 0) throw std::runtime_error(who);
    }
};

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        if (!std::is_constant_evaluated())
            faults::meet(faults::model, "model"); // eager mode's, which is called at each step
        const auto h = tg::dropout(scope / "drop", tanh(tg::dense(scope / "hidden", x, {.units = 40})), {.rate = 0.3});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};

const tg::fit_options options{.epochs = 4, .verbose = 0};

/// One start of the program: it goes on from what is in the folder, and writes the result there.
template <class Mode>
void start(const path& folder) {
    auto model = tg::compile<Mode>(network{}, tg::spec<float, tg::dyn, 2>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::adam{}, {.seed = 3});
    const auto set = data::range(23)
                         .map(
                             [](std::int64_t i) {
                                 faults::meet(faults::pipeline, "pipeline");
                                 return std::tuple(std::array{static_cast<float>(i % 7) - 3, static_cast<float>(i % 5)},
                                                   static_cast<std::int32_t>(i * i % 3));
                             },
                             {.threads = 2})
                         .cache(data::in_file{(folder / "cache").string()})
                         .shuffle(5)
                         .batch(4)
                         .prefetch(2);
    auto fault = tg::on_batch_end([](tg::training_state&) { faults::meet(faults::callback, "callback"); });
    tg::csv_logger log{.path = folder / "log.csv"};
    if constexpr (std::is_same_v<Mode, tg::graph>)
        model.fit(set, options, log, fault,
                  tg::keep_checkpoints{.folder = folder / "run", .every_steps = 3, .options = {.max_to_keep = 2}});
    else
        model.fit(set, options, log, fault,
                  tg::model_checkpoint{.path = folder / "epoch-{epoch}.safetensors", .keep = 2},
                  tg::backup_and_restore{.path = folder / "backup.safetensors", .every_steps = 3});
    model.save(folder / "result.safetensors", {.optimizer_state = true});
}

std::vector<path> files_in(const path& folder) {
    std::vector<path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        files.push_back(std::filesystem::relative(entry.path(), folder));
    std::sort(files.begin(), files.end());
    return files;
}
/// What stands under a name of its own can be read, whatever happened.
void check_readable(const path& folder) {
    for (const path& file : files_in(folder)) {
        if (file.string().find(".unfinished-") != std::string::npos) continue;
        if (file.extension() == ".safetensors") CHECK_NOTHROW(tg::io::read_safetensors_file((folder / file).string()));
    }
    if (!std::filesystem::exists(folder / "run")) return;
    tg::checkpoint_manager run((folder / "run").string(), {.writes = false});
    for (const std::int64_t step : run.steps()) CHECK(run.state_of(step).step == step);
}
bool nothing_unfinished(const path& folder) {
    for (const path& file : files_in(folder))
        if (file.string().find(".unfinished-") != std::string::npos) return false;
    return true;
}
/// Both have the same files with the same bytes; those of checkpoints also hold how long epochs took.
void check_same(const path& folder, const path& whole) {
    std::string only;
    for (const auto& [some, others] : {std::pair(folder, whole), std::pair(whole, folder)})
        for (const path& file : files_in(some))
            if (!std::filesystem::exists(others / file)) only += (some / file).string() + "\n";
    CHECK(only == "");
    for (const char* const file : {"result.safetensors", "log.csv", "cache"})
        CHECK(support::read_text(folder / file) == support::read_text(whole / file));
}
path made(const path& folder) {
    std::filesystem::create_directories(folder);
    return folder;
}

} // namespace

TEST_CASE_TEMPLATE("killed at random moments and started again, training ends in the same bits", Mode, tg::graph,
                   tg::eager) {
    const char* const kills_text = std::getenv("TAPEGRAPH_KILLS");
    const int kills = kills_text != nullptr ? std::atoi(kills_text) : 10;
    const support::temporary_folder folder;
    const path whole = made(folder.path() / "whole");
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(child_process([&] { start<Mode>(whole); }).wait() == 0);
    const auto time = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    std::mt19937 random(7);
    int killed = 0, left = 0, ended = 0;
    for (int run = 0; killed < kills; ++run) {
        const path place = made(folder.path() / std::to_string(run));
        for (bool done = false; !done;) {
            child_process child([&] { start<Mode>(place); });
            if (killed < kills) {
                // So that a training needs several starts, and each moment of it is met.
                ::usleep(static_cast<::useconds_t>(std::uniform_real_distribution<double>(0, time / 3)(random)));
                child.signal_kill();
            }
            const int status = child.wait();
            REQUIRE(status <= 0); // killed, or at its end, but not by an error
            done = status == 0;
            killed += !done;
            left += !nothing_unfinished(place);
            check_readable(place);
        }
        ++ended;
        check_same(place, whole);
        std::filesystem::remove_all(place);
    }
    MESSAGE(killed << " kills in " << ended << " trainings, files were left behind " << left << " times");
}

TEST_CASE_TEMPLATE("an exception of a callback, a pipeline or a model leaves nothing behind, and training can continue",
                   Mode, tg::graph, tg::eager) {
    const support::temporary_folder folder;
    const path whole = made(folder.path() / "whole");
    start<Mode>(whole);
    for (int* const fault : {&faults::callback, &faults::pipeline, &faults::model})
        for (const int call : {1, 5, 20}) {
            if (fault == &faults::model && std::is_same_v<Mode, tg::graph>) continue;
            CAPTURE(call);
            const path place = made(folder.path() / "place");
            *fault = call;
            CHECK_THROWS(start<Mode>(place));
            CHECK(*fault == 0);
            check_readable(place);
            CHECK(nothing_unfinished(place));
            start<Mode>(place);
            check_same(place, whole);
            std::filesystem::remove_all(place);
        }
}

TEST_CASE_TEMPLATE("a disk that is full ends training with one line, and is no reason to begin anew", Mode, tg::graph,
                   tg::eager) {
    const support::temporary_folder folder;
    const path whole = made(folder.path() / "whole"), place = made(folder.path() / "place");
    start<Mode>(whole);
    child_process child([&] {
        ::signal(SIGXFSZ, SIG_IGN); // the call then fails, as it does when a disk is full
        for (const ::rlim_t most : {0, 100, 1000, 5000}) {
            ::rlimit now{};
            ::getrlimit(RLIMIT_FSIZE, &now);
            ::rlimit less{most, now.rlim_max};
            ::setrlimit(RLIMIT_FSIZE, &less);
            bool failed = false;
            try {
                start<Mode>(place);
            } catch (const std::exception& e) {
                const std::string text = e.what();
                failed = text.find("writing") != std::string::npos && text.find('\n') == std::string::npos;
            }
            ::setrlimit(RLIMIT_FSIZE, &now);
            if (!failed || !nothing_unfinished(place)) throw std::runtime_error("not as it should");
        }
        start<Mode>(place);
    });
    REQUIRE(child.wait() == 0);
    check_same(place, whole);
}

} // namespace killed_training_test
