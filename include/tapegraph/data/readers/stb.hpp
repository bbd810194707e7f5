#pragma once

// stb_image (PNG and JPEG only) as functions of this source file alone. They have internal linkage,
// so several sources may include this, and a program may use its own copy of stb_image in another
// source.
//
// Functions that refer to these must themselves be `static` or belong to one source: an inline
// function that named them would mean something else in every source, which the one-definition rule
// forbids. So the readers take the decoder as a function pointer and only the outermost, `static`
// function names it.

// Included before the namespace opens, because stb_image would include them inside it.
#include <tapegraph/core/config.hpp>

#include <cassert>
#include <climits>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#pragma push_macro("STBI_INCLUDE_STB_IMAGE_H")
#pragma push_macro("STB_IMAGE_IMPLEMENTATION")
#pragma push_macro("STB_IMAGE_STATIC")
#pragma push_macro("STBIDEF")
#pragma push_macro("STBI_NO_STDIO")
#pragma push_macro("STBI_ONLY_PNG")
#pragma push_macro("STBI_ONLY_JPEG")
#undef STBI_INCLUDE_STB_IMAGE_H
#undef STB_IMAGE_IMPLEMENTATION
#undef STB_IMAGE_STATIC
#undef STBIDEF
#undef STBI_NO_STDIO
#undef STBI_ONLY_PNG
#undef STBI_ONLY_JPEG
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
namespace tapegraph::data::stb {
#if __has_include(<stb/stb_image.h>)
#include <stb/stb_image.h>
#else
#include <stb_image.h>
#endif
} // namespace tapegraph::data::stb
#pragma GCC diagnostic pop

#pragma pop_macro("STBI_ONLY_JPEG")
#pragma pop_macro("STBI_ONLY_PNG")
#pragma pop_macro("STBI_NO_STDIO")
#pragma pop_macro("STBIDEF")
#pragma pop_macro("STB_IMAGE_STATIC")
#pragma pop_macro("STB_IMAGE_IMPLEMENTATION")
#pragma pop_macro("STBI_INCLUDE_STB_IMAGE_H")
