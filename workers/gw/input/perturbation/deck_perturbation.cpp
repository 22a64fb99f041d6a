#include "workers/gw/input/perturbation/deck_perturbation.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/gw/input/deck_sigma.hpp"
#include "workers/gw/input/perturbation/phonon_modes_file.hpp"

namespace quasi::gw {
namespace {

/// Σ is exact to 1e-12 Ry, so that a central difference of this step is exact to 1e-7 eV/Bohr.
constexpr double kSmallestStep_bohr = 1e-4;

/// Reads the pairs of folders of displaced calculations.
void read_folders(TableReader& reader, const std::filesystem::path& directory,
                  PerturbationRequest& p) {
  const auto folders = reader.texts("displaced");
  if (!folders) return;
  if (folders->empty() || folders->size() % 2 != 0)
    reader.fail("displaced", "holds " + std::to_string(folders->size()) +
                                 " folders, but each displacement needs two; name the folder of +h "
                                 "and then that of -h");
  for (const char* key :
       {"atoms", "directions", "check_step_bohr", "state_response", "response_residual"})
    if (reader.has(key))
      reader.fail(key,
                  "is not allowed with perturbation.displaced, whose files say what is displaced "
                  "and hold no potential at other displacements; remove it");
  for (std::size_t i = 0; i < folders->size(); i += 2)
    p.folders.push_back({directory / (*folders)[i], directory / (*folders)[i + 1]});
}

}  // namespace

void read_perturbation(TableReader reader, const std::filesystem::path& directory, Deck* deck) {
  PerturbationRequest& p = deck->perturbation;
  for (const double value :
       reader.numbers("atoms", 1, kMaxBandCount).value_or(std::vector<double>{})) {
    const int atom = static_cast<int>(value);
    if (atom != value) reader.fail("atoms", "must hold whole numbers, counted from 1");
    if (std::find(p.atoms.begin(), p.atoms.end(), atom) != p.atoms.end())
      reader.fail("atoms", "names atom " + std::to_string(atom) + " twice; name it once");
    p.atoms.push_back(atom);
  }
  if (reader.has("atoms") && p.atoms.empty())
    reader.fail("atoms", "is an empty list; leave it out to displace all atoms");
  if (const auto directions = reader.texts("directions")) {
    p.directions.clear();
    for (const std::string& direction : *directions) {
      if (direction != "x" && direction != "y" && direction != "z")
        reader.fail("directions", "names \"" + direction + "\"; choose among \"x\", \"y\", \"z\"");
      if (p.directions.find(direction) != std::string::npos)
        reader.fail("directions", "names \"" + direction + "\" twice; name it once");
      p.directions += direction;
    }
    if (p.directions.empty())
      reader.fail("directions", "is an empty list; leave it out to displace along x, y and z");
  }
  p.check_step_bohr = reader.number("check_step_bohr", 0.0, 0.0, 0.2);
  if (p.check_step_bohr > 0.0 && p.check_step_bohr < kSmallestStep_bohr)
    reader.fail("check_step_bohr",
                "is below 1e-4 Bohr, where differences of Sigma lose the digits "
                "that the check compares; set 0.01, or 0 for no check");
  p.sternheimer = reader.choice("state_response", 0, {"sum", "sternheimer"}) == 1;
  if (reader.has("response_residual") && !p.sternheimer)
    reader.fail("response_residual",
                "has no meaning with state_response = \"sum\", which solves no equation; set "
                "state_response = \"sternheimer\" or remove it");
  p.response_residual = reader.number("response_residual", p.response_residual, 1e-13, 1e-6);
  read_folders(reader, directory, p);
  if (const std::string modes = reader.text("modes", ""); !modes.empty()) {
    for (const char* key : {"atoms", "directions"})
      if (reader.has(key))
        reader.fail(key,
                    "is not allowed with perturbation.modes, which need all atoms along x, y "
                    "and z; remove it");
    p.modes = read_phonon_modes(directory / modes);
  }
  reader.finish();
}

void check_perturbation(const Deck& deck, const std::string& where) {
  if (!deck.perturbation.wanted) return;
  const auto refuse_if = [&](bool condition, const char* key, const char* why) {
    if (condition)
      throw InvalidInput(where + ": the table [perturbation] is not allowed with " + key + ", " +
                         why);
  };
  refuse_if(!deck.mean_field.empirical && deck.perturbation.folders.empty(),
            "meanfield.source = \"files\" alone",
            "which holds no potential of a displaced atom; name the folders of displaced "
            "calculations in perturbation.displaced, or set source = \"epm\"");
  refuse_if(deck.mean_field.empirical && !deck.perturbation.folders.empty(),
            "perturbation.displaced and meanfield.source = \"epm\"",
            "whose form factors give the displaced potentials; remove perturbation.displaced");
  refuse_if(deck.mean_field.crystal.deformation != EmpiricalCrystal{}.deformation,
            "meanfield.stretch", "because form factors are known at undeformed lengths alone");
  refuse_if(!has_first_order(deck.sigma.method),
            deck.sigma.method == SigmaMethod::kRealAxis ? "sigma.method = \"real-axis\""
                                                        : "sigma.method = \"imaginary-axis\"",
            "which has no first order of Σ; use \"contour\", \"hl-gpp\", \"gn-gpp\" or "
            "\"cohsex\"");
  refuse_if(deck.sigma.invalid == InvalidMode::kImaginary, "sigma.invalid_modes = \"imaginary\"",
            "which has no first order of Σ; use \"static\", \"two-rydberg\" or \"skip\"");
  refuse_if(deck.sigma.remainder, "sigma.static_remainder",
            "which has no first order of Σ; set it to false");
  refuse_if(deck.sigma.exact_ch, "sigma.exact_ch",
            "which has no first order of Σ; set it to false");
  refuse_if(deck.sigma.outer.kind != OuterLoop::kNone, "sigma.outer_loop",
            "whose states and energies are not those of the displaced potential");
  refuse_if(deck.pseudobands.wanted(), "pseudobands.vectors",
            "which have no first order of Σ; leave them out");
  refuse_if(deck.stop_after_epsilon, "stop_after = \"epsilon\"", "which calculates no Σ");
  refuse_if(deck.study.wanted, "--converge", "which repeats the energies alone");
}

}  // namespace quasi::gw
