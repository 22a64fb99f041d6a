#include "workers/thermal/input/displacements/outcar.hpp"

#include <algorithm>
#include <string_view>

#include "workers/thermal/input/displacements/force_document.hpp"

namespace quasi::thermal {
namespace {

/// Refuses forces whose electronic loop stopped at NELM.
void check_electrons(const ForceDocument& document, std::string_view before_forces) {
  const std::size_t last = before_forces.rfind("Iteration ");
  if (last == std::string_view::npos) document.fail("it contains no electronic iteration");
  if (before_forces.find("aborting loop because EDIFF is reached", last) == std::string_view::npos)
    document.fail(
        "the last electronic loop did not reach EDIFF: the forces are not converged; "
        "raise NELM");
}

/// Returns the element of every atom: VRHFIN names the species, "ions per type" counts their atoms.
std::vector<std::string> elements(const ForceDocument& document) {
  std::vector<std::string> species;
  constexpr std::string_view kSpecies = "VRHFIN =";
  std::string_view rest = document.text();
  for (std::size_t at = rest.find(kSpecies); at != std::string_view::npos;
       at = rest.find(kSpecies)) {
    rest = rest.substr(at + kSpecies.size());
    species.push_back(element_of_label(rest.substr(0, rest.find(':'))));
  }
  const std::vector<double> counts =
      document.reals(document.between(document.text(), "ions per type =", "\n"));
  if (counts.size() != species.size())
    document.fail("it has " + std::to_string(species.size()) + " lines VRHFIN and " +
                  std::to_string(counts.size()) + " 'ions per type'");
  std::vector<std::string> symbols;
  for (std::size_t type = 0; type < counts.size(); ++type)
    symbols.insert(symbols.end(), static_cast<std::size_t>(std::max(counts[type], 0.0)),
                   species[type]);
  return symbols;
}

Mat3 last_lattice(const ForceDocument& document, std::string_view before_forces) {
  const std::size_t at = before_forces.rfind("direct lattice vectors");
  if (at == std::string_view::npos) document.fail("it contains no 'direct lattice vectors'");
  std::string_view rest = before_forces.substr(at);
  ForceDocument::take_line(rest);
  Mat3 lattice_angstrom{};
  for (Vec3& row : lattice_angstrom)
    row = document.vector(ForceDocument::take_line(rest), "direct lattice vectors");
  return lattice_angstrom;
}

}  // namespace

ForceFrame read_outcar(const std::filesystem::path& file) {
  const ForceDocument document(file, "VASP");
  const std::size_t forces_at = document.text().rfind("TOTAL-FORCE (eV/Angst)");
  if (forces_at == std::string_view::npos)
    document.fail("it contains no TOTAL-FORCE; did VASP end early?");
  const std::string_view before = document.text().substr(0, forces_at);
  check_electrons(document, before);
  ForceFrame frame;
  frame.lattice_angstrom = last_lattice(document, before);
  frame.symbol = elements(document);
  std::string_view rows = document.text().substr(forces_at);
  ForceDocument::take_line(rows);
  ForceDocument::take_line(rows);
  for (std::size_t atom = 0; atom < frame.symbol.size(); ++atom) {
    const std::vector<double> row = document.reals(ForceDocument::take_line(rows));
    if (row.size() != 6)
      document.fail("TOTAL-FORCE ends after " + std::to_string(atom) + " of " +
                    std::to_string(frame.symbol.size()) + " atoms; did VASP end early?");
    frame.position_angstrom.push_back({row[0], row[1], row[2]});
    frame.force_ev_per_angstrom.push_back({row[3], row[4], row[5]});
  }
  return frame;
}

}  // namespace quasi::thermal
