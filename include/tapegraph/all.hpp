#pragma once

/// Everything. It takes longer to compile than <tapegraph/tapegraph.hpp>, most of it for libraries of others: define
/// TG_NO_THIRD_PARTY to leave out what needs them.

#include <tapegraph/nn.hpp>
#include <tapegraph/nn/hidden_model.hpp>
#include <tapegraph/traced.hpp>
#include <tapegraph/version.hpp>

#include <tapegraph/data.hpp>
#include <tapegraph/distributed.hpp>
#include <tapegraph/io.hpp>
#if defined(TG_MPI) // by tapegraph::mpi
#include <tapegraph/mpi.hpp>
#endif
