#include <tapegraph/io/tensorboard.hpp>
#include <tapegraph/io/tensorboard/event_reader.hpp>

#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

namespace tensorboard_test {

namespace tg = tapegraph;
using tg::io::event_writer;

namespace {

double fixed_clock() { return 1700000000.25; }
constexpr tg::io::event_options fixed{.clock = fixed_clock};

std::string hex(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

/// The messages in the only file of a folder.
std::vector<std::string> events_in(const std::filesystem::path& folder) {
    std::vector<std::string> events;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        const std::string bytes = support::read_text(file.path());
        tg::io::record_cursor records(bytes, "events");
        for (std::string_view data; records.next(data);) events.emplace_back(data);
    }
    return events;
}

/// What a writer adds after its first event.
template <class F>
std::vector<std::string> written(const F& f) {
    const support::temporary_folder folder;
    {
        event_writer events(folder.path() / "run", fixed);
        f(events);
    }
    std::vector<std::string> all = events_in(folder.path() / "run");
    all.erase(all.begin());
    return all;
}

} // namespace

// The bytes below are those of TensorBoard 2.21's own messages, serialised by protobuf.

TEST_CASE("the first event is the version, and names are TensorFlow's") {
    const support::temporary_folder folder;
    std::filesystem::path path;
    {
        event_writer events(folder.path() / "a" / "b", fixed);
        path = events.path();
    }
    CHECK(path.parent_path() == folder.path() / "a" / "b");
    CHECK(path.filename().string().starts_with("events.out.tfevents.1700000000."));
    const auto all = events_in(folder.path() / "a" / "b");
    REQUIRE(all.size() == 1);
    CHECK(hex(all[0]) == "0900001040fc54d9411a0d627261696e2e4576656e743a32");
}

TEST_CASE("bytes of scalars, histograms, texts and hyperparameters") {
    CHECK(hex(written([](event_writer& e) { e.scalar("loss", 0.5, 7); })[0]) ==
          "0900001040fc54d94110072a230a210a046c6f7373420a0801120022040000003f4a0d0a090a077363616c6172732001");
    CHECK(hex(written([](event_writer& e) {
              e.histogram("w", std::vector<float>{1, 2, 3}, 300, 2);
          })[0]) == "0900001040fc54d94110ac022a570a550a0177423e0802120812020802120208032230000000000000f03f0000000000"
                    "000040000000000000f03f0000000000000040000000000000084000000000000000404a100a0c0a0a686973746f6772"
                    "616d732002");
    CHECK(hex(written([](event_writer& e) { e.text("t", "# hi", 1); })[0]) ==
          "0900001040fc54d94110012a210a1f0a0174420e08071204120208014204232068694a0a0a060a04746578742002");
    const auto start = written([](event_writer& e) {
        e.hyperparameters({{"lr", 0.1}, {"opt", "adam"}, {"b", true}}, {{"epoch_loss", "validation"}});
        e.end_session();
    });
    REQUIRE(start.size() == 3);
    CHECK(hex(start[0]) ==
          "0900001040fc54d9412a690a670a145f68706172616d735f2f6578706572696d656e74420a080112002204000000004a"
          "430a410a0768706172616d731236123422060a026c72200322070a036f7074200122050a016220022a1a0a180a0a7661"
          "6c69646174696f6e120a65706f63685f6c6f7373");
    CHECK(hex(start[2]) ==
          "0900001040fc54d9412a460a440a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f420a0801120022"
          "04000000004a1a0a180a0768706172616d73120d220b08011100001040fc54d941");
    const auto group = written([](event_writer& e) { e.hyperparameters({{"lr", 0.1}}, {}, "g"); });
    CHECK(hex(group[1]) ==
          "0900001040fc54d9412a5a0a580a1c5f68706172616d735f2f73657373696f6e5f73746172745f696e666f420a080112"
          "002204000000004a2c0a2a0a0768706172616d73121f1a1d0a0f0a026c721209119a9999999999b93f22016729000010"
          "40fc54d941");
}

TEST_CASE("bytes of node times") {
    const auto all = written([](event_writer& e) {
        const tg::io::node_time times[]{{"conv1/x", 20, 15.4, 1024}};
        e.node_times("step 3", times, 3);
    });
    CHECK(hex(all[0]) ==
          "0900001040fc54d9411003423d0a0673746570203312330a310a2f0a0d2f6465766963653a4350553a30121e0a07636f"
          "6e76312f781014200f280f320d0a056172656e61108008188008");
}

TEST_CASE("buckets of histograms: equal values, none, what is not finite, the ends") {
    using bucket = tg::io::histogram_bucket;
    const auto buckets = [](std::vector<double> values, int count) {
        return tg::io::histogram_buckets(std::span<const double>(values), count);
    };
    const auto same = [](const bucket& b, double left, double right, double count) {
        return b.left == left && b.right == right && b.count == count;
    };
    const auto four = buckets({0, 1, 2, 3, 4}, 4);
    CHECK(same(four[0], 0, 1, 1));
    CHECK(same(four[3], 3, 4, 2)); // the largest is in the last
    const auto equal = buckets({2, 2, 2}, 3);
    CHECK(same(equal[0], 2, 2, 0));
    CHECK(same(equal[2], 2, 2, 3));
    const auto empty = buckets({}, 30);
    CHECK(empty.size() == 30);
    CHECK(same(empty[29], 0, 0, 0));
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto finite = buckets({std::nan(""), 1, infinity, 3, -infinity}, 2);
    CHECK(same(finite[0], 1, 2, 1));
    CHECK(same(finite[1], 2, 3, 1));
    const auto wide = buckets({-1e308, 1e308}, 2); // whose difference is no double
    CHECK(wide[0].count == 1);
    CHECK(wide[1].count == 1);
    CHECK(same(buckets({5}, 1)[0], 5, 5, 1));
    CHECK(support::message_of<tg::argument_error>([&] { buckets({1}, 0); }) == "histogram: 0 buckets");
    double count = 0;
    for (const bucket& b : tg::io::histogram_buckets(tg::tensor<bool>(std::vector<bool>{true, false, true})))
        count += b.count;
    CHECK(count == 3);
    for (const auto& t : {tg::any_tensor(tg::ones<tg::half>({7})), tg::any_tensor(tg::ones<std::int8_t>({7})),
                          tg::any_tensor(tg::ones<std::uint64_t>({7})), tg::any_tensor(tg::ones<tg::bfloat16>({7}))})
        CHECK(tg::io::histogram_buckets(t).back().count == 7);
}

TEST_CASE("pictures: shapes, types, and how many") {
    const auto strings = [](const tg::any_tensor& t, int most = 3) {
        return tg::io::detail::encoded_images(t, most).texts;
    };
    const auto gray = strings(tg::tensor<float>{{0, 0.5f, 1}, {-1, 2, std::nanf("")}});
    REQUIRE(gray.size() == 3);
    CHECK(gray[0] == "3"); // width first
    CHECK(gray[1] == "2");
    const std::uint8_t pixels[]{0, 128, 255, 0, 255, 0};
    CHECK(gray[2] == tg::io::encode_png(pixels, 2, 3, 1));
    CHECK(strings(tg::tensor<std::uint8_t>(pixels, {2, 3}))[2] == gray[2]);
    CHECK(strings(tg::zeros<double>({5, 2, 4, 3})).size() == 5);
    CHECK(strings(tg::zeros<double>({5, 2, 4, 3}), 100).size() == 7);
    CHECK(strings(tg::zeros<tg::half>({2, 4, 4})).size() == 3);
    const auto shape = [&](const tg::shape& dims) {
        return support::message_of<tg::shape_error>([&] { strings(tg::zeros<float>(dims)); });
    };
    CHECK(shape({4}) ==
          "image: shape [4] is not [height, width], [height, width, channels] or [n, height, width, channels] with 1 "
          "to 4 channels");
    CHECK(support::contains(shape({4, 4, 5}), "with 1 to 4 channels"));
    CHECK(shape({0, 4, 3}) == "image: shape [0, 4, 3] has no pixels");
    CHECK(support::message_of<tg::dtype_error>([&] {
              strings(tg::zeros<std::int32_t>({2, 2}));
          }) == "image: elements are i32, not u8 or floating point from 0 to 1");
}

TEST_CASE("a folder belongs to one run and one writer") {
    const support::temporary_folder folder;
    const auto run = folder.path() / "run";
    const auto message = [&](bool resume) {
        return support::message_of<tg::data_error>([&] { event_writer other(run, {.resume = resume}); });
    };
    {
        event_writer first(run);
        CHECK(support::contains(message(true), "another event_writer writes there"));
        CHECK(support::contains(message(false), "another event_writer writes there"));
    }
    CHECK(support::contains(message(false), "holds the events of another run ('events.out.tfevents."));
    CHECK(message(true).empty());
    CHECK(std::distance(std::filesystem::directory_iterator(run), {}) == 2);
    const auto file = folder.write("file", std::string("x"));
    CHECK(support::contains(support::message_of<tg::data_error>([&] { event_writer none(file); }),
                            "'" + file.string() + "': cannot be"));
}

TEST_CASE("events reach the file whole: when the buffer is full, by flush, after a time, and at the end") {
    const support::temporary_folder folder;
    const auto size = [](const event_writer& e) { return std::filesystem::file_size(e.path()); };
    {
        event_writer events(folder.path() / "a", {.buffer_bytes = 1000, .flush_seconds = 1e9});
        CHECK(size(events) == 0);
        events.flush();
        const auto first = size(events);
        CHECK(first > 0);
        for (int i = 0; i < 100; ++i) {
            events.scalar("loss", 1, i);
            const std::string bytes = support::read_text(events.path()); // whole records at any time
            tg::io::record_cursor records(bytes, "a");
            for (std::string_view data; records.next(data);) {}
        }
        CHECK(size(events) > 4000);
    }
    CHECK(tg::io::read_scalars(folder.path() / "a")[0].points.size() == 100);
    {
        event_writer events(folder.path() / "b", {.flush_seconds = 0});
        CHECK(size(events) > 0); // each at once
    }
    try {
        event_writer events(folder.path() / "c", {.flush_seconds = 1e9});
        events.scalar("loss", 2, 5);
        throw 1;
    } catch (int) {}
    CHECK(tg::io::read_scalars(folder.path() / "c")[0].points[0].step == 5);
    {
        event_writer events(folder.path() / "d", {.flush_seconds = 1e9});
        events.text("long", std::string(1 << 20, 'x'), 1); // longer than the buffer
        CHECK(size(events) > (1 << 20));
        events.scalar("loss", 2, 5);
    }
    CHECK(tg::io::read_scalars(folder.path() / "d").size() == 1);
}

TEST_CASE("an event whose making throws leaves nothing behind") {
    const auto all = written([](event_writer& e) {
        CHECK_THROWS_AS(e.image("i", tg::zeros<float>({4}), 1), tg::shape_error);
        e.scalar("loss", 1, 1);
    });
    CHECK(all.size() == 1);
}

TEST_CASE("a disk that takes nothing is an error that names the file and what is lost") {
    if (!std::filesystem::exists("/dev/full")) return;
    const support::temporary_folder folder;
    tg::io::detail::event_file file(folder.path(), {.flush_seconds = 1e9});
    file.add([](std::string& to) { to += "x"; });
    const int full = ::open("/dev/full", O_WRONLY);
    file.replace_descriptor(full);
    const std::string message = support::message_of<tg::data_error>([&] { file.flush(); });
    CHECK(
        support::contains(message, "'" + file.path().string() + "': writing failed, 1 events are lost: No space left"));
}

TEST_CASE("scalars come back") {
    const support::temporary_folder folder;
    for (const bool resume : {false, true}) {
        event_writer events(folder.path(), {.resume = resume, .clock = fixed_clock});
        for (int i = 0; i < 3; ++i) {
            events.scalar("loss", 0.1 * i, i);
            events.scalar("other", -i, 1000000000000 + i);
        }
        events.text("t", "no number", 1);
        events.hyperparameters({{"a", 1}}, {});
        events.histogram("h", std::vector<double>{1}, 1);
    }
    const auto series = tg::io::read_scalars(folder.path());
    REQUIRE(series.size() == 2);
    CHECK(series[0].tag == "loss");
    REQUIRE(series[0].points.size() == 6);
    CHECK(series[0].points[1].value == static_cast<double>(0.1f));
    CHECK(series[0].points[1].step == 1);
    CHECK(series[0].points[1].wall_time == 1700000000.25);
    CHECK(series[1].points[2].step == 1000000000002);
    // TensorFlow 1: simple_value; and double tensors, and float_val.
    std::string file;
    tg::io::append_record(file,
                          std::string("\x10\x02\x2a\x0a\x0a\x08\x0a\x01s\x15\0\0", 12) + std::string("\x80\x3f", 2));
    tg::io::append_record(file, std::string("\x2a\x0e\x0a\x0c\x0a\x01s\x42\x07\x08\x01\x2d\0\0", 14) +
                                    std::string("\0\x40", 2));
    const auto old = tg::io::read_scalars(folder.write("events.tfevents.1", file));
    REQUIRE(old.size() == 1);
    CHECK(old[0].points[0].value == 1);
    CHECK(old[0].points[0].step == 2);
    CHECK(old[0].points[1].value == 2);
}

TEST_CASE("damaged event files are refused with their place") {
    const support::temporary_folder folder;
    std::string bytes;
    {
        event_writer events(folder.path() / "run");
        events.scalar("loss", 1, 1);
        events.flush();
        bytes = support::read_text(events.path());
    }
    const auto message = [&](const std::string& content, bool partial = false) {
        const auto path = folder.write("damaged", content);
        return support::message_of<tg::data_error>([&] { tg::io::read_scalars(path, {.partial = partial}); });
    };
    CHECK(message(bytes).empty());
    CHECK(support::contains(message(bytes.substr(0, bytes.size() - 3)), "record 1 at byte 40: it has"));
    CHECK(message(bytes.substr(0, bytes.size() - 3), true).empty());
    CHECK(message(bytes.substr(0, 45), true).empty());
    bytes[60] = static_cast<char>(bytes[60] + 1);
    CHECK(support::contains(message(bytes, true), "record 1 at byte 40: the checksum of its"));
    std::string sound;
    tg::io::append_record(sound, "\x2a\x7fxyz"); // longer than it is
    CHECK(support::contains(message(sound), "damaged': record 0 at byte 0: its data is not an Event message: "));
    CHECK(support::contains(message(std::string("no events at all")),
                            "record 0 at byte 0: the checksum of its length is"));
    CHECK(support::contains(support::message_of<tg::data_error>([&] { tg::io::read_scalars(folder.path() / "none"); }),
                            "no such file"));
    std::filesystem::create_directory(folder.path() / "empty");
    CHECK(support::contains(support::message_of<tg::data_error>([&] { tg::io::read_scalars(folder.path() / "empty"); }),
                            "holds no event files"));
}

} // namespace tensorboard_test
