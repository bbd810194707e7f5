#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/sharded.hpp>

#include <nn/models.hpp>

#include <atomic>
#include <functional>
#include <string>

/// Ranks that read only the records of their shards: what each reads, that all of it is read once, and the bits of ranks that
/// read everything.

namespace part_of_data_test {

using namespace nn_test;
using std::int64_t;
namespace td = tg::distributed;

namespace {

constexpr int64_t records = 67; // batches of 16, 16, 16, 16 and 3: in the last one there are fewer records than ranks

auto made(td::exchange* ranks) {
    return tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{}, tg::weighted{tg::sparse_softmax_cross_entropy{}},
                                  tg::adam{.learning_rate = 0.01},
                                  tg::sharded{.shards = 8, .options = {.seed = 4}, .ranks = ranks});
}
const tg::fit_options options = [] {
    tg::fit_options o{.epochs = 3, .batch_size = 16, .verbose = 0};
    o.class_weight = {1, 0.5, 2};
    return o;
}();

/// Notes who asks for which record.
struct counted {
    std::vector<std::atomic<int>> times = std::vector<std::atomic<int>>(static_cast<std::size_t>(records));
    tg::data::dataset set() {
        return tg::data::dataset::from_generator(
            records, {{"x", tg::dtype::f32, {6}}, {"label", tg::dtype::i32, {}}, {"sample_weight", tg::dtype::f32, {}}},
            [this](int64_t record, const tg::data::record_writer& out) {
                ++times[static_cast<std::size_t>(record)];
                auto x = out.values<float>(0);
                for (std::size_t k = 0; k < 6; ++k)
                    x[k] = tg::random::uniform_at<float>(3, 0, 0, static_cast<std::uint64_t>(record) * 6 + k) - 0.5f;
                out.values<std::int32_t>(1)[0] = static_cast<std::int32_t>(record % 3);
                out.values<float>(2)[0] = 1;
            });
    }
};

std::string refusal(int size, const std::function<void(td::exchange&)>& f) {
    try {
        td::run_ranks(size, f);
    } catch (const tg::error& e) {
        return e.what();
    }
    return "";
}

} // namespace

TEST_CASE(
    "each rank reads its own records, all of them are read once an epoch, and the bits are those of the whole set") {
    const thread_limit one(1);
    counted alone;
    auto whole = made(nullptr);
    const auto expected = whole.fit(alone.set(), options);
    const double loss = whole.evaluate(alone.set()).loss;
    for (const int size : {1, 2, 4, 8}) {
        CAPTURE(size);
        counted together;
        std::vector<int64_t> own(static_cast<std::size_t>(size));
        td::run_ranks(size, [&](td::exchange& ranks) {
            auto model = made(&ranks);
            counted mine; // and the same records counted for all
            const auto set = mine.set().shard(ranks.rank(), ranks.size());
            const auto h = model.fit(set, options);
            for (std::size_t e = 0; e < 3; ++e) {
                CHECK(h.epochs[e].records == records);
                CHECK(h.epochs[e].loss == expected.epochs[e].loss);
            }
            CHECK(first_difference(model, whole) == "");
            for (std::size_t r = 0; r < mine.times.size(); ++r) {
                together.times[r] += mine.times[r];
                own[static_cast<std::size_t>(ranks.rank())] += mine.times[r];
            }
            CHECK(model.evaluate(set).loss == loss); // which reads all
        });
        for (const auto& times : together.times) CHECK(times == 3);
        // 16 / W of each full batch; of the last, of three, one or none.
        for (const int64_t each : own) CHECK((each >= 3 * (64 / size) && each <= 3 * (64 / size + 3)));
    }
}

TEST_CASE("rows of others are zero, whatever the batch's size") {
    counted c;
    tg::data::loader batches(c.set().batch(16).shard(1, 4));
    for (const auto& b : batches.epoch(0)) {
        const auto x = b.values<float>("x");
        const int64_t begin = b.count() / 4, end = b.count() * 2 / 4;
        for (int64_t r = 0; r < b.count(); ++r)
            for (int64_t k = 0; k < 6; ++k) {
                const bool zero = x[static_cast<std::size_t>(r * 6 + k)] == 0;
                CHECK(zero == (r < begin || r >= end));
            }
    }
    CHECK(batches.whole().count == records);
    CHECK(batches.read().count == 4 * 4 + 1);
}

TEST_CASE("parts that do not make the set are refused") {
    const thread_limit one(1);
    counted c;
    CHECK_THROWS_WITH_AS(c.set().shard(2, 2), "dataset.shard: part 2 of 2", tg::argument_error);
    CHECK_THROWS_WITH_AS(c.set().shard(0, 0), "dataset.shard: part 0 of 0", tg::argument_error);
    CHECK_THROWS_WITH_AS(made(nullptr).fit(c.set().shard(1, 2), options),
                         "fit: the data set is what rank 1 of 2 reads; this model is rank 0 of 1", tg::argument_error);
    CHECK(refusal(2, [&](td::exchange& ranks) { made(&ranks).fit(c.set().shard(0, 2), options); }) ==
          "fit: the data set is what rank 0 of 2 reads; this model is rank 1 of 2");
    // The same number of records in another order: some are read twice.
    const std::string other = refusal(2, [&](td::exchange& ranks) {
        std::vector<int64_t> order(static_cast<std::size_t>(records));
        for (int64_t r = 0; r < records; ++r)
            order[static_cast<std::size_t>(r)] = ranks.rank() == 0 ? r : records - 1 - r;
        made(&ranks).fit(c.set().subset(order).shard(ranks.rank(), 2), {.batch_size = 16, .verbose = 0});
    });
    CHECK(other.substr(0, 79) == "fit: all ranks together have read 67 records of an epoch, which has 67 on rank ");
}

} // namespace part_of_data_test
