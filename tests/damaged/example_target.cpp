// needs: proto
#include <damaged/target.hpp>

#include <tapegraph/data/readers/example_columns.hpp>

#include <array>

std::vector<std::string> sound_files() {
    using namespace tapegraph::data;
    sequence_example sequence;
    sequence.context.set("id", int64_feature({7}));
    sequence.lists.push_back({"words", {int64_feature({1, 2}), bytes_feature("three"), float_feature({4})}});
    return {serialize(example().set("x", float_feature({1, 2, 3})).set("label", int64_feature({-3}))),
            serialize(example().set("x", bytes_feature({"", "abc"})).set("none", {})), serialize(sequence),
            std::string()};
}

bool read_damaged(const std::string& bytes) {
    using namespace tapegraph;
    static const data::example_parser parser({{"x", dtype::f32, {3}, 0}, {"label", dtype::u8, {}, 1}});
    std::array<float, 3> x{};
    std::uint8_t label = 0;
    std::byte* const places[2] = {reinterpret_cast<std::byte*>(x.data()), reinterpret_cast<std::byte*>(&label)};
    bool read = true;
    const auto attempt = [&](const auto& f) {
        try {
            f();
        } catch (const error&) {
            read = false;
        }
    };
    attempt([&] { static_cast<void>(data::parse_example(bytes)); });
    attempt([&] { static_cast<void>(data::parse_sequence_example(bytes)); });
    const bool sound = read;
    attempt([&] { parser.parse_into(bytes, places); }); // sound files need not fit these columns
    return sound;
}

const std::size_t memory_factor = 256; // a feature of two bytes is a structure with three lists
