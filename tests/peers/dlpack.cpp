// shared library
// Functions that dlpack.py calls by ctypes.
#include <tapegraph/formats/dlpack.hpp>
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

namespace {
tg::tensor<float> numbers{{1, 2, 3}, {4, 5, 6}};
}

extern "C" {
void* exported() { return tg::to_dlpack(numbers); }
void* exported_mutable() { return tg::to_dlpack_mutable(numbers); }
void* exported_old() { return tg::to_dlpack_mutable<tg::dlpack::managed_tensor>(numbers); }
const void* place() { return numbers.data(); }
float element(int row, int column) { return numbers(row, column); }
/// How many tensors are over the numbers.
int is_shared() { return numbers.shared(); }
void drop(void* m) {
    auto* const managed = static_cast<tg::dlpack::managed_tensor_versioned*>(m);
    managed->deleter(managed);
}
/// Takes over an array; its sum, or -1 where it was not borrowed from `expected`.
double sum_of(void* m, const void* expected) {
    const tg::tensor<double> x(tg::from_dlpack(static_cast<tg::dlpack::managed_tensor_versioned*>(m)));
    if (x.data() != expected) return -1;
    return tg::tensor<double>(tg::sum(x)).item();
}
}
