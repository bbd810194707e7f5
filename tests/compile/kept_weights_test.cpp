#include <tapegraph/formats/dlpack.hpp>
#include <tapegraph/io/checkpoint_manager.hpp>
#include <tapegraph/io/weights.hpp>
#include <tapegraph/nn/optimizers/chain.hpp>
#include <tapegraph/nn/optimizers/weight_average.hpp>
#include <tapegraph/runtime/kept_memory.hpp>
#include <tapegraph/traced.hpp>
#include <tapegraph/train/minimize.hpp>

#include <nn/models.hpp>
#include <support/temporary_folder.hpp>

#include <thread>
#include <vector>

/// Predictions keep packed weights between runs. Whatever writes a weight, the next prediction must
/// be that of a model which has never kept any.

namespace kept_weights_test {

using namespace nn_test;

namespace {

/// Checks of marks are on in all tests; here the weights are kept as in users' programs.
struct as_users_do {
    bool before = tg::runtime::content_mark::checked.exchange(false);
    ~as_users_do() { tg::runtime::content_mark::checked = before; }
};

/// Products with one and several columns, of padded and exact panels; convolutions as direct sums, by Winograd's
/// transform and unfolded; a transposed factor.
struct mixed {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::eval(relu(tg::conv2d(scope / "direct", x, {.filters = 19, .kernel_size = {3, 3}})));
        h = relu(tg::conv2d(scope / "fast", h,
                            {.filters = 32,
                             .kernel_size = {3, 3},
                             .padding = tg::padding::same(),
                             .algorithm = tg::convolution_algorithm::winograd}));
        h = tg::max_pooling2d(
            tg::conv2d(scope / "unfolded", h, {.filters = 256, .kernel_size = {3, 3}, .stride = {2, 2}}),
            {.pool_size = {2, 2}});
        const auto wide = tanh(tg::dense(scope / "hidden", tg::flatten(h), {.units = 37}));
        const auto w = scope.template variable<float>("turned", {5, 37});
        return tg::matmul(wide, transpose(w)) + tg::dense(scope / "column", wide, {.units = 1});
    }
};
using mixed_spec = tg::spec<float, tg::dyn, 12, 12, 3>;
struct one_product {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "d", x, {.units = 64}); }
};
/// One variable in two shapes, whose filters are transformed alike but not in the same places.
struct two_shapes {
    constexpr auto operator()(auto scope, auto x) const {
        const auto w = scope.template variable<float>("w", {3, 3, 8, 16});
        const tg::conv2d_options fast{.padding = tg::padding::same(), .algorithm = tg::convolution_algorithm::winograd};
        const auto wide = tg::conv2d(x, w, fast);
        return tg::conv2d(wide, tg::reshape(w, {3, 3, 16, 8}), fast);
    }
};
using reference = decltype(tg::compile<tg::eager>(mixed{}, mixed_spec{}));

template <class Mode>
auto compiled() {
    return tg::compile<Mode>(mixed{}, mixed_spec{}, tg::mean_squared_error{},
                             tg::chain(tg::sgd{.learning_rate = 0.05}, tg::weight_average{.decay = 0.5}), {.seed = 4});
}

/// A model in eager mode, which keeps nothing.
template <class Model>
tg::tensor<float> expected(Model& model, const tg::tensor<float>& x) {
    reference fresh = tg::compile<tg::eager>(mixed{}, mixed_spec{}, {.seed = 9});
    for (tg::variable& v : fresh.variables()) v.assign(model.variables()[v.path()].data());
    return fresh.predict(x);
}

/// Three predictions, with and without kept weights.
template <class Model>
bool predicts(Model& model, const char* after) {
    bool right = true;
    for (const std::int64_t rows : {3, 1, 40}) {
        const auto x = noise<float>({rows, 12, 12, 3}, 7);
        const auto y = expected(model, x);
        for (int run = 0; run < 3; ++run) right = right && same_bits(model.predict(x), y);
    }
    CHECK_MESSAGE(right, after);
    return right;
}

template <class F>
void each_graph(const F& f) {
    SUBCASE("graph") { f(tg::graph{}); }
    SUBCASE("traced") { f(tg::traced{}); }
}

struct graph_of_session {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1, 6});
        const auto y = tg::dense(scope / "d", x, {.units = 7});
        return tg::fetches{tg::fetch("y", y),
                           tg::fetch("train", tg::minimize(mean(square(y)), tg::sgd{.learning_rate = 0.5}))};
    }
};

/// A step that writes a cache, and another variable that a later step may write.
struct with_cache {
    constexpr auto operator()(auto scope) const {
        const auto x = scope.template placeholder<float>("x", {-1, 6});
        const auto w = scope.template variable<float>("w", {6, 7});
        const auto cache = scope.template variable<float>("cache", {6, 7});
        const auto y = tg::eval(tg::matmul(x, w));
        return tg::fetches{tg::fetch("y", y), tg::fetch("cached", tg::matmul(x, cache)),
                           tg::fetch("keep", tg::assign_add(cache, sum(y))),
                           tg::fetch("move", tg::assign_add(w, 0.5f))};
    }
};

const auto batch_of = [](std::uint64_t seed) {
    return std::pair(noise<float>({6, 12, 12, 3}, seed), noise<float>({6, 5}, seed + 1));
};

} // namespace

TEST_CASE("whoever writes a weight, predictions have the new one") {
    each_graph([](auto mode) {
        const as_users_do settings;
        auto model = compiled<decltype(mode)>();
        predicts(model, "first values");
        const auto kept = tg::kept_memory_bytes();
        CHECK(kept > 0);
        auto& w = model.variables()["hidden/kernel"];
        auto& filters = model.variables()["direct/kernel"];
        const auto ones = tg::ones<float>(w.shape());

        w.assign(tg::tensor<float>(tg::tensor<float>(w.data()) * 0.5f));
        predicts(model, "assign");
        w.assign_add(ones);
        predicts(model, "assign_add");
        filters.assign_sub(tg::ones<float>(filters.shape()));
        predicts(model, "assign_sub");
        w.replace(tg::full<float>(w.shape(), 0.125f));
        predicts(model, "replace");
        w.data() = noise<float>(w.shape(), 3);
        predicts(model, "a tensor in place of the variable's");
        for (const char* path : {"turned", "column/kernel", "fast/kernel", "unfolded/kernel", "direct/kernel"}) {
            auto& v = model.variables()[path];
            v.assign(noise<float>(v.shape(), 17));
            predicts(model, path);
        }

        const auto [x, y] = batch_of(1);
        for (int i = 0; i < 3; ++i) {
            model.train_on_batch(x, y);
            predicts(model, "a step");
        }
        tg::data::dataset set;
        set.add("x", x.to_vector(), {12, 12, 3});
        set.add("y", y.to_vector(), {5});
        model.fit(set.batch(3), {.epochs = 2, .verbose = false});
        predicts(model, "fit");
        {
            tg::averaged_weights averages(model.variables());
            predicts(model, "averages");
        }
        predicts(model, "no averages");
        tg::minimize([&] { return model.gradients(x, y); }, model.variables(), tg::lbfgs{}, {.max_iterations = 2});
        predicts(model, "minimize");
        model.variables()["hidden/kernel"].set_trainable(false);
        model.train_on_batch(x, y);
        predicts(model, "a step with a frozen variable");
        model.variables()["hidden/kernel"].set_trainable(true);

        const support::temporary_folder folder;
        model.save(folder.path() / "w.safetensors");
        tg::checkpoint_manager checkpoints((folder.path() / "run").string());
        checkpoints.save(model);
        checkpoints.wait();
        model.train_on_batch(x, y);
        predicts(model, "a step after saving");
        model.load(folder.path() / "w.safetensors");
        predicts(model, "load");
        w.assign(ones);
        predicts(model, "assign before a checkpoint");
        checkpoints.restore_latest(model);
        predicts(model, "a checkpoint");
        checkpoints.close();

        auto other = tg::compile<decltype(mode)>(mixed{}, mixed_spec{}, {.shared = &model.variables()});
        predicts(other, "a model that shares the variables");
        other.variables()["hidden/kernel"].assign(noise<float>(w.shape(), 5));
        predicts(model, "assign to the other model");
        model.train_on_batch(x, y);
        predicts(other, "a step of the other model");
    });
}

TEST_CASE("memory that was handed out is not kept, and written to at any time") {
    each_graph([](auto mode) {
        const as_users_do settings;
        auto model = compiled<decltype(mode)>();
        const auto written = [&](float* at, const char* how) {
            predicts(model, how);
            for (int i = 0; i < 3; ++i) {
                at[i] += 0.25f;
                predicts(model, how);
            }
        };
        for (const char* path : {"hidden/kernel", "turned", "direct/kernel", "fast/kernel", "unfolded/kernel"}) {
            auto& v = model.variables()[path];
            written(static_cast<float*>(v.own_data()), path);
            v.assign(noise<float>(v.shape(), 3));
            written(static_cast<float*>(v.own_data()), path);
        }
        auto& w = model.variables()["hidden/kernel"];
        w.replace(tg::ones<float>(w.shape())); // a new buffer
        written(static_cast<float*>(w.data().write()), "write");
        tg::tensor<float> own = noise<float>(w.shape(), 5);
        float* const inside = own.mutable_data();
        w.data() = std::move(own);
        written(inside, "mutable_data of a tensor that became the variable's");
        std::vector<float> users(static_cast<std::size_t>(w.size()), 0.5f);
        w.data() = tg::any_tensor::over(tg::dtype::f32, w.shape(), users.data(), nullptr, false);
        written(users.data(), "a user's memory");
        w.replace(tg::zeros<float>(w.shape()));
        auto* const exported = tg::to_dlpack_mutable(w.data());
        written(static_cast<float*>(exported->tensor.data), "DLPack");
        exported->deleter(exported);
    });
}

TEST_CASE("what programs keep: from the second run on, once for all programs, and as long as one has it") {
    each_graph([](auto mode) {
        const as_users_do settings;
        const auto before = tg::kept_memory_bytes();
        const auto x = noise<float>({4, 33}, 1);
        const auto build = [&](tg::variable_list* shared) {
            tg::compile_options options{.seed = 1};
            options.shared = shared;
            return tg::compile<decltype(mode)>(one_product{}, tg::spec<float, tg::dyn, 33>{}, options);
        };
        {
            auto model = build(nullptr);
            const auto y = model.predict(x);
            CHECK(tg::kept_memory_bytes() == before);
            CHECK(same_bits(model.predict(x), y));
            CHECK(tg::kept_memory_bytes() == before + 64 * 33 * sizeof(float));
            auto second = build(&model.variables());
            for (int i = 0; i < 2; ++i) CHECK(same_bits(second.predict(x), y));
            CHECK(tg::kept_memory_bytes() == before + 64 * 33 * sizeof(float));
            model.variables()["d/kernel"].assign(noise<float>({33, 64}, 2));
            model.predict(x); // this one forgets the old matrix; the second model still has it
            CHECK(tg::kept_memory_bytes() == before + 64 * 33 * sizeof(float));
            for (int i = 0; i < 2; ++i) CHECK(same_bits(model.predict(x), second.predict(x)));
            CHECK(tg::kept_memory_bytes() == before + 64 * 33 * sizeof(float));
            model.predict(noise<float>({1, 33}, 2)); // a row reads the matrix itself
            CHECK(tg::kept_memory_bytes() == before + 64 * 33 * sizeof(float));
        }
        CHECK(tg::kept_memory_bytes() == before);
        tg::set_kept_memory(false);
        {
            auto model = build(nullptr);
            for (int i = 0; i < 3; ++i) model.predict(x);
            CHECK(tg::kept_memory_bytes() == before);
        }
        tg::set_kept_memory(true);
    });
}

TEST_CASE("one variable in two shapes is kept twice") {
    const as_users_do settings;
    const tg::spec<float, tg::dyn, 16, 16, 8> inputs;
    auto model = tg::compile<tg::graph>(two_shapes{}, inputs, {.seed = 3});
    auto fresh = tg::compile<tg::eager>(two_shapes{}, inputs, {.seed = 3});
    const auto x = noise<float>({2, 16, 16, 8}, 1);
    for (int run = 0; run < 3; ++run) CHECK(same_bits(model.predict(x), fresh.predict(x)));
}

TEST_CASE("threads that predict share what is kept, and a limit of memory only ends that") {
    const as_users_do settings;
    const auto model = tg::compile<tg::graph>(mixed{}, mixed_spec{}, {.seed = 4});
    const thread_limit limit(1);
    const auto x = noise<float>({3, 12, 12, 3}, 1);
    const auto y = model.predict(x);
    std::vector<int> wrong(4, 0);
    std::vector<std::thread> team;
    for (int t = 0; t < 4; ++t)
        team.emplace_back([&, t] {
            for (int r = 0; r < 8; ++r) wrong[static_cast<std::size_t>(t)] += !same_bits(model.predict(x), y);
        });
    for (std::thread& t : team) t.join();
    CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a session's predictions follow its steps") {
    const as_users_do settings;
    tg::session<graph_of_session> session;
    const auto x = noise<float>({5, 6}, 1);
    for (int step = 0; step < 4; ++step) {
        for (int run = 0; run < 3; ++run) {
            const tg::tensor<float> y = session.run<"y">({{"x", x}});
            const tg::tensor<float> right = tg::matmul(x, session.variables()["d/kernel"].value<float>()) +
                                            session.variables()["d/bias"].value<float>();
            CHECK(same_bits(y, right));
        }
        if (step % 2 == 0)
            session.run<"train">({{"x", x}});
        else
            session.variables()["d/kernel"].assign_add(tg::ones<float>({6, 7}));
    }
}

TEST_CASE("a step that writes other variables keeps those it only reads") {
    const as_users_do settings;
    tg::session<with_cache> session;
    const auto x = noise<float>({5, 6}, 1);
    session.initialize();
    const auto before = tg::kept_memory_bytes();
    for (int step = 0; step < 12; ++step) {
        const auto w = session.variables()["w"].value<float>(), cache = session.variables()["cache"].value<float>();
        const auto [y, kept] = session.run<"y", "keep">({{"x", x}});
        CHECK(same_bits(y, tg::matmul(x, w)));
        if (step == 2) CHECK(tg::kept_memory_bytes() > before);
        const tg::tensor<float> cached = session.run<"cached">({{"x", x}});
        const tg::tensor<float> seen = session.variables()["cache"].value<float>();
        CHECK(!same_bits(seen, cache));
        CHECK(same_bits(cached, tg::matmul(x, seen)));
        if (step % 4 == 3) session.run<"move">();
    }
}

TEST_CASE("a writer that changes no mark is found by the checks of tests") {
    const bool before = tg::runtime::content_mark::checked.exchange(true);
    auto model = tg::compile<tg::graph>(small_mlp{}, mlp_spec<float>{}, {.seed = 1});
    const auto x = noise<float>({4, 6}, 1);
    model.predict(x);
    auto* const secret = static_cast<float*>(const_cast<void*>(model.variables()["hidden/kernel"].data().read()));
    secret[0] += 1;
    CHECK_THROWS_AS(model.predict(x), std::logic_error);
    tg::runtime::content_mark::checked = before;
}

} // namespace kept_weights_test
