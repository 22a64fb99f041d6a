#include "workers/gw/input/perturbation/deck_perturbation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/gw/input/deck_sigma.hpp"
#include "workers/gw/input/perturbation/phonon_modes_file.hpp"
#include "workers/gw/model/grid_vector.hpp"

namespace quasi::gw {
namespace {

/// Σ is exact to 1e-12 Ry, so that a central difference of this step is exact to 1e-7 eV/Bohr.
constexpr double kSmallestStep_bohr = 1e-4;
constexpr double kLargestCoordinate = 1.0;

/// Returns a wave vector q of the deck. For a built-in crystal it is moved to the nearest
/// difference of two k-points and folded into [0, 1). With files the k-grid is not known yet. Then
/// a reciprocal vector becomes 0, and request_on_grid() of wave_vector_elements.hpp moves all
/// others.
/// @param listed  three reduced coordinates
Vec3 on_grid(const TableReader& reader, const std::vector<double>& listed,
             const MeanFieldOptions& field) {
  const Vec3 q{listed[0], listed[1], listed[2]};
  for (const double x : q)
    if (std::abs(x) > kLargestCoordinate)
      reader.fail("q", "holds " + std::to_string(x) +
                           ", outside -1 … 1; give units of the reciprocal lattice vectors");
  if (!field.empirical) return nearest_grid_vector(q, {1, 1, 1}).axis_off_grid ? q : Vec3{};
  const GridVector nearest = nearest_grid_vector(q, field.crystal.k_grid);
  if (nearest.axis_off_grid) {
    const auto axis = static_cast<std::size_t>(*nearest.axis_off_grid);
    reader.fail("q", "holds " + std::to_string(q[axis]) + " along b" + std::to_string(axis + 1) +
                         ", but k + q is a k-point only at multiples of 1/" +
                         std::to_string(field.crystal.k_grid[axis]) +
                         " within 0.001; choose one, or change meanfield.k_grid");
  }
  return nearest.q;
}

/// Reads perturbation.q, a list of wave vectors.
void read_wave_vectors(TableReader& reader, const MeanFieldOptions& field, PerturbationRequest& p) {
  const auto listed = reader.vectors("q", 3);
  if (!listed) return;
  if (listed->empty()) reader.fail("q", "is an empty list; leave it out for q = 0");
  p.at_gamma = false;
  for (const std::vector<double>& entry : *listed) {
    const Vec3 q = on_grid(reader, entry, field);
    auto& others = p.wave_vectors;
    const bool gamma = q == Vec3{};
    if (gamma ? p.at_gamma : std::find(others.begin(), others.end(), q) != others.end())
      reader.fail("q",
                  "names one wave vector twice, up to a reciprocal lattice vector; name it "
                  "once");
    if (gamma)
      p.at_gamma = true;
    else
      others.push_back(q);
  }
}

/// Reads the files of modes at the wave vectors other than 0.
void read_modes_at_q(TableReader& reader, const std::filesystem::path& directory,
                     const std::string& modes, PerturbationRequest& p) {
  const auto files = reader.texts("modes_at_q");
  if (files && p.wave_vectors.empty())
    reader.fail("modes_at_q", "needs perturbation.q with a wave vector other than 0; add it");
  if (p.wave_vectors.empty()) return;
  std::vector<std::string> all = files.value_or(std::vector<std::string>{});
  if (all.empty() && !modes.empty()) all.push_back(modes);
  for (const std::string& file : all)
    for (PhononModes& at : read_phonon_modes_at_q(directory / file))
      p.modes_at_q.push_back(std::move(at));
}

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
       {"atoms", "directions", "state_response", "response_residual", "form_factors"})
    if (reader.has(key))
      reader.fail(key,
                  "is not allowed with perturbation.displaced, whose files say what is displaced "
                  "and hold no potential at other displacements; remove it");
  for (std::size_t i = 0; i < folders->size(); i += 2)
    p.folders.push_back({directory / (*folders)[i], directory / (*folders)[i + 1]});
}

/// Returns a tensor from its nine numbers, which are listed row by row.
Mat3 tensor_of(const std::vector<double>& numbers) {
  Mat3 tensor{};
  for (std::size_t i = 0; i < 9; ++i) tensor[i / 3][i % 3] = numbers[i];
  return tensor;
}

/// Returns true if a symmetric tensor is positive definite. Its three leading minors tell.
bool is_positive(const Mat3& t) {
  const double minor = t[0][0] * t[1][1] - t[0][1] * t[1][0];
  return t[0][0] > 0.0 && minor > 0.0 && dot(t[0], cross(t[1], t[2])) > 0.0;
}

/// Reads the Born charges and the dielectric tensor, from which the long-range part is calculated.
void read_long_range(TableReader& reader, PerturbationRequest& p) {
  constexpr double kSymmetric = 1e-3;
  const auto charges = reader.vectors("born_charges", 9),
             tensor = reader.vectors("dielectric_tensor", 3);
  if (charges.has_value() != tensor.has_value())
    reader.fail(charges ? "dielectric_tensor" : "born_charges",
                "is missing: the long-range part needs both tensors; add it, or remove the other");
  if (!charges) return;
  if (p.wave_vectors.empty())
    reader.fail("born_charges", "needs perturbation.q with a wave vector other than 0; add it");
  for (const std::vector<double>& numbers : *charges) p.born_charges.push_back(tensor_of(numbers));
  if (tensor->size() != 3)
    reader.fail("dielectric_tensor", "holds " + std::to_string(tensor->size()) +
                                         " rows; give three rows of three numbers");
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) p.dielectric_tensor[i][j] = (*tensor)[i][j];
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (std::abs(p.dielectric_tensor[i][j] - p.dielectric_tensor[j][i]) > kSymmetric)
        reader.fail("dielectric_tensor",
                    "is not symmetric within 0.001; give that of the electrons alone");
  if (!is_positive(p.dielectric_tensor))
    reader.fail("dielectric_tensor", "is not positive; give the tensor of the electrons alone");
}

/// Refuses decks with both [perturbation] and [pseudobands] whose first order of Σ no formula of
/// docs/theory/gw.md 14.12 gives. @param refuse_if  throws InvalidInput if its condition is true
template <typename RefuseIf>
void check_pseudobands(const Deck& deck, const RefuseIf& refuse_if) {
  const PseudobandOptions& random = deck.pseudobands;
  if (!random.wanted()) return;
  refuse_if(!deck.mean_field.empirical, "pseudobands.vectors and perturbation.displaced",
            "whose potentials have no differentiated recursion; leave [pseudobands] out");
  refuse_if(deck.mean_field.eigensolver.method != Eigensolver::kOperator,
            "pseudobands.vectors and meanfield.solver = \"dense\"",
            "whose windows act on given states and have no first order; set solver = \"operator\"");
  refuse_if(random.windows == WindowForm::kJackson, "pseudobands.windows = \"jackson\"",
            "which lose a part of all states and of their first order; use \"splines\"");
  refuse_if(!deck.perturbation.sternheimer, "pseudobands.vectors and state_response = \"sum\"",
            "because random vectors leave no sum over states; set "
            "perturbation.state_response = \"sternheimer\"");
  refuse_if(random.target_error_ev > 0.0, "pseudobands.target_error_ev",
            "which repeats jobs for the bars of energies alone; set pseudobands.vectors and "
            "pseudobands.blocks");
  refuse_if(random.blocks > 0 && deck.sigma.solution != Solution::kLinearised,
            "pseudobands.blocks and a sigma.solution other than \"linearised\"",
            "which repeats the whole job for each block; set solution = \"linearised\" or leave "
            "blocks out");
  refuse_if(random.blocks > 0 && deck.epsilon.subspace.wanted(),
            "pseudobands.blocks and a static subspace of epsilon",
            "which repeats the whole job for each block; leave out epsilon.subspace_tolerance and "
            "epsilon.subspace_vectors, or leave blocks out");
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
  read_wave_vectors(reader, deck->mean_field, p);
  p.all_lengths = reader.choice("form_factors", 0, {"lattice", "all-lengths"}) == 1;
  const std::string modes = reader.text("modes", "");
  if (!modes.empty() || reader.has("modes_at_q"))
    for (const char* key : {"atoms", "directions"})
      if (reader.has(key))
        reader.fail(key,
                    "is not allowed with perturbation.modes, which need all atoms along x, y "
                    "and z; remove it");
  if (!modes.empty() && p.at_gamma) p.modes = read_phonon_modes(directory / modes);
  read_modes_at_q(reader, directory, modes, p);
  read_long_range(reader, p);
  reader.finish();
}

void check_perturbation(const Deck& deck, const std::string& where) {
  if (!deck.perturbation.wanted) return;
  const auto refuse_if = [&](bool condition, const char* key, const char* why) {
    if (condition)
      throw InvalidInput(where + ": the table [perturbation] is not allowed with " + key + ", " +
                         why);
  };
  if (deck.mean_field.empirical && well_model(deck.mean_field.crystal.name) != nullptr)
    throw InvalidInput(
        where +
        ": [perturbation] displaces atoms with form factors, which meanfield.crystal "
        "= \"monolayer\" has not; choose another crystal");
  if (deck.mean_field.crystal.disorder_bohr > 0.0)
    throw InvalidInput(where +
                       ": [perturbation] displaces atoms of a crystal without disorder, but "
                       "meanfield.disorder_bohr = " +
                       shown(deck.mean_field.crystal.disorder_bohr) + "; remove one of them");
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
  refuse_if(deck.sigma.exact_ch && !deck.pseudobands.wanted(), "sigma.exact_ch",
            "which has no first order of Σ with eigenstates; set it to false");
  refuse_if(deck.sigma.outer.kind != OuterLoop::kNone, "sigma.outer_loop",
            "whose states and energies are not those of the displaced potential");
  check_pseudobands(deck, refuse_if);
  refuse_if(!deck.perturbation.wave_vectors.empty() && deck.perturbation.sternheimer,
            "perturbation.q other than 0 and state_response = \"sternheimer\"",
            "which is built for q = 0; set state_response = \"sum\" with more bands");
  refuse_if(deck.stop_after_epsilon, "stop_after = \"epsilon\"", "which calculates no Σ");
  refuse_if(deck.study.wanted, "--converge", "which repeats the energies alone");
}

}  // namespace quasi::gw
