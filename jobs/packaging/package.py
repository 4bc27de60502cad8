# Not run: there was no Spack where this was written. It compiles as Python, and its options are those of CMakeLists.txt.
#
# In a repository of packages (Spack 1.0 or newer): spack_repo/NAME/packages/hypersort/package.py. Then
#
#     spack install hypersort +cuda cuda_arch=90
from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Hypersort(CMakePackage, CudaPackage):
    """Sorts arrays of numbers and records that are spread over the GPUs, or the CPU cores, of an MPI program."""

    homepage = "https://hypersort.example"  # where the project lies for you
    git = "https://hypersort.example/hypersort.git"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("fortran", default=False, description="Compile the Fortran module once, to see that it does")

    variant("hdf5", default=False, description="Let the command sort groups and datasets of HDF5 files")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("fortran", type=("build", "test"), when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("gzip", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("hwloc")
    depends_on("cuda@12.5:", when="+cuda")
    depends_on("hdf5@1.10.2: +mpi", when="+hdf5")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90, or 80, 100, 120")

    def cmake_args(self):
        args = [self.define_from_variant("HYPERSORT_CUDA", "cuda"), self.define_from_variant("HYPERSORT_HDF5", "hdf5"),
                self.define("HYPERSORT_TESTS", False)]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", join_path(self.prefix.share, "hypersort", "python"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.hypersort)("--version")
        if self.spec.satisfies("+fortran"):
            module = join_path(self.prefix.share, "hypersort", "fortran", "hypersort.f90")
            Executable(self.compiler.fc)("-c", module, "-o", "hypersort_module.o")
