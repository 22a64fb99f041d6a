#include "workers/thermal/input/displacements/vasprun.hpp"

#include <string_view>

#include "workers/thermal/input/displacements/force_document.hpp"

namespace quasi::thermal {
namespace {

/// Returns the vectors <v>x y z</v> of the array with a name.
std::vector<Vec3> vectors(const ForceDocument& document, std::string_view part,
                          const std::string& name) {
  std::string open = "<varray name=\"";
  open += name;
  open += '"';
  std::string_view array = document.between(part, open, "</varray>");
  std::vector<Vec3> found;
  for (std::size_t at = array.find("<v>"); at != std::string_view::npos; at = array.find("<v>")) {
    found.push_back(document.vector(document.between(array, "<v>", "</v>"), name));
    array = array.substr(array.find("</v>") + 4);
  }
  return found;
}

std::vector<std::string> elements(const ForceDocument& document) {
  std::string_view array = document.between(document.text(), "<array name=\"atoms\"", "</array>");
  std::vector<std::string> symbols;
  for (std::size_t at = array.find("<rc>"); at != std::string_view::npos; at = array.find("<rc>")) {
    symbols.push_back(element_of_label(document.between(array.substr(at), "<c>", "</c>")));
    array = array.substr(at + 4);
  }
  return symbols;
}

/// Refuses a step whose electrons did not converge.
void check_electrons(const ForceDocument& document, std::string_view step) {
  const std::string_view limit =
      document.between(document.text(), "<i type=\"int\" name=\"NELM\">", "</i>");
  const std::size_t first = limit.find_first_not_of(' ');
  const double most = document.real(first == std::string_view::npos ? limit : limit.substr(first));
  int count = 0;
  for (std::size_t at = step.find("<scstep>"); at != std::string_view::npos;
       at = step.find("<scstep>", at + 1))
    ++count;
  if (count >= most)
    document.fail("the electrons took " + std::to_string(count) +
                  " steps, and NELM is not above: the forces are not converged; raise NELM");
}

}  // namespace

ForceFrame read_vasprun(const std::filesystem::path& file) {
  const ForceDocument document(file, "VASP");
  const std::size_t last = document.text().rfind("<calculation>");
  if (last == std::string_view::npos) document.fail("it contains no <calculation>");
  const std::string_view step = document.text().substr(last);
  check_electrons(document, step);
  ForceFrame frame;
  const std::vector<Vec3> basis = vectors(document, step, "basis");
  if (basis.size() != 3) document.fail("'basis' has no three vectors");
  for (int i = 0; i < 3; ++i) frame.lattice_angstrom[i] = basis[i];
  for (const Vec3& position : vectors(document, step, "positions"))
    frame.position_angstrom.push_back(transpose(frame.lattice_angstrom) * position);
  frame.force_ev_per_angstrom = vectors(document, step, "forces");
  frame.symbol = elements(document);
  if (frame.symbol.size() != frame.position_angstrom.size() ||
      frame.symbol.size() != frame.force_ev_per_angstrom.size())
    document.fail("it has " + std::to_string(frame.symbol.size()) + " elements, " +
                  std::to_string(frame.position_angstrom.size()) + " positions and " +
                  std::to_string(frame.force_ev_per_angstrom.size()) + " forces");
  return frame;
}

}  // namespace quasi::thermal
