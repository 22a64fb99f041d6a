#include <memory>
#include <utility>

#include "workers/backend/device/launch_cpu.hpp"
#include "workers/mosfet/kernels/wave/wave_kernels.hpp"
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

}  // namespace

std::unique_ptr<WaveKernels> make_wave_kernels(const WaveProblem& problem, const Device& device) {
  if (device.backend == Backend::kCuda) return make_wave_kernels_cuda(problem, device);
  return std::make_unique<WaveSolver<HostMachine>>(problem, HostMachine{});
}

double wave_bytes(const WaveShape& s, int directions) {
  constexpr double kReal = sizeof(double), kComplex = sizeof(WaveValue);
  const auto cells = static_cast<double>(s.cells()), rows = static_cast<double>(s.rows()),
             nodes = static_cast<double>(s.nodes()), pairs = static_cast<double>(s.pairs()) * s.nx;
  const double faces = cells * (s.nx + 1) / s.nx, lines = cells / s.nx;
  // V, A, g and the slopes of cells; tables of cells of H; levels and field.
  const double tables =
      kReal * ((3.0 + kCellSlopes) * cells + faces + 3.0 * lines + (3.0 + 2.0 * kCellEdges) * rows +
               nodes * nodes + pairs * (1.0 + s.nz) + nodes * (s.nz + 2.0 * s.n_levels + 8.0) +
               static_cast<double>(s.size()));
  const double work =
      kComplex *
      (static_cast<double>(kWaveWork + kWaveColumns) * cells +
       kWaveColumns * (kWaveEnds * lines + 9.0 * rows + pairs + (kInverseParts + 1) * nodes));
  const double products =
      kComplex * kWaveRestart * kWaveColumns * static_cast<double>(kWaveDotParts + kWaveDotsAtOnce);
  return tables + work + products +
         kComplex * kWaveColumns * static_cast<double>(s.size()) * (directions + 5.0);
}

}  // namespace quasi::mosfet
