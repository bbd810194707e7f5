#include <tapegraph/tapegraph.hpp>

#include <tapegraph/io/graph_def.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <protozero/pbf_reader.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace graph_def_test {

namespace tg = tapegraph;
using tg::io::graph_item;
using tg::io::graph_part;

namespace {

struct net {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "block" / "hidden", x, {.units = 8});
        h = tg::dropout(scope / "drop", relu(h), {.rate = 0.25});
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
auto& model() {
    static auto made =
        tg::compile<tg::graph>(net{}, tg::spec<float, tg::dyn, 5>{}, tg::softmax_cross_entropy{}, tg::adam{});
    return made;
}

struct node {
    std::string name, op, device;
    std::vector<std::string> inputs;
    std::vector<std::int64_t> shape;
    std::int64_t flops = -1, call = -1;
    double number = 0;
    int type = 0;
};

/// A GraphDef, read by field numbers.
std::vector<node> nodes_of(const std::string& bytes, int& producer) {
    std::vector<node> nodes;
    protozero::pbf_reader graph(bytes);
    while (graph.next()) {
        if (graph.tag() == 4) {
            auto versions = graph.get_message();
            REQUIRE(versions.next(1));
            producer = versions.get_int32();
            continue;
        }
        REQUIRE(graph.tag() == 1);
        auto n = graph.get_message();
        node& made = nodes.emplace_back();
        while (n.next()) switch (n.tag()) {
            case 1: made.name = n.get_string(); break;
            case 2: made.op = n.get_string(); break;
            case 3: made.inputs.push_back(n.get_string()); break;
            case 4: made.device = n.get_string(); break;
            case 5: {
                auto attribute = n.get_message();
                std::string key;
                while (attribute.next()) {
                    if (attribute.tag() == 1) {
                        key = attribute.get_string();
                        continue;
                    }
                    auto value = attribute.get_message();
                    REQUIRE(value.next());
                    if (key == "predicted_flops")
                        made.flops = value.get_int64();
                    else if (key == "call")
                        made.call = value.get_int64();
                    else if (key == "number")
                        made.number = static_cast<double>(value.get_float());
                    else if (key == "T" || key == "dtype")
                        made.type = value.get_enum();
                    else if (key == "_output_shapes") {
                        auto list = value.get_message();
                        REQUIRE(list.next(7));
                        auto shape = list.get_message();
                        while (shape.next(2)) {
                            auto dim = shape.get_message();
                            REQUIRE(dim.next(1));
                            made.shape.push_back(dim.get_int64());
                        }
                    } else
                        value.skip();
                }
                break;
            }
            default: FAIL("a field that NodeDef has not");
            }
    }
    return nodes;
}

} // namespace

TEST_CASE("the items of a training step: parts, scopes, names, calls") {
    const std::vector<graph_item> items = tg::io::graph_items(model().training_view());
    std::set<std::string> names;
    for (const graph_item& i : items) names.insert(i.name);
    CHECK(names.size() == items.size());
    for (const char* name : {"input", "labels", "block/hidden/kernel", "block/hidden/matmul", "out/matmul_bias",
                             "loss/log_softmax", "gradients/out/matmul", "updates/block/hidden/kernel/adam_m",
                             "updates/number", "outputs/loss", "updates/out/bias/assign"})
        CHECK_MESSAGE(names.contains(name), name);
    // Every call has one node, which is among the names for node times in the same place.
    const auto& view = model().training_view();
    const std::vector<std::string> calls = tg::io::graph_call_names(view);
    REQUIRE(static_cast<int>(calls.size()) == view.steps.size());
    int found = 0;
    for (const graph_item& i : items) {
        if (i.call < 0) continue;
        CHECK(calls[static_cast<std::size_t>(i.call)] == i.name);
        ++found;
    }
    CHECK(found == view.steps.size());
    for (std::size_t i = 0; i < items.size(); ++i)
        for (const int input : items[i].inputs) CHECK(input < static_cast<int>(i)); // no circles
    for (const graph_item& i : items) {
        if (i.name.starts_with("gradients/")) CHECK(i.part == graph_part::gradient);
        if (i.part == graph_part::forward || i.part == graph_part::loss)
            for (const int input : i.inputs) CHECK(items[static_cast<std::size_t>(input)].part != graph_part::gradient);
    }
}

TEST_CASE("a GraphDef's bytes") {
    int producer = 0;
    const std::vector<node> nodes = nodes_of(tg::io::graph_def(model(), {.batch_size = 10}), producer);
    CHECK(producer == 22);
    const auto named = [&](const std::string& name) {
        const auto at = std::find_if(nodes.begin(), nodes.end(), [&](const node& n) { return n.name == name; });
        REQUIRE_MESSAGE(at != nodes.end(), name);
        return *at;
    };
    const node product = named("block/hidden/matmul");
    CHECK(product.op == "matmul");
    CHECK(product.inputs == std::vector<std::string>{"input", "block/hidden/kernel"});
    CHECK(product.device == "/device:CPU:0");
    CHECK(product.shape == std::vector<std::int64_t>{-1, 8});
    CHECK(product.type == 1);
    CHECK(product.flops == 2 * 10 * 5 * 8);
    CHECK(product.call >= 0);
    CHECK(named("labels").op == "Placeholder");
    CHECK(named("out/bias").op == "VariableV2");
    CHECK(named("outputs/loss").shape.empty());
    bool rate = false;
    for (const node& n : nodes) rate = rate || (n.op == "Const" && n.number == 0.25);
    CHECK(rate);
}

TEST_CASE("GraphDefs as files, bytes and text") {
    const support::temporary_folder folder;
    tg::io::write_graph_def(folder.path() / "g.pb", model());
    CHECK(support::read_text(folder.path() / "g.pb") == tg::io::graph_def(model()));
    tg::io::write_graph_def(folder.path() / "g.pbtxt", model());
    const std::string text = support::read_text(folder.path() / "g.pbtxt");
    CHECK(support::contains(text, "node {\n  name: \"out/matmul_bias\"\n  op: \"matmul_bias\"\n"));
    CHECK(support::contains(
        text, "attr { key: \"_output_shapes\" value { list { shape { dim { size: -1 } dim { size: 3 } } } } }"));
    CHECK(text.ends_with("versions {\n  producer: 22\n}\n"));
    CHECK(std::count(text.begin(), text.end(), '{') == std::count(text.begin(), text.end(), '}'));
    CHECK(support::contains(
        support::message_of<tg::data_error>([&] { tg::io::write_graph_def(folder.path() / "no" / "g.pb", model()); }),
        "cannot be written"));
}

TEST_CASE("names that a GraphDef takes") { CHECK(tg::io::detail::graph_name("a b/c:d-1.2_x") == "a_b/c_d-1.2_x"); }

} // namespace graph_def_test
