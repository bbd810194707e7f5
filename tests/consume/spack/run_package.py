#!/usr/bin/env python3
"""Runs a Spack package without Spack: run_package.py PACKAGE.PY SOURCE BUILD PREFIX VERSION [VARIANT...]

The directives and the build system are imitations that refuse what Spack would: a directive or a method that they do not
know, a variant that was not declared, arguments that the project's CMake does not use. CMAKE and COMPILER come from the
environment.
"""

import os
import pathlib
import re
import runpy
import subprocess
import sys
import types


class Recipe:
    """What the directives of a package say."""

    def __init__(self):
        self.versions, self.variants, self.dependencies, self.conflicting, self.licence = [], {}, [], [], ""

    def version(self, name):
        self.versions.append(name)

    def variant(self, name, *, default, description):
        self.variants[name] = default

    def depends_on(self, spec, *, type):
        self.dependencies.append((spec, type))

    def conflicts(self, spec, *, msg):
        self.conflicting.append((spec, msg))

    def license(self, name):
        self.licence = name


class CMakePackage:
    """The parts of spack_repo.builtin.build_systems.cmake.CMakePackage that a package of headers uses."""

    chosen = {}

    def define(self, name, value):
        kind = "BOOL" if isinstance(value, bool) else "STRING"
        return f"-D{name}:{kind}={('ON' if value else 'OFF') if kind == 'BOOL' else value}"

    def define_from_variant(self, name, variant):
        return self.define(name, self.chosen[variant])


def main():
    path, source, build, prefix, version, *wanted = sys.argv[1:]
    recipe = Recipe()
    directives = types.ModuleType("spack.package")
    for name in ("version", "variant", "depends_on", "conflicts", "license"):
        setattr(directives, name, getattr(recipe, name))
    system = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    system.CMakePackage = CMakePackage
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["spack.package"], sys.modules[system.__name__] = directives, system

    package = runpy.run_path(path)["Tapegraph"]()
    problems = []
    if pathlib.Path(path).parent.name != type(package).__name__.lower():
        problems.append("the folder has not the package's name")
    if version not in recipe.versions:
        problems.append(f"version {version} of the project is none of {recipe.versions}")
    if not type(package).__doc__ or not recipe.licence:
        problems.append("the package has no description or no licence")
    if not any(spec.startswith("cmake@") for spec, _ in recipe.dependencies):
        problems.append("the package needs cmake")
    for name in wanted:
        if name not in recipe.variants:
            problems.append(f"there is no variant {name}")
    if problems:
        sys.exit("\n".join(problems))

    package.chosen = {name: name in wanted or default for name, default in recipe.variants.items()}
    cmake = os.environ.get("CMAKE", "cmake")
    done = subprocess.run([cmake, "-S", source, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                           f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_CXX_COMPILER={os.environ['COMPILER']}",
                           *package.cmake_args()], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    unused = re.search(r"Manually-specified variables were not used by the project:\n\n(.*)", said, re.DOTALL)
    if done.returncode != 0 or unused:
        sys.exit(said)
    subprocess.run([cmake, "--build", build, "--target", "install"], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
