#include <tapegraph/io/callbacks/tensorboard.hpp>
#include <tapegraph/io/tensorboard/event_reader.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace tensorboard_callback_test {

namespace tg = tapegraph;

namespace {

struct line {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "line", x, {.units = 1}); }
};
auto make() {
    return tg::compile<tg::eager>(line{}, tg::spec<float, tg::dyn, 2>{}, tg::mean_squared_error{},
                                  tg::sgd{.learning_rate = 0.125});
}
tg::data::dataset records(int count) {
    std::vector<float> x, y;
    for (int i = 0; i < count; ++i) {
        x.push_back(static_cast<float>(i % 5));
        x.push_back(static_cast<float>(i % 3));
        y.push_back(static_cast<float>(i % 5 - i % 3));
    }
    tg::data::dataset set;
    set.add("x", x, {2}).add("y", y, {1});
    return set;
}
std::vector<tg::io::scalar_point> points(const std::filesystem::path& folder, std::string_view tag) {
    for (const auto& s : tg::io::read_scalars(folder))
        if (s.tag == tag) return s.points;
    return {};
}
std::string all_bytes(const std::filesystem::path& folder) {
    std::string bytes;
    for (const auto& file : std::filesystem::directory_iterator(folder))
        if (file.is_regular_file()) bytes += support::read_text(file.path());
    return bytes;
}

} // namespace

TEST_CASE("scalars of epochs and steps under Keras's names") {
    const support::temporary_folder folder;
    const std::string logs = (folder.path() / "logs").string();
    auto model = make();
    const tg::history h = model.fit(
        records(10), {.epochs = 3, .batch_size = 4, .validation_data = records(4), .validation_freq = 2, .verbose = 0},
        tg::tensorboard{.folder = logs, .update_freq = {2}, .write_steps_per_second = true});
    const auto loss = points(logs + "/train", "epoch_loss");
    REQUIRE(loss.size() == 3);
    for (std::size_t e = 0; e < 3; ++e) {
        CHECK(loss[e].step == static_cast<std::int64_t>(e)); // from 0, as Keras counts
        CHECK(loss[e].value == static_cast<double>(static_cast<float>(h.epochs[e].loss)));
    }
    const auto validated = points(logs + "/validation", "epoch_loss");
    REQUIRE(validated.size() == 1);
    CHECK(validated[0].step == 1);
    CHECK(validated[0].value == static_cast<double>(static_cast<float>(h.epochs[1].validation_loss)));
    CHECK(points(logs + "/train", "epoch_learning_rate").size() == 3);
    CHECK(points(logs + "/train", "epoch_learning_rate")[0].value == 0.125);
    CHECK(points(logs + "/train", "epoch_steps_per_second")[2].value > 0);
    const auto steps = points(logs + "/train", "batch_loss"); // of 9 steps every second
    REQUIRE(steps.size() == 4);
    CHECK(steps[3].step == 8);
    CHECK(points(logs + "/train", "epoch_val_loss").empty());
    CHECK(points(logs + "/validation", "batch_loss").empty());
    // Another run does not mix with it.
    auto other = make();
    CHECK(support::contains(support::message_of<tg::data_error>(
                                [&] { other.fit(records(4), {.verbose = 0}, tg::tensorboard{.folder = logs}); }),
                            "/train': holds the events of another run"));
    CHECK(other.step() == 0);
    other.fit(records(4), {.verbose = 0}, tg::tensorboard{.folder = logs, .resume = true});
    CHECK(points(logs + "/train", "epoch_loss").size() == 4);
}

TEST_CASE("a callback that is used again continues in its folder") {
    const support::temporary_folder folder;
    auto model = make();
    tg::tensorboard board{.folder = folder.path().string()};
    model.fit(records(4), {.epochs = 1, .verbose = 0}, board);
    model.fit(records(4), {.epochs = 3, .initial_epoch = 1, .verbose = 0}, board);
    const auto loss = points(folder.path() / "train", "epoch_loss");
    REQUIRE(loss.size() == 3);
    CHECK(loss[2].step == 2);
}

TEST_CASE("a run that is resumed from a file continues in its folder, within an epoch, too") {
    const support::temporary_folder folder;
    const std::string logs = (folder.path() / "logs").string(), file = (folder.path() / "run.safetensors").string();
    {
        auto model = make();
        model.fit(records(12), {.epochs = 2, .batch_size = 4, .verbose = 0},
                  tg::tensorboard{.folder = logs, .update_freq = {1}, .graph = "x"},
                  tg::on_batch_end([](tg::training_state& s) {
                      if (s.step == 2) s.interrupt("test");
                  }));
        model.save(file, {.everything = true});
    }
    CHECK(points(logs + "/train", "batch_loss").size() == 2);
    auto model = make();
    model.load(file, {.everything = true});
    model.fit(records(12), {.epochs = 2, .batch_size = 4, .verbose = 0, .resume = true},
              tg::tensorboard{.folder = logs, .update_freq = {1}, .graph = "x"});
    const auto steps = points(logs + "/train", "batch_loss");
    REQUIRE(steps.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) CHECK(steps[i].step == static_cast<std::int64_t>(i + 1));
    CHECK(points(logs + "/train", "epoch_loss").size() == 2);
}

TEST_CASE("histograms, graph, hyperparameters and what hooks add") {
    const support::temporary_folder folder;
    auto model = make();
    tg::tensorboard board{.folder = folder.path().string(), .histogram_freq = 2, .graph = "the graph's bytes"};
    board.hyperparameters = {{"units", 1}, {"optimizer", "sgd"}};
    model.fit(records(4), {.epochs = 3, .validation_data = records(4), .verbose = 0}, board,
              tg::on_epoch_end([&](tg::training_state& s) {
                  board.train().text("note", "epoch " + std::to_string(s.epoch), s.epoch);
              }));
    const std::string train = all_bytes(folder.path() / "train"), session = all_bytes(folder.path());
    const auto count = [](const std::string& in, std::string_view what) {
        int n = 0;
        for (std::size_t at = in.find(what); at != in.npos; at = in.find(what, at + 1)) ++n;
        return n;
    };
    CHECK(count(train, "line/kernel/histogram") == 2); // of epochs 0 and 2
    CHECK(count(train, "line/bias/histogram") == 2);
    CHECK(count(train, "the graph's bytes") == 1);
    CHECK(count(train, "epoch 2") == 1);
    CHECK(count(session, "_hparams_/experiment") == 1);
    CHECK(count(session, "_hparams_/session_start_info") == 1);
    CHECK(count(session, "_hparams_/session_end_info") == 1);
    CHECK(count(session, "epoch_loss") == 2); // compared by the loss of either
}

TEST_CASE("options that make no sense") {
    auto model = make();
    const auto message = [&](tg::tensorboard board) {
        return support::message_of<tg::argument_error>([&] { model.fit(records(4), {.verbose = 0}, board); });
    };
    CHECK(message({.folder = "/nowhere", .update_freq = {-1}}) == "tensorboard: update_freq is -1, not at least 0");
    CHECK(message({.folder = "/nowhere", .histogram_buckets = 0}) ==
          "tensorboard: histogram_buckets is 0, not at least 1");
}

} // namespace tensorboard_callback_test
