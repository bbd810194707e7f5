#include <tapegraph/train/progress.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace progress_test {

using tapegraph::io::progress_line;
using tapegraph::io::progress_style;

namespace {

double moment = 0;
double test_clock() { return moment; }

} // namespace

TEST_CASE("in place, the line is overwritten and wiped") {
    moment = 100;
    std::ostringstream out;
    progress_line line(out, progress_style::in_place, test_clock);
    line.begin_epoch(2, 10, 57);
    moment = 100.05;
    CHECK_FALSE(line.update(1, {{"loss", 0.7}})); // too soon for the eye
    moment = 102;
    CHECK(line.update(34, {{"loss", 0.61234}, {"accuracy", 0.671}}));
    CHECK(out.str() == "\repoch 2/10 [===========>        ] 34/57 17.0 steps/s loss 0.6123 accuracy 0.671 eta 1.4 s");
    const std::size_t length = out.str().size() - 1;
    out.str("");
    moment = 103;
    CHECK(line.update(50, {}));
    CHECK(out.str().size() == length + 1); // blanks cover what the longer line left
    CHECK(support::contains(out.str(), "50/57 16.7 steps/s eta 0.4 s  "));
    out.str("");
    moment = 105;
    line.end_epoch(57, {{"loss", 1e-7}});
    CHECK(out.str().starts_with("\repoch 2/10 [====================] 57/57 11.4 steps/s loss 1e-07 in 5.0 s"));
    CHECK(out.str().back() == '\n');
}

TEST_CASE("elsewhere, whole lines now and then") {
    moment = 0;
    std::ostringstream out;
    progress_line line(out, progress_style::automatic, test_clock); // a string is no terminal
    line.begin_epoch(1, 1, 1000);
    int shown = 0;
    for (int step = 1; step <= 250; ++step) {
        moment += 0.1;
        shown += line.update(step, {{"loss", 1.0}});
    }
    CHECK(shown == 2);
    line.end_epoch(250, {});
    const std::string text = out.str();
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK_FALSE(support::contains(text, "\r"));
}

TEST_CASE("long times, unknown lengths, no time at all, silence") {
    moment = 0;
    std::ostringstream out;
    progress_line line(out, progress_style::in_place, test_clock);
    line.begin_epoch(1, 3, 0);
    line.end_epoch(5, {}); // no time has passed: no rate, no division by zero
    CHECK(support::contains(out.str(), "epoch 1/3 step 5 0.0 steps/s in 0.0 s"));
    line.begin_epoch(2, 3, 1000);
    moment = 7.5;
    line.update(1, {});
    CHECK(support::contains(out.str(), "eta 2 h 04 min"));
    moment = 95;
    line.end_epoch(1000, {});
    CHECK(support::contains(out.str(), "in 1 min 35 s"));

    std::ostringstream nothing;
    progress_line quiet(nothing, progress_style::quiet, test_clock);
    quiet.begin_epoch(1, 1, 1);
    moment += 100;
    CHECK_FALSE(quiet.update(1, {}));
    quiet.end_epoch(1, {});
    CHECK(nothing.str().empty());
}

} // namespace progress_test
