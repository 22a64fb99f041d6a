#include "workers/gw/solver/self_energy/sigma.hpp"

#include <algorithm>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/gw/solver/self_energy/zone_sum/diagonal_terms.hpp"

namespace quasi::gw {
namespace {

/// Positions in the frequencies of ε⁻¹ that a method without full frequencies reads.
std::vector<std::size_t> frequencies_of(SigmaMethod method) {
  return method == SigmaMethod::kGodbyNeeds ? std::vector<std::size_t>{0, 1}
                                            : std::vector<std::size_t>{0};
}
bool wants_static_ch(const SigmaOptions& options) {
  return options.exact_static_ch || options.method == SigmaMethod::kCohsex;
}

BandsAtK outer_bands(const SelfEnergyAtK& sum, const SigmaOptions& options) {
  return {sum.k_index, sum.spin, options.band_min - 1, options.band_max};
}

/// One part of the diagonal Σ on one device: for every q of the part its screening, then for every
/// outer k the q-points of the star, then blocks of inner bands.
class DiagonalPart {
 public:
  DiagonalPart(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
               const SigmaOptions& options, const SigmaPart& part, const DeviceContext& context,
               ScreeningOnDevice& screening)
      : field_(field),
        epsilon_(epsilon),
        options_(options),
        part_(part),
        coulomb_(context.coulomb),
        kernels_(context.kernels),
        progress_(context.progress),
        here_(screening),
        clock_(screening.shared != nullptr ? &screening.shared->times() : nullptr) {
    result_.sums = empty_self_energy(field, options);
  }

  PartOfSelfEnergy calculate() {
    list_stars();
    if (options_.correlation && (completes_ch() || adds_closed_sum())) make_charge_tables();
    for (iq_ = part_.q_begin; iq_ < part_.q_end; ++iq_) {
      // Exchange comes before W, because another device may be making W meanwhile.
      if (options_.exchange && shares_exchange()) add_exchange_of_q();
      clock_.step("exchange");
      if (!options_.correlation) continue;
      take_screening();
      clock_.skip();
      if (first_bands()) count_screening();
      if (is_sliced() && rows_of_slice().size() == 0) continue;
      for (std::size_t i = 0; i < result_.sums.size(); ++i) add_star(i);
    }
    return std::move(result_);
  }

 private:
  /// True for the part that adds the terms which do not depend on the inner band.
  bool first_bands() const { return part_.band_begin == 0 && part_.slice == 0; }
  bool is_sliced() const { return options_.column_slices > 0; }
  /// Returns the rows of the poles that this part sums. They are empty if the q of the part has so
  /// few plane waves that it has no slice of this number.
  ElementRows rows_of_slice() const {
    const auto slices = slices_of_lower_triangle(now_->model.n, options_.column_slices);
    const auto at = static_cast<std::size_t>(part_.slice);
    return at < slices.size() ? slices[at] : ElementRows{};
  }
  /// Exchange belongs to the first part. Parts of exchange alone share its bands.
  bool shares_exchange() const { return !options_.correlation || first_bands(); }
  std::pair<std::int64_t, std::int64_t> exchange_bands(std::int64_t n_occupied) const {
    if (options_.correlation) return {0, n_occupied};
    return {part_.band_begin, std::min(n_occupied, part_.band_end)};
  }
  bool completes_ch() const {
    return wants_static_ch(options_) && options_.closure && first_bands();
  }
  /// Returns true if this part adds the closed sum over all states (docs/theory/gw.md 9.4). It is
  /// the part of the first bands. With slices every slice has such a part.
  bool adds_closed_sum() const { return options_.closed_sum_x_ry && part_.band_begin == 0; }
  bool has_poles() const { return uses_plasmon_poles(options_.method); }
  /// True where every q of the zone has wing factors of its own (the wing rule of BerkeleyGW).
  bool wings_by_point() const { return coulomb_.options().wing_rule == WingRule::kListedPoint; }

  /// Lists the q-points of each outer k by irreducible q, and counts those of this part.
  void list_stars() {
    stars_.resize(field_.waves.k.size());
    for (const int ik : options_.kpoints) {
      const auto at = static_cast<std::size_t>(ik);
      stars_[at] = q_points_by_star(field_, field_.waves.k[at], options_.reduce_q);
      for (const auto& [iq, members] : stars_[at])
        if (static_cast<std::size_t>(iq) >= part_.q_begin &&
            static_cast<std::size_t>(iq) < part_.q_end)
          work_ += static_cast<std::int64_t>(members.size()) * field_.n_spins();
    }
  }
  /// The q-points of the present irreducible q for one outer k.
  const std::vector<StarMember>& star_of(const SelfEnergyAtK& sum) const {
    static const std::vector<StarMember> kNone;
    const auto& stars = stars_[static_cast<std::size_t>(sum.k_index)];
    const auto found = stars.find(static_cast<int>(iq_));
    return found == stars.end() ? kNone : found->second;
  }

  void make_charge_tables() {
    for (const SelfEnergyAtK& sum : result_.sums)
      charges_.push_back(
          charge_table(field_, outer_bands(sum, options_), options_.screened_cutoff_ry, kernels_));
  }

  /// Adds −Σ_q Σ_occ Σ_G |M|² v̄ of the present q's star to every x[l].
  void add_exchange_of_q() {
    const DielectricMatrix& epsilon = epsilon_[iq_];
    const Vec3 q_listed = epsilon.at_gamma ? Vec3{} : epsilon.q;
    const GSphere sphere = make_g_sphere(field_.crystal().bdot, q_listed, options_.bare_cutoff_ry);
    const std::vector<double> v = averaged_coulomb(epsilon, sphere, coulomb_);
    const auto box = sum_box(field_, sphere.g);
    for (SelfEnergyAtK& sum : result_.sums) {
      if (star_of(sum).empty()) continue;
      OuterProducts outer(field_, outer_bands(sum, options_), box, kernels_);
      const int n_v = field_.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
      for (const StarMember& member : star_of(sum)) {
        const auto rotated = outer.load_sphere(member.q, sphere, OuterProducts::Phases::kLeftOut);
        const std::int64_t band = 16 * outer.outer().size() * sphere.size() + outer.band_bytes(),
                           step = std::max<std::int64_t>(
                               1,
                               std::min(kExchangeBlock_bytes, options_.memory_budget_bytes) / band);
        const auto [first, end] = exchange_bands(n_v);
        for (std::int64_t begin = first; begin < end; begin += step) {
          BandBlock block = outer.load_inner(member.q, begin, std::min(end, begin + step));
          block.weight = member.multiplicity / field_.zone_volume_bohr3();
          add_exchange(v, block, outer.fill(*rotated), sum);
        }
      }
    }
  }

  /// Sets what W needs beyond ε⁻¹ for given wing factors: static W, and the poles.
  void apply_wings(const ScreeningAtQ& at, const WingFactors& wings, PreparedScreening& to) const {
    to.wings = wings;
    if (wants_static_ch(options_)) to.static_w = screened_matrix(at, 0, wings);
    if (has_poles()) to.model = plasmon_poles(field_, at, options_, coulomb_, wings);
  }
  PreparedScreening make_screening() const {
    PreparedScreening made;
    made.iq = iq_;
    if (uses_frequencies(options_.method)) {
      FullFrequencyW w = full_frequency_w(field_, epsilon_[iq_], options_, coulomb_, kernels_);
      made.at = std::move(w.at);
      made.subspace = std::move(w.subspace);
    } else {
      made.at = screening_at(field_, epsilon_[iq_], options_.screened_cutoff_ry, coulomb_,
                             frequencies_of(options_.method));
    }
    apply_wings(made.at, wing_factors(made.at.epsilon), made);
    return made;
  }
  enum class Sharing { kAllowed, kForbidden };
  void load_poles(const PreparedScreening& made, Sharing sharing) {
    if (!has_poles()) return;
    const PlasmonPoleModel& model = made.model;
    here_.poles = {};  // its memory is free before the next model takes as much
    here_.imaginary_poles = {};
    if (is_sliced()) {
      load_slice();
      return;
    }
    here_.poles = sharing == Sharing::kAllowed
                      ? here_.shared->load_poles(made, options_.rules, kernels_)
                      : kernels_.pole_sums().load(model.view(), options_.rules);
    load_imaginary_poles(model);
  }
  /// Brings the slice of the poles of this part to the device. The part of slice 0 also gets all
  /// elements with imaginary poles.
  void load_slice() {
    here_.slice = part_.slice;
    if (rows_of_slice().size() == 0) return;
    here_.poles =
        kernels_.pole_sums().load_rows(now_->model.view(), options_.rules, rows_of_slice());
    if (part_.slice == 0) load_imaginary_poles(now_->model);
  }
  void load_imaginary_poles(const PlasmonPoleModel& model) {
    if (!model.imaginary.empty())
      here_.imaginary_poles = kernels_.pole_sums().load_imaginary(
          view<const ImaginaryPole>(model.imaginary, model.imaginary.size()), options_.rules);
  }
  /// Brings the screening of the present q to the device, unless the part before left it there.
  void take_screening() {
    if (here_.prepared == nullptr || here_.prepared->iq != iq_ || wings_by_point() ||
        here_.slice != part_.slice) {
      const auto make = [this] { return make_screening(); };
      const bool stays = here_.prepared != nullptr && here_.prepared->iq == iq_ && is_sliced();
      if (!stays) here_.prepared = {};
      if (!stays)
        here_.prepared = here_.shared != nullptr
                             ? here_.shared->get(iq_, make)
                             : std::make_shared<const PreparedScreening>(make());
      now_ = here_.prepared.get();
      load_poles(*here_.prepared, here_.shared != nullptr && !wings_by_point()
                                      ? Sharing::kAllowed
                                      : Sharing::kForbidden);
    }
    now_ = here_.prepared.get();
  }
  void count_screening() {
    const std::int64_t n_g = now_->at.sphere.size();
    SigmaStatistics& counts = result_.statistics;
    if (options_.subspace.wanted() && now_->subspace.used()) {
      counts.subspace_vectors += now_->subspace.n_b;
      counts.plane_waves += n_g;
    }
    if (has_poles()) {
      counts.elements += n_g * n_g;
      counts.skipped += now_->model.skipped;
      counts.invalid += now_->model.invalid;
    }
  }

  /// Inner bands at a time: beside the poles or W and the outer bands, each takes its values in the
  /// box and its products.
  std::int64_t bands_that_fit(const OuterProducts& outer) const {
    const std::int64_t n_g = here_.prepared->at.sphere.size(), n_l = outer.outer().size();
    const std::int64_t matrices = is_sliced() ? 32 * largest_pole_slice(n_g, options_.column_slices)
                                              : (options_.closed_sum_x_ry ? 48 : 32) * n_g * n_g;
    const std::int64_t fixed = matrices + outer.band_bytes() * n_l;
    const std::int64_t band = 32 * n_l * n_g + outer.band_bytes();
    const std::int64_t budget =
        budget_beside(options_.memory_budget_bytes, options_.memory_limit_bytes, fixed, band);
    return std::min<std::int64_t>(options_.bands,
                                  items_that_fit(budget, fixed, band, "self-energy"));
  }

  /// Adds the star of the present q to Σ of one outer k and spin.
  void add_star(std::size_t i_sum) {
    SelfEnergyAtK& sum = result_.sums[i_sum];
    if (star_of(sum).empty()) return;
    const ScreeningAtQ& at = here_.prepared->at;
    OuterProducts outer(field_, outer_bands(sum, options_), sum_box(field_, at.sphere.g), kernels_);
    for (const StarMember& member : star_of(sum)) {
      const auto sphere = outer.load_sphere(member.q, at.sphere, OuterProducts::Phases::kApplied);
      if (wings_by_point()) take_wings_of(member.q);
      add_bands(outer, *sphere, member, sum);
      if (completes_ch()) add_completed(charges_[i_sum], member, now_->static_w, sum.ch_exact_ry);
      progress_.report("self-energy", ++done_, work_);
    }
    if (adds_closed_sum()) add_closed_sum(charges_[i_sum], sum);
  }
  void take_wings_of(const Vec3& q) {
    const ScreeningAtQ& at = here_.prepared->at;
    apply_wings(at, wing_factors_of_listed_point(at.epsilon, coulomb_, field_.crystal().bdot, q),
                of_point_);
    now_ = &of_point_;
    load_poles(of_point_, Sharing::kForbidden);
  }
  /// Adds the inner bands of the part at one q, block by block.
  void add_bands(OuterProducts& outer, const LoadedSphere& sphere, const StarMember& member,
                 SelfEnergyAtK& sum) {
    const std::int64_t step = bands_that_fit(outer);
    for (std::int64_t begin = part_.band_begin; begin < part_.band_end; begin += step) {
      BandBlock block = outer.load_inner(member.q, begin, std::min(part_.band_end, begin + step));
      block.weight = member.multiplicity / field_.zone_volume_bohr3();
      clock_.step("wavefunctions");
      PairBlock& products = outer.fill(sphere);
      clock_.step("pair_products");
      add_correlation(block, products, sum);
      clock_.step("sums");
    }
  }
  void add_correlation(BandBlock& block, PairBlock& products, SelfEnergyAtK& sum) {
    if (!now_->static_w.empty()) add_static(now_->static_w, block, products, options_, sum);
    if (has_poles()) add_plasmon_poles(here_, block, products, options_, sum);
    if (options_.closed_sum_x_ry) {
      clock_.step("sums");
      subtract_closed_sum(*here_.poles, *options_.closed_sum_x_ry, block, products,
                          sum.closed_sum_ry);
      clock_.step("closed_sum");
    }
    if (uses_frequencies(options_.method)) {
      block.midgap_ry = midgap_ry(field_, sum.spin);
      add_full_frequency({here_.prepared->at, now_->wings, here_.prepared->subspace}, options_,
                         block, products, sum);
    }
  }
  /// Adds −½ Σ_GG' W_GG' ρ_ll(G − G') at one q to ch[l].
  void add_completed(const ChargeTable& charge, const StarMember& member,
                     const UnsetVector<Cplx>& w, std::vector<Cplx>& ch) {
    const int operation = field_.transfers().rotation_to(member.q).operation;
    add_exact_static_ch(charge, here_.prepared->at.sphere,
                        field_.transfers().operations()[static_cast<std::size_t>(operation)], w,
                        member.multiplicity / field_.zone_volume_bohr3(), ch);
    clock_.step("completed_ch");
  }
  /// Adds the known closed sum of the star of the present q, less that of the complement.
  void add_closed_sum(const ChargeTable& charge, SelfEnergyAtK& sum) {
    const ScreeningAtQ& at = here_.prepared->at;
    OuterProducts outer(field_, outer_bands(sum, options_), complement_box(field_, at.sphere.g),
                        kernels_);
    const double x_ry = *options_.closed_sum_x_ry;
    const DifferenceBox box(at.sphere.g);
    std::vector<Cplx> sums;
    for (const StarMember& member : star_of(sum)) {
      const auto sphere = outer.load_sphere(member.q, at.sphere, OuterProducts::Phases::kApplied);
      if (wings_by_point()) take_wings_of(member.q);
      BandBlock block = outer.load_complement(member.q, 0, field_.complement->n_bands);
      block.weight = member.multiplicity / field_.zone_volume_bohr3();
      subtract_closed_sum(*here_.poles, x_ry, block, outer.fill(*sphere), sum.closed_sum_ry);
      if (sums.empty() || wings_by_point()) sums = here_.poles->sums_by_difference(x_ry, box);
      const int operation = field_.transfers().rotation_to(member.q).operation;
      const std::vector<Cplx> known = known_closed_sums(
          charge, field_.transfers().operations()[static_cast<std::size_t>(operation)], box, sums);
      for (std::size_t l = 0; l < known.size(); ++l)
        sum.closed_sum_ry[l] += block.weight * known[l];
      clock_.step("closed_sum");
    }
  }

  const MeanField& field_;
  const std::vector<DielectricMatrix>& epsilon_;
  const SigmaOptions& options_;
  const SigmaPart& part_;
  const CoulombInteraction& coulomb_;
  GwKernels& kernels_;
  Progress& progress_;
  ScreeningOnDevice& here_;
  StepClock clock_;
  PartOfSelfEnergy result_;
  std::vector<std::map<int, std::vector<StarMember>>> stars_;  ///< [k]: q-points by irreducible q
  std::vector<ChargeTable> charges_;                           ///< of each sum
  std::int64_t done_ = 0, work_ = 0;
  std::size_t iq_ = 0;                      ///< the present irreducible q
  const PreparedScreening* now_ = nullptr;  ///< the present screening: of iq_, or of_point_
  PreparedScreening of_point_;              ///< where every q of the zone has wings of its own
};

}  // namespace

std::vector<SelfEnergyAtK> empty_self_energy(const MeanField& field, const SigmaOptions& options) {
  const auto n_l = static_cast<std::size_t>(options.band_max - options.band_min + 1);
  std::vector<SelfEnergyAtK> sums;
  for (const int ik : options.kpoints)
    for (int spin = 0; spin < field.n_spins(); ++spin) {
      SelfEnergyAtK sum{.k_index = ik, .spin = spin};
      sum.x_ry.assign(n_l, 0.0);
      sum.sx_ry.assign(options.offsets_ry.size(), std::vector<Cplx>(n_l));
      sum.ch_ry = sum.sx_ry;
      if (options.slope) sum.slope.assign(n_l, Cplx{});
      if (wants_static_ch(options)) sum.ch_exact_ry = sum.ch_static_ry = std::vector<Cplx>(n_l);
      if (options.closed_sum_x_ry) sum.closed_sum_ry.assign(n_l, Cplx{});
      if (options.subspace.wanted()) sum.subspace_error_ry.assign(n_l, 0.0);
      if (options.method == SigmaMethod::kImaginaryAxis)
        sum.axis_ry.assign(options.contour.continuation_ry.size(), std::vector<Cplx>(n_l));
      sums.push_back(std::move(sum));
    }
  return sums;
}

PartOfSelfEnergy self_energy_part(const MeanField& field,
                                  const std::vector<DielectricMatrix>& epsilon,
                                  const SigmaOptions& options, const SigmaPart& part,
                                  const DeviceContext& context, ScreeningOnDevice& screening) {
  return DiagonalPart(field, epsilon, options, part, context, screening).calculate();
}

void finish_self_energy(const MeanField& field, const SigmaOptions& options,
                        std::vector<SelfEnergyAtK>& sums) {
  for (SelfEnergyAtK& sum : sums) {
    if (options.method == SigmaMethod::kCohsex)
      for (auto& ch : sum.ch_ry) ch = sum.ch_static_ry;
    for (auto& ch : sum.ch_ry)
      for (std::size_t l = 0; l < sum.closed_sum_ry.size(); ++l) ch[l] += sum.closed_sum_ry[l];
    if (options.method != SigmaMethod::kImaginaryAxis) continue;
    std::vector<double> outer_ry;
    for (int band = options.band_min - 1; band < options.band_max; ++band)
      outer_ry.push_back(field.waves.energy(sum.spin, sum.k_index, band));
    continue_to_real_energies(outer_ry, midgap_ry(field, sum.spin), options, sum);
  }
}

std::vector<SelfEnergyAtK> self_energy(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options, const DeviceContext& context,
                                       SigmaStatistics* statistics) {
  ScreeningOnDevice screening;
  SigmaOptions uncut = options;
  uncut.column_slices = 0;
  PartOfSelfEnergy whole = self_energy_part(
      field, epsilon, uncut, {0, epsilon.size(), 0, options.bands}, context, screening);
  if (statistics != nullptr) *statistics = whole.statistics;
  finish_self_energy(field, options, whole.sums);
  return std::move(whole.sums);
}

}  // namespace quasi::gw
