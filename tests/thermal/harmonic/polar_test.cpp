// Tests polar crystals with the rigid-ion model of rock salt, whose long waves are known in closed
// form, through every layout of deck that can hold it.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "examples/thermal/generate/deck_writer.hpp"
#include "examples/thermal/generate/rigid_ion.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/thermal/input/deck/crystal_input.hpp"
#include "workers/thermal/solver/harmonic/dipole_sum.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSupercell = "supercell";
constexpr const char* kMixedSpace = "mixed_space";  // the supercell with that method
constexpr const char* kEspresso = "espresso";
constexpr const char* kPhonopy = "phonopy";
constexpr const char* kSilicon = "silicon";  // for comparison: no charges

/// Writes the supercell deck in the form of phonopy for 4×4×4 primitive cells, with the charges in
/// BORN.
void write_phonopy_twin(const fs::path& from, const fs::path& to) {
  const Control control = read_control(from, std::vector<Setting>{});
  const Crystal crystal = make_crystal(control);
  std::ifstream in(from / "FORCE_CONSTANTS_2ND");
  std::int64_t n = 0;
  in >> n;
  std::vector<double> fc(static_cast<std::size_t>(n * n * 9));
  for (std::int64_t pair = 0, p = 0, q = 0; pair < n * n; ++pair) {
    in >> p >> q;
    for (int e = 0; e < 9; ++e) in >> fc[static_cast<std::size_t>(((p - 1) * n + q - 1) * 9 + e)];
  }
  ASSERT_TRUE(in);
  fs::create_directories(to);
  H5Writer out(to / "fc2.hdf5");
  out.write("/force_constants", fc, {n, n, 3, 3}, "eV/angstrom^2");
  out.commit();
  std::ofstream poscar(to / "POSCAR");
  poscar.precision(17);
  poscar << "rock salt\n1.0\n";
  for (const Vec3& a : crystal.lattice_nm)
    poscar << 10 * a[0] << " " << 10 * a[1] << " " << 10 * a[2] << "\n";
  poscar << "Na Cl\n1 1\nDirect\n";
  for (const Vec3& p : crystal.position) poscar << p[0] << " " << p[1] << " " << p[2] << "\n";
  std::ofstream born(to / "BORN");
  born << "14.4\n1 0 0 0 1 0 0 0 1\n";
  for (const Mat3& z : crystal.born) {
    for (const Vec3& row : z) born << row[0] << " " << row[1] << " " << row[2] << " ";
    born << "\n";
  }
}

struct PolarDeck {
  Deck deck;
  DynamicalMatrixBuilder builder;
  explicit PolarDeck(Deck read)
      : deck(std::move(read)),
        builder(deck.crystal, deck.second_order, deck.control.harmonic_options()) {}
};

std::unique_ptr<PolarDeck> polar(const std::string& layout) {
  static const quasi::test::TemporaryDirectory place;
  const fs::path path = place.path() / layout;
  std::vector<std::string> settings{"onlyharmonic=T"};
  if (layout == kMixedSpace) settings.push_back("nac_method=mixed-space");
  if (layout == kSilicon)
    return std::make_unique<PolarDeck>(read_deck(
        quasi::test::source_dir() / "examples/thermal/silicon", test::settings_of(settings)));
  if (!fs::exists(path)) {
    if (layout == kPhonopy) {
      polar(kSupercell);
      write_phonopy_twin(place.path() / kSupercell, path);
    } else {
      quasi::model::write_deck("rocksalt", path,
                               layout == kEspresso ? quasi::model::SecondOrder::kEspresso
                                                   : quasi::model::SecondOrder::kSupercell);
    }
  }
  if (layout == kPhonopy)
    settings.insert(settings.end(), {"ngrid=4,4,4", "T=300", "scell=4,4,4", "autoisotopes=F",
                                     "masses=22.98977,35.4527", "isotopes=F"});
  return std::make_unique<PolarDeck>(read_deck(path, test::settings_of(settings)));
}

Vec3 fractional(const Crystal& crystal, const Vec3& q_per_nm) {
  return inverse(transpose(crystal.reciprocal_per_nm())) * q_per_nm;
}

/// ω² of all branches, ascending, at a Cartesian wave vector.
std::vector<double> omega_squared(const PolarDeck& polar, const Vec3& q_per_nm) {
  const int nb = polar.deck.crystal.n_branches();
  DynamicalMatrix d = polar.builder.at(fractional(polar.deck.crystal, q_per_nm), false);
  std::vector<double> values(static_cast<std::size_t>(nb));
  LAPACKE_zheev(LAPACK_ROW_MAJOR, 'N', 'U', nb,
                reinterpret_cast<lapack_complex_double*>(d.d.data()), nb, values.data());
  return values;
}

class Slopes : public testing::TestWithParam<const char*> {};
class Polar : public testing::TestWithParam<const char*> {};

// Long optical waves: ω²_LO − ω²_TO = Z²e²/(ε0 V μ), and ω²_LO + 2ω²_TO = 3 R/μ, where R = 2φ'' +
// 4φ'/r is the spring constant of the repulsion (the Coulomb part has no trace). This holds along
// any direction with two transverse branches. The limit is 2e-6: the next term in q is (q·a)² =
// 3e-7 at q = 1e-3/nm, and the files are rounded at 1e-9 eV/Å².
TEST_P(Polar, LongOpticalWavesSplitByTheMacroscopicField) {
  const auto p = polar(GetParam());
  const quasi::model::RigidIon model;
  const Crystal& crystal = p->deck.crystal;
  const PhysicalConstants& constants = p->deck.control.constants();
  const double mu =
      crystal.mass_amu[0] * crystal.mass_amu[1] / (crystal.mass_amu[0] + crystal.mass_amu[1]);
  const double splitting =
      constants.born_charge_factor * model.charge_e * model.charge_e / (crystal.volume_nm3() * mu);
  const double r = 0.5 * model.lattice_constant_angstrom;
  const double phi = model.repulsion_ev() * std::exp(-r / model.rho_angstrom);
  const double spring =
      2.0 * phi / (model.rho_angstrom * model.rho_angstrom) - 4.0 * phi / (model.rho_angstrom * r);
  const double trace = 3.0 * constants.ev_per_a2_amu_to_omega2 * spring / mu;
  for (const Vec3& direction : {Vec3{1, 0, 0}, Vec3{0.6, 0.0, 0.8}, Vec3{0.36, -0.48, 0.8}}) {
    const auto w2 = omega_squared(*p, 1e-3 * direction);
    EXPECT_NEAR(w2[3], w2[4], 2e-6 * splitting);
    EXPECT_NEAR(w2[5] - 0.5 * (w2[3] + w2[4]), splitting, 2e-6 * splitting) << GetParam();
    EXPECT_NEAR(w2[5] + w2[3] + w2[4], trace, 2e-6 * trace) << GetParam();
  }
  // At exactly Γ no direction is assumed, so there is no splitting.
  const auto gamma = omega_squared(*p, {0, 0, 0});
  EXPECT_NEAR(gamma[5], gamma[3], 1e-6 * splitting);
}

// Group velocities against central differences of ω, to 1e-5 of the largest speed. The points are
// off the mesh and off every symmetry line, so that no two branches cross within the step.
TEST_P(Slopes, VelocitiesAreSlopesOfTheFrequencies) {
  const auto p = polar(GetParam());
  const int nb = p->deck.crystal.n_branches();
  constexpr double kStep = 1e-4;  // 1/nm; errors of (q·a)² and of rounding are both below 1e-8
  for (const Vec3& q : {Vec3{1.3, 2.9, 0.7}, Vec3{0.21, 0.08, -0.13}, Vec3{-3.1, 1.7, 2.2}}) {
    DynamicalMatrix d = p->builder.at(fractional(p->deck.crystal, q), true);
    std::vector<double> values(static_cast<std::size_t>(nb));
    std::vector<std::complex<double>> vectors = d.d;
    LAPACKE_zheev(LAPACK_ROW_MAJOR, 'V', 'U', nb,
                  reinterpret_cast<lapack_complex_double*>(vectors.data()), nb, values.data());
    for (int axis = 0; axis < 3; ++axis) {
      Vec3 step{0, 0, 0};
      step[axis] = kStep;
      const auto up = omega_squared(*p, q + step);
      const auto down = omega_squared(*p, q - step);
      for (int s = 0; s < nb; ++s) {
        std::complex<double> slope = 0.0;
        for (int i = 0; i < nb; ++i)
          for (int j = 0; j < nb; ++j)
            slope +=
                std::conj(vectors[i * nb + s]) * d.gradient[axis][i * nb + j] * vectors[j * nb + s];
        const double omega = std::sqrt(values[s]);
        const double difference = (std::sqrt(up[s]) - std::sqrt(down[s])) / (2.0 * kStep);
        EXPECT_NEAR(slope.real() / (2.0 * omega), difference, 1e-5 * 5.0)
            << GetParam() << " branch " << s;
      }
    }
  }
}

const auto kName = [](const auto& test) { return std::string(test.param); };
INSTANTIATE_TEST_SUITE_P(Layouts, Polar,
                         testing::Values(kSupercell, kMixedSpace, kEspresso, kPhonopy), kName);
INSTANTIATE_TEST_SUITE_P(Layouts, Slopes,
                         testing::Values(kSupercell, kMixedSpace, kEspresso, kPhonopy, kSilicon),
                         kName);

// Supercell constants and short-range constants with the Ewald sum describe one crystal:
// frequencies are equal at wave vectors that the supercell allows. The phonopy files equal the
// supercell's everywhere.
TEST(PolarLayouts, DescribeOneCrystal) {
  const auto supercell = polar(kSupercell);
  const auto espresso = polar(kEspresso);
  const auto phonopy = polar(kPhonopy);
  const Mat3 to_cartesian = transpose(supercell->deck.crystal.reciprocal_per_nm());
  for (const Vec3& q :
       {Vec3{0.5, 0.5, 0}, Vec3{0.25, 0, 0}, Vec3{0.25, 0.5, 0.75}, Vec3{0.5, 0.5, 0.5}}) {
    const auto a = omega_squared(*supercell, to_cartesian * q);
    const auto b = omega_squared(*espresso, to_cartesian * q);
    for (std::size_t s = 0; s < a.size(); ++s) EXPECT_NEAR(a[s], b[s], 2e-6 * a.back());
  }
  for (const Vec3& q : {Vec3{1.3, 2.9, 0.7}, Vec3{0.2, -1.0, 4.0}}) {
    const auto a = omega_squared(*supercell, q);
    const auto b = omega_squared(*phonopy, q);
    for (std::size_t s = 0; s < a.size(); ++s) EXPECT_NEAR(a[s], b[s], 1e-9 * a.back());
  }
}

// Frequencies are equal over every star on meshes that the supercell does not hold. On the faces of
// the zone several images q + G are equally short, and the term of mixed space of one image alone
// breaks the symmetry by 0.39 rad/ps on 8³ and 0.33 on 12³. The limit of 1e-10 of the highest
// frequency allows for rounding in the constants of the files.
TEST(PolarLayouts, StarsHaveOneFrequencyOnIncommensurateMeshes) {
  for (const char* layout : {kSupercell, kMixedSpace, kPhonopy})
    for (const int n : {8, 10, 12, 16}) {
      polar(layout);
      auto p = polar(layout);
      p->deck.control.mesh = {n, n, n};
      p->deck.symmetry = find_symmetry(p->deck.crystal, p->deck.control.symmetry_options());
      SilentProgress progress;
      const Modes modes = solve_harmonic(p->deck.crystal, p->deck.second_order, p->deck.symmetry,
                                         p->deck.control.harmonic_options(), progress);
      const double highest =
          *std::max_element(modes.omega_rad_ps.begin(), modes.omega_rad_ps.end());
      EXPECT_LT(modes.star_deviation_rad_ps, 1e-10 * highest) << layout << " " << n << "³";
      EXPECT_TRUE(modes.warnings.empty()) << modes.warnings.front();
    }
}

/// ω of all branches, rad/ps, ascending.
std::vector<double> omega(const PolarDeck& polar, const DynamicalMatrixBuilder& builder,
                          const Vec3& q_fractional) {
  const int nb = polar.deck.crystal.n_branches();
  DynamicalMatrix d = builder.at(q_fractional, false);
  std::vector<double> values(static_cast<std::size_t>(nb));
  LAPACKE_zheev(LAPACK_ROW_MAJOR, 'N', 'U', nb,
                reinterpret_cast<lapack_complex_double*>(d.d.data()), nb, values.data());
  for (double& value : values) value = std::copysign(std::sqrt(std::fabs(value)), value);
  return values;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t s = 0; s < a.size(); ++s) largest = std::max(largest, std::fabs(a[s] - b[s]));
  return largest;
}

const Vec3 kBetween[] = {
    {0.125, 0.0, 0.0}, {0.3, 0.2, 0.1}, {0.625, 0.375, 0.0}, {0.11, -0.4, 0.37}};

// The model's constants in a supercell are exact, and those of the espresso deck as well. With
// Gonze–Lee both give equal frequencies also between the wave vectors of the supercell. The limit
// of 1e-6 rad/ps of 168 allows for constants rounded at 1e-9 eV/Å². Mixed space is off by 0.5.
TEST(GonzeLee, InterpolatesExactConstants) {
  const auto supercell = polar(kSupercell);
  const auto espresso = polar(kEspresso);
  HarmonicOptions options = supercell->deck.control.harmonic_options();
  EXPECT_EQ(options.dipole_method, DipoleMethod::kGonzeLee);
  options.dipole_method = DipoleMethod::kMixedSpace;
  const DynamicalMatrixBuilder mixed(supercell->deck.crystal, supercell->deck.second_order,
                                     options);
  double worst_mixed = 0.0;
  for (const Vec3& q : kBetween) {
    const auto exact = omega(*espresso, espresso->builder, q);
    EXPECT_LT(largest_difference(omega(*supercell, supercell->builder, q), exact), 1e-6);
    worst_mixed = std::max(worst_mixed, largest_difference(omega(*supercell, mixed, q), exact));
  }
  EXPECT_GT(worst_mixed, 0.1);
}

// The damping separates the sum into two parts and does not change their total, up to what reaches
// beyond the supercell.
TEST(GonzeLee, DoesNotDependOnTheDamping) {
  const auto p = polar(kSupercell);
  const Crystal& crystal = p->deck.crystal;
  HarmonicOptions options = p->deck.control.harmonic_options();
  const DipoleDamping damping = gonze_lee_damping(crystal, options);
  options.nonanalytic = false;
  for (const double factor : {0.25, 4.0}) {
    const DipoleSum dipoles(crystal, options.constants,
                            {factor * damping.alpha_per_bohr2, damping.cut});
    const DynamicalMatrixBuilder rest(
        crystal, without_dipoles(crystal, p->deck.second_order, dipoles), options);
    for (const Vec3& q : kBetween) {
      DynamicalMatrix sum = rest.at(q, false);
      dipoles.add(q, false, sum);
      const DynamicalMatrix expected = p->builder.at(q, false);
      double highest = 0.0;
      for (const auto& x : expected.d) highest = std::max(highest, std::abs(x));
      for (std::size_t e = 0; e < sum.d.size(); ++e)
        EXPECT_LT(std::abs(sum.d[e] - expected.d[e]), 1e-8 * highest) << factor;
    }
  }
}

// phonopy 2.17.1 computed these frequencies from the same constants with its Gonze–Lee method. The
// limit of 3e-7 is the difference of its physical constants from those of CODATA 2018.
TEST(GonzeLee, FrequenciesOfPhonopy) {
  const auto p = polar(kPhonopy);
  HarmonicOptions options = p->deck.control.harmonic_options();
  options.phonopy_damping = true;
  const DynamicalMatrixBuilder builder(p->deck.crystal, p->deck.second_order, options);
  const std::pair<Vec3, std::vector<double>> computed[] = {
      {{0.3, 0.2, 0.1},
       {12.374022259, 12.709751737, 20.419494720, 27.407287969, 29.750340046, 53.847457306}},
      {{0.625, 0.375, 0.0},
       {18.498515677, 26.758749380, 28.607147583, 29.561711417, 33.647131002, 37.212657231}},
      {{0.11, -0.4, 0.37},
       {19.970355887, 24.769456584, 28.399992223, 30.082752887, 32.097264344, 38.901074604}}};
  for (const auto& [q, theirs] : computed) {
    const auto ours = omega(*p, builder, q);
    for (std::size_t s = 0; s < ours.size(); ++s)
      EXPECT_NEAR(ours[s], theirs[s], 3e-7 * theirs[s]) << s;
  }
}

// κ of the crystal through its supercell agrees with that of the Ewald sum within 1e-4.
TEST(GonzeLee, SupercellAndEwaldGiveOneConductivity) {
  quasi::test::TemporaryDirectory supercell, espresso;
  quasi::model::write_deck("rocksalt", supercell.path());
  quasi::model::write_deck("rocksalt", espresso.path(), quasi::model::SecondOrder::kEspresso);
  const auto kappa = [](const fs::path& deck, const std::string& method) {
    const auto solved =
        test::solve_deck(deck, {"ngrid=7,7,7", "T=300", "convergence=F", "nac_method=" + method});
    return solved->run.by_temperature[0].kappa_rta_w_per_mk[0][0];
  };
  const double ewald = kappa(espresso.path(), "auto");
  EXPECT_NEAR(kappa(supercell.path(), "auto"), ewald, 1e-4 * ewald);
  EXPECT_GT(std::fabs(kappa(supercell.path(), "mixed-space") - ewald), 1e-2 * ewald);
}

// The field changes κ, with no sign known in advance, and keeps the crystal's symmetry.
TEST(PolarLayouts, ConductivityIsIsotropic) {
  quasi::test::TemporaryDirectory place;
  quasi::model::write_deck("rocksalt", place.path());
  const auto with = test::solve_deck(place.path(), {"ngrid=4,4,4", "T=300"});
  const auto without = test::solve_deck(place.path(), {"ngrid=4,4,4", "T=300", "nonanalytic=F"});
  const Mat3& k = with->run.by_temperature[0].kappa_w_per_mk;
  EXPECT_LT(with->run.modes.star_deviation_rad_ps, 1e-6);
  EXPECT_GT(k[0][0], 0.0);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(k[i][j], i == j ? k[0][0] : 0.0, 1e-6 * k[0][0]);
  EXPECT_GT(std::fabs(without->run.by_temperature[0].kappa_w_per_mk[0][0] / k[0][0] - 1.0), 1e-3);
}

}  // namespace
}  // namespace quasi::thermal
