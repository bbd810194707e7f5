#include <tapegraph/cluster/rank_checkpoints.hpp>
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <cluster/error_on_ranks.hpp>
#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <string>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/// Checkpoints of which each rank writes a part.

namespace rank_checkpoints_test {

using namespace nn_test;
using distributed_test::error_on_ranks;
namespace td = tg::distributed;
namespace fs = std::filesystem;

namespace {

/// One tensor is larger than all others together, so that it is cut.
struct text_model {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::flatten(tg::embedding(scope / "words", x, {.input_dim = 101, .output_dim = 7}));
        h = tg::dropout(scope / "drop", tg::batch_normalization(scope / "norm", h), {.rate = 0.2});
        return tg::dense(scope / "score", h, {.units = 3});
    }
};
tg::data::dataset texts(std::int64_t count) {
    tg::data::dataset set;
    set.add("words", classes(count * 5, 101, 1).to_vector(), {5}).add("label", classes(count, 3, 2).to_vector());
    return set;
}
auto made(td::exchange* ranks, std::uint64_t seed = 4) {
    return tg::compile<tg::graph>(text_model{}, tg::spec<std::int32_t, tg::dyn, 5>{},
                                  tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01},
                                  tg::sharded{.shards = 8, .options = {.seed = seed}, .ranks = ranks});
}
const tg::fit_options options{.epochs = 3, .batch_size = 16, .verbose = 0}; // of five steps each

std::string without(std::string text, const std::string& what) {
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what)) text.erase(at, what.size());
    return text;
}

} // namespace

TEST_CASE("any number of ranks continues from what some ranks wrote, to the bits of a run that was not interrupted") {
    const thread_limit one(1);
    auto whole = made(nullptr);
    const auto history = whole.fit(texts(70), options);
    for (const int writers : {1, 2, 4, 8}) {
        CAPTURE(writers);
        const support::temporary_folder folder;
        const std::string kept = (folder.path() / "kept").string();
        td::run_ranks(writers, [&](td::exchange& ranks) {
            auto model = made(&ranks);
            model.fit(texts(70), options,
                      tg::keep_checkpoints{
                          .folder = kept,
                          .every_steps = 3,
                          .options = {.max_to_keep = 2, .background = writers != 2, .parts = tg::by_rank(ranks)}},
                      tg::on_batch_end([](tg::training_state& s) {
                          if (s.step == 8) s.interrupt("enough");
                      }));
        });
        // That of the interruption, and the one before it; what several ranks write has a file each, an index and a state.
        CHECK(tg::checkpoint_manager(kept).steps() == std::vector<std::int64_t>{6, 8});
        std::vector<std::uintmax_t> sizes;
        for (const auto& each : fs::directory_iterator(fs::path(kept) / "step-000008"))
            if (each.path().extension() == ".safetensors") sizes.push_back(each.file_size());
        CHECK(sizes.size() == static_cast<std::size_t>(writers));
        std::uintmax_t all = 0;
        for (const auto each : sizes) all += each;
        // 3 x (707 + 35 x 3 + 3) floats and the run, which is the chief's; headers are some hundred bytes.
        for (const auto each : sizes) CHECK(each < all / static_cast<std::uintmax_t>(writers) + 8000);
        for (const int readers : {1, 2, 4}) {
            CAPTURE(readers);
            const support::temporary_folder copy;
            fs::copy(kept, copy.path() / "kept", fs::copy_options::recursive);
            td::run_ranks(readers, [&](td::exchange& ranks) {
                auto model = made(&ranks);
                const auto h =
                    model.fit(texts(70), options,
                              tg::keep_checkpoints{.folder = (copy.path() / "kept").string(),
                                                   .options = {.parts = readers == 2 ? tg::by_rank(ranks) : nullptr}});
                CHECK(model.step() == 15);
                for (std::size_t e = 0; e < h.epochs.size(); ++e) CHECK(h.epochs[e].loss == history.epochs[e].loss);
                CHECK(first_difference(model, whole) == "");
            });
        }
        // Without ranks, and weights alone.
        auto alone = made(nullptr, 5);
        alone.load(fs::path(kept) / "step-000008" / "model.safetensors.index.json", {.everything = true});
        CHECK(alone.step() == 8);
        alone.fit(texts(70), {.epochs = 3, .batch_size = 16, .verbose = 0, .resume = true});
        CHECK(first_difference(alone, whole) == "");
    }
}

TEST_CASE("an optimizer's state that lies in slices is written and read by rank, too") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const std::string kept = (folder.path() / "kept").string();
    auto whole = made(nullptr);
    whole.fit(texts(70), options);
    for (const int size : {4, 2})
        td::run_ranks(size, [&](td::exchange& ranks) {
            auto model = tg::compile<tg::graph>(text_model{}, tg::spec<std::int32_t, tg::dyn, 5>{},
                                                tg::sparse_softmax_cross_entropy{},
                                                tg::zero_redundancy{tg::adam{.learning_rate = 0.01}},
                                                tg::sharded{.shards = 8, .options = {.seed = 4}, .ranks = &ranks});
            model.fit(texts(70), options,
                      tg::keep_checkpoints{.folder = kept, .every_steps = 3, .options = {.parts = tg::by_rank(ranks)}},
                      tg::on_batch_end([size](tg::training_state& s) {
                          if (size == 4 && s.step == 8) s.interrupt("enough");
                      }));
            model.gather_optimizer_state();
            if (size == 2) CHECK(first_difference(model, whole) == "");
        });
}

TEST_CASE("a job that dies while its ranks write leaves the checkpoint before") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const std::string kept = (folder.path() / "kept").string();
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        td::run_ranks(4, [&](td::exchange& ranks) {
            auto model = made(&ranks);
            tg::checkpoint_manager kept_here(kept, {.parts = tg::by_rank(ranks)});
            model.set_step(1);
            kept_here.save(model);
            kept_here.wait();
            model.set_step(2);
            kept_here.save(model); // every rank has written, or is writing: nobody has asked whether all are done
            td::barrier(ranks);
            if (ranks.rank() == 2) ::kill(::getpid(), SIGKILL);
            ::pause();
        });
        ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const auto unfinished = [&] {
        std::size_t count = 0;
        for (const auto& each : fs::directory_iterator(kept))
            count += each.path().filename().string().starts_with(".unfinished-") ? 1 : 0;
        return count;
    };
    CHECK(unfinished() == 1);
    auto model = made(nullptr);
    tg::checkpoint_manager after(kept);
    CHECK(after.restore_latest(model)->step == 1);
    CHECK(model.step() == 1);
    CHECK(unfinished() == 0);
}

TEST_CASE("ranks that cannot write, or do not agree: all of them throw, and earlier files stay") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const std::string kept = (folder.path() / "kept").string();
    const auto saves = [&](const auto& change) {
        return [&, change](td::exchange& ranks) {
            auto model = made(&ranks);
            tg::checkpoint_manager here(kept, {.parts = tg::by_rank(ranks)});
            change(model, ranks);
            here.save(model);
            here.close();
        };
    };
    CHECK(error_on_ranks(2, saves([](auto&, auto&) {})) == "");
    CHECK(error_on_ranks(4, saves([](auto& m, auto& ranks) { m.set_step(ranks.rank() == 3 ? 6 : 5); }))
              .find("rank 3 has model ") != std::string::npos);
    CHECK(error_on_ranks(2, saves([](auto& m, auto& ranks) {
                             m.set_step(5);
                             if (ranks.rank() == 1) m.variables().add("more", noise<float>({3}, 1), false, false);
                         }))
              .find("'" + kept + "/step-000005': rank 1 has model ") == 0);
    // A name that no file can hold, on the rank whose part has it: of two tensors of a size the second.
    const std::string printed = error_on_ranks(2, [&](td::exchange& ranks) {
        const auto parts = tg::by_rank(ranks);
        const float values[2]{1, 2};
        parts->take({{{"first", tg::dtype::f32, {2}, values}, {"__metadata__", tg::dtype::f32, {2}, values}}, {}});
        parts->begin(kept + "/step-000007", "{}", true, {});
        parts->finish();
    });
    CHECK(printed.find("'" + kept + "/step-000007': rank 1: write_safetensors(") == 0);
    CHECK(printed.find("model-00002-of-00002.safetensors'): '__metadata__' cannot name a tensor") != printed.npos);
    CHECK(tg::checkpoint_manager(kept).steps() == std::vector<std::int64_t>{0});
    // A folder that cannot be.
    folder.write("file", "text");
    CHECK(error_on_ranks(2, [&](td::exchange& ranks) {
              auto model = made(&ranks);
              const auto parts = tg::by_rank(ranks);
              tg::detail::weight_snapshot unused;
              model.save(tg::detail::snapshot_place{unused, parts.get()});
              parts->begin(folder.path().string() + "/file/step", "", false, {});
          }) == "'" + folder.path().string() + "/file/step': cannot be written: Not a directory");
    CHECK(error_on_ranks(1, [&](td::exchange& ranks) {
              tg::checkpoint_manager(kept, {.max_shard_bytes = 8, .parts = tg::by_rank(ranks)});
          }) == "checkpoint_manager: max_shard_bytes is 8, and files are one for each rank");
}

TEST_CASE("a part that is missing, of another save or of another rank is refused by rank, file and field") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const std::string kept = (folder.path() / "kept").string();
    td::run_ranks(4, [&](td::exchange& ranks) {
        auto model = made(&ranks);
        tg::checkpoint_manager here(kept, {.parts = tg::by_rank(ranks)});
        for (const std::int64_t step : {1, 2}) {
            model.set_step(step);
            here.save(model);
        }
        here.close();
    });
    const auto file = [&](int step, int rank) {
        return fs::path(kept) / ("step-00000" + std::to_string(step)) /
               ("model-0000" + std::to_string(rank + 1) + "-of-00004.safetensors");
    };
    const fs::path index = fs::path(kept) / "step-000002" / "model.safetensors.index.json";
    const auto before = made(nullptr, 8);
    const auto refusal = [&] {
        auto model = made(nullptr, 8);
        try {
            model.load(index, {.everything = true});
        } catch (const tg::error& e) {
            CHECK(first_difference(model, before) == "");
            return without(e.what(), index.parent_path().string() + "/");
        }
        return std::string();
    };
    const auto with = [&](const fs::path& to, const std::string& bytes) {
        const std::string good = support::read_text(to);
        std::ofstream(to, std::ios::binary) << bytes;
        const std::string text = refusal();
        std::ofstream(to, std::ios::binary) << good;
        CHECK(refusal() == "");
        return text;
    };
    CHECK(with(file(2, 2), support::read_text(file(1, 2)))
              .find("'model-00003-of-00004.safetensors', the part of rank 2 of 4: saved is '") == 0);
    CHECK(with(file(2, 2), support::read_text(file(2, 1))) ==
          "'model-00003-of-00004.safetensors', the part of rank 2 of 4: rank is '1', expected '2' by "
          "'model.safetensors.index.json'");
    CHECK(with(file(2, 3), support::read_text(file(2, 3)).substr(0, 400)).find("(the part of rank 3 of 4)") !=
          std::string::npos);
    const std::string text = support::read_text(index);
    const auto replaced = [&](const std::string& from, const std::string& to) {
        std::string other = text;
        REQUIRE(other.find(from) != other.npos);
        return with(index, other.replace(other.find(from), from.size(), to));
    };
    CHECK(replaced("[101,7]", "[101,8]") == "'model.safetensors.index.json': tensor 'words/embeddings' in slices: they "
                                            "hold 707 elements, its shape is [101,8]");
    CHECK(replaced("\"words/embeddings@0\",", "\"words/embeddings@9\",") ==
          "'model.safetensors.index.json': tensor 'words/embeddings' in slices: there is no 'words/embeddings@9'");
    CHECK(replaced("[\"model-00001-of-00004.safetensors\"", "[\"../model-00001-of-00004.safetensors\"")
              .find("the part of rank 0 is in file '../model-00001-of-00004.safetensors', which is not a name in the "
                    "index's own folder") != std::string::npos);
    fs::remove(file(2, 0));
    CHECK(refusal() == "'model-00001-of-00004.safetensors': no such file (the part of rank 0 of 4)");
}

} // namespace rank_checkpoints_test
