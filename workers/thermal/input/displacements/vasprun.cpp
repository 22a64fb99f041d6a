#include "workers/thermal/input/displacements/vasprun.hpp"

#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

/// The text of a vasprun.xml, and searches in it that fail with its name.
class Document {
 public:
  explicit Document(const std::filesystem::path& file) : name_(file.string()) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw InvalidInput("'" + name_ + "' is missing or cannot be read");
    std::ostringstream text;
    text << in.rdbuf();
    text_ = text.str();
  }
  std::string_view text() const { return text_; }
  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidInput("'" + name_ + "': " + what);
  }

  /// Returns the text between the first `open` and the next `close` in a part of the document.
  std::string_view between(std::string_view part, std::string_view open,
                           std::string_view close) const {
    const std::size_t start = part.find(open);
    const std::size_t end =
        start == std::string_view::npos ? start : part.find(close, start + open.size());
    if (end == std::string_view::npos)
      fail("no complete " + std::string(open) + " was found; did VASP end early?");
    return part.substr(start + open.size(), end - start - open.size());
  }

  double real(std::string_view word) const {
    double value = 0.0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
      fail("'" + std::string(word) + "' is not a finite number");
    return value;
  }

  /// Returns the vectors <v>x y z</v> of the array with a name.
  std::vector<Vec3> vectors(std::string_view part, const std::string& name) const {
    std::string open = "<varray name=\"";
    open += name;
    open += '"';
    std::string_view array = between(part, open, "</varray>");
    std::vector<Vec3> found;
    for (std::size_t at = array.find("<v>"); at != std::string_view::npos; at = array.find("<v>")) {
      std::istringstream words{std::string(between(array, "<v>", "</v>"))};
      std::vector<double> numbers;
      for (std::string word; words >> word;) numbers.push_back(real(word));
      if (numbers.size() != 3) fail("a vector of '" + name + "' has no three numbers");
      found.push_back({numbers[0], numbers[1], numbers[2]});
      array = array.substr(array.find("</v>") + 4);
    }
    return found;
  }

 private:
  std::string name_, text_;
};

std::vector<std::string> elements(const Document& document) {
  std::string_view array = document.between(document.text(), "<array name=\"atoms\"", "</array>");
  std::vector<std::string> symbols;
  for (std::size_t at = array.find("<rc>"); at != std::string_view::npos; at = array.find("<rc>")) {
    std::istringstream word{std::string(document.between(array.substr(at), "<c>", "</c>"))};
    symbols.emplace_back();
    word >> symbols.back();
    array = array.substr(at + 4);
  }
  return symbols;
}

/// Refuses a step whose electrons did not converge.
void check_electrons(const Document& document, std::string_view step) {
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
  const Document document(file);
  const std::size_t last = document.text().rfind("<calculation>");
  if (last == std::string_view::npos) document.fail("it contains no <calculation>");
  const std::string_view step = document.text().substr(last);
  check_electrons(document, step);
  ForceFrame frame;
  const std::vector<Vec3> basis = document.vectors(step, "basis");
  if (basis.size() != 3) document.fail("'basis' has no three vectors");
  for (int i = 0; i < 3; ++i) frame.lattice_angstrom[i] = basis[i];
  for (const Vec3& position : document.vectors(step, "positions"))
    frame.position_angstrom.push_back(transpose(frame.lattice_angstrom) * position);
  frame.force_ev_per_angstrom = document.vectors(step, "forces");
  frame.symbol = elements(document);
  if (frame.symbol.size() != frame.position_angstrom.size() ||
      frame.symbol.size() != frame.force_ev_per_angstrom.size())
    document.fail("it has " + std::to_string(frame.symbol.size()) + " elements, " +
                  std::to_string(frame.position_angstrom.size()) + " positions and " +
                  std::to_string(frame.force_ev_per_angstrom.size()) + " forces");
  return frame;
}

}  // namespace quasi::thermal
