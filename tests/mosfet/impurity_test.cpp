// Tests scattering by ionised impurities: cross-sections, and the mobility of doped films.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/mosfet/fixtures.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/physics/working_units.hpp"
#include "workers/mosfet/solver/transport/mobility.hpp"
#include "workers/mosfet/solver/transport/partial_waves.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

// Impurities alone, parabolic bands, one round valley: μ = (e/m)∫τ w e^{−w/kT}dw / ∫w e^{−w/kT}dw
// with the τ of Brooks and Herring, written out in the test. The limit of 5 % covers the w grid. At
// 1e17 cm⁻³ the carriers that screen have Maxwell's distribution.
TEST(Mobility, LimitedByImpuritiesIsTheClosedForm) {
  const double mass = 0.4;
  const Deck deck = parse_deck("[[valley]]\nmx = 0.4\nmy = 0.4\nmz = 0.4\n",
                               {{"mesh.nx", "33"},
                                {"mesh.nz", "65"},
                                {"mesh.nw", "600"},
                                {"mesh.wmax_ev", "0.9"},
                                {"mesh.subbands", "2"},
                                {"material.alpha_per_ev", "0.0"},
                                {"scattering.enabled", "[]"},
                                {"scattering.impurities", "true"},
                                {"scattering.impurity_model", "brooks-herring"},
                                {"doping.contact_cm3", "1e17"},
                                {"doping.channel_cm3", "1e17"}},
                               "test deck", ".");
  const Structure column = column_structure(make_structure(deck), 16);
  const TransportProblem problem = make_transport_problem(deck, column);
  const Subbands levels = solve_subbands(column, std::vector<double>(65, 0.0));
  const double found = low_field_mobility(deck, problem, levels, {-0.2}).mean_nm2_v_fs[0];

  const double kt = deck.kt_ev(), coulomb = kChargeOverEpsilon0_v_nm / 11.7, donors = 1e-4;
  const double m = mass * kElectronMass_ev_fs2_nm2,
               screening2 =
                   coulomb * donors / kt;  // Debye screening, the slope of Maxwell statistics
  double above = 0.0, below = 0.0;
  const double step = kt / 2000.0;
  for (double w = 0.5 * step; w < 40.0 * kt; w += step) {
    const double gamma2 = 8.0 * m * w / (kHbar_ev_fs * kHbar_ev_fs * screening2);
    const double rate = donors * coulomb * coulomb /
                        (16.0 * std::sqrt(2.0) * units::kPi * std::sqrt(m) * std::pow(w, 1.5)) *
                        (std::log(1.0 + gamma2) - gamma2 / (1.0 + gamma2));
    above += w / rate * std::exp(-w / kt);
    below += w * std::exp(-w / kt);
  }
  EXPECT_NEAR(found / (above / below / m), 1.0, 5e-2);
}

/// Mobility of the default film of 6 nm with a uniform doping, cm²/Vs.
double doped_mobility(const std::string& statistics, const std::string& doping_cm3,
                      const std::string& model) {
  const Deck deck = test::default_deck(33, 65,
                                       {{"mesh.nw", "300"},
                                        {"mesh.wmax_ev", "0.9"},
                                        {"statistics.kind", statistics},
                                        {"scattering.impurities", "true"},
                                        {"scattering.impurity_model", model},
                                        {"doping.contact_cm3", doping_cm3},
                                        {"doping.channel_cm3", doping_cm3}});
  const Structure device = make_structure(deck), column = column_structure(device, 0);
  return low_field_mobility(deck, make_transport_problem(deck, column),
                            solve_contact(deck, device, 0).subbands, {0.0})
             .mean_nm2_v_fs[0] *
         kMobilityUnit_cm2_v_s;
}

/// Measured mobility of bulk silicon doped with phosphorus [masetti1983], cm²/Vs.
double masetti(double doping_cm3) {
  return 68.5 + (1414.0 - 68.5) / (1.0 + std::pow(doping_cm3 / 9.2e16, 0.711)) -
         56.1 / (1.0 + std::pow(3.41e20 / doping_cm3, 1.98));
}

// A film with the phonons of the bulk has the mobility of doped bulk silicon within 20 %, from 1e17
// to 1e20 cm⁻³ and with either statistics of transport. Measurements differ by some 10 %.
TEST(Mobility, AgainstDopingIsThatOfBulkSilicon) {
  for (const char* statistics : {"fermi", "maxwell"}) {
    double last = 1e4;
    for (const char* doping_cm3 : {"1e17", "1e18", "1e19", "3e19", "1e20"}) {
      const double mobility = doped_mobility(statistics, doping_cm3, "partial-waves");
      EXPECT_NEAR(mobility / masetti(std::stod(doping_cm3)), 1.0, 0.2)
          << statistics << ' ' << doping_cm3;
      EXPECT_LT(mobility, 0.99 * last) << statistics << ' ' << doping_cm3;
      last = mobility;
    }
  }
}

// The rates of Brooks and Herring fall too slowly. With Maxwell statistics of the transport they
// fall up to the doping beyond which a deck gets a warning.
TEST(Mobility, FallsWithTheDopingOfTheFilm) {
  for (const auto& [statistics, dopings] :
       {std::pair{"maxwell", std::vector<std::string>{"1e17", "1e18", "1e19"}},
        {"fermi", {"1e17", "1e19", "1e20"}}}) {
    double last = 1e4;
    for (const std::string& doping_cm3 : dopings) {
      const double mobility = doped_mobility(statistics, doping_cm3, "brooks-herring");
      EXPECT_LT(mobility, 0.99 * last) << statistics << ' ' << doping_cm3;
      last = mobility;
    }
  }
}

// Shallow potentials have Born's phase shifts. The radial grid gives 1 % for the waves that matter.
TEST(PartialWaves, OfAWeakPotentialAreBorns) {
  const ScreenedCoulomb weak{1e-3, 2.0};
  for (const double k : {0.3, 1.0}) {
    const std::vector<double> exact = phase_shifts(weak, k, 3),
                              born = born_phase_shifts(weak, k, 3);
    for (std::size_t l = 0; l < exact.size(); ++l)
      EXPECT_NEAR(exact[l] / born[l], 1.0, 0.01) << k << ' ' << l;
    EXPECT_NEAR(partial_wave_ratio(weak, k), 1.0, 0.01) << k;
  }
}

// Fast electrons have Born's cross-section in any potential.
TEST(PartialWaves, OfFastElectronsAreBorns) {
  for (const double length_nm : {1.0, 2.0, 5.0}) {
    const ScreenedCoulomb donor = donor_potential(0.328, 11.7, length_nm);
    EXPECT_NEAR(partial_wave_ratio(donor, 6.0), 1.0, 0.05) << length_nm;
    EXPECT_GT(partial_wave_ratio(donor_potential(0.328, 11.7, 1.0), 0.5), 1.5);
  }
}

// A screened Coulomb potential binds its first state at λ = 0.8399 a_B. There δ_0 of slow electrons
// passes π/2, so that its tangent changes its sign.
TEST(PartialWaves, TheFirstBoundStateAppearsAtItsKnownLength) {
  const double strength = donor_potential(0.328, 11.7, 1.0).strength_per_nm,
               bohr_nm = 2.0 / strength;
  EXPECT_NEAR(bohr_nm, 0.0529177 * 11.7 / 0.328, 1e-3);
  EXPECT_GT(phase_shifts({strength, 0.838 * bohr_nm}, 1e-4, 0)[0], 0.0);
  EXPECT_LT(phase_shifts({strength, 0.842 * bohr_nm}, 1e-4, 0)[0], 0.0);
}

}  // namespace
}  // namespace quasi::mosfet
