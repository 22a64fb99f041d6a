#pragma once

#include <string>
#include <vector>

#include "tests/gw/support/reference_files.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"
#include "workers/gw/solver/mean_field/dense_hamiltonian.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"

namespace quasi::gw::test {

inline const std::string kDisplacedFiles[] = {"VSC", "VKB", "VXC"};

/// Holds silicon at rest and with atom 1 displaced by ±0.01 Bohr along z, at Γ.
struct DisplacedSilicon {
  ReferenceCase rest{"gwpt/eq"}, plus{"gwpt/p"}, minus{"gwpt/m"};

  DisplacedSilicon() {
    for (const std::string& name : kDisplacedFiles)
      for (ReferenceCase* files : {&rest, &plus, &minus}) files->file(name);
  }
  DisplacedFolders folders() const { return {plus.directory(), minus.directory()}; }
  /// Returns the mean field of the files. @param bands  of the matrix of H; 0: those of WFN
  MeanField field(int bands = 0) {
    Wavefunctions waves = read_wavefunctions(rest.file("WFN"));
    if (bands > 0) {
      const auto kernels = make_gw_kernels(find_device("cpu"));
      const std::vector<Cplx> h = dense_hamiltonian(
          waves, 0, 0, read_field(rest.file("VSC"), "VSC"), read_projectors(rest.file("VKB")));
      const auto n_pw = static_cast<std::int64_t>(waves.waves[0].g.size());
      std::vector<Cplx> states(static_cast<std::size_t>(bands * n_pw));
      waves.energy_ry.resize(static_cast<std::size_t>(bands));
      kernels->dense().eigen_hermitian(view<const Cplx>(h, n_pw, n_pw),
                                       view<double>(waves.energy_ry, bands),
                                       view<Cplx>(states, bands, n_pw));
      waves.n_bands = bands;
      waves.occupation.resize(static_cast<std::size_t>(bands));
      waves.waves[0].coefficients[0] = states;
    }
    return make_mean_field(std::move(waves), std::nullopt, read_field(rest.file("RHO"), "RHO"));
  }
  std::string deck() {
    const auto path = [](const std::filesystem::path& p) { return "\"" + p.string() + "\"\n"; };
    return "[meanfield]\nwfn = " + path(rest.file("WFN")) + "rho = " + path(rest.file("RHO")) +
           "max_projector_residual = 1e-3\nvsc = " + path(rest.file("VSC")) +
           "vkb = " + path(rest.file("VKB")) +
           "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 8\n[perturbation]\n";
  }
  std::string displaced() const {
    return "displaced = [\"" + plus.directory().string() + "\", \"" + minus.directory().string() +
           "\"]\n";
  }
};

}  // namespace quasi::gw::test
