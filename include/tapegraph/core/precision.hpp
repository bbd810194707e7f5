#pragma once

/// How products of float matrices are computed where the hardware offers a choice: on GPUs, in matrix products and
/// convolutions. The CPU's are float, and double is always double.

namespace tapegraph {

enum class precision {
    fp32,  ///< operands as they are (the default)
    tf32,  ///< operands rounded to 10 bits behind the point: several times faster, relative error about 3e-4
    tf32x3 ///< operands split in two, three products: nearly float's accuracy
};

/// What is used where a call names nothing; process-wide. Set it before models are compiled: captured graphs keep theirs.
inline precision& default_precision() {
    static precision p = precision::fp32;
    return p;
}

} // namespace tapegraph
