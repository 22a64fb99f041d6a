#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

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

UnsetVector<double> packed_values(const ChiShape& shape, const Cplx* values) {
  const bool real = all_real(shape, values);
  UnsetVector<double> packed(static_cast<std::size_t>(1 + (real ? 1 : 2) * packed_size(shape)));
  double* const data = packed.data();
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
  return packed;
}

Piece piece_from(UnsetVector<double> values) {
  auto owner = std::make_shared<const UnsetVector<double>>(std::move(values));
  const double* const data = owner->data();
  const std::size_t count = owner->size();
  return {.owner = std::move(owner), .data = data, .count = count};
}

/// Packs χ of any kind, on its device where that can pack it.
UnsetVector<double> packed_values_of(const PartialChi& chi) {
  if (auto triangle = chi.packed_triangle()) return std::move(*triangle);
  if (const auto* there = dynamic_cast<const HostChi*>(&chi))
    return packed_values(chi.shape(), there->values());
  UnsetVector<Cplx> values(static_cast<std::size_t>(chi.shape().size()));
  chi.read(values.data());
  return packed_values(chi.shape(), values.data());
}

Piece packed_from(const PartialChi& chi) {
  if (const auto* packed = dynamic_cast<const PackedSum*>(&chi))
    return piece_from(packed->values());
  return piece_from(packed_values_of(chi));
}

/// True for a real triangle of χ(0) alone, which a device takes as it is.
bool is_triangle(const ChiShape& shape, bool real) { return real && shape.n_frequencies == 0; }

}  // namespace

PackedChi::PackedChi(const PartialChi& chi) : shape_(chi.shape()), piece_(packed_from(chi)) {}

PackedChi::PackedChi(const ChiShape& shape, UnsetVector<double> values)
    : shape_(shape), piece_(piece_from(std::move(values))) {}

PackedSum::PackedSum(const ChiShape& shape, const Cplx* values)
    : PartialChi(shape), values_(packed_values(shape, values)) {}

PackedSum::PackedSum(const PartialChi& chi)
    : PartialChi(chi.shape()), values_(packed_values_of(chi)) {}

PackedSum::PackedSum(const ChiShape& shape, const Piece& piece)
    : PartialChi(shape), values_(piece.count) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < piece.count; ++i) values_[i] = piece.data[i];
}

void PackedSum::add(const PartialChi& part) {
  const auto* other = dynamic_cast<const PackedSum*>(&part);
  if (other == nullptr || other->shape() != shape())
    throw std::logic_error("parts of χ with different shapes or forms cannot be added");
  if (is_real() && !other->is_real()) {
    UnsetVector<double> complex(other->values_.size());
    complex[0] = 0.0;
#pragma omp parallel for schedule(static)
    for (std::size_t i = 1; i < values_.size(); ++i) {
      complex[2 * i - 1] = values_[i];
      complex[2 * i] = 0.0;
    }
    values_ = std::move(complex);
  }
  const std::size_t step = is_real() == other->is_real() ? 1 : 2;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 1; i < other->values_.size(); ++i)
    values_[step * (i - 1) + 1] += other->values_[i];
}

void PackedSum::read(Cplx* to) const {
  const std::int64_t n = shape().n_static;
  for_each_row(shape(), [&](std::int64_t first, std::int64_t from, std::int64_t count) {
    if (first < shape().static_size()) std::fill_n(to + first - first % n, first % n, Cplx{});
    for (std::int64_t i = 0; i < count; ++i)
      to[first + i] = is_real() ? Cplx{values_[static_cast<std::size_t>(1 + from + i)]}
                                : Cplx{values_[static_cast<std::size_t>(1 + 2 * (from + i))],
                                       values_[static_cast<std::size_t>(2 + 2 * (from + i))]};
  });
}

Cplx PackedSum::at(std::int64_t row, std::int64_t column) const {
  const auto place =
      static_cast<std::size_t>(row * shape().n_static - row * (row - 1) / 2 + column - row);
  return is_real() ? Cplx{values_[1 + place]}
                   : Cplx{values_[1 + 2 * place], values_[2 + 2 * place]};
}

std::vector<Cplx> PackedSum::diagonal() const {
  std::vector<Cplx> values;
  for (std::int64_t g = 0; g < shape().n_static; ++g) values.push_back(at(g, g));
  return values;
}

std::vector<Cplx> PackedSum::corner(std::int64_t edge) const {
  std::vector<Cplx> values;
  for (std::int64_t g = 0; g < edge; ++g)
    for (std::int64_t h = 0; h < edge; ++h) values.push_back(g <= h ? at(g, h) : Cplx{});
  return values;
}

PackedChi packed(std::unique_ptr<PartialChi> chi) {
  const ChiShape shape = chi->shape();
  if (auto* sum = dynamic_cast<PackedSum*>(chi.get())) return {shape, sum->take_values()};
  return PackedChi(*chi);
}

std::unique_ptr<PartialChi> unpacked(std::unique_ptr<PartialChi> chi,
                                     PolarizabilityKernels& kernels) {
  const auto* packed = dynamic_cast<const PackedSum*>(chi.get());
  if (packed == nullptr) return chi;
  const ChiShape shape = chi->shape();
  if (is_triangle(shape, packed->is_real()))
    return kernels.load_triangle(shape.n_static, packed->values().data() + 1);
  UnsetVector<Cplx> values(static_cast<std::size_t>(shape.size()));
  chi->read(values.data());
  chi = {};  // its memory is free before the device's copy is made
  return kernels.load(shape, values.data());
}

std::unique_ptr<PackedSum> weighted_triangle(const std::vector<const PackedChi*>& list,
                                             const std::vector<double>& factors) {
  const ChiShape shape = list.front()->shape();
  for (const PackedChi* chi : list)
    if (!is_triangle(shape, chi->is_real())) return nullptr;
  const auto n = static_cast<std::size_t>(triangle_size(shape.n_static));
  UnsetVector<double> sum(1 + n);
  sum[0] = 1.0;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n; ++i) {
    double value = 0.0;
    for (std::size_t p = 0; p < list.size(); ++p)
      value += factors[p] * list[p]->piece().data[1 + i];
    sum[1 + i] = value;
  }
  return std::make_unique<PackedSum>(shape, std::move(sum));
}

std::unique_ptr<PartialChi> weighted_triangle(const std::vector<const PackedChi*>& list,
                                              const std::vector<double>& factors,
                                              PolarizabilityKernels& kernels) {
  const auto sum = weighted_triangle(list, factors);
  if (sum == nullptr) return nullptr;
  return kernels.load_triangle(sum->shape().n_static, sum->values().data() + 1);
}

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
