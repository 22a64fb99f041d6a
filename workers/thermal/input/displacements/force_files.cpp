#include "workers/thermal/input/displacements/force_files.hpp"

#include <fstream>
#include <string>

#include "workers/thermal/input/displacements/espresso_output.hpp"
#include "workers/thermal/input/displacements/extended_xyz.hpp"
#include "workers/thermal/input/displacements/outcar.hpp"
#include "workers/thermal/input/displacements/phono3py_forces.hpp"
#include "workers/thermal/input/displacements/vasprun.hpp"

namespace quasi::thermal {
namespace {

constexpr std::streamsize kHeadBytes = 4096;  ///< of a file, where programs name themselves

std::string head_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string head(static_cast<std::size_t>(kHeadBytes), '\0');
  in.read(head.data(), kHeadBytes);
  head.resize(static_cast<std::size_t>(in.gcount()));
  return head;
}

}  // namespace

std::vector<ForceFrame> read_force_file(const std::filesystem::path& file) {
  const std::string head = head_of(file);
  const auto contains = [&](const char* text) { return head.find(text) != std::string::npos; };
  if (contains("quantum-espresso.org/ns") || contains("<qes:espresso"))
    return {read_espresso_xml(file)};
  if (contains("<modeling>") || file.extension() == ".xml") return {read_vasprun(file)};
  if (contains("Program PWSCF")) return {read_espresso_text(file)};
  if (contains("vasp.") && head.find("vasp.") == head.find_first_not_of(' '))
    return {read_outcar(file)};
  if (head.rfind("# File:", 0) == 0 || file.filename().string().rfind("FORCES_FC", 0) == 0)
    return read_phono3py_forces(file);
  return read_extended_xyz(file);
}

}  // namespace quasi::thermal
