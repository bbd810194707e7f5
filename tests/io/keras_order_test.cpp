#include <tapegraph/compile/instance.hpp>
#include <tapegraph/io/keras.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/messages.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace keras_order_test {

/// Which layer of a Keras file becomes which, where HDF5's alphabet is not the model's order; and arrays in it of types that we do not have.
/// The files are written here, with the groups that Keras 3.15 writes.

namespace tg = tapegraph;
using support::contains;
using support::message_of;

namespace {

/// A .weights.h5 file.
class keras_file {
public:
    explicit keras_file(const std::string& path)
        : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
          parents_(H5Pcreate(H5P_LINK_CREATE)) {
        H5Pset_create_intermediate_group(parents_, 1);
    }
    keras_file(const keras_file&) = delete;
    keras_file& operator=(const keras_file&) = delete;
    ~keras_file() {
        H5Pclose(parents_);
        H5Fclose(file_);
    }
    /// The variables of a layer: what the user calls it is an attribute.
    void layer(const std::string& group, const std::string& name) const {
        const std::string vars = group + "/vars";
        const hid_t made = H5Gcreate2(file_, vars.c_str(), parents_, H5P_DEFAULT, H5P_DEFAULT);
        text(made, "name", name);
        H5Gclose(made);
    }
    void array(const std::string& path, hid_t type, std::vector<hsize_t> extents, const void* values,
               const std::string& called = {}) const {
        const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
        const hid_t set = H5Dcreate2(file_, path.c_str(), type, space, parents_, H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        if (!called.empty()) text(set, "dtype", called);
        H5Dclose(set);
        H5Sclose(space);
    }
    /// A dense layer of two units for two numbers; all of its weights are `value`.
    void dense(const std::string& group, const std::string& name, float value) const {
        layer(group, name);
        const std::array<float, 4> weights{value, value, value, value};
        array(group + "/vars/0", H5T_NATIVE_FLOAT, {2, 2}, weights.data());
        array(group + "/vars/1", H5T_NATIVE_FLOAT, {2}, weights.data());
    }

private:
    static void text(hid_t object, const char* name, const std::string& value) {
        const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
        H5Tset_size(type, value.size() + 1);
        const hid_t made = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(made, type, value.c_str());
        H5Aclose(made);
        H5Sclose(space);
        H5Tclose(type);
    }
    hid_t file_, parents_;
};

/// The same with a configuration: a .keras file.
std::string with_config(const support::temporary_folder& folder, const std::string& weights,
                        const std::string& config) {
    const std::string path = (folder.path() / "with_config.keras").string();
    const auto bytes = tg::io::read_file(weights);
    tg::io::zip_writer writer(path);
    writer.add("config.json", config);
    writer.add("model.weights.h5", std::string(bytes.begin(), bytes.end()));
    writer.commit();
    return path;
}
std::string layer_config(const std::string& type, const std::string& name, const std::string& rest = "") {
    return R"({"module": "keras.layers", "class_name": ")" + type + R"(", "config": {"name": ")" + name +
           R"(", "dtype": {"class_name": "DTypePolicy", "config": {"name": "float32"}})" + rest + "}}";
}
std::string list_of(const std::vector<std::string>& layers) {
    std::string text;
    for (const std::string& each : layers) text += (text.empty() ? "" : ", ") + each;
    return R"(, "layers": [)" + text + "]";
}

constexpr auto two = [](auto s, auto x) {
    return tg::dense(s / "second", tg::dense(s / "first", x, {.units = 2}), {.units = 2});
};
constexpr auto three = [](auto s, auto x) { return tg::dense(s / "third", two(s, x), {.units = 2}); };

using numbers = std::vector<float>;
/// The weights of the layers of a network, one of each.
template <class Net>
numbers weights_of(Net& net, std::initializer_list<const char*> layers) {
    numbers found;
    for (const char* const layer : layers)
        found.push_back(net.variables()[std::string(layer) + "/kernel"].template value<float>().to_vector().front());
    return found;
}

} // namespace

TEST_CASE("a sequential model in a sequential model: the order is the configuration's, not the alphabet's") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "nested.weights.h5").string();
    {
        const keras_file file(path);
        file.dense("/layers/dense", "dense_1", 2); // the second one
        file.dense("/layers/sequential/layers/dense", "dense", 1);
        file.layer("/layers/sequential", "inner");
        file.layer("", "sequential");
    }
    const std::string config = layer_config(
        "Sequential", "sequential",
        list_of({layer_config("InputLayer", "input_layer"),
                 layer_config("Sequential", "inner",
                              list_of({layer_config("InputLayer", "input_layer_1"), layer_config("Dense", "dense")})),
                 layer_config("Dense", "dense_1")}));
    auto net = tg::instance(two, tg::spec<float, tg::dyn, 2>{});
    const auto report = tg::io::load_keras(net, with_config(folder, path, config));
    CHECK(report.matched.size() == 4);
    CHECK(report.unclear.empty());
    CHECK(weights_of(net, {"first", "second"}) == numbers{1, 2});
    CHECK(contains(report.text(), "first/kernel <- layers/sequential/layers/dense/vars/0\n"));

    SUBCASE("without a configuration it is refused, and nothing changes; names say it") {
        auto other = tg::instance(two, tg::spec<float, tg::dyn, 2>{});
        const numbers before = weights_of(other, {"first", "second"});
        for (const std::string& file : {path, with_config(folder, path, "{}"), with_config(folder, path, "no JSON"),
                                        with_config(folder, path, layer_config("Mine", "sequential"))}) {
            CAPTURE(file);
            const std::string text = message_of<tg::data_error>([&] { tg::io::load_keras(other, file); });
            CHECK(contains(
                text,
                "does not fit the model: the file does not say which layer is which, name them in .layers: "
                "first: dense_1 and inner/dense fit, second: dense_1 and inner/dense fit; no tensor for first/kernel"));
            CHECK(weights_of(other, {"first", "second"}) == before);
        }
        const auto lenient = tg::io::load_keras(other, path, {.strict = false});
        CHECK(lenient.matched.empty());
        CHECK(contains(lenient.text(), "order not known: first: dense_1 and inner/dense fit\n"));
        CHECK(tg::io::load_keras(other, path, {.layers = {{"inner/dense", "first"}}}).matched.size() == 4);
        CHECK(weights_of(other, {"first", "second"}) == numbers{1, 2});
    }
}

TEST_CASE("a model that is a class: attributes have no order, those of one class in a list have") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "class.weights.h5").string();
    {
        const keras_file file(path);
        file.layer("", "mine");
        for (const int i : {10, 2, 1, 0}) // dense, dense_1, dense_2, dense_10
            file.dense("/blocks/dense" + (i == 0 ? "" : "_" + std::to_string(i)), "d" + std::to_string(i),
                       static_cast<float>(i));
    }
    auto net = tg::instance(three, tg::spec<float, tg::dyn, 2>{});
    auto report = tg::io::load_keras(net, path, {.strict = false});
    CHECK(weights_of(net, {"first", "second", "third"}) == numbers{0, 1, 2});
    CHECK(report.unexpected == std::vector<std::string>{"blocks/dense_10/vars/0", "blocks/dense_10/vars/1"});
    {
        const keras_file file(path);
        file.layer("", "mine");
        file.dense("/a", "dense_1", 2);
        file.dense("/layers/dense", "dense", 1); // Keras puts there what it has not come across by the alphabet
    }
    auto other = tg::instance(two, tg::spec<float, tg::dyn, 2>{});
    CHECK(
        contains(message_of<tg::data_error>([&] { tg::io::load_keras(other, path); }), "first: dense_1 and dense fit"));
    report = tg::io::load_keras(other, path, {.layers = {{"dense_1", "second"}}});
    CHECK(weights_of(other, {"first", "second"}) == numbers{1, 2});
}

TEST_CASE("layers that names or shapes identify need no order; repeated names give none") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "told.weights.h5").string();
    const std::vector<float> wide(6, 7);
    {
        const keras_file file(path);
        file.dense("/b", "second", 2);
        file.dense("/c", "first", 1);
        file.layer("/a", "whatever");
        file.array("/a/vars/0", H5T_NATIVE_FLOAT, {2, 3}, wide.data());
        file.array("/a/vars/1", H5T_NATIVE_FLOAT, {3}, wide.data());
    }
    constexpr auto model = [](auto s, auto x) { return tg::dense(s / "third", two(s, x), {.units = 3}); };
    auto net = tg::instance(model, tg::spec<float, tg::dyn, 2>{});
    CHECK(tg::io::load_keras(net, path).matched.size() == 6);
    CHECK(weights_of(net, {"first", "second", "third"}) == numbers{1, 2, 7});

    using tg::io::detail::keras_config, tg::io::detail::order_by_config, tg::io::detail::keras_stem;
    std::vector<std::pair<std::string, std::string>> groups{{"cell", "same"}, {"cell_1", "same"}};
    CHECK(!order_by_config(groups, {keras_config{"same"}, keras_config{"same"}}));
    groups = {{"a", "x"}, {"b", "y"}};
    CHECK(!order_by_config(groups, {keras_config{"y"}}));
    CHECK(order_by_config(groups, {keras_config{"y"}, keras_config{"z"}, keras_config{"x"}}));
    CHECK(groups.front().first == "b");
    CHECK(keras_stem("dense_12") == "dense");
    CHECK(keras_stem("conv2d") == "conv2d");
    CHECK(keras_stem("_1") == "_1");
}

TEST_CASE("the layers in a wrapper, and the cells of a recurrent layer, have an order by the configuration") {
    using tg::io::detail::keras_config_of;
    const auto config = keras_config_of(
        layer_config("TimeDistributed", "t",
                     R"(, "layer": )" + layer_config("Sequential", "s", list_of({layer_config("Dense", "d")}))));
    REQUIRE(config.find("layer") != nullptr);
    CHECK(config.find("layer")->front().find("layers")->front().name == "d");
    CHECK(config.find("backward_layer") == config.find("layer"));
    CHECK(config.find("cell") == nullptr);
    CHECK(keras_config_of("").find("layers") == nullptr);
    CHECK(keras_config_of(R"({"config": {"name": "x", "rate": NaN}})").name.empty());
}

TEST_CASE("arrays of types that are not read have a name and a reason; booleans and bfloat16 are read") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "odd.weights.h5").string();
    {
        const keras_file file(path);
        file.dense("/layers/dense", "first", 1);
        const std::array<std::int8_t, 16> zeros{0, 1, 0, 1};
        const auto odd = [&](const char* name, hid_t type, const std::string& called = {}) {
            file.array(std::string("/layers/odd/vars/") + name, type, {2}, zeros.data(), called);
            H5Tclose(type);
        };
        file.layer("/layers/odd", "odd");
        const auto enumeration = [](const char* no, const char* yes) {
            const hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
            for (std::int8_t i = 0; i < 2; ++i) H5Tenum_insert(type, i == 0 ? no : yes, &i);
            return type;
        };
        odd("bool", enumeration("FALSE", "TRUE"));
        odd("enum", enumeration("RED", "GREEN"));
        const auto opaque = [](std::size_t width) { return H5Tcreate(H5T_OPAQUE, width); };
        odd("bf16", opaque(2), "bfloat16");
        odd("float8", opaque(1), "float8_e4m3fn");
        odd("void", opaque(4));
        const auto compound = [](const char* a, const char* b) {
            const hid_t type = H5Tcreate(H5T_COMPOUND, 8);
            H5Tinsert(type, a, 0, H5T_NATIVE_FLOAT);
            H5Tinsert(type, b, 4, H5T_NATIVE_FLOAT);
            return type;
        };
        odd("complex", compound("r", "i"));
        odd("compound", compound("x", "y"));
        const hid_t text = H5Tcopy(H5T_C_S1), small = H5Tcopy(H5T_IEEE_F32LE);
        H5Tset_size(text, 4);
        odd("text", text);
        H5Tset_fields(small, 7, 3, 4, 0, 3); // of a byte: sign, 4 of the exponent, 3 of the mantissa
        H5Tset_size(small, 1);
        H5Tset_ebias(small, 7);
        odd("small", small);
    }
    std::vector<tg::io::unread_value> unread;
    const auto arrays = tg::io::read_keras(path, &unread);
    std::string read, reasons;
    for (const auto& [name, array] : arrays) read += name + " " + tg::name_of(array.type) + "\n";
    for (const auto& u : unread) reasons += u.name + ": " + u.reason + "\n";
    CHECK(read == "first/0 f32\nfirst/1 f32\nodd/bf16 bf16\nodd/bool bool\n");
    CHECK(reasons == "layers/odd/vars/complex: complex numbers are not read\n"
                     "layers/odd/vars/compound: compounds of x, y are not read\n"
                     "layers/odd/vars/enum: values of an enumeration are not read\n"
                     "layers/odd/vars/float8: elements of 'float8_e4m3fn' of 1 byte are not read\n"
                     "layers/odd/vars/small: floats of 1 byte are not read\n"
                     "layers/odd/vars/text: texts are not read\n"
                     "layers/odd/vars/void: opaque elements of 4 bytes are not read\n");
    for (const auto& [name, array] : arrays)
        if (name == "odd/bool") CHECK(array.bytes == std::vector<std::byte>{std::byte{0}, std::byte{1}});
    CHECK(contains(message_of<tg::dtype_error>([&] { tg::io::read_keras(path); }),
                   "odd.weights.h5', data set 'layers/odd/vars/complex': complex numbers are not read; the others are "
                   "read where"));

    constexpr auto one = [](auto s, auto x) { return tg::dense(s / "first", x, {.units = 2}); };
    auto net = tg::instance(one, tg::spec<float, tg::dyn, 2>{});
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::load_keras(net, path); }),
                   "layers/odd/vars/float8 (elements of 'float8_e4m3fn' of 1 byte are not read)"));
    const auto report = tg::io::load_keras(net, path, {.strict = false});
    CHECK(report.matched == std::vector<std::string>{"first/kernel", "first/bias"});
    CHECK(report.unread.size() == 7);
}

TEST_CASE("a layer of which one array cannot be read keeps the places of the others") {
    const support::temporary_folder folder;
    const std::string path = (folder.path() / "part.weights.h5").string();
    const std::array<float, 2> bias{3, 4};
    const std::array<std::complex<float>, 4> kernel{};
    {
        const keras_file file(path);
        file.layer("/layers/dense", "first");
        const hid_t type = H5Tcreate(H5T_COMPOUND, 8);
        H5Tinsert(type, "r", 0, H5T_NATIVE_FLOAT);
        H5Tinsert(type, "i", 4, H5T_NATIVE_FLOAT);
        file.array("/layers/dense/vars/0", type, {2, 2}, kernel.data());
        H5Tclose(type);
        file.array("/layers/dense/vars/1", H5T_NATIVE_FLOAT, {2}, bias.data());
    }
    constexpr auto one = [](auto s, auto x) { return tg::dense(s / "first", x, {.units = 2}); };
    auto net = tg::instance(one, tg::spec<float, tg::dyn, 2>{});
    const auto report = tg::io::load_keras(net, path, {.strict = false});
    CHECK(report.matched == std::vector<std::string>{"first/bias"});
    CHECK(report.missing == std::vector<std::string>{"first/kernel"});
    CHECK(net.variables()["first/bias"].value<float>().to_vector() == numbers{3, 4});
}

} // namespace keras_order_test
