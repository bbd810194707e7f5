// needs: proto
// needs: images
#include <tapegraph/tapegraph.hpp>

#include <tapegraph/io/graph_def.hpp>
#include <tapegraph/io/tensorboard.hpp>
#include <tapegraph/io/tensorboard/event_reader.hpp>

#include <cstdio>
#include <string>
#include <vector>

/// `peer_event_files write FOLDER` writes every kind of event; `read FILE` prints the scalars of one that somebody else wrote.

namespace tg = tapegraph;

namespace {

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = relu(tg::dense(scope / "block" / "hidden", x, {.units = 8}));
        return tg::dense(scope / "out", h, {.units = 3});
    }
};

void write(const std::string& folder) {
    tg::io::event_writer events(folder);
    for (int step = 0; step < 100; ++step) events.scalar("loss", 1.0 / (1 + step), step);
    events.scalar("extreme", 1e300, 1); // infinite as a float
    std::vector<float> values;
    for (int i = 0; i < 1009; ++i) values.push_back(static_cast<float>((i * 7919) % 1009) / 100 - 3);
    events.histogram("values", values, 5);
    events.histogram("equal", std::vector<double>(7, 2.5), 5);
    events.histogram("none", std::vector<double>(), 5);
    tg::tensor<float> picture = tg::zeros<float>({2, 3, 4, 3});
    for (int i = 0; i < picture.size(); ++i) picture.mutable_data()[i] = static_cast<float>(i) / 71;
    events.image("picture", picture, 7);
    events.text("note", "# a *title*", 9);
    events.hyperparameters({{"rate", 0.5}, {"optimizer", "adam"}, {"shuffle", true}}, {{"loss"}});
    events.end_session();
    const auto model =
        tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 5>{}, tg::softmax_cross_entropy{}, tg::adam{});
    events.graph(tg::io::graph_def(model));
    std::vector<tg::io::node_time> times;
    for (const std::string& name : tg::io::graph_call_names(model.training_view()))
        times.push_back({name, static_cast<std::int64_t>(times.size()) * 10, 7.6, 4096});
    events.node_times("step 3", times, 3);
    tg::io::write_graph_def(folder + "/graph.pb", model);
    tg::io::write_graph_def(folder + "/graph.pbtxt", model);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    if (argv[1] == std::string("write")) {
        write(argv[2]);
        return 0;
    }
    for (const auto& series : tg::io::read_scalars(argv[2]))
        for (const auto& p : series.points)
            std::printf("%s %lld %.9g %.17g\n", series.tag.c_str(), static_cast<long long>(p.step), p.value,
                        p.wall_time);
}
