// Tests displacements with wave vectors that come from files of displaced supercells.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/support/planned_deck.hpp"
#include "tests/gw/support/supercell_files.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"
#include "workers/gw/solver/perturbation/state_coupling.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {
namespace {

using test::DisplacedSupercell;
using test::SupercellFiles;

const std::string kSigma =
    "[epsilon]\ncutoff_ry = 3.0\nbands = 11\n[sigma]\nbands = 11\nband_max = 5\n[perturbation]\n";
const std::string kFiles = "[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n" + kSigma;
const std::string kBuiltIn =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nk_grid = [3, 1, 1]\n"
    "bands = 14\nlong_wave = \"states\"\n" +
    kSigma;
const std::string kWaves = "q = [[0.3333, 0, 0], [-0.3333, 0, 0], [0, 0, 0]]\n";

Calculation run_deck(const std::string& deck, const std::filesystem::path& directory) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  return run_calculation(parse_deck(deck, {}, "test", directory), *kernels, std::int64_t{1} << 30,
                         silent);
}

/// Returns all elements of the first displacement, at q = 0 and then at the other wave vectors.
std::vector<Cplx> all_elements(const Calculation& run) {
  std::vector<Cplx> list;
  const auto add = [&](const std::vector<ElementsAtK>& at_k) {
    for (const ElementsAtK& at : at_k)
      for (const auto* matrix : {&at.mean_field, &at.sigma_bra, &at.sigma_ket, &at.fixed_energies})
        list.insert(list.end(), matrix->begin(), matrix->end());
  };
  add(run.displacements->at[0]);
  for (const WaveVectorElements& at_q : run.wave_vectors) add(at_q.elements.at[0]);
  return list;
}

double largest_difference(const std::vector<Cplx>& a, const std::vector<Cplx>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// Files of the supercell 3 × 1 × 1 give the elements of the built-in crystal at all q of its
// grid. The central difference misses them by h²: by a quarter at half of h. The combination of
// two steps without h² meets them to 1e-10 Ry/Bohr, which is h⁴ and rounding over h.
TEST(SupercellFiles, GiveTheElementsOfTheBuiltInCrystal) {
  const SupercellFiles files;
  const Calculation exact =
      run_deck(kBuiltIn + "atoms = [2]\ndirections = [\"z\"]\n" + kWaves, ".");
  ASSERT_EQ(exact.wave_vectors.size(), 2u);
  const std::vector<Cplx> expected = all_elements(exact);
  std::vector<std::vector<Cplx>> found;
  for (const double h : {0.008, 0.004}) {
    const std::string name = h > 0.005 ? "a" : "b";
    // Atom 4 of the supercell is atom 2 of the second cell.
    files.write_pair(name, {.listed = 3, .by_bohr = {0.0, 0.0, h}, .vxc_share = 0.4});
    const Calculation run =
        run_deck(kFiles + "displaced = [\"" + name + "+\", \"" + name + "-\"]\n" + kWaves,
                 files.directory.path());
    EXPECT_EQ(run.displacements->displacements[0].name(), "atom 2 z");
    EXPECT_DOUBLE_EQ(run.wave_vectors[0].q[0], 1.0 / 3.0);
    found.push_back(all_elements(run));
    for (const WaveVectorElements& at_q : run.wave_vectors)
      for (const ElementsAtK& at : at_q.elements.at[0])
        for (std::size_t i = 0; i < at.mean_field.size(); ++i) {
          EXPECT_LT(std::abs(at.vxc[i] - 0.4 * at.mean_field[i]), 1e-12);
          EXPECT_LT(std::abs(at.gw(i) - (at.mean_field[i] - at.vxc[i] + at.sigma(i))), 1e-15);
        }
  }
  const double error = largest_difference(found[0], expected),
               half = largest_difference(found[1], expected);
  EXPECT_GT(error, 1e-8);
  EXPECT_LT(error, 1e-4);
  EXPECT_NEAR(error / half, 4.0, 0.01);
  for (std::size_t i = 0; i < expected.size(); ++i)
    found[0][i] = (4.0 * found[1][i] - found[0][i]) / 3.0;
  EXPECT_LT(largest_difference(found[0], expected), 1e-10);
}

// The group at q, the table and the summary hold g of GW, and its parts add up.
TEST(SupercellFiles, JobsWriteTheCouplingsOfGw) {
  const SupercellFiles files;
  files.write_pair("a", {.vxc_share = 0.4});
  const std::string deck = kFiles + "q = [[0.3333, 0, 0]]\ndisplaced = [\"a+\", \"a-\"]\n";
  const Calculation run = run_deck(deck, files.directory.path());
  EXPECT_FALSE(run.displacements);
  write_result(files.directory.path() / "result.h5", run, std::nullopt, {});
  const H5Reader file(files.directory.path() / "result.h5");
  const auto values = [&](const char* name) {
    const std::string path = std::string("/perturbations_at_q/") + name;
    EXPECT_EQ(file.text_attribute(path, "units"), "eV/Bohr");
    EXPECT_EQ(file.shape(path), (std::vector<std::int64_t>{1, 1, 3, 5, 5, 2}));
    return file.doubles(path);
  };
  const auto g = values("mean_field"), vxc = values("vxc"), bra = values("sigma_bra"),
             ket = values("sigma_ket"), gw_bra = values("gw_bra"), gw_ket = values("gw_ket"),
             gw = values("gw");
  for (std::size_t i = 0; i < g.size(); ++i) {
    EXPECT_NEAR(vxc[i], 0.4 * g[i], 1e-12);
    EXPECT_NEAR(gw_bra[i], g[i] - vxc[i] + bra[i], 1e-12);
    EXPECT_NEAR(gw_ket[i], g[i] - vxc[i] + ket[i], 1e-12);
    EXPECT_NEAR(gw[i], 0.5 * (gw_bra[i] + gw_ket[i]), 1e-12);
  }
  const auto summary = summary_of(run, find_device("cpu"), 1);
  const auto& row = summary.at("perturbations_at_q").at("rows").at(0);
  EXPECT_NEAR(row.at("vxc_ev_per_bohr").get<double>(),
              0.4 * row.at("mean_field_ev_per_bohr").get<double>(), 1e-12);
  const std::string table = table_of(summary);
  EXPECT_NE(table.find("dV_xc       g GW   g GW/g"), std::string::npos) << table;
}

/// Returns the largest deviation of ∂Σ from finite displacements, Ry/Bohr.
double largest_deviation(const std::vector<ElementsAtK>& at_k) {
  double largest = 0.0;
  for (const ElementsAtK& at : at_k) {
    EXPECT_EQ(at.difference.size(), at.mean_field.size());
    largest = std::max(largest, largest_deviation_ry(at));
  }
  return largest;
}

// check_step_bohr compares ∂Σ with finite displacements at q = 0 and at other q, with files and
// for the built-in crystal, by static COHSEX and by plasmon poles. Without rules near the poles and
// away from the lowest band, whose energy lies among the poles, the deviation is of order h².
TEST(SupercellFiles, FiniteDisplacementsCheckJobs) {
  const SupercellFiles files;
  files.write_pair("a", {});
  const auto strict = [](std::string deck, const std::string& method) {
    deck.insert(deck.find("[perturbation]"),
                "pole_half_width_ev = 0.0\nsx_cut = 1e6\nband_min = 4\n" +
                    ("method = \"" + method) + "\"\n");
    return deck + "check_step_bohr = 0.002\n" + kWaves;
  };
  for (const char* method : {"cohsex", "hl-gpp"}) {
    const Calculation of_files = run_deck(strict(kFiles + "displaced = [\"a+\", \"a-\"]\n", method),
                                          files.directory.path()),
                      built_in = run_deck(
                          strict(kBuiltIn + "atoms = [2]\ndirections = [\"z\"]\n", method), ".");
    for (const Calculation* run : {&of_files, &built_in})
      for (const WaveVectorElements& at_q : run->wave_vectors) {
        EXPECT_LT(largest_deviation(at_q.elements.at[0]), 1e-6) << method;
        EXPECT_GT(largest_deviation(at_q.elements.at[0]), 1e-12) << method;
      }
    EXPECT_LT(largest_deviation(of_files.displacements->at[0]), 1e-6) << method;
    write_result(files.directory.path() / "result.h5", of_files, std::nullopt, {});
    const H5Reader file(files.directory.path() / "result.h5");
    const auto sigma = file.doubles("/perturbations_at_q/sigma"),
               difference = file.doubles("/perturbations_at_q/sigma_difference");
    ASSERT_EQ(sigma.size(), difference.size());
    for (std::size_t i = 0; i < sigma.size(); ++i) EXPECT_NEAR(sigma[i], difference[i], 2e-5);
    const std::string table = table_of(summary_of(of_files, find_device("cpu"), 1));
    const auto first = table.find("finite displacements deviate from dSigma");
    ASSERT_NE(first, std::string::npos) << table;
    EXPECT_NE(table.find("finite displacements deviate from dSigma", first + 1), std::string::npos);
  }
}

/// Returns k or K = k + G in Cartesian coordinates.
Vec3 cartesian(const Crystal& crystal, const Vec3& k) {
  Vec3 wave{};
  for (std::size_t i = 0; i < 3; ++i) wave = wave + crystal.blat_per_bohr * k[i] * crystal.bvec[i];
  return wave;
}

/// Expects ∂V of a pair with wave vector p to be the closed form of its two potentials.
void expect_closed_form(const MeanField& field, const FileDisplacement& found, const Vec3& p,
                        std::size_t atom, std::size_t axis) {
  const Crystal& crystal = field.crystal();
  const double h = found.step_bohr;
  const Vec3 tau = crystal.alat_bohr * crystal.atoms[atom].position_alat;
  const EmpiricalCrystal wanted = SupercellFiles::crystal({1, 1, 1});
  Vec3 direction{};
  direction[axis] = 1.0;
  // The local part of the built-in crystal by plane waves, of which the test takes v_a(|K|²)/N_at.
  const Perturbation local = atom_displacement(wanted, crystal, static_cast<int>(atom), direction,
                                               {.p = p, .all_lengths = true});
  const Perturbation of_files = found.potential_at(p);
  double largest = 0.0, nonlocal = 0.0;
  for (std::size_t ik = 0; ik < field.waves.k.size(); ++ik) {
    // A reciprocal vector on top of the listed k changes the plane waves alone.
    const Vec3 k = field.waves.k[ik] + Vec3{1.0, 0.0, -1.0};
    const BraPoint bra = bra_point(k, p);
    const auto at_bra = static_cast<std::size_t>(field.zone.rotation_to(bra.k).irreducible);
    std::vector<IVec3> left, right;
    for (const IVec3& g : field.waves.waves[at_bra].g) left.push_back(g - bra.umklapp);
    for (const IVec3& g : field.waves.waves[ik].g) right.push_back(g - IVec3{1, 0, -1});
    const std::vector<Cplx> matrix = of_files.potential(k, left, right),
                            exact = local.potential(k, left, right);
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t j = 0; j < right.size(); ++j) {
        const Vec3 row = cartesian(crystal, k + p + to_real(left[i])),
                   column = cartesian(crystal, k + to_real(right[j]));
        const double along = (row - column)[axis],
                     sinc = along == 0.0 ? 1.0 : std::sin(along * h) / (along * h);
        Cplx separable;
        for (int x = 0; x < 2; ++x)
          for (int y = 0; y < 2; ++y)
            separable += test::projector(x, row) * test::projector_strength(x, y) *
                         std::conj(test::projector(y, column));
        separable *= Cplx(0.0, -along) * sinc / crystal.volume_bohr3 *
                     std::polar(1.0, -dot(row - column, tau));
        const Cplx expected = sinc * exact[i * right.size() + j] + separable;
        EXPECT_LT(std::abs(matrix[i * right.size() + j] - expected), 1e-12)
            << ik << ' ' << i << ' ' << j << matrix[i * right.size() + j] << expected;
        largest = std::max(largest, std::abs(expected));
        nonlocal = std::max(nonlocal, std::abs(separable));
      }
  }
  EXPECT_GT(largest, 0.01);
  EXPECT_GT(nonlocal, 0.001);
}

// Between plane waves ∂V is the closed form of a local potential and of separable projectors,
// with the factor sin(K·h)/(K·h) of a central difference. The supercell repeats half of the grid,
// so that its VKB has two k-points, and the displaced atom lies in another cell than that of WFN.
// 1e-12 Ry/Bohr is rounding over h.
TEST(SupercellFiles, ProjectorsAndPotentialsHaveTheirClosedForm) {
  const SupercellFiles files({4, 1, 2});
  const DisplacedFolders folders = files.write_pair("a", {.repeats = {2, 1, 2},
                                                          .listed = 7,
                                                          .by_bohr = {0.01, 0.0, 0.0},
                                                          .k = {Vec3{}, Vec3{0.5, 0.0, 0.0}},
                                                          .with_projectors = true});
  const std::vector<FileDisplacement> list = file_displacements({folders}, files.field);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].displacement.name(), "atom 2 x");
  EXPECT_EQ(list[0].supercell.n_cells(), 4);
  EXPECT_FALSE(list[0].has_vxc);
  for (const Vec3& p : {Vec3{}, Vec3{0.5, 0.0, 0.0}, Vec3{0.0, 0.0, 0.5}, Vec3{0.5, 0.0, 0.5}})
    expect_closed_form(files.field, list[0], p, 1, 0);
}

// The rows of an integer matrix give the lattice vectors of a supercell in those of the crystal.
// The determinant is the number of cells that it holds. A wave vector of the crystal, written in
// the reciprocal vectors of the supercell and read back, is the same wave vector.
TEST(Supercell, HoldsAnyWholeCombinations) {
  const Supercell oblique(IMat3{{{1, 1, 0}, {-1, 2, 0}, {1, 0, 2}}});
  ASSERT_EQ(oblique.n_cells(), 6);
  std::vector<IVec3> cells;
  for (int i = -3; i <= 3; ++i)
    for (int j = -3; j <= 3; ++j)
      for (int k = -3; k <= 3; ++k) {
        const IVec3 cell = oblique.folded_cell({i, j, k});
        if (std::find(cells.begin(), cells.end(), cell) == cells.end()) cells.push_back(cell);
        EXPECT_EQ(oblique.folded_cell(IVec3{i, j, k} + IVec3{-1, 2, 0}), cell);
        EXPECT_EQ(oblique.folded_cell(IVec3{i, j, k} - IVec3{1, 0, 2}), cell);
        const IVec3 g{i, j, k};
        EXPECT_EQ(oblique.cell_vector_of(oblique.coordinates_of(g)), g);
      }
  EXPECT_EQ(cells.size(), 6u);
  EXPECT_FALSE(oblique.cell_vector_of({1, 0, 0}));
  // (q₁ + q₂, −q₁ + 2q₂, q₁ + 2q₃) are whole.
  EXPECT_EQ(oblique.vector_of({2.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0}), (IVec3{1, 0, 1}));
  EXPECT_FALSE(oblique.vector_of({0.5, 0.0, 0.0}));
}

}  // namespace
}  // namespace quasi::gw
