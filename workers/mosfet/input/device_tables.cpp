#include "workers/mosfet/input/device_tables.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "workers/io/input_path.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kLargestDoping_cm3 = 1e22;

void read_profile(const std::filesystem::path& file, TableReader& reader, DeviceModel* device) {
  std::ifstream in(input_file(file));
  if (!in) reader.fail("profile", "= \"" + file.string() + "\" cannot be opened");
  std::string line;
  bool begun = false;  // comments and empty lines may come before the header
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    double x = 0, n = 0;
    std::string further;
    const std::string at = "= \"" + file.filename().string() + "\", line " + std::to_string(number);
    const bool numbers = static_cast<bool>(fields >> x >> n), header = !numbers && !begun;
    begun = true;
    if (header) continue;
    if (!numbers || fields >> further) reader.fail("profile", at + " is not 'x_nm,N_D_cm3'");
    if (!(n > 0.0 && n <= kLargestDoping_cm3) || !std::isfinite(x))
      reader.fail("profile", at + ": N_D = " + shown(n) + " cm-3 must be above 0 and at most " +
                                 shown(kLargestDoping_cm3));
    if (!device->doping.profile_x_nm.empty() && x <= device->doping.profile_x_nm.back())
      reader.fail("profile", at + ": x = " + shown(x) + " nm must be above the " +
                                 shown(device->doping.profile_x_nm.back()) + " nm before it");
    device->doping.profile_x_nm.push_back(x);
    device->doping.profile_nm3.push_back(n / kPerNm3_cm3);
  }
  const auto& x = device->doping.profile_x_nm;
  if (x.size() < 2 || x.front() > 0.0 || x.back() < device->geometry.length_nm())
    reader.fail(
        "profile",
        "= \"" + file.filename().string() + "\" must cover 0 … " +
            shown(device->geometry.length_nm()) + " nm with at least two lines" +
            (x.empty() ? "" : "; it covers " + shown(x.front()) + " … " + shown(x.back()) + " nm"));
}

// Silicon's three pairs on a (001) film for transport along <100> or <110>.
//
// Along <110> the in-plane ellipses lie at 45° and the band has a mixed term k_x k_y. The force
// acts along x, so k_y is conserved, and the shear k_x → k_x + c k_y removes the mixed term
// exactly. The remaining mass is 1/m_x = ½(1/m_l + 1/m_t). m_y follows from the density of states,
// m_x m_y = m_l m_t. Distances of wave vectors belong to the ellipse before the shear.
std::vector<ValleyPair> silicon_valleys(const std::string& orientation, double ml, double mt) {
  if (orientation == "100") return {{ml, mt, mt, 0}, {mt, ml, mt, 0}, {mt, mt, ml, 0}};
  const double half = 2.0 * ml * mt / (ml + mt);
  const ValleyPair sheared{half, 0.5 * (ml + mt), mt, 0, ml, mt};
  return {sheared, sheared, {mt, mt, ml, 0}};
}

}  // namespace

void read_geometry(const toml::table* table, const std::string& where, Geometry* geometry) {
  TableReader reader(table, "geometry", where);
  Geometry& g = *geometry;
  g.source_nm = reader.number("source_nm", g.source_nm, 1.0, 2000.0);
  g.channel_nm = reader.number("channel_nm", g.channel_nm, 1.0, 2000.0);
  g.drain_nm = reader.number("drain_nm", g.drain_nm, 1.0, 2000.0);
  g.silicon_nm = reader.number("silicon_nm", g.silicon_nm, 1.0, 50.0);
  g.oxide_top_nm = reader.number("oxide_top_nm", g.oxide_top_nm, 0.1, 20.0);
  g.oxide_bottom_nm = reader.number("oxide_bottom_nm", g.oxide_bottom_nm, 0.1, 20.0);
  reader.finish();
}

void read_doping(const toml::table* table, const std::string& where,
                 const std::filesystem::path& directory, DeviceModel* device) {
  TableReader reader(table, "doping", where);
  auto& d = device->doping;
  d.contact_nm3 = reader.number("contact_cm3", 1e20, 1e16, kLargestDoping_cm3) / kPerNm3_cm3;
  d.channel_nm3 = reader.number("channel_cm3", 1e13, 0.0, kLargestDoping_cm3) / kPerNm3_cm3;
  d.smoothing_nm = reader.number("smoothing_nm", 0.5, 0.0, 100.0);
  const std::string profile = reader.text("profile", "");
  if (!profile.empty()) {
    if (reader.has("contact_cm3") || reader.has("channel_cm3") || reader.has("smoothing_nm"))
      reader.fail("profile",
                  "replaces contact_cm3, channel_cm3 and smoothing_nm; give one or the other");
    read_profile(directory / profile, reader, device);
  }
  reader.finish();
}

void read_gate(const toml::table* table, const std::string& where, Gate* gate) {
  TableReader reader(table, "gate", where);
  Gate& g = *gate;
  g.workfunction_top_ev = reader.number("workfunction_ev", 4.6, 2.0, 7.0);
  g.workfunction_bottom_ev =
      reader.number("workfunction_bottom_ev", g.workfunction_top_ev, 2.0, 7.0);
  g.bottom_offset_v = reader.number("bottom_offset_v", 0.0, -5.0, 5.0);
  reader.finish();
}

void read_material(const toml::table* table, const std::string& where, Material* material) {
  TableReader reader(table, "material", where);
  Material& m = *material;
  m.alpha_per_ev = reader.number("alpha_per_ev", m.alpha_per_ev, 0.0, 5.0);
  m.ml_m0 = reader.number("ml", m.ml_m0, 0.01, 10.0);
  m.mt_m0 = reader.number("mt", m.mt_m0, 0.01, 10.0);
  m.m_oxide_m0 = reader.number("m_oxide", m.m_oxide_m0, 0.01, 10.0);
  m.barrier_ev = reader.number("barrier_ev", m.barrier_ev, 0.5, 10.0);
  m.affinity_ev = reader.number("affinity_ev", m.affinity_ev, 0.0, 10.0);
  m.eps_si = reader.number("eps_si", m.eps_si, 1.0, 100.0);
  m.eps_ox = reader.number("eps_ox", m.eps_ox, 1.0, 100.0);
  m.density_kg_m3 = reader.number("density_kg_m3", m.density_kg_m3, 100.0, 30000.0);
  m.sound_m_s = reader.number("sound_m_s", m.sound_m_s, 500.0, 50000.0);
  m.temperature_k = reader.number("temperature_k", m.temperature_k, 50.0, 1000.0);
  reader.finish();
}

void read_valleys(TableReader& root, const std::string& where, DeviceModel* device) {
  const auto tables = root.tables("valley");
  const std::vector<std::string> orientations = {"100", "110"};
  // A number is accepted, because `--set orientation=110` is one.
  const bool is_number = root.has("orientation") && !root.word("orientation");
  const std::size_t orientation = is_number
                                      ? (root.integer("orientation", 100, 100, 110) - 100) / 10
                                      : root.choice("orientation", 0, orientations);
  if (is_number && root.integer("orientation", 100, 100, 110) % 10 != 0)
    root.fail("orientation", "must be 100 or 110");
  if (tables.empty()) {
    device->valleys =
        silicon_valleys(orientations[orientation], device->material.ml_m0, device->material.mt_m0);
    return;
  }
  if (root.has("orientation"))
    root.fail("orientation",
              "chooses silicon's own valleys and excludes [[valley]]; remove one of them");
  const TableReader material(root.table("material"), "material", where);
  for (const auto& [key, value] :
       {std::pair{"ml", device->material.ml_m0}, {"mt", device->material.mt_m0}})
    if (material.has(key))
      material.fail(key, "= " + shown(value) +
                             " is a mass of silicon's own valleys; [[valley]] replaces them with "
                             "mx, my and mz: remove one or the other");
  if (tables.size() > 8) root.fail("valley", "has more than 8 entries");
  for (std::size_t k = 0; k < tables.size(); ++k) {
    TableReader reader(tables[k], "valley[" + std::to_string(k) + "]", where);
    for (const char* key : {"mx", "my", "mz"})
      if (!reader.has(key)) reader.fail(key, "is missing (in free-electron masses)");
    device->valleys.push_back(
        {reader.number("mx", 1, 0.01, 10.0), reader.number("my", 1, 0.01, 10.0),
         reader.number("mz", 1, 0.01, 10.0), reader.number("offset_ev", 0, -2.0, 2.0)});
    reader.finish();
  }
}

}  // namespace quasi::mosfet
