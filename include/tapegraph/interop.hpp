#pragma once

/// Memory of other libraries as tensors, and tensors as theirs, without copies: in C++ by the functions that their types have, between
/// languages by DLPack.

#include <tapegraph/eager/borrow.hpp>

#include <tapegraph/io/dlpack.hpp>
