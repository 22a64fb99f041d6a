#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/gw/model/coulomb_options.hpp"
#include "workers/gw/model/epsilon_options.hpp"
#include "workers/gw/model/mean_field_options.hpp"
#include "workers/gw/model/perturbation_request.hpp"
#include "workers/gw/model/pseudoband_options.hpp"
#include "workers/gw/model/sigma_request.hpp"
#include "workers/io/common_keys.hpp"
#include "workers/io/settings.hpp"

namespace quasi::gw {

/// Settings of a convergence study below the deck's values. An empty list means fixed shares of the
/// deck's value; for k-grids it means the grids that the deck's grid contains.
struct StudyRequest {
  bool wanted = false;  ///< set by --converge
  /// True for a calculation of a study. Its bare cut-off may lie below the screened one, because
  /// the change of exchange with its own cut-off is studied.
  bool within = false;
  std::vector<double> bands;  ///< bands of Σ; those of ε are lowered in proportion
  std::vector<double> epsilon_cutoffs_ry, bare_cutoffs_ry;
  std::vector<IVec3> k_grids;
};

/// Begin here: a GW job as the user wrote it. docs/reference/gw.md describes every key.
/// deck_sigma.hpp reads the table [sigma], and berkeleygw_inputs.hpp translates BerkeleyGW's
/// inputs.
struct Deck {
  MeanFieldOptions mean_field;
  PseudobandOptions pseudobands;
  EpsilonRequest epsilon;
  SigmaRequest sigma;
  PerturbationRequest perturbation;
  CoulombOptions coulomb;
  StudyRequest study;
  bool compatible = false;  ///< compat = "bgw": conventions of BerkeleyGW
  bool stop_after_epsilon = false;
  bool self_test = true;
  /// Laws of the self-test whose violation neither ends the job nor marks its results.
  std::vector<std::string> accepted_laws;
  CommonKeys common;
  std::vector<std::string> notes;  ///< warnings of the reader, for log and result
};

/// Parses a TOML deck. @param where  names the text in error messages; `directory` is the base of
/// its relative paths. @throws InvalidInput with key, value, limit and remedy.
Deck parse_deck(const std::string& text, const std::vector<Setting>& settings,
                const std::string& where, const std::filesystem::path& directory);

/// Reads a TOML file, a directory that holds deck.toml, or the inputs of BerkeleyGW: a directory
/// that holds epsilon.inp or sigma.inp, or one of these files (input/berkeleygw_inputs.hpp).
/// @throws InvalidInput with key, value, limit and remedy.
Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings);

}  // namespace quasi::gw
