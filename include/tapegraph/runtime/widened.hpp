#pragma once

#include <tapegraph/runtime/kernel.hpp>

/// Computes operations on 16-bit elements by the float kernel on converted operands, which suffices
/// for most. The copies are part of the call's workspace, so graph mode plans them and a step still
/// allocates nothing.

namespace tapegraph::runtime {

namespace detail {

/// A call whose 16-bit operands and results are converted to floats at the start of its workspace.
struct widened_call {
    static constexpr int most = 12;
    buffer_view views[most];
    kernel_call call;
    std::size_t bytes = 0; // of the copies

    explicit widened_call(const kernel_call& c) : call(c) {
        for (int i = 0; i < c.inputs + c.outputs; ++i) {
            buffer_view& v = views[i];
            v = i < c.inputs ? c.in[i] : c.out[i - c.inputs];
            if (!is_storage_type(v.type)) continue;
            v.type = dtype::f32;
            v.copies = 1;
            v.data = c.workspace == nullptr ? nullptr : static_cast<std::byte*>(c.workspace) + bytes;
            bytes += float_bytes(v);
        }
        call.in = views;
        call.out = views + c.inputs;
        call.next = nullptr; // reads the narrow result
        call.workspace = c.workspace == nullptr ? nullptr : static_cast<std::byte*>(c.workspace) + bytes;
    }
    widened_call(const widened_call&) = delete; // the call points into it
    widened_call& operator=(const widened_call&) = delete;

    void load(const kernel_call& from) const {
        for (int i = 0; i < from.inputs; ++i) {
            const buffer_view& v = from.in[i];
            if (v.data == nullptr) continue; // empty, or only present for a derivative: the kernel does not read it
            storage_types::visit(v.type, [&]<class T>(std::type_identity<T>) {
                cpu::widen(views[i].as<float>(), v.as<const T>(), v.elements());
            });
        }
    }
    void store(const kernel_call& to) const {
        for (int k = 0; k < to.outputs; ++k) {
            const buffer_view& v = to.out[k];
            const float* const wide = call.out[k].as<const float>();
            storage_types::visit(v.type,
                                 [&]<class T>(std::type_identity<T>) { cpu::narrow(v.as<T>(), wide, v.elements()); });
        }
    }
};

} // namespace detail

template <class Op>
struct widened_kernel {
    static std::size_t workspace(const kernel_call& c) {
        const detail::widened_call wide(c);
        return wide.bytes + kernel_for<Op, float>().workspace(wide.call);
    }
    static void run(const kernel_call& c) {
        const detail::widened_call wide(c);
        wide.load(c);
        kernel_for<Op, float>().run(wide.call);
        wide.store(c);
    }
};

} // namespace tapegraph::runtime
