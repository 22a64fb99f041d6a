#include "workers/gw/kernels/pole_sums/first_order/first_order_form.hpp"

#include <algorithm>

#include "workers/gw/kernels/pair_products/pair_block_cpu.hpp"

namespace quasi::gw {

std::vector<double> weighted_factors(const FirstOrderForm& form, const FirstOrderPairs& pairs) {
  std::vector<double> factor(form.factor.data, form.factor.data + form.factor.size());
  for (double& value : factor) value *= pairs.weight;
  return factor;
}

std::vector<char> used_energies(const std::vector<double>& factor, std::int64_t n_energies) {
  std::vector<char> used;
  const auto size = std::ssize(factor) / n_energies;
  for (std::int64_t e = 0; e < n_energies; ++e)
    used.push_back(std::any_of(factor.begin() + e * size, factor.begin() + (e + 1) * size,
                               [](double value) { return value != 0.0; }));
  return used;
}

void add_first_order_form(const Device& device, const FirstOrderProducts& products,
                          const FirstOrderPairs& pairs, const FirstOrderForm& form,
                          View<Cplx, 4> sum) {
  if (device.backend != Backend::kCpu) return add_first_order_form_cuda(products, pairs, form, sum);
  const auto on_host = [](const PairBlock& block) {
    return dynamic_cast<const CpuPairBlock&>(block).view();
  };
  add_first_order_form_cpu({on_host(products.bra), on_host(products.ket)}, pairs, form, sum);
}

}  // namespace quasi::gw
