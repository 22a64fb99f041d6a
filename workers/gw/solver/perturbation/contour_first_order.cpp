#include "workers/gw/solver/perturbation/contour_first_order.hpp"

#include <algorithm>

#include "workers/gw/kernels/pole_sums/first_order/first_order_form.hpp"
#include "workers/gw/solver/perturbation/contour_differences.hpp"

namespace quasi::gw {
namespace {

/// Adds one part of the bands at one q to the first order of Σ, frequency by frequency.
class ContourPart {
 public:
  ContourPart(const ContourScreening& screening, const FirstOrderPairs& pairs,
              std::span<const double> energies_ry, const Device& device, View<Cplx, 4> sums)
      : w_(screening.at_q()),
        differences_(screening.grid(), pairs, energies_ry),
        pairs_(pairs),
        device_(device),
        sums_(sums) {}

  void add_whole(const FirstOrderProducts& products) const {
    const std::int64_t n = products.bra.n_g();
    for (std::size_t f = 0; f < differences_.n_frequencies(); ++f) {
      if (!differences_.uses(f)) continue;
      const UnsetVector<Cplx> matrix = screened_matrix(w_.at, f, w_.wings);
      add({.matrix = view<const Cplx>(matrix, n, n), .diagonal = {}, .factor = {}}, unit(f),
          products, sums_);
    }
  }

  /// W(ω) = C inner(ω) C† + s(ω) R + diag d(ω). R acts once, on the sum of s(ω).
  void add_in_subspace(const ContourProducts& products) const {
    const SubspaceOfW& s = w_.subspace;
    add_rest(products.whole);
    for (std::size_t f = 0; f < differences_.n_frequencies(); ++f) {
      if (!differences_.uses(f)) continue;
      if (!s.diagonal.empty() && !s.diagonal[f].empty())
        add({.matrix = {}, .diagonal = view<const Cplx>(s.diagonal[f], s.n), .factor = {}}, unit(f),
            products.whole, sums_);
      if (!s.inner[f].empty())
        add({.matrix = view<const Cplx>(s.inner[f], s.n_b, s.n_b), .diagonal = {}, .factor = {}},
            unit(f), *products.projected, sums_);
    }
  }

 private:
  std::vector<double> unit(std::size_t frequency) const {
    std::vector<double> weight(differences_.n_frequencies());
    weight[frequency] = 1.0;
    return weight;
  }

  void add(FirstOrderForm form, const std::vector<double>& weight,
           const FirstOrderProducts& products, View<Cplx, 4> sums) const {
    const std::vector<double> factor = differences_.of(weight);
    form.factor = view<const double>(factor, sums.extent[1], pairs_.bra.size(), pairs_.part.size());
    add_first_order_form(device_, products, pairs_, form, sums);
  }

  void add_rest(const FirstOrderProducts& products) const {
    const SubspaceOfW& s = w_.subspace;
    for (const bool imaginary : {false, true}) {
      std::vector<double> weight;
      for (std::size_t f = 0; f < differences_.n_frequencies(); ++f)
        weight.push_back(!differences_.uses(f) ? 0.0
                         : imaginary           ? s.share[f].imag()
                                               : s.share[f].real());
      if (std::all_of(weight.begin(), weight.end(), [](double value) { return value == 0.0; }))
        continue;
      std::vector<Cplx> part(static_cast<std::size_t>(sums_.size()));
      add({.matrix = view<const Cplx>(s.rest, s.n, s.n), .diagonal = {}, .factor = {}}, weight,
          products,
          {part.data(), {sums_.extent[0], sums_.extent[1], sums_.extent[2], sums_.extent[3]}});
      for (std::size_t i = 0; i < part.size(); ++i)
        sums_.data[i] += imaginary ? Cplx(0.0, 1.0) * part[i] : part[i];
    }
  }

  FrequencyDependentW w_;
  ContourDifferences differences_;
  const FirstOrderPairs& pairs_;
  const Device& device_;
  View<Cplx, 4> sums_;
};

}  // namespace

void add_contour_first_order(const ContourScreening& screening, const ContourProducts& products,
                             const FirstOrderPairs& pairs, std::span<const double> energies_ry,
                             const Device& device, View<Cplx, 4> sums) {
  const ContourPart part(screening, pairs, energies_ry, device, sums);
  if (products.projected != nullptr)
    part.add_in_subspace(products);
  else
    part.add_whole(products.whole);
}

}  // namespace quasi::gw
