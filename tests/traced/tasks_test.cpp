#include <tapegraph/distributed.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/regularizer.hpp>
#include <tapegraph/traced.hpp>

#include <nn/models.hpp>

#include <string>
#include <vector>

namespace traced_tasks_test {

/// Parts on tasks of a cluster by name in graphs that are made when the program runs: models and sessions have the bits of one
/// process, on every task.

using namespace nn_test;
namespace td = tg::distributed;

namespace {

const tg::cluster_spec cluster{{"worker", {"one", "two"}}, {"chief", {"three"}}};

/// f(server) on the tasks, each with one thread.
template <class F>
void on_tasks(const F& f) {
    td::run_ranks(cluster.size(), [&](td::exchange& ranks) {
        tg::server server(ranks, cluster);
        f(server);
    });
}

/// The names of tasks are data. Moving averages, random numbers, a kernel that two tasks use, with a regularizer.
struct network {
    std::vector<std::string> tasks{"/job:worker/task:1", "/job:worker/task:0/cpu:1"};

    auto operator()(auto scope, auto x) const {
        const tg::dense_options tied{.units = 6, .kernel_regularizer = tg::regularizers::l2{.factor = 0.01}};
        auto h = tg::eval(x * 2);
        {
            const auto on = scope.with_device(tasks[0]);
            h = tg::dense(scope / "tied", h, tied);
            h = tg::batch_normalization(scope / "norm", tanh(h));
        }
        {
            const auto on = scope.with_device(tasks[1]);
            h = tg::dropout(scope / "drop", h, {.rate = 0.4});
            h = tg::dense((scope / "tied").reuse(), h, tied);
        }
        return tg::dense(scope / "out", tanh(h), {.units = 3});
    }
};
auto made(tg::task_group* with) {
    return tg::compile<tg::traced>(network{}, tg::spec<float, tg::dyn, 6>{}, tg::sparse_softmax_cross_entropy{},
                                   tg::adam{.learning_rate = 0.1}, {.seed = 7, .tasks = with});
}

/// What a model says of itself while it trains, evaluates and predicts, and in the end its variables.
template <class Model>
std::string life_of(Model& model) {
    std::string text;
    for (std::uint64_t i = 0; i < 3; ++i) {
        const auto r = model.train_on_batch(noise<float>({5, 6}, i), classes(5, 3, i));
        text += std::to_string(r.loss) + ' ' + std::to_string(r.accuracy) + '\n';
    }
    text += to_string(model.predict(noise<float>({2, 6}, 8)));
    model.variables().set_trainable("norm", false);
    tg::data::dataset set;
    set.add("x", noise<float>({7, 6}, 3).to_vector(), {6}).add("label", classes(7, 3, 5).to_vector());
    text += std::to_string(model.fit(set, {.epochs = 2, .batch_size = 2, .verbose = 0}).epochs.back().loss);
    text += std::to_string(model.evaluate(set, 3).loss);
    model.gather_variables();
    for (const tg::variable& v : model.variables())
        text += v.path() + ' ' + to_string(v.template value<float>()) + '\n';
    return text;
}

/// The same layers as a session's model.
struct in_session {
    auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1, 6});
        const network layers; // named: g++ 12 crashes on a temporary
        const auto y = layers(scope, x);
        const auto loss = tg::eval(mean(square(y)));
        return tg::fetches{tg::fetch("y", y), tg::fetch("loss", loss),
                           tg::fetch("train", tg::minimize(loss, tg::adam{.learning_rate = 0.1}))};
    }
};
template <class Session>
std::string runs_of(Session& session) {
    std::string text;
    for (std::uint64_t i = 0; i < 3; ++i) {
        const tg::tensor<float> loss = session.run({"loss", "train"}, {{"x", noise<float>({4, 6}, i)}});
        text += to_string(loss);
    }
    const tg::tensor<float> y = session.run("y", {{"x", noise<float>({3, 6}, 9)}});
    text += to_string(y);
    session.gather_variables();
    for (const tg::variable& v : session.variables())
        if (v.type() == tg::dtype::f32) text += v.path() + ' ' + to_string(v.template value<float>()) + '\n';
    return text;
}

} // namespace

TEST_CASE("run-time graphs: parts of a model on tasks by name have the bits of one process, on every task") {
    const thread_limit one(1);
    auto alone = made(nullptr);
    const std::string right = life_of(alone);
    CHECK(right.find("tied/kernel") != right.npos);
    on_tasks([&](tg::server& server) {
        auto model = made(server.tasks());
        CHECK((life_of(model) == right));
        CHECK(model.writes_files() == server.is_chief());
    });
}

TEST_CASE("run-time graphs: a session over tasks has the bits of one process") {
    const thread_limit one(1);
    auto alone = tg::make_session<tg::traced>(in_session{}, 5);
    const std::string right = runs_of(alone);
    on_tasks([&](tg::server& server) {
        auto session = tg::make_session<tg::traced>(in_session{}, *server.tasks(), 5);
        CHECK((runs_of(session) == right));
    });
}

} // namespace traced_tasks_test
