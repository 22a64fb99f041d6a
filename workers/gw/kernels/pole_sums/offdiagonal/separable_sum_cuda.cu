#include <algorithm>
#include <vector>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/offdiagonal_sum_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/pole_matrices_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "the off-diagonal sum's separable terms";

/// Adds the separable pairs term by term: Q of one term is made while the products of the term
/// before run. T holds a block of bands for all outer states, D = w T M† their products.
class TermByTerm {
 public:
  explicit TermByTerm(OffDiagonalSum& sum)
      : sum_(sum),
        block_(std::min(sum.n_right, items_that_fit(sum.work.bytes, 2 * 16 * sum.n_g * sum.n_g,
                                                    16 * sum.n_left * (sum.n_g + sum.n_m), kWhat))),
        // Q is made once for so many rows that it and the products take turns. The last block of
        // bands may be a smaller one.
        rows_(block_ == sum.n_right ? sum.n_left * block_ : block_),
        width_(sum.folded() ? folded_columns(rows_, sum.n_g) : sum.n_g),
        t_(static_cast<std::size_t>(sum.n_left * block_ * sum.n_g), "T of a separable term"),
        d_(static_cast<std::size_t>(sum.n_left * sum.n_m * block_), "D of a separable term"),
        coefficient_(sum.plan.coefficient, "coefficients of the separable terms") {
    for (DeviceBuffer<double2>& q : q_)
      q = DeviceBuffer<double2>(static_cast<std::size_t>(sum.n_g * sum.n_g),
                                "Q of a separable term");
    check(cudaDeviceSynchronize(), kWhat);
  }

  void add() {
    const SeparablePole& pole = sum_.plan.pole;
    const cudaStream_t preparation = sum_.work.preparation, products = sum_.work.products;
    const MakerShape maker = maker_shape(rows_);
    for (std::int64_t k = 0; k < pole.size(); ++k) {
      const int buffer = static_cast<int>(k % 2);
      used_[buffer].hold(preparation, kWhat);
      make_separable_matrix(sum_.input.model,
                            {pole.family, pole.node[static_cast<std::size_t>(k)], pole.constant},
                            sum_.folded() ? width_ : 0, q_[buffer].data(), maker, preparation);
      made_[buffer].record(preparation, kWhat);
      made_[buffer].hold(products, kWhat);
      for (std::int64_t band = 0; band < sum_.n_right; band += block_)
        add_bands(k, {band, std::min(band + block_, sum_.n_right)}, q_[buffer].data());
      used_[buffer].record(products, kWhat);
    }
    sum_.wait();
  }

 private:
  void add_bands(std::int64_t k, BandRange bands, const double2* q) {
    const std::int64_t n_left = sum_.n_left, n_g = sum_.n_g, count = bands.size();
    multiply_rows(bands, q);
    multiply_adjoint(sum_.work.blas, {.m = n_left,
                                      .n = sum_.n_m,
                                      .k = n_g,
                                      .alpha = sum_.terms.weight,
                                      .beta = 0.0,
                                      .a = {t_.data(), count * n_g},
                                      .b = sum_.ket_bands_of(bands.begin),
                                      .c = d_.data(),
                                      .c_stride = sum_.n_m,
                                      .a_step = n_g,
                                      .b_step = n_g,
                                      .c_step = n_left * sum_.n_m,
                                      .count = count});
    sum_.add_products(d_.data(),
                      coefficient_.data() + k * sum_.n_energies * sum_.n_right + bands.begin, count,
                      sum_.n_right);
    sum_.count_adjoint(count);
  }

  /// T[l][n in bands][G'] = M Q: one product if the block is everything, else one an outer state.
  void multiply_rows(BandRange bands, const double2* q) {
    const double2* m = sum_.input.products.products;
    const std::int64_t count = bands.size();
    if (count == sum_.n_right) {
      multiply_q(sum_.n_left * count, m, q, t_.data());
      return;
    }
    for (std::int64_t l = 0; l < sum_.n_left; ++l)
      multiply_q(count, m + (l * sum_.n_right + bands.begin) * sum_.n_g, q,
                 t_.data() + l * count * sum_.n_g);
  }

  /// T[rows][n_g] = M Q. Of a folded Q columns [begin, end) need its first `end` rows alone.
  void multiply_q(std::int64_t rows, const double2* m, const double2* q, double2* t) {
    const std::int64_t n_g = sum_.n_g;
    for (std::int64_t begin = 0; begin < n_g; begin += width_) {
      const std::int64_t end = std::min(n_g, begin + width_), depth = sum_.folded() ? end : n_g;
      const MatrixProduct product{.m = rows,
                                  .n = end - begin,
                                  .k = depth,
                                  .a = {m, n_g},
                                  .b = {q + begin, n_g},
                                  .c = t + begin,
                                  .c_stride = n_g};
      multiply(sum_.work.blas, sum_.options.products, product);
      sum_.measure_residual_once(product);
      sum_.count_flops(8.0 * static_cast<double>(rows * (end - begin)) *
                       static_cast<double>(depth));
    }
  }

  OffDiagonalSum& sum_;
  const std::int64_t block_, rows_, width_;
  DeviceBuffer<double2> q_[2], t_, d_;
  const DeviceBuffer<double> coefficient_;  ///< [K][n_energies][n_right]
  quasi::cuda::Event made_[2], used_[2];
};

/// Adds the separable pairs with many terms of a block of bands in one fused product.
class FusedTerms {
 public:
  explicit FusedTerms(OffDiagonalSum& sum)
      : sum_(sum),
        n_terms_(sum.plan.pole.size()),
        packed_count_(packed_size(sum.n_left, sum.n_g)),
        groups_(std::min((n_terms_ + kTermsPerGroup - 1) / kTermsPerGroup,
                         items_that_fit(sum.work.bytes / 2, 0, 16 * stored_size(sum.n_g), kWhat))),
        most_terms_(std::min(n_terms_, groups_ * kTermsPerGroup)),
        block_(std::min(
            sum.n_right,
            items_that_fit(sum.work.bytes, 16 * groups_ * stored_size(sum.n_g),
                           16 * (packed_count_ + most_terms_ * sum.n_left * (sum.n_g + sum.n_m)),
                           kWhat))),
        terms_(static_cast<std::size_t>(groups_ * stored_size(sum.n_g)), "separable terms"),
        packed_(static_cast<std::size_t>(block_ * packed_count_), "M of a block of bands, packed"),
        t_(static_cast<std::size_t>(block_ * most_terms_ * sum.n_left * sum.n_g),
           "T of the separable terms"),
        d_(static_cast<std::size_t>(block_ * most_terms_ * sum.n_left * sum.n_m),
           "D of the separable terms"),
        node_(sum.plan.pole.node, "separable terms") {
    check(cudaDeviceSynchronize(), kWhat);
  }

  void add() {
    for (std::int64_t first = 0; first < n_terms_; first += most_terms_)
      add_terms(first, std::min(most_terms_, n_terms_ - first));
  }

 private:
  /// Terms [first, first + count) of all bands.
  void add_terms(std::int64_t first, std::int64_t count) {
    const SeparablePole& pole = sum_.plan.pole;
    store_separable_terms(sum_.input.model,
                          {.family = pole.family,
                           .node = node_.data(),
                           .constant = pole.constant,
                           .first = first,
                           .n_terms = n_terms_},
                          (count + kTermsPerGroup - 1) / kTermsPerGroup, terms_.data(),
                          sum_.work.products);
    const DeviceBuffer<double> coefficient(coefficients(first, count),
                                           "coefficients of the separable terms");
    check(cudaDeviceSynchronize(), kWhat);
    for (std::int64_t band = 0; band < sum_.n_right; band += block_)
      add_bands({band, std::min(band + block_, sum_.n_right)}, count, coefficient.data());
    sum_.wait();
  }

  /// [n_energies][n_right][count]
  std::vector<double> coefficients(std::int64_t first, std::int64_t count) const {
    const std::int64_t pairs = sum_.n_energies * sum_.n_right;
    std::vector<double> c(static_cast<std::size_t>(pairs * count));
    for (std::int64_t k = 0; k < count; ++k)
      for (std::int64_t pair = 0; pair < pairs; ++pair)
        c[static_cast<std::size_t>(pair * count + k)] =
            sum_.plan.coefficient[static_cast<std::size_t>((first + k) * pairs + pair)];
    return c;
  }

  void add_bands(BandRange bands, std::int64_t n_terms, const double* coefficient) {
    const std::int64_t n_left = sum_.n_left, n_g = sum_.n_g, n_bands = bands.size();
    std::vector<const double2*> a, b;
    std::vector<double2*> to;
    for (std::int64_t n = 0; n < n_bands; ++n) {
      const DeviceMatrix m = sum_.bands_of(bands.begin + n);
      pack_for_fused_product(m, n_left, n_g, packed_.data() + n * packed_count_,
                             sum_.work.products);
      for (std::int64_t k = 0; k < n_terms; ++k) {
        a.push_back(t_.data() + (n * n_left * n_terms + k) * n_g);
        b.push_back(sum_.ket_bands_of(bands.begin + n).data);
        to.push_back(d_.data() + (n * n_terms + k) * n_left * sum_.n_m);
      }
    }
    launch_fused_product({.model = sum_.input.model,
                          .rules = sum_.input.rules,
                          .packed = packed_.data(),
                          .n_left = n_left,
                          .n_bands = n_bands,
                          .n_energies = n_terms,
                          .factor = PoleFactor::kStored,
                          .stored = terms_.data(),
                          .t = t_.data()},
                         sum_.work.products);
    multiply_adjoint(sum_.work.blas,
                     {.m = n_left,
                      .n = sum_.n_m,
                      .k = n_g,
                      .alpha = sum_.terms.weight,
                      .a_stride = n_terms * n_g,
                      .b_stride = sum_.n_right * n_g,
                      .c_stride = sum_.n_m,
                      .a = a,
                      .b = b,
                      .c = to},
                     sum_.work.products);
    sum_.add_products(d_.data(), coefficient + bands.begin * n_terms, n_bands * n_terms,
                      sum_.n_right * n_terms);
    sum_.count_adjoint(n_bands * n_terms);
    sum_.count_flops(8.0 * static_cast<double>(n_left * n_bands * n_terms) * sum_.fused_depths());
  }

  OffDiagonalSum& sum_;
  const std::int64_t n_terms_, packed_count_, groups_, most_terms_, block_;
  DeviceBuffer<double2> terms_, packed_, t_, d_;
  const DeviceBuffer<double> node_;
};

}  // namespace

void add_separable_pairs(OffDiagonalSum& sum) {
  if (sum.plan.pole.size() == 0) return;
  if (sum.fused_pays() && 16 * stored_size(sum.n_g) <= sum.work.bytes / 2)
    FusedTerms(sum).add();
  else
    TermByTerm(sum).add();
}

}  // namespace quasi::gw::cuda
