#include "workers/gw/kernels/polarizability/partial_chi.hpp"

#include <algorithm>
#include <stdexcept>

namespace quasi::gw {

void HostChi::add(const PartialChi& part) {
  const auto* other = dynamic_cast<const HostChi*>(&part);
  if (other == nullptr || other->shape() != shape())
    throw std::logic_error("parts of χ with different shapes or devices cannot be added");
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other->values_[i];
}

void HostChi::read(Cplx* to) const { std::copy(values_.begin(), values_.end(), to); }

std::vector<Cplx> HostChi::diagonal() const {
  const std::int64_t n = shape().n_static;
  std::vector<Cplx> values(static_cast<std::size_t>(n));
  for (std::int64_t g = 0; g < n; ++g)
    values[static_cast<std::size_t>(g)] = values_[static_cast<std::size_t>(g * (n + 1))];
  return values;
}

std::vector<Cplx> HostChi::corner(std::int64_t edge) const {
  std::vector<Cplx> values;
  for (std::int64_t g = 0; g < edge; ++g)
    values.insert(values.end(), values_.begin() + g * shape().n_static,
                  values_.begin() + g * shape().n_static + edge);
  return values;
}

}  // namespace quasi::gw
