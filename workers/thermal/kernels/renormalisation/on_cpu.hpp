#pragma once

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/renormalisation/batched_product.hpp"

namespace quasi::thermal {

/// Back end of SelfConsistencyFlow and StaticBubbleFlow (docs/theory/thermal.md 14) on the CPU.
/// @tparam chunks  pieces of a long sum; tests take as many as the GPU does
template <int chunks = 1>
struct RenormalisationOnCpu {
  static constexpr int kChunks = chunks;

  /// A view of a host vector, or a vector of its own.
  template <typename T>
  class Input {
   public:
    explicit Input(const std::vector<T>& from) : data_(from.data()) {}
    explicit Input(std::vector<T>&& from) : own_(std::move(from)), data_(own_.data()) {}
    const T* data() const { return data_; }

   private:
    std::vector<T> own_;
    const T* data_;
  };
  template <typename T>
  class Array {
   public:
    explicit Array(std::size_t n) : values_(n) {}
    void set(const std::vector<T>& values) { values_ = values; }
    T* data() { return values_.data(); }
    const T* data() const { return values_.data(); }

   private:
    std::vector<T> values_;
  };

  class Eigensolver {
   public:
    Eigensolver(int nb, std::int64_t n_matrices) : nb_(nb), n_matrices_(n_matrices) {}
    void diagonalise(Array<Complex<double>>& matrices, Array<double>& values) const {
      lapack_int worst = 0;
#pragma omp parallel for schedule(static) reduction(max : worst)
      for (std::int64_t i = 0; i < n_matrices_; ++i) {
        const lapack_int info =
            LAPACKE_zheev(LAPACK_COL_MAJOR, 'V', 'U', nb_,
                          reinterpret_cast<lapack_complex_double*>(matrices.data() + i * nb_ * nb_),
                          nb_, values.data() + i * nb_);
        if (info != 0) worst = std::max(worst, std::abs(info));
      }
      if (worst != 0)
        throw NotConverged("diagonalising a dynamical matrix failed (LAPACK info " +
                           std::to_string(worst) + ")");
    }

   private:
    int nb_;
    std::int64_t n_matrices_;
  };

  class Products {
   public:
    void multiply(const BatchedProduct& p) const {
      constexpr Complex<double> one{1.0, 0.0}, zero{0.0, 0.0};
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < p.batch; ++i)
        cblas_zgemm(CblasRowMajor, CblasNoTrans, p.adjoint_b ? CblasConjTrans : CblasNoTrans,
                    static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k), &one,
                    p.a + i * p.a_stride, static_cast<int>(p.k), p.b + i * p.b_stride,
                    static_cast<int>(p.adjoint_b ? p.k : p.n), &zero, p.c + i * p.c_stride,
                    static_cast<int>(p.n));
    }
  };

  static void use(const Device&) {}
  static void require_room(const Device&, std::int64_t) {}
  template <typename Body>
  static void for_each(std::int64_t n, const Body& body) {
#pragma omp parallel for schedule(guided)
    for (std::int64_t i = 0; i < n; ++i) body(i);
  }
  template <typename T>
  static std::vector<T> to_host(const Array<T>& array, std::size_t n) {
    return {array.data(), array.data() + n};
  }
};

}  // namespace quasi::thermal
