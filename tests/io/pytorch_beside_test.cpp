#include <tapegraph/compile/instance.hpp>
#include <tapegraph/io/pytorch_weights.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

/// What stands beside the weights in files of torch.save, and may not cost them. The pickles are written here by hand.

namespace pytorch_beside_test {

namespace tg = tapegraph;
using support::contains;
using support::message_of;
using namespace std::string_literals;

namespace {

constexpr auto layer = [](auto scope, auto x) { return tg::dense(scope / "fc", x, {.units = 1}); };

/// Opcodes of protocol 2 that push one value each.
std::string text(const std::string& s) { return "X"s + static_cast<char>(s.size()) + "\0\0\0"s + s; }
std::string small(int i) { return "K"s + static_cast<char>(i); }
std::string name(const std::string& module, const std::string& what) { return "c" + module + "\n" + what + "\n"; }
std::string tuple(const std::string& items) { return "(" + items + "t"; }
std::string call(const std::string& callee, const std::string& arguments) { return callee + tuple(arguments) + "R"; }
std::string dict(const std::string& items) { return "}(" + items + "u"; }
std::string storage(const std::string& type, char key, int stored) {
    return tuple(text("storage") + type + text(std::string(1, key)) + text("cpu") + small(stored)) + "Q";
}
/// `sizes` are shape and strides.
std::string tensor(const std::string& type, char key, int stored, const std::string& sizes) {
    return call(name("torch._utils", "_rebuild_tensor_v2"), storage(name("torch", type), key, stored) + small(0) +
                                                                sizes + "\x89" +
                                                                call(name("collections", "OrderedDict"), ""));
}
std::string untyped(const std::string& type, char key, int bytes, int size) {
    return call(name("torch._utils", "_rebuild_tensor_v3"),
                storage(name("torch.storage", "UntypedStorage"), key, bytes) + small(0) + tuple(small(size)) +
                    tuple(small(1)) + "\x89" + call(name("collections", "OrderedDict"), "") + name("torch", type) +
                    "\x89");
}
const std::string row = tuple(small(1) + small(2)) + tuple(small(2) + small(1)); // [1, 2]
const std::string one = tuple(small(1)) + tuple(small(1));                       // [1]

/// fc.weight [1, 2] and fc.bias [1] of f32, as items of a dict.
const std::string weights =
    text("fc.weight") + tensor("FloatStorage", '0', 2, row) + text("fc.bias") + tensor("FloatStorage", '1', 1, one);

std::filesystem::path file_of(const support::temporary_folder& folder, const std::string& value) {
    const auto path = folder.path() / "x.pt";
    tg::io::zip_writer writer(path);
    writer.add("x/data.pkl", "\x80\2" + value + ".");
    writer.add("x/data/0", "\0\0\x80\x3f\0\0\0\x40"s);   // 1, 2
    writer.add("x/data/1", "\0\0\x40\x40"s);             // 3
    writer.add("x/data/2", "\1\0\xff\xff\x38\xc0\0\0"s); // bytes for whatever type
    writer.commit();
    return path;
}
std::string reason(const tg::io::pytorch_file& file, const std::string& name) {
    for (const auto& u : file.unread)
        if (u.name == name) return u.reason;
    return "read";
}
/// What is said of a value beside the weights, which are read whatever it is.
std::string beside(const std::string& value) {
    const support::temporary_folder folder;
    const auto path = file_of(folder, dict(text("other") + value + weights));
    auto net = tg::instance(layer, tg::spec<float, tg::dyn, 2>{});
    const auto report = tg::io::load_pytorch(net, path, {.strict = false});
    CHECK(report.matched.size() == 2);
    CHECK(net.variables()["fc/kernel"].template value<float>().to_vector() == std::vector<float>{1, 2});
    CHECK(net.variables()["fc/bias"].template value<float>().to_vector() == std::vector<float>{3});
    const auto file = tg::io::read_pytorch_file(path);
    for (const auto& u : file.unread) CHECK(contains(report.text(), "not read: " + u.name + ": " + u.reason + "\n"));
    if (file.settings.count("other") > 0) return file.settings.at("other");
    return reason(file, "other");
}

} // namespace

TEST_CASE("a state_dict as PyTorch before 0.4 and Python 2 wrote it") {
    const support::temporary_folder folder;
    // OrderedDict([[name, tensor], ...]) with attributes; tensors without hooks, the second in a part of a storage.
    const auto old = [&](const std::string& of, const std::string& sizes) {
        return call(name("torch._utils", "_rebuild_tensor"), of + small(0) + sizes);
    };
    const auto part = [&](int first) {
        return tuple(text("storage") + name("torch", "FloatStorage") + text("0") + text("cuda:0") + small(2) +
                     tuple(text("9") + small(first) + small(1))) +
               "Q";
    };
    const auto file_with = [&](const std::string& bias) {
        const std::string pairs = "](](" + text("fc.weight") +
                                  old(storage(name("torch", "FloatStorage"), '0', 2), row) + "e](" + text("fc.bias") +
                                  old(bias, one) + "ee";
        return file_of(folder, call(name("collections", "OrderedDict"), pairs) +
                                   dict(text("_metadata") + dict(text("") + small(1))) + "b");
    };
    auto net = tg::instance(layer, tg::spec<float, tg::dyn, 2>{});
    CHECK(tg::io::load_pytorch(net, file_with(part(1))).matched.size() == 2);
    CHECK(net.variables()["fc/kernel"].template value<float>().to_vector() == std::vector<float>{1, 2});
    CHECK(net.variables()["fc/bias"].template value<float>().to_vector() == std::vector<float>{2});
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::load_pytorch(net, file_with(part(2))); }), "fc.bias"));
}

TEST_CASE("values beside the weights cost nothing, and are read or named") {
    // LONG1 of 9 bytes: a seed of 65 bits.
    CHECK(beside("\x8a\x09\0\0\0\0\0\0\0\0\1"s) == "18446744073709551616");
    CHECK(beside("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"s) == "18446744073709551615");
    CHECK(beside("\x8a\x09\0\0\0\0\0\0\0\0\xff"s) == "-18446744073709551616");
    CHECK(beside("\x8a\x09\xfb\xff\xff\xff\xff\xff\xff\xff\xfe"s) == "-18446744073709551621");
    CHECK(beside("\x8a\x0b\0\0\0\0\0\0\0\0\1\0\0"s) == "18446744073709551616"); // more bytes than it needs
    CHECK(beside("\x8a\xc8"s + std::string(199, '\1') + '\1') == "an integer of 1593 bits");
    CHECK(beside("I18446744073709551616\n") == "18446744073709551616"); // Python 2
    CHECK(beside("L-5L\n") == "-5");
    CHECK(beside("I01\n") == "True");
    CHECK(beside("N") == "None");
    CHECK(beside("\x8f(K\1K\2\x90") == "a set of 2");
    CHECK(beside("C\3abc") == "3 bytes");
    CHECK(beside(name("torch", "float16")) == "torch.float16");
    CHECK(beside(name("mine", "Net")) == "the class or function 'mine.Net'");
    CHECK(beside(call(name("datetime", "datetime"), "C\x0a\7\xe8\1\2\3\4\5\0\0\0"s)) ==
          "an object of 'datetime.datetime'");
    CHECK(beside(call(name("numpy.core.multiarray", "scalar"),
                      call(name("numpy", "dtype"), text("f8") + "\x89\x88") + tuple(small(3) + text("<") + "NNN") +
                          "b" + "C\x08\0\0\0\0\0\0\xf0\x3f"s)) == "an object of 'numpy.core.multiarray.scalar'");
    CHECK(beside(call(call(name("builtins", "getattr"), name("mine", "Net") + text("f")), "")) == "an object");
    CHECK(beside(name("mine", "Net") + ")}\x92") == "an object of 'mine.Net'"); // with arguments by name
    CHECK(beside("]q\5h\5a") == "read"); // of a list in itself the inner one is named:
    const support::temporary_folder folder;
    const auto loop = tg::io::read_pytorch_file(file_of(folder, dict(text("other") + "]q\5h\5a" + weights)));
    CHECK(reason(loop, "other.0") == "a value that holds itself");
    std::string deep, items;
    for (int i = 0; i < 100; ++i) deep += "]", items += i > 0 ? "a" : "";
    CHECK(contains(
        tg::io::read_pytorch_file(file_of(folder, dict(text("other") + deep + items + weights))).unread.at(0).reason,
        "nested in more than 64 others"));
    // One text for a hundred thousand labels is no attack, 60 levels of twice the same are; the weights before are read.
    std::string labels = text("cat") + "q\5"
                                       "0](";
    for (int i = 0; i < 100000; ++i) labels += "h\5";
    const auto labelled = tg::io::read_pytorch_file(file_of(folder, dict(text("other") + labels + "e" + weights)));
    CHECK(labelled.tensors.size() == 2);
    CHECK(labelled.settings.size() == 100000);
    std::string doubled = "]q\5";
    for (int i = 0; i < 60; ++i) doubled += "0](h\5h\5eq\5"; // twice what is in place 5 goes there
    const auto attack = tg::io::read_pytorch_file(file_of(folder, dict(weights + text("other") + doubled)));
    CHECK(attack.tensors.size() == 2);
    CHECK(attack.unread.back().reason == "this and what follows: values that hold each other again and again");
}

TEST_CASE("objects are looked into for what they hold") {
    const support::temporary_folder folder;
    // argparse.Namespace(lr=7, eps=1e-8, ema=tensor)
    const auto namespace_of = [&](const std::string& items) {
        return name("argparse", "Namespace") + ")\x81" + dict(items) + "b";
    };
    auto file = tg::io::read_pytorch_file(
        file_of(folder, dict(text("args") +
                             namespace_of(text("lr") + small(7) + text("eps") + "G\x3e\x45\x79\x8e\xe2\x30\x8c\x3a"s +
                                          text("ema") + tensor("FloatStorage", '1', 1, one)) +
                             weights)));
    CHECK(file.settings == std::map<std::string, std::string>{{"args.lr", "7"}, {"args.eps", "1e-08"}});
    REQUIRE(file.tensors.size() == 3);
    CHECK(file.tensors[0].name == "args.ema");
    CHECK(file.unread.empty());
    // A list of a class of one's own, and a tuple with names.
    file = tg::io::read_pytorch_file(
        file_of(folder, dict(text("list") + name("mine", "List") + ")\x81(" + tensor("FloatStorage", '1', 1, one) +
                             "e" + text("pair") + name("mine", "Pair") +
                             tuple(tuple(tensor("FloatStorage", '0', 2, row))) + "\x81" + weights)));
    REQUIRE(file.tensors.size() == 4);
    CHECK(file.tensors[0].name == "list.0");
    CHECK(file.tensors[1].name == "pair.0.0");
    CHECK(reason(file, "pair") == "an object of 'mine.Pair'");
    // A module as a whole: what state_dict() has of it, without the buffer that it leaves out.
    const auto module = [&](const std::string& parameters, const std::string& buffers, const std::string& modules) {
        return name("mine", "Net") + ")\x81" +
               dict(text("training") + "\x88" + text("_parameters") + dict(parameters) + text("_buffers") +
                    dict(buffers) + text("_non_persistent_buffers_set") +
                    call(name("builtins", "set"), "](" + text("passing") + "e") + text("_modules") + dict(modules)) +
               "b";
    };
    const auto parameter = [&](const std::string& value) {
        return call(name("torch._utils", "_rebuild_parameter"),
                    value + "\x88" + call(name("collections", "OrderedDict"), ""));
    };
    const std::string fc = module(text("weight") + parameter(tensor("FloatStorage", '0', 2, row)) + text("bias") +
                                      parameter(tensor("FloatStorage", '1', 1, one)),
                                  text("passing") + tensor("FloatStorage", '1', 1, one) + text("none") + "N", "");
    auto net = tg::instance(layer, tg::spec<float, tg::dyn, 2>{});
    CHECK(tg::io::load_pytorch(net, file_of(folder, module("", "", text("fc") + fc))).text() ==
          "2 matched, 0 missing, 0 unexpected, 0 mismatched\nfc/kernel <- fc.weight\nfc/bias <- fc.bias\n");
    // An optimizer's state beside the model, of which the prefix leaves all alone.
    const std::string optimizer =
        dict(text("state") +
             dict(small(0) + dict(text("step") + tensor("FloatStorage", '1', 1, one) + text("avg") +
                                  tensor("FloatStorage", '0', 2, row))) +
             text("param_groups") + "](" + dict(text("lr") + "G\x3f\xe0\0\0\0\0\0\0"s + text("foreach") + "N") + "e");
    const auto report =
        tg::io::load_pytorch(net, file_of(folder, dict(text("model") + dict(weights) + text("optimizer") + optimizer)),
                             {.prefix = "model."});
    CHECK(report.matched.size() == 2);
}

TEST_CASE("tensors of all kinds: read, or named and, within the model's part, in the way of strict loading") {
    const support::temporary_folder folder;
    const auto read = [&](const std::string& value) {
        return tg::io::read_pytorch_file(file_of(folder, dict(text("x") + value + weights)));
    };
    // nn.Buffer, and classes made of Tensor.
    const std::string arguments = tuple(storage(name("torch", "FloatStorage"), '1', 1) + small(0) + one + "\x89N");
    auto file = read(call(name("torch._tensor", "_rebuild_from_type_v2"), name("torch._utils", "_rebuild_tensor_v2") +
                                                                              name("torch", "Tensor") + arguments +
                                                                              dict(text("_is_buffer") + "\x88")));
    REQUIRE(file.tensors.size() == 3);
    CHECK(file.tensors[0].array.values<float>()[0] == 3);
    // Types without a storage of their own.
    file = read(untyped("uint16", '2', 8, 4));
    REQUIRE(file.tensors.size() == 3);
    CHECK(file.tensors[0].array.type == tg::dtype::u16);
    CHECK(file.tensors[0].array.values<std::uint16_t>()[1] == 0xFFFF);
    // One row shown three times.
    file = read(tensor("FloatStorage", '0', 2, tuple(small(3) + small(2)) + tuple(small(0) + small(1))));
    REQUIRE(file.tensors.size() == 3);
    const auto shown = file.tensors[0].array.values<float>();
    CHECK(std::vector<float>(shown.begin(), shown.end()) == std::vector<float>{1, 2, 1, 2, 1, 2});
    // One number shown 255^3 times: more than such a file gives room for.
    struct expected {
        std::string value, reason;
    };
    const expected kinds[] = {
        {tensor("FloatStorage", '1', 1,
                tuple(small(255) + small(255) + small(255)) + tuple(small(0) + small(0) + small(0))),
         "shows the 1 elements of its storage 16581375 times in all, more than the file gives room for; save "
         "x.contiguous()"},
        {tensor("ComplexFloatStorage", '2', 1, one), "elements of 'torch.ComplexFloatStorage' are not read"},
        {untyped("float8_e4m3fn", '2', 4, 4), "elements of 'torch.float8_e4m3fn' are not read"},
        {call(name("torch._utils", "_rebuild_qtensor"), storage(name("torch", "QInt8Storage"), '2', 4)),
         "a tensor of 'torch._utils._rebuild_qtensor'"},
        {call(name("torch._utils", "_rebuild_meta_tensor_no_storage"), name("torch", "float32") + one + "\x89"),
         "a tensor of 'torch._utils._rebuild_meta_tensor_no_storage'"},
        {call(name("torch._utils", "_rebuild_tensor_v2"),
              call(name("torch.storage", "_load_from_bytes"), "C\3abc") + small(0) + one + "\x89N"),
         "its storage is not in the archive"},
        {call(name("torch._tensor", "_rebuild_from_type_v2"),
              name("mine", "make") + name("mine", "Tensor") + tuple("") + "N"),
         "a tensor of 'mine.Tensor'"}};
    for (const auto& [value, why] : kinds) {
        file = read(value);
        CHECK(file.tensors.size() == 2);
        CHECK(reason(file, "x") == why);
        CHECK(file.unread.at(0).tensor);
        auto net = tg::instance(layer, tg::spec<float, tg::dyn, 2>{});
        const auto path = file_of(folder, dict(text("x") + value + text("model") + dict(weights)));
        CHECK(contains(message_of<tg::data_error>([&] { tg::io::load_pytorch(net, path); }),
                       "x.pt': does not fit the model: nothing in the model for x (" + why + ")"));
        CHECK(tg::io::load_pytorch(net, path, {.strict = false}).matched.size() == 2);
        // Beside the model's part it is no objection.
        CHECK(tg::io::load_pytorch(net, path, {.prefix = "model."}).unread.size() == 1);
    }
    // A weight that cannot be read is missing, and the message says why.
    auto net = tg::instance(layer, tg::spec<float, tg::dyn, 2>{});
    const auto path = file_of(folder, dict(text("fc.weight") + tensor("ComplexFloatStorage", '2', 1, one) +
                                           text("fc.bias") + tensor("FloatStorage", '1', 1, one)));
    CHECK(contains(message_of<tg::data_error>([&] { tg::io::load_pytorch(net, path); }),
                   "no tensor for fc/kernel; nothing in the model for fc.weight (elements of "
                   "'torch.ComplexFloatStorage' are not read)"));
}

TEST_CASE("files from before PyTorch 1.6: pickles and storages in a row") {
    const support::temporary_folder folder;
    const std::string magic = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s, version = "\x80\2M\xe9\3."s;
    const auto head = [&](bool little) {
        return magic + version + "\x80\2" +
               dict(text("protocol_version") + "M\xe9\3" + text("little_endian") + (little ? "\x88" : "\x89")) + ".";
    };
    const auto stored = [](char elements, const std::string& bytes) { return elements + "\0\0\0\0\0\0\0"s + bytes; };
    const std::string values = "\x80\2" +
                               dict(text("x") + tensor("ComplexFloatStorage", '2', 1, one) + weights + text("seed") +
                                    "\x8a\x09\0\0\0\0\0\0\0\0\1"s) +
                               ".";
    const std::string storages =
        stored(2, "\0\0\x80\x3f\0\0\0\x40"s) + stored(1, "12345678") + stored(1, "\0\0\x40\x40"s);
    const std::string keys = "\x80\2](" + text("0") + text("2") + text("1") + "e.";
    const auto path = folder.write("old.pt", head(true) + values + keys + storages);
    auto net = tg::instance(layer, tg::spec<float, tg::dyn, 2>{});
    const auto report = tg::io::load_pytorch(net, path, {.strict = false});
    CHECK(report.text() == "2 matched, 0 missing, 1 unexpected, 0 mismatched\nunexpected: x (elements of "
                           "'torch.ComplexFloatStorage' are not read)\nfc/kernel <- fc.weight\nfc/bias <- fc.bias\n"
                           "not read: x: elements of 'torch.ComplexFloatStorage' are not read\n");
    CHECK(net.variables()["fc/kernel"].template value<float>().to_vector() == std::vector<float>{1, 2});
    CHECK(tg::io::read_pytorch_file(path).settings.at("seed") == "18446744073709551616");
    // As a machine of the other order writes it.
    const auto other =
        tg::io::read_pytorch(folder.write("big.pt", head(false) + values + keys + stored(2, "\x3f\x80\0\0\x40\0\0\0"s) +
                                                        stored(1, "12345678") + stored(1, "\x40\x40\0\0"s)));
    REQUIRE(other.size() == 2);
    CHECK(other[0].array.values<float>()[1] == 2);
    const auto objection = [&](const std::string& bytes) {
        return message_of<tg::data_error>([&] { tg::io::read_pytorch(folder.write("x.pt", bytes)); });
    };
    CHECK(contains(objection(head(true) + values + keys + stored(2, "1234")),
                   "x.pt': ends within storage '0' of 2 elements"));
    CHECK(contains(objection(head(true) + values + keys), "x.pt': ends before storage '0'"));
    CHECK(
        contains(objection(head(true) + values + keys + stored(1, "1234") + stored(1, "12345678") + stored(1, "1234")),
                 "tensor 'fc.weight': storage '0' of 2 f32 has 4 bytes"));
    // After a storage of unknown width no other storage can be located.
    const std::string strange = "\x80\2" + dict(text("x") + tensor("OddStorage", '2', 1, one) + weights) + ".";
    const auto found = tg::io::read_pytorch_file(folder.write("odd.pt", head(true) + strange + keys + storages));
    CHECK(found.tensors.size() == 1);
    CHECK(reason(found, "fc.bias") == "its storage is not in the file");
}

TEST_CASE("a negative view has the opposite sign of its storage") {
    const support::temporary_folder folder;
    const std::string bits = dict(text("neg") + "\x88");
    const auto view = [&](const std::string& type, const std::string& more) {
        return call(name("torch._utils", "_rebuild_tensor_v2"),
                    storage(name("torch", type), '0', 2) + small(0) + tuple(small(2)) + tuple(small(1)) + "\x89" +
                        call(name("collections", "OrderedDict"), "") + more);
    };
    const auto path =
        file_of(folder, dict(text("minus") + view("FloatStorage", bits) + text("plain") + view("FloatStorage", "") +
                             text("plus") + view("FloatStorage", dict(text("neg") + "\x89"))));
    const auto read = tg::io::read_pytorch(path);
    REQUIRE(read.size() == 3);
    const auto items = [&](std::size_t k) {
        std::vector<float> v(2);
        std::memcpy(v.data(), read[k].array.bytes.data(), 8);
        return v;
    };
    const std::vector<float> stored = items(1);
    CHECK((stored[0] != 0 && stored[1] != 0));
    CHECK(items(0) == std::vector<float>{-stored[0], -stored[1]});
    CHECK(items(2) == stored);
}

} // namespace pytorch_beside_test
