#pragma once

namespace quasi {

/// Gives BLAS one thread, until a ThreadedBlas asks for more.
///
/// The kinds call BLAS on many small matrices, inside and between parallel regions of OpenMP. With
/// threads of its own, BLAS waits for cores on which idle threads of OpenMP spin, and each small
/// call takes milliseconds. Every task calls this before its work starts.
void use_one_blas_thread();

/// Lets BLAS use as many threads as OpenMP while the object lives. Small work, and work inside a
/// parallel region, keep the number of threads. The bits of products may depend on this number.
class ThreadedBlas {
 public:
  /// @param flop  floating-point operations of the work, which decide whether threads pay
  explicit ThreadedBlas(double flop);
  ~ThreadedBlas();
  ThreadedBlas(const ThreadedBlas&) = delete;
  ThreadedBlas& operator=(const ThreadedBlas&) = delete;

 private:
  bool counts_ = false;  ///< whether the object changed, or kept, the number of threads
};

}  // namespace quasi
