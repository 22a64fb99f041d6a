#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <type_traits>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/three_phonon/bodies_3ph_cuda.cuh"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/kernels/three_phonon/process_rules_3ph.hpp"
#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"
#include "workers/thermal/physics/occupation.hpp"

namespace quasi::thermal {
namespace {

using cuda::DeviceBuffer;
using namespace cuda3ph;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Row-major C[m][n] = A[m][k] B[k][n] for a batch; A is the same for all.
void multiply(const cuda::CublasHandle& cublas, std::int64_t m, std::int64_t n, std::int64_t k,
              const Complex<double>* a, const Complex<double>* b, std::int64_t b_stride,
              Complex<double>* c, std::int64_t c_stride, std::int64_t batch, const char* what) {
  const cuDoubleComplex one{1.0, 0.0};
  const cuDoubleComplex zero{0.0, 0.0};
  cuda::check(cublasZgemmStridedBatched(
                  cublas.get(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(n), static_cast<int>(m),
                  static_cast<int>(k), &one, reinterpret_cast<const cuDoubleComplex*>(b),
                  static_cast<int>(n), b_stride, reinterpret_cast<const cuDoubleComplex*>(a),
                  static_cast<int>(k), 0, &zero, reinterpret_cast<cuDoubleComplex*>(c),
                  static_cast<int>(n), c_stride, static_cast<int>(batch)),
              what);
}
void multiply(const cuda::CublasHandle& cublas, std::int64_t m, std::int64_t n, std::int64_t k,
              const Complex<float>* a, const Complex<float>* b, std::int64_t b_stride,
              Complex<float>* c, std::int64_t c_stride, std::int64_t batch, const char* what) {
  const cuComplex one{1.0f, 0.0f};
  const cuComplex zero{0.0f, 0.0f};
  cuda::check(
      cublasCgemmStridedBatched(
          cublas.get(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(n), static_cast<int>(m),
          static_cast<int>(k), &one, reinterpret_cast<const cuComplex*>(b), static_cast<int>(n),
          b_stride, reinterpret_cast<const cuComplex*>(a), static_cast<int>(k), 0, &zero,
          reinterpret_cast<cuComplex*>(c), static_cast<int>(n), c_stride, static_cast<int>(batch)),
      what);
}

template <typename T>
DeviceBuffer<T> upload(const std::vector<T>& host, const char* what) {
  return DeviceBuffer<T>(host, what);
}
std::vector<Complex<double>> plain(const std::vector<std::complex<double>>& values) {
  std::vector<Complex<double>> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i] = {values[i].real(), values[i].imag()};
  return result;
}

std::vector<Complex<float>> rounded(const std::vector<std::complex<double>>& values) {
  std::vector<Complex<float>> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    result[i] = {static_cast<float>(values[i].real()), static_cast<float>(values[i].imag())};
  return result;
}

class CudaThreePhononKernels : public ThreePhononKernels {
 public:
  explicit CudaThreePhononKernels(const Device& device) : device_(device) {
    use_device(device_);  // the handle belongs to the device in use
    cublas_ = cuda::CublasHandle(nullptr);
  }
  void load(const ThreePhononProblem& problem) override;
  std::vector<std::int64_t> count(const std::vector<std::int64_t>& rows) override;
  std::vector<Process3> list(std::int64_t first, std::int64_t last,
                             std::vector<std::int64_t>& offsets) override;
  ThreePhononRates rates(const std::vector<double>& temperatures_k, bool keep_processes,
                         Progress& progress) override;
  std::vector<double> apply_collision(double temperature_k, OccupationForm form,
                                      const std::vector<double>& f) override;
  std::vector<double> row_rates(double temperature_k, OccupationForm form) override;

 private:
  static constexpr std::int64_t kWorkBytes = std::int64_t{1}
                                             << 30;  ///< goal for A_λ(p) of one batch

  Tables3 tables() const {
    return {problem_->mesh,    nb_, rules_, e_.data(), point_.data(), zone_.data(),
            occupation_.data()};
  }
  PhaseTable phase_table() const {
    return {{roots_[0].data(), roots_[1].data(), roots_[2].data()},
            {problem_->mesh.n[0], problem_->mesh.n[1], problem_->mesh.n[2]}};
  }
  Blocks3View blocks() const {
    return {transform_.n_blocks, atom_.data(), cell_.data(), tensor_.data()};
  }
  void fill(std::int64_t first, std::int64_t last, Process3* list);
  template <typename Real>
  void evaluate_factorised(std::int64_t first, std::int64_t last, Process3* list,
                           Progress& progress);
  void evaluate_naive(std::int64_t first, std::int64_t last, Process3* list);
  void sum_rows(std::int64_t first, std::int64_t last, const Process3* list);
  void tabulate(double temperature_k);
  std::vector<double> collide(double temperature_k, OccupationForm form, const double* f,
                              int components);

  Device device_;
  const ThreePhononProblem* problem_ = nullptr;
  int nb_ = 0;
  std::int64_t n_q_ = 0;
  std::int64_t n_modes_ = 0;
  int n_temperatures_ = 0;
  std::vector<double> omega_host_;
  ProcessRules3 rules_;
  Fc3Transform transform_;
  cuda::CublasHandle cublas_;  ///< on the default stream, as all kernels of this class
  DeviceBuffer<double> omega_, spread_, tensor_, occupation_;
  DeviceBuffer<Complex<double>> e_, roots_[3], axis_phase_[3];
  DeviceBuffer<Complex<float>> e32_, phase32_;  ///< with mixed precision
  DeviceBuffer<std::int32_t> point_;
  DeviceBuffer<int> zone_, atom_, cell_, group_first_, group_target_, sorted_block_,
      first_component_, third_cell_, cells_;
  std::int64_t n_groups_ = 0;

  std::vector<std::int64_t> first_process_host_;
  DeviceBuffer<std::int64_t> first_process_;
  DeviceBuffer<Process3> kept_;
  DeviceBuffer<double> outputs_;
  RowOutputs3 row_outputs_{};
  double tabulated_k_ = 0.0;
  DeviceBuffer<double> n_, s_;
  DeviceBuffer<double> f_, out_;
};

void CudaThreePhononKernels::load(const ThreePhononProblem& problem) {
  use_device(device_);
  problem_ = &problem;
  const Modes& modes = *problem.modes;
  nb_ = problem.n_branches();
  n_q_ = problem.mesh.size();
  n_modes_ = modes.n_modes();
  omega_host_.resize(static_cast<std::size_t>(n_modes_));
  for (std::int64_t mode = 0; mode < n_modes_; ++mode)
    omega_host_[mode] = modes.active(mode, problem.omega_max_rad_ps) ? modes.omega_rad_ps[mode]
                                                                     : ProcessRules3::kInactive;
  omega_ = upload(omega_host_, "frequencies");
  spread_ = upload(modes.spread_rad_ps, "spread vectors");
  e_ = upload(plain(modes.eigenvector), "eigenvectors");
  point_ = upload(problem.rows, "irreducible points");
  std::vector<int> zone;
  for (const Index3& z : problem.first_zone) zone.insert(zone.end(), z.begin(), z.end());
  zone_ = upload(zone, "first-zone points");
  rules_ = rules_of(problem, omega_.data(), spread_.data());
  transform_ = make_fc3_transform(problem.fc3, problem.mass_amu, problem.mesh);
  for (int d = 0; d < 3; ++d) {
    roots_[d] = upload(plain(unit_roots(problem.mesh.n[d])), "phases");
    axis_phase_[d] = upload(plain(transform_.phase[d]), "phases of an axis");
  }
  if (problem.precision == Precision::kMixed) {
    e32_ = upload(rounded(modes.eigenvector), "eigenvectors");
    phase32_ = upload(rounded(transform_.phase[2]), "phases of an axis");
  }
  atom_ = upload(problem.fc3.atom, "third-order atoms");
  cell_ = upload(problem.fc3.cell, "third-order cells");
  tensor_ = upload(transform_.tensor, "third-order constants");
  first_component_ = upload(transform_.first_component, "third-order atoms");
  third_cell_ = upload(transform_.third_cell, "third-order cells");
  std::vector<int> cells;
  for (const Index3& cell : transform_.third_cells)
    cells.insert(cells.end(), cell.begin(), cell.end());
  cells_ = upload(cells, "third-order cells");
  std::vector<int> order(static_cast<std::size_t>(transform_.n_blocks));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return transform_.target[a] < transform_.target[b]; });
  std::vector<int> first;
  std::vector<int> target;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (i == 0 || transform_.target[order[i]] != target.back()) {
      first.push_back(static_cast<int>(i));
      target.push_back(transform_.target[order[i]]);
    }
  n_groups_ = static_cast<std::int64_t>(target.size());
  first.push_back(static_cast<int>(order.size()));
  group_first_ = upload(first, "third-order groups");
  group_target_ = upload(target, "third-order groups");
  sorted_block_ = upload(order, "third-order groups");
  kept_ = {};
  first_process_ = {};
  first_process_host_.clear();
  tabulated_k_ = 0.0;
}

std::vector<std::int64_t> CudaThreePhononKernels::count(const std::vector<std::int64_t>& rows) {
  use_device(device_);
  if (rows.empty()) return {};
  const auto device_rows = upload(rows, "rows to count");
  DeviceBuffer<std::int64_t> counts(rows.size() * 2, "counts of processes");
  count_kernel<<<static_cast<unsigned>(rows.size()), kThreads>>>(tables(), device_rows.data(),
                                                                 counts.data());
  cuda::check_launch("counting processes");
  return cuda::to_host(counts, "counting processes");
}

void CudaThreePhononKernels::fill(std::int64_t first, std::int64_t last, Process3* list) {
  fill_kernel<<<static_cast<unsigned>(last - first), kThreads>>>(
      tables(), first, first_process_.data(), first_process_host_[first], list);
  cuda::check_launch("listing processes");
}

std::vector<Process3> CudaThreePhononKernels::list(std::int64_t first, std::int64_t last,
                                                   std::vector<std::int64_t>& offsets) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(last - first));
  std::iota(rows.begin(), rows.end(), first);
  const auto counts = count(rows);
  first_process_host_.assign(static_cast<std::size_t>(problem_->n_rows()) + 1, 0);
  offsets.assign(1, 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    offsets.push_back(offsets.back() + counts[2 * i] + counts[2 * i + 1]);
    first_process_host_[static_cast<std::size_t>(first) + i + 1] = offsets.back();
  }
  first_process_ = upload(first_process_host_, "offsets of processes");
  DeviceBuffer<Process3> device_list(static_cast<std::size_t>(offsets.back()), "list of processes");
  if (offsets.back() > 0) fill(first, last, device_list.data());
  return cuda::to_host(device_list, "listing processes");
}

template <typename Real>
void CudaThreePhononKernels::evaluate_factorised(std::int64_t first, std::int64_t last,
                                                 Process3* list, Progress& progress) {
  // Rows come point by point, all branches together: chunks are cut between points.
  const Fc3Transform& t = transform_;
  const QMesh& mesh = problem_->mesh;
  const std::int64_t x = static_cast<std::int64_t>(nb_) * nb_ * nb_;
  const std::int64_t a_size = n_q_ * x;
  const std::int64_t stage1_size =
      static_cast<std::int64_t>(t.extent[2]) * t.extent[1] * mesh.n[0] * x;
  const std::int64_t stage2_size =
      static_cast<std::int64_t>(t.extent[2]) * mesh.n[1] * mesh.n[0] * x;
  const std::int64_t box_size = t.box_size() * x;
  const std::int64_t first_point = first / nb_;
  const std::int64_t n_points = (last - first) / nb_;
  const std::int64_t batch =
      std::clamp<std::int64_t>(kWorkBytes / (16 * (a_size + stage1_size + stage2_size + box_size)),
                               1, std::min<std::int64_t>(n_points, 65535 / nb_));
  DeviceBuffer<Complex<double>> box(static_cast<std::size_t>(batch * box_size),
                                    "contracted constants");
  DeviceBuffer<Complex<double>> stage1(static_cast<std::size_t>(batch * stage1_size),
                                       "contracted constants along one axis");
  DeviceBuffer<Complex<double>> stage2(static_cast<std::size_t>(batch * stage2_size),
                                       "contracted constants along two axes");
  constexpr bool kMixed = std::is_same_v<Real, float>;
  DeviceBuffer<Complex<Real>> a(static_cast<std::size_t>(batch * a_size),
                                "contracted constants at every q'");
  DeviceBuffer<Complex<float>> rounded(static_cast<std::size_t>(kMixed ? batch * stage2_size : 1),
                                       "contracted constants, rounded");
  box.zero("contracted constants");
  for (std::int64_t at = 0; at < n_points; at += batch) {
    progress.report("scattering 3ph", first_point + at,
                    static_cast<std::int64_t>(problem_->rows.size()));
    const std::int64_t count = std::min(batch, n_points - at);
    const ContractFirstSlot contract{.mesh = mesh,
                                     .nb = nb_,
                                     .phase = phase_table(),
                                     .e = e_.data(),
                                     .point = point_.data() + first_point + at,
                                     .n_groups = n_groups_,
                                     .group_first = group_first_.data(),
                                     .group_target = group_target_.data(),
                                     .block = sorted_block_.data(),
                                     .first_component = first_component_.data(),
                                     .third_cell = third_cell_.data(),
                                     .cells = cells_.data(),
                                     .tensor = tensor_.data(),
                                     .box_size = t.box_size(),
                                     .box = box.data()};
    cuda::for_each_index(count * nb_ * n_groups_ * 9, contract, "contraction with λ");
    multiply(cublas_, mesh.n[0], x, t.extent[0], axis_phase_[0].data(), box.data(), t.extent[0] * x,
             stage1.data(), mesh.n[0] * x, count * t.extent[2] * t.extent[1],
             "Fourier sum along axis 1");
    multiply(cublas_, mesh.n[1], mesh.n[0] * x, t.extent[1], axis_phase_[1].data(), stage1.data(),
             t.extent[1] * mesh.n[0] * x, stage2.data(),
             static_cast<std::int64_t>(mesh.n[1]) * mesh.n[0] * x, count * t.extent[2],
             "Fourier sum along axis 2");
    const std::int64_t plane = static_cast<std::int64_t>(mesh.n[1]) * mesh.n[0] * x;
    const Complex<Real>* e;
    if constexpr (kMixed) {
      e = e32_.data();
      cuda::for_each_index(count * stage2_size, RoundComplex{stage2.data(), rounded.data()},
                           "rounding to FP32");
      multiply(cublas_, mesh.n[2], plane, t.extent[2], phase32_.data(), rounded.data(), stage2_size,
               a.data(), a_size, count, "Fourier sum along axis 3");
    } else {
      e = e_.data();
      multiply(cublas_, mesh.n[2], plane, t.extent[2], axis_phase_[2].data(), stage2.data(),
               stage2_size, a.data(), a_size, count, "Fourier sum along axis 3");
    }
    std::int64_t longest = 0;
    for (std::int64_t row = first + at * nb_; row < first + (at + count) * nb_; ++row)
      longest = std::max(longest, first_process_host_[row + 1] - first_process_host_[row]);
    if (longest == 0) continue;
    const FactorisedArguments<Real> arguments{
        tables(), first + at * nb_, first_process_.data(), first_process_host_[first], e, a.data(),
        list};
    const dim3 grid(
        static_cast<unsigned>(std::min<std::int64_t>((longest + kThreads - 1) / kThreads, 256)),
        static_cast<unsigned>(count * nb_));
    switch (nb_) {
      case 3:
        factorised_kernel<3, Real><<<grid, kThreads>>>(arguments);
        break;
      case 6:
        factorised_kernel<6, Real><<<grid, kThreads>>>(arguments);
        break;
      default:
        factorised_kernel<0, Real><<<grid, kThreads>>>(arguments);
        break;
    }
    cuda::check_launch("three-phonon matrix elements");
  }
}

void CudaThreePhononKernels::evaluate_naive(std::int64_t first, std::int64_t last, Process3* list) {
  constexpr std::int64_t kRows = 32768;
  for (std::int64_t at = first; at < last; at += kRows) {
    const dim3 grid(16, static_cast<unsigned>(std::min(kRows, last - at)));
    naive_kernel<<<grid, kThreads>>>(tables(), blocks(), phase_table(), at, first_process_.data(),
                                     first_process_host_[first], list);
    cuda::check_launch("three-phonon matrix elements");
  }
}

void CudaThreePhononKernels::sum_rows(std::int64_t first, std::int64_t last, const Process3* list) {
  for (int t = 0; t < n_temperatures_; t += kTemperaturesAtOnce) {
    row_sums_kernel<<<static_cast<unsigned>(last - first), kThreads>>>(
        tables(), n_modes_, t, std::min(kTemperaturesAtOnce, n_temperatures_ - t), first,
        first_process_.data(), first_process_host_[first], list, row_outputs_);
    cuda::check_launch("sums of three-phonon rates");
  }
}

ThreePhononRates CudaThreePhononKernels::rates(const std::vector<double>& temperatures_k,
                                               bool keep_processes, Progress& progress) {
  use_device(device_);
  const auto start = Clock::now();
  const std::int64_t n_rows = problem_->n_rows();
  n_temperatures_ = static_cast<int>(temperatures_k.size());
  std::vector<double> occupation(static_cast<std::size_t>(n_modes_ * n_temperatures_), 0.0);
  for (int t = 0; t < n_temperatures_; ++t)
    for (std::int64_t mode = 0; mode < n_modes_; ++mode)
      if (omega_host_[mode] < ProcessRules3::kInactive)
        occupation[t * n_modes_ + mode] =
            bose_einstein(omega_host_[mode], temperatures_k[t], problem_->hbar_over_kb_k_ps);
  occupation_ = upload(occupation, "occupations");

  const std::int64_t per_array = n_temperatures_ * n_rows;
  outputs_ = DeviceBuffer<double>(static_cast<std::size_t>(6 * per_array + 2 * n_rows), "rates");
  outputs_.zero("rates");
  double* out = outputs_.data();
  row_outputs_ = {n_rows,
                  out,
                  out + per_array,
                  out + 2 * per_array,
                  out + 3 * per_array,
                  out + 4 * per_array,
                  out + 5 * per_array,
                  out + 6 * per_array,
                  out + 6 * per_array + n_rows};

  ThreePhononRates result;
  result.n_temperatures = n_temperatures_;
  std::vector<std::int64_t> all(static_cast<std::size_t>(n_rows));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  progress.report("enumerate 3ph", 0, n_rows);
  std::vector<Process3> host_list;
  std::vector<std::int64_t> counts;
  if (problem_->strategy == Strategy::kListHost) {
    const auto host = make_three_phonon_kernels(Device{});
    host->load(*problem_);
    std::vector<std::int64_t> offsets;
    host_list = host->list(0, n_rows, offsets);
    counts.assign(static_cast<std::size_t>(2 * n_rows), 0);
    for (std::int64_t row = 0; row < n_rows; ++row)
      for (std::int64_t i = offsets[row]; i < offsets[row + 1]; ++i)
        ++counts[2 * row + (host_list[i].emission() ? 1 : 0)];
  } else {
    counts = count(all);
  }
  first_process_host_.assign(static_cast<std::size_t>(n_rows) + 1, 0);
  for (std::int64_t row = 0; row < n_rows; ++row) {
    result.n_absorption += counts[2 * row];
    result.n_emission += counts[2 * row + 1];
    first_process_host_[row + 1] = first_process_host_[row] + counts[2 * row] + counts[2 * row + 1];
  }
  first_process_ = upload(first_process_host_, "offsets of processes");
  const std::int64_t n_processes = first_process_host_.back();

  const std::int64_t have = problem_->memory_budget_bytes > 0
                                ? problem_->memory_budget_bytes
                                : free_memory_bytes(device_) / 10 * 8 - 2 * kWorkBytes;
  const std::int64_t item = static_cast<std::int64_t>(sizeof(Process3));
  const bool at_once = keep_processes || problem_->strategy == Strategy::kListHost ||
                       problem_->strategy == Strategy::kListDevice;
  if (at_once && n_processes * item > have)
    throw OutOfMemory(
        "the list of " + std::to_string(n_processes) + " three-phonon processes needs " +
        std::to_string(n_processes * item >> 20) + " MiB and " + std::to_string(have >> 20) +
        " MiB may be used; use a coarser mesh, a smaller 'scalebroad', 'convergence' = .false., or "
        "raise 'memory_budget_mib'");
  cuda::check(cudaDeviceSynchronize(), "enumerating processes");
  result.seconds_enumerate = seconds_since(start);
  const auto middle = Clock::now();

  kept_ = {};
  const bool needs_list = problem_->strategy != Strategy::kTestAndSum || keep_processes;
  if (problem_->strategy == Strategy::kTestAndSum)
    for (int t = 0; t < n_temperatures_; t += kTemperaturesAtOnce) {
      test_and_sum_kernel<<<static_cast<unsigned>(n_rows), kThreads>>>(
          tables(), blocks(), phase_table(), n_modes_, t,
          std::min(kTemperaturesAtOnce, n_temperatures_ - t), row_outputs_);
      cuda::check_launch("test and sum");
    }
  if (needs_list) {
    if (at_once)
      kept_ = DeviceBuffer<Process3>(static_cast<std::size_t>(n_processes),
                                     "list of three-phonon processes");
    const bool by_mode = problem_->strategy == Strategy::kModeByMode;
    DeviceBuffer<Process3> part;
    for (std::int64_t first = 0; first < n_rows;) {
      progress.report("scattering 3ph", first, n_rows);
      // As many points as fit; all when the list is kept; one mode at a time when that is asked
      // for.
      std::int64_t last = by_mode ? first + 1 : first + nb_;
      while (!by_mode && last < n_rows &&
             (at_once ||
              (first_process_host_[last + nb_] - first_process_host_[first]) * item <= have))
        last += nb_;
      const std::int64_t size = first_process_host_[last] - first_process_host_[first];
      if (!at_once && static_cast<std::int64_t>(part.size()) < size)
        part = DeviceBuffer<Process3>(static_cast<std::size_t>(size),
                                      "part of the list of three-phonon processes");
      Process3* list = at_once ? kept_.data() + first_process_host_[first] : part.data();
      if (size > 0) {
        if (problem_->strategy == Strategy::kListHost)
          cuda::check(cudaMemcpy(list, host_list.data() + first_process_host_[first],
                                 static_cast<std::size_t>(size * item), cudaMemcpyHostToDevice),
                      "list of three-phonon processes");
        else
          fill(first, last, list);
        if (problem_->strategy != Strategy::kFactorised)
          evaluate_naive(first, last, list);
        else if (problem_->precision == Precision::kMixed)
          evaluate_factorised<float>(first, last, list, progress);
        else
          evaluate_factorised<double>(first, last, list, progress);
        if (problem_->strategy != Strategy::kTestAndSum) sum_rows(first, last, list);
      }
      first = last;
    }
  }
  const std::vector<double> values = cuda::to_host(outputs_, "three-phonon rates");
  const auto array = [&](std::int64_t at, std::int64_t size) {
    return std::vector<double>(values.begin() + at, values.begin() + at + size);
  };
  result.absorption_per_ps = array(0, per_array);
  result.emission_per_ps = array(per_array, per_array);
  result.normal_absorption_per_ps = array(2 * per_array, per_array);
  result.normal_emission_per_ps = array(3 * per_array, per_array);
  result.weighted_absorption_ps4 = array(4 * per_array, per_array);
  result.weighted_emission_ps4 = array(5 * per_array, per_array);
  result.phase_space_absorption_ps = array(6 * per_array, n_rows);
  result.phase_space_emission_ps = array(6 * per_array + n_rows, n_rows);
  if (!keep_processes) kept_ = {};
  result.seconds_evaluate = seconds_since(middle);
  progress.report("scattering 3ph", n_rows, n_rows);
  return result;
}

void CudaThreePhononKernels::tabulate(double temperature_k) {
  if (tabulated_k_ == temperature_k) return;
  std::vector<double> n(static_cast<std::size_t>(n_modes_), 0.0);
  std::vector<double> s(static_cast<std::size_t>(n_modes_), 0.0);
  for (std::int64_t mode = 0; mode < n_modes_; ++mode) {
    if (omega_host_[mode] >= ProcessRules3::kInactive) continue;
    n[mode] = bose_einstein(omega_host_[mode], temperature_k, problem_->hbar_over_kb_k_ps);
    s[mode] = std::sqrt(n[mode] * (n[mode] + 1.0));
  }
  n_ = upload(n, "occupations");
  s_ = upload(s, "occupations");
  tabulated_k_ = temperature_k;
}

std::vector<double> CudaThreePhononKernels::collide(double temperature_k, OccupationForm form,
                                                    const double* f, int components) {
  use_device(device_);
  tabulate(temperature_k);
  const std::int64_t n_rows = problem_->n_rows();
  if (static_cast<std::int64_t>(out_.size()) != n_rows * components)
    out_ =
        DeviceBuffer<double>(static_cast<std::size_t>(n_rows * components), "collision operator");
  collision_kernel<<<static_cast<unsigned>(n_rows), kThreads>>>(
      tables(), {form == OccupationForm::kSymmetric, n_.data(), s_.data()}, first_process_.data(),
      kept_.data(), f, out_.data());
  cuda::check_launch("collision operator");
  return cuda::to_host(out_, "collision operator");
}

std::vector<double> CudaThreePhononKernels::apply_collision(double temperature_k,
                                                            OccupationForm form,
                                                            const std::vector<double>& f) {
  use_device(device_);
  if (f_.size() != f.size()) f_ = DeviceBuffer<double>(f.size(), "field");
  f_.copy_from(f.data(), f.size(), "field");
  return collide(temperature_k, form, f_.data(), 3);
}

std::vector<double> CudaThreePhononKernels::row_rates(double temperature_k, OccupationForm form) {
  return collide(temperature_k, form, nullptr, 1);
}

}  // namespace

std::unique_ptr<ThreePhononKernels> make_three_phonon_kernels_cuda(const Device& device) {
  return std::make_unique<CudaThreePhononKernels>(device);
}

}  // namespace quasi::thermal
