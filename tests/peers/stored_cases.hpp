#pragma once

#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx_import/read_model.hpp>

#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

/// Folders of a model.onnx with inputs and outputs beside it, as ONNX's backend suite has them.

namespace stored_cases {

using tapegraph::io::onnx_import::array;

inline array array_of(const tapegraph::any_tensor& t) {
    array a(t.type(), {t.shape().data(), t.shape().data() + t.rank()});
    if (a.byte_count() > 0) std::memcpy(a.data(), t.read(), a.byte_count());
    return a;
}

/// Calls check(k, got, expected) for each output of each data set. Throws where there is no data set, or an output more or less.
template <class Check>
void compare(const tapegraph::io::onnx_model& model, const std::string& folder, const Check& check) {
    using tapegraph::io::onnx_import::read_tensor;
    const auto exists = [](const std::string& path) { return ::access(path.c_str(), R_OK) == 0; };
    for (int set = 0;; ++set) {
        const std::string data = folder + "/test_data_set_" + std::to_string(set) + "/";
        if (!exists(data)) {
            if (set == 0) throw std::runtime_error("no data beside the model");
            return;
        }
        const auto output = [&](std::size_t k) { return data + "output_" + std::to_string(k) + ".pb"; };
        std::vector<tapegraph::any_tensor> x;
        for (std::size_t k = 0; k < model.inputs().size(); ++k)
            x.push_back(read_tensor(data + "input_" + std::to_string(k) + ".pb").tensor());
        const auto y = model.predict(std::span<const tapegraph::any_tensor>(x));
        if (exists(output(y.size()))) throw std::runtime_error(std::to_string(y.size()) + " outputs, more are stored");
        for (std::size_t k = 0; k < y.size(); ++k) check(k, array_of(y[k]), read_tensor(output(k)));
    }
}

/// Prints the line that run(folder, name) returns for each folder: in a process of its own, which ends after `seconds`.
template <class Run>
void run_each(int count, char** folders, unsigned seconds, const Run& run) {
    for (int k = 1; k < count; ++k) {
        std::string folder = folders[k];
        while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
        const std::string name = folder.substr(folder.rfind('/') + 1);
        std::fflush(stdout);
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(seconds);
            std::string line;
            try {
                line = run(folder, name);
            } catch (const tapegraph::error& e) {
                line = "refused " + name + ": " + e.what();
            } catch (const std::exception& e) {
                line = "wrong " + name + ": " + e.what();
            }
            std::printf("%s\n", line.c_str());
            std::fflush(stdout);
            ::_exit(0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        if (!WIFEXITED(status)) std::printf("wrong %s: ended by signal %d\n", name.c_str(), WTERMSIG(status));
    }
}

} // namespace stored_cases
