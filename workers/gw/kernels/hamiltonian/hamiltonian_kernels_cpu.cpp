#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels_cpu.hpp"

#include "workers/gw/kernels/hamiltonian/block_algebra.hpp"

namespace quasi::gw {
namespace {

template <typename T>
class CpuStateBlock final : public StateBlock {
 public:
  explicit CpuStateBlock(const HamiltonianOperator& h) : h_(h), n_(h.size()) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(block_.size()) / n_; }

  void append(View<const double, 2> states) override {
    block_.insert(block_.end(), states.data, states.data + states.extent[0] * n_);
  }

  void filter(const ChebyshevFilter& filter, std::int64_t first) override {
    const SingleThreadedBlas guard;
    h_.filter(filter, from(first));
  }

  void orthonormalise(std::int64_t first) override {
    const SingleThreadedBlas guard;
    gw::orthonormalise(View<const T, 2>{block_.data(), {first, n_}}, from(first));
  }

  RitzPairs project(std::int64_t first) override {
    const SingleThreadedBlas guard;
    const auto x = from(first);
    const std::int64_t active = x.extent[0];
    const View<const T, 2> x_const{x.data, {active, n_}};
    std::vector<T> image(static_cast<std::size_t>(active * n_));
    const auto hx = view<T>(image, active, n_);
    h_.apply(x_const, hx);
    std::vector<T> small = overlaps(view<const T>(image, active, n_), x_const);
    RitzPairs pairs{.energy_ry = diagonalise(small, active), .residual_ry = {}};
    rotate(small, x);
    rotate(small, hx);
    pairs.residual_ry.resize(pairs.energy_ry.size());
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < active; ++i) {
      const double energy = pairs.energy_ry[static_cast<std::size_t>(i)];
      double sum = 0.0;
      for (std::int64_t g = 0; g < n_; ++g) sum += std::norm(hx(i, g) - energy * x(i, g));
      pairs.residual_ry[static_cast<std::size_t>(i)] = std::sqrt(sum);
    }
    return pairs;
  }

  std::vector<Cplx> read(std::int64_t count) const override {
    return {block_.begin(), block_.begin() + count * n_};
  }

 private:
  /// The states from `first` on.
  View<T, 2> from(std::int64_t first) { return {block_.data() + first * n_, {size() - first, n_}}; }

  const HamiltonianOperator& h_;
  std::int64_t n_;
  std::vector<T> block_;  ///< [size()][n_]
};

class CpuHamiltonian final : public LoadedHamiltonian {
 public:
  explicit CpuHamiltonian(const HamiltonianOperator& h) : h_(h) {}
  std::unique_ptr<StateBlock> make_block() override {
    if (h_.is_real()) return std::make_unique<CpuStateBlock<double>>(h_);
    return std::make_unique<CpuStateBlock<Cplx>>(h_);
  }
  void apply(View<const Cplx, 2> states, View<Cplx, 2> result) override {
    const SingleThreadedBlas guard;
    h_.apply(states, result);
  }
  double expand(const ChebyshevSeries& series, View<const Cplx, 2> states,
                View<Cplx, 3> result) override {
    const SingleThreadedBlas guard;
    return h_.expand(series, states, result);
  }
  double expand(const ChebyshevSeries& series, View<const double, 2> states,
                View<double, 3> result) override {
    const SingleThreadedBlas guard;
    return h_.expand(series, states, result);
  }
  void remove(View<const Cplx, 2> states, View<Cplx, 2> x) override { remove_from(states, x); }
  void remove(View<const double, 2> states, View<double, 2> x) override { remove_from(states, x); }

 private:
  template <typename T>
  static void remove_from(View<const T, 2> states, View<T, 2> x) {
    const SingleThreadedBlas guard;
    subtract(overlaps(View<const T, 2>{x.data, {x.extent[0], x.extent[1]}}, states), states, x);
  }
  const HamiltonianOperator& h_;
};

}  // namespace

std::unique_ptr<LoadedHamiltonian> CpuHamiltonianKernels::load(const HamiltonianOperator& h) {
  return std::make_unique<CpuHamiltonian>(h);
}

}  // namespace quasi::gw
