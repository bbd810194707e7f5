// expect: vmap: this operation has no batching rule; specialise tg::batching_rule for it
// expect: index_map_adjoint_op
// expect-elsewhere: the check stands in the function that is called, which the compiler names first
// expect-longer: the way there is long
#include <tapegraph/tapegraph.hpp>

namespace tg = tapegraph;

struct index_map_adjoint_op {
    static constexpr std::string_view name = "index_map_adjoint";
    static constexpr tg::operation_kind kind = tg::operation_kind::kernel;
    static constexpr int arity = 1;
    using attributes = tg::no_attributes;
    static constexpr void infer(const attributes&, tg::inference& io) {
        io.type = io.in[0].type;
        io.result = io.in[0].dims;
    }
};

auto folded(const tg::tensor<float>& x) {
    return tg::vmap([](auto v) { return tg::invoke<index_map_adjoint_op>({}, nullptr, std::source_location::current(), v); })(x);
}
