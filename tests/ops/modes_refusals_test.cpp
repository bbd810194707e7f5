#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace modes_refusals_test {

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
#define TG_REFUSED(call, ...)                                                                                          \
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
    TG_REFUSED(x + y, plane, tg::ones<float>({4}));
    TG_REFUSED(where(x > 0, x, y), plane, tg::ones<float>({4}));
    TG_REFUSED(sum(x * y), plane, tg::ones<float>({4}));
    TG_REFUSED(reshape(x, {4, 2}), plane);
    TG_REFUSED(reshape(x, {4, -1}), plane);
    TG_REFUSED(reshape(x, {-1, -1}), plane);
    TG_REFUSED(reshape(x, {-2, -3}), plane);
    TG_REFUSED(reshape(x, {0, -1}), nothing);
    TG_REFUSED(expand_dims(x, 4), plane);
    TG_REFUSED(expand_dims(x, {0, 0}), plane);
    TG_REFUSED(squeeze(x, 0), plane);
    TG_REFUSED(squeeze(x, 2), plane);
    TG_REFUSED(transpose(x, {0, 0}), plane);
    TG_REFUSED(transpose(x, {0, 2}), plane);
    TG_REFUSED(transpose(x, {0}), plane);
    TG_REFUSED(swap_axes(x, 0, 2), plane);
    TG_REFUSED(move_axis(x, 0, 3), plane);
    TG_REFUSED(broadcast_to(x, {3, 2}), plane);
    TG_REFUSED(broadcast_to(x, {3}), plane);
    TG_REFUSED(slice(x, {{0, 1}, {0, 1}, {0, 1}}), plane);
    TG_REFUSED(slice(x, {{0, 1, 0}}), plane);
    TG_REFUSED(take(x, 2), plane);
    TG_REFUSED(take(x, -3), plane);
    TG_REFUSED(take(x, 0, 2), plane);
    TG_REFUSED(reverse(x, 2), plane);
    TG_REFUSED(reverse(x, {0, 0}), plane);
    TG_REFUSED(tg::split<2>(x, 1)[0], plane);
    TG_REFUSED(tg::split<2>(x, 2)[0], plane);
    TG_REFUSED((tg::split(x, {1, 1}, 1)[0]), plane);
    TG_REFUSED((tg::split(x, {4, -1}, 1)[0]), plane);
    TG_REFUSED(tg::unstack<2>(x, 1)[0], plane);
    TG_REFUSED(concat(x, y, 0), plane, cube);
    TG_REFUSED(concat(x, y, 0), plane, tg::ones<float>({2, 4}));
    TG_REFUSED(concat(x, y, 2), plane, plane);
    TG_REFUSED(concat(x, y, 0), scalar, scalar);
    TG_REFUSED((tg::stack({tg::eval(x), tg::eval(y)}, 0)), plane, vector);
    TG_REFUSED((tg::stack({tg::eval(x), tg::eval(y)}, 3)), plane, plane);
    TG_REFUSED((concat(std::vector{tg::eval(x), tg::eval(y)}, 0)), plane, tg::ones<float>({2, 4}));
    TG_REFUSED((stack(std::vector{tg::eval(x), tg::eval(y)}, 0)), plane, vector);
    TG_REFUSED(pad(x, {{-1, 0}}), plane);
    TG_REFUSED(pad(x, {{1, 0}, {1, 0}, {1, 0}}), plane);
    TG_REFUSED(pad(x, {{0, 0}, {1, 1}}, {.mode = tg::pad_mode::reflect}), nothing);
    TG_REFUSED(tile(x, {-1}), plane);
    TG_REFUSED(repeat(x, -1, 0), plane);
    TG_REFUSED(repeat(x, 2, 2), plane);
    TG_REFUSED(roll(x, 1, 2), plane);
}

TEST_CASE("refused in both modes: indices") {
    TG_REFUSED(gather(x, y, 2), plane, index);
    TG_REFUSED(gather(x, y, 0, 2), plane, index);
    TG_REFUSED(scatter_add(x, y, {4, 4}), plane, three);
    TG_REFUSED(gather_nd(x, y), plane, triple);
    TG_REFUSED(gather_nd(x, y), plane, tg::tensor<std::int32_t>(std::int32_t(1)));
    TG_REFUSED(scatter_nd(x, y, {4}), plane, triple);
    TG_REFUSED(take_along(x, y, 1), plane, index);
    TG_REFUSED(take_along(x, y, 2), plane, column);
    TG_REFUSED(put_along(x, y, {2, 3}, 2), plane, column);
    TG_REFUSED((tg::one_hot<float>(x, -1)), index);
    TG_REFUSED((tg::one_hot<float>(x, 3, {.axis = 3})), index);
    TG_REFUSED(diag(x), scalar);
    TG_REFUSED(diag_part(x), vector);
}

TEST_CASE("refused in both modes: reductions and order") {
    TG_REFUSED(sum(x, 2), plane);
    TG_REFUSED(mean(x, -3), plane);
    TG_REFUSED(prod(x, 2), plane);
    TG_REFUSED(max(x, 2), plane);
    TG_REFUSED(max(x, 1), nothing);
    TG_REFUSED(variance(x, 2), plane);
    TG_REFUSED(norm(x, 2, 2), plane);
    TG_REFUSED(logsumexp(x, 2), plane);
    TG_REFUSED(softmax(x, 2), plane);
    TG_REFUSED(softmax(x), scalar);
    TG_REFUSED(log_softmax(x, 2), plane);
    TG_REFUSED(tg::all(x, 1), mask);
    TG_REFUSED(count_nonzero(x, 2), plane);
    TG_REFUSED(argmax(x, 2), plane);
    TG_REFUSED(cumulative_sum(x, 2), plane);
    TG_REFUSED(cumulative_sum(x), scalar);
    TG_REFUSED(cumulative_product(x, 2), plane);
    TG_REFUSED(sort(x, 2), plane);
    TG_REFUSED(argsort(x), scalar);
    TG_REFUSED(tg::top_k(x, 4).values, plane);
    TG_REFUSED(tg::top_k(x, -1).values, plane);
    TG_REFUSED(tg::top_k(x, 1, 2).values, plane);
}

TEST_CASE("refused in both modes: products and windows") {
    TG_REFUSED(matmul(x, y), plane, plane);
    TG_REFUSED(matmul(x, y), scalar, plane);
    TG_REFUSED(matmul(x, y), tg::ones<float>({2, 1, 3}), tg::ones<float>({3, 3, 1}));
    TG_REFUSED(dot(x, y), plane, plane);
    TG_REFUSED(inner(x, y), plane, tg::ones<float>({2}));
    TG_REFUSED(vdot(x, y), plane, vector);
    TG_REFUSED(tensordot(x, y, 3), plane, plane);
    TG_REFUSED(tensordot(x, y, 1), plane, plane);
    TG_REFUSED((tensordot(x, y, {{0, 2}, {1, 1}})), plane, plane);
    TG_REFUSED(tg::einsum("ij,jk->ik", x, y), plane, plane);
    TG_REFUSED(tg::einsum("ij->ik", x), plane);
    TG_REFUSED(tg::einsum("ij", x), cube);
    TG_REFUSED(tg::einsum("i1", x), plane);
    TG_REFUSED(tg::einsum("ii", x), plane);
    TG_REFUSED(conv2d(x, y), image, tg::ones<float>({2, 2, 3, 1}));
    TG_REFUSED(conv2d(x, y), image, tg::ones<float>({7, 1, 2, 1}));
    TG_REFUSED(conv2d(x, y), signal, tg::ones<float>({2, 2, 2, 1}));
    TG_REFUSED(conv2d(x, y, {.stride = {0, 1}}), image, tg::ones<float>({2, 2, 2, 1}));
    TG_REFUSED(conv2d(x, y, {.padding = tg::padding::causal()}), image, tg::ones<float>({2, 2, 2, 1}));
    TG_REFUSED(conv2d(x, y, {.padding = tg::padding::amounts(-1, 0, 0, 0)}), image, tg::ones<float>({2, 2, 2, 1}));
    TG_REFUSED(conv2d(x, y, {.groups = 3}), image, tg::ones<float>({2, 2, 2, 1}));
    TG_REFUSED(conv1d(x, y), signal, tg::ones<float>({6, 2, 1}));
    TG_REFUSED(conv2d_transpose(x, y), image, tg::ones<float>({2, 2, 1, 3}));
    TG_REFUSED(conv2d_transpose(x, y, {.output_padding = {1, 1}}), image, tg::ones<float>({2, 2, 1, 2}));
    TG_REFUSED(depthwise_conv2d(x, y), image, tg::ones<float>({2, 2, 3, 1}));
    TG_REFUSED(max_pooling2d(x), tg::ones<float>({1, 1, 4, 1}));
    TG_REFUSED(max_pooling2d(x), plane);
    TG_REFUSED(max_pooling2d(x, {.pool_size = {2, 0}}), image);
    TG_REFUSED(average_pooling2d(x, {.padding = tg::padding::amounts(2, 0, 0, 0)}), image);
    TG_REFUSED(max_pooling1d(x), image);
    TG_REFUSED(global_max_pooling2d(x), plane);
}

TEST_CASE("refused in both modes: random numbers, constants, layers' functions") {
    TG_REFUSED(tg::random::uniform_like(x, {.low = 1, .high = 0}), plane);
    TG_REFUSED(tg::random::normal_like(x, {.deviation = -1}), plane);
    TG_REFUSED(tg::random::bernoulli_like(x, 2), plane);
    TG_REFUSED(tg::random::exponential_like(x, 0), plane);
    TG_REFUSED((tg::random::integers<std::int32_t>(x, {2}, 3, 3)), plane);
    TG_REFUSED(tg::random::permutation(x, -1), plane);
    TG_REFUSED(tg::random::shuffle(x), scalar);
    TG_REFUSED(tg::random::categorical(x), scalar);
    TG_REFUSED(tg::dropout(x, 1.0), plane);
    TG_REFUSED(tg::dropout(x, -0.5), plane);
    TG_REFUSED((tg::fill<float>(x, {2, -1}, 0)), plane);
    TG_REFUSED((tg::arange<float>(x, -1)), plane);
    TG_REFUSED((tg::linspace<float>(x, 0, 1, -1)), plane);
    TG_REFUSED((tg::eye<float>(x, -1)), plane);
    TG_REFUSED((tg::sequence_mask(x, -1)), index);
    TG_REFUSED(tg::gradient([](auto v) { return v; })(tg::eval(reshape(x, {4, 2}))), plane);
    TG_REFUSED(tg::jvp([](auto v) { return v * v; })(x, y).tangent, plane, vector);
    TG_REFUSED(tg::vjp([](auto v) { return sum(v, 0); })(y, x).gradient, plane, plane);
    TG_REFUSED(tg::hvp([](auto v) { return sum(v * v); })(x, y).product, plane, vector);
    TG_REFUSED(tg::vmap([](auto a, auto b) { return a + b; })(x, y), plane, vector);
    TG_REFUSED(tg::vmap([](auto a) { return a + 1; })(x), scalar);
    TG_REFUSED(tg::jacobian([](auto a) { return a; })(x), tg::ones<float>({1, 1, 1, 1, 1}));
}

} // namespace modes_refusals_test
