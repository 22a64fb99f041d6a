#include "examples/thermal/generate/deck_writer.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "examples/thermal/generate/quartic_bonds.hpp"
#include "examples/thermal/generate/rigid_ion.hpp"
#include "examples/thermal/generate/stillinger_weber.hpp"

namespace quasi::model {

namespace {

constexpr double kRydberg_ev = 13.605693122994;  // CODATA 2018
constexpr double kBohr_angstrom = 0.529177210903;
constexpr double kAmu_rydberg_mass = 911.44424310865645;

/// The exact decimal value of a whole number of quanta (1e-9), without trailing zeros.
std::string decimal(std::int64_t quanta) {
  constexpr std::uint64_t kScale = 1'000'000'000;
  const auto size = static_cast<std::uint64_t>(std::llabs(quanta));
  char buffer[48];
  const int length = std::snprintf(buffer, sizeof buffer, "%s%llu.%09llu", quanta < 0 ? "-" : "",
                                   static_cast<unsigned long long>(size / kScale),
                                   static_cast<unsigned long long>(size % kScale));
  std::string text(buffer, static_cast<std::size_t>(length));
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Shortest text that reads back as the same double.
std::string exact(double value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::ofstream open(const std::filesystem::path& file) {
  std::ofstream out(file);
  if (!out) throw std::runtime_error("cannot write " + file.string());
  return out;
}

void close(std::ofstream& out, const std::filesystem::path& file) {
  out.close();
  if (!out) throw std::runtime_error("writing " + file.string() + " failed");
}

int wrap(int value, int period) { return ((value % period) + period) % period; }

bool polar(const Structure& s) {
  for (double q : s.charge_e)
    if (q != 0.0) return true;
  return false;
}

/// Holds a crystal, its potential and the q-mesh of its deck.
struct MeshedCrystal {
  StillingerWeber potential;
  Structure structure;
  Cell mesh;
};

/// Returns the crystal of a deck's name, or nothing if the name is not one of this potential.
std::optional<MeshedCrystal> stillinger_weber_crystal(const std::string& name) {
  const StillingerWeber silicon;
  if (name == "silicon-sw") return MeshedCrystal{silicon, diamond(silicon), {8, 8, 8}};
  if (name == "wurtzite-sw") return MeshedCrystal{silicon, wurtzite(silicon), {5, 5, 3}};
  if (name == "silicon-4h-sw") return MeshedCrystal{silicon, polytype(silicon, 2), {5, 5, 2}};
  if (name == "silicon-6h-sw") return MeshedCrystal{silicon, polytype(silicon, 3), {5, 5, 2}};
  if (name == "silicon-12h-sw") return MeshedCrystal{silicon, polytype(silicon, 6), {5, 5, 1}};
  // The bond lengths follow from the lattice constants of the built-in crystals of GW, 10.693 Bohr
  // (germanium) and 10.677 Bohr (GaAs). The depths ε give the measured optical phonons at Γ, 37.3
  // and 33.2 meV.
  if (name == "germanium-sw") {
    const StillingerWeber scaled = scaled_potential(2.450199, 1.557);
    return MeshedCrystal{scaled, germanium(scaled), {8, 8, 8}};
  }
  if (name == "gaas-sw") {
    const StillingerWeber scaled = scaled_potential(2.446533, 1.223);
    return MeshedCrystal{scaled, gallium_arsenide(scaled), {8, 8, 8}};
  }
  return std::nullopt;
}

}  // namespace

void write_control(const std::filesystem::path& file, const Structure& s, const ControlOptions& o) {
  auto out = open(file);
  if (!o.comment.empty()) out << "! " << o.comment << "\n";
  out << "&allocations\n  nelements=" << s.element.size() << ",\n  natoms=" << s.n_atoms()
      << ",\n  ngrid(:)=" << o.mesh[0] << " " << o.mesh[1] << " " << o.mesh[2]
      << "\n&end\n&crystal\n"
      << "  lfactor=0.1,\n";
  for (int i = 0; i < 3; ++i) {
    out << "  lattvec(:," << i + 1 << ")=";
    for (double x : s.lattice_angstrom[i]) out << " " << exact(x);
    out << ",\n";
  }
  out << "  elements=";
  for (const auto& name : s.element) out << "\"" << name << "\" ";
  out << "\n  types=";
  for (int t : s.type) out << t + 1 << " ";
  out << "\n";
  for (int atom = 0; atom < s.n_atoms(); ++atom) {
    out << "  positions(:," << atom + 1 << ")=";
    for (double x : s.position[atom]) out << " " << exact(x);
    out << "\n";
  }
  out << "  masses=";
  for (double m : s.mass_amu) out << exact(m) << " ";
  out << "\n  gfactors=" << s.element.size() << "*0.0\n";
  if (polar(s)) {
    out << "  epsilon(:,1)=1 0 0,\n  epsilon(:,2)=0 1 0,\n  epsilon(:,3)=0 0 1,\n";
    for (int atom = 0; atom < s.n_atoms(); ++atom)
      for (int x = 0; x < 3; ++x) {
        out << "  born(:," << x + 1 << "," << atom + 1 << ")=";
        for (int y = 0; y < 3; ++y) out << " " << (x == y ? exact(s.charge_e[s.type[atom]]) : "0");
        out << ",\n";
      }
  }
  out << "  scell(:)=" << s.supercell[0] << " " << s.supercell[1] << " " << s.supercell[2]
      << "\n&end\n&parameters\n  T=" << exact(o.temperature_k)
      << "\n  scalebroad=" << exact(o.scalebroad)
      << "\n&end\n&flags\n  nonanalytic=" << (polar(s) ? ".TRUE." : ".FALSE.")
      << "\n  convergence=.TRUE.\n  espresso="
      << (o.second_order == SecondOrder::kEspresso ? ".TRUE." : ".FALSE.")
      << "\n  autoisotopes=.FALSE.\n  isotopes=" << (o.isotopes ? ".TRUE." : ".FALSE.")
      << "\n  four_phonon=" << (o.four_phonon ? ".TRUE." : ".FALSE.") << "\n&end\n";
  close(out, file);
}

void write_supercell_second_order(const std::filesystem::path& file, const Structure& s,
                                  const ForceConstants& fc2) {
  const Cell n = s.supercell;
  const int cells = n[0] * n[1] * n[2];
  const int m = s.n_atoms() * cells;
  const auto number = [&](int atom, int i, int j, int k) {
    return ((atom * n[2] + k) * n[1] + j) * n[0] + i;
  };
  // Sum over all images, by (atom, partner in the supercell).
  std::vector<std::int64_t> folded(static_cast<std::size_t>(s.n_atoms()) * m * 9, 0);
  for (const auto& [key, value] : fc2.block) {
    const Cell& c = key[1].cell;
    const int partner = number(key[1].atom, wrap(c[0], n[0]), wrap(c[1], n[1]), wrap(c[2], n[2]));
    for (int e = 0; e < 9; ++e)
      folded[(static_cast<std::size_t>(key[0].atom) * m + partner) * 9 + e] += value[e];
  }
  auto out = open(file);
  out << m << "\n";
  for (int a = 0; a < s.n_atoms(); ++a)
    for (int k = 0; k < n[2]; ++k)
      for (int j = 0; j < n[1]; ++j)
        for (int i = 0; i < n[0]; ++i)
          for (int b = 0; b < s.n_atoms(); ++b)
            for (int z = 0; z < n[2]; ++z)
              for (int y = 0; y < n[1]; ++y)
                for (int x = 0; x < n[0]; ++x) {
                  const int partner =
                      number(b, wrap(x - i, n[0]), wrap(y - j, n[1]), wrap(z - k, n[2]));
                  const auto* v = &folded[(static_cast<std::size_t>(a) * m + partner) * 9];
                  out << number(a, i, j, k) + 1 << " " << number(b, x, y, z) + 1 << "\n";
                  for (int r = 0; r < 3; ++r)
                    out << decimal(v[3 * r]) << " " << decimal(v[3 * r + 1]) << " "
                        << decimal(v[3 * r + 2]) << "\n";
                }
  close(out, file);
}

void write_espresso_second_order(const std::filesystem::path& file, const Structure& s,
                                 const ForceConstants& fc2) {
  const Cell n = s.supercell;
  const Vector3& a1 = s.lattice_angstrom[0];
  const double celldm_bohr = std::hypot(a1[0], a1[1], a1[2]) / kBohr_angstrom;
  auto out = open(file);
  char line[160];
  out << s.element.size() << " " << s.n_atoms() << " 0 " << exact(celldm_bohr) << " 0 0 0 0 0\n";
  for (const Vector3& row : s.lattice_angstrom) {
    for (double x : row) out << " " << exact(x / kBohr_angstrom / celldm_bohr);
    out << "\n";
  }
  for (std::size_t t = 0; t < s.element.size(); ++t)
    out << t + 1 << " '" << s.element[t] << "' " << exact(s.mass_amu[t] * kAmu_rydberg_mass)
        << "\n";
  for (int atom = 0; atom < s.n_atoms(); ++atom) {
    out << atom + 1 << " " << s.type[atom] + 1;
    for (double x : s.site(atom, {})) out << " " << exact(x / kBohr_angstrom / celldm_bohr);
    out << "\n";
  }
  if (polar(s)) {
    out << "T\n1 0 0\n0 1 0\n0 0 1\n";
    for (int atom = 0; atom < s.n_atoms(); ++atom) {
      out << atom + 1 << "\n";
      for (int x = 0; x < 3; ++x)
        for (int y = 0; y < 3; ++y)
          out << (x == y ? exact(s.charge_e[s.type[atom]]) : "0") << (y == 2 ? "\n" : " ");
    }
  } else {
    out << "F\n";
  }
  out << n[0] << " " << n[1] << " " << n[2] << "\n";

  const double to_rydberg = kBohr_angstrom * kBohr_angstrom / kRydberg_ev;
  const int cells = n[0] * n[1] * n[2];
  std::vector<std::int64_t> folded(static_cast<std::size_t>(9) * s.n_atoms() * s.n_atoms() * cells);
  const auto at = [&](int a, int b, int p, int q, int cell) {
    return (((a * 3 + b) * s.n_atoms() + p) * s.n_atoms() + q) * cells + cell;
  };
  for (const auto& [key, value] : fc2.block) {
    // The file couples (κ, cell t) with (κ', origin): the key's second atom is κ, its first κ'.
    const Cell& c = key[1].cell;
    const int cell = (wrap(c[2], n[2]) * n[1] + wrap(c[1], n[1])) * n[0] + wrap(c[0], n[0]);
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        folded[at(a, b, key[1].atom, key[0].atom, cell)] += value[3 * b + a];
  }
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      for (int p = 0; p < s.n_atoms(); ++p)
        for (int q = 0; q < s.n_atoms(); ++q) {
          out << a + 1 << " " << b + 1 << " " << p + 1 << " " << q + 1 << "\n";
          for (int cell = 0; cell < cells; ++cell) {
            std::snprintf(line, sizeof line, "%4d%4d%4d %23.16E\n", cell % n[0] + 1,
                          cell / n[0] % n[1] + 1, cell / (n[0] * n[1]) + 1,
                          static_cast<double>(folded[at(a, b, p, q, cell)]) *
                              ForceConstants::kQuantum * to_rydberg);
            out << line;
          }
        }
  close(out, file);
}

void write_anharmonic(const std::filesystem::path& file, const Structure& s,
                      const ForceConstants& fc) {
  auto out = open(file);
  out << fc.block.size() << "\n";
  int count = 0;
  char line[120];
  for (const auto& [key, value] : fc.block) {
    out << "\n" << ++count << "\n";
    for (int slot = 1; slot < fc.order; ++slot) {
      const Cell& c = key[slot].cell;
      const Vector3 r = s.cartesian({double(c[0]), double(c[1]), double(c[2])});
      std::snprintf(line, sizeof line, "%.10f %.10f %.10f\n", r[0], r[1], r[2]);
      out << line;
    }
    for (int slot = 0; slot < fc.order; ++slot)
      out << key[slot].atom + 1 << (slot + 1 == fc.order ? "\n" : " ");
    for (std::size_t e = 0; e < value.size(); ++e) {
      std::size_t stride = value.size();
      for (int slot = 0; slot < fc.order; ++slot) {
        stride /= 3;
        out << e / stride % 3 + 1 << " ";
      }
      out << decimal(value[e]) << "\n";
    }
  }
  close(out, file);
}

void write_deck(const std::string& name, const std::filesystem::path& directory,
                SecondOrder second_order) {
  std::filesystem::create_directories(directory);
  const auto write_anharmonic_pair = [&](const Structure& s, const std::vector<EnergyTerm>& terms) {
    write_anharmonic(directory / "FORCE_CONSTANTS_3RD", s, derivatives(s, terms, 3));
    write_anharmonic(directory / "FORCE_CONSTANTS_4TH", s, derivatives(s, terms, 4));
  };
  if (const auto crystal = stillinger_weber_crystal(name)) {
    const Structure& s = crystal->structure;
    const auto terms = crystal->potential.terms(s);
    const ForceConstants fc2 = derivatives(s, terms, 2);
    write_supercell_second_order(directory / "FORCE_CONSTANTS_2ND", s, fc2);
    write_espresso_second_order(directory / "espresso.ifc2", s, fc2);
    write_anharmonic_pair(s, terms);
    write_control(
        directory / "CONTROL", s,
        {.mesh = crystal->mesh,
         .second_order = second_order,
         .comment = "Stillinger-Weber potential, " + name + "; written by quasi-make-deck"});
  } else if (name == "rocksalt") {
    const RigidIon model;
    const Structure s = model.structure();
    if (second_order == SecondOrder::kSupercell)
      write_supercell_second_order(directory / "FORCE_CONSTANTS_2ND", s,
                                   model.supercell_force_constants(s));
    else
      write_espresso_second_order(directory / "espresso.ifc2", s,
                                  model.short_range_force_constants(s));
    write_anharmonic_pair(s, model.anharmonic_terms(s));
    write_control(directory / "CONTROL", s,
                  {.mesh = {6, 6, 6},
                   .second_order = second_order,
                   .comment = "Rigid-ion rock salt; written by quasi-make-deck"});
  } else if (name == "quartic-cubic") {
    const QuarticBonds model;
    const Structure s = model.structure();
    const auto terms = model.terms();
    write_supercell_second_order(directory / "FORCE_CONSTANTS_2ND", s, derivatives(s, terms, 2));
    write_anharmonic_pair(s, terms);
    write_control(directory / "CONTROL", s,
                  {.mesh = {4, 4, 4},
                   .four_phonon = true,
                   .comment = "Cubic crystal of quartic bonds; written by quasi-make-deck"});
  } else {
    throw std::invalid_argument(
        "unknown deck '" + name +
        "'; known: silicon-sw, silicon-4h-sw, silicon-6h-sw, silicon-12h-sw, germanium-sw, "
        "gaas-sw, wurtzite-sw, rocksalt, quartic-cubic");
  }
}

}  // namespace quasi::model
