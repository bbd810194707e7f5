// Predictions of a model that load_onnx reads, for benchmarks/forests.py: bench_forests MODEL RECORDS FEATURES. RECORDS is
// a file of f32 rows. For each line "BATCH PREDICTIONS" of the standard input, the median processor time of that
// many predictions of consecutive rows, in microseconds.

#include <tapegraph/io/load_onnx.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tg = tapegraph;

namespace {

double now() { return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC; }

} // namespace

int main(int count, char** given) {
    if (count != 4) return std::fprintf(stderr, "bench_forests MODEL RECORDS FEATURES\n"), 2;
    const tg::io::onnx_model model = tg::io::load_onnx(given[1]);
    std::ifstream file(given[2], std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const std::int64_t width = std::atoll(given[3]);
    const auto row = static_cast<std::size_t>(width) * sizeof(float), rows = bytes.size() / row;
    long long batch = 0, predictions = 0;
    while (std::scanf("%lld %lld", &batch, &predictions) == 2) {
        const auto n = static_cast<std::size_t>(batch);
        if (batch < 1 || predictions < 1 || n > rows) return 2;
        std::vector<double> times;
        for (std::size_t i = 0; i < static_cast<std::size_t>(predictions); ++i) {
            std::vector<tg::any_tensor> x{tg::any_tensor(tg::dtype::f32, tg::shape({batch, width}))};
            std::memcpy(x[0].write(), bytes.data() + i * n % (rows - n + 1) * row, n * row);
            const double begin = now();
            model.predict(std::span<const tg::any_tensor>(x));
            times.push_back(now() - begin);
        }
        std::nth_element(times.begin(), times.begin() + predictions / 2, times.end());
        std::printf("%.2f\n", times[times.size() / 2]);
        std::fflush(stdout);
    }
}
