#include <algorithm>
#include <array>

#include "workers/mosfet/input/device_tables.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

std::vector<PhononProcess> phonon_set(std::size_t which, double acoustic_ev) {
  const double kelvin[] = {140, 215, 720, 220, 550, 685};
  const double milli_ev[] = {12.0, 18.5, 61.2, 19.0, 47.4, 59.0};
  const double coupling_ev_per_nm[] = {5.0, 8.0, 110.0, 3.0, 20.0, 20.0};
  const char* names[] = {"g1", "g2", "g3", "f1", "f2", "f3"};
  std::vector<PhononProcess> set{{"ac", ProcessKind::kElastic, 0.0, acoustic_ev}};
  for (int k = 0; k < 6; ++k)
    set.push_back({names[k], k < 3 ? ProcessKind::kG : ProcessKind::kF,
                   which == 1 ? kelvin[k] * units::kBoltzmann_ev_k : milli_ev[k] * 1e-3,
                   coupling_ev_per_nm[k]});
  return set;
}

PhononProcess read_process(const toml::table* table, std::size_t k, const std::string& where) {
  TableReader entry(table, "scattering.process[" + std::to_string(k) + "]", where);
  PhononProcess process;
  process.name = entry.text("name", "process" + std::to_string(k));
  process.kind = std::array{ProcessKind::kElastic, ProcessKind::kG,
                            ProcessKind::kF}[entry.choice("kind", 0, {"elastic", "g", "f"})];
  process.energy_ev = entry.number("energy_mev", 0.0, 0.0, 500.0) * 1e-3;
  if ((process.kind == ProcessKind::kElastic) != (process.energy_ev == 0.0))
    entry.fail("energy_mev", "must be 0 for an elastic process and positive for any other");
  if (process.kind == ProcessKind::kElastic)
    process.coupling_ev_per_nm = entry.number("potential_ev", 9.0, 0.0, 100.0);
  else
    process.coupling_ev_per_nm = entry.number("coupling_1e8_ev_cm", 1.0, 0.0, 100.0) * 10.0;
  entry.finish();
  return process;
}

// Removes the processes that scattering.enabled does not name.
void keep_enabled(TableReader& reader, Scattering* scattering) {
  Scattering& s = *scattering;
  const auto enabled = reader.texts("enabled");
  if (!enabled) return;
  std::vector<PhononProcess> kept;
  for (const std::string& name : *enabled) {
    const auto found = std::find_if(s.processes.begin(), s.processes.end(),
                                    [&](const auto& p) { return p.name == name; });
    if (found == s.processes.end()) {
      std::vector<std::string> names;
      for (const auto& p : s.processes) names.push_back(p.name);
      const std::string nearest = nearest_name(name, names);
      reader.fail("enabled", "names '" + name + "', which is not a process of the set" +
                                 (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
    }
    if (std::any_of(kept.begin(), kept.end(), [&](const auto& p) { return p.name == name; }))
      reader.fail("enabled", "names '" + name + "' twice");
    kept.push_back(*found);
  }
  s.processes = kept;
}

Roughness read_roughness(const toml::table* table, const std::string& where) {
  Roughness roughness;
  TableReader entry(table, "scattering.roughness", where);
  roughness.height_nm = entry.number("height_nm", 0.3, 0.0, 3.0);
  roughness.length_nm = entry.number("length_nm", 1.5, 0.1, 50.0);
  roughness.spectrum = entry.choice("spectrum", 0, {"exponential", "gaussian"}) == 0
                           ? RoughnessSpectrum::kExponential
                           : RoughnessSpectrum::kGaussian;
  entry.finish();
  return roughness;
}

}  // namespace

void read_scattering(const toml::table* table, const std::string& where, ParameterSet parameters,
                     Scattering* scattering) {
  TableReader reader(table, "scattering", where);
  Scattering& s = *scattering;
  const auto set =
      reader.choice("set", 0, {"jacoboni-reggiani", "jacoboni-reggiani-kelvin", "custom"});
  const double acoustic =
      reader.number("acoustic_ev", parameters == ParameterSet::kPaper ? 9.0 : 14.6, 0.0, 100.0);
  const auto scheme = reader.choice("scheme", 0, {"balanced", "paper", "none"});
  s.scheme = std::array{ScatteringScheme::kBalanced, ScatteringScheme::kPaper,
                        ScatteringScheme::kNone}[scheme];
  const auto own = reader.tables("process");
  if (set != 2) {
    if (!own.empty()) reader.fail("process", "needs set = \"custom\"");
    s.processes = phonon_set(set, acoustic);
  } else {
    if (own.empty()) reader.fail("set", "= \"custom\" needs at least one [[scattering.process]]");
    if (reader.has("acoustic_ev"))
      reader.fail("acoustic_ev", "belongs to a named set; give coupling to the custom process");
    for (std::size_t k = 0; k < own.size(); ++k)
      s.processes.push_back(read_process(own[k], k, where));
  }
  keep_enabled(reader, &s);
  s.impurities = reader.boolean("impurities", false);
  s.impurity_model = reader.choice("impurity_model", 0, {"partial-waves", "brooks-herring"}) == 0
                         ? ImpurityModel::kPartialWaves
                         : ImpurityModel::kBrooksHerring;
  if (const toml::table* rough = reader.table("roughness"))
    s.roughness = read_roughness(rough, where);
  const bool beyond = s.impurities || s.roughness.height_nm > 0.0;
  if (beyond && s.scheme != ScatteringScheme::kBalanced)
    reader.fail("scheme",
                "= \"paper\" or \"none\" has no impurities and no roughness; use \"balanced\" or "
                "leave them out");
  if (s.scheme == ScatteringScheme::kNone) s.processes.clear();
  reader.finish();
}

}  // namespace quasi::mosfet
