#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/kernels/wave/wave_kernels.hpp"
#include "workers/mosfet/kernels/wave/wave_noise_kernels.hpp"

namespace quasi::mosfet {

std::unique_ptr<MosfetKernels> make_mosfet_kernels_cuda(const Device&) {
  throw BackendAbsent("this engine was built without the CUDA back end of the kind mosfet");
}

std::unique_ptr<BeamKernels> make_beam_kernels_cuda(const Device&) {
  throw BackendAbsent("this engine was built without the CUDA back end of the kind mosfet");
}

std::unique_ptr<WaveKernels> make_wave_kernels_cuda(const WaveProblem&, const Device&) {
  throw BackendAbsent("this engine was built without the CUDA back end of the kind mosfet");
}

std::unique_ptr<WaveNoiseKernels> make_wave_noise_kernels_cuda(const WaveProblem&,
                                                               const WaveObservation&,
                                                               const Device&) {
  throw BackendAbsent("this engine was built without the CUDA back end of the kind mosfet");
}

}  // namespace quasi::mosfet
