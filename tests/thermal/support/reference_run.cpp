#include "tests/thermal/support/reference_run.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "tests/support/reference_data.hpp"
#include "tests/support/temporary_directory.hpp"

namespace quasi::thermal::test {
std::vector<std::vector<double>> numbers_of(const std::filesystem::path& plain) {
  const bool zipped = !std::filesystem::exists(plain);
  const std::string command =
      zipped ? "gzip -dc '" + plain.string() + ".gz'" : "cat '" + plain.string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot read " + plain.string());
  std::vector<std::vector<double>> rows;
  char line[1 << 16];
  while (std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    std::vector<double> row;
    for (char* at = line;;) {
      char* end = nullptr;
      const double value = std::strtod(at, &end);
      if (end == at) break;
      row.push_back(value);
      at = end;
    }
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

ReferenceRun::ReferenceRun(const std::string& name) {
  const auto si = quasi::test::reference_dir() / "thermal/si";
  run_ = name == kPublished ? si / name : si / "runs" / name;
  if (name == kPublished) needs_ = {"allow_inconsistent_position=T", "allow_imaginary=T"};
  static const quasi::test::TemporaryDirectory directory;
  deck_ = directory.path() / name;
  std::filesystem::create_directories(deck_);
  const auto link = [&](const std::filesystem::path& target) {
    const auto at = deck_ / target.filename();
    if (!std::filesystem::exists(at)) std::filesystem::create_symlink(target, at);
  };
  link(run_ / "CONTROL");
  for (const char* file : {"espresso.ifc2", "FORCE_CONSTANTS_3RD", "FORCE_CONSTANTS_4TH"})
    link(si / "deck" / file);
  char mesh[32];
  std::snprintf(mesh, sizeof mesh, "mesh_%02d.txt", control().mesh[0]);
  eigenvectors_ = si / "eigenvectors" / mesh;
}

Control ReferenceRun::control(const std::vector<std::string>& texts) const {
  std::vector<Setting> settings;
  for (const auto* list : {&needs_, &texts})
    for (const auto& text : *list) settings.push_back(parse_setting(text));
  return read_control(deck_, settings);
}

std::vector<std::vector<double>> ReferenceRun::table(const std::string& file) const {
  return numbers_of(run_ / file);
}

std::vector<double> ReferenceRun::mode_column(const std::string& file, int n_branches) const {
  const auto rows = table(file);
  const std::size_t n_points = rows.size() / static_cast<std::size_t>(n_branches);
  std::vector<double> values(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row)
    values[row % n_points * static_cast<std::size_t>(n_branches) + row / n_points] =
        rows[row].back();
  return values;
}

std::vector<double> ReferenceRun::kappa(const std::string& file, double temperature_k) const {
  for (const auto& row : table(file))
    if (row.at(0) == temperature_k) return {row.begin() + 1, row.begin() + 10};
  throw std::runtime_error(file + " has no such temperature");
}

void ReferenceRun::inject(const Crystal& crystal, const Symmetry& symmetry, const Control& control,
                          Modes& modes) const {
  const int nb = modes.n_branches;
  for (const auto& row : numbers_of(eigenvectors_)) {
    const auto point = static_cast<std::int64_t>(row.at(0)) - 1;
    const auto branch = static_cast<int>(row.at(1)) - 1;
    for (int i = 0; i < nb; ++i)
      modes.eigenvector[(point * nb + branch) * nb + i] = {row.at(3 + 2 * i), row.at(4 + 2 * i)};
  }
  const auto velocities = table("BTE.v_full");
  for (std::size_t row = 0; row < velocities.size(); ++row) {
    const auto branch = static_cast<std::int64_t>(row) / modes.n_q;
    const auto point = static_cast<std::int64_t>(row) % modes.n_q;
    for (int d = 0; d < 3; ++d)
      modes.velocity_km_s[(point * nb + branch) * 3 + d] = velocities[row].at(d);
  }
  set_spreads(crystal, symmetry, control.broadening, modes);
}

}  // namespace quasi::thermal::test
