// Displacements from the files of displaced crystals: tables, jobs and results.

#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/gw/support/displaced_silicon.hpp"
#include "tests/gw/support/phonon_mode_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/gw/output/mode_results.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/output/vertex_files.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/perturbation/atom_displacement.hpp"
#include "workers/gw/solver/perturbation/state_coupling.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

using quasi::test::TemporaryDirectory;
using test::DisplacedSilicon;

// g and ⟨∂V_xc⟩ of bands 4 and 5 of the tables. 5e-5 eV/Bohr: the members of a triplet are
// chosen by splittings of 1e-8 eV. The phase of the element between them is open.
TEST(DisplacedFiles, GiveTheTabulatedCouplings) {
  QUASI_NEED_REFERENCE("gw/gwpt");
  DisplacedSilicon files;
  const MeanField field = files.field(283);
  const std::vector<FileDisplacement> list = file_displacements({files.folders()}, field);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].displacement.name(), "atom 1 z");
  EXPECT_NEAR(list[0].step_bohr, 0.01, 1e-9);
  const std::vector<IVec3>& g = field.waves.waves[0].g;
  const auto element_ev = [&](const std::vector<Cplx>& matrix, std::size_t a, std::size_t b) {
    const StateCoefficients& c = field.waves.waves[0].coefficients[0];
    Cplx sum;
    for (std::size_t i = 0; i < g.size(); ++i)
      for (std::size_t j = 0; j < g.size(); ++j)
        sum += std::conj(c.data()[a * g.size() + i]) * matrix[i * g.size() + j] *
               c.data()[b * g.size() + j];
    return sum * kRydberg_ev;
  };
  // At k = (1, 0, −1), which is Γ, the plane waves k + G are those of G shifted by it.
  std::vector<IVec3> shifted;
  for (const IVec3& x : g) shifted.push_back(x - IVec3{1, 0, -1});
  for (const auto& [k, waves] : {std::pair{Vec3{}, g}, std::pair{Vec3{1, 0, -1}, shifted}}) {
    const std::vector<Cplx> dv = list[0].potential_at({}).potential(k, waves, waves);
    EXPECT_LT(std::abs(element_ev(dv, 3, 3) - 1.99089740e+00), 5e-5);
    EXPECT_LT(std::abs(element_ev(dv, 4, 4) + 1.25088763e+00), 5e-5);
    EXPECT_NEAR(std::abs(element_ev(dv, 3, 4)), 5.17396917e-01, 5e-5);
  }
  const GIndex index(g);
  std::vector<Cplx> vxc(g.size() * g.size());
  for (const auto& [difference, value] : list[0].vxc_at({}).elements)
    for (std::size_t i = 0; i < g.size(); ++i)
      if (const std::int32_t j = index.find(g[i] - difference); j >= 0)
        vxc[i * g.size() + static_cast<std::size_t>(j)] += value;
  EXPECT_LT(std::abs(element_ev(vxc, 3, 3) - 4.24037948e-01), 5e-5);
  EXPECT_LT(std::abs(element_ev(vxc, 4, 4) + 2.45151438e-01), 5e-5);
  EXPECT_NEAR(std::abs(element_ev(vxc, 3, 4)), 2.12665445e-01, 5e-5);
}

double norm_of(const std::vector<double>& values, std::size_t first, std::size_t last,
               std::size_t n) {
  double sum = 0.0;
  for (std::size_t l = first; l < last; ++l)
    for (std::size_t m = first; m < last; ++m)
      for (const std::size_t part : {0u, 1u})
        sum += values[2 * (l * n + m) + part] * values[2 * (l * n + m) + part];
  return std::sqrt(sum);
}

// A job writes g, ⟨∂V_xc⟩, ⟨∂Σ⟩ and g^GW at both energies, which add up. Norms over
// the valence top, three bands, do not depend on its basis. Symmetry leaves one number of each
// matrix there, so that the ratio of V_xc to g is that of one element in the tables, to 1e-3. The
// norm of g exceeds that of the diagonal elements of the tables. W of the job is not that of the
// tables, so that the enhancement of 1.21 there is met within 0.1.
TEST(DisplacedFiles, JobsWriteTheCouplingsOfGw) {
  QUASI_NEED_REFERENCE("gw/gwpt");
  DisplacedSilicon files;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Calculation run =
      run_calculation(parse_deck(files.deck() + files.displaced(), {}, "test", "."), *kernels,
                      std::int64_t{1} << 30, silent);
  const TemporaryDirectory directory;
  write_result(directory.path() / "result.h5", run, std::nullopt, {});
  const H5Reader file(directory.path() / "result.h5");
  const auto values = [&](const char* name) {
    const std::string path = std::string("/perturbations/") + name;
    EXPECT_EQ(file.text_attribute(path, "units"), "eV/Bohr");
    return file.doubles(path);
  };
  const auto g = values("mean_field"), vxc = values("vxc"), bra = values("sigma_bra"),
             ket = values("sigma_ket"), gw_bra = values("gw_bra"), gw_ket = values("gw_ket"),
             gw = values("gw");
  double largest = 0.0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    EXPECT_NEAR(gw_bra[i], g[i] - vxc[i] + bra[i], 1e-12);
    EXPECT_NEAR(gw_ket[i], g[i] - vxc[i] + ket[i], 1e-12);
    EXPECT_NEAR(gw[i], 0.5 * (gw_bra[i] + gw_ket[i]), 1e-12);
    largest = std::max(largest, std::abs(gw[i] - g[i]));
  }
  EXPECT_GT(largest, 0.1);
  // Eigenvalues −g, 0 and g of the triplet have the diagonal elements g(|a|² − |b|²).
  const double triplet_ev = norm_of(g, 1, 4, 8);
  EXPECT_GT(triplet_ev, std::sqrt(0.137468420 * 0.137468420 + 0.00885979017 * 0.00885979017 +
                                  0.146328267 * 0.146328267) *
                            kRydberg_ev);
  EXPECT_NEAR(norm_of(vxc, 1, 4, 8) / triplet_ev, 0.424037948 / 1.99089740, 1e-3);
  EXPECT_NEAR(norm_of(gw, 1, 4, 8) / triplet_ev, 1.2114, 0.1);
  const std::string table = table_of(summary_of(run, find_device("cpu"), 1));
  EXPECT_NE(table.find("g GW/g"), std::string::npos) << table;
  EXPECT_EQ(table.find("which the built-in crystals lack"), std::string::npos);
}

/// Runs a small job of GaAs with phonon modes. @param sigma  lines of the table [sigma]
Calculation run_with_modes(const std::string& sigma) {
  const TemporaryDirectory directory;
  test::GalliumArsenideModes{}.write_text(directory.path() / "modes");
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(
      parse_deck("[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 3.0\nbands = 8\n"
                 "[epsilon]\ncutoff_ry = 2.0\n[sigma]\n" +
                     sigma + "[perturbation]\nmodes = \"modes\"\n",
                 {}, "test", directory.path()),
      *kernels, std::int64_t{1} << 30, silent);
}

// The test computes the size of g^GW over degenerate modes and bands, and reads it in the file and
// in the table. V_xc is half of g here, so that g^GW = g/2 + ⟨∂Σ⟩.
TEST(DisplacedFiles, EnhancementsAreThoseOfTheSets) {
  const TemporaryDirectory directory;
  Calculation run = run_with_modes("");
  for (auto& at_k : run.displacements->at)
    for (ElementsAtK& at : at_k)
      for (const Cplx& g : at.mean_field) at.vxc.push_back(0.5 * g);
  run.phonons = mode_elements(run.phonons->modes, *run.displacements, run.field.waves);
  const ModeElements& phonons = *run.phonons;
  const auto n = static_cast<std::size_t>(run.displacements->band_max);
  int compared = 0;
  for (const ModeCoupling& c : phonons.couplings) {
    double g2 = 0.0, gw2 = 0.0;
    int count = 0;
    for (std::size_t m = 3; m < 6; ++m)
      for (int l = c.bra.first; l <= c.bra.second; ++l)
        for (int k = c.ket.first; k <= c.ket.second; ++k, ++count) {
          const std::size_t i =
              static_cast<std::size_t>(l - 1) * n + static_cast<std::size_t>(k - 1);
          const ModeElementsAtK& at = phonons.at[m][c.k];
          g2 += std::norm(at.mean_field_ev[i]);
          gw2 += std::norm(0.5 * at.mean_field_ev[i] + at.sigma_ev[i]);
        }
    ASSERT_TRUE(c.gw_ev);
    EXPECT_NEAR(*c.gw_ev, std::sqrt(gw2 / count), 1e-12);
    if (!c.enhancement) continue;
    EXPECT_NEAR(*c.enhancement, std::sqrt(gw2 / g2), 1e-9 * *c.enhancement);
    ++compared;
  }
  EXPECT_GT(compared, 3);
  const auto summary = summary_of_modes(phonons, *run.displacements, run.field);
  EXPECT_NE(table_of_modes(summary).find("enhancement of couplings by GW"), std::string::npos);
  for (const auto& row : summary.at("rows"))
    if (row.contains("enhancement")) {
      const double angstrom = kBohr_angstrom * phonons.modes.cell_amplitude_bohr(3);
      EXPECT_NEAR(row.at("potential_gw_ev_per_angstrom").get<double>(),
                  1e-3 * row.at("gw_mev").get<double>() / angstrom, 1e-9);
    }
  write_vertices(directory.path(), phonons, *run.displacements, run.field);
  std::ifstream in(directory.path() / "g_gw.dat");
  std::size_t rows = 0, k_lines = 0;
  bool found = false;
  int ik = -1;
  for (std::string line; std::getline(in, line);) {
    if (line.find("ik =") != std::string::npos) ik = run.displacements->k_index[k_lines++];
    std::istringstream words(line);
    int ket = 0, bra = 0, mode = 0;
    double at_k = 0.0, at_q = 0.0, energy = 0.0, size = 0.0;
    if (!(words >> ket >> bra >> mode >> at_k >> at_q >> energy >> size)) continue;
    ++rows;
    EXPECT_NEAR(at_k, run.field.waves.energy(0, ik, ket - 1) * kRydberg_ev, 1e-4);
    EXPECT_NEAR(at_q, run.field.waves.energy(0, ik, bra - 1) * kRydberg_ev, 1e-4);
    const ModeCoupling& c = phonons.couplings.front();
    if (mode < 4) {
      EXPECT_EQ(size, 0.0);
    }
    if (mode != 5 || ket != c.ket.first || bra != c.bra.first || found) continue;
    found = true;
    EXPECT_NEAR(size, 1e3 * *c.gw_ev, 1e-9 * size + 1e-12);
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(rows, run.displacements->k_index.size() * n * n * 6);
}

// Zero-point shifts are of second order in g. V_xc makes g^GW twice g here, and all bands are outer
// bands, so that the shifts with g^GW are four times those with g: 1e-9 of them.
TEST(DisplacedFiles, ZeroPointShiftsTakeTheCouplingsOfGw) {
  Calculation run = run_with_modes("band_max = 8\n");
  const auto kernels = make_gw_kernels(find_device("cpu"));
  ASSERT_EQ(run.plan.sigma.bands, run.displacements->band_max);
  for (auto& at_k : run.displacements->at)
    for (ElementsAtK& at : at_k)
      for (std::size_t i = 0; i < at.mean_field.size(); ++i)
        at.vxc.push_back(at.sigma(i) - at.mean_field[i]);
  std::vector<Perturbation> displacements;
  const EmpiricalCrystal crystal{.name = "gaas"};
  for (const Displacement& d : run.displacements->displacements)
    displacements.push_back(
        atom_displacement(crystal, run.field.crystal(), d.atom - 1,
                          {d.direction == 'x' ? 1.0 : 0.0, d.direction == 'y' ? 1.0 : 0.0,
                           d.direction == 'z' ? 1.0 : 0.0}));
  const auto shifts = zero_point_shifts(run.phonons->modes, displacements, run.field,
                                        run.plan.sigma, *run.displacements, *kernels);
  double largest = 0.0;
  for (const auto& of_mode : shifts)
    for (const ZeroPointShifts& at : of_mode)
      for (std::size_t n = 0; n < at.fan_ev.size(); ++n) {
        EXPECT_NEAR(at.fan_gw_ev[n], 4.0 * at.fan_ev[n], 1e-9 * std::abs(at.fan_ev[n]) + 1e-15);
        EXPECT_NEAR(at.debye_waller_gw_ev[n], 4.0 * at.debye_waller_ev[n],
                    1e-9 * std::abs(at.debye_waller_ev[n]) + 1e-15);
        largest = std::max(largest, std::abs(at.fan_ev[n]));
      }
  EXPECT_GT(largest, 1e-4);
}

}  // namespace
}  // namespace quasi::gw
