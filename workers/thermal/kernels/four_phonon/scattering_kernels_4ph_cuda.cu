#include <algorithm>
#include <string>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/thermal/kernels/four_phonon/device_cell_path_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/device_problem_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/pending_sums_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/launch_scatter_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/sum_buffers_4ph_cuda.cuh"

namespace quasi::thermal {

namespace {

using cuda::DeviceBuffer;
using namespace cuda4ph;

class CudaScatteringKernels4ph : public ScatteringKernels4ph {
 public:
  CudaScatteringKernels4ph(const Device& device, std::int64_t memory_budget_bytes)
      : device_(used(device)), budget_bytes_(memory_budget_bytes) {
    if (budget_bytes_ <= 0)
      budget_bytes_ =
          std::min<std::int64_t>(kDefaultBudget_bytes, free_memory_bytes(device_) * 9 / 10);
  }

  void prepare(const Problem4ph& outline) override {
    use_device(device_);
    ScatterLauncher::load_kernels<Use::kRates>(outline.plan.n_atoms, outline.precision);
    ScatterLauncher::load_kernels<Use::kShared>(outline.plan.n_atoms, outline.precision);
    cudaFuncAttributes attributes{};
    cuda::check(cudaFuncGetAttributes(&attributes, cuda::for_each_index_kernel<ContractFirst4ph>),
                "contraction with λ");
    size_buffers(outline);
  }

  void load(const Problem4ph& p) override {
    use_device(device_);
    if (p.plan.n_atoms > 255)
      throw InvalidInput("four phonons on CUDA: more than 255 atoms in the cell");
    problem_ = &p;
    for (PendingSums& pending : pending_) pending.work.synchronize("four-phonon scattering");
    size_buffers(p);
    arrays_ = DeviceProblem4ph(p);
    t_ = arrays_.tables();
    path_ = DeviceCellPath4ph(p, t_);
    std::vector<double2> energy_number(p.omega_rad_ps.size());
    for (std::size_t m = 0; m < energy_number.size(); ++m) {
      const double omega = p.omega_rad_ps[m];
      const bool counts = omega > 0.0 && omega > t_.rules.omega_floor_rad_ps;
      energy_number[m] = {counts ? 1.0 / omega : 0.0, p.occupation[m]};
    }
    energy_number_ = {energy_number, "1/ω and n"};
    contract_with_rows();
    keys_ = PairKeys4ph::of(host_tables(p));
    launcher_ = ScatterLauncher(t_, path_.n_steps(),
                                p.plan.swapped ? Form4ph::kSwapped : Form4ph::kPairs, p.precision);
    n_pairs_ = p.mesh.size() * p.n_branches * p.n_branches;
    thinned_partial_ = {};
    for (int i = 0; i < n_pending_; ++i) pending_[i].tables.use(t_, keys_);
    if (t_.exchange) find_scales();
  }

  std::string sums_form(const Problem4ph& /*problem*/) const override { return "processes once"; }

  std::vector<double> sums(std::int32_t first_total, std::int32_t last_total) override {
    use_device(device_);
    PendingSums* pending = pending_of(first_total, last_total);
    if (pending == nullptr) pending = begin_sums(first_total, last_total);
    pending->done.synchronize("four-phonon scattering");
    pending->first = pending->last = 0;
    return {pending->result.data(), pending->result.data() + pending->result.size()};
  }

  void expect(std::int32_t first_total, std::int32_t last_total) override {
    use_device(device_);
    if (n_pending_ > 1 && pending_of(first_total, last_total) == nullptr)
      begin_sums(first_total, last_total);
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
      thinned_partial_ = DeviceBuffer<double>(values * static_cast<std::size_t>(batch_.totals),
                                              "sums by total momentum");
    DeviceBuffer<double> total(values, "sums");
    total.zero("sums");
    ScatterArguments scatter = arguments();
    scatter.tables = t_.without_exchange();
    scatter.partial = thinned_partial_.data();
    scatter.thinning = {thinning.seed, thinning.draws, weight_sum.data()};
    scatter_all<Use::kThinned>(
        pending_[0], first_total, last_total, scatter, batch_.totals,
        [&](std::int32_t, std::int32_t totals) {
          const auto n_values = static_cast<std::int64_t>(values);
          cuda::for_each_index(n_values,
                               AddTotals{thinned_partial_.data(), n_values, totals, total.data()},
                               "sums by total momentum", pending_[0].work.get());
        });
    return cuda::to_host(total, "four-phonon sampling", pending_[0].work.get());
  }

  std::int64_t collision_points_that_fit() const override {
    return items_that_fit(budget_bytes_, resident_bytes_ + n_pending_ * batch_bytes_,
                          t_.n_branches * (t_.n_modes() * 8 + 64),
                          "the collision operator of four phonons");
  }

  void begin_collision(const CollisionRequest4ph& request) override {
    use_device(device_);
    release_lists();  // the matrix needs their memory
    operator_.begin(request, t_.n_branches, t_.n_modes(), batch_.totals);
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
    scatter_all<Use::kCollision>(pending_[0], first_total, last_total, scatter, batch_.totals,
                                 [&](std::int32_t, std::int32_t totals) {
                                   operator_.add_places(totals, pending_[0].work.get());
                                 });
    pending_[0].work.synchronize("collision operator of four phonons");
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
    // The work counts one for the phase of each step, e'' times the phase at each cell, nine for
    // each pair, and e''' at the end. Form4ph::kSwapped holds half of e'' and sums real parts only.
    if (problem_->plan.swapped) return 3LL * path_.n_steps() + 9LL * path_.n_stops() + 3;
    return path_.n_steps() + 3LL * t_.n_atoms * path_.n_stops() + 9LL * t_.n_pairs +
           3LL * t_.n_atoms;
  }

  std::int64_t memory_bytes(const Problem4ph& p) const override {
    const Batch4ph wanted = Batch4ph::wanted(p);
    const std::int64_t listed = SharedListBuffers::most_processes(
        p, wanted.totals, (budget_bytes_ - resident_bytes_4ph(p)) / 2 - wanted.bytes(p));
    return resident_bytes_4ph(p) +
           2 * (wanted.bytes(p) + listed * SharedListBuffers::bytes_per_process(
                                               static_cast<int>(p.temperatures_k.size())));
  }

 private:
  static constexpr std::int64_t kDefaultBudget_bytes = std::int64_t{8} << 30;
  static constexpr std::int32_t kTotalsOfScales = 8;

  static Device used(const Device& device) {
    use_device(device);
    return device;
  }

  /// Computes step 1 of ContractionPlan4ph for all rows.
  void contract_with_rows() {
    contracted_ = {static_cast<std::size_t>(t_.n_rows() * t_.n_triples * 27),
                   "constants contracted with λ"};
    cuda::for_each_index(static_cast<std::int64_t>(contracted_.size()),
                         ContractFirst4ph{t_, contracted_.data()}, "contraction with λ");
    cuda::finish_default_stream("contraction with λ");  // other streams read the result
    t_.contracted = contracted_.data();
  }

  /// Chooses the largest batches that the memory budget allows, twice if possible, and allocates
  /// their buffers unless those of the last problem have the same sizes.
  /// @param p  a problem or its outline
  /// @throws OutOfMemory if not even the smallest batch fits.
  void size_buffers(const Problem4ph& p) {
    resident_bytes_ = resident_bytes_4ph(p);
    const Batch4ph wanted = Batch4ph::wanted(p);
    const std::int64_t fit = items_that_fit(budget_bytes_, resident_bytes_,
                                            Batch4ph::least_bytes(p), "four-phonon scattering");
    n_pending_ = fit > 1 ? 2 : 1;
    batch_ = {static_cast<std::int32_t>(std::min<std::int64_t>(wanted.stars, fit / n_pending_)),
              static_cast<std::int32_t>(std::min<std::int64_t>(
                  wanted.totals, fit / n_pending_ * Batch4ph::kTotalsOfStar))};
    batch_bytes_ = batch_.bytes(p);
    const Tables4ph t = host_tables(p);
    n_values_ = t.n_rows() * kChannels4ph * SumLayout4ph{t.n_temperatures}.size();
    const std::int64_t spare_bytes = (budget_bytes_ - resident_bytes_) / n_pending_ - batch_bytes_;
    const BufferSizes wanted_sizes{
        t.n_modes(),
        t.n_points,
        t.n_branches,
        n_values_,
        batch_.stars,
        batch_.totals,
        t.exchange.has_value(),
        t.rules.broadening == Broadening::kSymmetric,
        n_pending_,
        SharedListBuffers::most_processes(p, batch_.totals, spare_bytes)};
    for (PendingSums& pending : pending_) pending.first = pending.last = 0;
    if (wanted_sizes == sizes_) return;
    sizes_ = {};
    for (PendingSums& pending : pending_) pending.release();
    for (int i = 0; i < n_pending_; ++i)
      pending_[i].allocate(t, batch_, n_values_, wanted_sizes.listed);
    sizes_ = wanted_sizes;
  }

  /// Frees the lists of processes. Sums before the next `load` do without.
  void release_lists() {
    for (PendingSums& pending : pending_) {
      pending.work.synchronize("four-phonon scattering");
      pending.list = {};
    }
    sizes_.listed = 0;
  }

  /// Finds the units of the integer sums from all processes of a few total momenta. Every device
  /// takes these total momenta.
  void find_scales() {
    const auto n_q = static_cast<std::int32_t>(problem_->mesh.size());
    const std::int32_t first = (n_q - std::min(n_q, kTotalsOfScales)) / 2;
    PendingSums& pending = pending_[0];
    ScatterArguments scatter = arguments();
    scatter.tables = t_.without_exchange();
    scatter.partial = pending.partial.data();
    pending.total.zero("scales of sums", pending.work.get());
    scatter_all<Use::kRates>(
        pending, first, n_q - first, scatter, batch_.totals,
        [&](std::int32_t, std::int32_t totals) { pending.add_totals(totals, pending.work.get()); });
    const auto sums = cuda::to_host(pending.total, "scales of sums", pending.work.get());
    scales_ =
        SharedScaleBuffers(SharedScales4ph::of(host_tables(*problem_), sums, n_q - 2 * first));
  }

  PendingSums* pending_of(std::int32_t first, std::int32_t last) {
    for (PendingSums& pending : pending_)
      if (first < last && pending.first == first && pending.last == last) return &pending;
    return nullptr;
  }

  /// Submits all work of the sums over a range to the streams of one PendingSums.
  PendingSums* begin_sums(std::int32_t first_total, std::int32_t last_total) {
    // A PendingSums without a range is used. If both have one (ranges that were expected and not
    // requested), the first is dropped.
    PendingSums* pending = &pending_[n_pending_ > 1 && pending_[0].first < pending_[0].last &&
                                             !(pending_[1].first < pending_[1].last)
                                         ? 1
                                         : 0];
    cudaStream_t stream = pending->work.get();
    pending->total.zero("sums", stream);
    ScatterArguments scatter = arguments();
    scatter.partial = pending->partial.data();
    if (t_.exchange) {
      scatter.exchanged = pending->exchanged.data();
      scatter.shared = scales_.with(pending->shared.data());
      const std::int32_t most =
          pending->list.totals_that_fit(scales_.processes(), t_.n_rows(), batch_.totals);
      scatter.list = pending->list.view(most);
      scatter_all<Use::kShared>(*pending, first_total, last_total, scatter, most,
                                [&](std::int32_t first, std::int32_t totals) {
                                  pending->finish_batch(t_, scatter.shared, scatter.list, first,
                                                        totals);
                                });
    } else {
      scatter_all<Use::kRates>(
          *pending, first_total, last_total, scatter, batch_.totals,
          [&](std::int32_t, std::int32_t totals) { pending->add_totals(totals, stream); });
    }
    cuda::check(
        cudaMemcpyAsync(pending->result.data(), pending->total.data(),
                        pending->result.size() * sizeof(double), cudaMemcpyDeviceToHost, stream),
        "sums");
    pending->done.record(stream, "sums");
    pending->first = first_total;
    pending->last = last_total;
    return pending;
  }

  ScatterArguments arguments() const {
    ScatterArguments a{};
    a.tables = t_;
    a.keys = keys_;
    a.path = path_.view();
    a.path_order = path_.order();
    a.energy_number = energy_number_.data();
    a.per_window_norm = 1.0 / t_.rules.window_norm;
    a.n_pairs_table = n_pairs_;
    a.group = launcher_.group();
    a.n_rows = t_.n_rows();
    return a;
  }

  /// Launches the kernels of all batches of [first_total, last_total), and calls add(first, totals)
  /// after each, in order.
  /// @param most  total momenta of a batch, at most
  template <Use kUse, typename Add>
  void scatter_all(PendingSums& pending, std::int32_t first_total, std::int32_t last_total,
                   ScatterArguments scatter, std::int32_t most, const Add& add) {
    const Tables4ph host = host_tables(*problem_);
    for (std::int32_t first = first_total, end = first; first < last_total; first = end) {
      const std::int32_t star = host.star_at(first);
      while (end < last_total && end - first < most && host.star_at(end) - star < batch_.stars)
        ++end;
      pending.used.hold(pending.tables_first.get(), "four-phonon scattering");
      pending.tables.make(star, host.star_at(end - 1) - star + 1, scatter.kind,
                          pending.tables_first.get());
      pending.made.record(pending.tables_first.get(), "four-phonon scattering");
      pending.made.hold(pending.work.get(), "four-phonon scattering");
      scatter.first_total = first;
      scatter.first_star = star;
      scatter.partner_point = pending.partner_point.data();
      cuda::for_each_index(
          std::int64_t{2} * (end - first) * t_.n_points,
          FindPartnerPoints4ph{scatter.tables, first, pending.partner_point.data()},
          "partner points", pending.work.get());
      launcher_.launch<kUse>(scatter, end - first, pending.work.get());
      pending.used.record(pending.work.get(), "four-phonon scattering");
      add(first, end - first);
    }
  }

  /// It is the first member, because streams belong to the device that is current when they are
  /// made.
  Device device_;
  std::int64_t budget_bytes_ = 0;
  const Problem4ph* problem_ = nullptr;
  DeviceProblem4ph arrays_;
  DeviceCellPath4ph path_;
  Tables4ph t_{};  ///< views of arrays_ and contracted_
  DeviceBuffer<Complex<double>> contracted_;
  DeviceBuffer<double2> energy_number_;
  SharedScaleBuffers scales_;
  PairKeys4ph keys_{};
  ScatterLauncher launcher_;
  std::int64_t n_pairs_ = 0;   ///< last pairs of one total momentum
  std::int64_t n_values_ = 0;  ///< sums of one total momentum
  Batch4ph batch_;
  BufferSizes sizes_;  ///< of pending_
  std::int64_t resident_bytes_ = 0, batch_bytes_ = 0;
  int n_pending_ = 1;
  PendingSums pending_[2];
  CollisionOperator4ph operator_;
  DeviceBuffer<double> thinned_partial_;
};

}  // namespace

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cuda(
    const Device& device, std::int64_t memory_budget_bytes) {
  return std::make_unique<CudaScatteringKernels4ph>(device, memory_budget_bytes);
}

}  // namespace quasi::thermal
