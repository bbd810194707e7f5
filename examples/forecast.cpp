#include <tapegraph/tapegraph.hpp>

#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/optimizers/schedules.hpp>

#include <cmath>
#include <cstdio>

#include "study/svg_chart.hpp"

// A forecast: a GRU learns a series of a daily and a weekly season from the hours of three weeks, then continues it by
// itself, each prediction becoming the input of the next.
//
//   forecast [CHART.svg]

namespace tg = tapegraph;

constexpr std::int64_t window = 72, learned = 504, ahead = 96;

struct predictor {
    constexpr auto operator()(auto scope, auto x) const { // x: [batch, window, 1]
        return tg::dense(scope / "next", tg::gru(scope / "gru", x, {.units = 24}), {.units = 1});
    }
};

// The value at an hour, without noise.
double season(std::int64_t hour) {
    const double day = 2 * 3.14159265358979 * static_cast<double>(hour) / 24;
    return std::sin(day) + 0.5 * std::sin(day / 7) + 0.25 * std::sin(2 * day);
}

int main(int argc, char** argv) {
    const tg::tensor<float> noise = tg::random::normal<float>({learned}, {.seed = 1});
    std::vector<float> series, inputs, labels;
    for (std::int64_t hour = 0; hour < learned; ++hour)
        series.push_back(static_cast<float>(season(hour)) + 0.05f * noise.data()[hour]);
    for (std::int64_t hour = window; hour < learned; ++hour) {
        inputs.insert(inputs.end(), series.begin() + (hour - window), series.begin() + hour);
        labels.push_back(series[static_cast<std::size_t>(hour)]);
    }
    tg::data::dataset records;
    records.add("window", std::move(inputs), {window, 1}).add("next", std::move(labels), {1});

    auto model = tg::compile<tg::graph>(
        predictor{}, tg::spec<float, tg::dyn, window, 1>{}, tg::mean_squared_error{},
        tg::adam{.learning_rate = tg::cosine_decay{.initial_learning_rate = 0.01, .decay_steps = 2100}});
    const auto history = model.fit(records, {.epochs = 150, .batch_size = 32, .verbose = false});
    std::printf("mean squared error of the next hour: %.4f\n", history.epochs.back().loss);

    study::chart chart{.title = "Four days ahead of three weeks of hours", .x_label = "hour", .y_label = "value"};
    std::vector<double> truth, forecast;
    double error = 0;
    for (std::int64_t hour = learned; hour < learned + ahead; ++hour) {
        const tg::tensor<float> last(std::vector<float>(series.end() - window, series.end()), {1, window, 1});
        const tg::tensor<float> next = model.predict(last);
        series.push_back(next.item());
        chart.x.push_back(static_cast<double>(hour));
        truth.push_back(season(hour));
        forecast.push_back(next.item());
        error += std::abs(truth.back() - forecast.back()) / static_cast<double>(ahead);
    }
    std::printf("mean error of %d hours ahead: %.3f\n", static_cast<int>(ahead), error);
    if (argc > 1) {
        chart.series = {{.name = "the series", .y = truth}, {.name = "the forecast", .y = forecast}};
        study::write_svg_chart(argv[1], chart);
    }
}
