#pragma once

/// Steps that are cut into shards, and what connects ranks: sums by one tree, threads as ranks,
/// names of jobs and tasks. MPI is in <tapegraph/mpi.hpp>.

#include <tapegraph/distributed/agreement.hpp>
#include <tapegraph/distributed/collectives.hpp>
#include <tapegraph/distributed/imitated_network.hpp>
#include <tapegraph/distributed/nccl_exchange.hpp>
#include <tapegraph/distributed/rank_checkpoints.hpp>
#include <tapegraph/distributed/row_gather.hpp>
#include <tapegraph/distributed/server.hpp>
#include <tapegraph/distributed/thread_exchange.hpp>
#include <tapegraph/distributed/tree_accumulator.hpp>
#include <tapegraph/nn/layers/synchronized_normalization.hpp>
#include <tapegraph/nn/parameter_servers.hpp>
#include <tapegraph/nn/sharded.hpp>
