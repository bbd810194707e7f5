#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/distributed.hpp>
#include <tapegraph/graph/explain.hpp>

#include <models/cats_and_dogs.hpp>
#include <nn/models.hpp>

#include <algorithm>
#include <string>
#include <vector>

/// Sums over ranks under the calls of the compiled step, on the imitated network: every call takes what the cost model says, so the
/// times are the same on every machine.

namespace overlap_test {

using namespace nn_test;
namespace td = tg::distributed;

namespace {

/// Counts what the cost model says of every call of a program, and lets a rank's clock go on by `seconds_each` of it.
class charged final : public tg::runtime::call_observer {
public:
    charged(td::imitated_exchange& mine, double seconds_each) : mine_(&mine), each_(seconds_each) {}
    void begin(const tg::runtime::observed_call& c) override { current_ = c; }
    void end() override {
        if (current_.part != tg::runtime::call_part::program) {
            ++waits;
            return;
        }
        const auto& p = *static_cast<const tg::ir::program*>(current_.source);
        if (current_.number == p.view().steps.size()) return;
        const double cost = tg::ir::detail::predicted(tg::ir::cost_of(p, current_.number));
        total += cost;
        if (each_ > 0) mine_->compute(cost * each_);
    }
    double total = 0;
    int waits = 0;

private:
    td::imitated_exchange* mine_;
    double each_;
    tg::runtime::observed_call current_{};
};

auto cnn(td::exchange* ranks, int shards) {
    return tg::compile<tg::graph>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                                  tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4},
                                  tg::sharded{.shards = shards, .options = {.seed = 1}, .ranks = ranks});
}

std::string bits_of(const auto& model) {
    std::string bits;
    for (const tg::variable& v : model.variables())
        bits.append(static_cast<const char*>(v.data().read()), v.data().outline_view().bytes());
    return bits;
}

} // namespace

TEST_CASE("what of the CNN's communication is exposed under its compiled step: 8 ranks of batch 16") {
    const thread_limit one(1);
    const auto x = noise<float>({128, 50, 50, 3}, 1);
    const auto y = coin_flips<float>(128, 2);
    auto alone = cnn(nullptr, 8);
    for (int i = 0; i < 2; ++i) alone.train_on_batch(x, y);
    CHECK(alone.exchanges().empty());
    const std::string expected = bits_of(alone);
    for (const double bits_per_second : {10e9, 1e9}) {
        CAPTURE(bits_per_second);
        std::vector<double> exposed(8);
        std::vector<std::string> found(8);
        td::run_on_network(8, {.bits_per_second = bits_per_second}, [&](td::imitated_exchange& mine) {
            auto model = cnn(&mine, 8);
            constexpr double step = 0.117; // seconds on one core
            double exposed_before = 0, exposed_after = 0;
            charged all(mine, 0);
            {
                const tg::runtime::observer_scope scope(all);
                model.train_on_batch(x, y); // agreement, plans
            }
            for (const tg::exchange_report& e : model.exchanges()) exposed_before += e.exposed;
            const double waited = mine.waited();
            charged clock(mine, step / all.total);
            {
                const tg::runtime::observer_scope scope(clock);
                model.train_on_batch(x, y);
            }
            const auto r = static_cast<std::size_t>(mine.rank());
            exposed[r] = (mine.waited() - waited) / step;
            found[r] = bits_of(model);
            std::size_t bytes = 0;
            bool early = false;
            for (const tg::exchange_report& e : model.exchanges()) {
                CHECK(e.steps == 2);
                CHECK(e.bytes <= 1 << 20);
                exposed_after += e.exposed;
                bytes += e.bytes;
                early = early || (e.name.find("(conv2/kernel") != std::string::npos && e.after_step < 60);
            }
            CHECK(early); // of 71 calls
            if (mine.rank() == 0) {
                const std::string text = tg::explain(model, {.batch_size = 16});
                CHECK(text.find("exchanges: bytes,") != std::string::npos);
                CHECK(text.find("bucket 0 (conv3/kernel and 3 more), piece 1 of 3") != std::string::npos);
            }
            CHECK(bytes >= 1'674'701 * sizeof(float));
            CHECK(clock.waits <= static_cast<int>(model.exchanges().size())); // a profiler sees each wait as a call
            CHECK(exposed_after - exposed_before ==
                  doctest::Approx(mine.waited() - waited).epsilon(0.05)); // and looks at the network
        });
        const double most = *std::max_element(exposed.begin(), exposed.end());
        MESSAGE("exposed: ", 100 * most, " %");
        for (const std::string& each : found) CHECK(each == expected);
        // conv2/kernel, 4.5 MB, is complete at 67 % of the step. At 1 Gb/s it takes 63 ms, for which 38 are left: 21.4 % at least.
        CHECK(most < (bits_per_second > 5e9 ? 0.01 : 0.23));
    }
}

} // namespace overlap_test
