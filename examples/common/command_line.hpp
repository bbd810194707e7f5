#pragma once

#include "program.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

namespace examples {

/// A check that numbers are in [low, high], without a note in the help.
template <class T>
CLI::Validator between(T low, T high) {
    return CLI::Range(low, high).description("");
}
/// A check that words are among these, without a note in the help.
inline CLI::Validator one_of(const std::vector<std::string>& words) { return CLI::IsMember(words).description(""); }

/// Reads the command line. Returns false after printing --help. Throws usage_error.
inline bool parse(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        return false;
    } catch (const CLI::ParseError& e) {
        std::string text = e.what();
        std::replace(text.begin(), text.end(), '\n', ' ');
        throw usage_error(text + " (--help lists the options)");
    }
    return true;
}

} // namespace examples
