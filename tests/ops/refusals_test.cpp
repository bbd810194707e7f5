#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace refusals_test {

/// Invalid calls, on graph nodes and on tensors of the same shapes: both refuse them with the same message. In graph
/// mode these are the compiler's; here the same functions trace at run time.

namespace tg = tapegraph;

namespace {

template <class R>
void sealed(const R& result) {
    if constexpr (tg::tensor_like<R>) (void)tg::eval(result);
}

template <class F, class... T>
std::string in_graph_mode(const F& f, const tg::tensor<T>&... x) {
    tg::ir::trace t;
    const std::tuple nodes{tg::graph_node(&t, t.input("x", tg::dtype_of<T>, x.shape()))...}; // braces: in order
    std::apply([&](const auto&... node) { sealed(f(node...)); }, nodes);
    if (t.error.what == nullptr) return "accepted";
    const std::string operation(t.error.operation);
    return operation.empty() ? t.error.what : operation + ": " + t.error.what;
}
template <class F, class... T>
std::string in_eager_mode(const F& f, const tg::tensor<T>&... x) {
    try {
        sealed(f(x...));
    } catch (const tg::error& e) {
        return e.what();
    }
    return "accepted";
}

/// The eager message goes on with the operands, which the compiler shows beside the words.
template <class F, class... T>
void refused(const F& f, const tg::tensor<T>&... x) {
    const std::string graph = in_graph_mode(f, x...), eager = in_eager_mode(f, x...);
    CHECK(graph != "accepted");
    CHECK_MESSAGE(eager.starts_with(graph), "graph: " << graph << "\n  eager: " << eager);
    CHECK(eager.find('\n') == std::string::npos);
}

const tg::tensor<float> scalar = 1.0f, vector = tg::ones<float>({3}), plane = tg::ones<float>({2, 3}),
                        cube = tg::ones<float>({2, 3, 4}), image = tg::ones<float>({1, 5, 6, 2}),
                        signal = tg::ones<float>({1, 5, 2}), nothing = tg::ones<float>({2, 0});
const tg::tensor<std::int32_t> index{0, 1}, three{0, 1, 2}, triple = reshape(three, {1, 3}),
                                                            column = reshape(index, {2, 1});
const tg::tensor<bool> mask{true, false, true};

} // namespace

/// One subcase: `call` is a formula of x and y, the tensors that follow it.
#define BOTH_REFUSE(call, ...)                                                                                         \
    SUBCASE(#call)                                                                                                     \
    refused(                                                                                                           \
        [](const auto& x, [[maybe_unused]] const auto&... rest) {                                                      \
            [[maybe_unused]] const auto y = [&] {                                                                      \
                if constexpr (sizeof...(rest) > 0)                                                                     \
                    return std::get<0>(std::tuple(rest...));                                                           \
                else                                                                                                   \
                    return x;                                                                                          \
            }();                                                                                                       \
            return call;                                                                                               \
        },                                                                                                             \
        __VA_ARGS__)

TEST_CASE("refused in both modes: elementwise and shapes") {
    BOTH_REFUSE(x + y, plane, tg::ones<float>({4}));
    BOTH_REFUSE(where(x > 0, x, y), plane, tg::ones<float>({4}));
    BOTH_REFUSE(sum(x * y), plane, tg::ones<float>({4}));
    BOTH_REFUSE(reshape(x, {4, 2}), plane);
    BOTH_REFUSE(reshape(x, {4, -1}), plane);
    BOTH_REFUSE(reshape(x, {-1, -1}), plane);
    BOTH_REFUSE(reshape(x, {-2, -3}), plane);
    BOTH_REFUSE(reshape(x, {0, -1}), nothing);
    BOTH_REFUSE(expand_dims(x, 4), plane);
    BOTH_REFUSE(expand_dims(x, {0, 0}), plane);
    BOTH_REFUSE(squeeze(x, 0), plane);
    BOTH_REFUSE(squeeze(x, 2), plane);
    BOTH_REFUSE(transpose(x, {0, 0}), plane);
    BOTH_REFUSE(transpose(x, {0, 2}), plane);
    BOTH_REFUSE(transpose(x, {0}), plane);
    BOTH_REFUSE(swap_axes(x, 0, 2), plane);
    BOTH_REFUSE(move_axis(x, 0, 3), plane);
    BOTH_REFUSE(broadcast_to(x, {3, 2}), plane);
    BOTH_REFUSE(broadcast_to(x, {3}), plane);
    BOTH_REFUSE(slice(x, {{0, 1}, {0, 1}, {0, 1}}), plane);
    BOTH_REFUSE(slice(x, {{0, 1, 0}}), plane);
    BOTH_REFUSE(take(x, 2), plane);
    BOTH_REFUSE(take(x, -3), plane);
    BOTH_REFUSE(take(x, 0, 2), plane);
    BOTH_REFUSE(reverse(x, 2), plane);
    BOTH_REFUSE(reverse(x, {0, 0}), plane);
    BOTH_REFUSE(tg::split<2>(x, 1)[0], plane);
    BOTH_REFUSE(tg::split<2>(x, 2)[0], plane);
    BOTH_REFUSE((tg::split(x, {1, 1}, 1)[0]), plane);
    BOTH_REFUSE((tg::split(x, {4, -1}, 1)[0]), plane);
    BOTH_REFUSE(tg::unstack<2>(x, 1)[0], plane);
    BOTH_REFUSE(concat(x, y, 0), plane, cube);
    BOTH_REFUSE(concat(x, y, 0), plane, tg::ones<float>({2, 4}));
    BOTH_REFUSE(concat(x, y, 2), plane, plane);
    BOTH_REFUSE(concat(x, y, 0), scalar, scalar);
    BOTH_REFUSE((tg::stack({tg::eval(x), tg::eval(y)}, 0)), plane, vector);
    BOTH_REFUSE((tg::stack({tg::eval(x), tg::eval(y)}, 3)), plane, plane);
    BOTH_REFUSE((concat(std::vector{tg::eval(x), tg::eval(y)}, 0)), plane, tg::ones<float>({2, 4}));
    BOTH_REFUSE((stack(std::vector{tg::eval(x), tg::eval(y)}, 0)), plane, vector);
    BOTH_REFUSE(pad(x, {{-1, 0}}), plane);
    BOTH_REFUSE(pad(x, {{1, 0}, {1, 0}, {1, 0}}), plane);
    BOTH_REFUSE(pad(x, {{0, 0}, {1, 1}}, {.mode = tg::pad_mode::reflect}), nothing);
    BOTH_REFUSE(tile(x, {-1}), plane);
    BOTH_REFUSE(repeat(x, -1, 0), plane);
    BOTH_REFUSE(repeat(x, 2, 2), plane);
    BOTH_REFUSE(roll(x, 1, 2), plane);
}

TEST_CASE("refused in both modes: indices") {
    BOTH_REFUSE(gather(x, y, 2), plane, index);
    BOTH_REFUSE(gather(x, y, 0, 2), plane, index);
    BOTH_REFUSE(scatter_add(x, y, {4, 4}), plane, three);
    BOTH_REFUSE(gather_scatter_add(x, y, y, {4, 4}), plane, index);
    BOTH_REFUSE(gather_scatter_add(x, y, y, {4}), plane, index);
    BOTH_REFUSE(gather_scatter_add(x, y, reshape(y, {2, 1}), {4, 3}), plane, index);
    BOTH_REFUSE(gather_scatter_add(x, y, y, x, {4, 3}), plane, index);
    BOTH_REFUSE(gather_scatter_add(x, y, y, y, {4, 3}), plane, index);
    BOTH_REFUSE(gather_scatter_add(x, y, y, {2, 3}, 2), plane, index);
    BOTH_REFUSE(gather_nd(x, y), plane, triple);
    BOTH_REFUSE(gather_nd(x, y), plane, tg::tensor<std::int32_t>(std::int32_t(1)));
    BOTH_REFUSE(scatter_nd(x, y, {4}), plane, triple);
    BOTH_REFUSE(take_along(x, y, 1), plane, index);
    BOTH_REFUSE(take_along(x, y, 2), plane, column);
    BOTH_REFUSE(put_along(x, y, {2, 3}, 2), plane, column);
    BOTH_REFUSE((tg::one_hot<float>(x, -1)), index);
    BOTH_REFUSE((tg::one_hot<float>(x, 3, {.axis = 3})), index);
    BOTH_REFUSE(diag(x), scalar);
    BOTH_REFUSE(diag_part(x), vector);
}

TEST_CASE("refused in both modes: reductions and order") {
    BOTH_REFUSE(sum(x, 2), plane);
    BOTH_REFUSE(mean(x, -3), plane);
    BOTH_REFUSE(prod(x, 2), plane);
    BOTH_REFUSE(max(x, 2), plane);
    BOTH_REFUSE(max(x, 1), nothing);
    BOTH_REFUSE(variance(x, 2), plane);
    BOTH_REFUSE(norm(x, 2, 2), plane);
    BOTH_REFUSE(logsumexp(x, 2), plane);
    BOTH_REFUSE(softmax(x, 2), plane);
    BOTH_REFUSE(softmax(x), scalar);
    BOTH_REFUSE(log_softmax(x, 2), plane);
    BOTH_REFUSE(tg::all(x, 1), mask);
    BOTH_REFUSE(count_nonzero(x, 2), plane);
    BOTH_REFUSE(argmax(x, 2), plane);
    BOTH_REFUSE(cumulative_sum(x, 2), plane);
    BOTH_REFUSE(cumulative_sum(x), scalar);
    BOTH_REFUSE(cumulative_product(x, 2), plane);
    BOTH_REFUSE(sort(x, 2), plane);
    BOTH_REFUSE(argsort(x), scalar);
    BOTH_REFUSE(tg::top_k(x, 4).values, plane);
    BOTH_REFUSE(tg::top_k(x, -1).values, plane);
    BOTH_REFUSE(tg::top_k(x, 1, 2).values, plane);
}

TEST_CASE("refused in both modes: products and windows") {
    BOTH_REFUSE(matmul(x, y), plane, plane);
    BOTH_REFUSE(matmul(x, y), scalar, plane);
    BOTH_REFUSE(matmul(x, y), tg::ones<float>({2, 1, 3}), tg::ones<float>({3, 3, 1}));
    BOTH_REFUSE(dot(x, y), plane, plane);
    BOTH_REFUSE(inner(x, y), plane, tg::ones<float>({2}));
    BOTH_REFUSE(vdot(x, y), plane, vector);
    BOTH_REFUSE(tensordot(x, y, 3), plane, plane);
    BOTH_REFUSE(tensordot(x, y, 1), plane, plane);
    BOTH_REFUSE((tensordot(x, y, {{0, 2}, {1, 1}})), plane, plane);
    BOTH_REFUSE(tg::einsum("ij,jk->ik", x, y), plane, plane);
    BOTH_REFUSE(tg::einsum("ij->ik", x), plane);
    BOTH_REFUSE(tg::einsum("ij", x), cube);
    BOTH_REFUSE(tg::einsum("i1", x), plane);
    BOTH_REFUSE(tg::einsum("ii", x), plane);
    BOTH_REFUSE(conv2d(x, y), image, tg::ones<float>({2, 2, 3, 1}));
    BOTH_REFUSE(conv2d(x, y), image, tg::ones<float>({7, 1, 2, 1}));
    BOTH_REFUSE(conv2d(x, y), signal, tg::ones<float>({2, 2, 2, 1}));
    BOTH_REFUSE(conv2d(x, y, {.stride = {0, 1}}), image, tg::ones<float>({2, 2, 2, 1}));
    BOTH_REFUSE(conv2d(x, y, {.padding = tg::padding::causal()}), image, tg::ones<float>({2, 2, 2, 1}));
    BOTH_REFUSE(conv2d(x, y, {.padding = tg::padding::amounts(-1, 0, 0, 0)}), image, tg::ones<float>({2, 2, 2, 1}));
    BOTH_REFUSE(conv2d(x, y, {.groups = 3}), image, tg::ones<float>({2, 2, 2, 1}));
    BOTH_REFUSE(conv1d(x, y), signal, tg::ones<float>({6, 2, 1}));
    BOTH_REFUSE(conv2d_transpose(x, y), image, tg::ones<float>({2, 2, 1, 3}));
    BOTH_REFUSE(conv2d_transpose(x, y, {.output_padding = {1, 1}}), image, tg::ones<float>({2, 2, 1, 2}));
    BOTH_REFUSE(depthwise_conv2d(x, y), image, tg::ones<float>({2, 2, 3, 1}));
    BOTH_REFUSE(max_pooling2d(x), tg::ones<float>({1, 1, 4, 1}));
    BOTH_REFUSE(max_pooling2d(x), plane);
    BOTH_REFUSE(max_pooling2d(x, {.pool_size = {2, 0}}), image);
    BOTH_REFUSE(average_pooling2d(x, {.padding = tg::padding::amounts(2, 0, 0, 0)}), image);
    BOTH_REFUSE(max_pooling1d(x), image);
    BOTH_REFUSE(global_max_pooling2d(x), plane);
}

TEST_CASE("refused in both modes: random numbers, constants, layers' functions") {
    BOTH_REFUSE(tg::random::uniform_like(x, {.low = 1, .high = 0}), plane);
    BOTH_REFUSE(tg::random::normal_like(x, {.deviation = -1}), plane);
    BOTH_REFUSE(tg::random::bernoulli_like(x, 2), plane);
    BOTH_REFUSE(tg::random::exponential_like(x, 0), plane);
    BOTH_REFUSE((tg::random::integers<std::int32_t>(x, {2}, 3, 3)), plane);
    BOTH_REFUSE(tg::random::permutation(x, -1), plane);
    BOTH_REFUSE(tg::random::shuffle(x), scalar);
    BOTH_REFUSE(tg::random::categorical(x), scalar);
    BOTH_REFUSE(tg::dropout(x, 1.0), plane);
    BOTH_REFUSE(tg::dropout(x, -0.5), plane);
    BOTH_REFUSE((tg::fill<float>(x, {2, -1}, 0)), plane);
    BOTH_REFUSE((tg::arange<float>(x, -1)), plane);
    BOTH_REFUSE((tg::linspace<float>(x, 0, 1, -1)), plane);
    BOTH_REFUSE((tg::eye<float>(x, -1)), plane);
    BOTH_REFUSE((tg::sequence_mask(x, -1)), index);
    BOTH_REFUSE(tg::gradient([](auto v) { return v; })(tg::eval(reshape(x, {4, 2}))), plane);
    BOTH_REFUSE(tg::jvp([](auto v) { return v * v; })(x, y).tangent, plane, vector);
    BOTH_REFUSE(tg::vjp([](auto v) { return sum(v, 0); })(y, x).gradient, plane, plane);
    BOTH_REFUSE(tg::hvp([](auto v) { return sum(v * v); })(x, y).product, plane, vector);
    BOTH_REFUSE(tg::vmap([](auto a, auto b) { return a + b; })(x, y), plane, vector);
    BOTH_REFUSE(tg::vmap([](auto a) { return a + 1; })(x), scalar);
    BOTH_REFUSE(tg::jacobian([](auto a) { return a; })(x), tg::ones<float>({1, 1, 1, 1, 1}));
}

} // namespace refusals_test
