#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "workers/thermal/kernels/renormalisation/batched_product.hpp"
#include "workers/thermal/kernels/renormalisation/static_bubble_kernels.hpp"
#include "workers/thermal/kernels/renormalisation/static_bubble_sums.hpp"
#include "workers/thermal/kernels/sample_layout.hpp"

namespace quasi::thermal {

/// Blocks of third order, sorted by the place in the box of ΔR to which they add
/// (docs/theory/thermal.md 14.1).
struct BubbleTargets {
  std::vector<int> first;            ///< [n_targets + 1] where the blocks of a target begin
  std::vector<std::int64_t> offset;  ///< [n_targets] of element 0 in the box
  std::vector<int> block;            ///< [n_blocks]
  std::vector<int> third_cell;       ///< [n_blocks][3] R'' in the order of the transform

  explicit BubbleTargets(const Fc3Transform& t) {
    std::map<std::int64_t, std::vector<int>> blocks;
    const std::int64_t nb = t.nb;
    for (int b = 0; b < static_cast<int>(t.n_blocks); ++b) {
      const auto at = static_cast<std::size_t>(b);
      const std::int64_t third = t.target[at] % nb, second = t.target[at] / nb % nb,
                         place = t.target[at] / nb / nb;
      blocks[((place * nb + second) * nb + t.first_component[at]) * nb + third].push_back(b);
      const Index3& cell = t.third_cells[static_cast<std::size_t>(t.third_cell[at])];
      third_cell.insert(third_cell.end(), cell.begin(), cell.end());
    }
    first.push_back(0);
    for (const auto& [place, own] : blocks) {
      offset.push_back(place);
      block.insert(block.end(), own.begin(), own.end());
      first.push_back(static_cast<int>(block.size()));
    }
  }
};

/// The steps of StaticBubbleKernels as dense products over batches of planes of the mesh, for back
/// ends with fast products of many small matrices. See docs/theory/thermal.md 14.1 for the
/// equations.
/// @tparam OnDevice  as in SelfConsistencyFlow, and Products with multiply(BatchedProduct) in place
///                   of an eigensolver
template <typename OnDevice>
class StaticBubbleFlow : public StaticBubbleKernels {
 public:
  /// @param work_bytes  aim for the size of the work arrays. Batches depend on it alone, so that
  ///                    bits do not depend on the free memory.
  explicit StaticBubbleFlow(const Device& device, std::int64_t work_bytes = std::int64_t{1} << 30)
      : device_(device), work_bytes_(work_bytes) {}

  void load(const StaticBubbleProblem& problem) override {
    OnDevice::use(device_);
    held_.reset();
    const Fc3Transform& t = problem.transform;
    mesh_ = problem.mesh;
    nb_ = t.nb;
    scale_ = problem.scale;
    for (int d = 0; d < 3; ++d) extent_[d] = t.extent[d];
    const std::int64_t plane = 16 * plane_values();
    planes_ = static_cast<int>(std::clamp<std::int64_t>(work_bytes_ / plane, 1, mesh_.n[2]));
    OnDevice::require_room(device_, planes_ * plane + fixed_bytes(problem));
    held_.emplace(problem, planes_);
  }

  std::vector<std::complex<double>> matrices(const std::vector<std::int64_t>& points) override {
    OnDevice::use(device_);
    std::vector<std::complex<double>> result;
    for (const std::int64_t q : points) {
      fill_box(q);
      for (int k = 0; k < mesh_.n[2]; k += planes_) add_planes(q, k);
      OnDevice::for_each(square(), AddChunks{reinterpret_cast<const double*>(held_->sums.data()),
                                             OnDevice::kChunks, 2,
                                             reinterpret_cast<double*>(held_->total.data())});
      const std::vector<Complex<double>> sum =
          OnDevice::to_host(held_->total, static_cast<std::size_t>(square()));
      // sum is [x][x'] of Σ U_x g U*_x'.
      for (int x = 0; x < nb_; ++x)
        for (int y = 0; y < nb_; ++y) {
          const Complex<double> value = sum[static_cast<std::size_t>(y * nb_ + x)];
          result.emplace_back(-scale_ * value.re, -scale_ * value.im);
        }
    }
    return result;
  }

 private:
  template <typename T>
  using Input = typename OnDevice::template Input<T>;
  template <typename T>
  using Array = typename OnDevice::template Array<T>;
  using Values = Array<Complex<double>>;
  using Waves = Input<Complex<double>>;

  static std::vector<Complex<double>> plain(const std::vector<std::complex<double>>& values) {
    std::vector<Complex<double>> result;
    for (const auto& value : values) result.push_back({value.real(), value.imag()});
    return result;
  }
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

  struct Held {
    Held(const StaticBubbleProblem& p, std::int64_t planes) : Held(p, planes, sizes_of(p)) {}

    Input<double> omega, occupation, tensor;
    Waves vectors, roots[3], phase[3];
    BubbleTargets targets;
    Input<int> target_first, block, third_cell;
    Input<std::int64_t> target_offset;
    Values box, stage1, stage2, elements, half, second, squares, sums, total;
    Array<double> root;
    typename OnDevice::Products products;
    BubbleWeight weight;

   private:
    struct Sizes {
      std::int64_t cube, points, box, stage1, stage2;  ///< of one plane; the box is whole
    };
    static Sizes sizes_of(const StaticBubbleProblem& p) {
      const Index3& extent = p.transform.extent;
      const std::int64_t nb = p.transform.nb, cube = nb * nb * nb;
      const std::int64_t row = cube * extent[0];
      return {cube, std::int64_t{p.mesh.n[0]} * p.mesh.n[1], row * extent[1] * extent[2],
              row * extent[1], row * p.mesh.n[1]};
    }
    Held(const StaticBubbleProblem& p, std::int64_t planes, const Sizes& z)
        : omega(p.omega_rad_ps),
          occupation(p.occupation),
          tensor(p.transform.tensor),
          vectors(p.vectors),
          roots{Waves(plain(unit_roots(p.mesh.n[0]))), Waves(plain(unit_roots(p.mesh.n[1]))),
                Waves(plain(unit_roots(p.mesh.n[2])))},
          phase{Waves(plain(p.transform.phase[0])), Waves(plain(p.transform.phase[1])),
                Waves(plain(p.transform.phase[2]))},
          targets(p.transform),
          target_first(targets.first),
          block(targets.block),
          third_cell(targets.third_cell),
          target_offset(targets.offset),
          box(count(z.box)),
          stage1(count(planes * z.stage1)),
          stage2(count(planes * z.stage2)),
          elements(count(planes * z.points * z.cube)),
          half(count(planes * z.points * z.cube)),
          second(count(planes * z.points * p.transform.nb * p.transform.nb)),
          squares(count(planes * z.points * p.transform.nb * p.transform.nb)),
          sums(count(std::int64_t{OnDevice::kChunks} * p.transform.nb * p.transform.nb)),
          total(count(std::int64_t{p.transform.nb} * p.transform.nb)),
          root(count(planes * z.points * p.transform.nb * p.transform.nb)),
          weight{omega.data(), occupation.data(), p.inverse_kt_ps} {}
  };

  std::int64_t square() const { return std::int64_t{nb_} * nb_; }
  std::int64_t cube() const { return square() * nb_; }
  /// Returns the complex values of the work arrays for one plane of the mesh.
  std::int64_t plane_values() const {
    const std::int64_t points = std::int64_t{mesh_.n[0]} * mesh_.n[1];
    return cube() * extent_[0] * (extent_[1] + mesh_.n[1]) + points * (2 * cube() + 3 * square());
  }
  /// Returns the bytes of the arrays that do not depend on the number of planes.
  std::int64_t fixed_bytes(const StaticBubbleProblem& p) const {
    const std::int64_t box = cube() * p.transform.box_size();
    return 16 * (box + mesh_.size() * (square() + nb_) + (OnDevice::kChunks + 1) * square()) +
           (27 * 8 + 32) * p.transform.n_blocks;
  }

  void fill_box(std::int64_t q) {
    Held& h = *held_;
    FillBox body{.nb = nb_,
                 .c = {},
                 .phase = {{h.roots[0].data(), h.roots[1].data(), h.roots[2].data()},
                           {mesh_.n[0], mesh_.n[1], mesh_.n[2]}},
                 .target_first = h.target_first.data(),
                 .target_offset = h.target_offset.data(),
                 .block = h.block.data(),
                 .third_cell = h.third_cell.data(),
                 .tensor = h.tensor.data(),
                 .box = h.box.data()};
    mesh_.coordinates(q, body.c);
    OnDevice::for_each(27 * static_cast<std::int64_t>(h.targets.offset.size()), body);
  }

  /// Computes Σ_ΔR e^{ip·ΔR} of the box for p in planes k ≤ p_3 < k + n,
  /// [p][3κ'+β][3κ+α][3κ''+γ].
  void transform(int k, int n) {
    Held& h = *held_;
    const std::int64_t row = cube() * extent_[0], plane = row * extent_[1];
    h.products.multiply({.m = n,
                         .n = plane,
                         .k = extent_[2],
                         .a = h.phase[2].data() + std::int64_t{k} * extent_[2],
                         .a_stride = 0,
                         .b = h.box.data(),
                         .b_stride = 0,
                         .adjoint_b = false,
                         .c = h.stage1.data(),
                         .c_stride = 0,
                         .batch = 1});
    h.products.multiply({.m = mesh_.n[1],
                         .n = row,
                         .k = extent_[1],
                         .a = h.phase[1].data(),
                         .a_stride = 0,
                         .b = h.stage1.data(),
                         .b_stride = plane,
                         .adjoint_b = false,
                         .c = h.stage2.data(),
                         .c_stride = row * mesh_.n[1],
                         .batch = n});
    h.products.multiply({.m = mesh_.n[0],
                         .n = cube(),
                         .k = extent_[0],
                         .a = h.phase[0].data(),
                         .a_stride = 0,
                         .b = h.stage2.data(),
                         .b_stride = row,
                         .adjoint_b = false,
                         .c = h.elements.data(),
                         .c_stride = cube() * mesh_.n[0],
                         .batch = std::int64_t{n} * mesh_.n[1]});
  }

  /// Computes U_{x,s,s'} from the transform of the box, [p][s][x][s'].
  void contract(std::int64_t q, std::int64_t first, std::int64_t points) {
    Held& h = *held_;
    OnDevice::for_each(points * square(), GatherSecondPhonons{mesh_, nb_, q, first,
                                                              h.vectors.data(), h.second.data()});
    h.products.multiply({.m = nb_,
                         .n = square(),
                         .k = nb_,
                         .a = h.vectors.data() + first * square(),
                         .a_stride = square(),
                         .b = h.elements.data(),
                         .b_stride = cube(),
                         .adjoint_b = false,
                         .c = h.half.data(),
                         .c_stride = cube(),
                         .batch = points});
    h.products.multiply({.m = square(),
                         .n = nb_,
                         .k = nb_,
                         .a = h.half.data(),
                         .a_stride = cube(),
                         .b = h.second.data(),
                         .b_stride = square(),
                         .adjoint_b = true,
                         .c = h.elements.data(),
                         .c_stride = cube(),
                         .batch = points});
  }

  /// Adds the pairs of phonons at p and q + p of some planes.
  void add_planes(std::int64_t q, int k) {
    Held& h = *held_;
    const int n = std::min(planes_, mesh_.n[2] - k);
    const std::int64_t first = mesh_.index(0, 0, k),
                       points = std::int64_t{n} * mesh_.n[0] * mesh_.n[1];
    transform(k, n);
    contract(q, first, points);
    OnDevice::for_each(points * square(),
                       RootWeights{mesh_, nb_, q, first, h.weight, h.root.data()});
    OnDevice::for_each(points * cube(),
                       WeighElements{nb_, h.root.data(), h.elements.data(), h.half.data()});
    h.products.multiply({.m = nb_,
                         .n = nb_,
                         .k = square(),
                         .a = h.half.data(),
                         .a_stride = cube(),
                         .b = h.half.data(),
                         .b_stride = cube(),
                         .adjoint_b = true,
                         .c = h.squares.data(),
                         .c_stride = square(),
                         .batch = points});
    OnDevice::for_each(
        square() * OnDevice::kChunks,
        AddPoints{nb_, points, OnDevice::kChunks, k == 0, h.squares.data(), h.sums.data()});
  }

  Device device_;
  std::int64_t work_bytes_;
  std::optional<Held> held_;
  QMesh mesh_;
  int extent_[3] = {1, 1, 1};
  int nb_ = 0, planes_ = 1;
  double scale_ = 0.0;
};

}  // namespace quasi::thermal
