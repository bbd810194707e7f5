# tapegraph::mpi, what <tapegraph/mpi.hpp> needs, when an MPI is found. Used by this project and installed for
# find_package(tapegraph COMPONENTS mpi). MPI::MPI_C or MPI::MPI_CXX is taken where the project has found one itself; otherwise the
# compiler wrapper of an MPI is asked (TAPEGRAPH_MPICC: mpicc, or mpicc.mpich beside another one), which find_package(MPI) does only
# in projects with the language C.

# An imported target with what a wrapper would add to the compiler.
function(tapegraph_mpi_target name wrapper)
    execute_process(COMMAND "${wrapper}" -show OUTPUT_VARIABLE line ERROR_QUIET RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
        return()
    endif()
    separate_arguments(words UNIX_COMMAND "${line}")
    set(folders ${words})
    list(FILTER folders INCLUDE REGEX "^-I")
    list(TRANSFORM folders REPLACE "^-I" "")
    list(FILTER words INCLUDE REGEX "^(-L|-l|-Wl,-rpath|-Wl,--enable-new-dtags|-pthread)")
    add_library(${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${name} SYSTEM INTERFACE ${folders})
    target_link_libraries(${name} INTERFACE ${words})
endfunction()

if(NOT TARGET tapegraph::mpi)
    foreach(target MPI::MPI_C MPI::MPI_CXX)
        if(TARGET ${target} AND NOT TARGET tapegraph::mpi)
            add_library(tapegraph::mpi INTERFACE IMPORTED GLOBAL)
            target_link_libraries(tapegraph::mpi INTERFACE ${target})
        endif()
    endforeach()
    find_program(TAPEGRAPH_MPICC NAMES mpicc mpicc.openmpi mpicc.mpich)
    mark_as_advanced(TAPEGRAPH_MPICC)
    if(TAPEGRAPH_MPICC AND NOT TARGET tapegraph::mpi)
        tapegraph_mpi_target(tapegraph::mpi "${TAPEGRAPH_MPICC}")
    endif()
    if(TARGET tapegraph::mpi)
        target_compile_definitions(tapegraph::mpi INTERFACE TG_MPI)
    endif()
endif()
