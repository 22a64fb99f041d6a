#include "workers/gw/input/deck.hpp"

#include <algorithm>

#include "workers/backend/error.hpp"
#include "workers/gw/input/berkeleygw_inputs.hpp"
#include "workers/gw/input/deck_pseudobands.hpp"
#include "workers/gw/input/deck_sigma.hpp"
#include "workers/gw/input/mean_field/deck_mean_field.hpp"
#include "workers/gw/input/perturbation/deck_perturbation.hpp"
#include "workers/gw/input/slices/deck_slices.hpp"
#include "workers/gw/input/spinors/deck_spinors.hpp"
#include "workers/gw/model/column_slices.hpp"
#include "workers/io/renamed_keys.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

void read_epsilon(const toml::table* table, const std::string& where,
                  const std::filesystem::path& directory, Deck* deck) {
  TableReader reader(table, "epsilon", where);
  auto& e = deck->epsilon;
  const std::string gamma = reader.text("eps0mat", ""), others = reader.text("epsmat", "");
  if (!gamma.empty()) e.stored.gamma = directory / gamma;
  if (!others.empty()) e.stored.others = directory / others;
  if (gamma.empty() && !others.empty())
    reader.fail("eps0mat", "is missing: stored ε⁻¹ needs the file of q → 0 too");
  if (gamma.empty() && !reader.has("cutoff_ry"))
    reader.fail("cutoff_ry", "is missing: the cut-off of the dielectric matrix, e.g. 10.0");
  e.epsilon_cutoff_ry = reader.number("cutoff_ry", 0.0, 0.1, 10000.0);
  e.bands = reader.integer("bands", 0, 1, kMaxBandCount);
  e.write = reader.boolean("write", gamma.empty());
  e.frequencies = static_cast<FrequencySet>(reader.choice(
      "frequencies", 0, {"auto", "static", "imaginary", "real", "both", "godby-needs"}));
  for (const auto& q : reader.vectors("qpoints", 3).value_or(std::vector<std::vector<double>>{}))
    e.qpoints.push_back({q[0], q[1], q[2]});
  e.occupied_bands = reader.integer("occupied_bands", 0, 1, kMaxBandCount);
  e.real_max_ev = reader.number("real_max_ev", e.real_max_ev, 0.1, 1000.0);
  e.real_step_ev = reader.number("real_step_ev", e.real_step_ev, 1e-3, 10.0);
  e.broadening_ev = reader.number("broadening_ev", e.broadening_ev, 1e-4, 10.0);
  e.imaginary_points = reader.integer("imaginary_points", e.imaginary_points, 4, 1000);
  e.imaginary_scale_ry = reader.number("imaginary_scale_ry", e.imaginary_scale_ry, 0.01, 1000.0);
  e.column_slices = reader.integer("column_slices", 0, 0, kMostColumnSlices);
  e.subspace.tolerance = reader.number("subspace_tolerance", 0.0, 1e-12, 1.0);
  e.subspace.vectors = reader.integer("subspace_vectors", 0, 1, kMaxBandCount);
  e.subspace.complement = reader.boolean("subspace_complement", true);
  e.subspace.complement_ry =
      reader.number("subspace_complement_ry", e.subspace.complement_ry, 0.1, 100.0);
  if (!e.subspace.wanted())
    for (const char* key : {"subspace_complement", "subspace_complement_ry"})
      if (reader.has(key))
        reader.fail(key, "belongs to a subspace: give subspace_tolerance or subspace_vectors");
  if (!gamma.empty())
    for (const char* key :
         {"subspace_tolerance", "subspace_vectors", "cutoff_ry", "bands", "frequencies", "write",
          "qpoints", "occupied_bands", "real_max_ev", "real_step_ev", "broadening_ev",
          "imaginary_points", "imaginary_scale_ry"})
      if (reader.has(key))
        reader.fail(key, "is not allowed with eps0mat; it follows from the stored ε⁻¹");
  reader.finish();
}

/// Reads the rule for sums over the q-grid. @pre the other keys of the table are read
void read_zone_sum(TableReader& reader, const Deck& deck, CoulombOptions* c) {
  c->zone_sum = static_cast<ZoneSum>(
      reader.choice("zone_sum", static_cast<std::size_t>(c->zone_sum), {"points", "cells"}));
  if (!reader.has("zone_sum")) return;
  if (deck.compatible)
    reader.fail("zone_sum", "is not allowed with compat = \"bgw\", which has averages of its own");
  if (!c->average_file.empty())
    reader.fail("zone_sum", "is not allowed with average_file, which holds averages over cells");
  if (c->truncation != Truncation::kNone && c->truncation != Truncation::kSlab)
    reader.fail("zone_sum", "belongs to truncation = \"none\" or \"slab\"; remove it");
}

/// Reads the number of points for the head of ε⁻¹ of a slab. @pre tables before this one, and
/// truncation, are read
void read_subsampling(TableReader& reader, const Deck& deck, CoulombOptions* c) {
  c->subsampling = reader.integer("subsampling", 0, 4, 32);
  if (!reader.has("subsampling")) return;
  const auto refuse = [&](const std::string& why) {
    reader.fail("subsampling", "= " + std::to_string(c->subsampling) + " " + why);
  };
  if (c->truncation != Truncation::kSlab)
    refuse(
        "belongs to truncation = \"slab\", where ε⁻¹ changes within the mini-zone of q → 0; "
        "remove it");
  if (c->subsampling % 2 != 0)
    refuse("is odd; every second point gives the error of the rest, so choose an even number");
  if (reader.has("zone_sum") && c->zone_sum == ZoneSum::kCells)
    refuse(
        "is not allowed with zone_sum = \"cells\", which leaves W at the next points as it is; "
        "remove zone_sum");
  c->zone_sum = ZoneSum::kPoints;
  if (deck.compatible) refuse("is not allowed with compat = \"bgw\"; remove one of them");
  if (!deck.epsilon.stored.gamma.empty())
    refuse("is not allowed with epsilon.eps0mat, whose files hold one short q; remove one of them");
  if (!deck.mean_field.empirical && deck.mean_field.vsc.empty())
    refuse("needs meanfield.vsc and meanfield.vkb, which make states between the k-points");
  if (deck.sigma.outer.kind == OuterLoop::kEvGw || deck.sigma.outer.kind == OuterLoop::kQsGw)
    refuse("is not allowed with an outer loop that updates ε⁻¹; choose evgw0 or qsgw0");
}

void read_coulomb(const toml::table* table, const std::string& where,
                  const std::filesystem::path& directory, Deck* deck) {
  TableReader reader(table, "coulomb", where);
  const std::string file = reader.text("average_file", "");
  if (!file.empty()) deck->coulomb.average_file = (directory / file).string();
  auto& c = deck->coulomb;
  c.truncation = static_cast<Truncation>(
      reader.choice("truncation", 0, {"none", "slab", "wire", "box", "sphere"}));
  c.sphere_radius_bohr = reader.number("radius_bohr", 0.0, 0.1, 1e4);
  c.max_charge_outside = reader.number("max_charge_outside", c.max_charge_outside, 0.0, 1.0);
  if ((c.truncation == Truncation::kSphere) != reader.has("radius_bohr"))
    reader.fail("radius_bohr", c.truncation == Truncation::kSphere
                                   ? "is missing: the radius at which the interaction ends"
                                   : "belongs to truncation = \"sphere\"");
  if (c.truncation != Truncation::kNone && !c.average_file.empty())
    reader.fail("average_file",
                "holds averages of the full interaction; leave it out with truncation");
  deck->coulomb.wing_rule = deck->compatible ? WingRule::kListedPoint : WingRule::kShortest;
  read_zone_sum(reader, *deck, &c);
  read_subsampling(reader, *deck, &c);
  reader.finish();
}

void read_convergence(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "converge", where);
  auto& c = deck->study;
  c.bands = reader.numbers("bands", 2, kMaxBandCount).value_or(std::vector<double>{});
  c.epsilon_cutoffs_ry = reader.numbers("cutoffs_ry", 0.1, 1e4).value_or(std::vector<double>{});
  c.bare_cutoffs_ry = reader.numbers("bare_cutoffs_ry", 0.1, 1e4).value_or(std::vector<double>{});
  for (const auto& grid :
       reader.vectors("k_grids", 3).value_or(std::vector<std::vector<double>>{})) {
    IVec3 whole{};
    for (int i = 0; i < 3; ++i) {
      whole[i] = static_cast<int>(grid[static_cast<std::size_t>(i)]);
      if (whole[i] < 1 || whole[i] != grid[static_cast<std::size_t>(i)])
        reader.fail("k_grids", "must hold lists of 3 whole numbers of 1 or more");
    }
    c.k_grids.push_back(whole);
  }
  for (const char* key : {"bands", "cutoffs_ry", "bare_cutoffs_ry", "k_grids"})
    if (!deck->study.wanted && reader.has(key))
      reader.fail(key, "has no effect without --converge (convergence_study = true)");
  reader.finish();
}

void read_checks(const toml::table* table, const std::string& where, Deck* deck) {
  TableReader reader(table, "checks", where);
  const std::vector<std::string> names{
      "hermiticity", "smallest_epsilon", "largest_epsilon", "orthonormality",
      "f_sum",       "density",          "multiplets",      "ch_truncation"};
  deck->accepted_laws = reader.texts("accept").value_or(std::vector<std::string>{});
  for (const std::string& law : deck->accepted_laws)
    if (std::find(names.begin(), names.end(), law) == names.end())
      reader.fail("accept", "names '" + law + "', which is no law of the self-test" +
                                (nearest_name(law, names).empty()
                                     ? ""
                                     : "; did you mean '" + nearest_name(law, names) + "'?"));
  reader.finish();
}

/// Checks settings of one table against those of another.
void check_across_tables(const Deck& deck, const std::string& where) {
  if (!deck.mean_field.wfn_outer.empty()) {
    const auto refuse = [&](const char* key, const char* why) {
      throw InvalidInput(where + ": meanfield.wfn_outer is not allowed with " + key + ", " + why);
    };
    if (deck.sigma.outer.kind != OuterLoop::kNone)
      refuse("sigma.outer_loop", "whose energies go back into the states of WFN");
    if (!deck.sigma.path.corners.empty())
      refuse("sigma.band_path", "which interpolates between the points of WFN");
    if (deck.study.wanted) refuse("--converge", "whose coarser k-grids are those of WFN");
    if (deck.stop_after_epsilon) refuse("stop_after = \"epsilon\"", "which calculates no state");
  }
  const auto& wanted = deck.epsilon.frequencies;
  const bool needs_own =
      uses_frequencies(deck.sigma.method) || deck.sigma.method == SigmaMethod::kGodbyNeeds;
  if (wanted != FrequencySet::kAutomatic && needs_own && !deck.stop_after_epsilon)
    throw InvalidInput(where +
                       ": epsilon.frequencies is not allowed with this sigma.method, which "
                       "sets them itself; leave it out");
  if (deck.coulomb.subsampling > 0 && deck.pseudobands.wanted())
    throw InvalidInput(where +
                       ": coulomb.subsampling is not allowed with pseudobands, whose random "
                       "vectors would differ from q to q; remove one of them");
  if (deck.stop_after_epsilon && !deck.epsilon.stored.gamma.empty())
    throw InvalidInput(
        where +
        ": stop_after = \"epsilon\" leaves nothing to do with a stored ε⁻¹ (epsilon.eps0mat)");
  if (deck.epsilon.epsilon_cutoff_ry > 0.0 &&
      deck.sigma.screened_cutoff_ry > deck.epsilon.epsilon_cutoff_ry)
    throw InvalidInput(where +
                       ": sigma.screened_cutoff_ry = " + shown(deck.sigma.screened_cutoff_ry) +
                       " exceeds epsilon.cutoff_ry = " + shown(deck.epsilon.epsilon_cutoff_ry) +
                       "; ε⁻¹ is not known there");
}

}  // namespace

Deck parse_deck(const std::string& text, const std::vector<Setting>& settings,
                const std::string& where, const std::filesystem::path& directory) {
  toml::table root = parse_toml(text, where, settings);
  Deck deck;
  deck.notes = rename_keys(root, {{"checkpoint_seconds", "checkpoint_interval_s"}}, where);
  TableReader reader(&root, "", where);
  const std::string kind = reader.text("kind", "gw");
  if (kind != "gw") reader.fail("kind", "= \"" + kind + "\" is not \"gw\"");
  reader.table("job");  // the client reads name, priority and limits of the job
  deck.compatible = reader.choice("compat", 0, {"none", "bgw"}) == 1;
  deck.stop_after_epsilon = reader.choice("stop_after", 0, {"sigma", "epsilon"}) == 1;
  read_mean_field(TableReader(reader.table("meanfield"), "meanfield", where), directory, &deck);
  deck.self_test = reader.boolean("self_test", deck.self_test);
  read_common_keys(reader, &deck.common);
  read_epsilon(reader.table("epsilon"), where, directory, &deck);
  read_sigma(TableReader(reader.table("sigma"), "sigma", where), &deck);
  read_coulomb(reader.table("coulomb"), where, directory, &deck);
  read_pseudobands(TableReader(reader.table("pseudobands"), "pseudobands", where), &deck);
  const toml::table* displaced = reader.table("perturbation");
  deck.perturbation.wanted = displaced != nullptr;
  read_perturbation(TableReader(displaced, "perturbation", where), directory, &deck);
  read_checks(reader.table("checks"), where, &deck);
  deck.study.wanted = reader.boolean("convergence_study", false);
  read_convergence(reader.table("converge"), where, &deck);
  reader.finish();
  check_across_tables(deck, where);
  check_pseudobands(deck, where);
  check_perturbation(deck, where);
  check_spin_orbit(deck, where);
  check_column_slices(deck, where);
  check_inner_states(deck, where);
  return deck;
}

Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings) {
  const std::filesystem::path& file = path;
  if (std::filesystem::is_directory(file) && !std::filesystem::exists(file / "deck.toml") &&
      has_berkeleygw_inputs(file))
    return parse_deck(translate_berkeleygw_inputs(file), settings,
                      file.filename().string() + " (epsilon.inp, sigma.inp)", file);
  if (file.extension() == ".inp") {
    if (!has_berkeleygw_inputs(file.parent_path()))
      throw InvalidInput("'" + file.string() +
                         "': BerkeleyGW inputs are read as epsilon.inp and sigma.inp of one "
                         "directory; name them so");
    return parse_deck(translate_berkeleygw_inputs(file.parent_path()), settings,
                      file.filename().string(), file.parent_path());
  }
  const DeckText deck = read_deck_text(file);
  return parse_deck(deck.text, settings, deck.file.filename().string(), deck.file.parent_path());
}

}  // namespace quasi::gw
