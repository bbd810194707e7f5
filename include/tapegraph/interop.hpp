#pragma once

/// Shares memory with other libraries without copies, in both directions: in C++ through the
/// functions that their types have, between languages through DLPack.

#include <tapegraph/eager/borrow.hpp>

#include <tapegraph/formats/dlpack.hpp>
