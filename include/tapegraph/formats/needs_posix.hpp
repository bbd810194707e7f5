#pragma once

/// Headers that need locks, mapped files or patterns of names include this first: on Windows it is their only error, below
/// the name of the header that the program includes.

#if defined(_WIN32)
#error "this header of TapeGraph needs files of POSIX (locks, mappings, patterns), which Windows lacks: include <tapegraph/tapegraph.hpp>"
#include <tapegraph/core/see_the_error_above>
#endif
