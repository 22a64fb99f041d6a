#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/event.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/device/pinned_buffer.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/thermal/kernels/four_phonon/cell_path_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/scatter/pair_table_store_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/scatter_kernel_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"

namespace quasi::thermal {

namespace {

using cuda::DeviceBuffer;
using namespace cuda4ph;

/// total += partial of every place, in order.
struct AddPlaces {
  const double* partial;
  std::int64_t n_values;
  int places;
  double* total;

  QUASI_HD void operator()(std::int64_t index) const {
    double value = total[index];
    for (int place = 0; place < places; ++place) value += partial[place * n_values + index];
    total[index] = value;
  }
};

/// What the sums over one range of total momenta need while they are made: two of them, so that the
/// next range begins while the last blocks of the present one are at work and the host takes its
/// sums.
struct Lane {
  Lane() = default;
  ~Lane() {  // nothing is freed that is still at work
    cudaStreamSynchronize(tables_first.get());
    cudaStreamSynchronize(work.get());
  }

  /// Makes the tables, which are small and which `work` waits for.
  cuda::Stream tables_first{cuda::StreamPriority::kUrgent};
  cuda::Stream work{cuda::StreamPriority::kNormal};
  cuda::Event made, used, done;
  PairTableStore tables;
  DeviceBuffer<double> partial, exchanged, total;
  DeviceBuffer<std::int32_t> partner;
  DeviceBuffer<PartnerPoint4ph> partner_point;
  cuda::PinnedBuffer<double> result;
  std::int32_t first = 0, last = 0;  ///< the range of which sums are under way; empty: none
};

template <typename T>
DeviceBuffer<T> upload(const std::vector<T>& host, const char* what) {
  return DeviceBuffer<T>(host, what);
}

class CudaScatteringKernels4ph : public ScatteringKernels4ph {
 public:
  CudaScatteringKernels4ph(const Device& device, std::int64_t memory_budget_bytes)
      : device_(used(device)), budget_bytes_(memory_budget_bytes) {
    if (budget_bytes_ <= 0)
      budget_bytes_ =
          std::min<std::int64_t>(kDefaultBudget_bytes, free_memory_bytes(device_) * 9 / 10);
  }

  void load(const Problem4ph& p) override {
    use_device(device_);
    for (const Lane& lane : lanes_) lane.work.synchronize("four-phonon scattering");
    if (p.plan.n_atoms > 255)
      throw InvalidInput("four phonons on CUDA: more than 255 atoms in the cell");
    problem_ = &p;
    t_ = p.host_tables();
    omega_ = upload(p.omega_rad_ps, "ω");
    std::vector<double2> energy_number(p.omega_rad_ps.size());
    for (std::size_t m = 0; m < energy_number.size(); ++m)
      energy_number[m] = {p.omega_rad_ps[m], p.occupation[m]};
    energy_number_ = upload(energy_number, "ω and n");
    set_ = upload(p.set, "degenerate sets");
    spread_ = upload(p.spread_rad_ps, "mode spreads");
    occupation_ = upload(p.occupation, "occupations");
    eigenvector_ = DeviceBuffer<Complex<double>>(p.eigenvector.size(), "eigenvectors");
    eigenvector_.copy_from(reinterpret_cast<const Complex<double>*>(p.eigenvector.data()),
                           p.eigenvector.size(), "eigenvectors");
    zone_ = upload(p.zone, "zone coordinates");
    point_ = upload(p.point, "points");
    partner_weight_ = upload(p.partner_weight, "weights of q'");
    star_ = upload(p.star, "stars");
    star_size_ = upload(p.star_size, "stars");
    precedence_ = upload(p.star.empty() ? std::vector<std::int32_t>{} : p.precedence, "precedence");
    tensor_ = upload(p.plan.tensor, "fourth-order constants");
    const std::vector<std::int32_t>* lists[kLists] = {
        &p.plan.block_atom,  &p.plan.block_cell,  &p.plan.triple_begin,
        &p.plan.triple_atom, &p.plan.triple_cell, &p.plan.pair_begin,
        &p.plan.pair_third,  &p.plan.pair_fourth, &p.plan.pair_cell};
    for (int i = 0; i < kLists; ++i) list_[i] = upload(*lists[i], "contraction plan");
    phase_ = DeviceBuffer<Complex<double>>(p.phase.size() / 2, "phases");
    phase_.copy_from(reinterpret_cast<const Complex<double>*>(p.phase.data()), p.phase.size() / 2,
                     "phases");
    t_.omega = omega_.data();
    t_.set = set_.data();
    t_.spread = spread_.data();
    t_.occupation = occupation_.data();
    t_.eigenvector = eigenvector_.data();
    t_.zone = zone_.data();
    t_.point = point_.data();
    t_.partner_weight = partner_weight_.data();
    t_.star = p.star.empty() ? nullptr : star_.data();
    t_.star_size = p.star.empty() ? nullptr : star_size_.data();
    t_.precedence = p.star.empty() ? nullptr : precedence_.data();
    if (!p.totals.total.empty()) {
      const std::vector<std::int32_t>* totals[kTotals] = {&p.totals.total,  &p.totals.star,
                                                          &p.totals.leader, &p.totals.turn,
                                                          &p.totals.turned, &p.totals.turned_back};
      const std::int32_t** seen[kTotals] = {&t_.total,      &t_.total_star, &t_.total_leader,
                                            &t_.total_turn, &t_.turned,     &t_.turned_back};
      for (int i = 0; i < kTotals; ++i) {
        totals_[i] = upload(*totals[i], "order of total momenta");
        *seen[i] = totals_[i].data();
      }
    }
    t_.tensor = tensor_.data();
    const std::int32_t** views[kLists] = {&t_.block_atom,  &t_.block_cell,  &t_.triple_begin,
                                          &t_.triple_atom, &t_.triple_cell, &t_.pair_begin,
                                          &t_.pair_third,  &t_.pair_fourth, &t_.pair_cell};
    for (int i = 0; i < kLists; ++i) *views[i] = list_[i].data();
    t_.phase = phase_.data();

    contracted_ = DeviceBuffer<Complex<double>>(
        static_cast<std::size_t>(t_.n_rows() * t_.n_triples * 27), "constants contracted with λ");
    cuda::for_each_index(static_cast<std::int64_t>(contracted_.size()),
                         ContractFirst4ph{t_, contracted_.data()}, "contraction with λ");
    cuda::finish_default_stream("contraction with λ");  // the lanes read it on their own streams
    t_.contracted = contracted_.data();

    const HostCellPath path = find_cell_path(p.plan);
    std::vector<ZonePoint> zone(static_cast<std::size_t>(p.mesh.size()));
    for (std::size_t q = 0; q < zone.size(); ++q)
      zone[q] = {p.zone[3 * q], p.zone[3 * q + 1], p.zone[3 * q + 2], 0};
    for (int i = 0; i < 3; ++i) {
      const int n = p.mesh.n[i];
      std::vector<Complex<double>> factor;
      for (int m = -2 * n; m < 2 * n; ++m) {
        const double angle = 2.0 * units::kPi * QMesh::wrap(m, n) / n;
        factor.push_back({std::cos(angle), std::sin(angle)});
      }
      step_phase_[i] = upload(factor, "path");
    }
    std::vector<std::int32_t> stop;
    for (std::size_t s = 0; s < path.step.size(); ++s)
      if (path.first[s + 1] > path.first[s]) stop.push_back(path.first[s]);
    stops_ = static_cast<int>(stop.size());
    stop.push_back(p.plan.n_pairs);
    path_stop_ = upload(stop, "path through the cells");
    std::vector<Complex<double>> half;
    for (std::size_t mode = 0; p.plan.swapped && mode < p.omega_rad_ps.size(); ++mode)
      for (std::size_t x = 0; x < 3; ++x)
        half.push_back({p.eigenvector[6 * mode + x].real(), p.eigenvector[6 * mode + x].imag()});
    path_half_ = upload(half, "first halves of eigenvectors");
    std::vector<std::uint32_t> program;
    for (std::size_t s = 0; s < path.step.size() && t_.n_atoms <= 4; ++s) {
      program.push_back(
          static_cast<std::uint32_t>(path.step[s] >= 0 ? path.step[s] : 3 - path.step[s]));
      for (std::int32_t p0 = path.first[s]; p0 < path.first[s + 1]; ++p0)
        program.back() |= 1u << (8 + path.atoms[p0] / 256 * t_.n_atoms + path.atoms[p0] % 256);
    }
    path_program_ = upload(program, "path through the cells");
    path_step_ = upload(path.step, "path through the cells");
    path_first_ = upload(path.first, "path through the cells");
    path_atoms_ = upload(path.atoms, "path through the cells");
    path_order_ = upload(path.order, "path through the cells");
    path_zone_ = upload(zone, "path through the cells");
    path_ = {static_cast<int>(path.step.size()),
             path_step_.data(),
             path_first_.data(),
             path_atoms_.data(),
             path_program_.data(),
             stops_,
             path_stop_.data(),
             path_half_.data(),
             path_zone_.data(),
             {}};
    for (int i = 0; i < 3; ++i) path_.step_phase[i] = step_phase_[i].data() + 2 * p.mesh.n[i];

    double largest_omega = 0.0;
    double largest_spread = 0.0;
    for (std::size_t m = 0; m < p.omega_rad_ps.size(); ++m) {
      if (!(p.omega_rad_ps[m] > 0.0)) continue;
      largest_omega = std::max(largest_omega, p.omega_rad_ps[m]);
      const double* s = &p.spread_rad_ps[3 * m];
      largest_spread = std::max(largest_spread, s[0] * s[0] + s[1] * s[1] + s[2] * s[2]);
    }
    keys_ = PairKeys4ph::make(p.rules, largest_omega, largest_spread);
    choose_group();

    n_pairs_ = p.mesh.size() * p.n_branches * p.n_branches;
    resident_bytes_ = resident_bytes(p);
    const Batch wanted = batch_of(p);
    const std::int64_t fit =
        items_that_fit(budget_bytes_, resident_bytes_, item_bytes(p), "four-phonon scattering");
    n_lanes_ = fit > 1 ? 2 : 1;
    batch_ = {static_cast<std::int32_t>(std::min<std::int64_t>(wanted.stars, fit / n_lanes_)),
              static_cast<std::int32_t>(
                  std::min<std::int64_t>(wanted.places, fit / n_lanes_ * kPlacesOfItem))};
    batch_bytes_ = batch_.stars * PairTableStore::bytes(t_) + batch_.places * place_bytes(p);
    n_values_ = t_.n_rows() * kChannels4ph * SumLayout4ph{t_.n_temperatures}.size();
    const auto places = static_cast<std::size_t>(batch_.places);
    for (Lane& lane : lanes_) {  // free the old ones first
      lane.first = lane.last = 0;
      lane.tables = {};
      for (DeviceBuffer<double>* buffer : {&lane.partial, &lane.exchanged, &lane.total})
        *buffer = DeviceBuffer<double>();
    }
    for (int i = 0; i < n_lanes_; ++i) {
      Lane& lane = lanes_[i];
      lane.tables = PairTableStore(t_, keys_, batch_.stars);
      lane.partial = DeviceBuffer<double>(static_cast<std::size_t>(n_values_) * places,
                                          "sums by total momentum");
      lane.exchanged = DeviceBuffer<double>(
          p.star.empty()
              ? 0
              : static_cast<std::size_t>(n_values_ / kChannels4ph * kExchanged * t_.n_branches) *
                    places,
          "sums by λ'");
      lane.partner =
          DeviceBuffer<std::int32_t>(p.star.empty() ? 0 : p.point.size() * places, "partners");
      lane.partner_point =
          DeviceBuffer<PartnerPoint4ph>(2 * p.point.size() * places, "partner points");
      lane.total = DeviceBuffer<double>(static_cast<std::size_t>(n_values_), "sums");
      if (lane.result.size() != static_cast<std::size_t>(n_values_))
        lane.result = {static_cast<std::size_t>(n_values_), "sums on the host"};
    }
  }

  std::vector<double> sums(std::int32_t first_total, std::int32_t last_total) override {
    use_device(device_);
    Lane* lane = lane_of(first_total, last_total);
    if (lane == nullptr) lane = begin_sums(first_total, last_total);
    lane->done.synchronize("four-phonon scattering");
    lane->first = lane->last = 0;
    return {lane->result.data(), lane->result.data() + lane->result.size()};
  }

  void expect(std::int32_t first_total, std::int32_t last_total) override {
    use_device(device_);
    if (n_lanes_ > 1 && lane_of(first_total, last_total) == nullptr)
      begin_sums(first_total, last_total);
  }

  std::vector<double> sums_by_strategy(Strategy strategy, StrategySeconds& seconds) override {
    use_device(device_);
    return strategy_sums_4ph_cuda(strategy, problem_->host_tables(), t_,
                                  budget_bytes_ - resident_bytes_, seconds);
  }

  std::vector<double> sample_uniform(std::uint64_t seed, std::int64_t first_draw,
                                     std::int64_t last_draw, bool elements) override {
    use_device(device_);
    const int size = UniformLayout4ph{t_.n_temperatures}.size();
    const std::int64_t n = t_.n_rows() * kChannels4ph;
    constexpr int kChunks = 64;
    DeviceBuffer<double> chunks(static_cast<std::size_t>(n * kChunks * size), "sums of draws");
    DeviceBuffer<double> total(static_cast<std::size_t>(n * size), "sums of draws");
    cuda::for_each_index(
        n * kChunks,
        SampleUniform4ph{t_, seed, first_draw, last_draw, kChunks, elements, chunks.data()},
        "uniform draws");
    cuda::for_each_index(n, AddChunks4ph{chunks.data(), kChunks, size, total.data()},
                         "sums of draws");
    return cuda::to_host(total, "uniform draws");
  }

  std::vector<double> thinned_sums(const Thinning4ph& thinning, std::int32_t first_total,
                                   std::int32_t last_total) override {
    use_device(device_);
    const auto n = static_cast<std::size_t>(t_.n_rows() * kChannels4ph);
    const std::vector<double> host(
        thinning.weight_sum,
        thinning.weight_sum +
            (thinning.draws > 0.0 ? n * static_cast<std::size_t>(t_.n_temperatures) : 0));
    const DeviceBuffer<double> weight_sum(host, "weights of rows");
    const std::size_t values =
        n * static_cast<std::size_t>(ThinnedLayout4ph{t_.n_temperatures}.size());
    if (thinned_partial_.size() == 0)
      thinned_partial_ = DeviceBuffer<double>(values * static_cast<std::size_t>(batch_.places),
                                              "sums by total momentum");
    DeviceBuffer<double> total(values, "sums");
    total.zero("sums");
    ScatterArguments scatter = arguments();
    scatter.tables = t_.without_exchange();
    scatter.partial = thinned_partial_.data();
    scatter.thinning = {thinning.seed, thinning.draws, weight_sum.data()};
    scatter_all<Use::kThinned>(
        lanes_[0], first_total, last_total, scatter, [&](std::int32_t, std::int32_t places) {
          const auto n_values = static_cast<std::int64_t>(values);
          cuda::for_each_index(n_values,
                               AddPlaces{thinned_partial_.data(), n_values, places, total.data()},
                               "sums by total momentum", lanes_[0].work.get());
        });
    return cuda::to_host(total, "four-phonon sampling", lanes_[0].work.get());
  }

  std::int64_t collision_points_that_fit() const override {
    return items_that_fit(budget_bytes_, resident_bytes_ + n_lanes_ * batch_bytes_,
                          t_.n_branches * (t_.n_modes() * 8 + 64),
                          "the collision operator of four phonons");
  }

  void begin_collision(const CollisionRequest4ph& request) override {
    use_device(device_);
    operator_.begin(request, t_.n_branches, t_.n_modes(), batch_.places);
  }

  void add_collision(std::int32_t first_total, std::int32_t last_total) override {
    use_device(device_);
    const CollisionRequest4ph& request = operator_.request();
    ScatterArguments scatter = arguments();
    scatter.tables = t_.without_exchange();
    scatter.first_row = static_cast<std::int64_t>(request.first_point) * t_.n_branches;
    scatter.n_rows = operator_.rows();
    scatter.partial = operator_.partial();
    scatter.collision = operator_.target(t_.occupation + request.temperature * t_.n_modes());
    scatter_all<Use::kCollision>(lanes_[0], first_total, last_total, scatter,
                                 [&](std::int32_t, std::int32_t places) {
                                   operator_.add_places(places, lanes_[0].work.get());
                                 });
    lanes_[0].work.synchronize("collision operator of four phonons");
  }

  std::vector<double> collision_state() const override {
    use_device(device_);
    return operator_.state();
  }

  bool restore_collision(const double* state, std::size_t count) override {
    use_device(device_);
    return operator_.restore(state, count);
  }

  std::vector<double> finish_collision() override {
    use_device(device_);
    return operator_.finish();
  }

  std::vector<double> apply_collision(const std::vector<double>& f) const override {
    use_device(device_);
    return operator_.apply(f);
  }

  std::int64_t multiply_adds_per_process() const override {
    // One phase a step, e'' times the phase at every cell, nine for each pair, e''' at the end.
    if (problem_->plan.swapped)  // of half of e'', and of real and imaginary parts only what counts
      return 3LL * path_.n_steps + 9LL * stops_ + 3;
    return path_.n_steps + 3LL * t_.n_atoms * stops_ + 9LL * t_.n_pairs + 3LL * t_.n_atoms;
  }

  std::int64_t memory_bytes(const Problem4ph& p) const override {
    const Batch batch = batch_of(p);
    return resident_bytes(p) + 2 * (batch.stars * PairTableStore::bytes(p.host_tables()) +
                                    batch.places * place_bytes(p));
  }

 private:
  static Device used(const Device& device) {
    use_device(device);
    return device;
  }

  static constexpr int kLists = 9;
  static constexpr int kTotals = 6;
  static constexpr std::int32_t kStarsAtOnce = 16;  ///< sorted together: enough to fill the device
  static_assert(kStarsAtOnce <= PairKeys4ph::kBatch);
  static constexpr std::int32_t kPlacesAtOnce =
      64;  ///< total momenta of a launch: a whole star and more
  static constexpr std::int32_t kPlacesOfItem = kPlacesAtOnce / kStarsAtOnce;
  static constexpr std::int64_t kDefaultBudget_bytes = std::int64_t{8} << 30;
  static constexpr int kSharedGoal_bytes = 48 << 10;  ///< several blocks on a multiprocessor
  static constexpr int kSharedLimit_bytes = 200 << 10;

  static std::int64_t resident_bytes(const Problem4ph& p) {
    const std::int64_t rows = static_cast<std::int64_t>(p.point.size()) * p.n_branches;
    return rows * p.plan.n_triples * 27 * 16 + static_cast<std::int64_t>(p.phase.size()) * 8 +
           static_cast<std::int64_t>(p.eigenvector.size()) * 16 +
           static_cast<std::int64_t>(p.omega_rad_ps.size() * 4 + p.occupation.size()) * 8 +
           static_cast<std::int64_t>(p.partner_weight.size()) * 2 +
           static_cast<std::int64_t>(p.totals.turned.size()) * 8 + (std::int64_t{64} << 20);
  }
  /// Tables that are made at once and total momenta that are summed at once, if there is room: what
  /// a tile has.
  struct Batch {
    std::int32_t stars = 1, places = 1;
  };
  static Batch batch_of(const Problem4ph& p) {
    const auto n = static_cast<std::int32_t>(p.mesh.size());
    if (p.totals.total.empty()) return {std::min(kStarsAtOnce, n), std::min(kStarsAtOnce, n)};
    const auto stars = static_cast<std::int32_t>(p.totals.leader.size());
    return {std::min({kStarsAtOnce, stars, 1 + kStarsAtOnce * stars / n}),
            std::min(kPlacesAtOnce, n)};
  }
  /// What memory must hold at least a few of: a table and its share of the sums of total momenta.
  static std::int64_t item_bytes(const Problem4ph& p) {
    return PairTableStore::bytes(p.host_tables()) + kPlacesOfItem * place_bytes(p);
  }
  static std::int64_t place_bytes(const Problem4ph& p) {
    const std::int64_t rows = static_cast<std::int64_t>(p.point.size()) * p.n_branches;
    return rows * (kChannels4ph + (p.star.empty() ? 0 : kExchanged * p.n_branches)) *
           SumLayout4ph{static_cast<int>(p.temperatures_k.size())}.size() * 8;
  }

  Form4ph form() const { return problem_->plan.swapped ? Form4ph::kSwapped : Form4ph::kPairs; }
  template <typename Real>
  int shared_bytes(int group, int channels, Use use) const {
    return elements_bytes<Real>(group, t_.n_pairs) + group * t_.n_branches * 16 +
           kWarps *
               (sums_in_shared(use, channels, t_.n_temperatures) +
                exchanged_in_shared(t_, use, channels == 2 ? 1 : -1, group)) *
               8 +
           kWarps * queue_bytes(form()) + slot_bytes(form()) + path_.n_steps * 4;
  }

  void choose_group() {
    group_ = std::min(kGroup, t_.n_branches);
    const auto needed = [&] {
      return std::max(shared_bytes<double>(group_, 2, Use::kThinned),
                      shared_bytes<double>(group_, 2, Use::kRates));
    };
    while (group_ > 1 && needed() > kSharedGoal_bytes) --group_;
    const int groups = (t_.n_branches + group_ - 1) / group_;  // as many branches in each
    group_ = (t_.n_branches + groups - 1) / groups;
    if (needed() > kSharedLimit_bytes)
      throw InvalidInput(
          "four phonons on CUDA: " + std::to_string(t_.n_pairs) +
          " distinct pairs of third and fourth atoms (or " + std::to_string(t_.n_temperatures) +
          " temperatures) need more shared memory than a block has; use device cpu, or "
          "force constants of shorter range");
  }

  template <int kSign, int kAtoms, Form4ph kForm, Use kUse, typename Real, int kBlocks>
  void scatter_sign(const ScatterArguments& arguments, std::int32_t places, cudaStream_t stream) {
    const int bytes = shared_bytes<Real>(group_, kSign > 0 ? 2 : 1, kUse);
    const auto kernel = scatter_kernel<ScatterVariant<kSign, kAtoms, kForm, kUse, Real>, kBlocks>;
    cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                "four-phonon scattering");
    kernel<<<dim3(static_cast<unsigned>(arguments.n_rows), static_cast<unsigned>(places)), kThreads,
             bytes, stream>>>(arguments);
    cuda::check_launch("four-phonon scattering");
  }
  /// @tparam kBlocks  blocks of a multiprocessor at least, which bounds the registers
  template <int kAtoms, Form4ph kForm, Use kUse, typename Real, int kBlocks>
  void scatter(const ScatterArguments& arguments, std::int32_t places, cudaStream_t stream) {
    scatter_sign<1, kAtoms, kForm, kUse, Real, kBlocks>(arguments, places, stream);
    scatter_sign<-1, kAtoms, kForm, kUse, Real, kBlocks>(arguments, places, stream);
  }
  template <Use kUse, typename Real>
  void scatter_in(const ScatterArguments& arguments, std::int32_t places, cudaStream_t stream) {
    switch (t_.n_atoms) {
      case 1:
        return scatter<1, Form4ph::kPairs, kUse, Real, 4>(arguments, places, stream);
      case 2:
        if (problem_->plan.swapped)
          return scatter<2, Form4ph::kSwapped, kUse, Real, 4>(arguments, places, stream);
        return scatter<2, Form4ph::kPairs, kUse, Real, 4>(arguments, places, stream);
      case 3:
        return scatter<3, Form4ph::kPairs, kUse, Real, 2>(arguments, places, stream);
      case 4:
        return scatter<4, Form4ph::kPairs, kUse, Real, 2>(arguments, places, stream);
      default:
        return scatter<0, Form4ph::kPairs, kUse, Real, 2>(arguments, places, stream);
    }
  }

  template <Use kUse>
  void scatter_both(const ScatterArguments& arguments, std::int32_t places, cudaStream_t stream) {
    if constexpr (kUse == Use::kRates)
      if (problem_->precision == Precision::kMixed)
        return scatter_in<kUse, float>(arguments, places, stream);
    scatter_in<kUse, double>(arguments, places, stream);
  }

  Lane* lane_of(std::int32_t first, std::int32_t last) {
    for (Lane& lane : lanes_)
      if (first < last && lane.first == first && lane.last == last) return &lane;
    return nullptr;
  }

  /// Puts all work of the sums over a range into the streams of a lane.
  Lane* begin_sums(std::int32_t first_total, std::int32_t last_total) {
    // A lane that holds no range; of two that do (ranges that were expected and not asked for) the
    // first is given up.
    Lane* lane = &lanes_[n_lanes_ > 1 && lanes_[0].first < lanes_[0].last &&
                                 !(lanes_[1].first < lanes_[1].last)
                             ? 1
                             : 0];
    cudaStream_t stream = lane->work.get();
    lane->total.zero("sums", stream);
    ScatterArguments scatter = arguments();
    scatter.partial = lane->partial.data();
    scatter.exchanged = lane->exchanged.data();
    scatter_all<Use::kRates>(
        *lane, first_total, last_total, scatter, [&](std::int32_t first, std::int32_t places) {
          if (t_.star != nullptr) {
            const int size = SumLayout4ph{t_.n_temperatures}.size();
            cuda::for_each_index(static_cast<std::int64_t>(places) * t_.n_points,
                                 ExchangePartners4ph{t_, first, lane->partner.data()}, "partners",
                                 stream);
            cuda::for_each_index(places * t_.n_rows() * kExchanged * size,
                                 AddExchanged4ph{t_, first, size, lane->partner.data(),
                                                 lane->exchanged.data(), lane->partial.data()},
                                 "sums by λ'", stream);
          }
          cuda::for_each_index(
              n_values_, AddPlaces{lane->partial.data(), n_values_, places, lane->total.data()},
              "sums by total momentum", stream);
        });
    cuda::check(
        cudaMemcpyAsync(lane->result.data(), lane->total.data(),
                        lane->result.size() * sizeof(double), cudaMemcpyDeviceToHost, stream),
        "sums");
    lane->done.record(stream, "sums");
    lane->first = first_total;
    lane->last = last_total;
    return lane;
  }

  ScatterArguments arguments() const {
    return {.tables = t_,
            .keys = keys_,
            .path = path_,
            .path_order = path_order_.data(),
            .kind = {},
            .partner_point = nullptr,
            .energy_number = energy_number_.data(),
            .n_pairs_table = n_pairs_,
            .first_total = 0,
            .first_star = 0,
            .group = group_,
            .first_row = 0,
            .n_rows = t_.n_rows(),
            .partial = nullptr,
            .exchanged = nullptr,
            .collision = {},
            .thinning = {}};
  }

  /// The kernels of all batches of [first_total, last_total), and add(first, places) after each, in
  /// order.
  template <Use kUse, typename Add>
  void scatter_all(Lane& lane, std::int32_t first_total, std::int32_t last_total,
                   ScatterArguments scatter, const Add& add) {
    const Tables4ph host = problem_->host_tables();
    for (std::int32_t first = first_total, end = first; first < last_total; first = end) {
      const std::int32_t star = host.star_at(first);
      while (end < last_total && end - first < batch_.places &&
             host.star_at(end) - star < batch_.stars)
        ++end;
      lane.used.hold(lane.tables_first.get(), "four-phonon scattering");
      lane.tables.make(star, host.star_at(end - 1) - star + 1, scatter.kind,
                       lane.tables_first.get());
      lane.made.record(lane.tables_first.get(), "four-phonon scattering");
      lane.made.hold(lane.work.get(), "four-phonon scattering");
      scatter.first_total = first;
      scatter.first_star = star;
      scatter.partner_point = lane.partner_point.data();
      cuda::for_each_index(std::int64_t{2} * (end - first) * t_.n_points,
                           FindPartnerPoints4ph{scatter.tables, first, lane.partner_point.data()},
                           "partner points", lane.work.get());
      scatter_both<kUse>(scatter, end - first, lane.work.get());
      lane.used.record(lane.work.get(), "four-phonon scattering");
      add(first, end - first);
    }
  }

  /// The first member: streams, which belong to the device that is in use when they are made, come
  /// after it.
  Device device_;
  std::int64_t budget_bytes_ = 0;
  const Problem4ph* problem_ = nullptr;
  Tables4ph t_;
  PairKeys4ph keys_{};
  CellPath4ph path_{};
  int stops_ = 0;  ///< cells of the path that have pairs
  int group_ = 1;
  std::int64_t n_pairs_ = 0;
  std::int64_t n_values_ = 0;
  Batch batch_;
  int n_lanes_ = 1;
  DeviceBuffer<double> omega_, spread_, occupation_, tensor_;
  DeviceBuffer<Complex<double>> eigenvector_, phase_, contracted_, step_phase_[3], path_half_;
  DeviceBuffer<std::uint32_t> path_program_;
  DeviceBuffer<ZonePoint> path_zone_;
  std::int64_t resident_bytes_ = 0, batch_bytes_ = 0;  ///< the latter of a lane
  CollisionOperator4ph operator_;
  DeviceBuffer<double> thinned_partial_;
  DeviceBuffer<double2> energy_number_;
  DeviceBuffer<std::int16_t> zone_;
  DeviceBuffer<std::int32_t> totals_[kTotals];
  DeviceBuffer<std::int32_t> set_, point_, list_[kLists], star_, star_size_, precedence_,
      path_stop_, path_step_, path_first_, path_atoms_, path_order_;
  DeviceBuffer<std::uint16_t> partner_weight_;
  Lane lanes_[2];
};

}  // namespace

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cuda(
    const Device& device, std::int64_t memory_budget_bytes) {
  return std::make_unique<CudaScatteringKernels4ph>(device, memory_budget_bytes);
}

}  // namespace quasi::thermal
