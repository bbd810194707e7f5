// Cases of ONNX's backend test suite: onnx_cases FOLDER... runs each model on its inputs and compares with its outputs, by the suite's own
// tolerances (or, of elements of 16 bits, whose neighbours are further apart, two units in the last place), each in a process of its own. A line a case: "equal NAME", "refused NAME: why" or "wrong NAME: what".

#include "stored_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace tg = tapegraph;
using stored_cases::array;

namespace {

// Empty where they agree.
std::string difference(const array& got, const array& expected) {
    if (got.type() != expected.type())
        return std::string(tg::name_of(got.type())) + " for " + tg::name_of(expected.type());
    if (got.dims() != expected.dims()) return "shape " + to_string(got.shape()) + " for " + to_string(expected.shape());
    const bool floating = tg::is_floating(got.type());
    const double relative = got.type() == tg::dtype::bf16 ? 0x1p-6 : got.type() == tg::dtype::f16 ? 0x1p-9 : 1e-3;
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const double a = got.number(i), b = expected.number(i);
        if (floating ? a == b || (std::isnan(a) && std::isnan(b)) ||
                           std::fabs(a - b) <= 1e-7 + std::max(relative, 1e-3) * std::fabs(b)
                     : got.integer(i) == expected.integer(i))
            continue;
        char text[96];
        std::snprintf(text, sizeof text, "element %lld is %g, not %g", static_cast<long long>(i), a, b);
        return text;
    }
    return {};
}

std::string run(const std::string& folder, const std::string& name) {
    std::string wrong;
    stored_cases::compare(tg::io::load_onnx(folder + "/model.onnx"), folder,
                          [&](std::size_t k, const array& got, const array& expected) {
                              const std::string text = difference(got, expected);
                              if (wrong.empty() && !text.empty()) wrong = "output " + std::to_string(k) + ": " + text;
                          });
    return wrong.empty() ? "equal " + name : "wrong " + name + ": " + wrong;
}

} // namespace

int main(int count, char** folders) { stored_cases::run_each(count, folders, 120, run); }
