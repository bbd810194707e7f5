#include <tapegraph/data/readers/npz.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/formats/npz.hpp>

#include <support/base64.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace npz_test {

using support::contains;
using support::from_base64;
using support::message_of;
using tapegraph::argument_error;
using tapegraph::data_error;
using tapegraph::dtype;
using tapegraph::dtype_error;
using tapegraph::shape_error;
using namespace tapegraph::io;

namespace {

/// numpy.savez(x=numpy.arange(6, dtype="<f4").reshape(2, 3), y=numpy.array([1, 0], "u1"), flag=numpy.array(True))
std::string stored_file() {
    return from_base64(
        "UEsDBC0AAAAAAAAAIQBP6QAq//////////8FABQAeC5ucHkBABAAmAAAAAAAAACYAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJzxmNC"
        "csICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFwZSc6ICgyLCAzKSwgfSAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg"
        "ICAgICAgICAgICAgICAgICAgICAgICAKAAAAAAAAgD8AAABAAABAQAAAgEAAAKBAUEsDBC0AAAAAAAAAIQBOY2ux//////////8FABQAeS"
        "5ucHkBABAAggAAAAAAAACCAAAAAAAAAJNOVU1QWQEAdgB7J2Rlc2NyJzogJ3x1MScsICdmb3J0cmFuX29yZGVyJzogRmFsc2UsICdzaGFw"
        "ZSc6ICgyLCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAKAQBQSwMELQ"
        "AAAAAAAAAhAIIt+NP//////////wgAFABmbGFnLm5weQEAEACBAAAAAAAAAIEAAAAAAAAAk05VTVBZAQB2AHsnZGVzY3InOiAnfGIxJywg"
        "J2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKCksIH0gICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC"
        "AgICAgICAgICAgICAgICAgICAgIAoBUEsBAi0DLQAAAAAAAAAhAE/pACqYAAAAmAAAAAUAAAAAAAAAAAAAAIABAAAAAHgubnB5UEsBAi0D"
        "LQAAAAAAAAAhAE5ja7GCAAAAggAAAAUAAAAAAAAAAAAAAIABzwAAAHkubnB5UEsBAi0DLQAAAAAAAAAhAIIt+NOBAAAAgQAAAAgAAAAAAA"
        "AAAAAAAIABiAEAAGZsYWcubnB5UEsFBgAAAAADAAMAnAAAAEMCAAAAAA==");
}
/// numpy.savez_compressed(x=numpy.zeros((50, 4), "<f4"), y=numpy.arange(50) % 3 == 0)
std::string packed_file() {
    return from_base64(
        "UEsDBC0AAAAIAAAAIQDNj8nd//////////8FABQAeC5ucHkBABAAoAMAAAAAAABPAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TZq"
        "Kuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpAL5GqYGOgommjoKtQrkAi6GUTAKRgFOAABQSwMELQAAAAgAAAAhABN/2YP/////////"
        "/wUAFAB5Lm5weQEAEACyAAAAAAAAAEoAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWgXpNkqK6joJ6WX1RSlJgXn1+UkgoSd0vMKU4Fih"
        "dnJBakAvkapgY6mjoKtQrkAy5GBgYSEQBQSwECLQMtAAAACAAAACEAzY/J3U8AAACgAwAABQAAAAAAAAAAAAAAgAEAAAAAeC5ucHlQSwEC"
        "LQMtAAAACAAAACEAE3/Zg0oAAACyAAAABQAAAAAAAAAAAAAAgAGGAAAAeS5ucHlQSwUGAAAAAAIAAgBmAAAABwEAAAAA");
}

} // namespace

TEST_CASE("NumPy's archives, stored and deflated") {
    const support::temporary_folder folder;
    const npz_reader reader(folder.write("s.npz", stored_file()));
    CHECK(reader.names() == std::vector<std::string>{"x", "y", "flag"});
    CHECK(reader.contains("x"));
    CHECK(reader.contains("x.npy")); // as numpy's own `in`
    CHECK(!reader.contains("z"));
    const tapegraph::tensor<float> x(reader.tensor("x"));
    CHECK(x.shape() == tapegraph::shape{2, 3});
    CHECK(x.to_vector() == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(reader.array("flag").shape.empty());
    CHECK(contains(message_of<data_error>([&] { static_cast<void>(reader.array("z")); }),
                   "s.npz': no array 'z', there are 'x', 'y', 'flag'"));
    const auto all = read_npz_arrays(folder.write("p.npz", packed_file()));
    REQUIRE(all.size() == 2);
    CHECK(all.at("x").shape == std::vector<std::int64_t>{50, 4});
    for (std::size_t i = 0; i < 50; ++i) REQUIRE(all.at("y").values<bool>()[i] == (i % 3 == 0));
}

TEST_CASE("written archives come back, stored and compressed") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "w.npz";
    for (const bool compressed : {false, true}) {
        write_npz(path, {{"a", tapegraph::tensor<float>{1, 2, 3}}, {"b/c", tapegraph::zeros<std::int64_t>({300, 5})}},
                  {.compressed = compressed});
        CHECK((support::read_text(path).size() < 2000) == compressed);
        const auto back = read_npz(path);
        REQUIRE(back.size() == 2);
        CHECK(tapegraph::tensor<float>(back.at("a")).to_vector() == std::vector<float>{1, 2, 3});
        CHECK(back.at("b/c").shape() == tapegraph::shape{300, 5});
    }
    write_npz_arrays(path, {});
    CHECK(read_npz(path).empty());
    CHECK(contains(message_of<data_error>([&] { static_cast<void>(npz_reader(path).array("a")); }), "there are none"));
    const std::string before = support::read_text(path);
    CHECK_THROWS_AS(write_npz_arrays(path, {{"../x", host_array::zeros(dtype::f32, {1})}}), argument_error);
    CHECK_THROWS_AS(write_npz_arrays(path, {{"x", host_array::zeros(dtype::bf16, {1})}}), dtype_error);
    CHECK(support::read_text(path) == before);
}

TEST_CASE("members that are no arrays, arrays that are not read") {
    const support::temporary_folder folder;
    {
        zip_writer writer(folder.path() / "odd.npz");
        writer.add("readme.txt", "text");
        writer.add("names.npy", "\x93NUMPY\x01");
        writer.commit();
    }
    const npz_reader reader(folder.path() / "odd.npz");
    CHECK(contains(message_of<data_error>([&] { static_cast<void>(reader.array("readme.txt")); }),
                   "odd.npz', array 'readme.txt': not an .npy file"));
    CHECK_THROWS_AS(read_npz(folder.path() / "odd.npz"), data_error);
    std::string damaged = stored_file();
    damaged[damaged.find("<f4") + 2] = '8';
    CHECK(contains(message_of<data_error>([&] { read_npz(folder.write("d.npz", damaged)); }),
                   "member 'x.npy': wrong checksum"));
}

TEST_CASE("columns of a data set") {
    const support::temporary_folder folder;
    const auto path = folder.write("p.npz", packed_file());
    const auto set = tapegraph::data::from_npz(path);
    CHECK(set.size() == 50);
    REQUIRE(set.columns().size() == 2);
    CHECK(set.columns()[1].type == dtype::boolean);
    CHECK(tapegraph::data::from_npz(path, {"y"}).columns().size() == 1);
    CHECK_THROWS_AS(tapegraph::data::from_npz(path, {"z"}), data_error);
    CHECK(contains(message_of<shape_error>([&] { tapegraph::data::from_npz(folder.write("s.npz", stored_file())); }),
                   "s.npz', array 'flag': a single value"));
    write_npz_arrays(folder.path() / "u.npz",
                     {{"a", host_array::zeros(dtype::f32, {2})}, {"b", host_array::zeros(dtype::f32, {3})}});
    CHECK(contains(message_of<shape_error>([&] { tapegraph::data::from_npz(folder.path() / "u.npz"); }),
                   "column 'b' holds 3 records, column 'a' holds 2"));
}

TEST_CASE("an array of texts or objects costs the others nothing") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "x.npz";
    zip_writer writer(path);
    const auto numbers = npy_to_bytes(host_array::of<std::uint32_t>({1}, std::vector<std::uint32_t>{65}));
    std::string texts(reinterpret_cast<const char*>(numbers.data()), numbers.size());
    texts.replace(texts.find("<u4"), 3, "<U1");
    writer.add("names.npy", texts);
    writer.add("x.npy", npy_to_bytes(host_array::of<float>({2}, std::vector<float>{1, 2})));
    writer.commit();
    const auto text = message_of<dtype_error>([&] { read_npz_arrays(path); });
    CHECK(contains(text, "x.npz', array 'names': elements of type '<U1' (texts) are not read"));
    CHECK(contains(text, "; the others are, where the call has a list of unread ones"));
    std::vector<unread_value> unread;
    CHECK(read_npz_arrays(path, &unread).at("x").size() == 2);
    CHECK(read_npz(path, &unread).size() == 1);
    REQUIRE(unread.size() == 2);
    CHECK(unread[0].name == "names");
    CHECK(contains(unread[0].reason, "elements of type '<U1' (texts) are not read"));
}

} // namespace npz_test
