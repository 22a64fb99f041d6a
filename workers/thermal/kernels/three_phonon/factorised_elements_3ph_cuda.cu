#include "workers/thermal/kernels/three_phonon/factorised_elements_3ph_cuda.cuh"

#include <algorithm>
#include <type_traits>

#include "workers/backend/device/launch_cuda.cuh"

namespace quasi::thermal::cuda3ph {
namespace {

using cuda::DeviceBuffer;

/// Products C[m][n] = A[m][k] B[k][n] of row-major matrices. All products of a batch share A.
template <typename Real>
struct BatchedProduct {
  std::int64_t m, n, k;
  const Complex<Real>* a;
  const Complex<Real>* b;
  std::int64_t b_stride;  ///< values between two B
  Complex<Real>* c;
  std::int64_t c_stride;
  std::int64_t batch;
};

void multiply(const cuda::CublasHandle& cublas, const BatchedProduct<double>& p, const char* what) {
  const cuDoubleComplex one{1.0, 0.0};
  const cuDoubleComplex zero{0.0, 0.0};
  cuda::check(
      quasi::cuda::late::cublasZgemmStridedBatched(
          cublas.get(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(p.n), static_cast<int>(p.m),
          static_cast<int>(p.k), &one, reinterpret_cast<const cuDoubleComplex*>(p.b),
          static_cast<int>(p.n), p.b_stride, reinterpret_cast<const cuDoubleComplex*>(p.a),
          static_cast<int>(p.k), 0, &zero, reinterpret_cast<cuDoubleComplex*>(p.c),
          static_cast<int>(p.n), p.c_stride, static_cast<int>(p.batch)),
      what);
}

void multiply(const cuda::CublasHandle& cublas, const BatchedProduct<float>& p, const char* what) {
  const cuComplex one{1.0f, 0.0f};
  const cuComplex zero{0.0f, 0.0f};
  cuda::check(
      quasi::cuda::late::cublasCgemmStridedBatched(
          cublas.get(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(p.n), static_cast<int>(p.m),
          static_cast<int>(p.k), &one, reinterpret_cast<const cuComplex*>(p.b),
          static_cast<int>(p.n), p.b_stride, reinterpret_cast<const cuComplex*>(p.a),
          static_cast<int>(p.k), 0, &zero, reinterpret_cast<cuComplex*>(p.c), static_cast<int>(p.n),
          p.c_stride, static_cast<int>(p.batch)),
      what);
}

DeviceBuffer<Complex<float>> upload_rounded(const std::vector<std::complex<double>>& values,
                                            const char* what) {
  std::vector<Complex<float>> rounded(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    rounded[i] = {static_cast<float>(values[i].real()), static_cast<float>(values[i].imag())};
  return DeviceBuffer<Complex<float>>(rounded, what);
}

/// Contracts slot 1 with e_λ and the cell of slot 3 with e^{−iq·R''}. One thread gathers all blocks
/// of one target, so that nothing is added by two threads. The index is
/// ((point of the batch · nb + s) · n_groups + group) · 9 + element.
struct ContractFirstSlot {
  QMesh mesh;
  int nb;
  PhaseTable phase;
  const Complex<double>* e;
  const std::int32_t* point;  ///< q of the points of the batch
  std::int64_t n_groups;
  const int* group_first;      ///< [n_groups + 1]
  const int* group_target;     ///< [n_groups] (box index · nb + 3κ') · nb + 3κ''
  const int* block;            ///< [n_blocks] blocks sorted by group
  const int* first_component;  ///< [n_blocks] 3κ
  const int* third_cell;       ///< [n_blocks] index of R'' in cells
  const int* cells;            ///< [n_cells][3]
  const double* tensor;        ///< [n_blocks][27]
  std::int64_t box_size;
  Complex<double>* box;  ///< [points][box][s][nb][nb]

  QUASI_HD void operator()(std::int64_t index) const {
    const int element = static_cast<int>(index % 9);
    const std::int64_t group = index / 9 % n_groups;
    const int s = static_cast<int>(index / 9 / n_groups % nb);
    const std::int64_t local = index / 9 / n_groups / nb;
    const std::int64_t q = point[local];
    int c[3];
    mesh.coordinates(q, c);
    const Complex<double>* e0 = e + (q * nb + s) * nb;
    Complex<double> sum{0.0, 0.0};
    for (int i = group_first[group]; i < group_first[group + 1]; ++i) {
      const int b = block[i];
      const double* phi = tensor + 27 * static_cast<std::int64_t>(b) + element;
      const Complex<double>* x = e0 + first_component[b];
      const Complex<double> inner = phi[0] * x[0] + phi[9] * x[1] + phi[18] * x[2];
      sum += conj(phase(c, cells + 3 * third_cell[b])) * inner;
    }
    const std::int64_t target = group_target[group];
    const std::int64_t matrix = target / (nb * nb);  // box index
    const std::int64_t place = target % (nb * nb) + (element / 3) * nb + element % 3;
    box[((local * box_size + matrix) * nb + s) * nb * nb + place] = sum;
  }
};

/// Rounds FP64 to FP32.
struct RoundComplex {
  const Complex<double>* from;
  Complex<float>* to;
  QUASI_HD void operator()(std::int64_t i) const {
    to[i] = {static_cast<float>(from[i].re), static_cast<float>(from[i].im)};
  }
};

/// The input of factorised_kernel.
template <typename Real>
struct FactorisedArguments {
  Tables3 t;
  RowLists3 lists;
  const Complex<Real>* e;  ///< [n_modes][nb]
  const Complex<Real>*
      a;  ///< [points][n_q][s][nb][nb] A_λ(p), from the point of lists.first_row on
};

/// Computes V = Σ_b e1[b]^(*) Σ_c a[b][c] conj(e2[c]); e1 is conjugated for emission.
/// @tparam kBranches  nb if known at compile time, else 0
template <int kBranches, typename Real>
__device__ inline Complex<Real> contract_matrix(int nb, bool emission, const Complex<Real>* a,
                                                const Complex<Real>* e1, const Complex<Real>* e2) {
  Complex<Real> second[kBranches > 0 ? kBranches : 1];
  if constexpr (kBranches > 0)
    for (int c = 0; c < kBranches; ++c) second[c] = conj(e2[c]);
  Complex<Real> v{0, 0};
  for (int b = 0; b < nb; ++b) {
    Complex<Real> inner{0, 0};
    for (int c = 0; c < nb; ++c)
      inner += a[b * nb + c] * (kBranches > 0 ? second[kBranches > 0 ? c : 0] : conj(e2[c]));
    v += (emission ? conj(e1[b]) : e1[b]) * inner;
  }
  return v;
}

/// Computes the weights of the processes of row lists.first_row + blockIdx.y, one thread a process.
template <int kBranches, typename Real>
__global__ void __launch_bounds__(kThreads) factorised_kernel(FactorisedArguments<Real> g) {
  const Tables3& t = g.t;
  const int nb = kBranches > 0 ? kBranches : t.nb;
  const std::int64_t local_row = blockIdx.y;
  const std::int64_t row = g.lists.first_row + local_row;
  const std::int64_t m0 = t.mode_of_row(row);
  const std::int64_t end = g.lists.end(row);
  const Complex<Real>* a_row =
      g.a + (local_row / nb * t.mesh.size() * nb + local_row % nb) * nb * nb;
  for (std::int64_t i =
           g.lists.begin(row) + blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
       i < end; i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const Process3 process = g.lists.processes[i];
    const bool emission = process.emission();
    const std::int64_t m1 = process.partner();
    const std::int64_t m2 = process.second;
    const std::int64_t p = emission ? t.mesh.minus(m1 / nb) : m1 / nb;
    const Complex<Real> v = contract_matrix<kBranches, Real>(nb, emission, a_row + p * nb * nb * nb,
                                                             g.e + m1 * nb, g.e + m2 * nb);
    double delta = process.weight_per_ps;  // with tetrahedra
    if (t.rules.broadening != Broadening::kTetrahedra) {
      double mismatch;
      double width;
      t.rules.allowed(process.channel(), m0, m1, m2, mismatch, width);
      delta = t.rules.delta_ps(mismatch, width);
    }
    const double product =
        t.rules.omega_rad_ps[m0] * t.rules.omega_rad_ps[m1] * t.rules.omega_rad_ps[m2];
    g.lists.processes[i].weight_per_ps =
        t.rules.prefactor * delta / product * static_cast<double>(norm(v));
  }
}

}  // namespace

FactorisedElements3phCuda::FactorisedElements3phCuda(const ThreePhononProblem& problem,
                                                     const cuda::CublasHandle& cublas)
    : problem_(&problem),
      cublas_(&cublas),
      nb_(problem.n_branches()),
      transform_(make_fc3_transform(problem.fc3, problem.mass_amu, problem.mesh)),
      tensor_(transform_.tensor, "third-order constants"),
      first_component_(transform_.first_component, "third-order atoms"),
      third_cell_(transform_.third_cell, "third-order cells") {
  for (int d = 0; d < 3; ++d)
    axis_phase_[d] = upload_complex(transform_.phase[d], "phases of an axis");
  if (problem.precision == Precision::kMixed) {
    e32_ = upload_rounded(problem.modes->eigenvector, "eigenvectors");
    phase32_ = upload_rounded(transform_.phase[2], "phases of an axis");
  }
  std::vector<int> cells;
  for (const Index3& cell : transform_.third_cells)
    cells.insert(cells.end(), cell.begin(), cell.end());
  cells_ = DeviceBuffer<int>(cells, "third-order cells");
  const BlockGroups groups = group_by_target(transform_);
  n_groups_ = static_cast<std::int64_t>(groups.target.size());
  group_first_ = DeviceBuffer<int>(groups.first, "third-order groups");
  group_target_ = DeviceBuffer<int>(groups.target, "third-order groups");
  sorted_block_ = DeviceBuffer<int>(groups.block, "third-order groups");
}

FactorisedElements3phCuda::PointSizes FactorisedElements3phCuda::point_sizes() const {
  const Index3& extent = transform_.extent;
  const QMesh& mesh = problem_->mesh;
  const std::int64_t x = static_cast<std::int64_t>(nb_) * nb_ * nb_;
  return {.matrices = x,
          .box = transform_.box_size() * x,
          .stage1 = static_cast<std::int64_t>(extent[2]) * extent[1] * mesh.n[0] * x,
          .stage2 = static_cast<std::int64_t>(extent[2]) * mesh.n[1] * mesh.n[0] * x,
          .a = mesh.size() * x};
}

template <typename Real>
FactorisedElements3phCuda::Batch<Real> FactorisedElements3phCuda::make_batch(
    std::int64_t n_points) const {
  const PointSizes size = point_sizes();
  constexpr std::int64_t kMaxGridY = 65535;  // one row a block in the y direction
  const std::int64_t points =
      std::clamp<std::int64_t>(kWorkBytes / (16 * (size.a + size.stage1 + size.stage2 + size.box)),
                               1, std::min<std::int64_t>(n_points, kMaxGridY / nb_));
  constexpr bool kMixed = std::is_same_v<Real, float>;
  Batch<Real> batch{
      .points = points,
      .box = {static_cast<std::size_t>(points * size.box), "contracted constants"},
      .stage1 = {static_cast<std::size_t>(points * size.stage1),
                 "contracted constants along one axis"},
      .stage2 = {static_cast<std::size_t>(points * size.stage2),
                 "contracted constants along two axes"},
      .rounded = {static_cast<std::size_t>(kMixed ? points * size.stage2 : 1),
                  "contracted constants, rounded"},
      .a = {static_cast<std::size_t>(points * size.a), "contracted constants at every q'"}};
  // The contraction writes the targets of blocks only; the rest of the box stays zero.
  batch.box.zero("contracted constants");
  return batch;
}

template <typename Real>
void FactorisedElements3phCuda::contract_first_slot(const DeviceProblem3& device_problem,
                                                    const Points& points,
                                                    const Batch<Real>& batch) const {
  const Tables3& t = device_problem.tables();
  const ContractFirstSlot contract{.mesh = t.mesh,
                                   .nb = nb_,
                                   .phase = device_problem.phase_table(),
                                   .e = t.e,
                                   .point = t.point + points.first,
                                   .n_groups = n_groups_,
                                   .group_first = group_first_.data(),
                                   .group_target = group_target_.data(),
                                   .block = sorted_block_.data(),
                                   .first_component = first_component_.data(),
                                   .third_cell = third_cell_.data(),
                                   .cells = cells_.data(),
                                   .tensor = tensor_.data(),
                                   .box_size = transform_.box_size(),
                                   .box = batch.box.data()};
  cuda::for_each_index(points.count * nb_ * n_groups_ * 9, contract, "contraction with λ");
}

template <typename Real>
void FactorisedElements3phCuda::sum_first_two_axes(const Points& points,
                                                   const Batch<Real>& batch) const {
  const Index3& extent = transform_.extent;
  const int* n = problem_->mesh.n;
  const std::int64_t x = point_sizes().matrices;
  multiply(*cublas_,
           BatchedProduct<double>{.m = n[0],
                                  .n = x,
                                  .k = extent[0],
                                  .a = axis_phase_[0].data(),
                                  .b = batch.box.data(),
                                  .b_stride = extent[0] * x,
                                  .c = batch.stage1.data(),
                                  .c_stride = n[0] * x,
                                  .batch = points.count * extent[2] * extent[1]},
           "Fourier sum along axis 1");
  multiply(*cublas_,
           BatchedProduct<double>{.m = n[1],
                                  .n = n[0] * x,
                                  .k = extent[1],
                                  .a = axis_phase_[1].data(),
                                  .b = batch.stage1.data(),
                                  .b_stride = extent[1] * n[0] * x,
                                  .c = batch.stage2.data(),
                                  .c_stride = static_cast<std::int64_t>(n[1]) * n[0] * x,
                                  .batch = points.count * extent[2]},
           "Fourier sum along axis 2");
}

template <typename Real>
void FactorisedElements3phCuda::sum_last_axis(const Points& points,
                                              const Batch<Real>& batch) const {
  const PointSizes size = point_sizes();
  const int* n = problem_->mesh.n;
  BatchedProduct<Real> product{.m = n[2],
                               .n = static_cast<std::int64_t>(n[1]) * n[0] * size.matrices,
                               .k = transform_.extent[2],
                               .a = nullptr,
                               .b = nullptr,
                               .b_stride = size.stage2,
                               .c = batch.a.data(),
                               .c_stride = size.a,
                               .batch = points.count};
  if constexpr (std::is_same_v<Real, float>) {
    cuda::for_each_index(points.count * size.stage2,
                         RoundComplex{batch.stage2.data(), batch.rounded.data()},
                         "rounding to FP32");
    product.a = phase32_.data();
    product.b = batch.rounded.data();
  } else {
    product.a = axis_phase_[2].data();
    product.b = batch.stage2.data();
  }
  multiply(*cublas_, product, "Fourier sum along axis 3");
}

template <typename Real>
const Complex<Real>* FactorisedElements3phCuda::eigenvectors(
    const DeviceProblem3& device_problem) const {
  if constexpr (std::is_same_v<Real, float>)
    return e32_.data();
  else
    return device_problem.tables().e;
}

template <typename Real>
void FactorisedElements3phCuda::contract_last_slots(const DeviceProblem3& device_problem,
                                                    const RowLists3& lists, std::int64_t n_rows,
                                                    std::int64_t longest,
                                                    const Batch<Real>& batch) const {
  const FactorisedArguments<Real> arguments{device_problem.tables(), lists,
                                            eigenvectors<Real>(device_problem), batch.a.data()};
  const dim3 grid(
      static_cast<unsigned>(std::min<std::int64_t>((longest + kThreads - 1) / kThreads, 256)),
      static_cast<unsigned>(n_rows));
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

template <typename Real>
void FactorisedElements3phCuda::weigh_in_batches(const DeviceProblem3& device_problem,
                                                 const ProcessOffsets3& offsets,
                                                 const RowRange& rows, Process3* processes,
                                                 Progress& progress) const {
  const std::int64_t n_points = (rows.last - rows.first) / nb_;
  const Batch<Real> batch = make_batch<Real>(n_points);
  for (std::int64_t at = 0; at < n_points; at += batch.points) {
    const Points points{rows.first / nb_ + at, std::min(batch.points, n_points - at)};
    progress.report("scattering 3ph", points.first,
                    static_cast<std::int64_t>(problem_->rows.size()));
    contract_first_slot(device_problem, points, batch);
    sum_first_two_axes(points, batch);
    sum_last_axis(points, batch);
    RowLists3 lists = offsets.lists(rows.first, processes);
    lists.first_row += at * nb_;
    const std::int64_t n_rows = points.count * nb_;
    std::int64_t longest = 0;
    for (std::int64_t row = lists.first_row; row < lists.first_row + n_rows; ++row)
      longest = std::max(longest, offsets.size(row, row + 1));
    if (longest > 0) contract_last_slots(device_problem, lists, n_rows, longest, batch);
  }
}

void FactorisedElements3phCuda::weigh_processes(const DeviceProblem3& device_problem,
                                                const ProcessOffsets3& offsets,
                                                const RowRange& rows, Process3* processes,
                                                Progress& progress) const {
  if (problem_->precision == Precision::kMixed)
    weigh_in_batches<float>(device_problem, offsets, rows, processes, progress);
  else
    weigh_in_batches<double>(device_problem, offsets, rows, processes, progress);
}

}  // namespace quasi::thermal::cuda3ph
