#pragma once

#include <tapegraph/cluster/ranks/mpi_library.hpp>

#include <exception>
#include <limits>
#include <vector>

/// Processes of MPI as ranks: messages by MPI_Isend and MPI_Irecv on a separate communicator.

namespace tapegraph::distributed {

/// Every process of a communicator constructs one, together. MPI is called on the thread that calls
/// the exchange, which must be the one that initialized MPI (MPI_THREAD_FUNNELED).
class mpi_exchange final : public exchange {
public:
    explicit mpi_exchange(MPI_Comm world = MPI_COMM_WORLD) : exchange(rank_in(world), size_of(world)) {
        requests_.reserve(2 * usual_requests);
        expected_.reserve(2 * usual_requests);
        indices_.reserve(2 * usual_requests);
        statuses_.reserve(2 * usual_requests);
        check_mpi(MPI_Comm_dup(world, &ranks_), "MPI_Comm_dup");
        MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
        void* largest = nullptr;
        int set = 0;
        check_mpi(MPI_Comm_get_attr(ranks_, MPI_TAG_UB, static_cast<void*>(&largest), &set), "MPI_Comm_get_attr");
        if (set != 0) largest_tag_ = *static_cast<int*>(largest);
    }
    ~mpi_exchange() override {
        // Collective as well; after an exception it would wait for the others.
        if (std::uncaught_exceptions() == 0) MPI_Comm_free(&ranks_);
    }
    std::string name() const override { return compiled_mpi(); }

protected:
    void start_pair(int slot, int peer, std::span<const std::byte> send, std::span<std::byte> receive,
                    int channel) override {
        if (channel > largest_tag_)
            throw exchange_error("MPI: " + compiled_mpi() + " has " + std::to_string(largest_tag_) + " channels; " +
                                 std::string(label_of(slot)) + " is one too many");
        const std::size_t first = 2 * static_cast<std::size_t>(slot);
        if (requests_.size() < first + 2) {
            requests_.resize(first + 2, MPI_REQUEST_NULL);
            expected_.resize(first + 2);
            indices_.resize(first + 2);
            statuses_.resize(first + 2);
        }
        expected_[first] = receive.size();
        if (!receive.empty()) {
            message_type type(receive.size());
            check_mpi(MPI_Irecv(receive.data(), type.count, type.type, peer, channel, ranks_, &requests_[first]),
                      "MPI_Irecv");
        }
        if (!send.empty()) {
            message_type type(send.size());
            check_mpi(MPI_Isend(send.data(), type.count, type.type, peer, channel, ranks_, &requests_[first + 1]),
                      "MPI_Isend");
        }
    }
    bool finished(int slot) override {
        const std::size_t first = 2 * static_cast<std::size_t>(slot);
        return requests_[first] == MPI_REQUEST_NULL && requests_[first + 1] == MPI_REQUEST_NULL;
    }
    void poll() override {
        if (requests_.empty()) return;
        int done = 0;
        const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &done, indices_.data(),
                                      statuses_.data());
        if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check_mpi(code, "MPI_Testsome");
        for (int i = 0; done != MPI_UNDEFINED && i < done; ++i) {
            const auto index = static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]);
            const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
            const int slot = static_cast<int>(index / 2);
            if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) refuse(slot, status.MPI_ERROR);
            if (index % 2 == 1) continue;
            MPI_Count arrived = 0;
            check_mpi(MPI_Get_elements_x(&status, MPI_BYTE, &arrived), "MPI_Get_elements_x");
            if (static_cast<std::size_t>(arrived) != expected_[index])
                throw exchange_error("exchange: rank " + std::to_string(peer_of(slot)) + " sends " +
                                     std::to_string(arrived) + " bytes, rank " + std::to_string(rank()) + " expects " +
                                     std::to_string(expected_[index]) + ": step " + std::to_string(step()) + ", " +
                                     std::string(label_of(slot)));
        }
    }
    void cancel_pair(int slot) noexcept override {
        const std::size_t first = 2 * static_cast<std::size_t>(slot);
        int ended = 0;
        MPI_Finalized(&ended);
        for (std::size_t i = first; i < first + 2 && i < requests_.size(); ++i) {
            if (requests_[i] == MPI_REQUEST_NULL || ended != 0) continue;
            MPI_Cancel(&requests_[i]);
            MPI_Request_free(&requests_[i]);
        }
    }

private:
    // Counts are int: more bytes than that are sent as one element of a sufficiently long type.
    struct message_type {
        MPI_Datatype type = MPI_BYTE;
        int count = 0;

        explicit message_type(std::size_t bytes) {
            constexpr std::size_t most = std::numeric_limits<int>::max(), piece = std::size_t{1} << 30;
            if (bytes <= most) {
                count = static_cast<int>(bytes);
                return;
            }
            MPI_Datatype pieces = MPI_BYTE, whole_piece = MPI_BYTE;
            check_mpi(MPI_Type_contiguous(static_cast<int>(piece), MPI_BYTE, &whole_piece), "MPI_Type_contiguous");
            check_mpi(MPI_Type_contiguous(static_cast<int>(bytes / piece), whole_piece, &pieces),
                      "MPI_Type_contiguous");
            const int lengths[2] = {1, static_cast<int>(bytes % piece)};
            const MPI_Aint places[2] = {0, static_cast<MPI_Aint>(bytes / piece * piece)};
            const MPI_Datatype types[2] = {pieces, MPI_BYTE};
            check_mpi(MPI_Type_create_struct(2, lengths, places, types, &type), "MPI_Type_create_struct");
            MPI_Type_free(&pieces);
            MPI_Type_free(&whole_piece);
            check_mpi(MPI_Type_commit(&type), "MPI_Type_commit");
            count = 1;
        }
        message_type(const message_type&) = delete;
        message_type& operator=(const message_type&) = delete;
        ~message_type() {
            if (type != MPI_BYTE) MPI_Type_free(&type); // messages in flight keep it
        }
    };

    static int rank_in(MPI_Comm world) {
        int rank = 0;
        check_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank");
        return rank;
    }
    static int size_of(MPI_Comm world) {
        int size = 0;
        check_mpi(MPI_Comm_size(world, &size), "MPI_Comm_size");
        return size;
    }
    [[noreturn]] void refuse(int slot, int code) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_string(code, text, &length);
        throw exchange_error("exchange: rank " + std::to_string(rank()) + " with rank " +
                             std::to_string(peer_of(slot)) + " in step " + std::to_string(step()) + ", " +
                             std::string(label_of(slot)) + ": " + text);
    }

    MPI_Comm ranks_ = MPI_COMM_NULL;
    int largest_tag_ = 32767;           // the standard's guaranteed minimum
    std::vector<MPI_Request> requests_; // per slot: the receive and the send
    std::vector<std::size_t> expected_;
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
};

} // namespace tapegraph::distributed
