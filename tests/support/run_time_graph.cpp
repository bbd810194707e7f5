#include <support/run_time_graph.hpp>

#include <tapegraph/graph/traced_program.hpp>

#include <cstring>

namespace tapegraph::testing {

namespace {

// Builders are types, so this one finds the function to call in a variable.
thread_local const std::function<void(ir::trace&)>* current_build = nullptr;
struct forwarding_builder {
    static void build(ir::trace& t) { (*current_build)(t); }
};

} // namespace

struct run_time_graph::parts {
    std::unique_ptr<ir::traced_program> made;
    std::unique_ptr<ir::program> runs;
};

run_time_graph::run_time_graph(const std::function<void(ir::trace&)>& build) : parts_(std::make_unique<parts>()) {
    current_build = &build;
    parts_->made = ir::traced_program::of<forwarding_builder>();
    parts_->runs = std::make_unique<ir::program>(parts_->made->view());
}
run_time_graph::~run_time_graph() = default;
run_time_graph::run_time_graph(run_time_graph&&) noexcept = default;

std::vector<any_tensor> run_time_graph::run(const std::vector<any_tensor>& inputs, const random_state& random) {
    ir::program& p = *parts_->runs;
    for (std::size_t i = 0; i < inputs.size(); ++i) p.set_input(static_cast<int>(i), inputs[i].view());
    p.run(random);
    std::vector<any_tensor> results;
    for (int i = 0; i < p.view().outputs.size(); ++i) {
        const buffer_view& v = p.output(i);
        any_tensor copy(v.type, shape(v.rank, v.extents));
        if (v.bytes() > 0) std::memcpy(copy.write(), v.data, v.bytes());
        results.push_back(std::move(copy));
    }
    return results;
}

const ir::program_view& run_time_graph::view() const { return parts_->made->view(); }
ir::program& run_time_graph::program() { return *parts_->runs; }

} // namespace tapegraph::testing
