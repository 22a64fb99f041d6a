#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"
#include "workers/gw/kernels/peer_copy.cuh"
#include "workers/gw/kernels/polarizability/chi_pairs_cuda.cuh"
#include "workers/gw/kernels/polarizability/partial_chi_cuda.cuh"
#include "workers/gw/kernels/pole_sums/gpp_diagonal_cpu.hpp"
#include "workers/gw/kernels/pole_sums/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/gpp_offdiagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/imaginary_poles_cuda.cuh"
#include "workers/gw/kernels/staged_copy.cuh"

namespace quasi::gw {
namespace {

using cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

const double2* there(const Cplx* data) { return reinterpret_cast<const double2*>(data); }

/// out[p][g] = w_p m[p][g] for rows p of a chunk.
struct ScaleRows {
  const double2* m;
  const double2* weight;
  std::int64_t n_g;
  double2* out;
  __device__ void operator()(std::int64_t i) const {
    const double2 w = weight[i / n_g];
    const double2 a = m[i];
    out[i] = {fma(w.x, a.x, -w.y * a.y), fma(w.x, a.y, w.y * a.x)};
  }
};

/// out[f][l][g] = m[l][g] d_f(g), rows l of m `stride` apart.
struct ScaleByDiagonals {
  const double2* m;
  const double2* diagonal;
  std::int64_t n_left, n_g, stride;
  double2* out;
  __device__ void operator()(std::int64_t i) const {
    const std::int64_t g = i % n_g, l = i / n_g % n_left, f = i / n_g / n_left;
    const double2 d = diagonal[f * n_g + g];
    const double2 a = m[l * stride + g];
    out[i] = {fma(d.x, a.x, -d.y * a.y), fma(d.x, a.y, d.y * a.x)};
  }
};

/// form[p] = Σ_g right[p][g] conj(m[p][g]). One block a pair, fixed tree.
__global__ void dot_rows(const double2* right, const double2* m, std::int64_t n_g, double2* form) {
  __shared__ double2 lane[128];
  double2 sum{0.0, 0.0};
  for (std::int64_t g = threadIdx.x; g < n_g; g += blockDim.x) {
    const double2 a = right[blockIdx.x * n_g + g];
    const double2 b = m[blockIdx.x * n_g + g];
    sum = {sum.x + a.x * b.x + a.y * b.y, sum.y + a.y * b.x - a.x * b.y};
  }
  lane[threadIdx.x] = sum;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      lane[threadIdx.x].x += lane[threadIdx.x + half].x;
      lane[threadIdx.x].y += lane[threadIdx.x + half].y;
    }
  }
  if (threadIdx.x == 0) form[blockIdx.x] = lane[0];
}

/// sum[p] = Σ_g |m[p][g]|² v[g]. One block a pair, fixed tree.
__global__ void norm_rows(const double2* m, const double* v, std::int64_t n_g, double* sum) {
  __shared__ double lane[128];
  double mine = 0.0;
  for (std::int64_t g = threadIdx.x; g < n_g; g += blockDim.x) {
    const double2 a = m[blockIdx.x * n_g + g];
    mine += (a.x * a.x + a.y * a.y) * v[g];
  }
  lane[threadIdx.x] = mine;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sum[blockIdx.x] = lane[0];
}

struct CudaPoleModel : LoadedPoleModel {
  Device device;
  DeviceBuffer<double2> strength;
  DeviceBuffer<double> pole_ry;
  std::int64_t n_g = 0;
  bool folded = false;
  FinitePoles finite_poles;
  PoleRules rules;
};

class CudaGwKernels : public GwKernels {
 public:
  explicit CudaGwKernels(const Device& device) : device_(device) {
    use_device(device);
    stream_ = quasi::cuda::Stream(quasi::cuda::StreamPriority::kNormal);
    preparation_ = quasi::cuda::Stream(quasi::cuda::StreamPriority::kUrgent);
    blas_ = quasi::cuda::CublasHandle(stream_.get());
    solver_ = quasi::cuda::CusolverHandle(stream_.get());
  }
  const Device& device() const override { return device_; }

  void set_box(std::array<int, 3> box) override {
    use_device(device_);
    ++epoch_;
    pairs_.set_box(box);
    products_ = {};
    n_left_ = n_right_ = n_g_ = 0;
  }
  void load_bands(Side side, View<const Cplx, 2> coefficients,
                  View<const std::int32_t, 1> box_index) override {
    use_device(device_);
    pairs_.load_bands(side, coefficients, box_index, staging_, stream_.get());
  }
  void load_sphere(View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor) override {
    use_device(device_);
    ++epoch_;
    pairs_.load_sphere(box_index, factor);
  }
  void pair_products(BandRange left, BandRange right) override {
    use_device(device_);
    resize_products(left.size(), right.size(), pairs_.n_g());
    pairs_.run(left, right, products_.data(), stream_.get());
    check(cudaStreamSynchronize(stream_.get()), "pair products");
  }
  void load_pair_products(View<const Cplx, 3> products) override {
    use_device(device_);
    resize_products(products.extent[0], products.extent[1], products.extent[2]);
    products_.copy_from(there(products.data), static_cast<std::size_t>(products.size()),
                        "pair products");
    check(cudaDeviceSynchronize(), "pair products");
  }
  void read_pair_products(View<Cplx, 3> products) const override {
    use_device(device_);
    to_host(products_.data(), n_pairs() * n_g_, products.data, "pair products");
  }
  void replace_plane_wave(std::int64_t g, View<const Cplx, 2> values) override {
    use_device(device_);
    check(cudaMemcpy2D(products_.data() + g, static_cast<std::size_t>(n_g_) * sizeof(double2),
                       values.data, sizeof(double2), sizeof(double2),
                       static_cast<std::size_t>(n_pairs()), cudaMemcpyHostToDevice),
          "limit q -> 0");
    quasi::cuda::finish_default_stream("limit q -> 0");
  }
  void project_pair_products(View<const Cplx, 2> basis) override {
    use_device(device_);
    const std::int64_t n_basis = basis.extent[1];
    const auto b = to_device(basis.data, basis.size(), "subspace basis");
    DeviceBuffer<double2> projected(static_cast<std::size_t>(n_pairs() * n_basis),
                                    "projected pair products");
    cuda::multiply(blas_.get(), cuda::Products::kNative, n_pairs(), n_basis, n_g_, 1.0,
                   {products_.data(), n_g_}, {b.data(), n_basis}, 0.0, projected.data(), n_basis);
    check(cudaStreamSynchronize(stream_.get()), "projected pair products");
    products_ = std::move(projected);
    n_g_ = n_basis;
  }

  void start_chi(std::int64_t n_g) override {
    use_device(device_);
    chi_ = DeviceBuffer<double2>(static_cast<std::size_t>(n_g * n_g), "polarizability");
    chi_.zero("polarizability", stream_.get());
    chi_real_ = {};
    chi_w_ = {};
    chi_n_ = n_g;
    chi_w_n_ = 0;
  }

  PairsToChiReport add_pairs_to_chi(BandRange left, BandRange right, View<const double, 2> weight,
                                    View<const Cplx, 3> head,
                                    const PairsToChiOptions& options) override {
    use_device(device_);
    products_ = {};  // room for the blocks
    n_left_ = n_right_ = n_g_ = 0;
    const bool real = options.use_real && pairs_.real() &&
                      std::all_of(head.data, head.data + (head.data ? head.size() : 0),
                                  [](const Cplx& m) { return m.imag() == 0.0; });
    if (real && chi_real_.size() == 0) {
      chi_real_ = DeviceBuffer<double>(static_cast<std::size_t>(chi_n_ * chi_n_), "polarizability");
      chi_real_.zero("polarizability", stream_.get());
    }
    const std::int64_t block_bytes =
        options.block_bytes > 0
            ? options.block_bytes
            : std::min<std::int64_t>(std::int64_t{4} << 30, workspace_bytes() / 4);
    return cuda::add_pairs_to_chi_cuda(
        {.pairs = pairs_,
         .transforms = options.overlapped ? preparation_.get() : stream_.get(),
         .products = stream_.get(),
         .blas = blas_.get(),
         .block_bytes = block_bytes,
         .real = real},
        left, right, weight.data, head, chi_.data(), chi_real_.data());
  }

  void accumulate_chi(View<const double, 2> weight) override {
    use_device(device_);
    double sign = 0.0;
    std::vector<double2> root(static_cast<std::size_t>(n_pairs()));
    for (std::int64_t p = 0; p < n_pairs(); ++p) {
      const double w = weight.data[p];
      if (w * sign < 0.0) throw std::logic_error("accumulate_chi: weights of both signs");
      if (w != 0.0) sign = w > 0.0 ? 1.0 : -1.0;
      root[static_cast<std::size_t>(p)] = {std::sqrt(std::abs(w)), 0.0};
    }
    if (sign == 0.0) return;
    for_each_scaled_chunk(root, [&](std::int64_t, std::int64_t count, const double2* scaled) {
      cuda::add_hermitian(blas_.get(), n_g_, count, sign, scaled, chi_.data());
    });
  }

  void start_chi_frequencies(std::int64_t n_frequencies, std::int64_t n) override {
    use_device(device_);
    chi_w_ = DeviceBuffer<double2>(static_cast<std::size_t>(n_frequencies * n * n),
                                   "polarizability at frequencies");
    chi_w_.zero("polarizability at frequencies", stream_.get());
    chi_w_n_ = n;
  }

  void accumulate_chi_frequencies(View<const Cplx, 3> weight) override {
    use_device(device_);
    const double2 one{1.0, 0.0};
    const int n = static_cast<int>(n_g_);
    for (std::int64_t i = 0; i < weight.extent[0]; ++i) {
      const double2* w = there(weight.data + i * n_pairs());
      for_each_scaled_chunk(
          {w, w + n_pairs()}, [&](std::int64_t first, std::int64_t count, const double2* scaled) {
            // Column-major (G', G): Σ_p w M(G') M*(G).
            check(cublasZgemm(blas_.get(), CUBLAS_OP_N, CUBLAS_OP_C, n, n, static_cast<int>(count),
                              &one, scaled, n, products_.data() + first * n_g_, n, &one,
                              chi_w_.data() + i * n_g_ * n_g_, n),
                  "polarizability at frequencies");
          });
    }
  }

  std::unique_ptr<PartialChi> take_chi() override {
    use_device(device_);
    if (chi_real_.size() > 0)
      cuda::move_real_part(chi_.data(), chi_real_.data(), chi_n_, stream_.get());
    check(cudaStreamSynchronize(stream_.get()), "polarizability");
    const ChiShape shape = chi_shape(chi_n_, chi_w_.size(), chi_w_n_);
    auto taken = std::make_unique<cuda::CudaChi>(device_, shape, std::move(chi_), std::move(chi_w_),
                                                 staging_, stream_.get());
    chi_ = {};
    chi_w_ = {};
    chi_real_ = {};
    chi_n_ = chi_w_n_ = 0;
    return taken;
  }

  std::unique_ptr<PartialChi> load_chi(const ChiShape& shape, const Cplx* values) override {
    use_device(device_);
    auto fixed = to_device(values, shape.static_size(), "polarizability");
    auto further = to_device(values + shape.static_size(), shape.size() - shape.static_size(),
                             "polarizability at frequencies");
    return std::make_unique<cuda::CudaChi>(device_, shape, std::move(fixed), std::move(further),
                                           staging_, stream_.get());
  }

  void invert_dielectric(const PartialChi& chi, std::int64_t frequency, const Inversion& how,
                         View<Cplx, 2> inverse) override {
    use_device(device_);
    const std::int64_t n = inverse.extent[0];
    DeviceBuffer<double2> uploaded;
    const double2* from = nullptr;
    if (const auto* there = dynamic_cast<const cuda::CudaChi*>(&chi)) {
      if (there->device().index != device_.index)
        throw std::logic_error("χ lies on another device than its inversion");
      from = there->matrix(frequency);
    } else {
      uploaded = to_device(dynamic_cast<const HostChi&>(chi).values() + frequency * n * n, n * n,
                           "polarizability");
      from = uploaded.data();
    }
    const DeviceBuffer<double> coulomb(std::vector<double>(how.coulomb.data, how.coulomb.data + n),
                                       "Coulomb interaction");
    check(cudaDeviceSynchronize(), "Coulomb interaction");
    DeviceBuffer<double2> epsilon(static_cast<std::size_t>(n * n), "dielectric matrix");
    cuda::make_dielectric(from, frequency == 0, coulomb.data(), how.positive, n, epsilon.data(),
                          stream_.get());
    if (how.definite)
      cuda::invert_positive_definite(solver_.get(), stream_.get(), epsilon.data(), n);
    else
      epsilon = cuda::invert_general(solver_.get(), stream_.get(), epsilon.data(), n);
    cuda::scale_inverse(coulomb.data(), how.positive, n, epsilon.data(), stream_.get());
    to_host(epsilon.data(), n * n, inverse.data, "inverse dielectric matrix");
  }

  void load_plasmon_pole(const PlasmonPoleView& model, const PoleRules& rules) override {
    use_device(device_);
    forget_poles();
    auto loaded = std::make_shared<CudaPoleModel>();
    loaded->device = device_;
    loaded->n_g = model.pole_ry.extent[0];
    loaded->strength =
        to_device(model.strength.data, model.strength.size(), "plasmon-pole strengths");
    loaded->pole_ry =
        DeviceBuffer<double>(static_cast<std::size_t>(model.pole_ry.size()), "plasmon poles");
    staging_.to_device(model.pole_ry.data,
                       model.pole_ry.size() * static_cast<std::int64_t>(sizeof(double)),
                       loaded->pole_ry.data(), stream_.get(), "plasmon poles");
    loaded->folded = is_hermitian(model);
    loaded->finite_poles = finite_poles(model);
    loaded->rules = rules;
    use_poles(std::move(loaded));
  }
  std::shared_ptr<const LoadedPoleModel> plasmon_pole() const override { return poles_; }
  void take_plasmon_pole(const std::shared_ptr<const LoadedPoleModel>& model) override {
    use_device(device_);
    auto other = std::dynamic_pointer_cast<const CudaPoleModel>(model);
    if (other == nullptr) throw std::logic_error("a pole model of another back end");
    forget_poles();
    if (other->device.index == device_.index) {
      use_poles(std::move(other));
      return;
    }
    constexpr const char* kWhat = "plasmon poles of another device";
    auto copy = std::make_shared<CudaPoleModel>();
    copy->device = device_;
    copy->n_g = other->n_g;
    copy->folded = other->folded;
    copy->finite_poles = other->finite_poles;
    copy->rules = other->rules;
    copy->strength = DeviceBuffer<double2>(other->strength.size(), kWhat);
    copy->pole_ry = DeviceBuffer<double>(other->pole_ry.size(), kWhat);
    const auto bring = [&](const auto& from, auto& to) {
      cuda::peer_copy(to.data(), device_, from.data(), other->device,
                      static_cast<std::int64_t>(from.size() * sizeof(*from.data())), stream_.get(),
                      kWhat);
    };
    bring(other->strength, copy->strength);
    bring(other->pole_ry, copy->pole_ry);
    check(cudaStreamSynchronize(stream_.get()), kWhat);
    use_poles(std::move(copy));
  }
  void load_imaginary_poles(View<const ImaginaryPole, 1> poles) override {
    use_device(device_);
    imaginary_ = DeviceBuffer<ImaginaryPole>(static_cast<std::size_t>(poles.size()),
                                             "imaginary plasmon poles");
    imaginary_.copy_from(poles.data, imaginary_.size(), "imaginary plasmon poles");
    check(cudaDeviceSynchronize(), "imaginary plasmon poles");
  }

  void sigma_diagonal(View<const double, 3> x_ry, View<const double, 1> occupation, double weight,
                      View<Cplx, 2> total, View<Cplx, 2> sx) override {
    use_device(device_);
    const auto wanted = sx.data ? ScreenedExchange::kWanted : ScreenedExchange::kNotWanted;
    for (const PoleGroup& group : make_pole_groups(x_ry, occupation, weight, rules_, wanted)) {
      const auto sums = cuda::gpp_diagonal_cuda(model_, rules_, group, products_.data(), n_left_,
                                                n_right_, stream_.get());
      for (std::int64_t l = 0; l < n_left_; ++l)
        for (int k = 0; k < group.n_energies; ++k) {
          const auto at = static_cast<std::size_t>(l * group.n_energies + k);
          total(l, group.first_energy + k) += sums.total[at];
          if (sx.data) sx(l, group.first_energy + k) += sums.sx[at];
        }
    }
  }

  void sigma_diagonal_slope(View<const double, 2> x_ry, View<const double, 1> occupation,
                            double weight, View<Cplx, 1> total, View<Cplx, 1> sx,
                            View<Cplx, 1> slope) override {
    use_device(device_);
    const auto wanted = sx.data ? ScreenedExchange::kWanted : ScreenedExchange::kNotWanted;
    const auto sums = cuda::gpp_diagonal_cuda(
        model_, rules_, make_slope_group(x_ry, occupation, weight, rules_, wanted),
        products_.data(), n_left_, n_right_, stream_.get());
    for (std::int64_t l = 0; l < n_left_; ++l) {
      total(l) += sums.total[static_cast<std::size_t>(2 * l)];
      slope(l) += sums.total[static_cast<std::size_t>(2 * l + 1)];
      if (sx.data) sx(l) += sums.sx[static_cast<std::size_t>(2 * l)];
    }
  }

  void sigma_diagonal_imaginary(View<const double, 3> x_ry, View<const double, 1> occupation,
                                double weight, View<Cplx, 2> total, View<Cplx, 2> sx,
                                View<Cplx, 1> slope) override {
    use_device(device_);
    cuda::add_imaginary_poles_cuda(imaginary_.data(), static_cast<std::int64_t>(imaginary_.size()),
                                   rules_, products_.data(), n_g_, x_ry, occupation, weight, total,
                                   sx, slope, stream_.get());
  }

  OffDiagonalReport sigma_offdiagonal(View<const double, 1> energies_ry,
                                      View<const double, 1> band_ry,
                                      View<const double, 1> occupation, double weight,
                                      const OffDiagonalOptions& options,
                                      View<Cplx, 3> sigma) override {
    use_device(device_);
    OffDiagonalPlan plan = plan_offdiagonal(energies_ry, band_ry, occupation, rules_, options,
                                            finite_poles_.min_ry, finite_poles_.max_ry);
    return cuda::add_gpp_offdiagonal_cuda({model_, rules_, products_.data(), n_left_, n_right_},
                                          plan, energies_ry, band_ry, occupation, weight, options,
                                          workspace_bytes(),
                                          {stream_.get(), preparation_.get(), blas_.get()}, sigma);
  }

  void weighted_norms(View<const double, 1> v, View<double, 2> sum) override {
    use_device(device_);
    const DeviceBuffer<double> there(std::vector<double>(v.data, v.data + n_g_), "weighted norms");
    DeviceBuffer<double> values(static_cast<std::size_t>(n_pairs()), "weighted norms");
    check(cudaDeviceSynchronize(), "weighted norms");
    norm_rows<<<static_cast<unsigned>(n_pairs()), 128, 0, stream_.get()>>>(
        products_.data(), there.data(), n_g_, values.data());
    check_launch("weighted norms");
    check(cudaStreamSynchronize(stream_.get()), "weighted norms");
    const auto found = quasi::cuda::to_host(values, "weighted norms");
    std::copy(found.begin(), found.end(), sum.data);
  }

  void quadratic_forms(View<const Cplx, 2> matrix, View<Cplx, 2> form) override {
    use_device(device_);
    const auto w = to_device(matrix.data, matrix.size(), "matrix of quadratic forms");
    DeviceBuffer<double2> values(static_cast<std::size_t>(n_pairs()), "quadratic forms");
    const std::int64_t chunk = rows_that_fit("quadratic forms");
    DeviceBuffer<double2> right(static_cast<std::size_t>(chunk * n_g_), "quadratic forms");
    for (std::int64_t first = 0; first < n_pairs(); first += chunk) {
      const std::int64_t count = std::min(chunk, n_pairs() - first);
      const double2* m = products_.data() + first * n_g_;
      cuda::multiply(blas_.get(), cuda::Products::kNative, count, n_g_, n_g_, 1.0, {m, n_g_},
                     {w.data(), n_g_}, 0.0, right.data(), n_g_);
      dot_rows<<<static_cast<unsigned>(count), 128, 0, stream_.get()>>>(right.data(), m, n_g_,
                                                                        values.data() + first);
      check_launch("quadratic forms");
    }
    check(cudaStreamSynchronize(stream_.get()), "quadratic forms");
    to_host(values.data(), n_pairs(), form.data, "quadratic forms");
  }

  void quadratic_form_matrix(View<const Cplx, 2> matrix, View<const double, 2> weight,
                             View<Cplx, 3> sum) override {
    use_device(device_);
    constexpr const char* kWhat = "quadratic forms";
    const auto w = to_device(matrix.data, matrix.size(), kWhat);
    auto total = to_device(sum.data, sum.size(), kWhat);
    const DeviceBuffer<double> factor(std::vector<double>(weight.data, weight.data + weight.size()),
                                      kWhat);
    DeviceBuffer<double2> right(static_cast<std::size_t>(n_left_ * n_g_), kWhat);
    DeviceBuffer<double2> of_band(static_cast<std::size_t>(n_left_ * n_left_), kWhat);
    check(cudaDeviceSynchronize(), kWhat);
    const double one = 1.0;
    const int width = static_cast<int>(2 * n_left_ * n_left_),
              n_e = static_cast<int>(sum.extent[0]);
    for (std::int64_t n = 0; n < n_right_; ++n) {
      // Rows l of one band are n_right·n_g apart.
      const cuda::DeviceMatrix m{products_.data() + n * n_g_, n_right_ * n_g_};
      cuda::multiply(blas_.get(), cuda::Products::kNative, n_left_, n_g_, n_g_, 1.0, m,
                     {w.data(), n_g_}, 0.0, right.data(), n_g_);
      cuda::multiply_adjoint(blas_.get(), {.m = n_left_,
                                           .n = n_left_,
                                           .k = n_g_,
                                           .alpha = 1.0,
                                           .beta = 0.0,
                                           .a = {right.data(), n_g_},
                                           .b = m,
                                           .c = of_band.data(),
                                           .c_stride = n_left_,
                                           .a_step = 0,
                                           .b_step = 0,
                                           .c_step = 0,
                                           .count = 1});
      // Σ[e] += w[e] D on both parts of all (l, m).
      check(cublasDger(blas_.get(), width, n_e, &one,
                       reinterpret_cast<const double*>(of_band.data()), 1, factor.data() + n,
                       static_cast<int>(n_right_), reinterpret_cast<double*>(total.data()), width),
            kWhat);
    }
    check(cudaStreamSynchronize(stream_.get()), kWhat);
    to_host(total.data(), sum.size(), sum.data, kWhat);
  }

  void diagonal_form_matrix(View<const Cplx, 2> diagonal, View<const double, 3> weight,
                            View<Cplx, 3> sum) override {
    use_device(device_);
    constexpr const char* kWhat = "diagonal forms";
    // Not what happens to be free: products of other sizes may round differently.
    constexpr std::int64_t kScratchBytes = std::int64_t{1} << 29;
    const std::int64_t n_f = diagonal.extent[0], n_e = sum.extent[0], square = n_left_ * n_left_;
    const std::int64_t chunk = std::clamp<std::int64_t>(kScratchBytes / (16 * n_left_ * n_g_), 1,
                                                        std::max<std::int64_t>(n_f, 1));
    const auto d = to_device(diagonal.data, diagonal.size(), kWhat);
    auto total = to_device(sum.data, sum.size(), kWhat);
    const DeviceBuffer<double> factor(std::vector<double>(weight.data, weight.data + weight.size()),
                                      kWhat);
    DeviceBuffer<double2> scaled(static_cast<std::size_t>(chunk * n_left_ * n_g_), kWhat),
        of_band(static_cast<std::size_t>(chunk * square), kWhat);
    check(cudaDeviceSynchronize(), kWhat);
    const double one = 1.0;
    const int width = static_cast<int>(2 * square), energies = static_cast<int>(n_e);
    for (std::int64_t n = 0; n < n_right_; ++n)
      for (std::int64_t first = 0; first < n_f; first += chunk) {
        const std::int64_t count = std::min(chunk, n_f - first);
        const cuda::DeviceMatrix m{products_.data() + n * n_g_, n_right_ * n_g_};
        for_each_index(count * n_left_ * n_g_,
                       ScaleByDiagonals{m.data, d.data() + first * n_g_, n_left_, n_g_, m.stride,
                                        scaled.data()},
                       kWhat, stream_.get());
        cuda::multiply_adjoint(blas_.get(), {.m = count * n_left_,
                                             .n = n_left_,
                                             .k = n_g_,
                                             .alpha = 1.0,
                                             .beta = 0.0,
                                             .a = {scaled.data(), n_g_},
                                             .b = m,
                                             .c = of_band.data(),
                                             .c_stride = n_left_,
                                             .a_step = 0,
                                             .b_step = 0,
                                             .c_step = 0,
                                             .count = 1});
        // Σ[e] += Σ_f w[f][e] D[f] on both parts of all (l, m); column-major (width, n_e).
        check(cublasDgemm(blas_.get(), CUBLAS_OP_N, CUBLAS_OP_T, width, energies,
                          static_cast<int>(count), &one,
                          reinterpret_cast<const double*>(of_band.data()), width,
                          factor.data() + (n * n_f + first) * n_e, energies, &one,
                          reinterpret_cast<double*>(total.data()), width),
              kWhat);
      }
    check(cudaStreamSynchronize(stream_.get()), kWhat);
    to_host(total.data(), sum.size(), sum.data, kWhat);
  }

  void multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                           View<Cplx, 2> product) override {
    use_device(device_);
    constexpr const char* kWhat = "matrix elements of the velocity";
    const int m = static_cast<int>(a.extent[0]), n = static_cast<int>(b.extent[0]),
              inner = static_cast<int>(a.extent[1]);
    const auto left = to_device(a.data, a.size(), kWhat),
               right = to_device(b.data, b.size(), kWhat);
    DeviceBuffer<double2> found(static_cast<std::size_t>(product.size()), kWhat);
    const double2 one{1.0, 0.0}, zero{0.0, 0.0};
    // Column-major (n, m): Bᵀ of the transposed view times A.
    check(cublasZgemm(blas_.get(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, inner, &one, right.data(), inner,
                      left.data(), inner, &zero, found.data(), n),
          kWhat);
    to_host(found.data(), product.size(), product.data, kWhat);
  }

  void invert_positive_definite(View<Cplx, 2> matrix) override {
    use_device(device_);
    auto a = to_device(matrix.data, matrix.size(), "matrix to invert");
    cuda::invert_positive_definite(solver_.get(), stream_.get(), a.data(), matrix.extent[0]);
    check(cudaStreamSynchronize(stream_.get()), "matrix to invert");
    to_host(a.data(), matrix.size(), matrix.data, "inverse matrix");
  }
  void invert_general(View<Cplx, 2> matrix) override {
    use_device(device_);
    auto a = to_device(matrix.data, matrix.size(), "matrix to invert");
    const auto inverse =
        cuda::invert_general(solver_.get(), stream_.get(), a.data(), matrix.extent[0]);
    to_host(inverse.data(), matrix.size(), matrix.data, "inverse matrix");
  }
  void eigen_hermitian(View<const Cplx, 2> matrix, View<double, 1> values,
                       View<Cplx, 2> vectors) override {
    use_device(device_);
    bool real = true;
#pragma omp parallel for schedule(static) reduction(&& : real)
    for (std::int64_t i = 0; i < matrix.size(); ++i) real = real && matrix.data[i].imag() == 0.0;
    auto a = to_device(matrix.data, matrix.size(), "matrix to diagonalise");
    const auto all =
        real ? cuda::eigen_symmetric(solver_.get(), stream_.get(), a.data(), matrix.extent[0],
                                     values.extent[0])
             : cuda::eigen_hermitian(solver_.get(), stream_.get(), a.data(), matrix.extent[0]);
    std::copy(all.begin(), all.begin() + values.extent[0], values.data);
    to_host(a.data(), vectors.size(), vectors.data, "eigenvectors");
  }

 private:
  std::int64_t n_pairs() const { return n_left_ * n_right_; }

  /// Before another model takes its room.
  void forget_poles() {
    poles_ = {};
    model_ = {};
    imaginary_ = {};
  }
  void use_poles(std::shared_ptr<const CudaPoleModel> loaded) {
    model_ = {.strength = loaded->strength.data(),
              .pole_ry = loaded->pole_ry.data(),
              .n_g = loaded->n_g,
              .folded = loaded->folded};
    finite_poles_ = loaded->finite_poles;
    rules_ = loaded->rules;
    poles_ = std::move(loaded);
  }

  DeviceBuffer<double2> to_device(const Cplx* data, std::int64_t count, const char* what) {
    DeviceBuffer<double2> buffer(static_cast<std::size_t>(count), what);
    staging_.to_device(data, count * static_cast<std::int64_t>(sizeof(Cplx)), buffer.data(),
                       stream_.get(), what);
    return buffer;
  }
  void to_host(const double2* from, std::int64_t count, Cplx* to, const char* what) const {
    check(cudaStreamSynchronize(stream_.get()), what);
    staging_.to_host(from, count * static_cast<std::int64_t>(sizeof(Cplx)), to, stream_.get(),
                     what);
  }

  void resize_products(std::int64_t n_left, std::int64_t n_right, std::int64_t n_g) {
    const auto size = static_cast<std::size_t>(n_left * n_right * n_g);
    if (products_.size() < size || products_.size() > 2 * size) {
      products_ = {};
      products_ = DeviceBuffer<double2>(size, "pair products");
    }
    n_left_ = n_left;
    n_right_ = n_right;
    n_g_ = n_g;
  }

  /// What a call may take beside what is resident; the rest is the libraries'.
  std::int64_t workspace_bytes() const { return free_memory_bytes(device_) / 10 * 8; }

  /// Rows of length n_g that a scratch array may have: at most 4 GB of them.
  std::int64_t rows_that_fit(const char* what) const {
    const std::int64_t budget = std::min<std::int64_t>(workspace_bytes(), std::int64_t{4} << 30);
    return std::min(n_pairs(), items_that_fit(budget, 0, 16 * n_g_, what));
  }

  /// Calls use(first, count, w_p M_p) for consecutive chunks of pairs.
  template <typename Use>
  void for_each_scaled_chunk(const std::vector<double2>& weight, Use use) {
    constexpr const char* kWhat = "weighted pair products";
    const DeviceBuffer<double2> w(weight, kWhat);
    const std::int64_t chunk = rows_that_fit(kWhat);
    DeviceBuffer<double2> scaled(static_cast<std::size_t>(chunk * n_g_), kWhat);
    check(cudaDeviceSynchronize(), kWhat);
    for (std::int64_t first = 0; first < n_pairs(); first += chunk) {
      const std::int64_t count = std::min(chunk, n_pairs() - first);
      for_each_index(
          count * n_g_,
          ScaleRows{products_.data() + first * n_g_, w.data() + first, n_g_, scaled.data()}, kWhat,
          stream_.get());
      use(first, count, scaled.data());
    }
    check(cudaStreamSynchronize(stream_.get()), kWhat);
  }

  Device device_;
  quasi::cuda::Stream stream_, preparation_;
  quasi::cuda::CublasHandle blas_;
  quasi::cuda::CusolverHandle solver_;
  cuda::PairProducts pairs_;
  DeviceBuffer<double2> products_;  ///< [n_left][n_right][n_g]
  std::int64_t n_left_ = 0, n_right_ = 0, n_g_ = 0;
  mutable cuda::StagedCopy staging_;
  DeviceBuffer<double2> chi_, chi_w_;
  DeviceBuffer<double>
      chi_real_;  ///< triangle of what was added in real arithmetic; empty: nothing was
  std::int64_t chi_n_ = 0, chi_w_n_ = 0;
  std::shared_ptr<const CudaPoleModel> poles_;
  DeviceBuffer<ImaginaryPole> imaginary_;
  cuda::PoleModelOnDevice model_;
  FinitePoles finite_poles_;
  PoleRules rules_;
};

}  // namespace

std::unique_ptr<GwKernels> make_gw_kernels_cuda(const Device& device) {
  return std::make_unique<CudaGwKernels>(device);
}

}  // namespace quasi::gw
