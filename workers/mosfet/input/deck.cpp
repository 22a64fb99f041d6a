#include "workers/mosfet/input/deck.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/mosfet/input/mesh_rule.hpp"
#include "workers/mosfet/input/table_reader.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {
namespace {

// 1 nm⁻³ = 1e21 cm⁻³.
constexpr double kPerNm3_cm3 = 1e21;
constexpr double kLargestDoping_cm3 = 1e22;

void read_geometry(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "geometry", where);
  auto& g = deck->geometry;
  g.source_nm = reader.number("source_nm", g.source_nm, 1.0, 2000.0);
  g.channel_nm = reader.number("channel_nm", g.channel_nm, 1.0, 2000.0);
  g.drain_nm = reader.number("drain_nm", g.drain_nm, 1.0, 2000.0);
  g.silicon_nm = reader.number("silicon_nm", g.silicon_nm, 1.0, 50.0);
  g.oxide_top_nm = reader.number("oxide_top_nm", g.oxide_top_nm, 0.1, 20.0);
  g.oxide_bottom_nm = reader.number("oxide_bottom_nm", g.oxide_bottom_nm, 0.1, 20.0);
  reader.finish();
}

void read_profile(const std::filesystem::path& file, TableReader& reader, Deck* deck) {
  std::ifstream in(file);
  if (!in) reader.fail("profile", "= \"" + file.string() + "\" cannot be opened");
  std::string line;
  bool begun = false;  // Comments and empty lines may stand before the header.
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
    if (!deck->doping.profile_x_nm.empty() && x <= deck->doping.profile_x_nm.back())
      reader.fail("profile", at + ": x = " + shown(x) + " nm must be above the " +
                                 shown(deck->doping.profile_x_nm.back()) + " nm before it");
    deck->doping.profile_x_nm.push_back(x);
    deck->doping.profile_nm3.push_back(n / kPerNm3_cm3);
  }
  const auto& x = deck->doping.profile_x_nm;
  if (x.size() < 2 || x.front() > 0.0 || x.back() < deck->geometry.length_nm())
    reader.fail(
        "profile",
        "= \"" + file.filename().string() + "\" must cover 0 … " +
            shown(deck->geometry.length_nm()) + " nm with at least two lines" +
            (x.empty() ? "" : "; it covers " + shown(x.front()) + " … " + shown(x.back()) + " nm"));
}

void read_doping(const toml::table* table, const std::string& where,
                 const std::filesystem::path& directory, Deck* deck) {
  TableReader reader(table, "doping", where);
  auto& d = deck->doping;
  d.contact_nm3 = reader.number("contact_cm3", 1e20, 1e16, kLargestDoping_cm3) / kPerNm3_cm3;
  d.channel_nm3 = reader.number("channel_cm3", 1e13, 0.0, kLargestDoping_cm3) / kPerNm3_cm3;
  d.smoothing_nm = reader.number("smoothing_nm", 0.5, 0.0, 100.0);
  const std::string profile = reader.text("profile", "");
  if (!profile.empty()) {
    if (reader.has("contact_cm3") || reader.has("channel_cm3") || reader.has("smoothing_nm"))
      reader.fail("profile",
                  "replaces contact_cm3, channel_cm3 and smoothing_nm; give one or the other");
    read_profile(directory / profile, reader, deck);
  }
  reader.finish();
}

void read_gate(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "gate", where);
  auto& g = deck->gate;
  g.workfunction_top_ev = reader.number("workfunction_eV", 4.6, 2.0, 7.0);
  g.workfunction_bottom_ev =
      reader.number("workfunction_bottom_eV", g.workfunction_top_ev, 2.0, 7.0);
  g.bottom_offset_v = reader.number("bottom_offset_V", 0.0, -5.0, 5.0);
  reader.finish();
}

void read_material(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "material", where);
  auto& m = deck->material;
  m.alpha_per_ev = reader.number("alpha_per_eV", m.alpha_per_ev, 0.0, 5.0);
  m.ml_m0 = reader.number("ml", m.ml_m0, 0.01, 10.0);
  m.mt_m0 = reader.number("mt", m.mt_m0, 0.01, 10.0);
  m.m_oxide_m0 = reader.number("m_oxide", m.m_oxide_m0, 0.01, 10.0);
  m.barrier_ev = reader.number("barrier_eV", m.barrier_ev, 0.5, 10.0);
  m.affinity_ev = reader.number("affinity_eV", m.affinity_ev, 0.0, 10.0);
  m.eps_si = reader.number("eps_si", m.eps_si, 1.0, 100.0);
  m.eps_ox = reader.number("eps_ox", m.eps_ox, 1.0, 100.0);
  m.density_kg_m3 = reader.number("density_kg_m3", m.density_kg_m3, 100.0, 30000.0);
  m.sound_m_s = reader.number("sound_m_s", m.sound_m_s, 500.0, 50000.0);
  m.temperature_k = reader.number("temperature_K", m.temperature_k, 50.0, 1000.0);
  reader.finish();
}

// Silicon's three pairs on a (001) film for transport along <100> or <110>.
//
// Along <110> the in-plane ellipses lie at 45° and the band has a mixed term k_x k_y. The force
// acts along x, so k_y is conserved and the shear k_x → k_x + c k_y removes the mixed term exactly:
// what stays is 1/m_x = ½(1/m_l + 1/m_t), and m_y follows from the density of states, m_x m_y = m_l
// m_t.
std::vector<ValleyPair> silicon_valleys(const std::string& orientation, double ml, double mt) {
  if (orientation == "100") return {{ml, mt, mt, 0}, {mt, ml, mt, 0}, {mt, mt, ml, 0}};
  const double half = 2.0 * ml * mt / (ml + mt);
  return {{half, 0.5 * (ml + mt), mt, 0}, {half, 0.5 * (ml + mt), mt, 0}, {mt, mt, ml, 0}};
}

void read_valleys(TableReader& root, const std::string& where, Deck* deck) {
  const auto tables = root.tables("valley");
  const std::vector<std::string> orientations = {"100", "110"};
  const std::size_t orientation = root.choice("orientation", 0, orientations);
  if (tables.empty()) {
    deck->valleys =
        silicon_valleys(orientations[orientation], deck->material.ml_m0, deck->material.mt_m0);
    return;
  }
  if (root.has("orientation"))
    root.fail("orientation", "chooses silicon's own valleys; it cannot stand beside [[valley]]");
  const TableReader material(root.table("material"), "material", where);
  for (const auto& [key, value] :
       {std::pair{"ml", deck->material.ml_m0}, {"mt", deck->material.mt_m0}})
    if (material.has(key))
      material.fail(key, "= " + shown(value) +
                             " is a mass of silicon's own valleys; [[valley]] replaces them with "
                             "mx, my and mz: remove one or the other");
  if (tables.size() > 8) root.fail("valley", "has more than 8 entries");
  for (std::size_t k = 0; k < tables.size(); ++k) {
    TableReader reader(tables[k], "valley[" + std::to_string(k) + "]", where);
    for (const char* key : {"mx", "my", "mz"})
      if (!reader.has(key)) reader.fail(key, "is missing (in free-electron masses)");
    deck->valleys.push_back({reader.number("mx", 1, 0.01, 10.0), reader.number("my", 1, 0.01, 10.0),
                             reader.number("mz", 1, 0.01, 10.0),
                             reader.number("offset_eV", 0, -2.0, 2.0)});
    reader.finish();
  }
}

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

void read_scattering(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "scattering", where);
  auto& s = deck->scattering;
  const auto set =
      reader.choice("set", 0, {"jacoboni-reggiani", "jacoboni-reggiani-kelvin", "custom"});
  const double acoustic = reader.number("acoustic_eV", 9.0, 0.0, 100.0);
  const auto scheme = reader.choice("scheme", 0, {"balanced", "paper", "none"});
  s.scheme = std::array{ScatteringScheme::kBalanced, ScatteringScheme::kPaper,
                        ScatteringScheme::kNone}[scheme];
  const auto own = reader.tables("process");
  if (set != 2) {
    if (!own.empty()) reader.fail("process", "needs set = \"custom\"");
    s.processes = phonon_set(set, acoustic);
  } else {
    if (own.empty()) reader.fail("set", "= \"custom\" needs at least one [[scattering.process]]");
    if (reader.has("acoustic_eV"))
      reader.fail("acoustic_eV", "belongs to a named set; give coupling to the custom process");
    for (std::size_t k = 0; k < own.size(); ++k) {
      TableReader entry(own[k], "scattering.process[" + std::to_string(k) + "]", where);
      PhononProcess process;
      process.name = entry.text("name", "process" + std::to_string(k));
      process.kind = std::array{ProcessKind::kElastic, ProcessKind::kG,
                                ProcessKind::kF}[entry.choice("kind", 0, {"elastic", "g", "f"})];
      process.energy_ev = entry.number("energy_meV", 0.0, 0.0, 500.0) * 1e-3;
      if ((process.kind == ProcessKind::kElastic) != (process.energy_ev == 0.0))
        entry.fail("energy_meV", "must be 0 for an elastic process and positive for any other");
      if (process.kind == ProcessKind::kElastic)
        process.coupling_ev_per_nm = entry.number("potential_eV", 9.0, 0.0, 100.0);
      else
        process.coupling_ev_per_nm = entry.number("coupling_1e8_eV_cm", 1.0, 0.0, 100.0) * 10.0;
      entry.finish();
      s.processes.push_back(process);
    }
  }
  if (const auto enabled = reader.texts("enabled")) {
    std::vector<PhononProcess> kept;
    for (const std::string& name : *enabled) {
      const auto found = std::find_if(s.processes.begin(), s.processes.end(),
                                      [&](const auto& p) { return p.name == name; });
      if (found == s.processes.end()) {
        std::vector<std::string> names;
        for (const auto& p : s.processes) names.push_back(p.name);
        const std::string nearest = nearest_name(name, names);
        reader.fail("enabled", "names '" + name + "', which is no process of the set" +
                                   (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
      }
      if (std::any_of(kept.begin(), kept.end(), [&](const auto& p) { return p.name == name; }))
        reader.fail("enabled", "names '" + name + "' twice");
      kept.push_back(*found);
    }
    s.processes = kept;
  }
  s.impurities = reader.boolean("impurities", false);
  if (const toml::table* rough = reader.table("roughness")) {
    TableReader entry(rough, "scattering.roughness", where);
    s.roughness.height_nm = entry.number("height_nm", 0.3, 0.0, 3.0);
    s.roughness.length_nm = entry.number("length_nm", 1.5, 0.1, 50.0);
    s.roughness.spectrum = entry.choice("spectrum", 0, {"exponential", "gaussian"}) == 0
                               ? RoughnessSpectrum::kExponential
                               : RoughnessSpectrum::kGaussian;
    entry.finish();
  }
  const bool beyond = s.impurities || s.roughness.height_nm > 0.0;
  if (beyond && s.scheme != ScatteringScheme::kBalanced)
    reader.fail("scheme",
                "= \"paper\" or \"none\" has no impurities and no roughness; use \"balanced\" or "
                "leave them out");
  if (s.scheme == ScatteringScheme::kNone) s.processes.clear();
  reader.finish();
}

Waveform read_waveform(TableReader& reader, const std::string& key, double largest_v) {
  Waveform wave;
  const auto corners = reader.pairs(key);
  if (!corners) return wave;
  for (const auto& [t, v] : *corners) {
    if (t < 0.0 || (!wave.t_fs.empty() && t <= wave.t_fs.back()))
      reader.fail(key,
                  "has a corner at " + shown(t) + " fs: times must be 0 or later and increase");
    if (std::fabs(v) > largest_v)
      reader.fail(key, "has a corner at " + shown(v) + " V, outside ±" + shown(largest_v) + " V");
    wave.t_fs.push_back(t);
    wave.value_v.push_back(v);
  }
  if (wave.t_fs.empty()) reader.fail(key, "has no corner; give [[t_fs, volts], …]");
  return wave;
}

void read_bias(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "bias", where);
  const auto points = reader.pairs("points");
  const auto vgs = reader.numbers("vgs", -5.0, 5.0);
  const auto vds = reader.numbers("vds", -2.0, 2.0);
  if (points) {
    if (vgs || vds) reader.fail("points", "and vgs, vds exclude each other");
    for (const auto& [g, d] : *points) {
      if (std::fabs(g) > 5.0 || std::fabs(d) > 2.0)
        reader.fail("points",
                    "holds [" + shown(g) + ", " + shown(d) + "], outside |vgs| ≤ 5 V, |vds| ≤ 2 V");
      deck->points.push_back({g, d});
    }
  } else {
    for (const double g : vgs.value_or(std::vector<double>{0.6}))
      for (const double d : vds.value_or(std::vector<double>{0.4})) deck->points.push_back({g, d});
  }
  if (deck->points.empty()) reader.fail(points ? "points" : "vgs", "names no bias point");
  if (deck->points.size() > 10000) reader.fail("vgs", "× vds asks for more than 10000 points");
  deck->gate_wave = read_waveform(reader, "waveform_vgs", 5.0);
  deck->drain_wave = read_waveform(reader, "waveform_vds", 2.0);
  reader.finish();
}

void read_mesh(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "mesh", where);
  auto& m = deck->mesh;
  m.nx = reader.integer("nx", m.nx, 9, 2049);
  m.nz = reader.integer("nz", m.nz, 9, 513);
  m.subbands = reader.integer("subbands", m.subbands, 1, 12);
  m.nw = reader.integer("nw", m.nw, 8, 4096);
  m.nphi = reader.integer("nphi", m.nphi, 8, 256);
  if (m.nphi % 4 != 0) {
    const int below = std::max(8, m.nphi / 4 * 4);
    reader.fail("nphi", "= " + std::to_string(m.nphi) + " must be divisible by 4; nearest are " +
                            std::to_string(below) + " and " + std::to_string(m.nphi / 4 * 4 + 4));
  }
  if (m.subbands > m.nz - 2)
    reader.fail("subbands", "= " + std::to_string(m.subbands) + " exceeds the " +
                                std::to_string(m.nz - 2) +
                                " states that nz = " + std::to_string(m.nz) + " resolves");
  m.snap = reader.boolean("snap", false);
  m.range =
      reader.choice("range", 0, {"half", "full"}) == 0 ? AngleRange::kHalf : AngleRange::kFull;
  const std::size_t flux =
      reader.choice("phi_flux", m.range == AngleRange::kHalf ? 0 : 1, {"upwind", "split"});
  m.phi_flux = flux == 0 ? PhiFlux::kUpwind : PhiFlux::kSplit;
  if (m.range == AngleRange::kFull && m.phi_flux == PhiFlux::kUpwind)
    reader.fail("phi_flux",
                "= \"upwind\" needs range = \"half\": on the full circle the sign of a³ "
                "changes between nodes");
  double largest_vds = 0.0;
  for (const BiasPoint& point : deck->points)
    for (const double extra :
         deck->drain_wave.value_v.empty() ? std::vector<double>{0.0} : deck->drain_wave.value_v)
      largest_vds = std::max({largest_vds, std::fabs(point.vds_v), std::fabs(point.vds_v + extra)});
  const auto word = reader.word("wmax_eV");
  if (word && *word != "auto") reader.fail("wmax_eV", "must be a number or \"auto\"");
  m.wmax_ev = word || !reader.has("wmax_eV") ? std::max(0.9, largest_vds + 0.6)
                                             : reader.number("wmax_eV", 0.9, 0.05, 10.0);
  reader.finish();
  apply_mesh_rule(deck, where);
}

void read_statistics(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "statistics", where);
  deck->statistics = reader.choice("kind", 0, {"maxwell", "fermi"}) == 0 ? StatisticsKind::kMaxwell
                                                                         : StatisticsKind::kFermi;
  const bool fermi = deck->statistics == StatisticsKind::kFermi;
  deck->pauli = reader.boolean("pauli", fermi);
  if (deck->pauli != fermi)
    reader.fail(
        "pauli",
        fermi
            ? "= false contradicts kind = \"fermi\": without blocking, scattering relaxes to "
              "Maxwell's distribution"
            : "= true needs kind = \"fermi\": blocked scattering relaxes to Fermi's distribution");
  if (fermi && deck->scattering.scheme == ScatteringScheme::kPaper)
    reader.fail("kind",
                "= \"fermi\" needs scattering.scheme = \"balanced\"; \"paper\" knows no blocking");
  reader.finish();
}

void read_contact(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "contact", where);
  deck->contact = reader.choice("potential", 0, {"column", "neumann"}) == 0 ? ContactKind::kColumn
                                                                            : ContactKind::kNeumann;
  deck->neutral_inflow = reader.choice("inflow", 0, {"fixed", "neutral"}) == 1;
  reader.finish();
}

void read_run(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "run", where);
  auto& r = deck->run;
  r.mode = std::array{RunMode::kSteady, RunMode::kTransient, RunMode::kEquilibrium,
                      RunMode::kMobility}[reader.choice(
      "mode", 0, {"steady", "transient", "equilibrium", "mobility"})];
  r.transport = std::array{TransportModel::kBoltzmann, TransportModel::kBallistic,
                           TransportModel::kDriftDiffusion}[reader.choice(
      "transport", 0, {"boltzmann", "ballistic", "drift-diffusion"})];
  const bool in_time = r.mode == RunMode::kTransient;
  if (r.transport == TransportModel::kDriftDiffusion && r.mode != RunMode::kSteady)
    reader.fail("transport",
                "= \"drift-diffusion\" is a steady solution; set run.mode = \"steady\"");
  if (r.transport == TransportModel::kBallistic) {
    deck->scattering.scheme = ScatteringScheme::kNone;
    deck->scattering.processes.clear();
    deck->scattering.roughness.height_nm = 0.0;
    deck->scattering.impurities = false;
  }
  if (r.transport == TransportModel::kDriftDiffusion || r.mode == RunMode::kMobility) {
    const auto& s = deck->scattering;
    if (s.scheme != ScatteringScheme::kBalanced ||
        (s.processes.empty() && !s.impurities && s.roughness.height_nm == 0.0))
      reader.fail(r.mode == RunMode::kMobility ? "mode" : "transport",
                  "needs scattering with scheme = \"balanced\": the mobility comes from it");
  }
  if (!in_time && !(deck->gate_wave.t_fs.empty() && deck->drain_wave.t_fs.empty()))
    reader.fail("mode", "must be \"transient\" for bias.waveform_vgs or bias.waveform_vds");
  r.t_end_fs = reader.number("t_end_fs", r.t_end_fs, 1e-6, 1e6);
  r.cfl = reader.number("cfl", r.cfl, 0.01, 1.0);
  r.steady_tol = reader.number("steady_tol", r.steady_tol, 1e-8, 0.5);
  r.steady_floor_a_per_m = reader.number("steady_floor_A_per_m", r.steady_floor_a_per_m, 1e-9, 1e6);
  r.window_fs = reader.number("window_fs", r.window_fs, 1.0, 1000.0);
  r.weno_epsilon = reader.number("weno_epsilon", r.weno_epsilon, 1e-30, 1e-2);
  r.tol_v = reader.number("tol_V", r.tol_v, 1e-13, 1e-3);
  r.refresh_steps = reader.integer("refresh_steps", r.refresh_steps, 1, 100000);
  const bool steady = r.mode == RunMode::kSteady && r.transport != TransportModel::kDriftDiffusion;
  r.plasma_damping = reader.number("plasma_damping", steady ? 1.0 : 0.0, 0.0, 10.0);
  if (r.plasma_damping > 0.0 && !steady)
    reader.fail("plasma_damping",
                "= " + shown(r.plasma_damping) +
                    " changes the way to the steady state; it needs run.mode = \"steady\" "
                    "and the Boltzmann equation (0 elsewhere)");
  r.checkpoint_s = reader.number("checkpoint_s", r.checkpoint_s, 0.0, 1e6);
  r.coarse_start = reader.boolean("coarse_start", steady);
  r.mesh_study = reader.boolean("converge", false);
  for (const auto& [key, on] :
       {std::pair{"coarse_start", r.coarse_start}, {"converge", r.mesh_study}})
    if (on && (r.mode != RunMode::kSteady || r.transport == TransportModel::kDriftDiffusion))
      reader.fail(key, "= true needs run.mode = \"steady\" and the Boltzmann equation");
  const std::string precision = reader.text("precision", "fp64");
  if (precision != "fp64")
    reader.fail("precision", "= \"" + precision + "\" is not offered; use \"fp64\"");
  reader.finish();
}

void read_output(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "output", where);
  auto& o = deck->output;
  const std::vector<std::string> known = {"current",  "density", "potential", "subbands",
                                          "velocity", "energy",  "psi",       "pdf_w"};
  o.every_fs = reader.number("every_fs", o.every_fs, 1e-3, 1e6);
  o.threshold_a_per_m = reader.number("threshold_a_per_m", 0.1, 1e-9, 1e6);
  o.pdf_at_fs = reader.numbers("pdf_at_fs", 0.0, 1e6).value_or(std::vector<double>{});
  std::sort(o.pdf_at_fs.begin(), o.pdf_at_fs.end());
  if (!o.pdf_at_fs.empty() && deck->run.mode != RunMode::kTransient)
    reader.fail("pdf_at_fs", "needs run.mode = \"transient\"");
  if (!o.pdf_at_fs.empty() && o.pdf_at_fs.back() > deck->run.t_end_fs)
    reader.fail("pdf_at_fs", "= " + shown(o.pdf_at_fs.back()) +
                                 " lies after run.t_end_fs = " + shown(deck->run.t_end_fs));
  o.fields = reader.texts("fields").value_or(std::vector<std::string>{
      "current", "density", "potential", "subbands", "velocity", "energy"});
  for (const std::string& field : o.fields)
    if (std::find(known.begin(), known.end(), field) == known.end()) {
      const std::string nearest = nearest_name(field, known);
      reader.fail("fields", "names '" + field + "', which is no output" +
                                (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
    }
  reader.finish();
}

}  // namespace

bool Deck::Output::has(const std::string& field) const {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

double Waveform::at(double t) const {
  if (t_fs.empty()) return 0.0;
  const auto upper = std::upper_bound(t_fs.begin(), t_fs.end(), t);
  if (upper == t_fs.begin()) return value_v.front();
  if (upper == t_fs.end()) return value_v.back();
  const auto k = static_cast<std::size_t>(upper - t_fs.begin());
  const double share = (t - t_fs[k - 1]) / (t_fs[k] - t_fs[k - 1]);
  return value_v[k - 1] + share * (value_v[k] - value_v[k - 1]);
}

double Waveform::next_corner(double t) const {
  const auto upper = std::upper_bound(t_fs.begin(), t_fs.end(), t);
  return upper == t_fs.end() ? INFINITY : *upper;
}

bool Waveform::moves(double t) const {
  const auto upper = std::upper_bound(t_fs.begin(), t_fs.end(), t);
  if (upper == t_fs.begin() || upper == t_fs.end()) return false;
  const auto k = static_cast<std::size_t>(upper - t_fs.begin());
  return value_v[k] != value_v[k - 1];
}

double Deck::kt_ev() const { return units::kBoltzmann_ev_k * material.temperature_k; }

Deck parse_deck(const std::string& text, const std::vector<Setting>& settings,
                const std::string& where, const std::filesystem::path& directory) {
  const toml::table root = parse_toml(text, where, settings);
  Deck deck;
  TableReader reader(&root, "", where);
  const std::string kind = reader.text("kind", "mosfet");
  if (kind != "mosfet") reader.fail("kind", "= \"" + kind + "\" is not \"mosfet\"");
  reader.table("job");  // Name, priority and limits of the job: the client's to read.
  read_geometry(reader.table("geometry"), where, &deck);
  read_doping(reader.table("doping"), where, directory, &deck);
  read_gate(reader.table("gate"), where, &deck);
  read_material(reader.table("material"), where, &deck);
  read_valleys(reader, where, &deck);
  read_scattering(reader.table("scattering"), where, &deck);
  read_statistics(reader.table("statistics"), where, &deck);
  read_contact(reader.table("contact"), where, &deck);
  read_bias(reader.table("bias"), where, &deck);
  read_mesh(reader.table("mesh"), where, &deck);
  read_run(reader.table("run"), where, &deck);
  if (reader.boolean("convergence_study", false)) {  // What the option --converge sets.
    if (deck.run.mode != RunMode::kSteady || deck.run.transport == TransportModel::kDriftDiffusion)
      reader.fail("convergence_study",
                  "= true (--converge) needs run.mode = \"steady\" and the Boltzmann equation");
    deck.run.mesh_study = true;
  }
  read_output(reader.table("output"), where, &deck);
  reader.finish();
  return deck;
}

Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings) {
  const DeckText deck = read_deck_text(path);
  return parse_deck(deck.text, settings, deck.file.filename().string(), deck.file.parent_path());
}

}  // namespace quasi::mosfet
