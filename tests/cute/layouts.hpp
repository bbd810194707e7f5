#pragma once

#include <vector>

/// What CuTe's headers say of tensor-core instructions, as numbers: layouts.cpp alone includes them.

namespace cute_layouts {

/// Which element a lane's value is, lane by lane: of a, m + 16 k; of b, n + 8 k; of c, m + 16 n.
struct multiplication {
    int depth;
    std::vector<int> a, b, c;
};
multiplication of_tf32();
multiplication of_bfloat16();
multiplication of_half();

/// Of ldmatrix, which 16 bits a lane's next 16 bits are: 8 s + e, the e-th of the row that lane s points to.
std::vector<int> of_loading(int matrices, bool transposed);

} // namespace cute_layouts
