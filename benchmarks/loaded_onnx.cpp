/// Predictions of a model that load_onnx read, one for each line of the standard input: loaded_onnx MODEL.onnx DIMS..., where DIMS
/// are an input's extents, "32,3,224,224". benchmarks/loaded_onnx.py runs it beside onnxruntime. Prints the processor seconds of loading
/// up to the first result, then those of each prediction; with several threads seconds of the clock on the wall.

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/tapegraph.hpp>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

namespace tg = tapegraph;

namespace {

double seconds() {
    if (tg::thread_count() > 1)
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    std::timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

tg::any_tensor values(tg::dtype type, const std::string& text) {
    tg::shape dims;
    std::stringstream items(text);
    for (std::string item; std::getline(items, item, ',');) dims.push_back(std::stoll(item));
    if (type == tg::dtype::f32) return tg::random::normal<float>(dims, {.seed = 1});
    tg::any_tensor x(type, dims);
    for (std::int64_t i = 0; i < x.size(); ++i)
        if (type == tg::dtype::i64)
            static_cast<std::int64_t*>(x.write())[i] = i * 7 % 50;
        else
            static_cast<std::int32_t*>(x.write())[i] = static_cast<std::int32_t>(i * 7 % 50);
    return x;
}

} // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::puts("usage: loaded_onnx MODEL.onnx DIMS...");
        return 0;
    }
    const double start = seconds();
    const tg::io::onnx_model model = tg::io::load_onnx(arguments[1]);
    std::vector<tg::any_tensor> x;
    for (std::size_t k = 0; k < model.inputs().size(); ++k)
        x.push_back(values(model.inputs()[k].type, arguments[2 + k]));
    const auto predict = [&] { return model.predict(std::span<const tg::any_tensor>(x)); };
    predict();
    std::printf("%.6f\n", seconds() - start);
    std::fflush(stdout);
    for (int c = std::getchar(); c != EOF; c = std::getchar()) {
        if (c != '\n') continue;
        const double before = seconds();
        predict();
        std::printf("%.6f\n", seconds() - before);
        std::fflush(stdout);
    }
}
