#include <damaged/target.hpp>

#include <tapegraph/cuda/plan_memory.hpp>

std::vector<std::string> sound_files() {
    return {"tapegraph plans 1\n", "tapegraph plans 1\na device\tconvolution forward f32 fp32 groups 1\tproduct\t1.25\n"
                                   "a device\tconvolution forward f32 tf32 groups 1\ttensor_cores 64x64x16 in 3\t10\n"};
}

bool read_damaged(const std::string& bytes) {
    tapegraph::cuda::plan_memory memory;
    try {
        memory.add(bytes, "plans");
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 64; // a plan of a letter in each field is a line of eight bytes
