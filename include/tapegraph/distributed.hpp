#pragma once

/// Steps that are cut into shards, and what connects ranks: sums by one tree, threads as ranks,
/// names of jobs and tasks. MPI is in <tapegraph/mpi.hpp>.

#include <tapegraph/cluster/parameter_servers.hpp>
#include <tapegraph/cluster/rank_checkpoints.hpp>
#include <tapegraph/cluster/ranks/agreement.hpp>
#include <tapegraph/cluster/ranks/collectives.hpp>
#include <tapegraph/cluster/ranks/imitated_network.hpp>
#include <tapegraph/cluster/ranks/nccl_exchange.hpp>
#include <tapegraph/cluster/ranks/row_gather.hpp>
#include <tapegraph/cluster/ranks/thread_exchange.hpp>
#include <tapegraph/cluster/ranks/tree_accumulator.hpp>
#include <tapegraph/cluster/server.hpp>
#include <tapegraph/cluster/sharded.hpp>
#include <tapegraph/nn/layers/synchronized_normalization.hpp>
