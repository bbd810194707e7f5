#include <doctest/doctest.h>

#include <tapegraph/io/checkpoint_manager.hpp>

#include <support/child_process.hpp>
#include <support/temporary_folder.hpp>

#include <chrono>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

namespace checkpoint_manager_test {

namespace tg = tapegraph;

namespace {

/// What the manager asks of a model, without one: tensors that all hold the number of the step.
struct numbers {
    std::int64_t count = 0;
    std::vector<float> values = std::vector<float>(20011);
    float scalar = 0;

    explicit numbers(std::int64_t step = 0) { set(step); }
    void set(std::int64_t step) {
        count = step;
        values.assign(values.size(), static_cast<float>(step));
        scalar = static_cast<float>(step);
    }
    std::int64_t step() const { return count; }
    void save(const tg::detail::snapshot_place& to, const tg::save_options&) const {
        to.snapshot.take({{{"values", tg::dtype::f32, {20011}, values.data()}, {"scalar", tg::dtype::f32, {}, &scalar}},
                          {{"seed", "18446744073709551615"}}});
    }
    void load(const std::filesystem::path& path, const tg::load_options&) {
        const tg::io::safetensors_reader file(path);
        const auto stored = file.at("values").values<float>();
        values.assign(stored.begin(), stored.end());
        scalar = file.at("scalar").values<float>()[0];
        count = static_cast<std::int64_t>(scalar);
    }
    bool holds(std::int64_t step) const {
        for (const float v : values)
            if (v != static_cast<float>(step)) return false;
        return scalar == static_cast<float>(step);
    }
};

std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}
using steps = std::vector<std::int64_t>;

} // namespace

TEST_CASE("checkpoints are folders, of which the newest are kept") {
    const support::temporary_folder folder;
    const auto run = folder.path() / "a" / "run";
    for (const bool background : {false, true}) {
        CAPTURE(background);
        std::filesystem::remove_all(run);
        tg::checkpoint_manager m(run, {.max_to_keep = 2, .background = background});
        numbers model;
        CHECK(!m.latest());
        CHECK(!m.restore_latest(model));
        for (const std::int64_t step : {3, 20, 1234567}) {
            model.set(step);
            m.save(model, {.epoch = 2, .position = 7, .metrics = {{"loss", 0.1}, {"none", std::nan("")}}});
            model.set(-1); // what is written is a copy
        }
        m.close();
        CHECK(m.steps() == steps{20, 1234567});
        CHECK(names_in(run) == std::vector<std::string>{"step-000020", "step-1234567"});
        CHECK(names_in(run / "step-000020") == std::vector<std::string>{"model.safetensors", "state.json"});
        CHECK(support::read_text(run / "step-000020" / "state.json") ==
              "{\"step\":20,\"epoch\":2,\"position\":7,\"seed\":18446744073709551615,\"metrics\":{\"loss\":0.1,"
              "\"none\":null}}\n");
        tg::checkpoint_manager again(run);
        const auto state = again.restore_latest(model);
        REQUIRE(state);
        CHECK(model.holds(1234567));
        CHECK(state->step == 1234567);
        CHECK(state->epoch == 2);
        CHECK(state->position == 7);
        CHECK(state->seed == UINT64_MAX);
        CHECK(state->metric("loss") == 0.1);
        CHECK(std::isnan(state->metric("none")));
        CHECK(std::isnan(state->metric("other")));
        again.restore(model, 20);
        CHECK(model.holds(20));
    }
}

TEST_CASE("the best checkpoint and those of chosen steps stay") {
    const support::temporary_folder folder;
    tg::checkpoint_manager m(folder.path(), {.max_to_keep = 1, .best = "val_accuracy"});
    CHECK(!m.best());
    const double accuracy[] = {0.5, 0.9, std::nan(""), 0.9, 0.2};
    for (std::int64_t i = 0; i < 5; ++i) m.save(numbers(i + 1), {.metrics = {{"val_accuracy", accuracy[i]}}});
    m.wait();
    CHECK(m.steps() == steps{2, 5});
    CHECK(m.best() == 2);
    numbers model;
    CHECK(m.restore_best(model)->step == 2);
    CHECK(model.holds(2));
    // One that is better replaces it, in another process, too.
    tg::checkpoint_manager again(folder.path(), {.max_to_keep = 1, .best = "val_accuracy"});
    again.save(numbers(6), {.metrics = {{"val_accuracy", 1}}});
    again.save(numbers(7), {.metrics = {{"val_accuracy", 0}}});
    again.wait();
    CHECK(again.steps() == steps{6, 7});
    CHECK(support::contains(support::message_of<tg::argument_error>([&] { again.save(numbers(8)); }),
                            "no metric 'val_accuracy', which is to be best"));

    const support::temporary_folder other;
    tg::checkpoint_manager every(other.path(),
                                 {.max_to_keep = 2, .keep_every_steps = 4, .best = "loss", .background = false});
    for (std::int64_t i = 1; i <= 10; ++i) every.save(numbers(i), {.metrics = {{"loss", i == 3 ? 0.0 : 1.0}}});
    CHECK(every.steps() == steps{3, 4, 8, 9, 10});
    tg::checkpoint_manager all(other.path(), {.max_to_keep = 0, .background = false});
    all.save(numbers(11));
    CHECK(all.steps() == steps{3, 4, 8, 9, 10, 11});
}

TEST_CASE("a step that is saved again is replaced, and large models are several files") {
    const support::temporary_folder folder;
    tg::checkpoint_manager m(folder.path(), {.max_shard_bytes = 1000});
    numbers model(4);
    m.save(model);
    model.set(5);
    m.save(model, {.step = 4});
    m.close();
    CHECK(names_in(folder.path()) == std::vector<std::string>{"step-000004"});
    CHECK(names_in(folder.path() / "step-000004") ==
          std::vector<std::string>{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                   "model.safetensors.index.json", "state.json"});
    m.restore_latest(model);
    CHECK(model.holds(5));
}

TEST_CASE("errors of the thread come with the next call, once") {
    const support::temporary_folder folder;
    const auto run = folder.path() / "run";
    tg::checkpoint_manager m(run);
    m.save(numbers(1));
    m.wait();
    std::filesystem::remove_all(run);
    m.save(numbers(2)); // returns
    const auto message = support::message_of<tg::data_error>([&] { m.save(numbers(3)); });
    CHECK(support::contains(message, "step-000002': cannot be written: No such file or directory"));
    m.close(); // told once
    std::filesystem::create_directory(run);
    m.save(numbers(4));
    m.close();
    CHECK(m.steps() == steps{4});
    {
        tg::checkpoint_manager lost(run);
        std::filesystem::remove_all(run);
        lost.save(numbers(5));
    } // nobody asks
}

TEST_CASE("what is no checkpoint is refused, and what is none is passed over") {
    const support::temporary_folder folder;
    for (const char* name : {"step-", "step-x", "step-000007.old", "step--1"})
        std::filesystem::create_directory(folder.path() / name);
    tg::checkpoint_manager m(folder.path());
    CHECK(m.steps().empty());
    numbers model(9);
    m.save(model);
    m.wait();
    const auto refusal = [&](const std::string& state) {
        folder.write("step-000009/state.json", state);
        return support::message_of<tg::data_error>([&] { m.restore_latest(model); });
    };
    CHECK(support::contains(refusal("{}"), "state.json': names no step"));
    CHECK(support::contains(refusal("{\"step\":1.5}"), "'1.5' is not an integer of 64 bits (offset 8)"));
    CHECK(support::contains(refusal("{\"step\":9"), "is not valid JSON"));
    CHECK(refusal("{\"step\":9,\"more\":[1,{}]}").empty());
    folder.write("step-000009/model.safetensors", std::string("x"));
    CHECK(support::contains(refusal("{\"step\":9}"), "model.safetensors': truncated"));
    CHECK(support::contains(support::message_of<tg::data_error>([&] { m.restore(model, 8); }),
                            "state.json': no such file"));
    CHECK(support::contains(support::message_of<tg::argument_error>(
                                [&] { tg::checkpoint_manager wrong(folder.path(), {.max_to_keep = -1}); }),
                            "checkpoint_manager: max_to_keep is -1"));
    CHECK(support::contains(support::message_of<tg::argument_error>(
                                [&] { tg::checkpoint_manager wrong(folder.path(), {.keep_every_steps = -1}); }),
                            "keep_every_steps is -1"));
    folder.write("file", std::string());
    CHECK(support::contains(
        support::message_of<tg::data_error>([&] { tg::checkpoint_manager wrong(folder.path() / "file"); }),
        "file': cannot be made a folder"));
}

TEST_CASE("killed at any moment, a process leaves the last checkpoint whole") {
    const support::temporary_folder folder;
    const auto run = folder.path() / "run";
    std::int64_t last = 0, found = 0, unfinished = 0;
    for (unsigned round = 0; round < 25; ++round) {
        const ::pid_t child = ::fork();
        if (child == 0) {
            tg::checkpoint_manager m(run, {.max_to_keep = 2, .background = round % 2 == 0});
            for (std::int64_t step = last + 1;; ++step)
                m.save(numbers(step), {.step = step % 7 == 0 ? step - 1 : step});
        }
        REQUIRE(child > 0);
        const auto moment = std::chrono::microseconds(2000 + 3701 * (round * 7 % 25));
        const auto end = std::chrono::steady_clock::now() + moment;
        while (std::chrono::steady_clock::now() < end) ::usleep(200);
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        REQUIRE(WIFSIGNALED(status)); // not ended by an error of its own
        if (!std::filesystem::exists(run)) continue;
        for (const auto& name : names_in(run)) unfinished += name.starts_with(".unfinished-");
        tg::checkpoint_manager m(run, {.max_to_keep = 2});
        for (const auto& name : names_in(run)) // what was unfinished is gone
            CHECK((name.starts_with("step-") || name == ".writer"));
        const auto known = m.steps();
        CHECK(known.size() <= 3);
        for (const std::int64_t step : known) {
            numbers model;
            const auto state = m.restore(model, step);
            CHECK(state.step == step);
            CHECK((model.holds(step) ||
                   model.holds(step + 1))); // every seventh is saved under the step before it, once more
        }
        if (known.empty()) continue;
        ++found;
        CHECK(known.back() >= last - 1);
        last = known.back();
    }
    CHECK(found > 0);
    MESSAGE(last << " steps, " << unfinished << " unfinished folders");
}

TEST_CASE("two processes do not write checkpoints into one folder, and the error names the first") {
    const support::temporary_folder folder;
    const auto run = folder.path() / "run";
    const support::bell saved;
    support::child_process child([&] {
        tg::checkpoint_manager m(run);
        m.save(numbers(1));
        m.wait();
        saved.ring();
        for (;;) ::pause();
    });
    saved.wait();
    tg::checkpoint_manager m(run, {.background = false});
    numbers model;
    CHECK(m.restore_latest(model)->step == 1); // reading, as evaluation beside a training does
    const auto refused = support::message_of<tg::data_error>([&] { m.save(numbers(2)); });
    CHECK(support::contains(refused, "run': process " + std::to_string(child.number()) + " of '"));
    CHECK(m.steps() == steps{1});
    child.kill();
    m.save(numbers(2));
    CHECK(m.steps() == steps{1, 2});
    CHECK(names_in(run).front() == ".writer");
    m.close();
    CHECK(names_in(run) == std::vector<std::string>{"step-000001", "step-000002"});
}

TEST_CASE("what a process that was killed did not get to remove goes when the next one begins to write") {
    const support::temporary_folder folder;
    {
        tg::checkpoint_manager m(folder.path(), {.max_to_keep = 3, .background = false});
        for (const std::int64_t step : {1, 2, 3}) m.save(numbers(step));
    }
    // As if it had been at max_to_keep = 2, and the third folder had just got its name.
    tg::checkpoint_manager m(folder.path(), {.max_to_keep = 2, .background = false});
    CHECK(m.steps() == steps{1, 2, 3}); // who reads removes nothing
    m.claim();
    CHECK(m.steps() == steps{2, 3});
    m.close();
}

} // namespace checkpoint_manager_test
