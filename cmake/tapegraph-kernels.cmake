# tapegraph::kernels, the compiled component: what does not depend on a program's models, compiled once per build. Who links it
# instead of tapegraph::tapegraph compiles in a fraction of the time and gets the same bits. Built when something links it, or
# with TAPEGRAPH_KERNELS=ON, which also installs it.
#
# core/component.hpp says how headers list what it holds. Each part is an object, compiled from what is named here.

option(TAPEGRAPH_KERNELS "Build and install the compiled component, tapegraph::kernels" OFF)
set(TAPEGRAPH_KERNELS_INSTRUCTION_SETS 7 CACHE STRING
    "Instruction sets of tapegraph::kernels and of what links it, as TG_INSTRUCTION_SETS has them")

set(tapegraph_parts "")
foreach(room convolution cumulative gather movement ordering pooling product random recurrent reduction)
    list(APPEND tapegraph_parts ${room})
    set(tapegraph_headers_of_${room} ops/kernels.hpp)
endforeach()
list(APPEND tapegraph_headers_of_convolution ops/convolution/cpu_fast.hpp)
list(APPEND tapegraph_headers_of_recurrent ops/recurrent/gru.hpp ops/recurrent/lstm.hpp ops/recurrent/simple_rnn.hpp)
list(APPEND tapegraph_headers_of_reduction runtime/several_reductions.hpp)
list(APPEND tapegraph_parts cluster data eager formats graph instructions io nn onnx operations regions registry runtime)
set(tapegraph_headers_of_cluster distributed.hpp)
set(tapegraph_headers_of_data data/class_weights.hpp data/loader.hpp data/pipeline.hpp data/pipeline/csv_rows.hpp data/readers/arrow.hpp
    data/readers/cifar10.hpp data/readers/npy.hpp data/readers/table.hpp data/readers/text_table.hpp data/series/windows.hpp data/synthetic.hpp
    data/tables/discretization.hpp data/tables/encoding.hpp data/tables/hashing.hpp data/tables/normalization.hpp
    data/text/labelled_texts.hpp data/text/skipgrams.hpp data/text/vocabulary.hpp)
set(tapegraph_headers_of_eager tapegraph.hpp)
set(tapegraph_headers_of_formats formats/atomic_folder.hpp formats/csv.hpp formats/csv_reader.hpp formats/dlpack.hpp formats/folder_claim.hpp
    formats/foreign_values.hpp formats/npy.hpp formats/pickle.hpp formats/record_framing.hpp formats/safetensors_json.hpp
    formats/safetensors_shards.hpp formats/safetensors_reader.hpp formats/tensor_of_array.hpp)
set(tapegraph_headers_of_graph tapegraph.hpp graph/scan.hpp graph/traced_program.hpp)
set(tapegraph_headers_of_instructions graph/library_kernels.hpp)
set(tapegraph_headers_of_io io/callbacks/checkpoints.hpp io/callbacks/saving.hpp io/checkpoint_manager.hpp io/foreign_weights.hpp
    io/graph_nodes.hpp io/own_operators.hpp io/weights.hpp io/weights_memory.hpp)
set(tapegraph_headers_of_nn tapegraph.hpp any_model/any_model.hpp nn/constraint.hpp train/callbacks.hpp train/compiled_traces.hpp
    cluster/task_values.hpp compile/traced_calls.hpp)
set(tapegraph_headers_of_onnx io/load_onnx.hpp)
set(tapegraph_headers_of_operations tapegraph.hpp)
set(tapegraph_headers_of_regions ops/compiled_regions.hpp)
set(tapegraph_headers_of_registry graph/library_kernels.hpp graph/operation_names.hpp)
set(tapegraph_headers_of_runtime cpu/caches.hpp cpu/interpreter.hpp ops/effect/kernel.hpp runtime/kept_blocks.hpp runtime/perform.hpp runtime/placement_log.hpp runtime/scalar.hpp)

# The quick suite compiles the others quickly: in these it spends its time.
set(tapegraph_fast_parts convolution product)

# Passes that make code faster and no result different. Without them -O1 takes a third less for models, whose code runs for
# milliseconds: 81 processor seconds became 53 (four tests of models, Zen 3; -O0 takes 47, but fuses no multiplication
# with an addition and so rounds differently). Device kernels run a sixth longer on their executor without them and compile a fifth
# faster, which is more. What may be used uninitialised g++ only knows with them: programs that are compiled with all of them ask it.
set(tapegraph_passes_left_out
    -fno-tree-pta -fno-tree-dse -fno-tree-dominator-opts -fno-tree-fre -fno-tree-sink -fno-tree-copy-prop -fno-tree-dce -fno-tree-slsr
    -fno-tree-bit-ccp -fno-tree-ch -fno-tree-loop-im -fno-move-loop-invariants -fno-ssa-phiopt -fno-ipa-modref -fno-ipa-pure-const
    -fno-ipa-reference -fno-inline-functions-called-once -fno-dse -fno-dce -fno-if-conversion -fno-if-conversion2 -fno-shrink-wrap
    -fno-cprop-registers -fno-forward-propagate -fno-combine-stack-adjustments -fno-auto-inc-dec -fno-reorder-blocks
    -fno-split-wide-types -Wno-maybe-uninitialized)

# A static library of all parts. `base` is what its sources and its users link.
function(tapegraph_add_kernels target base)
    set(sources "")
    foreach(part IN LISTS tapegraph_parts)
        set(text "")
        foreach(header IN LISTS tapegraph_headers_of_${part})
            string(APPEND text "#include <tapegraph/${header}>\n")
        endforeach()
        set(source "${PROJECT_BINARY_DIR}/kernels/${part}.cpp")
        file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
        set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS TG_PART=${part})
        # The rest rounds the same with the quick suite's -O1 and without these passes, and compiles in half the time.
        if(TAPEGRAPH_BUILD_TESTS AND CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O1" AND NOT part IN_LIST tapegraph_fast_parts)
            set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS
                "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-O1>;$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fexpensive-optimizations;-fno-schedule-insns2;${tapegraph_passes_left_out}>")
        endif()
        list(APPEND sources "${source}")
    endforeach()
    add_library(${target} STATIC EXCLUDE_FROM_ALL ${sources})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${target} PUBLIC ${base})
    target_compile_definitions(${target} PRIVATE TG_COMPONENT=2 INTERFACE TG_COMPONENT=1)
    # Kernels are worth optimising in every build; sections let the linker leave out what a program does not call.
    target_compile_options(${target} PRIVATE
        "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-O2;-ffunction-sections;-fdata-sections>")
    if(UNIX AND NOT APPLE)
        target_link_options(${target} INTERFACE -Wl,--gc-sections)
    endif()
endfunction()

tapegraph_add_kernels(tapegraph_kernels tapegraph)
add_library(tapegraph::kernels ALIAS tapegraph_kernels)
set_target_properties(tapegraph_kernels PROPERTIES EXPORT_NAME kernels)
if(NOT TAPEGRAPH_KERNELS_INSTRUCTION_SETS EQUAL 7)
    target_compile_definitions(tapegraph_kernels PUBLIC TG_INSTRUCTION_SETS=${TAPEGRAPH_KERNELS_INSTRUCTION_SETS})
endif()
if(TAPEGRAPH_KERNELS)
    set_target_properties(tapegraph_kernels PROPERTIES EXCLUDE_FROM_ALL FALSE)
endif()
