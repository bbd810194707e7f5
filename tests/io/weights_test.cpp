#include <tapegraph/io/weights.hpp>

#include <nn/models.hpp>

#include <support/temporary_folder.hpp>

#include <limits>

namespace weights_test {

using namespace nn_test;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::batch_normalization(scope / "block" / 2, tg::dense(scope / "in", x, {.units = 5}));
        h = tg::dropout(scope / "drop", tanh(h), {.rate = 0.25});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
struct wider { // another shape under the same names
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::batch_normalization(scope / "block" / 2, tg::dense(scope / "in", x, {.units = 6}));
        return tg::dense(scope / "out", tanh(h), {.units = 3});
    }
};

template <class Mode, class Optimizer = tg::adam>
auto make(std::uint64_t seed) {
    return tg::compile<Mode>(network{}, mlp_spec<float>{}, tg::sparse_softmax_cross_entropy{}, Optimizer{},
                             {.seed = seed});
}
template <class Model>
void train(Model& model, int steps) {
    for (int i = 0; i < steps; ++i)
        model.train_on_batch(noise<float>({8, 6}, 30 + static_cast<std::uint64_t>(i)),
                             classes(8, 3, static_cast<std::uint64_t>(i)));
}
template <class Model>
std::map<std::string, std::vector<float>> contents(Model& model) {
    std::map<std::string, std::vector<float>> all;
    for (const tg::variable& v : model.variables()) all[v.path()] = v.value<float>().to_vector();
    return all;
}

template <class Saving, class Loading>
void check_transfer() {
    const support::temporary_folder folder;
    const auto path = folder.path() / "weights.safetensors";
    auto from = make<Saving>(1);
    train(from, 3);
    from.save(path);
    auto to = make<Loading>(2);
    CHECK(first_difference(from, to) != "");
    to.load(path.string());
    const auto x = noise<float>({7, 6}, 5);
    CHECK(same_bits(from.predict(x), to.predict(x)));
    for (const tg::variable& v : from.variables()) {
        CAPTURE(v.path());
        if (!v.optimizer_state()) CHECK(same_bits(v.data(), to.variables()[v.path()].data()));
    }
    CHECK(to.step() == 0); // weights alone do not resume

    // Everything: the next steps are the same bits.
    from.save(path, {.optimizer_state = true});
    auto resumed = make<Loading>(1); // dropout's masks depend on the seed
    resumed.load(path);
    CHECK(resumed.step() == 3);
    CHECK(first_difference(from, resumed) == "");
    train(from, 2);
    train(resumed, 2);
    CHECK(first_difference(from, resumed) == "");
}

} // namespace

TEST_CASE("weights saved in one mode load in the other, and training resumes exactly") {
    SUBCASE("graph to eager") { check_transfer<tg::graph, tg::eager>(); }
    SUBCASE("eager to graph") { check_transfer<tg::eager, tg::graph>(); }
}

TEST_CASE("a file of weights holds the model's variables by path") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "weights.safetensors";
    auto model = make<tg::graph>(1);
    train(model, 2);
    model.save(path);
    const auto file = tg::io::read_safetensors_file(path);
    std::vector<std::string> names;
    for (const auto& [name, array] : file.tensors) names.push_back(name);
    CHECK(names == std::vector<std::string>{"block/2/beta", "block/2/gamma", "block/2/moving_mean",
                                            "block/2/moving_variance", "in/bias", "in/kernel", "out/bias",
                                            "out/kernel"});
    CHECK(file.metadata.at("step") == "2");
    CHECK(file.metadata.at("optimizer_state") == "false");
    CHECK(file.tensors.at("in/kernel").shape == std::vector<std::int64_t>{6, 5});

    model.save(path, {.optimizer_state = true});
    const auto all = tg::io::read_safetensors_file(path);
    CHECK(all.tensors.size() == 8 + 2 * 6); // two moments of six trainable variables
    CHECK(all.tensors.count("__optimizer__/out/kernel/adam_m") == 1);
    CHECK(all.metadata.at("optimizer_state") == "true");
}

TEST_CASE("what does not fit is named, and nothing is changed") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "weights.safetensors";
    auto model = make<tg::eager>(1);
    train(model, 2);
    model.save(path);
    const auto good = tg::io::read_safetensors(path);
    auto victim = make<tg::eager>(3);
    train(victim, 1);
    const auto before = contents(victim);
    const auto refused = [&]<class Error>(Error*, const std::map<std::string, tg::any_tensor>& tensors,
                                          const char* what) {
        tg::io::write_safetensors(path, tensors);
        const std::string message = support::message_of<Error>([&] { victim.load(path); });
        CAPTURE(message);
        CHECK(support::contains(message, "weights.safetensors'"));
        CHECK(support::contains(message, what));
        CHECK(contents(victim) == before);
        CHECK(victim.step() == 1);
    };
    constexpr tg::data_error* data = nullptr;
    constexpr tg::shape_error* shape = nullptr;
    constexpr tg::dtype_error* type = nullptr;
    auto tensors = good;
    tensors.erase("out/kernel"); // the last one: the others have been looked at by then
    refused(data, tensors, ": no tensor 'out/kernel', which the model has");
    tensors = good;
    tensors["extra/kernel"] = tg::zeros<float>({2});
    refused(data, tensors, ": the model has no variable for tensor 'extra/kernel'");
    tensors = good;
    tensors["out/bias"] = tg::zeros<float>({4});
    refused(shape, tensors, "tensor 'out/bias' has shape [4], the model's is [3]");
    tensors = good;
    tensors["out/bias"] = tg::zeros<float>({3, 1});
    refused(shape, tensors, "tensor 'out/bias' has shape [3,1], the model's is [3]");
    tensors = good;
    tensors["out/bias"] = tg::zeros<double>({3});
    refused(type, tensors, "tensor 'out/bias' is f64, the model's is f32");
    refused(data, {}, ": no tensor '");

    folder.write("weights.safetensors", std::string_view("no weights at all"));
    CHECK_THROWS_AS(victim.load(path), tg::data_error);
    CHECK_THROWS_AS(victim.load(folder.path() / "missing.safetensors"), tg::data_error);
    CHECK_THROWS_AS(victim.save(folder.path() / "no_such_folder" / "w.safetensors"), tg::data_error);
    CHECK(contents(victim) == before);

    tg::io::write_safetensors(path, good); // plain tensors of the right names are welcome
    victim.load(path);
    CHECK(contents(victim).at("out/kernel") == contents(model).at("out/kernel"));

    auto other = tg::compile<tg::eager>(wider{}, mlp_spec<float>{}, {});
    CHECK(support::contains(support::message_of<tg::shape_error>([&] { other.load(path); }), "tensor 'in/kernel'"));
}

TEST_CASE("another optimizer's state is refused, or left out on request") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "weights.safetensors";
    auto adam = make<tg::eager, tg::adam>(1);
    train(adam, 2);
    adam.save(path, {.optimizer_state = true});
    auto momentum = make<tg::eager, tg::momentum>(2);
    const auto before = contents(momentum);
    CHECK(support::contains(support::message_of<tg::data_error>([&] { momentum.load(path); }),
                            "no tensor '__optimizer__/in/kernel/momentum'"));
    CHECK(contents(momentum) == before);
    momentum.load(path, {.optimizer_state = false});
    CHECK(contents(momentum).at("in/kernel") == contents(adam).at("in/kernel"));
    CHECK(contents(momentum).at("in/kernel/momentum") == std::vector<float>(30, 0.f));
    CHECK(momentum.step() == 0);
    // A model for prediction alone takes what is its own.
    auto predictor = tg::compile<tg::eager>(network{}, mlp_spec<float>{}, {});
    predictor.load(path);
    const auto x = noise<float>({2, 6}, 1);
    CHECK(same_bits(predictor.predict(x), adam.predict(x)));

    auto sgd = make<tg::eager, tg::sgd>(2);
    CHECK(support::contains(support::message_of<tg::data_error>([&] { sgd.load(path); }),
                            "the model has no optimizer state for tensor '__optimizer__/block/2/beta/adam_m'"));
}

TEST_CASE("part of a file is loaded into part of a model, and the report says what was") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "weights.safetensors";
    using names = std::vector<std::string>;
    auto from = make<tg::eager>(1);
    train(from, 2);
    from.save(path, {.optimizer_state = true});
    const auto source = contents(from);
    auto to = make<tg::eager>(2);
    const auto before = contents(to);
    auto report = to.load(path, {.only = "in"});
    CHECK(report.matched == names{"in/kernel", "in/bias"});
    CHECK(report.text() == "2 matched, 0 missing, 0 unexpected, 0 mismatched\n");
    CHECK(contents(to).at("in/kernel") == source.at("in/kernel"));
    CHECK(contents(to).at("out/kernel") == before.at("out/kernel"));
    CHECK(to.step() == 0);
    CHECK(to.load(path, {.only = "*/bias"}).matched == names{"in/bias", "out/bias"});

    // Other names in the file, after a prefix, and a shape that differs.
    auto tensors = tg::io::read_safetensors(path);
    std::map<std::string, tg::any_tensor> other{{"net/fc1/kernel", tensors.at("in/kernel")},
                                                {"net/fc1/bias", tensors.at("in/bias")},
                                                {"net/out/kernel", tg::zeros<float>({5, 7})},
                                                {"net/extra", tg::zeros<float>({2})},
                                                {"head/kernel", tg::zeros<float>({2})}};
    tg::io::write_safetensors(path, other);
    to = make<tg::eager>(2);
    report = to.load(path, {.prefix = "net/", .rename = {{"fc1", "in"}}, .strict = false});
    CHECK(report.matched == names{"in/kernel", "in/bias"});
    CHECK(report.missing ==
          names{"block/2/gamma", "block/2/beta", "block/2/moving_mean", "block/2/moving_variance", "out/bias"});
    CHECK(report.unexpected == names{"net/extra"});
    CHECK(report.mismatched == names{"out/kernel: [5,7] f32 in the file, [5,3] f32 in the model"});
    CHECK(contents(to).at("in/bias") == source.at("in/bias"));
    CHECK(contents(to).at("out/kernel") == before.at("out/kernel"));

    // A file without the scope that the model has around it.
    tg::io::write_safetensors(path, {{"kernel", tensors.at("in/kernel")}, {"bias", tensors.at("in/bias")}});
    to = make<tg::eager>(2);
    CHECK(to.load(path, {.into = "in"}).matched == names{"in/kernel", "in/bias"});
    CHECK(contents(to).at("in/kernel") == source.at("in/kernel"));

    const auto held = contents(to);
    const auto refused = [&](const tg::load_options& options) {
        const std::string message = support::message_of<tg::error>([&] { to.load(path, options); });
        CHECK(!support::contains(message, "\n"));
        CHECK(contents(to) == held);
        return message;
    };
    CHECK(support::contains(refused({.only = "encoder"}),
                            "': the model has no variable 'encoder', there are 'in/kernel', 'in/bias', "));
    CHECK(support::contains(refused({.prefix = "bert/"}),
                            "': no tensor's name begins with 'bert/', there are 'bias', 'kernel'"));
    CHECK(support::contains(refused({.rename = {{"fc1", "in"}}}),
                            "': rename: no tensor 'fc1', there are 'bias', 'kernel'"));
    CHECK(support::contains(refused({.only = "out", .into = "out"}),
                            "': out/kernel: [6,5] f32 in the file, [5,3] f32 in the model"));
    CHECK(support::contains(refused({.only = "in"}), "': no tensor for 'in/kernel', 'in/bias' of the model"));
    CHECK(support::contains(refused({.everything = true, .only = "in"}), "is not loaded in part"));
}

TEST_CASE("a step count that is none is refused") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "weights.safetensors";
    auto model = make<tg::eager, tg::sgd>(1);
    model.save(path, {.optimizer_state = true});
    const auto file = tg::io::read_safetensors_file(path);
    std::vector<tg::io::safetensors_entry> entries;
    for (const auto& [name, array] : file.tensors)
        entries.push_back({name, array.type, array.shape, array.bytes.data()});
    for (const char* step : {"", "-1", "12x", "99999999999999999999"}) {
        CAPTURE(step);
        tg::io::write_safetensors_arrays(path, entries, {{"optimizer_state", "true"}, {"step", step}});
        CHECK_THROWS_AS(model.load(path), tg::data_error);
    }
    tg::io::write_safetensors_arrays(path, entries, {{"optimizer_state", "true"}});
    CHECK_THROWS_AS(model.load(path), tg::data_error);
    tg::io::write_safetensors_arrays(path, entries, {{"optimizer_state", "true"}, {"step", "12"}});
    model.load(path);
    CHECK(model.step() == 12);
}

TEST_CASE("a tensor of a mapped file is read where it is, as long as it lives") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "t.safetensors";
    tg::io::write_safetensors(path, {{"x", tg::tensor<float>{{1, 2}, {3, 4}}}, {"y", tg::tensor<double>(5)}});
    tg::any_tensor kept;
    {
        const tg::io::safetensors_reader file(path);
        kept = tg::io::mapped_tensor(file, "x");
        CHECK(kept.read() == file.at("x").bytes.data());
        CHECK(tg::tensor<double>(tg::io::mapped_tensor(file, "y")).item() == 5);
        CHECK(support::contains(support::message_of<tg::data_error>([&] { tg::io::mapped_tensor(file, "z"); }),
                                "no tensor 'z'"));
    }
    std::filesystem::remove(path);
    tg::tensor<float> x(kept);
    x.set(10, 0, 0);
    CHECK(x.to_vector() == std::vector<float>{10, 2, 3, 4});
    CHECK(tg::tensor<float>(kept).to_vector() == std::vector<float>{1, 2, 3, 4});
    // A header that is not padded puts values anywhere.
    const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    const float values[] = {6, 7};
    bytes += header;
    REQUIRE(bytes.size() % 4 != 0);
    bytes.append(reinterpret_cast<const char*>(values), 8);
    const tg::io::safetensors_reader odd(folder.write("odd.safetensors", bytes));
    CHECK(support::contains(support::message_of<tg::argument_error>([&] { odd.at("a").values<float>(); }),
                            "copy() them"));
    CHECK(odd.at("a").copy().values<float>()[1] == 7);
    CHECK(tg::tensor<float>(tg::io::mapped_tensor(odd, "a")).to_vector() == std::vector<float>{6, 7});
}

TEST_CASE("tensors by name are written and read") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "batch.safetensors";
    const auto x = noise<double>({2, 3, 5}, 1);
    const tg::tensor<float> special{std::numeric_limits<float>::quiet_NaN(), -0.f,
                                    std::numeric_limits<float>::denorm_min()};
    tg::io::write_safetensors(path, {{"x", x},
                                     {"special", special},
                                     {"count", tg::tensor<std::int64_t>(7)},
                                     {"empty", tg::zeros<float>({0, 4})},
                                     {"flags", tg::tensor<bool>{true, false}}});
    auto tensors = tg::io::read_safetensors(path);
    REQUIRE(tensors.size() == 5);
    CHECK(same_bits(tensors.at("x"), x));
    CHECK(same_bits(tensors.at("special"), special));
    CHECK(tg::tensor<std::int64_t>(tensors.at("count")).item() == 7);
    CHECK(tensors.at("empty").shape() == tg::shape{0, 4});
    const tg::tensor<bool> flags(tensors.at("flags"));
    CHECK(flags(0));
    CHECK(!flags(1));
    CHECK_THROWS_AS(tg::tensor<float>(tensors.at("x")), tg::dtype_error);

    const std::vector<std::int64_t> deep(9, 1);
    const float one = 1;
    tg::io::write_safetensors_arrays(path, {{"deep", tg::dtype::f32, deep, &one}});
    CHECK(support::contains(support::message_of<tg::shape_error>([&] { tg::io::read_safetensors(path); }),
                            "tensor 'deep' has shape [1,1,1,1,1,1,1,1,1], more than 8 axes"));
}

} // namespace weights_test
