// Models that packages carry: onnx_real FOLDER... runs each model.onnx on its stored inputs and compares with its stored outputs, each in a
// process of its own. A line a folder: "equal NAME: largest difference", "refused NAME: why" or "wrong NAME: what". An element may be off by
// 1e-4 of 1 + its absolute value (an integer by 1e-4), or by what a folder's tolerance.txt says.

#include "stored_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

namespace tg = tapegraph;
using stored_cases::array;

namespace {

double allowed(const std::string& folder) {
    double tolerance = 1e-4;
    std::ifstream(folder + "/tolerance.txt") >> tolerance;
    return tolerance;
}

std::string run(const std::string& folder, const std::string& name) {
    double worst = 0;
    std::string what;
    stored_cases::compare(
        tg::io::load_onnx(folder + "/model.onnx"), folder, [&](std::size_t k, const array& got, const array& expected) {
            const std::string output = "output " + std::to_string(k);
            if (got.type() != expected.type())
                throw std::runtime_error(output + ": " + tg::name_of(got.type()) + " for " +
                                         tg::name_of(expected.type()));
            if (got.dims() != expected.dims())
                throw std::runtime_error(output + ": shape " + to_string(got.shape()) + " for " +
                                         to_string(expected.shape()));
            for (std::int64_t i = 0; i < got.size(); ++i) {
                const double a = got.number(i), b = expected.number(i);
                if (a == b || (std::isnan(a) && std::isnan(b))) continue;
                const double off = std::fabs(a - b) / (tg::is_floating(got.type()) ? 1 + std::fabs(b) : 1),
                             counted = std::isfinite(off) ? off : INFINITY;
                if (counted <= worst) continue;
                worst = counted;
                char text[96];
                std::snprintf(text, sizeof text, ", element %lld is %g, not %g", static_cast<long long>(i), a, b);
                what = " (" + output + text + ")";
            }
        });
    const bool equal = worst <= allowed(folder);
    char text[32];
    std::snprintf(text, sizeof text, ": %.1e", worst);
    return (equal ? "equal " : "wrong ") + name + text + (equal ? "" : what);
}

} // namespace

int main(int count, char** folders) { stored_cases::run_each(count, folders, 300, run); }
