#pragma once

#include <tapegraph/core/call.hpp>
#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/runtime/device_runtime.hpp>
#include <tapegraph/runtime/memory.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

/// Resources of a program on a GPU beyond kernel calls: device memory, transfers, and captured
/// graphs.

namespace tapegraph::ir {

/// One block of memory on the CPU (no device) or on a GPU.
class memory_block {
public:
    memory_block() = default;
    memory_block(const memory_block&) = delete;
    memory_block& operator=(const memory_block&) = delete;
    ~memory_block() { release(); }

    /// Makes the block at least `bytes` long and returns whether it had to grow. A block that grows loses its content.
    bool reserve(runtime::device_runtime* d, std::size_t bytes, const char* what);
    /// Uses memory owned by the caller, of at least size() bytes. Call it before
    /// anything is reserved.
    void use(std::byte* memory) {
        external_ = true;
        data_ = memory;
    }
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

private:
    void release();

    runtime::device_runtime* device_ = nullptr;
    runtime::arena host_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    bool external_ = false;
};

/// One bound kernel call of a program.
struct kernel_step {
    kernel_function run; // null: runs on the CPU, in a program on a device
    kernel_call call;
};

/// An input's memory on the device, at a fixed address, and the source of its values.
struct fed_input {
    memory_block memory;
    buffer_view from;
};

/// Captured device graphs, one per set of extents and math_mode that a program has run with.
class captured_steps {
public:
    explicit captured_steps(runtime::device_runtime* d) : device_(d) {}
    captured_steps(const captured_steps&) = delete;
    captured_steps& operator=(const captured_steps&) = delete;
    ~captured_steps() { clear(); }

    void clear();

    /// Runs `launch`, which launches a program's steps at fixed addresses. The first run only calls
    /// it, because libraries choose their kernels then. The second run is captured, and later runs
    /// replay the captured graph. Where capturing fails, a line on stderr says so, and every run
    /// launches the steps.
    template <class F>
    void run(const std::vector<std::int64_t>& extents, const F& launch) {
        entry* e = nullptr;
        const math_mode mode = current_math_mode();
        for (entry& each : entries_)
            if (each.extents == extents && each.mode == mode) e = &each;
        if (e == nullptr) {
            launch(); // a launch that throws has prepared nothing
            if (entries_.size() >= most) clear();
            entries_.push_back({extents, mode});
            return;
        }
        if (e->graph == nullptr && !e->refused) capture(*e, launch);
        if (e->refused) return launch();
        device_->replay(e->graph);
    }

private:
    static constexpr std::size_t most = 8; // for alternating batch sizes
    struct entry {
        std::vector<std::int64_t> extents;
        math_mode mode;
        void* graph = nullptr;
        bool refused = false;
    };

    template <class F>
    void capture(entry& e, const F& launch) {
        std::string why = "the device made no graph of them";
        device_->begin_capture();
        try {
            launch();
        } catch (const device_error& error) { // perhaps caused by the capture alone: then a plain launch succeeds
            why = error.what();
            e.refused = true;
        } catch (...) {
            if (void* const graph = device_->end_capture(); graph != nullptr) device_->drop(graph);
            throw;
        }
        e.graph = device_->end_capture();
        if (e.refused && e.graph != nullptr) device_->drop(std::exchange(e.graph, nullptr));
        e.refused = e.graph == nullptr;
        if (e.refused)
            std::fprintf(stderr, "tapegraph: a program's steps are launched one by one, they cannot be captured: %s\n",
                         why.c_str());
    }
    runtime::device_runtime* device_;
    std::vector<entry> entries_;
};

#if TG_DEFINES_FOR_HOST(graph)

TG_DEFINITION void captured_steps::clear() {
    for (const entry& e : entries_)
        if (e.graph != nullptr) device_->drop(e.graph);
    entries_.clear();
}

TG_DEFINITION bool memory_block::reserve(runtime::device_runtime* d, std::size_t bytes, const char* what) {
    if (bytes <= size_) return false;
    if (external_) {
        size_ = bytes;
        return true;
    }
    release();
    if (d == nullptr) {
        host_ = runtime::arena(bytes);
        data_ = host_.data();
    } else {
        data_ = static_cast<std::byte*>(d->allocate(bytes, what));
        device_ = d;
    }
    size_ = bytes;
    return true;
}

TG_DEFINITION void memory_block::release() {
    if (device_ != nullptr && data_ != nullptr) device_->release(data_);
    host_ = runtime::arena();
    data_ = nullptr;
    size_ = 0;
}

#endif

} // namespace tapegraph::ir
