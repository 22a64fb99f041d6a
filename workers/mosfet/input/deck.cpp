#include "workers/mosfet/input/deck.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "workers/backend/error.hpp"
#include "workers/io/renamed_keys.hpp"
#include "workers/mosfet/input/device_tables.hpp"
#include "workers/mosfet/input/mesh_rule.hpp"
#include "workers/mosfet/input/small_signal_table.hpp"
#include "workers/mosfet/input/table_reader.hpp"
#include "workers/mosfet/model/run_names.hpp"

namespace quasi::mosfet {
namespace {

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

// Returns the mode of a run, which decides the default of bias.vds.
RunMode read_mode(TableReader& reader) {
  return std::array{RunMode::kSteady, RunMode::kTransient, RunMode::kEquilibrium,
                    RunMode::kMobility}[reader.choice(
      "mode", 0, {"steady", "transient", "equilibrium", "mobility"})];
}

// Refuses a bias point that is given twice, and a drain bias in a mode that has none.
void check_points(const TableReader& reader, bool is_list_of_points, const Deck& deck) {
  const bool has_drain = has_currents(deck.run);
  const auto refuse_drain = [&](double vds_v) {
    const std::string mode = mode_name(deck.run.mode);
    reader.fail(is_list_of_points ? "points" : "vds",
                "= " + shown(vds_v) + " V, but run.mode = \"" + mode +
                    "\" is without drain bias; set it to 0, or use run.mode = \"steady\"");
  };
  std::set<std::pair<double, double>> known;
  for (const BiasPoint& point : deck.points) {
    if (!has_drain && point.vds_v != 0.0) refuse_drain(point.vds_v);
    if (!known.emplace(point.vgs_v, point.vds_v).second)
      reader.fail(is_list_of_points ? "points" : "vgs",
                  "and vds name the point V_GS = " + shown(point.vgs_v) +
                      " V, V_DS = " + shown(point.vds_v) + " V twice; remove one of them");
  }
}

void read_bias(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "bias", where);
  const double default_vds_v = has_currents(deck->run) ? 0.4 : 0.0;
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
      for (const double d : vds.value_or(std::vector<double>{default_vds_v}))
        deck->points.push_back({g, d});
  }
  if (deck->points.empty())
    reader.fail(points ? "points" : "vgs", "names no bias point; give points, or vgs and vds");
  if (deck->points.size() > 10000) reader.fail("vgs", "× vds asks for more than 10000 points");
  check_points(reader, points.has_value(), *deck);
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
  m.dh_ev = reader.number("dh_ev", m.dh_ev, 1e-4, 0.1);
  m.n_kappa = reader.integer("nkappa", m.n_kappa, 2, 512);
  m.window_ev = reader.number("window_ev", m.window_ev, 0.05, 5.0);
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
  const auto word = reader.word("wmax_ev");
  if (word && *word != "auto") reader.fail("wmax_ev", "must be a number or \"auto\"");
  m.wmax_ev = word || !reader.has("wmax_ev") ? std::max(0.9, largest_vds + 0.6)
                                             : reader.number("wmax_ev", 0.9, 0.05, 10.0);
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
                "= \"fermi\" needs scattering.scheme = \"balanced\"; \"paper\" has no blocking");
  reader.finish();
}

void read_contact(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "contact", where);
  deck->contact = reader.choice("potential", 0, {"column", "neumann"}) == 0 ? ContactKind::kColumn
                                                                            : ContactKind::kNeumann;
  deck->neutral_inflow = reader.choice("inflow", deck->parameters == ParameterSet::kPaper ? 0 : 1,
                                       {"fixed", "neutral"}) == 1;
  reader.finish();
}

// Returns the first key of a deck that only the scheme `weno` accepts in this mode of the run. The
// result is empty if the deck has no such key.
std::string key_of_weno(const toml::table& root, RunMode mode) {
  for (const char* key : {"mesh.nw", "mesh.nphi", "mesh.wmax_ev", "mesh.range", "mesh.phi_flux",
                          "run.window_fs", "run.weno_epsilon", "run.plasma_damping"})
    if (root.at_path(key)) return key;
  for (const char* key : {"run.t_end_fs", "run.cfl", "run.refresh_steps", "run.coarse_start"})
    if (mode != RunMode::kTransient && root.at_path(key)) return key;
  return "";
}

// Returns the scheme of a run whose mode and transport are known. Steady states of the Boltzmann
// equation have the beam scheme, unless the deck asks for something that it lacks; transients have
// it if the deck names it.
StreamingScheme read_scheme(TableReader& reader, const std::string& weno_key, Deck* deck) {
  const bool is_steady =
      deck->run.mode == RunMode::kSteady && deck->run.transport != TransportModel::kDriftDiffusion;
  const bool fits = is_steady && deck->scattering.scheme != ScatteringScheme::kPaper;
  const bool is_named = reader.has("scheme");
  const bool is_beam =
      reader.choice("scheme", fits && weno_key.empty() ? 0 : 1, {"beam", "weno"}) == 0;
  if (!is_named && fits && !is_beam)
    deck->notes.push_back("run.scheme = \"weno\" follows from " + weno_key +
                          ", which \"beam\" lacks; set run.scheme to choose");
  if (is_beam && (is_steady || deck->run.mode == RunMode::kTransient) && !weno_key.empty())
    deck->notes.push_back(weno_key + " has no effect with run.scheme = \"beam\"");
  return is_beam ? StreamingScheme::kBeam : StreamingScheme::kWeno;
}

// Checks that a deck with the beam scheme asks for a steady state or a transient, and that its
// scattering obeys detailed balance.
void check_scheme(const TableReader& reader, const Deck& deck) {
  if (deck.run.scheme != StreamingScheme::kBeam) {
    if (deck.run.tunnelling)
      reader.fail("tunnelling", "= true needs run.scheme = \"beam\"; leave it out or change both");
    if (!deck.run.start_from.empty())
      reader.fail("start_from", "needs run.scheme = \"beam\"; leave it out or change both");
    return;
  }
  if (!has_currents(deck.run) || deck.run.transport == TransportModel::kDriftDiffusion)
    reader.fail("scheme",
                "= \"beam\" needs run.mode = \"steady\" or \"transient\" and the Boltzmann "
                "equation; use \"weno\"");
  if (deck.run.mode == RunMode::kTransient && (deck.run.tunnelling || !deck.run.start_from.empty()))
    reader.fail(deck.run.tunnelling ? "tunnelling" : "start_from",
                "needs run.mode = \"steady\"; leave it out or change the mode");
  if (deck.scattering.scheme == ScatteringScheme::kPaper)
    reader.fail("scheme", "= \"beam\" has no scattering.scheme = \"paper\"; use \"weno\"");
}

void read_run(const toml::table* table, const std::string& where, const std::string& weno_key,
              Deck* deck) {
  TableReader reader(table, "run", where);
  auto& r = deck->run;
  r.mode = read_mode(reader);
  r.transport = std::array{TransportModel::kBoltzmann, TransportModel::kBallistic,
                           TransportModel::kDriftDiffusion}[reader.choice(
      "transport", 0, {"boltzmann", "ballistic", "drift-diffusion"})];
  r.scheme = read_scheme(reader, weno_key, deck);
  const bool is_transient = r.mode == RunMode::kTransient;
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
  if (!is_transient && !(deck->gate_wave.t_fs.empty() && deck->drain_wave.t_fs.empty()))
    reader.fail("mode", "must be \"transient\" for bias.waveform_vgs or bias.waveform_vds");
  r.t_end_fs = reader.number("t_end_fs", r.t_end_fs, 1e-6, 1e6);
  r.cfl = reader.number("cfl", r.cfl, 0.01, 1.0);
  r.steady_tol = reader.number("steady_tol", r.steady_tol, 1e-8, 0.5);
  r.steady_floor_a_per_m = reader.number("steady_floor_a_per_m", r.steady_floor_a_per_m, 1e-9, 1e6);
  r.window_fs = reader.number("window_fs", r.window_fs, 1.0, 1000.0);
  r.weno_epsilon = reader.number("weno_epsilon", r.weno_epsilon, 1e-30, 1e-2);
  r.tol_v = reader.number("tol_v", r.tol_v, 1e-13, 1e-3);
  r.refresh_steps = reader.integer("refresh_steps", r.refresh_steps, 1, 100000);
  const bool steady = r.mode == RunMode::kSteady && r.transport != TransportModel::kDriftDiffusion;
  r.plasma_damping = reader.number("plasma_damping", steady ? 1.0 : 0.0, 0.0, 10.0);
  if (r.plasma_damping > 0.0 && !steady)
    reader.fail("plasma_damping",
                "= " + shown(r.plasma_damping) +
                    " changes the way to the steady state; it needs run.mode = \"steady\" "
                    "and the Boltzmann equation (0 elsewhere)");
  r.coarse_start = reader.boolean("coarse_start", steady);
  r.tunnelling = reader.boolean("tunnelling", false);
  r.start_from = reader.text("start_from", "");
  r.mesh_study = reader.boolean("converge", false);
  for (const auto& [key, on] :
       {std::pair{"coarse_start", r.coarse_start}, {"converge", r.mesh_study}})
    if (on && (r.mode != RunMode::kSteady || r.transport == TransportModel::kDriftDiffusion))
      reader.fail(key, "= true needs run.mode = \"steady\" and the Boltzmann equation");
  check_scheme(reader, *deck);
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
  o.vtk = reader.boolean("vtk", false);
  if (o.vtk && deck->run.mode == RunMode::kMobility)
    reader.fail("vtk",
                "= true needs fields over x and z, but run.mode = \"mobility\" has one "
                "column; use another mode, or leave output.vtk out");
  o.pdf_at_fs = reader.numbers("pdf_at_fs", 0.0, 1e6).value_or(std::vector<double>{});
  std::sort(o.pdf_at_fs.begin(), o.pdf_at_fs.end());
  if (!o.pdf_at_fs.empty() && deck->run.mode != RunMode::kTransient)
    reader.fail("pdf_at_fs", "needs run.mode = \"transient\"");
  if (!o.pdf_at_fs.empty() && deck->run.scheme == StreamingScheme::kBeam)
    reader.fail("pdf_at_fs", "needs run.scheme = \"weno\"; leave it out or change the scheme");
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
  if (o.has("pdf_w") && deck->run.scheme == StreamingScheme::kBeam)
    reader.fail("fields",
                "names 'pdf_w', which run.scheme = \"beam\" does not have; leave it out or use "
                "\"weno\"");
  reader.finish();
}

// Notes a channel that is doped almost like the contacts, which m⁻³ in place of cm⁻³ would give.
void note_doping(Deck* deck) {
  const Doping& d = deck->doping;
  if (!d.profile_x_nm.empty() || 10.000001 * d.channel_nm3 < d.contact_nm3) return;
  deck->notes.push_back(
      "doping.channel_cm3 = " + shown(d.channel_nm3 * kPerNm3_cm3) +
      " is at least a tenth of doping.contact_cm3 = " + shown(d.contact_nm3 * kPerNm3_cm3) +
      "; dopings are in cm-3, and 1e19 m-3 are 1e13 cm-3");
}

// Notes impurities of Brooks and Herring at dopings where the transport's Maxwell statistics let
// the mobility rise with the doping (docs/theory/mosfet.md 15.3).
void note_impurities(Deck* deck) {
  constexpr double kDegenerate_nm3 = 1.000001e19 / kPerNm3_cm3;
  const Doping& d = deck->doping;
  double largest_nm3 = std::max(d.contact_nm3, d.channel_nm3);
  if (!d.profile_nm3.empty())
    largest_nm3 = *std::max_element(d.profile_nm3.begin(), d.profile_nm3.end());
  const bool rises = deck->scattering.impurities &&
                     deck->scattering.impurity_model == ImpurityModel::kBrooksHerring;
  if (!rises || deck->statistics == StatisticsKind::kFermi || largest_nm3 <= kDegenerate_nm3)
    return;
  deck->notes.push_back(
      "scattering.impurities is too weak beyond 1e19 cm-3 with Maxwell statistics, "
      "and the doping is up to " +
      shown(largest_nm3 * kPerNm3_cm3) + " cm-3; use statistics.kind = \"fermi\"");
}

/// Old names of keys, which are still read.
const std::vector<RenamedKey> kRenamedKeys{
    {"gate.workfunction_eV", "gate.workfunction_ev"},
    {"gate.workfunction_bottom_eV", "gate.workfunction_bottom_ev"},
    {"gate.bottom_offset_V", "gate.bottom_offset_v"},
    {"material.alpha_per_eV", "material.alpha_per_ev"},
    {"material.barrier_eV", "material.barrier_ev"},
    {"material.affinity_eV", "material.affinity_ev"},
    {"material.temperature_K", "material.temperature_k"},
    {"valley.offset_eV", "valley.offset_ev"},
    {"scattering.acoustic_eV", "scattering.acoustic_ev"},
    {"scattering.process.energy_meV", "scattering.process.energy_mev"},
    {"scattering.process.potential_eV", "scattering.process.potential_ev"},
    {"scattering.process.coupling_1e8_eV_cm", "scattering.process.coupling_1e8_ev_cm"},
    {"mesh.wmax_eV", "mesh.wmax_ev"},
    {"run.steady_floor_A_per_m", "run.steady_floor_a_per_m"},
    {"run.tol_V", "run.tol_v"},
    {"run.checkpoint_s", "checkpoint_interval_s"}};

}  // namespace

Deck parse_deck(const std::string& text, const std::vector<Setting>& settings,
                const std::string& where, const std::filesystem::path& directory) {
  toml::table root = parse_toml(text, where, settings);
  Deck deck;
  deck.notes = rename_keys(root, kRenamedKeys, where);
  TableReader reader(&root, "", where);
  const std::string kind = reader.text("kind", "mosfet");
  if (kind != "mosfet") reader.fail("kind", "= \"" + kind + "\" is not \"mosfet\"");
  reader.table("job");  // the client reads name, priority and limits of the job
  read_common_keys(reader, &deck.common);
  deck.parameters =
      std::array{ParameterSet::kFilms,
                 ParameterSet::kPaper}[reader.choice("parameters", 0, {"films", "paper"})];
  read_geometry(reader.table("geometry"), where, &deck.geometry);
  read_doping(reader.table("doping"), where, directory, &deck);
  note_doping(&deck);
  read_gate(reader.table("gate"), where, &deck.gate);
  read_material(reader.table("material"), where, &deck.material);
  read_valleys(reader, where, &deck);
  read_scattering(reader.table("scattering"), where, deck.parameters, &deck.scattering);
  read_statistics(reader.table("statistics"), where, &deck);
  note_impurities(&deck);
  read_contact(reader.table("contact"), where, &deck);
  TableReader run(reader.table("run"), "run", where);
  deck.run.mode = read_mode(run);
  read_bias(reader.table("bias"), where, &deck);
  read_mesh(reader.table("mesh"), where, &deck);
  read_run(reader.table("run"), where, key_of_weno(root, deck.run.mode), &deck);
  read_stored_points(directory, where, &deck);
  if (reader.boolean("convergence_study", false)) {  // set by the option --converge
    if (deck.run.mode != RunMode::kSteady || deck.run.transport == TransportModel::kDriftDiffusion)
      reader.fail("convergence_study",
                  "= true (--converge) needs run.mode = \"steady\" and the Boltzmann equation");
    deck.run.mesh_study = true;
  }
  deck.small_signal = read_small_signal(reader.table("small_signal"), where, deck);
  read_output(reader.table("output"), where, &deck);
  reader.finish();
  return deck;
}

Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings) {
  const DeckText deck = read_deck_text(path);
  return parse_deck(deck.text, settings, deck.file.filename().string(), deck.file.parent_path());
}

}  // namespace quasi::mosfet
