#include <memory>
#include <utility>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels_cuda.cuh"
#include "workers/mosfet/kernels/beam/gmres.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"

namespace quasi::mosfet {
namespace {

namespace late = quasi::cuda::late;
using cuda::BeamEnd;
using cuda::BeamTables;
using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::CublasHandle;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;
using quasi::cuda::Stream;
using quasi::cuda::StreamPriority;
using quasi::cuda::to_host;

/// Multiplies two arrays.
struct Multiply {
  const double *a, *b;
  double* out;
  __device__ void operator()(std::int64_t at) const { out[at] = a[at] * b[at]; }
};

/// Vectors of gmres() on the device, with the inner product Σ weight² a b. Buffers return to a
/// pool, because an allocation waits for the whole device.
class DeviceVectors {
 public:
  class Vector {
   public:
    Vector(DeviceVectors* owner, DeviceBuffer<double> buffer)
        : owner_(owner), buffer_(std::move(buffer)) {}
    Vector(Vector&& other) noexcept = default;
    Vector& operator=(Vector&& other) noexcept = default;
    ~Vector() {
      if (buffer_.size() > 0) owner_->pool_.push_back(std::move(buffer_));
    }
    double* data() const { return buffer_.data(); }

   private:
    DeviceVectors* owner_;
    DeviceBuffer<double> buffer_;
  };

  explicit DeviceVectors(const Stream& stream) : stream_(stream), blas_(stream.get()) {}

  void resize(std::size_t size) {
    if (size != size_) pool_.clear();
    if (size != size_) left_ = {size, "weighted vectors"}, right_ = {size, "weighted vectors"};
    size_ = size;
  }
  void set_weight(const std::vector<double>& weight) { weight_ = {weight, "weights of GMRES"}; }
  Vector take() {
    if (pool_.empty()) return {this, DeviceBuffer<double>(size_, "directions of GMRES")};
    DeviceBuffer<double> buffer = std::move(pool_.back());
    pool_.pop_back();
    return {this, std::move(buffer)};
  }
  double dot(const Vector& a, const Vector& b) const {
    for_each_index(count(), Multiply{weight_.data(), a.data(), left_.data()}, "weight",
                   stream_.get());
    for_each_index(count(), Multiply{weight_.data(), b.data(), right_.data()}, "weight",
                   stream_.get());
    double sum = 0.0;
    check(late::cublasDdot(blas_.get(), count(), left_.data(), 1, right_.data(), 1, &sum), "dot");
    return sum;
  }
  void add(double factor, const Vector& from, Vector* to) const {
    check(late::cublasDaxpy(blas_.get(), count(), &factor, from.data(), 1, to->data(), 1), "sum");
  }
  void scale(double factor, Vector* v) const {
    check(late::cublasDscal(blas_.get(), count(), &factor, v->data(), 1), "scale");
  }

 private:
  int count() const { return static_cast<int>(size_); }
  const Stream& stream_;
  CublasHandle blas_;
  std::size_t size_ = 0;
  DeviceBuffer<double> weight_, left_, right_;
  std::vector<DeviceBuffer<double>> pool_;
};

struct LossOfRows {
  BeamTables t;
  const double* weight;
  __device__ void operator()(std::int64_t row) const { beam_loss_of_row(t, weight, row); }
};
struct GainOfRows {
  BeamTables t;
  const double* weight;
  const double* source;  ///< added to the gain; null: none
  double* gain;
  __device__ void operator()(std::int64_t row) const {
    gain[row] = beam_gain_of_row(t, weight, row) + (source != nullptr ? source[row] : 0.0);
  }
};
/// Computes the power of every process and row [processes][rows].
struct PowerOfRows {
  BeamTables t;
  const double *weight, *mean;
  double* power;
  __device__ void operator()(std::int64_t number) const {
    const std::int64_t rows = t.rows();
    power[number] =
        beam_power_of_row(t, weight, mean, static_cast<int>(number / rows), number % rows);
  }
};

/// The links of a problem as lists of ends, state by state: low ends first.
struct EndLists {
  std::vector<BeamEnd> ends;
  std::vector<int> first_low, first_high;

  EndLists(const std::vector<BeamLink>& links, int n_states) {
    for (int state = 0; state < n_states; ++state)
      for (const bool low : {true, false}) {
        (low ? first_low : first_high).push_back(static_cast<int>(ends.size()));
        for (const BeamLink& link : links)
          if ((low ? link.low : link.high) == state)
            ends.push_back({low ? link.high : link.low, link.shift, link.overlap, link.process,
                            link.strength, link.rise});
      }
    first_low.push_back(static_cast<int>(ends.size()));
  }
};

class CudaBeamKernels : public BeamKernels {
 public:
  // The device is chosen before the members, because library handles belong to the current device.
  explicit CudaBeamKernels(const Device& device) : device_((use_device(device), device)) {}

  void load(const BeamProblem& problem) override {
    if (!problem.roughness.empty() || !problem.relaxation_fs.empty())
      throw InvalidInput("the beam scheme has roughness and impurities on the CPU alone");
    grid_ = problem.grid;
    n_processes_ = static_cast<int>(problem.processes.size());
    tables_ = {.n_states = problem.levels.n_states(),
               .nx = grid_.nx,
               .nk = grid_.n_h,
               .nj = grid_.n_kappa,
               .alpha_per_ev = grid_.alpha_per_ev,
               .dx_nm = grid_.dx_nm,
               .dh_ev = grid_.dh_ev,
               .shape = grid_.shape,
               .third = problem.order == BeamOrder::kThird};
    uploads_.clear();
    upload_grid(problem);
    upload_levels(problem.levels);
    upload_links(problem);
    resize();
    const std::int64_t cells = tables_.n_states * tables_.nx * tables_.lines(),
                       face_cells = tables_.n_states * (tables_.nx + 1) * tables_.lines();
    // The work of the lines is free now and holds V at the faces.
    for_each_index(face_cells, cuda::FaceCells{tables_, work_.data()}, "areas", stream_.get());
    for_each_index(cells, cuda::NodeCells{tables_, work_.data()}, "volumes", stream_.get());
    cuda::row_states_kernel<<<row_blocks(), kThreads, 0, stream_.get()>>>(tables_, weight_.data());
    check_launch("states of rows");
    if (tables_.scatters)
      for_each_index(tables_.rows(), LossOfRows{tables_, weight_.data()}, "loss", stream_.get());
  }

  BeamNorm norm() const override { return BeamNorm::kElectrons; }

  BeamMean solve(double tolerance, int max_sweeps, const std::vector<double>& start) override {
    const auto rows = static_cast<std::size_t>(tables_.rows());
    BeamMean solution;
    solution.converged = true;
    if (!tables_.scatters) {
      lines(nullptr, true);
    } else {
      vectors_.resize(rows);
      DeviceVectors::Vector rhs = vectors_.take(), x = vectors_.take();
      lines(tables_.source, true);
      mean_of_lines(rhs.data());
      vectors_.set_weight(electron_weights(rhs.data()));
      check(cudaMemcpyAsync(x.data(), start.empty() ? rhs.data() : start.data(),
                            rows * sizeof(double), cudaMemcpyDefault, stream_.get()),
            "start of GMRES");
      const auto apply = [&](const DeviceVectors::Vector& from) {
        DeviceVectors::Vector out = vectors_.take();
        gain(from.data(), nullptr);
        lines(gain_.data(), false);
        mean_of_lines(out.data());
        vectors_.scale(-1.0, &out);
        vectors_.add(1.0, from, &out);
        return out;
      };
      const GmresReport report = gmres(vectors_, apply, rhs, tolerance, max_sweeps, &x);
      gain(x.data(), tables_.source);
      lines(gain_.data(), true);
      solution.sweeps = report.products + 1;
      solution.residual = report.residual;
      solution.converged = report.converged;
    }
    mean_of_lines(mean_.data());
    solution.mean = to_host(mean_, "mean occupations", stream_.get());
    solution.sweeps += 1;
    host_mean_ = solution.mean;
    return solution;
  }

  std::vector<double> sheet_density() override {
    const std::vector<double> states = to_host(states_, "states", stream_.get());
    std::vector<double> sheet(static_cast<std::size_t>(tables_.n_states) * tables_.nx);
    for (std::size_t at = 0; at < host_mean_.size(); ++at)
      sheet[at / grid_.n_h] += density_factor_[at / grid_.n_h / grid_.nx] *
                               grid_.boltzmann(static_cast<int>(at % grid_.n_h)) * states[at] *
                               host_mean_[at];
    return sheet;
  }

  BeamFluxes fluxes() override {
    const std::int64_t faces = static_cast<std::int64_t>(tables_.n_states) * (tables_.nx + 1);
    DeviceBuffer<double> current(static_cast<std::size_t>(faces * tables_.nk), "currents");
    for_each_index(faces * tables_.nk,
                   cuda::FaceCurrents{tables_, plus_.data(), minus_.data(), current.data()},
                   "currents", stream_.get());
    std::vector<double> power;
    if (tables_.scatters) power = phonon_power();
    BeamFluxes fluxes = sum_beam_fluxes(grid_, to_host(current, "currents", stream_.get()), power);
    fluxes.sheet_nm2 = sheet_density();
    return fluxes;
  }

  std::vector<double> distribution() override {
    std::vector<double> g = to_host(plus_, "distribution", stream_.get());
    const std::vector<double> minus = to_host(minus_, "distribution", stream_.get());
    g.insert(g.end(), minus.begin(), minus.end());
    return g;
  }

 private:
  static constexpr int kThreads = 256;

  unsigned row_blocks() const {
    return static_cast<unsigned>((tables_.rows() * cuda::kRowLanes + kThreads - 1) / kThreads);
  }

  // Uploads a table that lives until the next load().
  const double* upload(const std::vector<double>& values) {
    uploads_.emplace_back(values, "tables of the beam scheme");
    return uploads_.back().data();
  }

  void upload_grid(const BeamProblem& problem) {
    std::vector<double> edge, centre, full, inverse, boltzmann, kappa;
    for (int k = 0; k < grid_.n_h; ++k) {
      const BeamCell cell = grid_.cell(k, 0);
      edge.push_back(cell.h_low_ev);
      centre.push_back(cell.centre_ev);
      full.push_back(cell.full_ev);
      inverse.push_back(1.0 / cell.full_ev);
      boltzmann.push_back(grid_.boltzmann(k));
    }
    edge.push_back(grid_.h_low_ev(grid_.n_h));
    for (int j = 0; j <= grid_.n_kappa; ++j) kappa.push_back(j * grid_.dkappa);
    tables_.h_edge = upload(edge);
    tables_.h_centre = upload(centre);
    tables_.h_full = upload(full);
    tables_.h_inverse = upload(inverse);
    tables_.boltzmann = upload(boltzmann);
    tables_.kappa_edge = upload(kappa);
    inflow_ = problem.inflow;
    tables_.inflow_source = upload(problem.inflow.source);
    tables_.inflow_drain = upload(problem.inflow.drain);
  }

  void upload_levels(const BeamLevels& levels) {
    const BeamFactors factors = make_beam_factors(levels);
    density_factor_ = factors.density;
    tables_.density_factor = upload(factors.density);
    tables_.speed_factor = upload(factors.speed);
    tables_.states_factor = upload(factors.states);
    std::vector<double> faces(static_cast<std::size_t>(levels.n_states()) * (grid_.nx + 1));
    for (int state = 0; state < levels.n_states(); ++state)
      face_energies(levels.edge_of(state), grid_.nx,
                    &faces[static_cast<std::size_t>(state) * (grid_.nx + 1)]);
    tables_.nodes = upload(levels.edge_ev);
    tables_.faces = upload(faces);
  }

  void upload_links(const BeamProblem& problem) {
    const EndLists lists(make_beam_links(grid_, tables_.n_states, problem.levels.subbands,
                                         problem.processes, problem.level_of),
                         tables_.n_states);
    tables_.scatters = !lists.ends.empty();
    if (!tables_.scatters) return;
    ends_ = {lists.ends, "links"};
    first_low_ = {lists.first_low, "links"};
    first_high_ = {lists.first_high, "links"};
    tables_.ends = ends_.data();
    tables_.first_low = first_low_.data();
    tables_.first_high = first_high_.data();
    tables_.overlap = upload(problem.overlap);
    tables_.filling = problem.filling.empty() ? nullptr : upload(problem.filling);
  }

  void resize() {
    const auto rows = static_cast<std::size_t>(tables_.rows()),
               cells = static_cast<std::size_t>(tables_.n_states * tables_.nx * tables_.lines()),
               face_cells =
                   static_cast<std::size_t>(tables_.n_states * (tables_.nx + 1) * tables_.lines());
    const auto grow = [](DeviceBuffer<double>& buffer, std::size_t size) {
      if (buffer.size() != size) buffer = DeviceBuffer<double>(size, "beam scheme");
    };
    grow(volume_, cells);
    grow(area_, face_cells);
    grow(plus_, cells);
    grow(minus_, cells);
    grow(work_, cells * kBeamLineWork);
    for (DeviceBuffer<double>* each : {&states_, &weight_, &weighted_, &loss_, &gain_, &mean_})
      grow(*each, rows);
    if (tables_.filling != nullptr) grow(source_, rows);
    tables_.volume = volume_.data();
    tables_.area = area_.data();
    tables_.states = states_.data();
    tables_.loss = loss_.data();
    tables_.source = tables_.filling != nullptr ? source_.data() : nullptr;
  }

  void gain(const double* mean, const double* source) {
    for_each_index(tables_.rows(), Multiply{weight_.data(), mean, weighted_.data()}, "gain",
                   stream_.get());
    for_each_index(tables_.rows(), GainOfRows{tables_, weighted_.data(), source, gain_.data()},
                   "gain", stream_.get());
  }

  void lines(const double* feed, bool has_inflow) {
    for_each_index(
        tables_.n_states * tables_.lines(),
        cuda::Lines{tables_, feed, has_inflow, plus_.data(), minus_.data(), work_.data()}, "lines",
        stream_.get());
  }

  void mean_of_lines(double* mean) {
    cuda::row_mean_kernel<<<row_blocks(), kThreads, 0, stream_.get()>>>(tables_, plus_.data(),
                                                                        minus_.data(), mean);
    check_launch("mean occupations");
  }

  std::vector<double> electron_weights(const double* unscattered) const {
    std::vector<double> mean(static_cast<std::size_t>(tables_.rows()));
    check(cudaMemcpyAsync(mean.data(), unscattered, mean.size() * sizeof(double),
                          cudaMemcpyDeviceToHost, stream_.get()),
          "unscattered occupations");
    // The copy of the states waits for the stream, and thereby for both copies.
    const std::vector<double> states = to_host(states_, "states", stream_.get());
    return beam_electron_weights(grid_, inflow_, density_factor_, states, mean);
  }

  // Returns the power of the processes [processes][nx], the sum over states and cells of H.
  std::vector<double> phonon_power() {
    const std::int64_t rows = tables_.rows();
    DeviceBuffer<double> power(static_cast<std::size_t>(n_processes_ * rows), "phonon power");
    for_each_index(n_processes_ * rows,
                   PowerOfRows{tables_, weight_.data(), mean_.data(), power.data()}, "phonon power",
                   stream_.get());
    const std::vector<double> parts = to_host(power, "phonon power", stream_.get());
    std::vector<double> sum(static_cast<std::size_t>(n_processes_) * tables_.nx);
    for (std::size_t at = 0; at < parts.size(); ++at) {
      const std::size_t process = at / static_cast<std::size_t>(rows);
      sum[process * tables_.nx + at / tables_.nk % tables_.nx] += parts[at];
    }
    return sum;
  }

  Device device_;
  Stream stream_{StreamPriority::kNormal};
  DeviceVectors vectors_{stream_};
  BeamGrid grid_;
  BeamInflow inflow_;
  BeamTables tables_;
  int n_processes_ = 0;
  std::vector<DeviceBuffer<double>> uploads_;
  std::vector<double> density_factor_, host_mean_;
  DeviceBuffer<double> volume_, area_, plus_, minus_, work_, states_, weight_, weighted_, loss_,
      gain_, mean_, source_;
  DeviceBuffer<BeamEnd> ends_;
  DeviceBuffer<int> first_low_, first_high_;
};

}  // namespace

std::unique_ptr<BeamKernels> make_beam_kernels_cuda(const Device& device) {
  return std::make_unique<CudaBeamKernels>(device);
}

}  // namespace quasi::mosfet
