// Cases of ONNX's backend test suite: onnx_cases FOLDER... runs each model on its inputs and compares with its outputs, by the suite's own
// tolerances (or, of elements of 16 bits, whose neighbours are further apart, two units in the last place), each in a process of its own. A line a case: "equal NAME", "refused NAME: why" or "wrong NAME: what".

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx_import/read_model.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

namespace tg = tapegraph;
using tg::io::onnx_import::array;

namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

array array_of(const tg::any_tensor& t) {
    array a(t.type(), {t.shape().data(), t.shape().data() + t.rank()});
    if (a.byte_count() > 0) std::memcpy(a.data(), t.read(), a.byte_count());
    return a;
}

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
    try {
        const tg::io::onnx_model model = tg::io::load_onnx(folder + "/model.onnx");
        for (int set = 0;; ++set) {
            const std::string data = folder + "/test_data_set_" + std::to_string(set) + "/";
            if (!exists(data)) return "equal " + name;
            std::vector<tg::any_tensor> x;
            for (std::size_t k = 0; k < model.inputs().size(); ++k)
                x.push_back(tg::io::onnx_import::read_tensor(data + "input_" + std::to_string(k) + ".pb").tensor());
            const std::vector<tg::any_tensor> y = model.predict(std::span<const tg::any_tensor>(x));
            for (std::size_t k = 0; k < y.size(); ++k) {
                const array expected = tg::io::onnx_import::read_tensor(data + "output_" + std::to_string(k) + ".pb");
                const std::string wrong = difference(array_of(y[k]), expected);
                if (!wrong.empty()) return "wrong " + name + ": output " + std::to_string(k) + ": " + wrong;
            }
        }
    } catch (const tg::error& e) {
        return "refused " + name + ": " + e.what();
    } catch (const std::exception& e) {
        return "wrong " + name + ": " + e.what();
    }
}

} // namespace

int main(int count, char** folders) {
    for (int k = 1; k < count; ++k) {
        std::string folder = folders[k];
        while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
        const std::string name = folder.substr(folder.rfind('/') + 1);
        std::fflush(stdout);
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(120);
            std::printf("%s\n", run(folder, name).c_str());
            std::fflush(stdout);
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        if (!WIFEXITED(status)) std::printf("wrong %s: ended by signal %d\n", name.c_str(), WTERMSIG(status));
    }
}
