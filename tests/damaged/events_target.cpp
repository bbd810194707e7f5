// needs: proto
#include <damaged/folder.hpp>

#include <tapegraph/io/tensorboard.hpp>
#include <tapegraph/io/tensorboard/event_reader.hpp>

std::vector<std::string> sound_files() {
    std::vector<std::string> files;
    {
        tapegraph::io::event_writer events(folder().path() / "a");
        events.scalar("loss", 0.5, 1);
        events.scalar("loss", 0.25, 2);
        events.text("t", "text", 1);
        events.flush();
        files.push_back(support::read_text(events.path()));
    }
    // Damage to a file seldom leaves its checksums intact, so these records have valid ones: each holds a message with one
    // byte changed, or the beginning of it.
    std::string all;
    for (int i = 0; i < 64; ++i) {
        std::string data("\x09\0\0\0\0\0\0\xf0\x3f\x10\x02\x2a\x0a\x0a\x08\x0a\x01s\x15\0\0\x80\x3f", 23);
        data[static_cast<std::size_t>(i) % data.size()] = static_cast<char>(i * 37);
        tapegraph::io::append_record(all, i % 2 == 0 ? data : data.substr(0, static_cast<std::size_t>(i) / 3));
    }
    files.push_back("#" + all); // taken apart by read_damaged
    return files;
}

bool read_damaged(const std::string& bytes) {
    try {
        // After a '#', or what is left of it, every 23 bytes are a message without a frame.
        if (!bytes.empty() && bytes[0] == '#') {
            tapegraph::io::detail::scalar_collection series;
            for (std::size_t at = 1; at < bytes.size(); at += 23) {
                const std::size_t count = std::min<std::size_t>(23, bytes.size() - at);
                try {
                    tapegraph::io::detail::add_scalars({bytes.data() + at, count}, series);
                } catch (const protozero::exception&) {
                } catch (const tapegraph::error&) {}
            }
            return true;
        }
        const auto path = folder().write("damaged", bytes);
        static_cast<void>(tapegraph::io::read_scalars(path, {.partial = true}));
        static_cast<void>(tapegraph::io::read_scalars(path));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 64; // a point of 24 bytes, and a tag of its own, from 10 bytes of a file
