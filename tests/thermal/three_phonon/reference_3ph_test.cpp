#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/every_device.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/thermal/support/reference_run.hpp"
#include "tests/thermal/support/solved_deck.hpp"

namespace quasi::thermal {
namespace {

struct ReferenceCase {
  const char* run;
  std::int64_t absorption, emission;  ///< counts printed by FourPhonon
  bool full;                          ///< runs only in the full suite
};

std::ostream& operator<<(std::ostream& out, const ReferenceCase& c) { return out << c.run; }

constexpr ReferenceCase kCases[] = {{"3ph_m04_sb0.1", 637, 874, true},
                                    {"3ph_m04_sb1.0", 8921, 11314, true},
                                    {"3ph_m06_sb0.1", 5418, 6670, true},
                                    {"3ph_m06_sb1.0", 57148, 69860, true},
                                    {"3ph_m08_sb0.1", 19084, 23646, true},
                                    {"3ph_m08_sb1.0", 196886, 235980, true},
                                    {"3ph_m08_sb1.0_iso", 196886, 235980, true},
                                    {"3ph_m08_sb1.0_iso_T100-500", 196886, 235980, true},
                                    {"3ph_m12_sb1.0", 1134591, 1350012, false},
                                    {"3ph_m16_sb1.0", 4102630, 4877030, false}};

std::string folder(double temperature_k) {
  std::string name = "T";
  return name.append(std::to_string(std::lround(temperature_k))).append("K/");
}

class Reference3ph : public testing::TestWithParam<ReferenceCase> {};

double relative(double found, double expected) {
  return expected == 0.0 ? std::fabs(found) : std::fabs(found / expected - 1.0);
}

/// Returns the largest relative difference of sums over degenerate sets.
double worst_over_subspaces(const test::SolvedDeck& s, const std::vector<double>& found,
                            const double* expected_at, std::size_t offset) {
  const int nb = s.run.modes.n_branches;
  double worst = 0.0;
  for (std::int64_t i = 0; i < s.deck.symmetry.n_irreducible(); ++i) {
    const std::int32_t* subspace =
        &s.run.modes.subspace[static_cast<std::size_t>(s.deck.symmetry.irreducible[i]) * nb];
    for (int first = 0; first < nb;) {
      double a = 0.0, b = 0.0;
      int last = first;
      for (; last < nb && subspace[last] == first; ++last) {
        a += found[offset + static_cast<std::size_t>(i * nb + last)];
        b += expected_at[i * nb + last];
      }
      if (b != 0.0) worst = std::max(worst, relative(a, b));
      first = last;
    }
  }
  return worst;
}

// With the eigenvectors of Quasi the results equal those of FourPhonon: counts, κ in
// relaxation-time approximation and converged, isotopes, phase spaces, heat capacity and
// small-grain κ. Rates summed over degenerate sets agree within 1e-6.
TEST_P(Reference3ph, FromOwnModes) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  const test::ReferenceRun reference(GetParam().run);
  const auto s = test::solve_deck(reference.deck(), {"compat=fourphonon"});
  const int nb = s->run.modes.n_branches;
  EXPECT_NEAR(s->run.three_phonon.n_absorption, GetParam().absorption, 2);
  EXPECT_NEAR(s->run.three_phonon.n_emission, GetParam().emission, 2);
  const auto n_rows = static_cast<std::size_t>(s->n_rows());
  for (std::size_t t = 0; t < s->run.by_temperature.size(); ++t) {
    const TemperatureResult& r = s->run.by_temperature[t];
    const auto rta = reference.kappa("BTE.KappaTensorVsT_RTA", r.temperature_k);
    const auto converged = reference.kappa("BTE.KappaTensorVsT_CONV", r.temperature_k);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        EXPECT_NEAR(r.kappa_rta_w_per_mk[i][j], rta[3 * i + j], 2e-4 * rta[0]) << r.temperature_k;
        EXPECT_NEAR(r.kappa_w_per_mk[i][j], converged[3 * i + j], 2e-4 * converged[0])
            << r.temperature_k;
      }
    const auto absorption = reference.mode_column(folder(r.temperature_k) + "BTE.w_3ph_plus", nb);
    const auto emission = reference.mode_column(folder(r.temperature_k) + "BTE.w_3ph_minus", nb);
    EXPECT_LT(worst_over_subspaces(*s, s->run.three_phonon.absorption_per_ps, absorption.data(),
                                   t * n_rows),
              1e-6);
    EXPECT_LT(
        worst_over_subspaces(*s, s->run.three_phonon.emission_per_ps, emission.data(), t * n_rows),
        1e-6);
    const auto sg = reference.kappa("BTE.KappaTensorVsT_sg", r.temperature_k);
    EXPECT_NEAR(r.small_grain_w_per_mk_nm[0][0], sg[0], 6e-5 * sg[0]);  // printed as 0.12345
    const auto cv = reference.table("BTE.cvVsT");
    EXPECT_LT(relative(r.heat_capacity_j_m3_k, cv.at(t).at(1)), 6e-5);
  }
  if (!s->run.isotope_per_ps.empty()) {
    const auto isotope = reference.mode_column("BTE.w_isotopic", nb);
    EXPECT_LT(worst_over_subspaces(*s, s->run.isotope_per_ps, isotope.data(), 0), 1e-6);
  }
}

// With the eigenvectors and velocities of FourPhonon nothing is left to choose, and the rate of
// every mode agrees within 1e-7.
TEST_P(Reference3ph, FromInjectedModes) {
  QUASI_NEED_REFERENCE("thermal/si/runs");
  if (!GetParam().full) GTEST_SKIP() << "no velocities are stored for this mesh";
  const test::ReferenceRun reference(GetParam().run);
  for (const Device& device : list_devices()) {
    SCOPED_TRACE(device.name());
    const auto s = test::solve_deck(reference.deck(), {"compat=fourphonon"}, device,
                                    [&](test::SolvedDeck& solved) {
                                      reference.inject(solved.deck.crystal, solved.deck.symmetry,
                                                       solved.deck.control, solved.run.modes);
                                    });
    const int nb = s->run.modes.n_branches;
    const auto n_rows = static_cast<std::size_t>(s->n_rows());
    double worst = 0.0;
    double worst_phase_space = 0.0;
    for (std::size_t t = 0; t < s->run.by_temperature.size(); ++t) {
      const std::string at = folder(s->run.by_temperature[t].temperature_k);
      const auto absorption = reference.mode_column(at + "BTE.w_3ph_plus", nb);
      const auto emission = reference.mode_column(at + "BTE.w_3ph_minus", nb);
      const auto wp_plus = reference.mode_column(at + "BTE.WP3_plus", nb);
      const auto wp_minus = reference.mode_column(at + "BTE.WP3_minus", nb);
      ASSERT_EQ(absorption.size(), n_rows);
      for (std::size_t row = 0; row < n_rows; ++row) {
        worst = std::max(worst, relative(s->run.three_phonon.absorption_per_ps[t * n_rows + row],
                                         absorption[row]));
        worst = std::max(
            worst, relative(s->run.three_phonon.emission_per_ps[t * n_rows + row], emission[row]));
        worst_phase_space = std::max(
            worst_phase_space,
            relative(s->run.three_phonon.weighted_absorption_ps4[t * n_rows + row], wp_plus[row]));
        worst_phase_space = std::max(
            worst_phase_space,
            relative(s->run.three_phonon.weighted_emission_ps4[t * n_rows + row], wp_minus[row]));
      }
    }
    EXPECT_LT(worst, 1e-7);
    EXPECT_LT(worst_phase_space, 6e-5);  // printed as 0.12345
    for (const TemperatureResult& r : s->run.by_temperature) {
      EXPECT_NEAR(r.kappa_rta_w_per_mk[0][0],
                  reference.kappa("BTE.KappaTensorVsT_RTA", r.temperature_k)[0],
                  2e-5 * r.kappa_rta_w_per_mk[0][0]);
      const double converged = reference.kappa("BTE.KappaTensorVsT_CONV", r.temperature_k)[0];
      EXPECT_NEAR(r.kappa_w_per_mk[0][0], converged, 2e-4 * converged);
    }
    std::printf("    %s, %s: worst rate difference %.1e\n", GetParam().run, device.name().c_str(),
                worst);
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Reference3ph, testing::ValuesIn(kCases), [](const auto& test) {
  std::string name = test.param.run;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace quasi::thermal
