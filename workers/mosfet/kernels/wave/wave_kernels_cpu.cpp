#include <memory>
#include <utility>

#include "workers/backend/device/launch_cpu.hpp"
#include "workers/mosfet/kernels/wave/wave_kernels.hpp"
#include "workers/mosfet/kernels/wave/wave_noise_solver.hpp"
#include "workers/mosfet/kernels/wave/wave_solver.hpp"

namespace quasi::mosfet {
namespace {

/// The host as the machine of a WaveSolver.
class HostMachine {
 public:
  template <typename T>
  class Array {
   public:
    Array() = default;
    explicit Array(std::vector<T> values) : values_(std::move(values)) {}
    T* data() const { return const_cast<T*>(values_.data()); }
    std::size_t size() const { return values_.size(); }

   private:
    std::vector<T> values_;
  };
  template <typename T>
  Array<T> make(std::size_t count, const char*) const {
    return Array<T>(std::vector<T>(count));
  }
  template <typename T>
  Array<T> upload(const T* values, std::size_t count, const char*) const {
    return Array<T>(std::vector<T>(values, values + count));
  }
  template <typename T>
  std::vector<T> download(const T* from, std::size_t count, const char*) const {
    return std::vector<T>(from, from + count);
  }
  template <typename Body>
  void run(std::int64_t count, const Body& body, const char*) const {
    cpu::for_each_index(count, body);
  }
};

constexpr double kReal = sizeof(double), kComplex = sizeof(WaveValue);

// Returns the bytes of V, A, g and the slopes of cells, of tables of cells of H, and of levels and
// field.
double table_bytes(const WaveShape& s) {
  const auto cells = static_cast<double>(s.cells()), rows = static_cast<double>(s.rows()),
             nodes = static_cast<double>(s.nodes()), pairs = static_cast<double>(s.pairs()) * s.nx;
  const double faces = cells * (s.nx + 1) / s.nx, lines = cells / s.nx;
  return kReal * ((3.0 + kCellSlopes) * cells + faces + 3.0 * lines +
                  (3.0 + 2.0 * kCellEdges) * rows + nodes * nodes + pairs * (1.0 + s.nz) +
                  nodes * (s.nz + 2.0 * s.n_levels + 8.0) + static_cast<double>(s.size()));
}

// Returns the bytes of a number of vectors, and of the sums of inner products.
double gmres_bytes(const WaveShape& s, double vectors) {
  return kComplex * kWaveColumns *
         (kWaveRestart * static_cast<double>(kWaveDotParts + kWaveDotsAtOnce) +
          static_cast<double>(s.size()) * vectors);
}

}  // namespace

std::unique_ptr<WaveKernels> make_wave_kernels(const WaveProblem& problem, const Device& device) {
  if (device.backend == Backend::kCuda) return make_wave_kernels_cuda(problem, device);
  return std::make_unique<WaveSolver<HostMachine>>(problem, HostMachine{});
}

std::unique_ptr<WaveNoiseKernels> make_wave_noise_kernels(const WaveProblem& problem,
                                                          const WaveObservation& observation,
                                                          const Device& device) {
  if (device.backend == Backend::kCuda)
    return make_wave_noise_kernels_cuda(problem, observation, device);
  return std::make_unique<WaveNoiseSolver<HostMachine>>(problem, observation, HostMachine{});
}

double wave_bytes(const WaveShape& s, int directions) {
  const auto cells = static_cast<double>(s.cells()), rows = static_cast<double>(s.rows()),
             nodes = static_cast<double>(s.nodes()), pairs = static_cast<double>(s.pairs()) * s.nx;
  const double lines = cells / s.nx;
  const double work =
      kComplex *
      (static_cast<double>(kWaveWork + kWaveColumns) * cells +
       kWaveColumns * (kWaveEnds * lines + 9.0 * rows + pairs + (kInverseParts + 1) * nodes));
  return table_bytes(s) + work + gmres_bytes(s, directions + 5.0);
}

double wave_noise_bytes(const WaveShape& s, int directions) {
  constexpr double kRowArrays = 2.0 * kMoveMeans + 2.0 * kWaveColumns +
                                kWaveContacts * (kCellEdges + 2.0 + 4.0) + 2.0 * kMoveMeans;
  const auto cells = static_cast<double>(s.cells()), rows = static_cast<double>(s.rows()),
             nodes = static_cast<double>(s.nodes()), pairs = static_cast<double>(s.pairs()) * s.nx;
  const double work =
      kComplex * (static_cast<double>(kWaveWork + kWaveColumns + 2 * kWaveContacts) * cells +
                  kRowArrays * rows + 2.0 * cells / s.nx + kWaveContacts * pairs +
                  (kWaveColumns * (kInverseParts + 1.0) + kWaveContacts) * nodes);
  return table_bytes(s) + work + gmres_bytes(s, directions + 6.0);
}

}  // namespace quasi::mosfet
