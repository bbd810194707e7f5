#include <support/messages.hpp>

#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace gradient_tape_test {

namespace tg = tapegraph;
using tg::tensor;
using vector = std::vector<double>;
using support::message_of;

TEST_CASE("tape: gradient of a scalar and of a tensor (its sum)") {
    tensor<double> x{1, 2, 3};
    {
        tg::gradient_tape tape;
        tape.watch(x);
        const tensor<double> y = sum(x * x);
        CHECK(tape.gradient(y, x).to_vector() == vector{2, 4, 6});
    }
    tg::gradient_tape tape;
    tape.watch(x);
    const auto dx = tape.gradient(x * x, x); // a formula is sealed first
    CHECK(dx.to_vector() == vector{2, 4, 6});
    CHECK(dx.shape() == x.shape());
}

TEST_CASE("tape: a tensor used several times receives the sum") {
    tensor<double> x{1, 2};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> a = x * 3, b = x * x, c = a * b + x; // 3 x^3 + x
    CHECK(tape.gradient(c, x).to_vector() == vector{10, 37});
}

TEST_CASE("tape: intermediate values, the value itself, sources requested twice") {
    tensor<double> x{1, 2};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> h = x * x, y = h * 3;
    const auto [dx, dh, dy, again] = tape.gradient(y, x, h, y, x);
    CHECK(dx.to_vector() == vector{6, 12});
    CHECK(dh.to_vector() == vector{3, 3});
    CHECK(dy.to_vector() == vector{1, 1});
    CHECK(again.to_vector() == dx.to_vector());
}

TEST_CASE("tape: what a value does not depend on has gradient zero") {
    tensor<double> x{1, 2}, z({{1, 2, 3}});
    tg::gradient_tape tape;
    tape.watch(x, z);
    const tensor<double> y = x * 2;
    const auto dz = tape.gradient(y, z);
    CHECK(dz.shape() == tg::shape{1, 3});
    CHECK(dz.to_vector() == vector{0, 0, 0});
}

TEST_CASE("tape: a value that nothing watched leads to has gradient zero") {
    tensor<double> x{1, 2};
    const tensor<double> other{3, 4};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = other * 2;
    CHECK(tape.gradient(y, x).to_vector() == vector{0, 0});
}

TEST_CASE("tape: watched later than the value") {
    tensor<double> x{1, 2}, z{5};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = x * 2;
    tape.watch(z);
    const auto [dx, dz] = tape.gradient(y, x, z);
    CHECK(dx.to_vector() == vector{2, 2});
    CHECK(dz.to_vector() == vector{0});
}

TEST_CASE("tape: errors") {
    tensor<double> x{1, 2}, unwatched{3, 4, 5};
    {
        tg::gradient_tape tape;
        tape.watch(x);
        const tensor<double> y = x * 2;
        const std::string text = message_of<tg::argument_error>([&] { tape.gradient(y, x, unwatched); });
        CHECK_MESSAGE(text == "gradient_tape: source 1 of shape [3] is not watched", text);
    }
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = x * 2;
    CHECK(tape.gradient(y, x)(0) == 2);
    CHECK(message_of<tg::argument_error>([&] { tape.gradient(y, x); }).find("already called") != std::string::npos);
}

TEST_CASE("tape: persistent answers again, from zero every time") {
    tensor<double> x{1, 2};
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    const tensor<double> y = x * x, z = y * y;
    for (int i = 0; i < 3; ++i) {
        CHECK(tape.gradient(y, x).to_vector() == vector{2, 4});
        CHECK(tape.gradient(z, x).to_vector() == vector{4, 32});
    }
    // It goes on recording, its own gradients too.
    const auto dz = tape.gradient(z, x); // 4 x^3
    CHECK(tape.gradient(dz, x).to_vector() == vector{12, 48});
}

TEST_CASE("tape: nested, to the third derivative") {
    tensor<double> x{1, 2, -1};
    tg::gradient_tape first;
    first.watch(x);
    tensor<double> g2;
    {
        tg::gradient_tape second;
        second.watch(x);
        tensor<double> g1;
        {
            tg::gradient_tape third;
            third.watch(x);
            const tensor<double> y = x * x * x * x;
            g1 = third.gradient(y, x);
        }
        CHECK(g1.to_vector() == vector{4, 32, -4});
        g2 = second.gradient(g1, x);
    }
    CHECK(g2.to_vector() == vector{12, 48, 12});
    CHECK(first.gradient(g2, x).to_vector() == vector{24, 48, -24});
}

TEST_CASE("tape: an inner tape does not disturb the outer one") {
    tensor<double> x{1, 2};
    tg::gradient_tape outer;
    outer.watch(x);
    const tensor<double> before = x * x;
    tensor<double> w{5, 6};
    {
        tg::gradient_tape inner;
        inner.watch(w);
        const tensor<double> y = w * before; // before counts as a constant of the inner walk
        const auto dw = inner.gradient(y, w);
        CHECK(dw.to_vector() == vector{1, 4});
    }
    const tensor<double> after = before * 3;
    CHECK(outer.gradient(after, x).to_vector() == vector{6, 12});
}

TEST_CASE("tape: recording can pause") {
    tensor<double> x{1, 2};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = x * 2;
    tape.stop_recording();
    const tensor<double> constant = x * 100; // off the tape
    tape.resume_recording();
    const tensor<double> z = y * constant;
    CHECK(tape.gradient(z, x).to_vector() == vector{200, 400});
}

TEST_CASE("tape: reading elements leaves a tensor on the tape") {
    tensor<double> w{1, 2};
    tg::gradient_tape tape;
    tape.watch(w);
    tensor<double> h = square(w);
    CHECK(w(0) == 1);
    CHECK(h(0) + h(1) == 5);
    static_assert(std::is_same_v<decltype(h(0)), double>); // a number: assigning to it does not compile
    tensor<double> y = h * h;
    CHECK(y(1) == 16);
    CHECK(tape.gradient(y, w).to_vector() == vector{4, 32});
}

TEST_CASE("tape: writing to what it follows is refused") {
    const std::string followed =
        "tensor: a gradient_tape follows this tensor of shape [2]; write to it before watch() or after the tape, "
        "or to x.detach()";
    tensor<double> x{1, 2}, constant{3, 4};
    {
        tg::gradient_tape tape;
        tape.watch(x);
        tensor<double> y = x * constant, copy = y;
        tg::any_tensor untyped = x;
        CHECK(message_of<tg::argument_error>([&] { x.set(5, 0); }) == followed); // a source
        CHECK(message_of<tg::argument_error>([&] { y.set(5, 0); }) == followed); // a value
        CHECK(message_of<tg::argument_error>([&] { copy.mutable_data()[0] = 5; }) == followed);
        CHECK(message_of<tg::argument_error>([&] { untyped.write(); }) == followed);
        tape.stop_recording();
        CHECK(message_of<tg::argument_error>([&] { x.set(5, 0); }) == followed); // gradient() may still be asked for it
        CHECK(x.to_vector() == vector{1, 2});

        // What a record reads and nothing follows is a constant: whoever writes gets a buffer of his own.
        constant.set(100, 0);
        tensor<double> own = y.detach();
        own.set(-1, 1);
        CHECK(own.to_vector() == vector{3, -1});
        CHECK(y.to_vector() == vector{3, 8});
        CHECK(tape.gradient(y, x).to_vector() == vector{3, 4});
        x.set(5, 0); // the records are gone
        CHECK(x.to_vector() == vector{5, 2});
    }
    {
        tg::gradient_tape tape({.persistent = true});
        tape.watch(x);
        const tensor<double> y = x * x;
        CHECK(tape.gradient(y, x).to_vector() == vector{10, 4});
        CHECK(message_of<tg::argument_error>([&] { x.set(1, 0); }) == followed); // it may answer again
    }
    x.set(1, 0);
    {
        tg::gradient_tape outer;
        {
            tg::gradient_tape inner;
            inner.watch(x);
            (void)inner.gradient(x * x, x);
        }
        CHECK(message_of<tg::argument_error>([&] { x.set(1, 0); }) ==
              followed); // the outer tape has recorded it as well
        x = x.detach();
        x.set(7, 0);
    }
    CHECK(x.to_vector() == vector{7, 2});
}

TEST_CASE("tape: a value a tape does not follow is off the tape when detached") {
    tensor<double> x{1, 2};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = x * x, z = y.detach() * x;
    CHECK(y.detach().data() == y.data());
    CHECK(tape.gradient(z, x).to_vector() == vector{1, 4});
}

TEST_CASE("tape: a tensor that another thread's tape follows may be written to") {
    tensor<double> mine{1, 2};
    tg::gradient_tape tape;
    tape.watch(mine);
    std::thread([copy = mine]() mutable {
        tg::gradient_tape other;
        tensor<double> w{5, 6};
        other.watch(w); // at the place where `mine` stands on the first thread's tape
        const tensor<double> y = copy * w;
        CHECK(other.gradient(y, w).to_vector() == vector{1, 2});
        copy.set(9, 0);
        CHECK(copy.to_vector() == vector{9, 2});
    }).join();
    const tensor<double> y = mine * mine;
    CHECK(tape.gradient(y, mine).to_vector() == vector{2, 4});
}

TEST_CASE("tape: places do not outlive their tape") {
    tensor<double> x{1, 2};
    {
        tg::gradient_tape tape;
        tape.watch(x);
        const tensor<double> y = x * 2;
        (void)tape.gradient(y, x);
    }
    tg::gradient_tape tape;
    tensor<double> w{3, 4};
    tape.watch(w);
    const tensor<double> y = x * w; // x's old place must not be taken for one of this tape
    CHECK(tape.gradient(y, w).to_vector() == vector{1, 2});
    CHECK(message_of<tg::argument_error>([&] {
              tg::gradient_tape third;
              third.watch(w);
              const tensor<double> z = x * w;
              third.gradient(z, x);
          }).find("not watched") != std::string::npos);
}

TEST_CASE("tape: records give their buffers back") {
    tensor<double> x = tg::ones<double>({4096});
    const auto work = [&] {
        tg::gradient_tape tape;
        tape.watch(x);
        tensor<double> y = x;
        for (int i = 0; i < 20; ++i) y = tanh(y * y + 0.1);
        return tape.gradient(y, x);
    };
    const auto held = work();
    work();
    const auto before = tg::eager_memory();
    work();
    const auto after = tg::eager_memory();
    CHECK(after.in_use == before.in_use);
    CHECK(after.cached == before.cached);
    // A tape that is never asked lets go as well.
    {
        tg::gradient_tape tape;
        tape.watch(x);
        const tensor<double> y = x * x;
    }
    CHECK(tg::eager_memory().in_use == after.in_use);
}

TEST_CASE("tape: nested tapes give everything back too") {
    tensor<double> x = tg::ones<double>({100});
    const auto work = [&] {
        tg::gradient_tape outer;
        outer.watch(x);
        tensor<double> g;
        {
            tg::gradient_tape inner;
            g = inner.gradient(tensor<double>(sum(tanh(x) * x)), x);
        }
        return outer.gradient(g, x)(0);
    };
    const double first = work();
    const auto before = tg::eager_memory();
    for (int i = 0; i < 5; ++i) CHECK(work() == first);
    CHECK(tg::eager_memory().in_use == before.in_use);
    CHECK(tg::eager_memory().cached == before.cached);
}

TEST_CASE("value_and_gradient of tensors, and gradients of it") {
    const tensor<double> x{1, 2}, w{3, 4};
    const auto f = [](auto a, auto b) { return sum(a * a * b); };
    const auto r = tg::value_and_gradient(f)(x, w);
    CHECK(r.value.item() == 19);
    CHECK(std::get<0>(r.gradient).to_vector() == vector{6, 16});
    CHECK(std::get<1>(r.gradient).to_vector() == vector{1, 4});
    // One argument: no tuple.
    const auto cube = [](auto a) { return sum(a * a * a); };
    CHECK(tg::gradient(cube)(x).to_vector() == vector{3, 12});
    const auto second = tg::gradient([=](auto a) { return sum(tg::gradient(cube)(a)); });
    CHECK(second(x).to_vector() == vector{6, 12});
    const auto third = tg::gradient([=](auto a) { return sum(second(a)); });
    CHECK(third(x).to_vector() == vector{6, 6});
}

TEST_CASE("tape: broadcast operands on both sides of one formula, and a bias") {
    tensor<double> column = tg::from_range<double>(vector{1, 2, 3}, {3, 1}), row({{1, 10}}), bias = 0.5;
    tg::gradient_tape tape;
    tape.watch(column, row, bias);
    const tensor<double> y = column * row + bias; // [3, 2]
    const auto [dc, dr, db] = tape.gradient(y, column, row, bias);
    CHECK(dc.shape() == tg::shape{3, 1});
    CHECK(dc.to_vector() == vector{11, 11, 11});
    CHECK(dr.shape() == tg::shape{1, 2});
    CHECK(dr.to_vector() == vector{6, 6});
    CHECK(db.shape() == tg::shape{});
    CHECK(db.item() == 6);
}

TEST_CASE("tape: one tensor broadcast and full in one formula") {
    tensor<double> x{1, 2, 3};
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> column = reshape(x, {3, 1});
    const tensor<double> y = x * column + x; // [3, 3]: sum = 6 * 6 + 3 * 6
    CHECK(sum(y).item() == 54);
    CHECK(tape.gradient(y, x).to_vector() == vector{15, 15, 15});
}

TEST_CASE("tape: gradients of empty tensors are empty") {
    tensor<double> x = tg::zeros<double>({0, 3}), b = tg::ones<double>({3});
    tg::gradient_tape tape;
    tape.watch(x, b);
    const tensor<double> y = sum(tanh(x * b));
    const auto [dx, db] = tape.gradient(y, x, b);
    CHECK(dx.shape() == tg::shape{0, 3});
    CHECK(db.to_vector() == vector{0, 0, 0});
}

TEST_CASE("tape: a long chain does not recurse") {
    tensor<double> x = 1.0;
    tg::gradient_tape tape;
    tape.watch(x);
    tensor<double> y = x;
    for (int i = 0; i < 100000; ++i) y = y + x;
    CHECK(y.item() == 100001);
    CHECK(tape.gradient(y, x).item() == 100001);
}

} // namespace gradient_tape_test
