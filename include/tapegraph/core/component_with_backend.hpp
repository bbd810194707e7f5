#pragma once

#include <tapegraph/core/config.hpp>

/// The component (core/component.hpp) in a program with a GPU backend. Code that asks for a
/// backend, or calls code that does, cannot come from the component, which was compiled without
/// one: the program itself compiles the tape, programs and models.

#define TG_DEFINES_FOR_HOST(part) 1
#define TG_COMPILED(part, ...) TG_COMPILED_OF_##part(__VA_ARGS__)

#define TG_COMPILED_OF_convolution(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_cumulative(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_data(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_eager(...)
#define TG_COMPILED_OF_gather(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_graph(...)
#define TG_COMPILED_OF_instructions(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_movement(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_nn(...)
#define TG_COMPILED_OF_onnx(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_operations(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_ordering(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_pooling(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_product(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_random(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_recurrent(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_reduction(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_regions(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_registry(...) extern template __VA_ARGS__;
#define TG_COMPILED_OF_runtime(...) extern template __VA_ARGS__;
