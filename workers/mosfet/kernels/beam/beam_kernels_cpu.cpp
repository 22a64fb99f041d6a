#include <utility>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"

namespace quasi::mosfet {
namespace {

class CpuBeamKernels : public BeamKernels {
 public:
  void load(const BeamProblem& problem) override {
    loaded_ = std::make_unique<Loaded>(problem);
    solution_ = {};
  }

  BeamNorm norm() const override { return BeamNorm::kElectrons; }

  BeamMean solve(double tolerance, int max_sweeps, const std::vector<double>& start) override {
    solution_ =
        solve_beam(loaded_->problem, loaded_->scattering, {tolerance, max_sweeps, norm()}, start);
    return solution_;
  }

  std::vector<double> sheet_density() override {
    return beam_sheet_density(loaded_->geometry, solution_.g);
  }

  BeamFluxes fluxes() override {
    return beam_fluxes(loaded_->geometry, loaded_->scattering, loaded_->problem, solution_.g);
  }

  std::vector<double> distribution() override { return solution_.g; }

 private:
  struct Loaded {
    explicit Loaded(const BeamProblem& p)
        : geometry(make_beam_geometry(p.grid, p.levels)),
          scattering(geometry, p.levels, p.processes, p.overlap, p.level_of,
                     {p.filling, p.roughness, p.relaxation_fs}),
          inflow(p.inflow),
          problem(geometry, scattering, inflow, p.order) {}
    BeamGeometry geometry;
    BeamScattering scattering;
    BeamInflow inflow;
    BeamOperator problem;
  };

  std::unique_ptr<Loaded> loaded_;
  BeamSolution solution_;
};

}  // namespace

std::unique_ptr<BeamKernels> make_beam_kernels(const Device& device) {
  if (device.backend == Backend::kCuda) return make_beam_kernels_cuda(device);
  return std::make_unique<CpuBeamKernels>();
}

double beam_bytes(double cells, double rows, double elastic_tables) {
  // Each cell has V, A, g of two branches and the work of its line. Each cell of H has rates, gain,
  // and the 40 directions of GMRES.
  return 8.0 * ((4.0 + kBeamLineWork) * cells + (60.0 + elastic_tables) * rows);
}

}  // namespace quasi::mosfet
