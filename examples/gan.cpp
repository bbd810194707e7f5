#include <tapegraph/tapegraph.hpp>

#include <tapegraph/compile/training_step.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "study/svg_chart.hpp"

// A generative adversarial network (Goodfellow et al. 2014): a generator learns to place points as a mixture of eight normal
// distributions on a circle does, because a discriminator learns to tell its points from the mixture's. Both train in one
// step, which the compiler has made of both losses and two optimizers.
//
//   gan [PICTURE.svg]

namespace tg = tapegraph;

constexpr int modes = 8;
constexpr std::int64_t batch = 256, size_of_noise = 8;
constexpr double radius = 2, deviation = 0.05;

constexpr auto generator = [](auto scope, auto noise) {
    auto h = noise;
    for (int i = 0; i < 2; ++i) h = tg::eval(relu(tg::dense(scope / "hidden" / i, h, {.units = 64})));
    return tg::dense(scope / "point", h, {.units = 2});
};
constexpr auto discriminator = [](auto scope, auto point) {
    auto h = point;
    for (int i = 0; i < 2; ++i) h = tg::eval(leaky_relu(tg::dense(scope / "hidden" / i, h, {.units = 64}), 0.2));
    return tg::dense(scope / "score", h, {.units = 1}); // large: real
};
constexpr auto adversaries = [](auto step, auto real, auto noise) {
    const auto judge = (step / "discriminator").reuse();
    const auto of_real = discriminator(judge, real),
               of_fake = discriminator(judge, generator(step / "generator", noise));
    const auto d_loss = tg::eval(mean(softplus(-of_real) + softplus(of_fake)));
    const auto g_loss = tg::eval(mean(softplus(-of_fake)));
    step.template minimize<0>(d_loss, "discriminator");
    step.template minimize<1>(g_loss, "generator");
    return tg::outputs{tg::output<"d_loss">(d_loss), tg::output<"g_loss">(g_loss)};
};

std::array<double, 2> centre(int mode) {
    const double angle = 2 * 3.14159265358979 * mode / modes;
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Points of the mixture, each of a mode drawn by chance.
tg::tensor<float> draw(std::int64_t count, std::uint64_t seed) {
    const tg::tensor<float> which = tg::random::uniform<float>({count}, {.seed = 2 * seed});
    tg::tensor<float> points = tg::random::normal<float>({count, 2}, {.seed = 2 * seed + 1});
    for (std::int64_t i = 0; i < count; ++i) {
        const auto [x, y] = centre(static_cast<int>(which.data()[i] * modes));
        float* const point = points.mutable_data() + 2 * i;
        point[0] = static_cast<float>(x + deviation * point[0]);
        point[1] = static_cast<float>(y + deviation * point[1]);
    }
    return points;
}

int main(int argc, char** argv) {
    constexpr tg::optimizers both{tg::adam{.learning_rate = 1e-3, .beta1 = 0.5},
                                  tg::adam{.learning_rate = 1e-3, .beta1 = 0.5}};
    auto train = tg::compile_step<tg::graph>(adversaries,
                                             tg::inputs{tg::input<"real">(tg::spec<float, tg::dyn, 2>{}),
                                                        tg::input<"noise">(tg::spec<float, tg::dyn, size_of_noise>{})},
                                             both, {.seed = 1});
    auto drawn = tg::compile<tg::graph>(generator, tg::spec<float, tg::dyn, size_of_noise>{},
                                        {.shared = &train.variables(), .shared_scope = "generator"});
    for (std::uint64_t i = 1; i <= 10000; ++i) {
        const auto [d_loss, g_loss] =
            train(draw(batch, i), tg::random::normal<float>({batch, size_of_noise}, {.seed = i}));
        if (i % 2000 == 0)
            std::printf("step %5d: discriminator %.3f, generator %.3f\n", static_cast<int>(i), d_loss.item(),
                        g_loss.item());
    }

    // How many of the generator's points lie within four deviations of a mode's centre, and of which.
    constexpr std::int64_t count = 1000;
    const tg::tensor<float> real = draw(count, 0);
    const tg::tensor<float> fake = drawn.predict(tg::random::normal<float>({count, size_of_noise}, {.seed = 0}));
    std::array<int, modes> near{};
    for (std::int64_t i = 0; i < count; ++i)
        for (int mode = 0; mode < modes; ++mode) {
            const auto [x, y] = centre(mode);
            near[static_cast<std::size_t>(mode)] +=
                std::hypot(fake.data()[2 * i] - x, fake.data()[2 * i + 1] - y) < 4 * deviation;
        }
    int found = 0, all = 0;
    for (const int each : near) found += each >= count / modes / 4, all += each;
    std::printf("%d of %d modes found, %.0f %% of the points are near one\n", found, modes, 100. * all / count);

    if (argc > 1) {
        study::chart chart{.title = "Points of a mixture, and a generator's",
                           .x_label = "x",
                           .y_label = "y",
                           .width = 560,
                           .height = 560};
        for (const auto& [name, points] : {std::pair{"the mixture", real}, std::pair{"the generator", fake}}) {
            study::chart_series series{.name = name, .y = {}, .joined = false};
            for (std::int64_t i = 0; i < count; ++i) {
                series.x.push_back(points.data()[2 * i]);
                series.y.push_back(points.data()[2 * i + 1]);
            }
            chart.series.push_back(series);
        }
        study::write_svg_chart(argv[1], chart);
    }
}
