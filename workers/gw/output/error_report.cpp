#include "workers/gw/output/error_report.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/io/dataset_descriptions.hpp"

namespace quasi::gw {
namespace {

constexpr const char* kNotExamined = "not examined";

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::vector<std::string> unexamined(const ErrorTable& errors) {
  std::vector<std::string> names;
  for (const ErrorRow& row : errors.rows)
    if (!row.examined()) names.push_back(row.name);
  return names;
}

std::string number(double value, const char* format = "%10.4f") {
  char text[24];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Formats one line of the table. @param gap  null: a dash is printed
std::string line_of(const std::string& name, double largest, const nlohmann::json& gap,
                    const std::string& kind) {
  char text[120];
  std::snprintf(text, sizeof text, " %-16s", name.c_str());
  return text + number(largest) + (gap.is_null() ? "         -" : number(gap.get<double>())) +
         (kind.empty() ? "" : "  " + kind) + "\n";
}

}  // namespace

nlohmann::json summary_of_errors(const ErrorTable& errors) {
  nlohmann::json rows = nlohmann::json::array();
  for (const ErrorRow& row : errors.rows) {
    nlohmann::json entry{{"name", row.name}, {"kind", row.kind}, {"value_ev", kNotExamined}};
    if (row.examined()) {
      entry["value_ev"] = row.value_ev;
      entry["gap_ev"] = or_null(row.gap_ev);
    }
    rows.push_back(std::move(entry));
  }
  return {{"rows", rows},
          {"systematic_ev", errors.systematic_ev},
          {"systematic_gap_ev", or_null(errors.systematic_gap_ev)},
          {"not_examined", unexamined(errors)}};
}

std::string table_of_error_rows(const nlohmann::json& errors) {
  const auto largest = [](const nlohmann::json& values) {
    const auto list = values.get<std::vector<double>>();
    return list.empty() ? 0.0 : *std::max_element(list.begin(), list.end());
  };
  std::string text = "\nerrors (eV)        largest       gap\n", missing;
  for (const auto& row : errors.at("rows")) {
    if (row.at("value_ev").is_string())
      missing.append(" ").append(row.at("name").get<std::string>());
    else if (row.at("kind") != "no random vectors")
      text +=
          line_of(row.at("name"), largest(row.at("value_ev")), row.at("gap_ev"), row.at("kind"));
  }
  text += line_of("systematic sum", largest(errors.at("systematic_ev")),
                  errors.at("systematic_gap_ev"), "of the examined rows but stochastic");
  return missing.empty() ? text : text + " not examined:" + missing + "\n";
}

void write_error_rows(const ErrorTable& errors, H5Writer& file) {
  if (errors.rows.empty()) return;
  const auto n = static_cast<std::int64_t>(errors.systematic_ev.size());
  const auto write_gap = [&](const std::string& path, const std::optional<double>& gap) {
    if (gap) file.write(path, std::vector<double>{*gap}, {1}, "eV");
  };
  for (const ErrorRow& row : errors.rows) {
    if (!row.examined()) continue;
    file.write("/errors/" + row.name + "/value", row.value_ev, {n}, "eV");
    write_gap("/errors/" + row.name + "/gap", row.gap_ev);
  }
  file.write("/errors/systematic", errors.systematic_ev, {n}, "eV");
  write_gap("/errors/systematic_gap", errors.systematic_gap_ev);
  if (const auto names = unexamined(errors); !names.empty())
    write_labels("/errors/not_examined", names, &file);
}

void write_error_file(const std::filesystem::path& directory, const Calculation& run) {
  if (run.errors.rows.empty()) return;
  const std::filesystem::path path = directory / "errors.dat";
  std::ofstream out(path);
  out << "# errors of E_qp1, or of Sigma where V_xc is unknown (eV)\n"
         "# k (reduced), spin, band";
  for (const ErrorRow& row : run.errors.rows)
    if (row.examined()) out << ", " << row.name;
  out << ", sum of the systematic ones\n# not examined:";
  for (const std::string& name : unexamined(run.errors)) out << ' ' << name;
  out << '\n';
  for (std::size_t i = 0; i < run.quasiparticles.size(); ++i) {
    const Quasiparticle& qp = run.quasiparticles[i];
    char state[80];
    std::snprintf(state, sizeof state, "%13.9f%13.9f%13.9f%4d%6d", qp.k[0], qp.k[1], qp.k[2],
                  qp.spin, qp.band);
    out << state;
    for (const ErrorRow& row : run.errors.rows)
      if (row.examined()) out << number(row.value_ev[i], "%12.6f");
    out << number(run.errors.systematic_ev[i], "%12.6f") << '\n';
  }
  out.close();
  if (!out) throw StorageError("'" + path.string() + "' cannot be written");
}

}  // namespace quasi::gw
