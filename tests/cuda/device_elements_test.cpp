#include <cuda/whole_programs.hpp>

#include <support/messages.hpp>

#include <tapegraph/cuda/device_elements.hpp>
#include <tapegraph/cuda/kernel_memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace device_elements_test {

namespace tg = tapegraph;
using support::message_of;
using tg::cuda::context;

/// Device memory of other libraries as tensors, and tensors' memory for them: the basis of
/// cuda/thrust.hpp, on any device.

namespace {

const tg::device gpu = tg::device::cuda(0);

/// Device memory as another library would own it; records when it is released.
template <class T>
struct foreign {
    explicit foreign(const std::vector<T>& values, bool& gone) : gone_(&gone), count(values.size()) {
        first = static_cast<T*>(context::of(0).memory().allocate(count * sizeof(T), "another library's"));
        tg::cuda::driver::copy(first, values.data(), count * sizeof(T), context::of(0).stream());
    }
    foreign(foreign&& other) noexcept
        : gone_(std::exchange(other.gone_, nullptr)), first(other.first), count(other.count) {}
    ~foreign() {
        if (gone_ == nullptr) return;
        *gone_ = true;
        context::of(0).memory().release(first);
    }
    std::vector<T> values() const {
        std::vector<T> got(count);
        tg::cuda::driver::copy(got.data(), first, count * sizeof(T), context::of(0).stream());
        tg::cuda::driver::wait(context::of(0).stream());
        return got;
    }

private:
    bool* gone_;

public:
    T* first;
    std::size_t count;
};

} // namespace

TEST_CASE("device elements: a tensor over device memory computes with it where it is, and keeps its owner") {
    bool gone = false;
    {
        foreign<float> made({1, 2, 3, 4, 5, 6}, gone);
        const float* const first = made.first;
        const std::int64_t before = context::of(0).memory().statistics().buffers;
        tg::tensor<float> x = tg::cuda::borrow_on(gpu, made.first, {2, 3}, std::move(made), false);
        CHECK(tg::cuda::elements_on(x, gpu).data() == first);
        CHECK(tg::cuda::elements_on(x, gpu).size() == 6);
        CHECK(context::of(0).memory().statistics().buffers == before); // no copy was made
        {
            const tg::device_scope on(gpu);
            const tg::tensor<float> y = x * 2 + 1;
            CHECK(y.to_vector() == std::vector<float>{3, 5, 7, 9, 11, 13});
            CHECK(sum(x).item() == 21);
        }
        const tg::tensor<float> kept = x;
        x = {};
        CHECK_FALSE(gone);
        CHECK(kept.to_vector() == std::vector<float>{1, 2, 3, 4, 5, 6}); // on the CPU, too
        CHECK_FALSE(gone);
    }
    CHECK(gone);
}

TEST_CASE("device elements: what is given to the device is done before the owner goes") {
    const on_device::late_device late;
    bool gone = false;
    tg::tensor<double> y;
    {
        const tg::device_scope on(gpu);
        foreign<double> made(std::vector<double>(1000, 1.5), gone);
        const tg::tensor<double> x = tg::cuda::borrow_on(gpu, made.first, {1000}, std::move(made));
        y = x * x;
    }
    CHECK(gone);
    const auto values = y.to_vector();
    CHECK(std::all_of(values.begin(), values.end(), [](double v) { return v == 2.25; }));
}

TEST_CASE("device elements: who may write where") {
    bool gone = false;
    foreign<float> made({1, 2, 3}, gone);
    {
        tg::tensor<float> constant = tg::cuda::borrow_on(gpu, static_cast<const float*>(made.first), {3});
        constant.set(9, 0); // a copy
        CHECK(constant.to_vector() == std::vector<float>{9, 2, 3});
        CHECK(made.values() == std::vector<float>{1, 2, 3});
    }
    {
        tg::tensor<float> own = tg::cuda::borrow_on(gpu, made.first, {3});
        const auto to = tg::cuda::mutable_elements_on(own, gpu);
        CHECK(to.data() == made.first);
        tg::cuda::driver::fill(to.data(), 0, sizeof(float), tg::cuda::stream_of(gpu));
        CHECK(own.to_vector() == std::vector<float>{0, 2, 3});
        const tg::tensor<float> before = own;
        const auto copied = tg::cuda::mutable_elements_on(own, gpu); // `before` keeps the old elements
        CHECK(copied.data() != made.first);
        own.set(7, 1);
        CHECK(before.to_vector() == std::vector<float>{0, 2, 3});
        CHECK(own.to_vector() == std::vector<float>{0, 7, 3});
    }
    {
        // The CPU's writes are copied to the device before it reads again.
        tg::tensor<float> own = tg::cuda::borrow_on(gpu, made.first, {3});
        own.set(5, 2);
        CHECK(tg::cuda::elements_on(own, gpu).data() == made.first);
        CHECK(made.values() == std::vector<float>{0, 2, 5});
    }
    CHECK_FALSE(gone); // only ours remains
}

TEST_CASE("device elements: empty, of one element, of other types") {
    const tg::tensor<float> none = tg::cuda::borrow_on(gpu, static_cast<float*>(nullptr), {0, 3});
    CHECK(none.shape() == tg::shape{0, 3});
    CHECK(none.to_vector().empty());
    CHECK(tg::cuda::elements_on(tg::tensor<int>(), gpu).empty());

    bool gone = false;
    foreign<std::int64_t> one({std::int64_t{1} << 40}, gone);
    const tg::tensor<std::int64_t> scalar = tg::cuda::borrow_on(gpu, one.first, tg::shape{}, std::move(one));
    CHECK(scalar.item() == std::int64_t{1} << 40);
    tg::tensor<float> on_host{1, 2};
    const auto elements = tg::cuda::elements_on(on_host, gpu); // copied over
    foreign<float> same({0, 0}, gone);
    tg::cuda::driver::copy(same.first, elements.data(), 2 * sizeof(float), tg::cuda::stream_of(gpu));
    CHECK(same.values() == std::vector<float>{1, 2});
}

TEST_CASE("device elements: gradients through memory of another library") {
    bool gone = false;
    foreign<float> made({1, 2, 3}, gone);
    const tg::device_scope on(gpu);
    tg::tensor<float> w = tg::cuda::borrow_on(gpu, made.first, {3}, std::move(made));
    tg::gradient_tape tape;
    tape.watch(w);
    const tg::tensor<float> loss = sum(w * w);
    CHECK(message_of<std::exception>([&] {
              tg::tensor<float> followed = w;
              tg::cuda::mutable_elements_on(followed, gpu);
          }).find("a gradient_tape follows this tensor") != std::string::npos);
    CHECK(tape.gradient(loss, w).to_vector() == std::vector<float>{2, 4, 6});
}

TEST_CASE("device elements: errors name what was wrong") {
    tg::tensor<float> x{1, 2};
    CHECK(message_of<std::exception>([&] { tg::cuda::elements_on(x); }) ==
          "elements_on: this thread computes on the CPU; name a GPU, or choose one with tg::device_scope");
    CHECK(message_of<std::exception>([&] {
              tg::cuda::mutable_elements_on(x, tg::device::cpu());
          }).starts_with("mutable_elements_on: "));
    CHECK(message_of<std::exception>([&] { tg::cuda::stream_of(); }).starts_with("stream_of: "));
    CHECK(message_of<std::exception>([&] {
              tg::cuda::borrow_on(tg::device::cpu(), static_cast<float*>(nullptr), {0});
          }).starts_with("borrow_on: this thread computes on the CPU"));
    bool gone = false;
    const foreign<float> made({1, 2}, gone);
    CHECK(message_of<std::exception>([&] { tg::cuda::borrow_on(gpu, made.first, {-1}); }) ==
          "borrow_on: negative extent in shape [-1]");
    const auto odd = reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(made.first) + 2);
    CHECK(message_of<std::exception>([&] { tg::cuda::borrow_on(gpu, odd, {1}); }) ==
          "borrow_on: f32 at an address that is not a multiple of 4");
}

TEST_CASE("device elements: temporary memory of other libraries comes from the pool") {
    auto& scratch = tg::cuda::scratch_memory::of(0);
    CHECK(&scratch == &tg::cuda::scratch_memory::of(0));
    const auto before = context::of(0).memory().statistics();
    char* const at = scratch.allocate(1000);
    CHECK(context::of(0).memory().statistics().in_use == before.in_use + 1024);
    scratch.deallocate(at, 1000);
    char* const ready = scratch.allocate_ready(10);
    scratch.deallocate(ready, 10);
    CHECK(context::of(0).memory().statistics().in_use == before.in_use);
}

TEST_CASE("device elements: another thread's trim() leaves a step that is recorded alone") {
    tg::runtime::device_runtime& d = tg::runtime::runtime_of(gpu);
    void* const at = d.allocate(1000, "test");
    const tg::runtime::device_turn turn(&d);
    d.begin_capture();
    tg::cuda::driver::fill(at, 3, 1000, tg::cuda::stream_of(gpu));
    std::thread([] { context::of(0).memory().trim(); }).join();
    void* const graph = d.end_capture();
    REQUIRE(graph != nullptr);
    d.replay(graph);
    unsigned char last = 0;
    d.download(&last, static_cast<unsigned char*>(at) + 999, 1);
    CHECK(last == 3);
    d.drop(graph);
    context::of(0).memory().trim();
    d.release(at);
}

TEST_CASE("device elements: what a device refuses is no plan, other mistakes stay mistakes") {
    CHECK(tg::cuda::detail::is_granted([] {}));
    CHECK_FALSE(tg::cuda::detail::is_granted([] { throw tg::device_error("clusters of 16 blocks"); }));
    CHECK_THROWS_AS(tg::cuda::detail::is_granted([] { throw tg::argument_error("another"); }), tg::argument_error);
}

} // namespace device_elements_test
