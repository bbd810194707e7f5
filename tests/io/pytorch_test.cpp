#include <io/stored_values.hpp>

#include <tapegraph/compile/instance.hpp>
#include <tapegraph/io/pytorch_weights.hpp>
#include <tapegraph/nn/layers/attention.hpp>
#include <tapegraph/nn/layers/depthwise_convolution.hpp>
#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/nn/layers/group_normalization.hpp>
#include <tapegraph/nn/layers/gru.hpp>
#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/nn/layers/sequence.hpp>
#include <tapegraph/nn/layers/simple_rnn.hpp>
#include <tapegraph/nn/layers/transposed_convolution.hpp>
#include <tapegraph/tapegraph.hpp>

#include <io/pytorch_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pytorch_test {

namespace tg = tapegraph;
using io_test::close;
using io_test::spread;
using support::contains;
using support::message_of;
using tg::io::host_array;

namespace {

/// [batch, channels, height, width] to our order.
tg::tensor<float> channels_last(const tg::tensor<float>& x) { return tg::eval(transpose(x, {0, 2, 3, 1})); }

constexpr auto mlp = [](auto scope, auto x) {
    return tg::dense(scope / "score", tanh(tg::dense(scope / "hidden", x, {.units = 4})), {.units = 2});
};
constexpr auto cnn = [](auto s, auto x) {
    auto h = tg::eval(
        relu(tg::batch_normalization(s / "norm", tg::conv2d(s / "first", x, {.filters = 4}), {.epsilon = 1e-5})));
    h = tg::depthwise_conv2d(s / "depthwise", h,
                             {.padding = tg::padding::same(), .depth_multiplier = 2, .use_bias = false});
    h = tg::conv2d_transpose(s / "up", h, {.filters = 3, .kernel_size = 2, .stride = 2});
    h = tg::group_normalization(s / "groups", h, {.groups = 1, .epsilon = 1e-5});
    return tg::dense(s / "score", flatten(h), {.units = 2});
};
constexpr auto rnn = [](auto s, auto x) {
    auto h = tg::embedding(s / "table", x, {.input_dim = 5, .output_dim = 3});
    h = tg::lstm(s / "first", h, {.units = 4, .return_sequences = true});
    h = tg::lstm(s / "second", h, {.units = 4, .return_sequences = true});
    h = tg::bidirectional(s / "both", h, tg::gru_layer_options{.units = 3, .return_sequences = true});
    return tg::simple_rnn(s / "last", h, {.units = 2});
};
constexpr auto attention = [](auto s, auto x) {
    return tg::multi_head_attention(s / "attention", x, x, {.num_heads = 2, .key_dim = 2});
};

/// What loading the file into a model of two layers says.
template <class Error>
std::string objection_to(const std::string& file, const tg::io::foreign_options& options = {}) {
    const support::temporary_folder folder;
    auto net = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    const auto before = net.variables()["hidden/kernel"].template value<float>().to_vector();
    const std::string text = message_of<Error>([&] { tg::io::load_pytorch(net, folder.write("x.pt", file), options); });
    CHECK(net.variables()["hidden/kernel"].template value<float>().to_vector() == before);
    return text;
}
std::string objection_to_reading(const std::string& file) {
    const support::temporary_folder folder;
    return message_of<tg::data_error>([&] { tg::io::read_pytorch(folder.write("x.pt", file)); });
}

} // namespace

TEST_CASE("a state_dict as torch.save writes it") {
    const support::temporary_folder folder;
    const auto path = folder.write("mlp.pt", mlp_file());
    const auto tensors = tg::io::read_pytorch(path);
    REQUIRE(tensors.size() == 4);
    CHECK(tensors[0].name == "0.weight");
    CHECK(tensors[0].array.shape == std::vector<std::int64_t>{4, 3});
    CHECK(tensors[3].name == "2.bias");
    auto net = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    const auto report = tg::io::load_pytorch(net, path);
    CHECK(report.text() ==
          "4 matched, 0 missing, 0 unexpected, 0 mismatched\nhidden/kernel <- 0.weight\nhidden/bias <- 0.bias\n"
          "score/kernel <- 2.weight\nscore/bias <- 2.bias\n");
    CHECK(close(net(spread({2, 3})), {-0.689849138f, -0.497368217f, -0.284585416f, -0.489899218f}));
}

TEST_CASE("convolutions of all kinds, normalizations, and a flattened image") {
    const support::temporary_folder folder;
    const auto path = folder.write("cnn.pt", cnn_file());
    const auto file = tg::io::read_pytorch_file(path);
    CHECK(file.settings == std::map<std::string, std::string>{{"epoch", "7"}, {"lr", "0.5"}, {"note", "text"}});
    auto net = tg::instance(cnn, tg::spec<float, tg::dyn, 6, 5, 2>{});
    const auto report = tg::io::load_pytorch(net, path, {.prefix = "model.", .flattened = {{"fc", {3, 8, 6}}}});
    CHECK(report.matched.size() == 13);
    CHECK(close(net(channels_last(spread({1, 2, 6, 5}))), {0.994998455f, -0.136056095f}));
    // Without the order of the image the weights load, and the result is another one.
    tg::io::load_pytorch(net, path, {.prefix = "model."});
    CHECK(!close(net(channels_last(spread({1, 2, 6, 5}))), {0.994998455f, -0.136056095f}));
}

TEST_CASE("recurrent layers: several, in both directions, of three kinds, after an embedding") {
    const support::temporary_folder folder;
    auto net = tg::instance(rnn, tg::spec<std::int32_t, tg::dyn, 4>{});
    const auto report = tg::io::load_pytorch(net, folder.write("rnn.pt", rnn_file()));
    CHECK(report.matched.size() == 16);
    CHECK(contains(report.text(), "second/bias <- l.bias_ih_l1 and l.bias_hh_l1\n"));
    const tg::tensor<float> y = net(tg::tensor<std::int32_t>{{0, 1, 4, 2}, {3, 3, 2, 0}});
    CHECK(close(y, {-0.0489885248f, -0.820677102f, -0.0449591987f, -0.815474033f}));
}

TEST_CASE("attention's one matrix becomes three") {
    const support::temporary_folder folder;
    auto net = tg::instance(attention, tg::spec<float, tg::dyn, 3, 4>{});
    tg::io::load_pytorch(net, folder.write("mha.pt", attention_file()));
    CHECK(close(net(spread({2, 3, 4})),
                {0.34580192f,  0.487930536f, 0.352072299f, 1.34245729f,  0.343087554f, 0.486484945f,
                 0.353131413f, 1.34306455f,  0.340369314f, 0.485037476f, 0.354192436f, 1.34367228f,
                 0.785116017f, 0.742023706f, 0.240308642f, 1.18687582f,  0.78239578f,  0.740575552f,
                 0.241371453f, 1.18748307f,  0.77967751f,  0.73912847f,  0.242434025f, 1.18808937f}));
}

TEST_CASE("views, types, and dicts in each other") {
    const support::temporary_folder folder;
    std::map<std::string, host_array> all;
    for (auto& [name, array] : tg::io::read_pytorch(folder.write("views.pt", views_file()))) all[name] = array;
    REQUIRE(all.size() == 15);
    CHECK(all["t"].shape == std::vector<std::int64_t>{4, 3});
    const auto t = all["t"].values<float>();
    CHECK(std::vector<float>(t.begin(), t.end()) == std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
    const auto part = all["part"].values<float>();
    CHECK(std::vector<float>(part.begin(), part.end()) == std::vector<float>{2, 4, 6});
    CHECK(all["scalar"].shape.empty());
    CHECK(all["scalar"].values<std::int64_t>()[0] == 7);
    CHECK(all["empty"].shape == std::vector<std::int64_t>{0, 3});
    for (const char* const name : {"half", "bf"}) {
        host_array a = all[name];
        CHECK(size_of(a.type) == 2);
        REQUIRE(tg::io::detail::convert_floats(a, tg::dtype::f64));
        CHECK(a.values<double>()[0] == 1);
        CHECK(a.values<double>()[1] == -2.5);
    }
    CHECK(all["f64"].values<double>()[0] == 1.5);
    CHECK(all["bool"].values<bool>()[0]);
    CHECK(!all["bool"].values<bool>()[1]);
    CHECK(all["u8"].values<std::uint8_t>()[0] == 255);
    CHECK(all["i8"].values<std::int8_t>()[0] == -1);
    CHECK(all["i16"].values<std::int16_t>()[0] == -300);
    CHECK(all["i32"].values<std::int32_t>()[0] == 70000);
    CHECK(all["param"].values<float>()[0] == 3);
    CHECK(all["list.0"].values<float>()[0] == 4);
    CHECK(all["list.1.k"].values<float>()[0] == 5);
}

TEST_CASE("layers by name, by a table, in part") {
    const support::temporary_folder folder;
    const auto path = folder.write("mlp.pt", mlp_file());
    // Both layers take [4, 4]: only names say which is which.
    constexpr auto named = [](auto scope, auto x) {
        return tg::dense(scope / "2", tg::dense(scope / "0", x, {.units = 4}), {.units = 2});
    };
    auto net = tg::instance(named, tg::spec<float, tg::dyn, 3>{});
    CHECK(contains(tg::io::load_pytorch(net, path).text(), "2/kernel <- 2.weight\n"));
    auto other = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    const auto report = tg::io::load_pytorch(other, path, {.only = "score", .layers = {{"2", "score"}}});
    CHECK(report.text() ==
          "2 matched, 0 missing, 0 unexpected, 0 mismatched\nscore/kernel <- 2.weight\nscore/bias <- 2.bias\n");
    // A table that is wrong is believed, and the shapes reported.
    const auto wrong = tg::io::load_pytorch(other, path, {.layers = {{"2", "hidden"}}, .strict = false});
    CHECK(wrong.mismatched.size() == 4);
    CHECK(contains(wrong.text(),
                   "mismatched: hidden/kernel from 2.weight: [4,2] in the file (in our order), [3, 4] in the model\n"));
    CHECK(contains(
        objection_to<tg::argument_error>(mlp_file(), {.layers = {{"1", "score"}}}),
        "x.pt': layers: the file has no '1', or the model no 'score', or they are taken; the file has '0', '2'"));
    CHECK(contains(objection_to<tg::argument_error>(mlp_file(), {.prefix = "net."}),
                   "no tensor's name begins with 'net.'"));
    CHECK(contains(objection_to<tg::argument_error>(mlp_file(), {.only = "none"}), "the model has no variable 'none'"));
    CHECK(contains(objection_to<tg::argument_error>(mlp_file(), {.flattened = {{"x", {1}}}}),
                   "flattened: there is no layer 'x'"));
}

TEST_CASE("what does not fit is listed, and nothing of the model changes") {
    const std::string text = objection_to<tg::shape_error>(cnn_file(), {.prefix = "model."});
    CHECK(contains(text, "x.pt': does not fit the model: no tensor for score/kernel, score/bias; nothing in the model "
                         "for model.conv1.weight"));
    CHECK(contains(
        text,
        "; other shapes: hidden/kernel from model.fc.weight: [144,2] in the file (in our order), [3, 4] in the model"));
    CHECK(!contains(text, "num_batches_tracked"));
    // A GRU of the other form.
    constexpr auto reset_before = [](auto s, auto x) {
        return tg::gru(s / "g", x, {.units = 3, .reset_after = false});
    };
    const support::temporary_folder folder;
    auto net = tg::instance(reset_before, tg::spec<float, tg::dyn, 2, 4>{});
    const auto report =
        tg::io::load_pytorch(net, folder.write("rnn.pt", rnn_file()), {.layers = {{"g", "g"}}, .strict = false});
    CHECK(contains(report.text(),
                   "g/bias from g.bias_ih_l0 and g.bias_hh_l0: PyTorch's GRU is one with reset_after = true"));
}

TEST_CASE("half and double weights become the model's type") {
    const support::temporary_folder folder;
    auto single = tg::instance(mlp, tg::spec<float, tg::dyn, 3>{});
    auto twice = tg::instance(mlp, tg::spec<double, tg::dyn, 3>{});
    tg::io::load_pytorch(single, folder.write("mlp.pt", mlp_file()));
    tg::io::load_pytorch(twice, folder.path() / "mlp.pt");
    const auto a = single.variables()["hidden/kernel"].template value<float>().to_vector();
    const auto b = twice.variables()["hidden/kernel"].template value<double>().to_vector();
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(static_cast<double>(a[i]) == b[i]);
}

TEST_CASE("what is not read, and what to do about it") {
    const support::temporary_folder folder;
    const auto complex = tg::io::read_pytorch_file(folder.write("complex.pt", complex_file()));
    CHECK(complex.tensors.empty());
    REQUIRE(complex.unread.size() == 1);
    CHECK(complex.unread[0].reason == "elements of 'torch.ComplexFloatStorage' are not read");
    // A whole nn.Linear, and a tensor of one number expanded to 1000.
    const auto linear = tg::io::read_pytorch(folder.write("linear.pt", object_file()));
    REQUIRE(linear.size() == 2);
    CHECK(linear[0].name == "m.weight");
    CHECK(linear[1].name == "m.bias");
    CHECK(tg::io::read_pytorch(folder.write("expanded.pt", expanded_file())).at(0).array.size() == 1000);
    // Names that are the same once keys are joined by points: the first has it, and nothing is lost unsaid.
    const auto same = tg::io::read_pytorch_file(folder.write("same.pt", same_names_file()));
    REQUIRE(same.tensors.size() == 2);
    CHECK(same.tensors[0].name == "a.b");
    CHECK(same.tensors[0].array.values<float>()[0] == 1);
    CHECK(same.tensors[1].name == "a.c");
    CHECK(same.settings.at("n.e") == "3");
    REQUIRE(same.unread.size() == 2);
    CHECK(same.unread[0].name == "a.b");
    CHECK(same.unread[0].reason == "another tensor has this name");
    CHECK(same.unread[0].tensor);
    CHECK(same.unread[1].name == "n.e");
    CHECK(same.unread[1].reason == "another value has this name");
    using namespace std::string_literals;
    CHECK(contains(objection_to_reading("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80"s),
                   "x.pt', at byte 15, byte 0 of the pickle: not a pickle of protocol 2"));
    CHECK(contains(objection_to_reading("\x80\x04N."), "not a file of torch.save, a pickle of something else"));
    CHECK(contains(objection_to_reading("GGUF...."), "not a file of torch.save, which begins as a zip archive"));
    CHECK(contains(objection_to_reading("x"), "not a file of torch.save"));
    {
        tg::io::zip_writer writer(folder.path() / "jit.pt");
        writer.add("net/data.pkl", "x");
        writer.add("net/constants.pkl", "x");
        writer.commit();
        tg::io::zip_writer other(folder.path() / "other.pt");
        other.add("a.npy", "x");
        other.commit();
    }
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::read_pytorch(folder.path() / "jit.pt"); }),
                   "a program of torch.jit.save"));
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::read_pytorch(folder.path() / "other.pt"); }),
                   "data.pkl is missing"));
}

} // namespace pytorch_test
