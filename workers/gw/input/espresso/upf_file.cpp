#include "workers/gw/input/espresso/upf_file.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/input/espresso/xml_file.hpp"

// Reads pseudopotentials in version 2 of UPF, the XML format of Quantum ESPRESSO (docs/theory/gw.md
// 1.5).
namespace quasi::gw {
namespace {

constexpr int kMaxProjectors = 100;
constexpr int kMaxL = 3;
const char* const kRemedy = "copy the pseudopotential of the run into the folder again";

/// Removes the section PP_INFO. It is for human readers and may hold characters that XML forbids.
std::string without_notes(std::string text) {
  const auto begin = text.find("<PP_INFO>"), end = text.find("</PP_INFO>");
  if (begin != std::string::npos && end != std::string::npos && end > begin)
    text.erase(begin, end + 10 - begin);
  return text;
}

std::string word_of(const pugi::xml_node& header, const char* name) {
  std::string word = header.attribute(name).value();
  std::erase(word, ' ');
  return word;
}

/// Refuses ultrasoft, PAW, fully relativistic and bare Coulomb pseudopotentials.
/// @throws InvalidInput with file, quantity, value and remedy
void check_kind(const std::filesystem::path& path, const pugi::xml_node& header) {
  const auto refuse = [&](const std::string& quantity) {
    throw InvalidInput("'" + path.string() + "' has " + quantity +
                       "; rerun pw.x with a norm-conserving, scalar pseudopotential "
                       "(pseudo_type = \"NC\")");
  };
  const std::string kind = word_of(header, "pseudo_type");
  if (is_true(word_of(header, "is_ultrasoft")) || is_true(word_of(header, "is_paw")) ||
      (kind != "NC" && kind != "SL"))
    refuse("pseudo_type = \"" + kind + "\"");
  if (is_true(word_of(header, "has_so")))
    refuse("has_so = \"true\", a fully relativistic pseudopotential");
  if (is_true(word_of(header, "is_coulomb")))
    refuse("is_coulomb = \"true\", a bare Coulomb potential");
}

void read_projectors(const XmlFile& file, const pugi::xml_node& root, int count,
                     Pseudopotential& pseudo) {
  std::size_t reach = 0;
  for (int i = 1; i <= count; ++i) {
    const std::string name = "PP_NONLOCAL/PP_BETA." + std::to_string(i);
    const pugi::xml_node node = file.element(root, name.c_str());
    const double l = file.attribute(node, "angular_momentum");
    if (l != std::floor(l) || l < 0 || l > kMaxL)
      file.fail("has angular_momentum = " + std::to_string(l) + " in " + name +
                "; it must be a whole number from 0 to " + std::to_string(kMaxL));
    const double points = node.attribute("cutoff_radius_index")
                              ? file.attribute(node, "cutoff_radius_index")
                              : static_cast<double>(pseudo.r.size());
    if (points > 0) reach = std::max(reach, static_cast<std::size_t>(points));
    pseudo.projectors.push_back(
        {static_cast<int>(l), file.numbers(node, static_cast<std::int64_t>(pseudo.r.size()))});
  }
  if (reach == 0 || reach > pseudo.r.size()) reach = pseudo.r.size();
  for (Pseudopotential::Projector& projector : pseudo.projectors) projector.r_beta.resize(reach);
  if (count > 0)
    pseudo.d_ry =
        file.numbers(file.element(root, "PP_NONLOCAL/PP_DIJ"), std::int64_t{1} * count * count);
}

}  // namespace

Pseudopotential read_upf(const std::filesystem::path& path) {
  const std::string text = read_xml_text(path, kRemedy);
  if (text.find("<UPF version=\"2") == std::string::npos)
    throw InvalidInput("'" + path.string() +
                       "' is not of the format UPF version 2; convert it with `upfconv.x -u` and "
                       "rerun pw.x");
  const XmlFile file(path, kRemedy, without_notes(text));
  const pugi::xml_node root = file.root();
  const pugi::xml_node header = file.element(root, "PP_HEADER");
  check_kind(path, header);
  Pseudopotential pseudo;
  pseudo.element = word_of(header, "element");
  pseudo.valence = file.attribute(header, "z_valence");
  pseudo.r = file.numbers(file.element(root, "PP_MESH/PP_R"), -1);
  const auto n = static_cast<std::int64_t>(pseudo.r.size());
  pseudo.rab = file.numbers(file.element(root, "PP_MESH/PP_RAB"), n);
  if (n < 3 || !std::is_sorted(pseudo.r.begin(), pseudo.r.end()) || pseudo.r[0] < 0.0)
    file.fail("has a radial grid PP_R of " + std::to_string(n) +
              " points; it needs at least 3 in ascending order");
  pseudo.local_ry = file.numbers(file.element(root, "PP_LOCAL"), n);
  if (is_true(word_of(header, "core_correction")))
    pseudo.core = file.numbers(file.element(root, "PP_NLCC"), n);
  const double count = file.attribute(header, "number_of_proj");
  if (count != std::floor(count) || count < 0 || count > kMaxProjectors)
    file.fail("has number_of_proj = " + std::to_string(count) +
              "; it must be a whole number from 0 to " + std::to_string(kMaxProjectors));
  read_projectors(file, root, static_cast<int>(count), pseudo);
  return pseudo;
}

}  // namespace quasi::gw
