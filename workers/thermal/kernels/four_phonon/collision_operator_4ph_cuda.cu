#include "workers/thermal/kernels/four_phonon/collision_operator_4ph_cuda.cuh"

#include <cub/cub.cuh>

#include <cmath>
#include <cstring>

#include "workers/backend/device/launch_cuda.cuh"

namespace quasi::thermal::cuda4ph {

namespace {

using cuda::DeviceBuffer;

constexpr double kSumsInWholeUnits = 2.0;  ///< first number of a state of this back end

/// Units such that no sum of a row whose Σ|Γ| is `size` reaches 2^62: a process counts at most
/// thrice. A row that is guessed to be empty gets a unit that any process shows to be too small.
double scale_for(double size) {
  return size > 0.0 ? std::ldexp(1.0, 60) / size : std::ldexp(1.0, 900);
}

/// Σ Γ and Σ|Γ| of each row, added in order of place and sign.
struct AddCollisionPlaces {
  const double* partial;  ///< [places][rows][2 signs][2]
  std::int64_t n_rows;
  int places;
  double* total;  ///< [rows][2]

  QUASI_HD void operator()(std::int64_t index) const {
    double value = total[index];
    for (int place = 0; place < places; ++place) {
      const double* from = partial + (place * n_rows + index / 2) * 4 + index % 2;
      value += from[0];
      value += from[2];
    }
    total[index] = value;
  }
};

/// Converts whole units to numbers, in place.
struct UnitsToNumbers {
  unsigned long long* matrix;
  std::int64_t n_modes;
  const double* scale;

  QUASI_HD void operator()(std::int64_t index) const {
    const auto units = static_cast<long long>(matrix[index]);
    reinterpret_cast<double*>(matrix)[index] = static_cast<double>(units) / scale[index / n_modes];
  }
};

/// One row of M f a block.
__global__ void __launch_bounds__(256)
    apply_matrix(const double* matrix, std::int64_t n_modes, const double* f, double* result) {
  using Reduce = cub::BlockReduce<double, 256>;
  __shared__ typename Reduce::TempStorage storage[3];
  const double* m = matrix + blockIdx.x * n_modes;
  double sum[3] = {};
  for (std::int64_t mode = threadIdx.x; mode < n_modes; mode += 256)
    for (int d = 0; d < 3; ++d) sum[d] += m[mode] * f[3 * mode + d];
  for (int d = 0; d < 3; ++d) {
    const double value = Reduce(storage[d]).Sum(sum[d]);
    if (threadIdx.x == 0) result[3 * blockIdx.x + d] = value;
  }
}

}  // namespace

void CollisionOperator4ph::begin(const CollisionRequest4ph& request, int n_branches,
                                 std::int64_t n_modes, std::int32_t places) {
  request_ = request;
  n_branches_ = n_branches;
  n_modes_ = n_modes;
  scale_host_.clear();
  // A guess of the rows' size has room for sixteen times as much.
  for (const double size : request.row_size) scale_host_.push_back(scale_for(16.0 * size));
  const auto n_rows = static_cast<std::size_t>(rows());
  const std::size_t elements = n_rows * static_cast<std::size_t>(n_modes_);
  if (matrix_.size() != elements) {
    matrix_ = {};  // free the old one first
    matrix_ = DeviceBuffer<unsigned long long>(elements, "collision operator of four phonons");
  }
  out_scattering_ = DeviceBuffer<double>(2 * n_rows, "sums of rows");
  partial_ = DeviceBuffer<double>(4 * n_rows * static_cast<std::size_t>(places), "sums of rows");
  start();
}

CollisionTarget CollisionOperator4ph::target(const double* occupation) const {
  return {matrix_.data(), scale_.data(), {occupation, request_.symmetric}};
}

void CollisionOperator4ph::add_places(std::int32_t places, cudaStream_t stream) {
  cuda::for_each_index(2 * rows(),
                       AddCollisionPlaces{partial_.data(), rows(), places, out_scattering_.data()},
                       "sums of rows", stream);
}

std::vector<double> CollisionOperator4ph::state() const {
  std::vector<double> state{kSumsInWholeUnits};
  state.insert(state.end(), scale_host_.begin(), scale_host_.end());
  const std::vector<double> out = cuda::to_host(out_scattering_, "sums of rows");
  state.insert(state.end(), out.begin(), out.end());
  const std::vector<unsigned long long> units = cuda::to_host(matrix_, "collision operator");
  const std::size_t at = state.size();
  state.resize(at + units.size());
  std::memcpy(state.data() + at, units.data(), units.size() * sizeof(double));
  return state;
}

bool CollisionOperator4ph::restore(const double* state, std::size_t count) {
  const std::size_t n_rows = scale_host_.size();
  if (count != 1 + 3 * n_rows + matrix_.size() || state[0] != kSumsInWholeUnits) return false;
  scale_host_.assign(state + 1, state + 1 + n_rows);
  scale_ = DeviceBuffer<double>(scale_host_, "units of rows");
  out_scattering_.copy_from(state + 1 + n_rows, 2 * n_rows, "sums of rows");
  matrix_.copy_from(reinterpret_cast<const unsigned long long*>(state + 1 + 3 * n_rows),
                    matrix_.size(), "collision operator");
  cuda::check(cudaDeviceSynchronize(), "collision operator of four phonons");
  return true;
}

std::vector<double> CollisionOperator4ph::finish() {
  const std::vector<double> sums = cuda::to_host(out_scattering_, "sums of rows");
  bool fits = true;
  std::vector<double> out;
  for (std::size_t row = 0; row < scale_host_.size(); ++row) {
    out.push_back(sums[2 * row]);
    const double needed = scale_for(sums[2 * row + 1]);
    if (sums[2 * row + 1] == 0.0 || needed >= scale_host_[row]) continue;
    fits = false;
    scale_host_[row] = needed;
  }
  if (!fits) {
    start();
    return {};
  }
  cuda::for_each_index(static_cast<std::int64_t>(matrix_.size()),
                       UnitsToNumbers{matrix_.data(), n_modes_, scale_.data()},
                       "collision operator");
  return out;
}

std::vector<double> CollisionOperator4ph::apply(const std::vector<double>& f) const {
  const DeviceBuffer<double> field(f, "field");
  DeviceBuffer<double> result(static_cast<std::size_t>(3 * rows()), "in-scattering");
  apply_matrix<<<static_cast<unsigned>(rows()), 256>>>(
      reinterpret_cast<const double*>(matrix_.data()), n_modes_, field.data(), result.data());
  cuda::check_launch("collision operator");
  return cuda::to_host(result, "in-scattering");
}

void CollisionOperator4ph::start() {
  matrix_.zero("collision operator of four phonons");
  out_scattering_.zero("sums of rows");
  scale_ = DeviceBuffer<double>(scale_host_, "units of rows");
}

}  // namespace quasi::thermal::cuda4ph
