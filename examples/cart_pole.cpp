#include <tapegraph/tapegraph.hpp>

#include <tapegraph/compile/instance.hpp>
#include <tapegraph/data/counter_random.hpp>
#include <tapegraph/nn/optimizers/applied.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "study/svg_chart.hpp"

// CartPole (Barto, Sutton and Anderson 1983): a cart is pushed left or right, so that the pole on it does not fall. An actor
// and a critic learn it in eager mode, by a loop of one's own: the advantages of 16 carts that run side by side, 32 steps at
// a time. An episode ends with the pole's fall, with the cart off the track, or after 500 steps.
//
//   cart_pole [CHART.svg [SEED]]

namespace tg = tapegraph;

constexpr std::int64_t carts = 16, steps = 32, updates = 300, longest = 500;
constexpr std::uint64_t passes = 4;
constexpr float discount = 0.99f, smoothing = 0.95f, reward = 1 - discount; // of a step: values are at most 1

/// One cart with its pole. State: position, speed, angle, angular speed.
class cart_pole {
public:
    explicit cart_pole(std::uint64_t seed) : random_(seed, 0) { restart(); }

    const std::array<double, 4>& state() const { return state_; }
    std::int64_t length() const { return length_; }
    bool fallen() const { return std::abs(state_[0]) > 2.4 || std::abs(state_[2]) > 12 * 3.14159265358979 / 180; }

    void restart() {
        for (double& each : state_) each = random_.uniform(-0.05, 0.05);
        length_ = 0;
    }
    /// 0.02 s, by Euler's method, with a force of 10 N to the right or to the left.
    void push(bool right) {
        constexpr double gravity = 9.8, pole = 0.1, total = 1.1, half_length = 0.5, seconds = 0.02;
        auto& [x, speed, angle, turning] = state_;
        const double sine = std::sin(angle), cosine = std::cos(angle);
        const double pull = ((right ? 10 : -10) + pole * half_length * turning * turning * sine) / total;
        const double turn =
            (gravity * sine - cosine * pull) / (half_length * (4. / 3 - pole * cosine * cosine / total));
        const double push = pull - pole * half_length * turn * cosine / total;
        x += seconds * speed, speed += seconds * push, angle += seconds * turning, turning += seconds * turn;
        ++length_;
    }

private:
    tg::data::counter_random random_;
    std::array<double, 4> state_{};
    std::int64_t length_ = 0;
};

constexpr auto actor_and_critic = [](auto scope, auto state) { // state: [batch, 4]
    const auto actor = tanh(tg::dense(scope / "actor", state, {.units = 64}));
    const auto critic = tanh(tg::dense(scope / "critic", state, {.units = 64}));
    return tg::outputs{tg::output<"push">(tg::dense(scope / "push", actor, {.units = 2})),
                       tg::output<"value">(tg::dense(scope / "value", critic, {.units = 1}))};
};

tg::tensor<float> states_of(const std::vector<cart_pole>& all) {
    std::vector<float> numbers;
    for (const cart_pole& each : all) numbers.insert(numbers.end(), each.state().begin(), each.state().end());
    return {numbers, {static_cast<std::int64_t>(all.size()), 4}};
}

int main(int argc, char** argv) {
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    std::vector<cart_pole> all;
    for (std::uint64_t i = 0; i < carts; ++i) all.emplace_back(100 * seed + i);
    tg::data::counter_random random(seed, 1);

    auto net = tg::instance(actor_and_critic, tg::spec<float, tg::dyn, 4>{}, {.seed = seed});
    tg::applied optimizer(tg::chain{tg::clip_by_global_norm{.norm = 0.5}, tg::adam{.learning_rate = 3e-3}},
                          net.variables());

    std::vector<double> lengths; // of the episodes that have ended
    study::chart chart{.title = "A pole is balanced: the mean length of 50 episodes",
                       .x_label = "pushes of a cart",
                       .y_label = "steps"};
    study::chart_series mean_length{.name = "actor and critic", .y = {}};
    for (std::int64_t update = 1; update <= updates; ++update) {
        std::vector<float> seen, rewards, values, running, chances_then;
        std::vector<std::int32_t> pushes;
        for (std::int64_t t = 0; t < steps; ++t) {
            const tg::tensor<float> state = states_of(all);
            const auto [push, value] = net(state);
            const tg::tensor<float> chances = softmax(push);
            seen.insert(seen.end(), state.data(), state.data() + carts * 4);
            values.insert(values.end(), value.data(), value.data() + carts);
            for (std::int64_t i = 0; i < carts; ++i) {
                cart_pole& cart = all[static_cast<std::size_t>(i)];
                pushes.push_back(random.uniform() < chances.data()[2 * i + 1]);
                chances_then.push_back(chances.data()[2 * i + pushes.back()]);
                cart.push(pushes.back() == 1);
                const bool ends = cart.fallen() || cart.length() == longest;
                rewards.push_back(cart.fallen() ? 0.f : reward);
                running.push_back(ends ? 0.f : 1.f);
                if (!ends) continue;
                // Who has come to the end without a fall would have gone on: the critic says how long.
                if (!cart.fallen()) rewards.back() += discount * value.data()[i];
                lengths.push_back(static_cast<double>(cart.length()));
                cart.restart();
            }
        }
        const auto [last_push, last] = net(states_of(all));
        values.insert(values.end(), last.data(), last.data() + carts);

        // Generalized advantage estimation (Schulman et al. 2016), from the last step to the first.
        std::vector<float> advantages(rewards.size()), returns(rewards.size());
        for (std::int64_t i = carts * steps - 1; i >= 0; --i) {
            const auto at = static_cast<std::size_t>(i), next = at + carts;
            const float later = i < carts * (steps - 1) ? advantages[next] : 0.f;
            advantages[at] = rewards[at] - values[at] + discount * running[at] * (values[next] + smoothing * later);
            returns[at] = advantages[at] + values[at];
        }

        // Proximal policy optimization (Schulman et al. 2017): some passes over these steps, in which the chance of a push that
        // was made does not profit from changes by more than a fifth.
        const tg::tensor<float> advantage(advantages, {carts * steps});
        const tg::tensor<float> weights = (advantage - mean(advantage)) / (sqrt(tg::variance(advantage)) + 1e-6f);
        tg::data::dataset made;
        made.add("state", seen, {4})
            .add("push", pushes)
            .add("chance", chances_then)
            .add("weight", weights.to_vector())
            .add("return", returns, {1});
        tg::data::loader batches(made.shuffle(seed).batch(128));
        for (std::uint64_t pass = 0; pass < passes; ++pass)
            for (const tg::data::batch& batch : batches.epoch(update * passes + pass)) {
                const auto weight = batch.tensor<float>("weight");
                tg::gradient_tape tape;
                const auto [push, value] = net.in_training(batch.tensor<float>("state"));
                const tg::tensor<float> logs = log_softmax(push);
                const tg::tensor<float> chance =
                    exp(sum(logs * tg::one_hot<float>(batch.tensor<std::int32_t>("push"), 2), -1));
                const tg::tensor<float> ratio = chance / batch.tensor<float>("chance");
                const tg::tensor<float> gain = mean(minimum(ratio * weight, clip(ratio, 0.8f, 1.2f) * weight));
                const tg::tensor<float> entropy = -mean(sum(exp(logs) * logs, -1));
                const tg::tensor<float> error = mean(square(value - batch.tensor<float>("return")));
                optimizer.apply_gradients(net.gradients(tape, tg::eval(error - gain - 0.01f * entropy)));
            }

        const auto last_50 = static_cast<std::ptrdiff_t>(std::min<std::size_t>(lengths.size(), 50));
        const double length =
            last_50 == 0 ? 0
                         : std::accumulate(lengths.end() - last_50, lengths.end(), 0.) / static_cast<double>(last_50);
        chart.x.push_back(static_cast<double>(update * carts * steps));
        mean_length.y.push_back(length);
        if (update % 50 == 0)
            std::printf("%6lld pushes: an episode has %3.0f steps\n", static_cast<long long>(update * carts * steps),
                        length);
    }

    // The likelier push of each, without chance.
    std::vector<cart_pole> tested;
    for (std::uint64_t i = 0; i < 20; ++i) tested.emplace_back(1'000'000 + i);
    std::vector<std::int64_t> balanced;
    for (cart_pole& cart : tested) {
        while (!cart.fallen() && cart.length() < longest) {
            const auto [push, value] = net(states_of({cart}));
            cart.push(push.data()[1] > push.data()[0]);
        }
        balanced.push_back(cart.length());
    }
    std::printf("20 new episodes: %.0f steps on average, %lld of 20 reach %lld\n",
                static_cast<double>(std::accumulate(balanced.begin(), balanced.end(), std::int64_t{0})) / 20,
                static_cast<long long>(std::count(balanced.begin(), balanced.end(), longest)),
                static_cast<long long>(longest));
    if (argc > 1) {
        chart.series = {mean_length};
        study::write_svg_chart(argv[1], chart);
    }
}
