from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Tapegraph(CMakePackage):
    """Automatic differentiation and neural networks in C++20: one model, two modes."""

    license("MIT")

    # The sources are a checkout's: spack dev-build --source-path DIR tapegraph@1.0.0
    version("1.0.0")

    variant("kernels", default=False, description="The compiled component, tapegraph::kernels")

    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")

    conflicts("%gcc@:11", msg="TapeGraph needs g++ 12 or newer")
    conflicts("%clang@:15", msg="TapeGraph needs clang 16 or newer")

    def cmake_args(self):
        return [
            self.define_from_variant("TAPEGRAPH_KERNELS", "kernels"),
            self.define("TAPEGRAPH_BUILD_TESTS", False),
            self.define("TAPEGRAPH_BUILD_EXAMPLES", False),
            self.define("TAPEGRAPH_BUILD_BENCHMARKS", False),
            self.define("TAPEGRAPH_CCACHE", False),
            self.define("TAPEGRAPH_CUDA", False),
            self.define("TAPEGRAPH_MPI", False),
        ]
