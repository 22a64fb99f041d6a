#include "workers/gw/solver/pseudoband_errors/first_order_blocks.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "workers/gw/solver/calculation/phase_clock.hpp"
#include "workers/gw/solver/part_runner.hpp"
#include "workers/gw/solver/self_energy/sigma_parts.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"
#include "workers/gw/solver/self_energy/zone_sum/diagonal_terms.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

namespace quasi::gw {
namespace {

SigmaChange change_of_zero(const SigmaOptions& options) {
  const auto n_l = static_cast<std::size_t>(options.band_max - options.band_min + 1);
  return {std::vector<double>(n_l, 0.0), std::vector<double>(options.slope ? n_l : 0, 0.0)};
}

/// Total Σ and slope of one part, packed as [spin][total, slope][n_l].
std::vector<double> packed(const std::vector<SelfEnergyAtK>& sums) {
  std::vector<double> values;
  for (const SelfEnergyAtK& sum : sums) {
    for (std::size_t l = 0; l < sum.ch_ry[0].size(); ++l) {
      double total = sum.ch_ry[0][l].real() + sum.sx_ry[0][l].real();
      if (!sum.closed_sum_ry.empty()) total += sum.closed_sum_ry[l].real();
      values.push_back(total);
    }
    for (const Cplx slope : sum.slope) values.push_back(slope.real());
  }
  return values;
}

}  // namespace

FirstOrderBlocks::FirstOrderBlocks(const Deck& deck, const ExchangeCorrelation& vxc,
                                   const StepContext& context, GroupedScreening* screening,
                                   Calculation& run)
    : vxc_ev_(vxc.diagonal_ev()),
      context_(context),
      screening_(screening),
      run_(run),
      options_(run.plan.sigma),
      has_nodes_(deck.pseudobands.windows == WindowForm::kSplines) {
  options_.only_total = true;
  options_.exchange = false;
  options_.offsets_ry = {0.0};
  // Without V_xc the energies are those of Σ, and no slope is needed.
  options_.slope = options_.slope && !vxc_ev_.empty();
}

std::vector<ChangingPoles> FirstOrderBlocks::changing_poles() {
  const PhaseClock clock(&run_.seconds["pseudoband_errors_epsilon"]);
  const auto frequencies = options_.method == SigmaMethod::kGodbyNeeds
                               ? std::vector<std::size_t>{0, 1}
                               : std::vector<std::size_t>{0};
  const auto poles_of = [&](const DielectricMatrix& epsilon) {
    ChangingPoles poles{.at = screening_at(run_.field, epsilon, options_.screened_cutoff_ry,
                                           context_.coulomb, frequencies),
                        .model = {},
                        .changes = {}};
    poles.model = plasmon_poles(run_.field, poles.at, options_, context_.coulomb,
                                wing_factors(poles.at.epsilon));
    poles.at.epsilon.inverse.clear();
    return poles;
  };
  std::vector<ChangingPoles> all;
  for (const DielectricMatrix& epsilon : run_.epsilon) all.push_back(poles_of(epsilon));
  if (screening_ == nullptr) return all;
  const PseudobandPlan& plan = *run_.pseudobands;
  const auto add = [&](const std::vector<double>& weights) {
    std::vector<DielectricMatrix> changed = screening_->dielectric_matrices(weights);
    for (std::size_t iq = 0; iq < all.size(); ++iq) {
      all[iq].changes.push_back(change_of(all[iq].model, poles_of(changed[iq]).model));
      changed[iq].inverse.clear();
    }
  };
  for (int block = 0; block < plan.blocks; ++block) {
    context_.progress.log("screening without block " + std::to_string(block + 1));
    add(weights_without(block, plan.blocks));
  }
  if (has_nodes_) add(weights_at_nodes(plan.blocks));
  return all;
}

std::vector<SigmaChanges> FirstOrderBlocks::sums_of_blocks(const std::string& name,
                                                           bool with_closed_sum) {
  const PseudobandPlan& plan = *run_.pseudobands;
  SigmaOptions options = options_;
  if (!with_closed_sum) options.closed_sum_x_ry.reset();
  struct Task {
    PartAtK part;
    std::size_t block = 0;
  };
  std::vector<Task> tasks;
  for (std::size_t iq = 0; iq < run_.epsilon.size(); ++iq)
    for (std::size_t k = 0; k < options.kpoints.size(); ++k)
      for (int block = 0; block < plan.blocks; ++block) {
        const auto [begin, end] = plan.bands_of_block(block);
        tasks.push_back({{{iq, iq + 1, begin, end}, k}, static_cast<std::size_t>(block)});
      }
  SharedScreening shared;
  std::map<const GwKernels*, ScreeningOnDevice> prepared;
  for (GwKernels* member : context_.team.members()) prepared[member].shared = &shared;
  PartedSum sum{.name = name,
                .phase = "self-energy",
                .parts = static_cast<std::int64_t>(tasks.size()),
                .make = {},
                .running = {}};
  sum.make = [&](std::int64_t index, GwKernels& kernels, Progress& inside) {
    const PartAtK& part = tasks[static_cast<std::size_t>(index)].part;
    SigmaOptions at_k = options;
    at_k.kpoints = {options.kpoints[part.k]};
    return packed(self_energy_part(run_.field, run_.epsilon, at_k, part,
                                   {context_.coulomb, kernels, inside}, prepared.at(&kernels))
                      .sums);
  };
  const auto n_spins = static_cast<std::size_t>(run_.field.n_spins());
  std::vector<SigmaChanges> blocks(
      static_cast<std::size_t>(plan.blocks),
      SigmaChanges(options.kpoints.size() * n_spins, change_of_zero(options)));
  const std::vector<Piece> results =
      run_parts(sum, context_.team, context_.checkpoint, context_.progress);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double* at = results[i].data;
    for (std::size_t spin = 0; spin < n_spins; ++spin) {
      SigmaChange& to = blocks[tasks[i].block][tasks[i].part.k * n_spins + spin];
      for (double& value : to.total_ry) value += *at++;
      for (double& value : to.slope) value += *at++;
    }
  }
  return blocks;
}

void FirstOrderBlocks::subtract_complement(const std::vector<ChangingPoles>& poles,
                                           std::vector<SigmaChanges>& blocks) const {
  const MeanField& field = run_.field;
  const auto n_spins = static_cast<std::size_t>(field.n_spins());
  const std::int64_t each = field.complement->n_bands / run_.pseudobands->blocks;
  for (std::size_t iq = 0; iq < poles.size(); ++iq) {
    const UnsetVector<Cplx> matrix = empty_band_matrix(poles[iq].model, *options_.closed_sum_x_ry);
    const GSphere& sphere = poles[iq].at.sphere;
    for (std::size_t i = 0; i < options_.kpoints.size() * n_spins; ++i) {
      const int ik = options_.kpoints[i / n_spins];
      const auto stars =
          q_points_by_star(field, field.waves.k[static_cast<std::size_t>(ik)], options_.reduce_q);
      const auto star = stars.find(static_cast<int>(iq));
      if (star == stars.end()) continue;
      OuterProducts outer(
          field, {ik, static_cast<int>(i % n_spins), options_.band_min - 1, options_.band_max},
          complement_box(field, sphere.g), context_.team.first());
      for (const StarMember& member : star->second) {
        const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kApplied);
        BandBlock block = outer.load_complement(member.q);
        block.weight = member.multiplicity / field.zone_volume_bohr3();
        const std::vector<Cplx> forms = forms_of(matrix, block, outer.fill(*rotated));
        for (std::int64_t l = 0; l < block.n_l; ++l)
          for (std::int64_t n = 0; n < block.n_b; ++n)
            blocks[static_cast<std::size_t>(n / each)][i].total_ry[static_cast<std::size_t>(l)] -=
                block.weight * forms[static_cast<std::size_t>(l * block.n_b + n)].real();
      }
    }
  }
}

void FirstOrderBlocks::prepare() {
  if (ready_) return;
  ready_ = true;
  const PseudobandPlan& plan = *run_.pseudobands;
  context_.checkpoint.enter("first-order/");
  {
    const PhaseClock clock(&run_.seconds["pseudoband_errors_sigma"]);
    of_blocks_ = sums_of_blocks("blocks", options_.closed_sum_x_ry.has_value());
    if (has_nodes_) {
      // The closed sum does not depend on the energies of bands.
      std::vector<SigmaChanges> own = options_.closed_sum_x_ry
                                          ? sums_of_blocks("blocks-without-closed-sum", false)
                                          : of_blocks_;
      Wavefunctions& waves = run_.field.waves;
      std::vector<double> nodes = energies_at_nodes(waves, plan, PseudobandUse::kSelfEnergy);
      waves.energy_ry.swap(nodes);
      const std::vector<SigmaChanges> moved = sums_of_blocks("blocks-at-nodes", false);
      waves.energy_ry.swap(nodes);
      to_nodes_.assign(own.front().size(), change_of_zero(options_));
      for (std::size_t i = 0; i < to_nodes_.size(); ++i)
        for (std::size_t block = 0; block < own.size(); ++block) {
          to_nodes_[i].add(1.0, moved[block][i]);
          to_nodes_[i].add(-1.0, own[block][i]);
        }
    }
  }
  const std::vector<ChangingPoles> poles = changing_poles();
  const PhaseClock clock(&run_.seconds["pseudoband_errors_sigma"]);
  if (options_.closed_sum_x_ry) subtract_complement(poles, of_blocks_);
  const std::size_t n_changes = poles.front().changes.size();
  by_poles_ = sigma_responses(run_.field, poles, n_changes, options_, context_);
  if (n_changes == 0)
    by_poles_.assign(static_cast<std::size_t>(plan.blocks) + 1,
                     SigmaChanges(of_blocks_.front().size(), change_of_zero(options_)));
  context_.checkpoint.enter("");
}

std::vector<Quasiparticle> FirstOrderBlocks::with_change(const SigmaChanges& change) const {
  std::vector<SelfEnergyAtK> sums = run_.sigma;
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (std::size_t l = 0; l < change[i].total_ry.size(); ++l) {
      sums[i].ch_ry[0][l] += change[i].total_ry[l];
      if (!change[i].slope.empty()) sums[i].slope[l] += change[i].slope[l];
    }
  return quasiparticles(run_.field, sums, vxc_ev_, run_.plan.sigma, run_.plan.derivative, false);
}

std::vector<Quasiparticle> FirstOrderBlocks::without(int block) {
  prepare();
  const auto left_out = static_cast<std::size_t>(block);
  SigmaChanges change = by_poles_.at(left_out);
  for (std::size_t other = 0; other < of_blocks_.size(); ++other)
    for (std::size_t i = 0; i < change.size(); ++i)
      change[i].add(other == left_out ? -1.0 : 1.0 / (static_cast<double>(of_blocks_.size()) - 1.0),
                    of_blocks_[other][i]);
  return with_change(change);
}

std::vector<Quasiparticle> FirstOrderBlocks::at_nodes() {
  prepare();
  SigmaChanges change = by_poles_.at(of_blocks_.size());
  for (std::size_t i = 0; i < change.size(); ++i) change[i].add(1.0, to_nodes_[i]);
  return with_change(change);
}

}  // namespace quasi::gw
