#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/server.hpp>
#include <tapegraph/compile/training_step.hpp>
#include <tapegraph/io/callbacks/checkpoints.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/constraint.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/nn/optimizers/clipping.hpp>
#include <tapegraph/nn/regularizer.hpp>
#include <tapegraph/train/callbacks/early_stopping.hpp>

#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <string>

/// Parts of a model, and variables, on tasks of a cluster by name: the bits of the same model in one process, on every task.

namespace tasks_test {

using namespace nn_test;
namespace td = tg::distributed;

namespace {

/// Three tasks that compute; the chief, which has what no name places, is the last of them. A parameter server takes no part.
const tg::cluster_spec cluster{{"worker", {"one", "two"}}, {"chief", {"three"}}, {"ps", {"four"}}};

/// f(server) on the tasks that compute, each with one thread.
template <class F>
void on_tasks(const F& f) {
    td::run_ranks(cluster.size(), [&](td::exchange& ranks) {
        tg::server server(ranks, cluster);
        CHECK((server.tasks() == nullptr) == (server.task().job == "ps"));
        if (server.tasks() != nullptr) f(server);
    });
}

/// A table, of which rows alone may be updated, moving averages, random numbers, a kernel that two tasks use, with a regularizer, and one with
/// a constraint; blocks next to each other, inside of each other, and on a device of a task.
template <bool Sparse>
struct network {
    static constexpr tg::dense_options tied{.units = 6, .kernel_regularizer = tg::regularizers::l2{.factor = 0.01}};

    constexpr auto operator()(auto scope, auto x, auto ids) const {
        const auto h = numbers(scope, tg::eval(x * 2));
        const auto words = of_words(scope, ids);
        return tg::dense(scope / "out", tanh(h + words),
                         {.units = 3, .kernel_constraint = tg::constraints::max_norm{.max_value = 0.5}});
    }
    constexpr auto numbers(auto scope, auto x) const {
        const auto on = scope.with_device("/job:worker/task:1");
        const auto h = tg::dense(scope / "tied", x, tied);
        return tg::batch_normalization(scope / "norm", tanh(h));
    }
    constexpr auto of_words(auto scope, auto ids) const {
        const auto on = scope.with_device("/job:worker/task:0/cpu:1");
        auto h = tg::embedding(scope / "words", ids, {.input_dim = 11, .output_dim = 3, .sparse = Sparse});
        h = dropped(scope, tg::flatten(h));
        return tg::dense((scope / "tied").reuse(), h, tied);
    }
    constexpr auto dropped(auto scope, auto h) const {
        const auto on = scope.with_device("/job:worker/replica:0/task:1");
        return tg::dropout(scope / "drop", h, {.rate = 0.4});
    }
};

template <class Mode = tg::graph>
auto made(tg::task_group* with, std::uint64_t seed = 7) {
    return tg::compile<Mode>(network<true>{},
                             tg::inputs{tg::input<"x">(tg::spec<float, tg::dyn, 6>{}),
                                        tg::input<"ids">(tg::spec<std::int32_t, tg::dyn, 2>{})},
                             tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.1},
                             tg::metrics{tg::confusion_matrix<3>{}}, {.seed = seed, .tasks = with});
}

tg::tensor<float> numbers(std::int64_t count, std::uint64_t seed) { return noise<float>({count, 6}, seed); }
tg::tensor<std::int32_t> words(std::int64_t count, std::uint64_t seed) {
    return reshape(classes(2 * count, 11, seed), {count, 2});
}
tg::data::dataset records() {
    tg::data::dataset set;
    set.add("x", numbers(7, 3).to_vector(), {6})
        .add("ids", words(7, 4).to_vector(), {2})
        .add("label", classes(7, 3, 5).to_vector());
    return set;
}

/// Where two texts differ; empty where they do not.
std::string difference_of(const std::string& a, const std::string& b) {
    std::size_t at = 0;
    while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
    const std::size_t from = at < 30 ? 0 : at - 30;
    return a == b ? "" : "'" + a.substr(from, 60) + "' is not '" + b.substr(from, 60) + "'";
}

/// What a model says of itself while it trains, evaluates and predicts, and in the end its variables.
template <class Model>
std::string life_of(Model& model) {
    const tg::data::dataset set = records();
    std::string text;
    for (std::uint64_t i = 0; i < 3; ++i) {
        const auto r = model.train_on_batch(numbers(5, i), words(5, i), classes(5, 3, i));
        text += std::to_string(r.loss) + ' ' + std::to_string(r.accuracy) + '\n';
    }
    text += to_string(model.predict(numbers(2, 8), words(2, 8))) + to_string(model.predict(numbers(4, 9), words(4, 9)));
    model.variables().set_trainable("norm", false);
    const std::string lines = model
                                  .fit(set, {.epochs = 2, .batch_size = 2, .validation_data = set, .verbose = 0},
                                       tg::early_stopping{.monitor = "loss", .restore_best_weights = true})
                                  .csv();
    for (std::size_t at = 0, end; (end = lines.find('\n', at)) != lines.npos; at = end + 1)
        text += lines.substr(at, lines.rfind(',', end) - at) + '\n'; // without the seconds
    model.variables().set_trainable("norm", true);
    model.train_on_batch(numbers(5, 11), words(5, 11), classes(5, 3, 11));
    const auto measured = model.evaluate(set, 3);
    text += to_string(measured.tensor("confusion_matrix")) + std::to_string(measured.loss);
    model.gather_variables();
    for (const tg::variable& v : model.variables())
        text += v.path() + ' ' +
                (v.type() == tg::dtype::f32 ? to_string(v.template value<float>())
                                            : to_string(v.template value<double>())) +
                '\n';
    return text;
}

/// The first variable, which are all to be here, of other bits.
template <class Model>
std::string difference_from(const Model& right, const Model& model) {
    for (const tg::variable& v : right.variables())
        if (!v.metric_state() && !same_bits(v.data(), model.variables()[v.path()].data())) return v.path();
    return "";
}

} // namespace

TEST_CASE("parts of a model on tasks by name: the bits of one process, on every task") {
    const thread_limit one(1);
    auto alone = made(nullptr);
    const std::string right = life_of(alone);
    auto eager = made<tg::eager>(nullptr);
    CHECK(difference_of(life_of(eager), right) == "");
    on_tasks([&](tg::server& server) {
        auto model = made(server.tasks());
        CHECK(difference_of(life_of(model), right) == "");
        CHECK(difference_from(alone, model) == "");
        CHECK(model.writes_files() == server.is_chief());
        auto everywhere = made<tg::eager>(server.tasks()); // eager mode computes all of it on every task
        CHECK(difference_of(life_of(everywhere), right) == "");
    });
}

TEST_CASE("each task has what it holds and reads; an error names the rest, which gathering brings") {
    const thread_limit one(1);
    auto alone = made(nullptr);
    const auto step = [](auto& m, std::uint64_t i) { m.train_on_batch(numbers(5, i), words(5, i), classes(5, 3, i)); };
    step(alone, 0);
    on_tasks([&](tg::server& server) {
        auto model = made(server.tasks());
        CHECK(model.variables()["words/embeddings"].is_here()); // the first values are drawn by all
        step(model, 0);
        const auto here = [&](const char* path) { return model.variables()[path].is_here(); };
        const std::string task = server.task().text();
        CHECK(here("words/embeddings") == (task == "/job:worker/task:0"));
        CHECK(here("words/embeddings/adam_m") == (task == "/job:worker/task:0"));
        CHECK(here("tied/kernel") == (task == "/job:worker/task:1"));
        CHECK(here("norm/moving_mean") == (task == "/job:worker/task:1"));
        CHECK(here("out/kernel") == (task == "/job:chief/task:0"));
        CHECK(here("out/bias/adam_v") == (task == "/job:chief/task:0"));
        CHECK(here("__metrics__/confusion_matrix/confusion_matrix"));
        if (!here("tied/kernel"))
            CHECK_THROWS_WITH_AS(model.variables()["tied/kernel"].template value<float>(),
                                 "variable 'tied/kernel' is held by /job:worker/task:1; model.gather_variables(), "
                                 "called on every task, brings it here until the next step",
                                 tg::argument_error);
        // Reading the shape asks nobody.
        CHECK(model.variables()["words/embeddings"].shape() == tg::shape{11, 3});
        CHECK(model.parameter_count() == alone.parameter_count());
        model.gather_variables();
        CHECK(difference_from(alone, model) == "");
        model.gather_variables(); // nothing is missing
        step(model, 1);
        CHECK(here("out/kernel") == (task == "/job:chief/task:0"));
    });
}

TEST_CASE("one process continues from what tasks save, and the other way round") {
    const thread_limit one(1);
    const support::temporary_folder folder;
    const std::string file = (folder.path() / "run.safetensors").string();
    const auto steps = [](auto& m, std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t i = from; i < to; ++i) m.train_on_batch(numbers(5, i), words(5, i), classes(5, 3, i));
    };
    auto whole = made(nullptr);
    steps(whole, 0, 4);
    on_tasks([&](tg::server& server) {
        auto model = made(server.tasks());
        steps(model, 0, 2);
        model.save(file, {.everything = true}); // the chief writes
        server.tasks()->barrier("saved");
        auto next = made(server.tasks());
        next.load(file, {.everything = true});
        steps(next, 2, 4);
        next.gather_variables();
        CHECK(difference_from(whole, next) == "");
    });
    auto next = made(nullptr);
    next.load(file, {.everything = true});
    steps(next, 2, 4);
    CHECK(difference_from(whole, next) == "");

    // Checkpoints of fit: stopped after one epoch, and gone on from by the same call.
    auto straight = made(nullptr);
    straight.fit(records(), {.epochs = 3, .batch_size = 2, .verbose = 0});
    for (const std::int64_t epochs : {1, 3})
        on_tasks([&](tg::server& server) {
            auto model = made(server.tasks());
            model.fit(records(), {.epochs = epochs, .batch_size = 2, .verbose = 0},
                      tg::keep_checkpoints{.folder = folder.path() / "run"});
            model.gather_variables();
            if (epochs == 3) CHECK(difference_from(straight, model) == "");
        });
}

namespace {
struct own_step {
    constexpr auto operator()(auto step, auto x, auto ids) const {
        const auto y = network<false>{}(step / "net", x, ids);
        const auto loss = tg::eval(mean(square(y)));
        step.minimize(loss);
        return tg::outputs{tg::output<"loss">(loss), tg::output<"y">(y)};
    }
};

struct define_then_run {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1, 6});
        auto h = hidden(scope, x);
        const auto y = tg::dense(scope / "out", tanh(h), {.units = 2});
        const auto loss = tg::eval(mean(square(y)));
        const auto n = scope.template variable<float>("n", {}, {.initializer = tg::init::zeros{}, .trainable = false});
        const auto w = (scope / "hidden").reuse().template variable<float>("kernel", {6, 4});
        return tg::fetches{
            tg::fetch("loss", loss),
            tg::fetch("y", y),
            tg::fetch("n", n),
            tg::fetch("w", w),
            tg::fetch("begin", tg::initialize_variables()),
            tg::fetch("train", tg::group(tg::minimize(loss, tg::adam{.learning_rate = 0.1}), tg::assign_add(n, 1)))};
    }
    constexpr auto hidden(auto scope, auto x) const {
        const auto on = scope.with_device("/job:worker/task:1");
        return scope.named("h", tg::dense(scope / "hidden", x, {.units = 4}));
    }
};

using tg::to_string;
template <class... Where>
std::string runs_of(Where&&... where) {
    tg::session<define_then_run> session(where..., std::uint64_t{7});
    std::string all;
    const auto x = numbers(5, 1);
    for (int i = 0; i < 3; ++i) {
        const auto [loss, n] = session.template run<"train", "loss", "n">({{"x", x}});
        all += to_string(loss) + ' ' + to_string(n) + '\n';
        if (i == 1) all += to_string(session.template run<"w">());
    }
    all += to_string(session.template run<"y">({{"x", x}})) + '\n';
    all += to_string(session.template run<"y">(tg::given<"h">(tg::ones<float>({5, 4})))) + '\n';
    session.gather_variables();
    for (const tg::variable& v : session.variables())
        if (v.type() == tg::dtype::f32) all += v.path() + to_string(v.template value<float>()) + '\n';
    session.template run<"begin">();
    return all + to_string(session.template run<"w">());
}
} // namespace

TEST_CASE("steps of one's own and sessions over tasks have the bits of one process") {
    const thread_limit one(1);
    const auto specs = tg::inputs{tg::input<"x">(tg::spec<float, tg::dyn, 6>{}),
                                  tg::input<"ids">(tg::spec<std::int32_t, tg::dyn, 2>{})};
    const tg::chain optimizer{tg::clip_by_global_norm{.norm = 1}, tg::adam{.learning_rate = 0.1}};
    auto alone = tg::compile_step<tg::graph>(own_step{}, specs, optimizer, {.seed = 2});
    std::vector<tg::tensor<float>> losses;
    for (std::uint64_t i = 0; i < 3; ++i) losses.push_back(alone(numbers(4, i), words(4, i)).template get<"loss">());
    const std::string right = runs_of();
    CHECK(right.find("hidden/kernel") != right.npos);
    on_tasks([&](tg::server& server) {
        auto step = tg::compile_step<tg::graph>(own_step{}, specs, optimizer, {.seed = 2, .tasks = server.tasks()});
        for (std::uint64_t i = 0; i < 3; ++i)
            CHECK(same_bits(losses[i], step(numbers(4, i), words(4, i)).template get<"loss">()));
        step.gather_variables();
        for (const tg::variable& v : alone.variables()) {
            CAPTURE(v.path());
            CHECK(same_bits(v.data(), step.variables()[v.path()].data()));
        }
        CHECK(runs_of(*server.tasks()) == right);
    });
}

} // namespace tasks_test
