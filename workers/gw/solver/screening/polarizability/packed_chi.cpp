#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"

#include <algorithm>
#include <memory>

namespace quasi::gw {
namespace {

/// Calls visit(first value of PartialChi::read, first packed value, number of values) for every
/// row of the triangle of χ(0) and of the whole χ(ω_i). Rows are visited by several threads.
template <typename Visit>
void for_each_row(const ChiShape& shape, const Visit& visit) {
  const std::int64_t n = shape.n_static, rows = n + shape.n_frequencies * shape.n;
#pragma omp parallel for schedule(static, 16)
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row < n)
      visit(row * n + row, row * n - row * (row - 1) / 2, n - row);
    else
      visit(n * n + (row - n) * shape.n, n * (n + 1) / 2 + (row - n) * shape.n, shape.n);
  }
}

std::int64_t packed_size(const ChiShape& shape) {
  return shape.n_static * (shape.n_static + 1) / 2 + shape.size() - shape.static_size();
}

bool all_real(const ChiShape& shape, const Cplx* values) {
  std::vector<char> real(static_cast<std::size_t>(shape.n_static + shape.n_frequencies * shape.n),
                         1);
  for_each_row(shape, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    // Rows of a triangle begin on the diagonal, those of whole matrices after n² values.
    const std::int64_t row = from < shape.static_size()
                                 ? from / std::max<std::int64_t>(1, shape.n_static)
                                 : shape.n_static + (from - shape.static_size()) / shape.n;
    static_cast<void>(to);
    for (std::int64_t i = from; i < from + count; ++i)
      if (values[i].imag() != 0.0) real[static_cast<std::size_t>(row)] = 0;
  });
  return std::all_of(real.begin(), real.end(), [](char row) { return row != 0; });
}

Piece packed_values(const ChiShape& shape, const Cplx* values) {
  const bool real = all_real(shape, values);
  const auto size = static_cast<std::size_t>(1 + (real ? 1 : 2) * packed_size(shape));
  auto packed = std::make_shared<UnsetVector<double>>(size);
  double* const data = packed->data();
  data[0] = real ? 1.0 : 0.0;
  for_each_row(shape, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    if (real)
      for (std::int64_t i = 0; i < count; ++i) data[1 + to + i] = values[from + i].real();
    else
      for (std::int64_t i = 0; i < count; ++i) {
        data[1 + 2 * (to + i)] = values[from + i].real();
        data[2 + 2 * (to + i)] = values[from + i].imag();
      }
  });
  return {.owner = std::move(packed), .data = data, .count = size};
}

Piece packed_from(const PartialChi& chi) {
  if (const auto* there = dynamic_cast<const HostChi*>(&chi))
    return packed_values(chi.shape(), there->values());
  UnsetVector<Cplx> values(static_cast<std::size_t>(chi.shape().size()));
  chi.read(values.data());
  return packed_values(chi.shape(), values.data());
}

}  // namespace

PackedChi::PackedChi(const PartialChi& chi) : shape_(chi.shape()), piece_(packed_from(chi)) {}

UnsetVector<Cplx> weighted_sum(const std::vector<const PackedChi*>& list,
                               const std::vector<double>& factors) {
  const ChiShape shape = list.front()->shape();
  UnsetVector<Cplx> sum(static_cast<std::size_t>(shape.size()));
  for_each_row(shape, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    const std::int64_t n = shape.n_static;
    const bool triangle = to < shape.static_size();
    if (triangle) std::fill_n(sum.begin() + to - to % n, to % n, Cplx{});
    std::fill_n(sum.begin() + to, count, Cplx{});
    for (std::size_t p = 0; p < list.size(); ++p) {
      const double* const data = list[p]->piece().data + 1;
      const double factor = factors[p];
      if (list[p]->is_real())
        for (std::int64_t i = 0; i < count; ++i)
          sum[static_cast<std::size_t>(to + i)] += factor * data[from + i];
      else
        for (std::int64_t i = 0; i < count; ++i)
          sum[static_cast<std::size_t>(to + i)] +=
              factor * Cplx{data[2 * (from + i)], data[2 * (from + i) + 1]};
    }
  });
  return sum;
}

}  // namespace quasi::gw
