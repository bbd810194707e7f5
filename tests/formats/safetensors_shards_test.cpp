#include <doctest/doctest.h>

#include <tapegraph/formats/safetensors_shards.hpp>

#include <support/temporary_folder.hpp>

namespace safetensors_shards_test {

using namespace tapegraph::io;
using tapegraph::argument_error;
using tapegraph::data_error;
using tapegraph::dtype;

namespace {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

const std::vector<float> a{1, 2, 3}, b{4, 5}, d{6, 7, 8, 9, 10};
const bool c = true;
const std::vector<safetensors_entry> entries{{"d", dtype::f32, {5}, d.data()},
                                             {"b", dtype::f32, {2, 1}, b.data()},
                                             {"a", dtype::f32, {3}, a.data()},
                                             {"c", dtype::boolean, {}, &c}};

void check_all(const safetensors_reader& reader) {
    REQUIRE(reader.tensors().size() == 4);
    CHECK(std::ranges::equal(reader.at("a").values<float>(), a));
    CHECK(std::ranges::equal(reader.at("b").values<float>(), b));
    CHECK(std::ranges::equal(reader.at("d").values<float>(), d));
    CHECK(reader.at("b").shape == std::vector<std::int64_t>{2, 1});
    CHECK(reader.at("c").values<bool>()[0]);
}

} // namespace

TEST_CASE("tensors go into files of limited size, and come back by the index") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "m.safetensors";
    const auto index = write_safetensors_shards({path, 20}, entries, {{"step", "7"}});
    CHECK(index == folder.path() / "m.safetensors.index.json");
    // a and b fill 20 bytes, c is one, d another 20.
    CHECK(names_in(folder.path()) ==
          std::vector<std::string>{"m-00001-of-00003.safetensors", "m-00002-of-00003.safetensors",
                                   "m-00003-of-00003.safetensors", "m.safetensors.index.json"});
    CHECK(support::read_text(index) ==
          "{\"metadata\":{\"total_size\":41},\"weight_map\":{\"a\":\"m-00001-of-00003.safetensors\","
          "\"b\":\"m-00001-of-00003.safetensors\",\"c\":\"m-00002-of-00003.safetensors\","
          "\"d\":\"m-00003-of-00003.safetensors\"}}\n");
    const safetensors_reader reader(index);
    check_all(reader);
    CHECK(reader.metadata().at("step") == "7");
    CHECK(support::contains(support::message_of<data_error>([&] { reader.at("e"); }), "no tensor 'e' among 4"));
    CHECK(read_safetensors_file(folder.path() / "m-00002-of-00003.safetensors").tensors.size() == 1);

    // A tensor that is larger than a file may be has one of its own; one file is a model, too.
    write_safetensors_shards({folder.path() / "n.safetensors", 1}, entries);
    check_all(safetensors_reader(folder.path() / "n.safetensors.index.json"));
    CHECK(std::filesystem::exists(folder.path() / "n-00004-of-00004.safetensors"));
    write_safetensors_shards({folder.path() / "o.safetensors"}, entries);
    check_all(safetensors_reader(folder.path() / "o.safetensors.index.json"));
    CHECK(safetensors_reader(write_safetensors_shards({folder.path() / "none.safetensors"}, {})).tensors().empty());
}

TEST_CASE("files that an index points to are replaced, never written over") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "m.safetensors";
    const auto index = write_safetensors_shards({path, 20}, entries);
    const std::string before = support::read_text(index);
    const safetensors_reader old(index);
    write_safetensors_shards({path, 20}, entries);
    CHECK(names_in(folder.path()) ==
          std::vector<std::string>{"m-v1-00001-of-00003.safetensors", "m-v1-00002-of-00003.safetensors",
                                   "m-v1-00003-of-00003.safetensors", "m.safetensors.index.json"});
    check_all(safetensors_reader(index));
    check_all(old); // what is mapped stays

    // Writing that fails leaves what was there.
    CHECK_THROWS_AS(write_safetensors_shards({path, 20}, {entries[0], {"a\xFF", dtype::f32, {3}, a.data()}}),
                    argument_error);
    check_all(safetensors_reader(index));
}

TEST_CASE("what cannot be written as shards is refused") {
    const support::temporary_folder folder;
    const auto message = [&](const shards& to, const std::vector<safetensors_entry>& what) {
        return support::message_of<argument_error>([&] { write_safetensors_shards(to, what); });
    };
    CHECK(support::contains(message({folder.path() / "m.bin"}, entries), "does not end in .safetensors"));
    CHECK(support::contains(message({folder.path() / "m.safetensors", 0}, entries), "max_bytes is 0"));
    CHECK(support::contains(message({folder.path() / "m.safetensors"}, {entries[0], entries[0]}),
                            "two tensors are named 'd'"));
    CHECK(names_in(folder.path()).empty());
}

TEST_CASE("an index that does not fit its files is refused, and none leads out of its folder") {
    const support::temporary_folder folder;
    const auto index = write_safetensors_shards({folder.path() / "m.safetensors", 20}, entries);
    const auto message = [&](const std::string& map) {
        const auto path = folder.write("x.index.json", "{\"weight_map\":{" + map + "}}");
        return support::message_of<data_error>([&] { safetensors_reader reader(path); });
    };
    for (const char* name : {"../m-00001-of-00003.safetensors", "/etc/passwd", "", ".", "..", "a\\\\b", "a\\u0000b"}) {
        CAPTURE(name);
        CHECK(support::contains(message("\"a\":\"" + std::string(name) + "\""),
                                "is not a name in the index's own folder"));
    }
    CHECK(support::contains(message(R"("a":"none.safetensors")"), "none.safetensors': no such file"));
    CHECK(support::contains(message(R"("z":"m-00001-of-00003.safetensors")"), "tensor 'z' is not in 'm-00001"));
    CHECK(support::contains(message(R"("a":"m-00001-of-00003.safetensors")"),
                            "holds tensor 'b', which the index does not name there"));
    CHECK(support::contains(message(R"("a":1)"), "is not a string"));
    CHECK(support::contains(message(R"("a":"x","a":"y")"), "the name 'a' twice"));
    folder.write("x.index.json", std::string("{}"));
    CHECK(support::contains(
        support::message_of<data_error>([&] { safetensors_reader r(folder.path() / "x.index.json"); }),
        "x.index.json': has no weight_map"));
}

} // namespace safetensors_shards_test
