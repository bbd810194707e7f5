#pragma once

/// Everything. It takes longer to compile than <tapegraph/tapegraph.hpp>, mostly because of
/// third-party libraries: define TG_NO_THIRD_PARTY to leave out the headers that need them.

#include <tapegraph/minimize.hpp>
#include <tapegraph/nn.hpp>
#include <tapegraph/ode.hpp>
#include <tapegraph/number_program.hpp>
#include <tapegraph/number_tensor.hpp>
#include <tapegraph/real.hpp>
#include <tapegraph/traced.hpp>
#include <tapegraph/train/minimize.hpp>
#include <tapegraph/version.hpp>

#include <tapegraph/any_model/hidden_model.hpp>
#include <tapegraph/cluster/traced_sharded.hpp>
#include <tapegraph/compile/traced_instance.hpp>
#include <tapegraph/data.hpp>
#include <tapegraph/distributed.hpp>
#include <tapegraph/io.hpp>
#if defined(TG_COMPONENT) // which holds the rules of ONNX's operators
#include <tapegraph/any_model/any_onnx.hpp>
#endif
#if defined(TG_MPI) // defined by tapegraph::mpi
#include <tapegraph/mpi.hpp>
#endif
