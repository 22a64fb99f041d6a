#include <algorithm>
#include <vector>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels_cpu.hpp"
#include "workers/gw/kernels/hamiltonian/local_coupling_cpu.hpp"

namespace quasi::gw {
namespace {

class CpuLocalPotentials final : public LoadedLocalPotentials {
 public:
  explicit CpuLocalPotentials(const LocalPotentials& from)
      : n_states_(from.states.extent[0]),
        n_pw_(from.states.extent[1]),
        states_(from.states.data, from.states.data + from.states.size()),
        source_(from.source.data, from.source.data + from.source.size()),
        values_(from.values.data, from.values.data + from.values.size()) {
    for (const Cplx& c : states_) conjugate_.push_back(std::conj(c));
  }

  void couple(BandRange kets, CouplingBlock& elements) const override {
    const std::int64_t count = kets.size(), n_d = std::ssize(source_) / n_pw_,
                       n_p = std::ssize(values_) / n_d;
    Cplx* const to_first = dynamic_cast<CpuCouplingBlock&>(elements).resize(n_p, n_states_, count);
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t p = 0; p < n_p; ++p) {
      std::vector<Cplx> applied(static_cast<std::size_t>(count * n_pw_));
      for (std::int64_t n = 0; n < count; ++n)
        for (std::int64_t d = 0; d < n_d; ++d) {
          const Cplx value = values_[static_cast<std::size_t>(p * n_d + d)];
          const Cplx* c = states_.data() + (kets.begin + n) * n_pw_;
          const std::int32_t* from = source_.data() + d * n_pw_;
          Cplx* to = applied.data() + n * n_pw_;
          for (std::int64_t g = 0; g < n_pw_; ++g)
            if (from[g] >= 0) to[g] += value * c[from[g]];
        }
      zgemm({.transpose_b = CblasTrans, .m = n_states_, .n = count, .k = n_pw_},
            {conjugate_.data(), n_pw_}, {applied.data(), n_pw_},
            {to_first + p * n_states_ * count, count});
    }
  }

 private:
  std::int64_t n_states_, n_pw_;
  std::vector<Cplx> states_, conjugate_;
  std::vector<std::int32_t> source_;
  std::vector<Cplx> values_;
};

}  // namespace

Cplx* CpuCouplingBlock::resize(std::int64_t n_p, std::int64_t n_bra, std::int64_t n_ket) {
  n_p_ = n_p;
  n_bra_ = n_bra;
  n_ket_ = n_ket;
  elements_.resize(static_cast<std::size_t>(size()));
  return elements_.data();
}

void CpuCouplingBlock::load(View<const Cplx, 3> elements) {
  std::copy(elements.data, elements.data + elements.size(),
            resize(elements.extent[0], elements.extent[1], elements.extent[2]));
}

void CpuCouplingBlock::read(View<Cplx, 3> elements) const {
  std::copy(elements_.begin(), elements_.end(), elements.data);
}

std::unique_ptr<CouplingBlock> CpuHamiltonianKernels::make_couplings() {
  return std::make_unique<CpuCouplingBlock>();
}

std::unique_ptr<const LoadedLocalPotentials> CpuHamiltonianKernels::load_potentials(
    const LocalPotentials& potentials) {
  return std::make_unique<const CpuLocalPotentials>(potentials);
}

}  // namespace quasi::gw
