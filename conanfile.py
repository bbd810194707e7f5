"""The Conan 2 package: `conan create .` makes it of this checkout, `conan install --requires=tapegraph/VERSION` uses it."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class TapeGraph(ConanFile):
    name = "tapegraph"
    license = "MIT"
    description = "Automatic differentiation and neural networks in C++20: one model, two modes"
    topics = ("autodiff", "automatic-differentiation", "neural-network", "deep-learning", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "cuda/*"
    no_copy_source = True
    test_package_folder = "tests/consume/conan"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/tapegraph/version.hpp"))
        self.version = ".".join(re.findall(r"TAPEGRAPH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()  # headers alone: one package for all settings

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCHMARKS", "MPI", "CCACHE"):
            toolchain.variables[f"TAPEGRAPH_{name}"] = False
        toolchain.variables["TAPEGRAPH_CUDA"] = "OFF"
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package's own CMake files say which options users need, and find OpenMP on their machine.
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/tapegraph"]
