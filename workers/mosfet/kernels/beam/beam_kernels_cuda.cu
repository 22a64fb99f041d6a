#include <memory>
#include <utility>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels_cuda.cuh"
#include "workers/mosfet/kernels/beam/beam_vectors_cuda.cuh"
#include "workers/mosfet/kernels/beam/gmres.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"

namespace quasi::mosfet {
namespace {

using cuda::BeamEnd;
using cuda::BeamTables;
using cuda::DeviceVectors;
using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;
using quasi::cuda::Stream;
using quasi::cuda::StreamPriority;

/// Multiplies two arrays.
struct Multiply {
  const double *a, *b;
  double* out;
  __device__ void operator()(std::int64_t at) const { out[at] = a[at] * b[at]; }
};

/// Computes the weights of BeamNorm::kElectrons from ḡ of the unscattered inflow, as
/// beam_electron_weights() does.
struct ElectronWeights {
  BeamTables t;
  const double* unscattered;
  double* weight;
  __device__ void operator()(std::int64_t row) const {
    const auto k = static_cast<int>(row % t.nk);
    const std::int64_t state = row / t.nk / t.nx;
    const double least = fmin(t.inflow_source[k], t.inflow_drain[k]);
    const double full = t.density_factor[state] * t.states[row] * t.boltzmann[k];
    weight[row] = sqrt(full / fmax(unscattered[row], least));
  }
};

struct LossOfRows {
  BeamTables t;
  const double* weight;
  __device__ void operator()(std::int64_t row) const { beam_loss_of_row(t, weight, row); }
};
struct GainOfRows {
  BeamTables t;
  const double *weight, *mean;
  const double* source;  ///< added to the gain; null: none
  double* gain;
  __device__ void operator()(std::int64_t row) const {
    gain[row] = beam_gain_of_row(t, weight, mean, row) + (source != nullptr ? source[row] : 0.0);
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

class CudaBeamKernels : public BeamKernels {
 public:
  // The device is chosen before the members, because library handles belong to the current device.
  explicit CudaBeamKernels(const Device& device) : device_((use_device(device), device)) {}

  void load(const BeamProblem& problem) override {
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
    stream_.synchronize("the last problem");  // its uploads must have left the host
    host_tables_.clear();
    places_.clear();
    upload_grid(problem);
    upload_levels(problem.levels);
    upload_links(problem);
    send_tables();
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
      for_each_index(tables_.rows(), ElectronWeights{tables_, rhs.data(), vectors_.weight()},
                     "weights of GMRES", stream_.get());
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
    solution.mean = to_host(mean_, rows, "mean occupations");
    solution.sweeps += 1;
    host_mean_ = solution.mean;
    return solution;
  }

  std::vector<double> sheet_density() override {
    const std::vector<double> states = to_host(states_, host_mean_.size(), "states");
    std::vector<double> sheet(static_cast<std::size_t>(tables_.n_states) * tables_.nx);
    for (std::size_t column = 0; column < sheet.size(); ++column) {
      double sum = 0.0;
      for (std::size_t k = 0; k < boltzmann_.size(); ++k) {
        const std::size_t at = column * boltzmann_.size() + k;
        sum += boltzmann_[k] * states[at] * host_mean_[at];
      }
      sheet[column] = density_factor_[column / grid_.nx] * sum;
    }
    return sheet;
  }

  BeamFluxes fluxes() override {
    const std::int64_t faces = static_cast<std::int64_t>(tables_.n_states) * (tables_.nx + 1);
    const auto count = static_cast<std::size_t>(faces * tables_.nk);
    grow(current_, count);
    for_each_index(faces * tables_.nk,
                   cuda::FaceCurrents{tables_, plus_.data(), minus_.data(), current_.data()},
                   "currents", stream_.get());
    std::vector<double> power;
    if (tables_.scatters) power = phonon_power();
    BeamFluxes fluxes = sum_beam_fluxes(grid_, to_host(current_, count, "currents"), power);
    fluxes.sheet_nm2 = sheet_density();
    return fluxes;
  }

  std::vector<double> distribution() override {
    const auto cells = static_cast<std::size_t>(tables_.n_states * tables_.nx * tables_.lines());
    std::vector<double> g = to_host(plus_, cells, "distribution");
    const std::vector<double> minus = to_host(minus_, cells, "distribution");
    g.insert(g.end(), minus.begin(), minus.end());
    return g;
  }

 private:
  static constexpr int kThreads = 256;

  unsigned row_blocks() const {
    return static_cast<unsigned>((tables_.rows() * cuda::kRowLanes + kThreads - 1) / kThreads);
  }

  // Adds a table to those that send_tables() uploads, which then sets its address.
  void upload(const std::vector<double>& values, const double** address) {
    places_.push_back({address, host_tables_.size()});
    host_tables_.insert(host_tables_.end(), values.begin(), values.end());
  }
  // Uploads all tables at once. An allocation or a default stream would wait for the whole device,
  // which other bias points share.
  void send_tables() {
    grow(device_tables_, host_tables_.size());
    device_tables_.copy_from(host_tables_.data(), host_tables_.size(), "tables of the beam scheme",
                             stream_.get());
    for (const auto& [address, place] : places_) *address = device_tables_.data() + place;
  }
  // Makes a buffer at least this large. Buffers keep their size for the next bias point.
  template <typename T>
  static void grow(DeviceBuffer<T>& buffer, std::size_t size) {
    if (buffer.size() < size) buffer = DeviceBuffer<T>(size, "beam scheme");
  }
  template <typename T>
  void send(const std::vector<T>& values, DeviceBuffer<T>* to) {
    grow(*to, values.size());
    to->copy_from(values.data(), values.size(), "links", stream_.get());
  }
  std::vector<double> to_host(const DeviceBuffer<double>& buffer, std::size_t count,
                              const char* what) {
    std::vector<double> host(count);
    check(cudaMemcpyAsync(host.data(), buffer.data(), count * sizeof(double),
                          cudaMemcpyDeviceToHost, stream_.get()),
          what);
    stream_.synchronize(what);
    return host;
  }

  void upload_grid(const BeamProblem& problem) {
    std::vector<double> edge, centre, full, inverse, kappa;
    boltzmann_.clear();
    for (int k = 0; k < grid_.n_h; ++k) {
      const BeamCell cell = grid_.cell(k, 0);
      edge.push_back(cell.h_low_ev);
      centre.push_back(cell.centre_ev);
      full.push_back(cell.full_ev);
      inverse.push_back(1.0 / cell.full_ev);
      boltzmann_.push_back(grid_.boltzmann(k));
    }
    edge.push_back(grid_.h_low_ev(grid_.n_h));
    for (int j = 0; j <= grid_.n_kappa; ++j) kappa.push_back(j * grid_.dkappa);
    upload(edge, &tables_.h_edge);
    upload(centre, &tables_.h_centre);
    upload(full, &tables_.h_full);
    upload(inverse, &tables_.h_inverse);
    upload(boltzmann_, &tables_.boltzmann);
    upload(kappa, &tables_.kappa_edge);
    upload(problem.inflow.source, &tables_.inflow_source);
    upload(problem.inflow.drain, &tables_.inflow_drain);
  }

  void upload_levels(const BeamLevels& levels) {
    const BeamFactors factors = make_beam_factors(levels);
    density_factor_ = factors.density;
    upload(factors.density, &tables_.density_factor);
    upload(factors.speed, &tables_.speed_factor);
    upload(factors.states, &tables_.states_factor);
    std::vector<double> faces(static_cast<std::size_t>(levels.n_states()) * (grid_.nx + 1));
    for (int state = 0; state < levels.n_states(); ++state)
      face_energies(levels.edge_of(state), grid_.nx,
                    &faces[static_cast<std::size_t>(state) * (grid_.nx + 1)]);
    upload(levels.edge_ev, &tables_.nodes);
    upload(faces, &tables_.faces);
  }

  void upload_links(const BeamProblem& problem) {
    const int subbands = problem.levels.subbands;
    const cuda::BeamEndLists lists(
        make_beam_links(grid_, tables_.n_states, subbands, problem.processes, problem.level_of),
        tables_.n_states, subbands);
    tables_.scatters = !lists.ends.empty() || !problem.relaxation_fs.empty();
    if (!tables_.scatters) return;
    send(lists.ends, &ends_);
    send(lists.first_low, &first_low_);
    send(lists.first_high, &first_high_);
    stream_.synchronize("links");  // the lists end here
    tables_.ends = ends_.data();
    tables_.first_low = first_low_.data();
    tables_.first_high = first_high_.data();
    upload(problem.overlap, &tables_.overlap);
    if (!problem.roughness.empty()) upload(problem.roughness, &tables_.roughness);
    if (!problem.relaxation_fs.empty()) upload(problem.relaxation_fs, &tables_.relaxation);
    if (!problem.filling.empty()) upload(problem.filling, &tables_.filling);
  }

  void resize() {
    const auto rows = static_cast<std::size_t>(tables_.rows()),
               cells = static_cast<std::size_t>(tables_.n_states * tables_.nx * tables_.lines()),
               face_cells =
                   static_cast<std::size_t>(tables_.n_states * (tables_.nx + 1) * tables_.lines());
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
    for_each_index(tables_.rows(),
                   GainOfRows{tables_, weighted_.data(), mean, source, gain_.data()}, "gain",
                   stream_.get());
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

  // Returns the power of the processes [processes][nx], the sum over states and cells of H.
  std::vector<double> phonon_power() {
    const std::int64_t rows = tables_.rows();
    const auto count = static_cast<std::size_t>(n_processes_ * rows);
    grow(power_, count);
    for_each_index(n_processes_ * rows,
                   PowerOfRows{tables_, weight_.data(), mean_.data(), power_.data()},
                   "phonon power", stream_.get());
    const std::vector<double> parts = to_host(power_, count, "phonon power");
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
  BeamTables tables_;
  int n_processes_ = 0;
  std::vector<double> density_factor_, boltzmann_, host_mean_;
  std::vector<double> host_tables_;                             ///< all tables of the problem
  std::vector<std::pair<const double**, std::size_t>> places_;  ///< addresses and offsets
  DeviceBuffer<double> device_tables_, current_, power_, volume_, area_, plus_, minus_, work_,
      states_, weight_, weighted_, loss_, gain_, mean_, source_;
  DeviceBuffer<BeamEnd> ends_;
  DeviceBuffer<int> first_low_, first_high_;
};

}  // namespace

std::unique_ptr<BeamKernels> make_beam_kernels_cuda(const Device& device) {
  return std::make_unique<CudaBeamKernels>(device);
}

}  // namespace quasi::mosfet
