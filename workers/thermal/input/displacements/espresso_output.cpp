#include "workers/thermal/input/displacements/espresso_output.hpp"

#include <algorithm>
#include <string_view>

#include "workers/thermal/input/displacements/force_document.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

constexpr double kBohr_angstrom = units::kBohr_m * 1e10;
constexpr double kRydberg_ev = units::kRydberg_j / units::kElementaryCharge_c;
constexpr double kRydbergPerBohr = kRydberg_ev / kBohr_angstrom;  ///< in eV/Å

constexpr const char* kNotConverged =
    "the electrons did not converge: raise electron_maxstep or change the mixing";

/// Returns what stands in the last parentheses of a line such as "a(1) = ( 1.0 0.0 0.0 )".
std::string_view last_parentheses(const ForceDocument& document, std::string_view line) {
  const std::size_t open = line.rfind('('), close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    document.fail("a vector in parentheses was expected, found '" + std::string(line) + "'");
  return line.substr(open + 1, close - open - 1);
}

/// Returns the document from the line after the one that holds a heading.
std::string_view after_heading(const ForceDocument& document, std::string_view heading) {
  const std::size_t at = document.text().find(heading);
  if (at == std::string_view::npos)
    document.fail("no '" + std::string(heading) + "' was found; did pw.x end early?");
  std::string_view rest = document.text().substr(at);
  ForceDocument::take_line(rest);
  return rest;
}

void read_cell(const ForceDocument& document, double alat_angstrom, ForceFrame& frame) {
  std::string_view axes = after_heading(document, "crystal axes: (cart. coord. in units of alat)");
  for (Vec3& row : frame.lattice_angstrom)
    row =
        alat_angstrom *
        document.vector(last_parentheses(document, ForceDocument::take_line(axes)), "crystal axes");
  std::string_view sites = after_heading(document, "positions (alat units)");
  for (;;) {
    const std::string_view line = ForceDocument::take_line(sites);
    const std::size_t tau = line.find("tau(");
    if (tau == std::string_view::npos) return;
    std::string_view label = line.substr(0, tau);
    label.remove_prefix(std::min(label.find_first_not_of(" 0123456789*"), label.size()));
    frame.symbol.push_back(element_of_label(label));
    frame.position_angstrom.push_back(
        alat_angstrom * document.vector(last_parentheses(document, line), "positions"));
  }
}

/// Returns the value of an attribute NAME="…" in the text of a tag.
std::string_view attribute(const ForceDocument& document, std::string_view tag,
                           const std::string& name) {
  return document.between(tag, name + "=\"", "\"");
}

}  // namespace

ForceFrame read_espresso_text(const std::filesystem::path& file) {
  const ForceDocument document(file, "pw.x");
  constexpr std::string_view kHeading = "Forces acting on atoms";
  if (document.text().find("convergence NOT achieved") != std::string_view::npos)
    document.fail(kNotConverged);
  std::string_view rows = after_heading(document, kHeading);
  if (rows.find(kHeading) != std::string_view::npos)
    document.fail(
        "it holds several sets of forces, and a displaced cell needs one: run pw.x with "
        "calculation = 'scf' and keep one run in a file");
  if (document.text().find("convergence has been achieved") == std::string_view::npos)
    document.fail(kNotConverged);
  const std::vector<double> celldm =
      document.reals(document.between(document.text(), "celldm(1)=", "celldm(2)="));
  if (celldm.size() != 1) document.fail("'celldm(1)=' has no number");
  ForceFrame frame;
  read_cell(document, celldm[0] * kBohr_angstrom, frame);
  // With more output pw.x prints contributions to the forces after the forces themselves, in lines
  // of the same form. The number of atoms ends the block.
  while (frame.force_ev_per_angstrom.size() < frame.symbol.size()) {
    if (rows.empty())
      document.fail("the forces end after " + std::to_string(frame.force_ev_per_angstrom.size()) +
                    " of " + std::to_string(frame.symbol.size()) + " atoms; did pw.x end early?");
    const std::string_view line = ForceDocument::take_line(rows);
    const std::size_t at = line.find("force =");
    if (at == std::string_view::npos) continue;
    frame.force_ev_per_angstrom.push_back(kRydbergPerBohr *
                                          document.vector(line.substr(at + 7), "forces"));
  }
  return frame;
}

ForceFrame read_espresso_xml(const std::filesystem::path& file) {
  const ForceDocument document(file, "pw.x");
  const std::string_view output = document.between(document.text(), "<output>", "</output>");
  const std::string_view converged =
      document.between(output, "<convergence_achieved>", "</convergence_achieved>");
  if (converged.find("true") == std::string_view::npos) document.fail(kNotConverged);
  const std::string_view structure =
      document.between(output, "<atomic_structure", "</atomic_structure>");
  ForceFrame frame;
  const char* const vector_name[] = {"a1", "a2", "a3"};
  for (int i = 0; i < 3; ++i) {
    const std::string name = vector_name[i];
    frame.lattice_angstrom[i] =
        kBohr_angstrom *
        document.vector(document.between(structure, "<" + name + ">", "</" + name + ">"), name);
  }
  std::string_view atoms = document.between(structure, "<atomic_positions>", "</atomic_positions>");
  for (std::size_t at = atoms.find("<atom "); at != std::string_view::npos;
       at = atoms.find("<atom ")) {
    atoms = atoms.substr(at);
    const std::string_view atom = document.between(atoms, "<atom ", "</atom>");
    frame.symbol.push_back(element_of_label(attribute(document, atom, "name")));
    frame.position_angstrom.push_back(
        kBohr_angstrom * document.vector(atom.substr(atom.find('>') + 1), "atomic_positions"));
    atoms = atoms.substr(6);
  }
  if (output.find("<forces") == std::string_view::npos)
    document.fail("it contains no forces: run pw.x with tprnfor = .true.");
  const std::string_view forces = document.between(output, "<forces", "</forces>");
  const std::vector<double> numbers = document.reals(forces.substr(forces.find('>') + 1));
  if (numbers.size() != 3 * frame.symbol.size())
    document.fail("it has " + std::to_string(frame.symbol.size()) + " atoms and " +
                  std::to_string(numbers.size()) + " numbers of forces");
  for (std::size_t i = 0; i < numbers.size(); i += 3)
    frame.force_ev_per_angstrom.push_back(2.0 * kRydbergPerBohr *
                                          Vec3{numbers[i], numbers[i + 1], numbers[i + 2]});
  return frame;
}

}  // namespace quasi::thermal
