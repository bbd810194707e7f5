#include <tapegraph/cuda/library/places.cu>
#include <tapegraph/cuda/library/scan.cu>
#include <tapegraph/cuda/library/sort.cu>

/// These as one compilation: each by itself takes nvcc longer to read CUB's headers than to compile
/// its kernels.
