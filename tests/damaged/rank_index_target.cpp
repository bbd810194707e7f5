#include <damaged/folder.hpp>

#include <tapegraph/cluster/rank_checkpoints.hpp>

#include <vector>

std::vector<std::string> sound_files() {
    using namespace tapegraph;
    const std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const detail::rank_plan plan = detail::plan_ranks(
        {{"kernel", dtype::f32, {3, 4}, values.data()}, {"bias", dtype::f32, {2}, values.data()}}, 2, 0, "4711");
    for (std::size_t r = 0; r < 2; ++r)
        io::write_safetensors_arrays(folder().path() / plan.files[r], plan.entries[r],
                                     {{"rank", std::to_string(r)}, {"saved", "4711"}});
    return {plan.index};
}

bool read_damaged(const std::string& bytes) {
    try {
        static_cast<void>(
            tapegraph::io::safetensors_reader(folder().write("model.safetensors.index.json", bytes)).tensors());
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 64; // names, several times
