#include <tapegraph/io/callbacks/saving.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

#include <csignal>

namespace resume_test {

using namespace nn_test;

namespace {

using state = tg::training_state;

/// Dropout, a moving average, two layers.
struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::batch_normalization(scope / "norm", tg::dense(scope / "hidden", x, {.units = 4}));
        h = tg::dropout(scope / "drop", tanh(h), {.rate = 0.3});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};

/// The mean square of all outputs of an epoch: sums that go on from step to step.
struct mean_square {
    static constexpr std::string_view name = "mean_square";
    static constexpr void update(const auto& sums, const auto& x, const auto&, const auto&, const auto&) {
        const auto squares = tg::eval(tg::cast<double>(square(x)));
        sums.add("sum", {}, sum(squares));
        sums.add("count", {}, sum(tg::eval(squares * 0 + 1)));
    }
    double result(const tg::metric_values& v) const { return v["sum"] / v["count"]; }
};

template <class Mode>
auto make(std::uint64_t seed = 3) {
    return tg::compile<Mode>(network{}, tg::spec<double, tg::dyn, 6>{}, tg::sparse_softmax_cross_entropy{},
                             tg::momentum{.learning_rate = 0.2}, tg::metrics{mean_square{}}, {.seed = seed});
}

tg::data::dataset records(int count, std::uint64_t seed) {
    const auto y = classes(count, 3, seed);
    tg::data::dataset set;
    set.add("x", noise<double>({count, 6}, seed).to_vector(), {6}).add("label", y.to_vector());
    return set;
}

/// Everything that the hooks of a run are to agree in.
struct outcome {
    tg::history history;
    std::string csv;
    std::vector<std::string> events;
};

const tg::fit_options options{
    .epochs = 4, .batch_size = 4, .validation_data = records(5, 9), .validation_freq = 2, .verbose = 0, .prefetch = 0};

/// A callback of the test's own: remembers a number of each kind.
struct counter {
    std::int64_t steps = 0;
    double sum = 0;
    std::vector<double> losses{};
    void on_train_begin(state&) { *this = {}; }
    void on_batch_end(state& s) {
        ++steps;
        sum += s.batch_loss;
        losses.push_back(s.logs["loss"]);
    }
    void on_state(tg::state_archive& a) {
        a("steps", steps);
        a("sum", sum);
        a("losses", losses);
    }
};

/// Trains with every callback that has state; `stop_at` interrupts after that step.
template <class Model>
tg::history run(Model& model, const tg::data::dataset& set, const std::string& csv, counter& seen, std::int64_t stop_at,
                bool resume, const std::string& file = {}) {
    tg::fit_options o = options;
    o.resume = resume;
    return model.fit(set, o, tg::early_stopping{.patience = 1, .restore_best_weights = true},
                     tg::reduce_lr_on_plateau{.monitor = "loss", .factor = 0.5, .patience = 0, .min_delta = 0.05}, seen,
                     tg::csv_logger{.path = csv}, tg::on_batch_end([&](state& s) {
                         if (s.step == stop_at) s.interrupt("test");
                     }),
                     tg::stop_on_interrupt{.save = file});
}

} // namespace

TEST_CASE("a run that is stopped after any step and continued gives the bits of one that was not stopped") {
    each_mode([](auto mode) {
        using Mode = decltype(mode);
        const support::temporary_folder folder;
        const auto path = [&](const char* name) { return (folder.path() / name).string(); };
        const auto set = records(11, 1); // batches of 4, 4, 3
        auto whole = make<Mode>();
        counter all;
        const tg::history expected = run(whole, set, path("whole.csv"), all, -1, false);
        REQUIRE(expected.epochs.size() >= 3);
        CHECK(!expected.interrupted);
        const std::int64_t steps = all.steps;
        for (std::int64_t stop = 1; stop < steps; ++stop) {
            CAPTURE(stop);
            counter seen;
            {
                auto first = make<Mode>();
                const tg::history part = run(first, set, path("part.csv"), seen, stop, false, path("run.safetensors"));
                CHECK(part.interrupted);
                CHECK(part.stopped_by == "test");
                CHECK(first.step() == stop);
                CHECK(static_cast<std::int64_t>(part.epochs.size()) ==
                      (stop - 1) / 3); // a last step is before the epoch's end
            }
            // In a process of its own, with another seed, other weights, another learning rate.
            auto second = make<Mode>(99);
            second.optimizer().learning_rate = 7;
            second.load(path("run.safetensors"), {.everything = true});
            counter rest;
            const tg::history h = run(second, set, path("part.csv"), rest, -1, true);
            CHECK(first_difference(whole, second) == "");
            CHECK(second.step() == whole.step());
            CHECK(second.optimizer().learning_rate == whole.optimizer().learning_rate);
            CHECK(rest.losses == all.losses);
            CHECK(rest.sum == all.sum);
            CHECK(h.stopped_by == expected.stopped_by);
            REQUIRE(h.epochs.size() == expected.epochs.size());
            for (std::size_t e = 0; e < h.epochs.size(); ++e) {
                const tg::epoch_result &a = h.epochs[e], &b = expected.epochs[e];
                CHECK(a.loss == b.loss);
                CHECK(a.validation_loss == b.validation_loss);
                CHECK(a.steps == b.steps);
                CHECK(a.records == b.records);
                REQUIRE(a.metrics.size() == 1);
                CHECK(a.metrics[0].value == b.metrics[0].value);
                CHECK(a.logs["mean_square"] == b.metrics[0].value);
                CHECK(a.validation_metrics.size() == b.validation_metrics.size());
                REQUIRE(a.logs.size() == b.logs.size());
                for (const tg::named_value& v : b.logs) CHECK(a.logs[v.name] == v.value);
            }
            CHECK(support::read_text(path("part.csv")) == support::read_text(path("whole.csv")));
        }
    });
}

TEST_CASE("backup_and_restore continues where a process died") {
    each_mode([](auto mode) {
        using Mode = decltype(mode);
        const support::temporary_folder folder;
        const std::string path = (folder.path() / "backup.safetensors").string();
        const auto set = records(11, 1);
        auto whole = make<Mode>();
        const tg::fit_options o{.epochs = 3, .batch_size = 4, .verbose = 0, .prefetch = 1};
        whole.fit(set, o);
        for (const std::int64_t every : {0, 2}) {
            for (const std::int64_t death : {1, 4, 5, 8}) {
                CAPTURE(every);
                CAPTURE(death);
                auto first = make<Mode>();
                struct crash {};
                CHECK_THROWS_AS(first.fit(set, o, tg::backup_and_restore{.path = path, .every_steps = every},
                                          tg::on_batch_end([&](state& s) {
                                              if (s.step == death) throw crash{};
                                          })),
                                crash);
                auto second = make<Mode>();
                const tg::history h = second.fit(set, o, tg::backup_and_restore{.path = path, .every_steps = every});
                CHECK(h.epochs.size() == 3);
                CHECK(first_difference(whole, second) == "");
                CHECK(!std::filesystem::exists(path));
            }
        }
    });
}

TEST_CASE("Ctrl-C ends training after the step, saves, and restores the old handler") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "stopped.safetensors").string();
    const auto set = records(11, 1);
    static int calls = 0;
    const auto before = std::signal(SIGINT, [](int) { ++calls; });
    auto model = make<tg::graph>(), whole = make<tg::graph>();
    const tg::fit_options o{.epochs = 2, .batch_size = 4, .verbose = 0};
    whole.fit(set, o);
    auto press = tg::on_batch_end([](state& s) {
        if (s.step == 2) std::raise(SIGINT);
    });
    tg::history h = model.fit(set, o, press, tg::stop_on_interrupt{.save = path});
    CHECK(h.interrupted);
    CHECK(h.stopped_by == "Ctrl-C");
    CHECK(model.step() == 2);
    CHECK(calls == 0);
    std::raise(SIGINT);
    CHECK(calls == 1);
    std::signal(SIGINT, before);

    auto again = make<tg::graph>(5);
    again.load(path, {.everything = true});
    again.fit(set, {.epochs = 2, .batch_size = 4, .verbose = 0, .resume = true});
    CHECK(first_difference(whole, again) == "");
    h = model.fit(set, {.epochs = 2,
                        .batch_size = 4,
                        .verbose = 0,
                        .stop_on_interrupt = true,
                        .resume = true}); // the same, without a file
    CHECK(!h.interrupted);
    CHECK(h.epochs.size() == 2);
    CHECK(first_difference(whole, model) == "");
}

TEST_CASE("model_checkpoint names files by what is logged, and keeps the last or the best") {
    const support::temporary_folder folder;
    const auto path = [&](const char* name) { return (folder.path() / name).string(); };
    const auto files = [&] {
        std::vector<std::string> names;
        for (const auto& f : std::filesystem::directory_iterator(folder.path()))
            names.push_back(f.path().filename().string());
        std::sort(names.begin(), names.end());
        return names;
    };
    using names = std::vector<std::string>;
    const auto set = records(11, 1);
    auto model = make<tg::eager>();
    model.fit(set, {.epochs = 4, .batch_size = 4, .verbose = 0},
              tg::model_checkpoint{.path = path("m{epoch:02d}-{loss:.1f}-{step}"), .keep = 2});
    const auto two = files();
    REQUIRE(two.size() == 2);
    CHECK(two[0].starts_with("m03-1."));
    CHECK(two[0].ends_with("-9"));
    CHECK(two[1].ends_with("-12"));
    auto copy = make<tg::eager>(8);
    copy.load(path(two[1].c_str()));
    CHECK(same_bits(copy.variables()["out/kernel"].data(), model.variables()["out/kernel"].data()));
    for (const auto& name : two) std::filesystem::remove(path(name.c_str()));

    auto other = make<tg::eager>();
    const tg::history h = other.fit(set, {.epochs = 4, .batch_size = 4, .verbose = 0}, tg::on_epoch_end([](state& s) {
                                        s.logs.set("score", s.epoch == 2 ? 5 : -static_cast<double>(s.epoch));
                                    }),
                                    tg::model_checkpoint{.path = path("best-{epoch}"),
                                                         .monitor = "score",
                                                         .save_best_only = true,
                                                         .mode = tg::better::more,
                                                         .keep = 1});
    CHECK(files() == names{"best-3"});
    CHECK(h["score"] == std::vector<double>{0, -1, 5, -3});
    CHECK(h.best_epoch("score", tg::better::more) == 2);
    std::filesystem::remove(path("best-3"));

    auto steps = make<tg::graph>();
    steps.fit(set, {.epochs = 2, .batch_size = 4, .verbose = 0},
              tg::model_checkpoint{.path = path("s{step:03d}"), .every_steps = 2, .save = {.everything = true}});
    CHECK(files() == names{"s002", "s004", "s006"});
    auto late = make<tg::graph>(1);
    late.load(path("s004"), {.everything = true});
    CHECK(late.step() == 4);
    late.fit(set, {.epochs = 2, .batch_size = 4, .verbose = 0, .resume = true},
             tg::model_checkpoint{.path = path("s{step:03d}"), .every_steps = 2});
    CHECK(first_difference(steps, late) == "");

    const auto refused = [&](const char* pattern) {
        return support::message_of<tg::argument_error>([&] {
            make<tg::eager>().fit(set, {.batch_size = 4, .verbose = 0}, tg::model_checkpoint{.path = pattern});
        });
    };
    CHECK(refused("m-{val_loss}") ==
          "file name 'm-{val_loss}': no value 'val_loss', there are 'loss', 'accuracy', 'mean_square'");
    CHECK(refused("m-{loss") == "file name 'm-{loss': a { without its }");
    CHECK(refused("m-{loss:%n}") == "file name 'm-{loss:%n}': '%n' is not a format of {loss}");
    CHECK(refused("") == "model_checkpoint: path is empty");
}

TEST_CASE("what cannot be resumed is refused, and the model is unchanged") {
    const support::temporary_folder folder;
    const auto path = [&](const char* name) { return (folder.path() / name).string(); };
    const auto set = records(11, 1);
    const tg::fit_options o{.epochs = 2, .batch_size = 4, .verbose = 0};
    auto model = make<tg::eager>(), twin = make<tg::eager>();
    model.fit(set, o, tg::early_stopping{.monitor = "loss"}, tg::on_batch_end([](state& s) {
                  if (s.step == 2) s.interrupt("test");
              }));
    model.save(path("all"), {.everything = true});
    model.save(path("weights"), {.optimizer_state = true});
    auto victim = make<tg::eager>();
    const auto message = [&](const auto& call) {
        const std::string text = support::message_of<tg::error>(call);
        CHECK(!support::contains(text, "\n"));
        CHECK(victim.step() == 0);
        CHECK(first_difference(victim, twin) == "");
        return text;
    };
    const auto load = [&](const char* name) { return message([&] { victim.load(path(name), {.everything = true}); }); };
    CHECK(support::contains(load("weights"), "weights': holds weights, but was not saved with everything"));
    auto file = tg::io::read_safetensors_file(path("all"));
    const auto write = [&](const char* name) {
        std::vector<tg::io::safetensors_entry> entries;
        for (const auto& [key, array] : file.tensors)
            entries.push_back({key, array.type, array.shape, array.bytes.data()});
        tg::io::write_safetensors_arrays(path(name), entries, file.metadata);
    };
    file.metadata["checkpoint"] = "2";
    write("newer");
    CHECK(support::contains(load("newer"), "newer': a checkpoint of version 2, newer than this library's 1"));
    file.metadata["checkpoint"] = "1";
    const std::string bytes = support::read_text(path("all"));
    folder.write("cut", std::string_view(bytes).substr(0, bytes.size() - 9));
    CHECK(support::contains(load("cut"), "cut'"));
    auto other =
        tg::compile<tg::eager>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::momentum{});
    CHECK(support::contains(support::message_of<tg::error>([&] { other.load(path("all"), {.everything = true}); }),
                            "all': tensor 'hidden/kernel' has shape [6,4], the model's is [6, 9]"));

    // What fit itself finds, before the first step.
    victim.load(path("all"), {.everything = true});
    const auto refused = [&](const tg::data::dataset& data, tg::fit_options more, auto&&... callbacks) {
        more.resume = true;
        more.verbose = 0;
        victim.load(path("all"), {.everything = true});
        const std::string text = support::message_of<tg::error>([&] { victim.fit(data, more, callbacks...); });
        CHECK(victim.step() == 2);
        for (const tg::variable& v : model.variables()) // metrics begin with the first step
            if (!v.metric_state()) CHECK(same_bits(v.data(), victim.variables()[v.path()].data()));
        return text;
    };
    CHECK(refused(set, {.epochs = 2, .batch_size = 5}, tg::early_stopping{.monitor = "loss"}) ==
          "fit: the run stopped in the middle of epoch 1 with batch_size 4, and cannot continue there with 5");
    CHECK(support::contains(refused(records(10, 1), o, tg::early_stopping{.monitor = "loss"}),
                            "a number of records of 11"));
    CHECK(refused(set, o) == "fit: the resumed run had a callback early_stopping with state; this "
                             "call has none, or fewer of them");
    file.tensors.erase("__fit__/callbacks/early_stopping/0/wait");
    write("all");
    CHECK(refused(set, o, tg::early_stopping{.monitor = "loss"}) ==
          "fit: the state of the run has no 'callbacks/early_stopping/0/wait'");
    file.tensors.erase("__fit__/records");
    write("all");
    CHECK(refused(set, o, tg::early_stopping{.monitor = "loss"}) == "fit: the state of the run has no 'records'");

    // In a hook, a step may be half over.
    CHECK(support::contains(
        support::message_of<tg::argument_error>([&] {
            victim.fit(set, o, tg::on_epoch_end([&](state& s) { s.model().save(path("x"), {.everything = true}); }));
        }),
        "is saved in on_checkpoint"));
}

} // namespace resume_test
