#include <doctest/doctest.h>

#include <tapegraph/formats/dlpack.hpp>
#include <tapegraph/tapegraph.hpp>

#include <support/temporary_folder.hpp>

namespace dlpack_test {

namespace tg = tapegraph;
namespace dl = tapegraph::dlpack;

namespace {

int deleted = 0;

/// An array as another library exports it.
template <class Managed>
struct foreign {
    std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<std::int64_t> shape{2, 3}, strides{3, 1};
    Managed m{};

    foreign(const foreign&) = delete;
    foreign() {
        m.tensor = {values.data(), {1, 0}, 2, {2, 32, 1}, shape.data(), strides.data(), 0};
        m.deleter = [](Managed*) { ++deleted; };
    }
};
using versioned = foreign<dl::managed_tensor_versioned>;

template <class Error>
std::string refused(versioned& f) {
    deleted = 0;
    const std::string text = support::message_of<Error>([&] { tg::from_dlpack(&f.m); });
    CHECK(deleted == 1);
    return text;
}

} // namespace

TEST_CASE("what is exported is the tensor's own memory, and stays until it is deleted") {
    tg::tensor<float> t{{1, 2, 3}, {4, 5, 6}};
    const float* const place = t.data();
    dl::managed_tensor_versioned* const m = tg::to_dlpack(t);
    CHECK(m->major == 1);
    CHECK(m->flags == dl::read_only_flag);
    CHECK(m->tensor.data == place);
    CHECK(m->tensor.ndim == 2);
    CHECK(m->tensor.shape[1] == 3);
    CHECK(m->tensor.strides[0] == 3);
    CHECK(m->tensor.strides[1] == 1);
    CHECK(m->tensor.byte_offset == 0);
    CHECK(m->tensor.device.type == 1);
    CHECK(m->tensor.dtype.code == 2);
    CHECK(m->tensor.dtype.bits == 32);
    t.set(10, 0, 0); // leaves what was exported
    CHECK(t.data() != place);
    CHECK(place[0] == 1);
    const auto before = tg::eager_memory().in_use;
    m->deleter(m);
    CHECK(tg::eager_memory().in_use < before);

    tg::tensor<float> scalar = 2;
    auto* const s = tg::to_dlpack(scalar);
    CHECK(s->tensor.ndim == 0);
    CHECK(s->tensor.strides != nullptr);
    s->deleter(s);
    auto* const none = tg::to_dlpack(tg::zeros<float>({2, 0, 3}));
    CHECK(none->tensor.data == nullptr);
    CHECK(none->tensor.shape[1] == 0);
    none->deleter(none);
}

TEST_CASE("what is exported to write to is written in the tensor, and in no other") {
    tg::tensor<float> t{1, 2, 3};
    const tg::tensor<float> other = t;
    auto* const m = tg::to_dlpack_mutable(t);
    CHECK(m->flags == 0);
    static_cast<float*>(m->tensor.data)[0] = 10;
    CHECK(t(0) == 10);
    CHECK(other(0) == 1);
    m->deleter(m);
    auto* const old = tg::to_dlpack_mutable<dl::managed_tensor>(t);
    CHECK(old->tensor.data == t.data());
    old->deleter(old);
    tg::gradient_tape tape;
    tape.watch(t);
    CHECK_THROWS_AS(tg::to_dlpack_mutable(t), tg::argument_error);
}

TEST_CASE("every element type goes out and comes back") {
    for (int i = 0; i <= static_cast<int>(tg::dtype::boolean); ++i) {
        const auto type = static_cast<tg::dtype>(i);
        CAPTURE(tg::name_of(type));
        const tg::any_tensor t(type, {3});
        auto* const m = tg::to_dlpack(t);
        CHECK(m->tensor.dtype.bits == 8 * tg::size_of(type));
        const tg::any_tensor back = tg::from_dlpack(m);
        CHECK(back.type() == type);
        CHECK(back.read() == t.read());
    }
}

TEST_CASE("what is imported is borrowed, and deleted once") {
    deleted = 0;
    versioned f;
    {
        tg::tensor<float> t(tg::from_dlpack(&f.m));
        CHECK(t.data() == f.values.data());
        CHECK(tg::to_string(t.shape()) == "[2, 3]");
        const tg::tensor<float> copy = t;
        t = tg::tensor<float>{1};
        CHECK(deleted == 0);
        CHECK(copy(1, 2) == 5);
        auto* const again = tg::to_dlpack(copy); // handed on
        CHECK(again->tensor.data == f.values.data());
        again->deleter(again);
        CHECK(deleted == 0);
    }
    CHECK(deleted == 1);

    tg::tensor<float> w(tg::from_dlpack(&f.m));
    w.set(20, 0, 0);
    CHECK(f.values[0] == 20);
    f.m.flags = dl::read_only_flag;
    tg::tensor<float> r(tg::from_dlpack(&f.m));
    r.set(30, 0, 0);
    CHECK(f.values[0] == 20);
    CHECK(deleted == 2); // nothing is over it any more

    foreign<dl::managed_tensor> old;
    old.m.tensor.strides = nullptr; // of before 1.2
    old.m.tensor.byte_offset = 8;
    old.m.deleter = nullptr; // nobody minds
    const tg::tensor<float> o(tg::from_dlpack(&old.m));
    CHECK(o.data() == old.values.data() + 2);
    CHECK(o(1, 2) == 7);
}

TEST_CASE("strides: rows are borrowed, other orders are copied on request") {
    versioned f;
    f.shape = {1, 4};
    f.strides = {77, 1}; // of an axis of one nothing matters
    CHECK(tg::from_dlpack(&f.m).read() == f.values.data());
    f.shape = {3, 2};
    f.strides = {1, 3};
    CHECK(refused<tg::argument_error>(f) ==
          "from_dlpack: elements of shape [3, 2] are not row-major; dlpack_copies::if_needed copies them");
    deleted = 0;
    const tg::tensor<float> t(tg::from_dlpack(&f.m, tg::dlpack_copies::if_needed));
    CHECK(deleted == 1);
    CHECK(t.to_vector() == std::vector<float>{0, 3, 1, 4, 2, 5});
    f.shape = {2, 2};
    f.strides = {-4, -1}; // backwards, from the last
    f.m.tensor.byte_offset = 7 * 4;
    CHECK(tg::tensor<float>(tg::from_dlpack(&f.m, tg::dlpack_copies::if_needed)).to_vector() ==
          std::vector<float>{7, 6, 3, 2});
    f.strides = {2, 1};
    f.m.tensor.byte_offset = 2;
    CHECK(support::contains(refused<tg::argument_error>(f), "[2, 2] are not aligned"));
    CHECK(tg::from_dlpack(&f.m, tg::dlpack_copies::if_needed).size() == 4);
}

TEST_CASE("what no tensor can be is refused") {
    versioned f;
    f.m.major = 2;
    CHECK(refused<tg::argument_error>(f) == "from_dlpack: version 2.1, known is 1");
    versioned g;
    g.m.tensor.device.type = 2;
    CHECK(support::contains(refused<tg::argument_error>(g), "on a device of type 2"));
    g.m.tensor.device.type = 3;
    CHECK(tg::from_dlpack(&g.m).read() == g.values.data());
    g.m.tensor.dtype = {5, 64, 1};
    CHECK(support::contains(refused<tg::dtype_error>(g), "code 5, 64 bits and 1 lanes"));
    g.m.tensor.dtype = {2, 32, 4};
    CHECK(support::contains(refused<tg::dtype_error>(g), "4 lanes"));
    g.m.tensor.dtype = {2, 32, 1};
    g.m.tensor.ndim = 9;
    CHECK(support::contains(refused<tg::shape_error>(g), "9 axes, tensors have at most 8"));
    g.m.tensor.ndim = 2;
    g.shape = {-1, 3};
    CHECK(support::contains(refused<tg::shape_error>(g), "impossible shape [-1, 3]"));
    g.shape = {INT64_MAX, 3};
    CHECK(support::contains(refused<tg::shape_error>(g), "impossible shape"));
    g.shape = {2, 3};
    g.m.tensor.data = nullptr;
    CHECK(support::contains(refused<tg::argument_error>(g), "no elements for shape [2, 3]"));
    g.shape = {0, 3};
    CHECK(tg::from_dlpack(&g.m).size() == 0);
    CHECK_THROWS_AS(tg::from_dlpack(static_cast<dl::managed_tensor*>(nullptr)), tg::argument_error);
}

} // namespace dlpack_test
