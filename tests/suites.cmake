# The suites of tests, each with all that the one before it has. docs/testing.md has a table of them.
#
#   quick  what a newcomer and a change need: tests/run.sh
#   ci     what continuous integration checks of every push: tests/run.sh --ci, .ci/run
#   all    everything, as it is without a choice: tests/run.sh --all

set(TAPEGRAPH_SUITE all CACHE STRING "The tests that are built and run: quick, ci or all")
set_property(CACHE TAPEGRAPH_SUITE PROPERTY STRINGS quick ci all)
if(NOT TAPEGRAPH_SUITE MATCHES "^(quick|ci|all)$")
    message(FATAL_ERROR "TAPEGRAPH_SUITE is '${TAPEGRAPH_SUITE}', not quick, ci or all")
endif()

# What ci adds to quick: folders of tests/ and parts of the suite.
set(tapegraph_ci_parts
    compilers          # front ends of other compilers and machine code: 200 processor seconds of clang
    consume            # projects that use the library: compilation from nothing, CUDA's by nvcc
    cute               # CuTe's layouts, which change with CuTe
    debugger           # what gdb and lldb print
    device_code        # nvcc compiles kernels and a program, machine code is read; the imitated device takes the same sources
    direct_convolution # an example's models
    examples           # programs, each a whole model to compile, and their tests
    headers            # each header alone; what a program includes the other tests compile
    instruction_sets   # core and cpu for all sets from headers alone; quick links the component, for this processor's set
    messages_of_more   # of structures of options, and the driver of tests/compile_fail itself
    mpi                # processes of Open MPI and MPICH; ranks as threads are in cluster
    nccl               # sums between devices
    pages              # blocks of pages, and the headers that they name; costs of compiling
    simt               # the executor of device kernels itself, on which tests/cuda runs
)

# Files of tests/ that ci adds: what checks further cases of something that quick has a test of.
set(tapegraph_ci_tests
    # Kernels on the imitated device: quick has one file of each family.
    cuda/attention cuda/context cuda/convolution_by_product cuda/convolution_few_channels cuda/convolution_kernels
    cuda/convolution_plan cuda/convolution_winograd cuda/effect cuda/flash_attention cuda/indexing cuda/length
    cuda/library_calls cuda/library_reductions cuda/lstm cuda/lstm_plan cuda/matmul cuda/memory cuda/messages cuda/models
    cuda/places cuda/plan_memory cuda/product_terms cuda/profile cuda/reduction cuda/rows cuda/runtime
    cuda/softmax_cross_entropy cuda/tensors cuda/widened
    # Rows of the table have these operations' values and derivatives, forwards, too; here are options, scales and storage.
    ops/attention ops/attention_tile ops/constants_forward ops/few_elements ops/forward_mode ops/gated_activation
    ops/guarded_arms ops/isa ops/lp_pooling_scales ops/messages ops/movement ops/norm_scales ops/normalization
    ops/product_derivatives ops/random_streams ops/sixteen_bit_statistics ops/sixteen_bit_sweep ops/storage_elementwise
    ops/stored_windows
    # Compiled models beyond one of each kind, and every optimizer's twenty steps.
    nn/applied nn/attention nn/image_layers nn/keeps_mask nn/loss_scaling nn/loss_seams nn/mlp_float nn/normalization_seams
    nn/optimizers_keras nn/padding nn/penalties nn/scales nn/scan nn/schedule_ends nn/sixteen_bit_layers nn/updates_in_one_kernel
    # Graphs made at run time: quick has words, instructions, steps, registration and a scan.
    traced/instance traced/placed traced/scan_capture traced/scan_draws traced/scan_refusals traced/session traced/sharded
    traced/tasks traced/tools
    # What the table, its rows as graphs and the words of graphs have in short: derivatives, vmap, passes after one another.
    eager/conditions eager/derivatives graph/captured_steps graph/continuations graph/updates transforms/custom_operation
    transforms/vmap
    # What a step allocates: programs of their own, because they replace malloc or new.
    cluster/allocations graph/allocation io/tensorboard_allocations minimizers/allocations train/allocations
    # Refusals, reports and threads of compiled models; ranks: quick has sums, collectives, checkpoints and the chief.
    any_model/application cluster/cluster_spec cluster/job_names cluster/part_of_data cluster/ranks/imitated_network
    cluster/ranks/row_gather cluster/tasks_refusals compile/modes_refusals compile/placement_log compile/threads
    profile/modes_counts profile/session profile/tensorboard
    # Readers, texts and pipelines beyond folders of images, tables, tokenizers and the usual stages.
    data/images/resize data/pipeline/cache_file data/pipeline/position data/readers/arrow data/readers/cifar10
    data/readers/example data/readers/idx data/readers/image data/readers/jpeg data/readers/record_file
    data/readers/record_stream data/readers/text_table data/text/byte_pair data/text/in_pipelines data/text/tokens
    data/text/unicode data/text/unigram data/text/vocabulary data/text/windows data/text/word_piece
    # Files of models beyond weights, checkpoints, and a model and the operators of each format.
    io/any_model_onnx io/gguf io/graph_def io/keras_order io/load_onnx_again io/load_onnx_counted io/load_onnx_microsoft
    io/load_onnx_ml io/load_onnx_random io/load_onnx_sequences io/onnx_array io/onnx_options io/pytorch_beside
    io/quantize_onnx io/save_program io/tensorboard_callback
    # Readers of damaged files: quick has those of the formats that models and tensors come in.
    damaged/byte_pair damaged/cache_file damaged/events damaged/example damaged/gguf damaged/gzip_lines damaged/jpeg
    damaged/npz damaged/plan_memory damaged/rank_index damaged/record_file damaged/record_stream damaged/table_state
    damaged/tokenizer_json damaged/unigram damaged/vocabulary damaged/word_piece
    # Eigen's numbers and matrices, which take long to compile, and ADBench's problems.
    minimizers/eigen scalar/adbench scalar/adbench_data scalar/eigen scalar/sparse_eigen
)

# Files of tests/ that take minutes and have a shorter relative: all adds them.
set(tapegraph_long_tests
    cluster/overlap cluster/parameter_servers cluster/shards cluster/synchronized cluster/tasks
    cluster/zero_redundancy compile/features compile/instance compile/large_results compile/memory_limit
    compile/placed_model cuda/attention_models cuda/convolution_pool cuda/device_elements cuda/epilogue_modes cuda/gru
    cuda/library_convolution cuda/library_plans cuda/math_mode cuda/measured_plans cuda/modes cuda/movement_modes
    cuda/on_host cuda/places_modes cuda/programmatic_launch cuda/ranks_on_devices cuda/recurrent cuda/scan_over_time
    cuda/searching_modes cuda/sparse_models cuda/taped_program cuda/tasks_on_devices cuda/zero_redundancy_on_devices
    data/pipeline/fit instruction_sets/library instruction_sets/widths model/taped_program nn/cnn_double
    nn/double_table nn/fast_convolution nn/generation nn/gru nn/initializers nn/label_shapes_by_hand nn/losses_binary
    nn/losses_chosen nn/losses_ends nn/losses_seams nn/losses_sixteen_bit nn/losses_softmax nn/losses_stored
    nn/masked_layers nn/masking nn/metric_tensors nn/mixed_precision nn/mlp_double nn/optimizer_chains
    nn/optimizers_adam_family nn/padding_layers nn/random_layers nn/random_model nn/scan_constants nn/scan_model
    nn/scan_options nn/scan_second nn/schedules nn/sequence_defaults nn/sequence_positions nn/sparse_embedding
    nn/stored_attention nn/stored_layers nn/study_convolutions nn/study_models nn/study_recurrent nn/text
    ops/composed_recurrent ops/derivatives_of_functions ops/gru ops/operands_and_extents ops/recurrent ops/refusals
    ops/sixteen_bit_storage ops/slices ops/storage_contraction ops/stored_gru ops/stored_recurrent ops/sums_of_columns
    ops/transposed_convolution ops/windows session/estimator session/session_devices traced/layers_words
    traced/training_words train/objectives train/variable_gradients transforms/checkpoint transforms/vmap_gradient)

foreach(test IN LISTS tapegraph_ci_tests tapegraph_long_tests)
    set(file "${CMAKE_CURRENT_LIST_DIR}/${test}")
    if(NOT EXISTS "${file}_test.cpp" AND NOT EXISTS "${file}_target.cpp")
        message(FATAL_ERROR "tests/suites.cmake names ${test}, of which there is no file")
    endif()
endforeach()

# Parts and files that this suite has not.
set(tapegraph_left_out "")
if(NOT TAPEGRAPH_SUITE STREQUAL "all")
    list(APPEND tapegraph_left_out ${tapegraph_long_tests})
endif()
if(TAPEGRAPH_SUITE STREQUAL "quick")
    list(APPEND tapegraph_left_out ${tapegraph_ci_parts} ${tapegraph_ci_tests})
endif()
