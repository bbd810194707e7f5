#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

/// Measures tiny operations in PyTorch's C++ interface, for the rows of bench_eager_overhead:
/// nanoseconds of processor time per operation on one thread, medians and best of 300 blocks of
/// 1,000. CMake does not build this. With T, PyTorch's folder (python3 -c "import os, torch;
/// print(os.path.dirname(torch.__file__))"):
///
///     g++ -std=c++20 -O2 -I$T/include -I$T/include/torch/csrc/api/include tiny_pytorch.cpp -o tiny_pytorch
///         -L$T/lib -ltorch -ltorch_cpu -lc10 -Wl,-rpath,$T/lib

namespace {

constexpr int operations = 1000;

// The calling thread's clock: backward() of tensors on the CPU runs on the thread that calls it.
double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class F>
void measure(const char* name, const F& block) {
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) block();
    for (int i = 0; i < 300; ++i) {
        const double start = thread_seconds();
        block();
        times.push_back((thread_seconds() - start) / operations * 1e9);
    }
    std::sort(times.begin(), times.end());
    std::printf("| %s | %.0f | %.0f |\n", name, times[times.size() / 2], times[0]);
}

// A chain of operations on z, differentiated with respect to w.
template <class F>
void differentiate(torch::Tensor& w, const F& operation) {
    torch::Tensor z = w;
    for (int i = 0; i < operations; ++i) z = operation(z);
    w.mutable_grad() = torch::Tensor();
    z.backward(torch::ones({8}));
}

} // namespace

int main() {
    at::set_num_threads(1);
    const torch::Tensor a = torch::ones({8}), b = torch::ones({8}), c = torch::ones({8, 8}), d = torch::ones({8, 8});
    torch::Tensor w = torch::ones({8}, torch::requires_grad());
    std::printf("| float[8], one thread | ns, median | best |\n| --- | ---: | ---: |\n");
    measure("add", [&] {
        const torch::NoGradGuard none;
        for (int i = 0; i < operations; ++i) torch::Tensor z = a + b;
    });
    measure("add, recorded", [&] {
        for (int i = 0; i < operations; ++i) torch::Tensor z = w + b;
    });
    measure("add, recorded and differentiated", [&] { differentiate(w, [&](const auto& z) { return z + b; }); });
    measure("multiply, recorded and differentiated", [&] { differentiate(w, [&](const auto& z) { return z * b; }); });
    measure("matmul 8 x 8 x 8", [&] {
        const torch::NoGradGuard none;
        for (int i = 0; i < operations; ++i) torch::Tensor z = torch::matmul(c, d);
    });
}
