#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace test {

/// Returns what `f` writes to stderr.
template <class F>
std::string captured_stderr(const F& f) {
    std::FILE* const file = std::tmpfile();
    if (file == nullptr) throw std::runtime_error("captured_stderr: no temporary file");
    std::fflush(stderr);
    const int before = ::dup(2);
    ::dup2(::fileno(file), 2);
    const auto restore = [&] {
        std::fflush(stderr);
        ::dup2(before, 2);
        ::close(before);
    };
    try {
        f();
    } catch (...) {
        restore();
        std::fclose(file);
        throw;
    }
    restore();
    std::string text;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) text.push_back(static_cast<char>(c));
    std::fclose(file);
    return text;
}

} // namespace test
