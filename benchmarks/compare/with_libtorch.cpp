#include "noise.hpp"

#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <iostream>
#include <sstream>
#include <string>

/// The tiny operations in PyTorch's C++ interface, as a contestant (protocol.py): additions of a
/// few numbers, one after the other. Compiled against the headers and libraries of the Python
/// package. Takes no arguments and uses one thread.

namespace {

constexpr int operations = 1000; // per step

torch::Tensor noise(std::int64_t size, float scale) {
    auto t = torch::empty({size});
    for (std::int64_t i = 0; i < size; ++i) t.data_ptr<float>()[i] = scale * compare::noise_at(i);
    return t;
}

struct additions {
    torch::Tensor a, b;
    bool differentiated = false;

    torch::Tensor operator()() const {
        torch::Tensor z = a;
        for (int i = 0; i < operations; ++i) z = z + b;
        return differentiated ? torch::autograd::grad({z.sum()}, {a})[0] : z;
    }
};

void print_digest(const torch::Tensor& y) {
    const torch::Tensor whole = y.contiguous(); // a gradient may be one number, repeated
    const float* const from = whole.data_ptr<float>();
    double sum = 0;
    for (std::int64_t i = 0; i < y.numel(); ++i) sum += std::abs(static_cast<double>(from[i]));
    std::cout << "ok " << sum / static_cast<double>(y.numel());
    for (std::int64_t i = 0; i < 16; ++i) std::cout << ' ' << from[i * (y.numel() - 1) / 15];
    std::cout << std::endl;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double processor_seconds() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

} // namespace

int main() {
    torch::set_num_threads(1);
    std::cout.precision(10);
    additions now;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream in(line);
        std::string verb, argument;
        in >> verb >> argument;
        if (verb == "prepare") {
            now.differentiated = argument.rfind("add/gradient/", 0) == 0;
            const std::int64_t size = std::atoll(argument.substr(argument.rfind('/') + 1).c_str());
            now.a = noise(size, 1).requires_grad_(now.differentiated), now.b = noise(size, 0.01f);
            std::cout << "ok" << std::endl;
        } else if (verb == "check") {
            print_digest(now());
        } else if (verb == "run") {
            const double used = processor_seconds();
            std::ostringstream steps;
            for (long long left = std::atoll(argument.c_str()); left > 0; --left) {
                const double start = seconds();
                now();
                steps << ' ' << (seconds() - start) / operations;
            }
            std::cout << "ok " << (processor_seconds() - used) / operations << steps.str() << std::endl;
        } else {
            std::cout << (verb == "forget" ? "ok" : "error no such request") << std::endl;
        }
    }
}
