#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <iterator>
#include <random>

#include "examples/thermal/generate/deck_writer.hpp"
#include "examples/thermal/generate/rigid_ion.hpp"
#include "examples/thermal/generate/stillinger_weber.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::model {
namespace {

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The key with slots i and 0 exchanged, translated so that its first atom is in cell 0.
ForceConstants::Key translated_home(ForceConstants::Key key) {
  const Cell home = key[0].cell;
  for (Site& site : key)
    for (int x = 0; x < 3; ++x) site.cell[x] -= home[x];
  return key;
}

struct Case {
  const char* name;
  Structure structure;
  std::vector<EnergyTerm> terms;
};

std::vector<Case> cases() {
  static const StillingerWeber potential;
  static const RigidIon ions;
  const Structure d = diamond(potential), w = wurtzite(potential), r = ions.structure();
  return {{"diamond", d, potential.terms(d)},
          {"wurtzite", w, potential.terms(w)},
          {"rocksalt", r, ions.anharmonic_terms(r)}};
}

// A crystal shifted as a whole feels no force, so the sum over the sites of any slot is zero. It
// must be zero as integers, hence in the decimal numbers of the files.
TEST(ModelDecks, SumOverEverySlotIsExactlyZero) {
  for (const Case& c : cases())
    for (int order = 2; order <= 4; ++order) {
      const ForceConstants fc = derivatives(c.structure, c.terms, order);
      ASSERT_FALSE(fc.block.empty());
      for (int slot = 0; slot < order; ++slot) {
        std::map<ForceConstants::Key, std::vector<std::int64_t>> sum;
        for (const auto& [key, value] : fc.block) {
          ForceConstants::Key others = key;
          others.erase(others.begin() + slot);
          auto& total =
              sum.try_emplace(translated_home(others), std::vector<std::int64_t>(value.size(), 0))
                  .first->second;
          for (std::size_t e = 0; e < value.size(); ++e) total[e] += value[e];
        }
        for (const auto& [key, total] : sum)
          for (std::int64_t v : total) ASSERT_EQ(v, 0) << c.name << " order " << order;
      }
    }
}

// Derivatives commute: exchanging two slots with their indices changes nothing.
TEST(ModelDecks, SlotsMayBeExchanged) {
  for (const Case& c : cases())
    for (int order = 2; order <= 4; ++order) {
      const ForceConstants fc = derivatives(c.structure, c.terms, order);
      for (const auto& [key, value] : fc.block)
        for (int slot = 1; slot < order; ++slot) {
          ForceConstants::Key swapped = key;
          std::swap(swapped[0], swapped[slot]);
          const auto twin = fc.block.find(translated_home(swapped));
          ASSERT_NE(twin, fc.block.end()) << c.name;
          const int stride_first = static_cast<int>(std::lround(std::pow(3, order - 1)));
          const int stride = static_cast<int>(std::lround(std::pow(3, order - 1 - slot)));
          for (int e = 0; e < static_cast<int>(value.size()); ++e) {
            const int a = e / stride_first % 3, b = e / stride % 3;
            const int moved = e + (b - a) * stride_first + (a - b) * stride;
            ASSERT_EQ(value[e], twin->second[moved]) << c.name << " order " << order;
          }
        }
    }
}

// Compares the energy of a displaced crystal, from the potential alone, with the expansion to
// fourth order. The difference must fall as the fifth power of the displacement.
TEST(ModelDecks, ExpansionMeetsTheEnergyToFourthOrder) {
  for (const Case& c : cases()) {
    if (std::string(c.name) == "rocksalt") continue;  // its harmonic part is the Ewald sum, below
    constexpr int kPeriod = 3;
    const int n_cells = kPeriod * kPeriod * kPeriod;
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    std::vector<Vector3> direction(static_cast<std::size_t>(n_cells) * c.structure.n_atoms());
    for (auto& u : direction)
      for (double& x : u) x = uniform(random);
    const auto displacement = [&](int atom, const Cell& cell, const Cell& home) -> Vector3& {
      int at = atom;
      for (int i = 0; i < 3; ++i)
        at = at * kPeriod + ((cell[i] + home[i]) % kPeriod + kPeriod) % kPeriod;
      return direction[static_cast<std::size_t>(at)];
    };
    const auto for_each_cell = [&](auto&& body) {
      for (int i = 0; i < kPeriod; ++i)
        for (int j = 0; j < kPeriod; ++j)
          for (int k = 0; k < kPeriod; ++k) body(Cell{i, j, k});
    };
    const auto energy = [&](double step) {
      double sum = 0.0;
      for_each_cell([&](const Cell& home) {
        for (const EnergyTerm& term : c.terms) {
          std::vector<Nilpotent> difference;
          const Vector3 r0 = c.structure.site(term.site[0].atom, term.site[0].cell);
          const Vector3& u0 = displacement(term.site[0].atom, term.site[0].cell, home);
          for (std::size_t m = 1; m < term.site.size(); ++m) {
            const Vector3 r = c.structure.site(term.site[m].atom, term.site[m].cell);
            const Vector3& u = displacement(term.site[m].atom, term.site[m].cell, home);
            for (int x = 0; x < 3; ++x)
              difference.emplace_back(r[x] - r0[x] + step * (u[x] - u0[x]));
          }
          sum += term.energy_ev(difference).value();
        }
      });
      return sum;
    };
    double coefficient[5] = {};
    for (int order = 2; order <= 4; ++order) {
      const ForceConstants fc = derivatives(c.structure, c.terms, order);
      for_each_cell([&](const Cell& home) {
        for (const auto& [key, value] : fc.block)
          for (std::size_t e = 0; e < value.size(); ++e) {
            double product = static_cast<double>(value[e]) * ForceConstants::kQuantum;
            std::size_t stride = value.size();
            for (const Site& site : key) {
              stride /= 3;
              product *= displacement(site.atom, site.cell, home)[e / stride % 3];
            }
            coefficient[order] += product;
          }
      });
    }
    const double rest_energy = energy(0.0);
    const auto left = [&](double t) {
      return energy(t) - rest_energy -
             t * t * (coefficient[2] / 2 + t * (coefficient[3] / 6 + t * coefficient[4] / 24));
    };
    const double coarse = left(0.02), fine = left(0.01);
    // The difference is far below the fourth-order term and falls 32-fold per halving. A wrong
    // fourth order would give 16-fold.
    EXPECT_LT(std::abs(coarse), 0.1 * std::abs(std::pow(0.02, 4) * coefficient[4] / 24)) << c.name;
    EXPECT_NEAR(coarse / fine, 32.0, 4.0) << c.name << " " << coarse << " " << fine;
  }
}

/// Energy of a cell, eV.
double energy_ev(const StillingerWeber& potential, const Structure& s) {
  double energy = 0.0;
  for (const EnergyTerm& term : potential.terms(s)) {
    std::vector<Nilpotent> r;
    const Vector3 r0 = s.site(term.site[0].atom, term.site[0].cell);
    for (std::size_t m = 1; m < term.site.size(); ++m) {
      const Vector3 rm = s.site(term.site[m].atom, term.site[m].cell);
      for (int x = 0; x < 3; ++x) r.emplace_back(rm[x] - r0[x]);
    }
    energy += term.energy_ev(r).value();
  }
  return energy;
}

// A polytype has the bonds, the volume and the energy of diamond. Where the sense of its stack
// turns, twice a cell, an atom sees another along the axis at 5/3 of a bond, which diamond does not
// have.
TEST(ModelDecks, PolytypesHaveTheBondsOfDiamond) {
  const StillingerWeber potential;
  const double bond = potential.bond_length_angstrom();
  for (const int half : {2, 3, 6}) {
    const Structure s = polytype(potential, half);
    ASSERT_EQ(s.n_atoms(), 4 * half);
    EXPECT_NEAR(s.volume() / s.n_atoms(), diamond(potential).volume() / 2, 1e-9);
    EXPECT_NEAR(energy_ev(potential, s) / s.n_atoms(), -2.0 * potential.epsilon_ev, 1e-6);
    std::size_t eclipsed = 0;
    for (int atom = 0; atom < s.n_atoms(); ++atom) {
      EXPECT_EQ(neighbours(s, atom, 1.1 * bond).size(), 4u) << half << " " << atom;
      EXPECT_EQ(neighbours(s, atom, 1.65 * bond).size(), 4u + 12u) << half << " " << atom;
      eclipsed += neighbours(s, atom, 1.7 * bond).size() - 16;
    }
    EXPECT_EQ(eclipsed, 4u) << half;
  }
}

// The lattice is the potential's minimum, with the published cohesive energy and lattice constant.
TEST(ModelDecks, SiliconHasThePotentialsLattice) {
  const StillingerWeber potential;
  const Structure s = diamond(potential);
  EXPECT_NEAR(2.0 * s.lattice_angstrom[0][1], 5.4310, 1e-4);  // 4/√3 · 2^(1/6) σ
  EXPECT_NEAR(energy_ev(potential, s) / 2, -2.0 * potential.epsilon_ev,
              1e-6);  // two bonds an atom, each -ε
}

// The scaled potentials have the lattice constants of the built-in crystals of GW (10.6930 and
// 10.6770 Bohr) and wells of the given depth. The sum of squared frequencies at Γ is the trace of
// the dynamical matrix. It holds three optical phonons alone, of 37.3 and 33.2 meV as measured. The
// constants are given with four digits.
TEST(ModelDecks, ScaledPotentialsHaveLatticeAndOpticalPhonon) {
  struct Scaled {
    StillingerWeber potential;
    Structure structure;
    double lattice_bohr, epsilon_ev, optical_mev;
  };
  const StillingerWeber ge = scaled_potential(2.450199, 1.557);
  const StillingerWeber gaas = scaled_potential(2.446533, 1.223);
  for (const auto& [potential, s, lattice_bohr, epsilon_ev, optical_mev] :
       {Scaled{ge, germanium(ge), 10.6930, 1.557, 37.3},
        Scaled{gaas, gallium_arsenide(gaas), 10.6770, 1.223, 33.2}}) {
    EXPECT_NEAR(2.0 * s.lattice_angstrom[0][1] / 0.529177210903, lattice_bohr, 1e-4);
    EXPECT_NEAR(energy_ev(potential, s) / 2, -2.0 * epsilon_ev, 1e-6);
    double trace = 0.0;  // eV / Å² / amu
    for (const auto& [key, value] : derivatives(s, potential.terms(s), 2).block)
      if (key[0].atom == key[1].atom)
        for (const int e : {0, 4, 8})
          trace += static_cast<double>(value[e]) * ForceConstants::kQuantum /
                   s.mass_amu[s.type[key[0].atom]];
    constexpr double kMevOfRoot = 64.6541;  // ħ √(eV / Å² / amu) in meV
    EXPECT_NEAR(kMevOfRoot * std::sqrt(trace / 3.0), optical_mev, 0.02);
  }
}

// The two second-order layouts of the polar crystal describe one crystal. The supercell's
// constants, and the short-range constants plus the reciprocal Ewald sum, give one dynamical matrix
// at every wave vector that the supercell allows.
TEST(ModelDecks, RocksaltLayoutsAgreeAtCommensurateWaveVectors) {
  constexpr double kPi = 3.14159265358979323846;
  const RigidIon model;
  const Structure s = model.structure();
  const ForceConstants whole = model.supercell_force_constants(s);
  const ForceConstants part = model.short_range_force_constants(s);
  const double decay = 2.0 * kPi / (model.lattice_constant_angstrom / std::sqrt(2.0));
  const double b = 2.0 * kPi / model.lattice_constant_angstrom;
  const Matrix3 reciprocal = {{{-b, b, b}, {b, -b, b}, {b, b, -b}}};

  using Complex = std::complex<double>;
  const auto fourier = [&](const ForceConstants& fc, const Vector3& q_fractional) {
    std::vector<Complex> d(36);
    for (const auto& [key, value] : fc.block) {
      double phase = 0.0;
      for (int i = 0; i < 3; ++i) phase += 2.0 * kPi * q_fractional[i] * key[1].cell[i];
      for (int e = 0; e < 9; ++e)
        d[(3 * key[0].atom + e / 3) * 6 + 3 * key[1].atom + e % 3] +=
            static_cast<double>(value[e]) * ForceConstants::kQuantum * std::polar(1.0, phase);
    }
    return d;
  };
  const auto reciprocal_sum = [&](const Vector3& q_fractional, int p, int o) {
    std::array<Complex, 9> sum{};
    const Vector3 rp = s.site(p, {}), ro = s.site(o, {});
    for (int i = -8; i <= 8; ++i)
      for (int j = -8; j <= 8; ++j)
        for (int k = -8; k <= 8; ++k) {
          Vector3 g{};
          for (int x = 0; x < 3; ++x)
            g[x] = (i + q_fractional[0]) * reciprocal[0][x] +
                   (j + q_fractional[1]) * reciprocal[1][x] +
                   (k + q_fractional[2]) * reciprocal[2][x];
          const double g2 = g[0] * g[0] + g[1] * g[1] + g[2] * g[2];
          if (g2 < 1e-12) continue;
          double phase = 0.0;  // K·(r_o - r_p); e^{iq·R} uses the cell alone
          for (int x = 0; x < 3; ++x) phase -= g[x] * (rp[x] - ro[x]);
          const Complex factor = 4.0 * kPi / s.volume() / g2 * std::exp(-g2 / (4 * decay * decay)) *
                                 std::polar(1.0, phase);
          for (int e = 0; e < 9; ++e) sum[e] += factor * g[e / 3] * g[e % 3];
        }
    return sum;
  };
  for (const Vector3& q : {Vector3{0.5, 0.5, 0}, Vector3{0.5, 0.5, 0.5}, Vector3{0.25, 0, 0.75}}) {
    const auto d_whole = fourier(whole, q);
    auto d_part = fourier(part, q);
    for (int p = 0; p < 2; ++p)
      for (int o = 0; o < 2; ++o) {
        const double zz = RigidIon::kCoulomb_ev_angstrom * s.charge_e[p] * s.charge_e[o];
        const auto here = reciprocal_sum({-q[0], -q[1], -q[2]}, p, o);
        for (int e = 0; e < 9; ++e) d_part[(3 * p + e / 3) * 6 + 3 * o + e % 3] += zz * here[e];
        const auto rest = reciprocal_sum({0, 0, 0}, p, o);
        const double zz_rest = RigidIon::kCoulomb_ev_angstrom * s.charge_e[p] * s.charge_e[o];
        for (int e = 0; e < 9; ++e)
          d_part[(3 * p + e / 3) * 6 + 3 * p + e % 3] -= zz_rest * rest[e];
      }
    // The limit is 1e-6 for blocks of order 1 eV/Å², because both files are rounded to 1e-9 and
    // summed over 128 cells.
    for (int row = 0; row < 6; ++row)
      for (int column = 0; column < 6; ++column) {
        const Complex a = d_whole[row * 6 + column], c = d_part[row * 6 + column];
        EXPECT_NEAR(a.real(), c.real(), 1e-6) << row << column;
        EXPECT_NEAR(a.imag(), c.imag(), 1e-6) << row << column;
      }
  }
}

// The shipped files are equal to the files that the program writes.
TEST(ModelDecks, ShippedSiliconIsRegenerated) {
  const test::TemporaryDirectory fresh;
  write_deck("silicon-sw", fresh.path());
  const auto shipped = test::source_dir() / "examples/thermal/silicon-sw";
  for (const char* name : {"CONTROL", "FORCE_CONSTANTS_2ND", "espresso.ifc2", "FORCE_CONSTANTS_3RD",
                           "FORCE_CONSTANTS_4TH"})
    EXPECT_TRUE(contents(fresh.path() / name) == contents(shipped / name)) << name;
}

TEST(ModelDecks, ShippedQuarticCrystalIsRegenerated) {
  const test::TemporaryDirectory fresh;
  write_deck("quartic-cubic", fresh.path());
  const auto shipped = test::source_dir() / "examples/thermal/quartic-cubic";
  for (const char* name :
       {"CONTROL", "FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD", "FORCE_CONSTANTS_4TH"})
    EXPECT_TRUE(contents(fresh.path() / name) == contents(shipped / name)) << name;
}

}  // namespace
}  // namespace quasi::model
