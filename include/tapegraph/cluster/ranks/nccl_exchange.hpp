#pragma once

#include <tapegraph/cluster/ranks/collectives.hpp>
#include <tapegraph/cluster/ranks/nccl_library.hpp>
#include <tapegraph/core/number_text.hpp>

#include <exception>
#include <functional>

/// GPUs as ranks: pairs of ncclSend and ncclRecv on a stream. The tree determines the bits, not the
/// library.

namespace tapegraph::distributed {

/// Functions of the device whose memory is moved; for this library's GPUs tg::cuda::nccl_device_of
/// provides them (cuda/nccl.cuh). All of them apply to the thread's current device.
struct nccl_device {
    void* stream = nullptr; ///< cudaStream_t
    /// Whether all work submitted to the stream is done (cudaStreamQuery).
    std::function<bool(void* stream)> finished{};
    /// Allocates device memory.
    std::function<void*(std::size_t bytes)> allocate{};
    std::function<void(void* at)> release{};
    /// Submits sum[i] = left[i] + right[i] to the stream.
    std::function<void(const sum_kind& kind, void* sum, const void* left, const void* right, std::size_t count,
                       void* stream)>
        add{};
};

/// A communicator as an exchange, for sums (tree_sum) of device memory: one rank per process, or
/// per thread, with its GPU. A pair of messages counts as done once it is submitted to the stream,
/// because later work on the stream sees it. So a sum is a sequence of sends, receives and
/// additions that the host does not wait for, and that can be captured into a graph. finish()
/// waits.
///
/// Operations that wait on the host (barrier, broadcast, agree, block_gather) use the exchange that
/// this one was created through.
class nccl_exchange final : public exchange {
public:
    /// Constructed together on all ranks of `through`, by which the first sends the communicator's
    /// id to the others. Throws exchange_error if NCCL fails, argument_error for a device that
    /// lacks a function.
    nccl_exchange(exchange& through, const nccl_device& device, const nccl_library& library)
        : exchange(through.rank(), through.size()), device_(device), library_(&library) {
        if (device.finished == nullptr || device.allocate == nullptr || device.release == nullptr ||
            device.add == nullptr)
            throw argument_error("nccl_exchange: the device lacks a function; see nccl_device");
        set_deadline(through.deadline());
        set_chief(through.chief());
        nccl_unique_id id{};
        if (rank() == 0) library.check(of().get_unique_id(&id), "ncclGetUniqueId");
        broadcast(through, 0, std::as_writable_bytes(std::span(&id, 1)), "id of the communicator");
        library.check(of().init_rank(&communicator_, size(), id, rank()), "ncclCommInitRank",
                      " on rank " + std::to_string(rank()) + " of " + std::to_string(size()));
    }
    ~nccl_exchange() override {
        if (communicator_ == nullptr) return;
        // Destruction is collective; after an exception it would wait for the others.
        if (std::uncaught_exceptions() == 0)
            static_cast<void>(of().destroy(communicator_));
        else
            static_cast<void>(of().abort(communicator_));
    }

    std::string name() const override { return "NCCL " + library_->version(); }
    void* take(std::size_t bytes) override { return device_.allocate(bytes); }
    void give_back(void* at) noexcept override { device_.release(at); }
    void add(const sum_kind& kind, void* sum, const void* left, const void* right, std::size_t count) override {
        device_.add(kind, sum, left, right, count, device_.stream);
    }

    /// Waits until the stream has completed everything. Throws exchange_error for failures on any
    /// rank in the meantime, and at the deadline; the communicator is then aborted.
    void finish() override {
        const double first = now();
        for (int looks = 0;; ++looks) {
            look_for_error();
            if (device_.finished(device_.stream)) return;
            if (now() - first >= deadline()) {
                give_up();
                throw exchange_error("NCCL: rank " + std::to_string(rank()) + " waited " +
                                     rounded_text(now() - first, 4) + " s for its stream in step " +
                                     std::to_string(step()) + ", last given to it: " + last_);
            }
            idle(looks, first + deadline());
        }
    }
    /// Throws exchange_error if a rank has failed. It is cheap; waiting functions call it.
    void look_for_error() {
        if (communicator_ == nullptr) throw exchange_error("NCCL: rank " + std::to_string(rank()) + " was given up");
        int error = nccl_success;
        library_->check(of().async_error(communicator_, &error), "ncclCommGetAsyncError");
        if (error == nccl_success || error == nccl_in_progress) return;
        std::string text;
        try {
            library_->check(error, "a peer or the network", where(), communicator_);
        } catch (const exchange_error& e) {
            text = e.what();
        }
        give_up();
        throw exchange_error(text);
    }

protected:
    void start_pair(int slot, int peer, std::span<const std::byte> send, std::span<std::byte> receive, int) override {
        if (communicator_ == nullptr) throw exchange_error("NCCL: rank " + std::to_string(rank()) + " was given up");
        if (send.empty() && receive.empty()) return;
        last_.assign(label_of(slot));
        // Grouped, so that neither waits for the other.
        check(of().group_start(), "ncclGroupStart");
        if (!send.empty())
            check(of().send(send.data(), send.size(), nccl_bytes, peer, communicator_, device_.stream), "ncclSend");
        if (!receive.empty())
            check(of().receive(receive.data(), receive.size(), nccl_bytes, peer, communicator_, device_.stream),
                  "ncclRecv");
        check(of().group_end(), "ncclGroupEnd");
    }
    bool finished(int) override { return true; }
    void poll() override {}
    void cancel_pair(int) noexcept override {}

private:
    const nccl_functions& of() const { return library_->functions(); }
    std::string where() const {
        return " on rank " + std::to_string(rank()) + " in step " + std::to_string(step()) + ", " + last_;
    }
    void check(int code, const char* call) const {
        if (code != nccl_success && code != nccl_in_progress) library_->check(code, call, where(), communicator_);
    }
    void give_up() {
        static_cast<void>(of().abort(communicator_));
        communicator_ = nullptr;
    }

    nccl_device device_;
    const nccl_library* library_;
    nccl_communicator communicator_ = nullptr;
    std::string last_ = "nothing";
};

} // namespace tapegraph::distributed
