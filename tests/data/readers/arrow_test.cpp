#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/readers/arrow.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace arrow_test {

namespace data = tapegraph::data;
using support::message_of;
using tapegraph::dtype;

namespace {

/// Structures as a producer makes them; what they point to lives in the test.
struct producer {
    std::deque<ArrowSchema> schemas;
    std::deque<ArrowArray> arrays;
    std::deque<std::vector<const void*>> buffers;
    std::deque<std::vector<ArrowSchema*>> schema_children;
    std::deque<std::vector<ArrowArray*>> array_children;
    int released = 0;

    ArrowSchema* schema(const char* format, const char* name, const std::vector<ArrowSchema*>& children = {},
                        ArrowSchema* dictionary = nullptr) {
        schema_children.push_back(children);
        schemas.push_back({format, name, nullptr, 0, static_cast<std::int64_t>(children.size()),
                           schema_children.back().data(), dictionary,
                           [](ArrowSchema* s) { ++static_cast<producer*>(s->private_data)->released; }, this});
        return &schemas.back();
    }
    ArrowArray* array(std::int64_t length, const std::vector<const void*>& of,
                      const std::vector<ArrowArray*>& children = {}, std::int64_t offset = 0,
                      ArrowArray* dictionary = nullptr) {
        buffers.push_back(of);
        array_children.push_back(children);
        arrays.push_back({length, -1, offset, static_cast<std::int64_t>(of.size()),
                          static_cast<std::int64_t>(children.size()), buffers.back().data(),
                          array_children.back().data(), dictionary,
                          [](ArrowArray* a) { ++static_cast<producer*>(a->private_data)->released; }, this});
        return &arrays.back();
    }
};

template <class T>
std::vector<T> all(const data::dataset& set, const std::string& column) {
    std::vector<T> values;
    data::loader batches(set.batch(2));
    for (const data::batch& b : batches.epoch(0))
        for (const T v : b.values<T>(column)) values.push_back(v);
    return values;
}

const std::vector<float> x{0, 1.5f, -2, 3, 4, 5, 6, 7};
const std::vector<std::int64_t> big{1LL << 40, -1, 0, 7};
const std::uint8_t bits = 0b0110, valid = 0b1011;
const char text[] = "onethree";
const std::int32_t offsets[] = {0, 3, 3, 8, 8};
const std::int64_t long_offsets[] = {0, 3, 8};
const std::int32_t days[] = {19000, 19001, 19002, 19003};
const std::int8_t indices[] = {1, 0, 1, 1};

} // namespace

TEST_CASE("columns of a record batch, and its memory lives as long as a data set of it") {
    producer p;
    {
        data::dataset set;
        {
            ArrowSchema* const schema =
                p.schema("+s", "",
                         {p.schema("f", "x"), p.schema("l", "big"), p.schema("b", "flag"),
                          p.schema("+w:2", "pair", {p.schema("f", "item")}),
                          p.schema("c", "kind", {}, p.schema("U", "")), p.schema("tdD", "day"), p.schema("u", "name")});
            ArrowArray* const array =
                p.array(4, {nullptr},
                        {p.array(4, {nullptr, x.data()}), p.array(4, {nullptr, big.data()}),
                         p.array(4, {nullptr, &bits}), p.array(4, {nullptr}, {p.array(8, {nullptr, x.data()})}),
                         p.array(4, {nullptr, indices}, {}, 0, p.array(2, {nullptr, long_offsets, text})),
                         p.array(4, {nullptr, days}), p.array(4, {&valid, offsets, text})});
            const auto table = data::import_arrow(schema, array);
            CHECK((schema->release == nullptr));
            CHECK(table.size() == 4);
            CHECK(table.names() == std::vector<std::string>{"x", "big", "flag", "pair", "kind", "day", "name"});
            CHECK(table.strings("name") == std::vector<std::string>{"one", "", "", ""}); // the third is null
            CHECK(table.strings("kind") == std::vector<std::string>{"three", "one", "three", "three"});
            CHECK(table.dictionary("kind") == std::vector<std::string>{"one", "three"});
            set = table.dataset({.columns = {"pair", "x", "big", "flag", "kind", "day"}});
            CHECK(all<std::int32_t>(set, "day") == std::vector<std::int32_t>{19000, 19001, 19002, 19003});
            CHECK(message_of<tapegraph::dtype_error>([&] { static_cast<void>(table.dataset()); }) ==
                  "arrow: column 'name' has format 'u', which is text: name the columns of numbers that you want");
            CHECK(message_of<tapegraph::argument_error>([&] {
                      static_cast<void>(table.dataset({.columns = {"y"}}));
                  }) == "arrow: no column 'y', there are 'x', 'big', 'flag', 'pair', 'kind', 'day', 'name'");
            CHECK(message_of<tapegraph::dtype_error>([&] { static_cast<void>(table.strings("x")); }) ==
                  "arrow: column 'x' has format 'f', which is not text");
        }
        CHECK(p.released == 0);
        CHECK(set.columns()[0].shape == std::vector<std::int64_t>{2});
        CHECK(all<float>(set, "pair") == x);
        CHECK(all<std::int64_t>(set, "big") == big);
        CHECK(all<bool>(set, "flag") == std::vector<bool>{false, true, true, false});
        CHECK(all<std::int8_t>(set, "kind") == std::vector<std::int8_t>{1, 0, 1, 1});
    }
    CHECK(p.released == 2);
}

TEST_CASE("offsets of slices, and nulls") {
    producer p;
    // A slice of two records from the second on, of a batch whose columns are slices themselves.
    const auto import = [&] {
        return data::import_arrow(
            p.schema("+s", "",
                     {p.schema("f", "x"), p.schema("+w:2", "pair", {p.schema("f", "item")}), p.schema("b", "flag")}),
            p.array(2, {nullptr},
                    {p.array(3, {&valid, x.data()}, {}, 1), p.array(3, {nullptr}, {p.array(8, {&valid, x.data()})}),
                     p.array(3, {nullptr, &bits})},
                    1));
    };
    // x: elements 2, 3 of the buffer, of which 2 is null (valid = 1011). pair: lists 1, 2: values 2, 3, 4, 5; 2 is null, 4 to 7, too.
    const auto table = import();
    CHECK(all<float>(table.dataset({.columns = {"x"}, .null_value = -1}), "x") == std::vector<float>{-1, 3});
    CHECK(all<float>(table.dataset({.columns = {"pair"}, .null_value = 9}), "pair") == std::vector<float>{9, 3, 9, 9});
    CHECK(all<bool>(table.dataset({.columns = {"flag"}}), "flag") == std::vector<bool>{true, true});
    const auto set = table.dataset({.columns = {"x"}});
    CHECK(message_of<tapegraph::data_error>([&] { static_cast<void>(all<float>(set, "x")); }) ==
          "arrow: column 'x': record 0 is null; arrow_options.null_value says what nulls become");
    CHECK(std::isnan(all<float>(table.dataset({.columns = {"x"}, .null_value = NAN}), "x")[0]));
}

TEST_CASE("streams of record batches, of any number of records") {
    producer p;
    struct state {
        producer* of;
        int batches, fail_at;
    } own{&p, 0, -1};
    const auto stream = [&] {
        own.batches = 0;
        return ArrowArrayStream{[](ArrowArrayStream* s, ArrowSchema* out) {
                                    auto& from = *static_cast<state*>(s->private_data)->of;
                                    *out = *from.schema("+s", "", {from.schema("f", "x")});
                                    return 0;
                                },
                                [](ArrowArrayStream* s, ArrowArray* out) {
                                    auto& at = *static_cast<state*>(s->private_data);
                                    if (at.batches == at.fail_at) return 5;
                                    const std::int64_t lengths[] = {3, 0, 1, 4};
                                    if (at.batches == 4)
                                        out->release = nullptr;
                                    else
                                        *out = *at.of->array(lengths[at.batches], {nullptr},
                                                             {at.of->array(lengths[at.batches], {nullptr, x.data()})});
                                    ++at.batches;
                                    return 0;
                                },
                                [](ArrowArrayStream*) -> const char* { return "the disk is gone"; },
                                [](ArrowArrayStream* s) {
                                    ++static_cast<state*>(s->private_data)->of->released;
                                    s->release = nullptr;
                                },
                                &own};
    };
    {
        auto given = stream();
        const auto table = data::import_arrow(&given);
        CHECK((given.release == nullptr));
        CHECK(table.size() == 8);
        CHECK(all<float>(table.dataset(), "x") == std::vector<float>{0, 1.5f, -2, 0, 0, 1.5f, -2, 3});
    }
    CHECK(p.released == 6);
    own.fail_at = 2;
    auto given = stream();
    CHECK(message_of<tapegraph::data_error>([&] { static_cast<void>(data::import_arrow(&given)); }) ==
          "arrow: the stream gives no further record batch: the disk is gone");
    CHECK(p.released == 10);
    CHECK(message_of<tapegraph::data_error>([&] { static_cast<void>(data::import_arrow(&given)); }) ==
          "arrow: a stream that was released already");
}

TEST_CASE("what does not fit the schema") {
    producer p;
    const auto refused = [&](ArrowSchema* schema, ArrowArray* array) {
        return message_of<tapegraph::data_error>([&] { static_cast<void>(data::import_arrow(schema, array)); });
    };
    CHECK(refused(p.schema("f", "x"), p.array(4, {nullptr, x.data()})) ==
          "arrow: the schema has format 'f', expected '+s', a record batch");
    CHECK(refused(p.schema("+s", "", {p.schema("f", "x")}), p.array(4, {nullptr}, {})) ==
          "arrow: record batch 0: 0 children, expected 1");
    CHECK(refused(p.schema("+s", "", {p.schema("f", "x")}), p.array(4, {nullptr}, {p.array(3, {nullptr, x.data()})})) ==
          "arrow: column 'x': 3 values, expected 4");
    CHECK(refused(p.schema("+s", "", {p.schema("f", "x")}), p.array(4, {nullptr}, {p.array(4, {nullptr})})) ==
          "arrow: column 'x' of format 'f': 1 buffers, expected 2");
    CHECK(refused(p.schema("+s", "", {p.schema("f", "x")}), p.array(4, {nullptr}, {p.array(4, {nullptr, nullptr})})) ==
          "arrow: column 'x': no values");
    CHECK(p.released == 10); // what was taken over is given back all the same
    const auto other =
        data::import_arrow(p.schema("+s", "", {p.schema("+l", "lists", {p.schema("f", "item")})}),
                           p.array(1, {nullptr}, {p.array(1, {nullptr, offsets}, {p.array(3, {nullptr, x.data()})})}));
    CHECK(message_of<tapegraph::dtype_error>([&] { static_cast<void>(other.dataset()); }) ==
          "arrow: column 'lists' has format '+l', which is neither a number nor a list of fixed size of them");
}

} // namespace arrow_test
