#pragma once

#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>

/// Shared by the example programs: errors and exit statuses.

namespace examples {

/// An invalid command line.
struct usage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Runs a program and prints exceptions as one line on stderr. Returns the exit status: 2 for
/// usage_error, 1 for other errors.
template <class F>
int run_program(const std::string& name, const F& f) {
    try {
        f();
        return EXIT_SUCCESS;
    } catch (const usage_error& e) {
        std::cerr << name << ": " << e.what() << '\n';
        return 2;
    } catch (const std::bad_alloc&) {
        std::cerr << name << ": not enough memory\n";
        return EXIT_FAILURE;
    } catch (const std::exception& e) {
        std::cerr << name << ": " << e.what() << '\n';
        return EXIT_FAILURE;
    }
}

} // namespace examples
