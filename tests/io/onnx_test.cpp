#include <tapegraph/eager/searching.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <protozero/pbf_reader.hpp>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace mine {

struct doubled_op : tapegraph::map_op<1> {
    static constexpr std::string_view name = "doubled";
    template <class V>
    static constexpr V value(V x) {
        return x + x;
    }
};
struct tripled_op : doubled_op {
    static constexpr std::string_view name = "tripled";
};

} // namespace mine

template <>
struct tapegraph::onnx::rule<mine::doubled_op> {
    static std::string write(call& c, const no_attributes&) { return c.emit("Add", {c.operand(0), c.operand(0)}); }
};

namespace onnx_test {

namespace tg = tapegraph;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h =
            relu(tg::conv2d(scope / "conv", x, {.filters = 2, .kernel_size = {2, 3}, .padding = tg::padding::same()}));
        return tg::dense(scope / "score", tg::flatten(h), {.units = 1});
    }
};
using images = tg::spec<float, tg::dyn, 2, 3, 1>;

struct series {
    constexpr auto operator()(auto, auto x) const {
        return tg::outputs{tg::output<"mean">(tg::mean(x, 1)), tg::output<"steps">(eval(x * 2))};
    }
};
struct scatters {
    constexpr auto operator()(auto, auto x) const { // [batch, 2, 3, 1]
        const auto at = eval(tg::reshape(tg::cast<std::int32_t>(abs(tg::slice(x, {{0, 1}}))), {6}));
        const auto values = tg::reshape(tg::slice(x, {{0, 1}}), {6});
        const auto spread = tg::average_pooling2d(x, {.pool_size = {1, 2}, .stride = 1, .dilation = {1, 2}});
        return eval(spread + tg::sum(tg::scatter_add(values, at, {4})) + tg::sum(tg::put_along(values, at, {4}, 0)));
    }
};
struct places {
    constexpr auto operator()(auto, auto x) const { // [batch, 2, 3, 1]
        const auto line = eval(tg::ravel(tg::slice(x, {{0, 1}})));
        const auto found = tg::nonzero(line > 0, 4);
        const auto different = tg::unique(line, {.size = 3});
        const auto at = tg::searchsorted(tg::sort(line), line, {.side = tg::search_side::right});
        return tg::outputs{tg::output<"positions">(found.positions), tg::output<"counts">(different.counts),
                           tg::output<"places">(at), tg::output<"bins">(tg::histogram_fixed_width(line, 0, 1, 8))};
    }
};
struct scatters_in_batches {
    constexpr auto operator()(auto, auto x) const {
        const auto at = eval(tg::reshape(tg::cast<std::int32_t>(abs(tg::slice(x, {{0, 1}}))), {2, 3}));
        const auto values = tg::reshape(tg::slice(x, {{0, 1}}), {2, 3});
        return eval(x + tg::sum(tg::scatter_add(values, at, {2, 4}, 1, 1)));
    }
};
struct with_own_operations {
    constexpr auto operator()(auto, auto x) const { return tg::apply<mine::doubled_op>(x); }
};
struct not_in_onnx {
    constexpr auto operator()(auto, auto x) const {
        return eval(tg::cumulative_product(tg::apply<mine::tripled_op>(x), 0) + tg::sort(x));
    }
};

struct wide {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "wide", x, {.units = 40}); }
};

struct field {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
};
struct tensor {
    std::string name, data, location;
    std::vector<std::int64_t> dims;
};
struct contents {
    std::int64_t version = 0, opset = 0;
    std::string producer, metadata;
    std::vector<field> nodes;
    std::vector<tensor> weights;
    std::vector<std::string> inputs, outputs; // "name: batch,2"
};

std::string value_text(protozero::pbf_reader info) {
    std::string text;
    while (info.next()) {
        if (info.tag() == 1) {
            text = info.get_string() + ":";
            continue;
        }
        protozero::pbf_reader type = info.get_message();
        while (type.next(1)) {
            protozero::pbf_reader inner = type.get_message();
            while (inner.next()) {
                if (inner.tag() == 1) {
                    text += std::to_string(inner.get_int32());
                    continue;
                }
                protozero::pbf_reader shape = inner.get_message();
                while (shape.next(1)) {
                    protozero::pbf_reader dim = shape.get_message();
                    text += ",";
                    while (dim.next()) text += dim.tag() == 1 ? std::to_string(dim.get_int64()) : dim.get_string();
                }
            }
        }
    }
    return text;
}

contents read(const std::string& bytes) {
    contents c;
    protozero::pbf_reader model(bytes);
    while (model.next()) {
        switch (model.tag()) {
        case 1: c.version = model.get_int64(); break;
        case 2: c.producer = model.get_string(); break;
        case 8: {
            protozero::pbf_reader opset = model.get_message();
            while (opset.next()) opset.tag() == 2 ? void(c.opset = opset.get_int64()) : opset.skip();
            break;
        }
        case 14: {
            protozero::pbf_reader entry = model.get_message();
            while (entry.next()) c.metadata += entry.get_string() + "|";
            break;
        }
        case 7: {
            protozero::pbf_reader graph = model.get_message();
            while (graph.next()) {
                if (graph.tag() == 1) {
                    field& f = c.nodes.emplace_back();
                    protozero::pbf_reader node = graph.get_message();
                    while (node.next()) {
                        if (node.tag() == 1)
                            f.inputs.push_back(node.get_string());
                        else if (node.tag() == 2)
                            f.outputs.push_back(node.get_string());
                        else if (node.tag() == 3)
                            f.name = node.get_string();
                        else if (node.tag() == 4)
                            f.op = node.get_string();
                        else
                            node.skip();
                    }
                } else if (graph.tag() == 5) {
                    tensor& t = c.weights.emplace_back();
                    protozero::pbf_reader w = graph.get_message();
                    while (w.next()) {
                        if (w.tag() == 1)
                            for (const auto d : w.get_packed_int64()) t.dims.push_back(d);
                        else if (w.tag() == 8)
                            t.name = w.get_string();
                        else if (w.tag() == 9)
                            t.data = w.get_bytes();
                        else if (w.tag() == 13) {
                            protozero::pbf_reader entry = w.get_message();
                            while (entry.next()) t.location += entry.get_string() + "|";
                        } else
                            w.skip();
                    }
                } else if (graph.tag() == 11)
                    c.inputs.push_back(value_text(graph.get_message()));
                else if (graph.tag() == 12)
                    c.outputs.push_back(value_text(graph.get_message()));
                else
                    graph.skip();
            }
            break;
        }
        default: model.skip();
        }
    }
    return c;
}

template <class Model>
std::string exported(const Model& model, const std::filesystem::path& path, const tg::io::onnx_options& options = {}) {
    tg::io::export_onnx(model, path, options);
    return support::read_text(path);
}
std::vector<float> floats(const std::string& bytes) {
    std::vector<float> all(bytes.size() / 4);
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
}

} // namespace

TEST_CASE("a file is the same in both modes, and holds the trace") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "m.onnx";
    auto graph = tg::compile<tg::graph>(network{}, images{}, {.seed = 3});
    auto eager = tg::compile<tg::eager>(network{}, images{}, {.seed = 3});
    static_assert(tg::onnx::exportable<decltype(graph)>);
    const std::string bytes = exported(graph, path);
    CHECK(bytes == exported(eager, folder.path() / "e.onnx"));
    CHECK(bytes == exported(tg::instance(network{}, images{}, {.seed = 3}), folder.path() / "i.onnx"));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "m.onnx.data"));

    const contents c = read(bytes);
    CHECK(c.version == 8);
    CHECK(c.opset == 17);
    CHECK(c.producer == "tapegraph");
    CHECK(c.metadata.starts_with("producer|tapegraph "));
    CHECK(c.inputs == std::vector<std::string>{"input:1,batch,2,3,1"});
    CHECK(c.outputs == std::vector<std::string>{"output:1,batch,1"});
    std::vector<std::string> ops;
    for (const field& f : c.nodes) ops.push_back(f.op);
    CHECK(ops == std::vector<std::string>{"Transpose", "Conv", "Relu", "Flatten", "Gemm"});
    CHECK(c.nodes[1].name == "conv/Conv");
    CHECK(c.nodes[1].inputs == std::vector<std::string>{"Transpose", "conv/kernel", "conv/bias"});
    CHECK(c.nodes[4].outputs == std::vector<std::string>{"output"});

    // A kernel [2, 3, 1, 2] as [2, 1, 2, 3]; rows of the dense kernel [2 3 2, 1] in the order of channels, height, width.
    REQUIRE(c.weights.size() == 4);
    const auto kernel = graph.variables()["conv/kernel"].value<float>();
    const auto rows = graph.variables()["score/kernel"].value<float>();
    for (const tensor& t : c.weights) {
        const std::vector<float> values = floats(t.data);
        if (t.name == "conv/kernel") {
            CHECK(t.dims == std::vector<std::int64_t>{2, 1, 2, 3});
            for (std::size_t o = 0; o < 2; ++o)
                for (std::size_t at = 0; at < 6; ++at) CHECK(values[o * 6 + at] == kernel.data()[at * 2 + o]);
        }
        if (t.name == "score/kernel") {
            CHECK(t.dims == std::vector<std::int64_t>{12, 1});
            for (std::size_t o = 0; o < 2; ++o)
                for (std::size_t at = 0; at < 6; ++at) CHECK(values[o * 6 + at] == rows.data()[at * 2 + o]);
        }
    }
}

TEST_CASE("run-time extents, several inputs and outputs keep their names") {
    const support::temporary_folder folder;
    const contents c = read(exported(tg::compile<tg::eager>(series{}, tg::spec<double, tg::dyn, tg::dim<"time">, 3>{}),
                                     folder.path() / "s.onnx"));
    CHECK(c.inputs == std::vector<std::string>{"input:11,batch,time,3"});
    CHECK(c.outputs == std::vector<std::string>{"mean:11,batch,3", "steps:11,batch,time,3"});
    REQUIRE(c.nodes.size() == 2);
    CHECK(c.nodes[0].op == "ReduceMean");
    CHECK(c.nodes[0].outputs[0] == "mean");
    CHECK(c.nodes[1].op == "Mul");
}

TEST_CASE("what is added where indices point, and means of spread windows") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "m.onnx";
    tg::io::export_onnx(tg::instance(scatters{}, images{}), path);
    const std::string file = support::read_text(path);
    for (const char* op : {"ScatterND", "ScatterElements", "reduction", "Conv", "dilations"})
        CHECK(support::contains(file, op));
    CHECK(!support::contains(file, "AveragePool"));
    const std::string message = support::message_of<tg::argument_error>(
        [&] { tg::io::export_onnx(tg::instance(scatters_in_batches{}, images{}), folder.path() / "no.onnx"); });
    CHECK(support::contains(message, "'scatter_add', with batch axes, (onnx_test.cpp:"));
    CHECK(!std::filesystem::exists(folder.path() / "no.onnx"));
}

TEST_CASE("places and counts, which ONNX makes of sorts, running sums and scatters") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "p.onnx";
    tg::io::export_onnx(tg::instance(places{}, images{}), path);
    const std::string file = support::read_text(path);
    for (const char* op : {"TopK", "CumSum", "ScatterElements", "GreaterOrEqual", "LessOrEqual", "positions", "bins"})
        CHECK(support::contains(file, op));
}

TEST_CASE("many weights lie beside the file") {
    const support::temporary_folder folder;
    auto m = tg::compile<tg::eager>(wide{}, tg::spec<float, tg::dyn, 30>{});
    const auto path = folder.path() / "w.onnx";
    const contents inside = read(exported(m, path, {.external_above = 5000}));
    CHECK(inside.weights[0].location.empty()); // 4,960 bytes
    const contents c = read(exported(m, path, {.external_above = 4959}));
    REQUIRE(c.weights.size() == 2);
    CHECK(c.weights[0].location == "location|w.onnx.data|offset|0|length|4800|");
    CHECK(c.weights[0].data.empty());
    CHECK(c.weights[1].location.empty());
    CHECK(support::read_text(folder.path() / "w.onnx.data") == inside.weights[0].data);
}

TEST_CASE("operations of one's own have rules; all that have none are named, before there is a file") {
    const support::temporary_folder folder;
    auto own = tg::compile<tg::eager>(with_own_operations{}, tg::spec<float, tg::dyn>{});
    static_assert(tg::onnx::exportable<decltype(own)>);
    const contents c = read(exported(own, folder.path() / "o.onnx"));
    REQUIRE(c.nodes.size() == 1);
    CHECK(c.nodes[0].op == "Add");
    CHECK(c.nodes[0].inputs == std::vector<std::string>{"input", "input"});

    auto none = tg::compile<tg::eager>(not_in_onnx{}, tg::spec<float, tg::dyn>{});
    static_assert(!tg::onnx::exportable<decltype(none)>);
    std::string message;
    try {
        tg::io::export_onnx(none, folder.path() / "n.onnx");
    } catch (const tg::argument_error& e) {
        message = e.what();
    }
    CHECK(message.find("export_onnx: ONNX (opset 17) has nothing for 'cumulative_product' (onnx_test.cpp:") == 0);
    CHECK(message.find("'tripled' (onnx_test.cpp:") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "n.onnx"));
    CHECK_THROWS_AS(tg::io::export_onnx(own, folder.path() / "no" / "o.onnx"), tg::data_error);
}

} // namespace onnx_test
