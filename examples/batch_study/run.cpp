#include "run.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace batch_study {

namespace {
std::int64_t images_seen(const run_result& r) {
    std::int64_t n = 0;
    for (const auto& e : r.epochs) n += e.records;
    return n;
}
double ingestion_seconds(const run_result& r) {
    double s = 0;
    for (const auto& e : r.epochs) s += e.ingestion_seconds;
    return s;
}
} // namespace

std::int64_t run_result::steps() const {
    std::int64_t n = 0;
    for (const auto& e : epochs) n += e.steps;
    return n;
}
double run_result::seconds() const {
    double s = 0;
    for (const auto& e : epochs) s += e.seconds;
    return s;
}
double run_result::training_ms() const {
    return 1e3 * (seconds() - ingestion_seconds(*this)) / static_cast<double>(steps());
}
double run_result::ingestion_ms() const { return 1e3 * ingestion_seconds(*this) / static_cast<double>(steps()); }
double run_result::images_per_second() const { return static_cast<double>(images_seen(*this)) / seconds(); }
double run_result::seconds_per_epoch() const { return static_cast<double>(images) / images_per_second(); }

std::string to_text(const run_result& r) {
    std::ostringstream out;
    out.precision(17);
    out << r.key.mode << ' ' << r.key.batch_size << ' ' << r.device << ' ' << r.batches << ' ' << r.images << ' '
        << r.library_bytes << ' ' << r.process_bytes << ' ' << r.epochs.size() << '\n';
    // Texts that strtod reads: a loss may be NaN.
    for (const auto& e : r.epochs)
        out << e.loss << ' ' << e.accuracy << ' ' << e.validation_loss << ' ' << e.validation_accuracy << ' '
            << e.seconds << ' ' << e.ingestion_seconds << ' ' << e.steps << ' ' << e.records << '\n';
    return out.str();
}

run_result from_text(const std::string& text) {
    std::istringstream in(text);
    run_result r;
    std::size_t count = 0;
    in >> r.key.mode >> r.key.batch_size >> r.device >> r.batches >> r.images >> r.library_bytes >> r.process_bytes >>
        count;
    const auto number = [&] {
        std::string word;
        in >> word;
        return std::strtod(word.c_str(), nullptr);
    };
    for (std::size_t i = 0; in && i < count; ++i) {
        tapegraph::epoch_result e;
        for (double* value :
             {&e.loss, &e.accuracy, &e.validation_loss, &e.validation_accuracy, &e.seconds, &e.ingestion_seconds})
            *value = number();
        in >> e.steps >> e.records;
        r.epochs.push_back(e);
    }
    if (!in || r.epochs.empty()) throw std::runtime_error("a run ended without a result");
    return r;
}

} // namespace batch_study
