#pragma once

#include <tapegraph/core/clock.hpp>
#include <tapegraph/io/training_page.hpp>
#include <tapegraph/nn/callbacks/monitor.hpp>

#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace tapegraph {

/// Shows learning curves in one HTML page, rewritten completely at the end of each epoch; a browser
/// that shows it reloads it while training runs. It needs no server and no scripts.
struct training_page {
    std::string path = "training.html";
    std::string title = "Training";
    int refresh_seconds = 5;                                  ///< reload interval of the browser; 0: never
    std::vector<std::pair<std::string, std::string>> facts{}; ///< additional facts to show: {"data", "MNIST"}

    /// State.
    double started = 0, epoch_start = 0, epoch_end = 0;
    std::string date{};

    void on_train_begin(auto& s) { begin(s); }
    void on_epoch_begin(training_state&) {
        epoch_start = detail::steady_seconds();
        epoch_end = 0;
    }
    void on_test_begin(training_state&) { epoch_end = detail::steady_seconds(); } // seconds exclude validation
    void on_epoch_end(auto& s) { add_epoch(s); }
    void on_train_end(auto& s) { write(s, s.history, false); }

    template <class = void>
    void begin(training_state& s);
    template <class = void>
    void add_epoch(training_state& s);
    template <class = void>
    void write(const training_state& s, const history& h, bool running) const;
};

template <class>
void training_page::begin(training_state& s) {
    detail::check_at_least("training_page", "refresh_seconds", refresh_seconds, 0);
    started = epoch_start = detail::steady_seconds();
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    char text[40];
    ::localtime_r(&now, &local);
    date.assign(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local));
    write(s, s.history, true);
}

template <class>
void training_page::add_epoch(training_state& s) {
    history h = s.history; // which lacks this epoch until all callbacks have run
    epoch_result e;
    e.epoch = s.epoch;
    e.seconds = (epoch_end > 0 ? epoch_end : detail::steady_seconds()) - epoch_start;
    e.logs = s.logs;
    h.epochs.push_back(std::move(e));
    write(s, h, true);
}

template <class>
void training_page::write(const training_state& s, const history& h, bool running) const {
    if (!s.writes_files()) return;
    const auto duration = [](double seconds) {
        char text[40];
        const auto whole = static_cast<long long>(seconds + 0.5);
        if (whole < 60)
            std::snprintf(text, sizeof text, "%.3g s", seconds);
        else if (whole < 3600)
            std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
        else
            std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
        return std::string(text);
    };
    const double so_far = detail::steady_seconds() - started;
    const auto done = static_cast<std::int64_t>(h.epochs.empty() ? 0 : h.epochs.back().epoch + 1);
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    io::training_page_text page;
    page.title = title;
    page.refresh_seconds = running ? refresh_seconds : 0;
    page.done = s.epochs > 0 ? static_cast<double>(done) / static_cast<double>(s.epochs) : 1;
    page.facts = facts;
    const auto fact = [&](const char* name, std::string value) { page.facts.emplace_back(name, std::move(value)); };
    fact("epoch", std::to_string(done) + " of " + std::to_string(s.epochs));
    fact("state", running ? "training" : !s.history.stopped_by.empty() ? s.history.stopped_by : "finished");
    fact("time", duration(so_far));
    if (running && !h.epochs.empty() && done < s.epochs) {
        double each = 0;
        for (const epoch_result& e : h.epochs) each += e.seconds;
        fact("to go, about",
             duration(each / static_cast<double>(h.epochs.size()) * static_cast<double>(s.epochs - done)));
    }
    fact("steps", std::to_string(s.step));
    fact("parameters", std::to_string(s.model().parameter_count()));
    if (s.has_learning_rate()) fact("learning rate", io::detail::decimal(s.learning_rate(), "%.4g"));
    fact("began", date);
    fact("host", host);
    io::atomic_file out(path);
    out.write(io::training_page_html(h, page));
    out.commit();
}

} // namespace tapegraph
