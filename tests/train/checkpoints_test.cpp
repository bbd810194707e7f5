#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/io/weights_memory.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

namespace checkpoints_test {

using namespace nn_test;

namespace {

template <class Mode>
auto make(std::uint64_t seed = 3) {
    return tg::compile<Mode>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::adam{},
                             {.seed = seed});
}
tg::data::dataset records(int count) {
    tg::data::dataset set;
    set.add("x", noise<float>({count, 6}, 1).to_vector(), {6}).add("label", classes(count, 3, 1).to_vector());
    return set;
}
const tg::fit_options options{.epochs = 4, .batch_size = 4, .verbose = 0, .prefetch = 0};
template <class Model>
void train(Model& model, int steps) {
    for (int i = 0; i < steps; ++i)
        model.train_on_batch(noise<float>({8, 6}, 30 + static_cast<std::uint64_t>(i)),
                             classes(8, 3, static_cast<std::uint64_t>(i)));
}

} // namespace

TEST_CASE("a run whose checkpoints a thread writes resumes exactly") {
    each_mode([](auto mode) {
        using Mode = decltype(mode);
        const support::temporary_folder folder;
        const auto set = records(11); // batches of 4, 4, 3
        auto whole = make<Mode>();
        whole.fit(set, options);
        for (const std::int64_t stop : {1, 4, 6, 8}) {
            CAPTURE(stop);
            const auto run = folder.path() / std::to_string(stop);
            {
                auto first = make<Mode>();
                // As if killed: what was done after the last checkpoint is lost.
                struct killed {};
                try {
                    first.fit(set, options, tg::keep_checkpoints{.folder = run, .every_steps = 2},
                              tg::on_batch_end([&](tg::training_state& s) {
                                  if (s.step == stop) throw killed{};
                              }));
                } catch (const killed&) {}
            }
            tg::checkpoint_manager m(run);
            CHECK(m.latest().value_or(0) == (stop - 1) / 2 * 2);
            auto second = make<Mode>();
            const tg::history h = second.fit(set, options, tg::keep_checkpoints{.folder = run, .every_steps = 2});
            CHECK(!h.interrupted);
            CHECK(first_difference(whole, second) == "");
            CHECK(m.latest() == 12);
            CHECK(m.state_of(12).seed == 3);
            CHECK(m.state_of(10).epoch == 3);
            CHECK(m.state_of(10).position == 1);
        }
    });
}

TEST_CASE("checkpoints of epochs: the best stays, and an interrupted run keeps its last step") {
    const support::temporary_folder folder;
    const auto set = records(11);
    auto o = options;
    o.validation_data = records(5);
    auto model = make<tg::eager>();
    const tg::history h = model.fit(
        set, o, tg::keep_checkpoints{.folder = folder.path() / "a", .options = {.max_to_keep = 1, .best = "val_loss"}});
    tg::checkpoint_manager m(folder.path() / "a", {.best = "val_loss"});
    CHECK(m.latest() == 12);
    const auto best = static_cast<std::int64_t>(h.best_epoch("val_loss"));
    REQUIRE(m.best());
    CHECK(*m.best() == (best + 1) * 3);
    CHECK(m.state_of(*m.best()).metric("val_loss") == h["val_loss"][static_cast<std::size_t>(best)]);
    CHECK(m.state_of(12).epoch == 3);

    auto stopped = make<tg::eager>();
    stopped.fit(set, options, tg::keep_checkpoints{.folder = folder.path() / "b"},
                tg::on_batch_end([](tg::training_state& s) {
                    if (s.step == 5) s.interrupt("test");
                }));
    CHECK(tg::checkpoint_manager(folder.path() / "b").steps() == std::vector<std::int64_t>{3, 5});
    auto refused = [&](tg::keep_checkpoints c) {
        return support::message_of<tg::argument_error>([&] { stopped.fit(set, options, c); });
    };
    CHECK(support::contains(refused({}), "keep_checkpoints: folder is empty"));
    CHECK(support::contains(refused({.folder = folder.path(), .every_epochs = 0}), "every_epochs is 0"));
    CHECK(support::contains(refused({.folder = folder.path(), .every_steps = 2, .options = {.best = "loss"}}),
                            "'loss' is known at the end of an epoch"));
}

TEST_CASE("a manager keeps models of loops of one's own") {
    each_mode([](auto mode) {
        using Mode = decltype(mode);
        const support::temporary_folder folder;
        auto model = make<Mode>(8);
        tg::checkpoint_manager m(folder.path(), {.max_shard_bytes = 100});
        train(model, 3);
        m.save(model, {.epoch = 1, .position = 3});
        train(model, 2); // while it is written
        auto again = make<Mode>(1);
        const auto state = m.restore_latest(again);
        REQUIRE(state);
        CHECK(state->seed == 8);
        CHECK(again.step() == 3);
        train(again, 2);
        CHECK(first_difference(model, again) == "");
        // Weights alone, for a model of another optimizer.
        tg::checkpoint_manager light(folder.path() / "light", {.save = {}});
        light.save(model);
        auto other = tg::compile<Mode>(small_mlp{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, tg::sgd{});
        light.restore_latest(other);
        CHECK(same_bits(other.variables()["out/kernel"].data(), model.variables()["out/kernel"].data()));
    });
}

TEST_CASE("weights in memory, and in shards, are those of a file") {
    each_mode([](auto mode) {
        using Mode = decltype(mode);
        const support::temporary_folder folder;
        auto model = make<Mode>();
        train(model, 2);
        const auto path = folder.path() / "w.safetensors";
        model.save(path, {.optimizer_state = true});
        std::vector<std::byte> bytes;
        model.save(tg::io::weights_buffer{bytes}, {.optimizer_state = true});
        const std::string file = support::read_text(path);
        CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == file);
        auto other = make<Mode>(9);
        const tg::load_report report = other.load(tg::io::weights_bytes(bytes));
        CHECK(report.matched.size() == 12);
        CHECK(first_difference(model, other) == "");

        model.save(tg::io::shards{folder.path() / "s.safetensors", 200}, {.optimizer_state = true});
        auto third = make<Mode>(9);
        third.load(folder.path() / "s.safetensors.index.json");
        CHECK(first_difference(model, third) == "");
        CHECK(third.step() == 2);
        CHECK(tg::io::read_safetensors(folder.path() / "s.safetensors.index.json").size() == 12);

        const auto cut = std::span<const std::byte>(bytes).first(bytes.size() - 1);
        CHECK(support::contains(support::message_of<tg::data_error>([&] { other.load(tg::io::weights_bytes(cut)); }),
                                "weights of " + std::to_string(cut.size()) + " bytes in memory, tensor '"));
        CHECK(first_difference(model, other) == "");
    });
}

TEST_CASE("weights as source are the bytes of the file, whatever they are") {
    const support::temporary_folder folder;
    std::vector<std::byte> bytes;
    for (int i = 0; i < 256; ++i)
        for (const int next : {0x30, 0x37, 0x38, 0x3F, 0x22, 0x5C, 0x00, 0xFF}) {
            bytes.push_back(static_cast<std::byte>(i));
            bytes.push_back(static_cast<std::byte>(next));
        }
    // What a compiler makes of the literal.
    const std::string text = tg::io::detail::source_of_bytes(bytes, {});
    std::string read;
    std::size_t at = text.find("] =") + 3;
    bool inside = false;
    for (; text[at] != ';' || inside; ++at) {
        const char c = text[at];
        if (c == '"') {
            inside = !inside;
        } else if (inside && c == '\\') {
            int code = 0, digits = 0;
            for (; digits < 3 && text[at + 1] >= '0' && text[at + 1] <= '7'; ++digits)
                code = code * 8 + (text[++at] - '0');
            REQUIRE(digits > 0);
            read += static_cast<char>(code);
        } else if (inside) {
            read += c;
        }
    }
    CHECK(read == std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    CHECK(support::contains(text, "weights_bytes[" + std::to_string(bytes.size()) + " + 1]"));

    auto model = make<tg::eager>();
    const auto path = folder.path() / "w.hpp";
    tg::io::write_weights_source(path, model, {.name = "digits", .name_space = "a::b"});
    CHECK(support::contains(support::read_text(path), "namespace a::b {"));
    const auto refused = [&](const tg::io::weights_source_options& o) {
        return support::message_of<tg::argument_error>([&] { tg::io::write_weights_source(path, model, o); });
    };
    CHECK(support::contains(refused({.name = "1a"}), "'1a' is not a C++ identifier"));
    CHECK(support::contains(refused({.name = "a b"}), "'a b' is no"));
    CHECK(support::contains(refused({.name_space = "a::"}), "'a::' is no"));
    CHECK(support::contains(refused({.name_space = ""}), "'' is no"));
}

} // namespace checkpoints_test
