// needs: proto
// Networks that others exported: pytorch_exports FOLDER... runs each model.onnx on its stored inputs and compares with its stored outputs,
// each in a process of its own. A line a folder: "equal NAME: largest difference", "refused NAME: why" or "wrong NAME: what". Writes each
// again, as again_17.onnx and again_26.onnx (ONNX's opset): a line "again NAME OPSET" or "not again NAME OPSET: why".

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx.hpp>
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

// The largest difference over the largest element of what was expected, or over 1 if all are smaller. Throws where they cannot be compared.
double distance(const array& got, const array& expected) {
    if (got.type() != expected.type())
        throw std::runtime_error(std::string(tg::name_of(got.type())) + " for " + tg::name_of(expected.type()));
    if (got.dims() != expected.dims())
        throw std::runtime_error("shape " + to_string(got.shape()) + " for " + to_string(expected.shape()));
    double scale = 1, worst = 0;
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const double a = got.number(i), b = expected.number(i);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        if (std::isfinite(b)) scale = std::max(scale, std::fabs(b));
        worst = std::max(worst, std::isfinite(a - b) ? std::fabs(a - b) : INFINITY);
    }
    return worst / scale;
}

std::string run(const std::string& folder, const std::string& name) {
    try {
        const tg::io::onnx_model model = tg::io::load_onnx(folder + "/model.onnx");
        double worst = 0;
        for (int set = 0;; ++set) {
            const std::string data = folder + "/test_data_set_" + std::to_string(set) + "/";
            if (!exists(data)) break;
            std::vector<tg::any_tensor> x;
            for (std::size_t k = 0; k < model.inputs().size(); ++k)
                x.push_back(tg::io::onnx_import::read_tensor(data + "input_" + std::to_string(k) + ".pb").tensor());
            const std::vector<tg::any_tensor> y = model.predict(std::span<const tg::any_tensor>(x));
            for (std::size_t k = 0; k < y.size(); ++k)
                worst = std::max(worst, distance(array_of(y[k]), tg::io::onnx_import::read_tensor(
                                                                     data + "output_" + std::to_string(k) + ".pb")));
        }
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
            ::alarm(300);
            std::printf("%s\n", run(folder, name).c_str());
            std::fflush(stdout);
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        if (!WIFEXITED(status)) std::printf("wrong %s: ended by signal %d\n", name.c_str(), WTERMSIG(status));
    }
}
