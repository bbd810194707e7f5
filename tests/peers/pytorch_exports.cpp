// needs: proto
// Networks that others exported: pytorch_exports FOLDER... runs each model.onnx on its stored inputs and compares with its stored outputs,
// each in a process of its own. A line a folder: "equal NAME: largest difference", "refused NAME: why" or "wrong NAME: what". Writes each
// again, as again_17.onnx and again_26.onnx (ONNX's opset): a line "again NAME OPSET" or "not again NAME OPSET: why".

#include "stored_cases.hpp"

#include <tapegraph/io/onnx.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace tg = tapegraph;
using stored_cases::array;

namespace {

// The largest difference over the largest element of what was expected, or over 1 if all are smaller. Throws where they cannot be compared.
double distance(const array& got, const array& expected) {
    if (got.type() != expected.type())
        throw std::runtime_error(std::string(tg::name_of(got.type())) + " for " + tg::name_of(expected.type()));
    if (got.dims() != expected.dims())
        throw std::runtime_error("shape " + to_string(got.shape()) + " for " + to_string(expected.shape()));
    double scale = 1, worst = 0;
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const double a = got.number(i), b = expected.number(i);
        if (std::isfinite(b)) scale = std::max(scale, std::fabs(b));
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        worst = std::max(worst, std::isfinite(a - b) ? std::fabs(a - b) : INFINITY);
    }
    return worst / scale;
}

std::string run(const std::string& folder, const std::string& name) {
    const tg::io::onnx_model model = tg::io::load_onnx(folder + "/model.onnx");
    double worst = 0;
    stored_cases::compare(model, folder, [&](std::size_t, const array& got, const array& expected) {
        worst = std::max(worst, distance(got, expected));
    });
    for (const int opset : {17, 26}) {
        const std::string as = name + " " + std::to_string(opset);
        try {
            tg::io::export_onnx(model, folder + "/again_" + std::to_string(opset) + ".onnx", {.opset = opset});
            std::printf("again %s\n", as.c_str());
        } catch (const tg::error& e) {
            std::printf("not again %s: %s\n", as.c_str(), e.what());
        }
    }
    char text[32];
    std::snprintf(text, sizeof text, ": %.1e", worst);
    return (worst <= 1e-4 ? "equal " : "wrong ") + name + text;
}

} // namespace

int main(int count, char** folders) { stored_cases::run_each(count, folders, 300, run); }
