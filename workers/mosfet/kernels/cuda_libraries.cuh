#pragma once

#include <cublas_v2.h>

#include <string>

#include "workers/backend/device/check_cuda.cuh"

/// Owners of CUDA's streams, graphs and cuBLAS handle.
namespace quasi::mosfet::cuda {

inline void check_blas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceLost(std::string(what) + ": cuBLAS status " + std::to_string(status));
}

/// Whose blocks go first where both have some to place.
enum class Urgency { kFirst, kBeside };

class Stream {
 public:
  explicit Stream(Urgency urgency) {
    int last = 0, first = 0;
    quasi::cuda::check(cudaDeviceGetStreamPriorityRange(&last, &first), "stream");
    quasi::cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                                    urgency == Urgency::kFirst ? first : last),
                       "stream");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream's order of work that another stream can wait for.
class Event {
 public:
  Event() {
    quasi::cuda::check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) const {
    quasi::cuda::check(cudaEventRecord(event_, stream), "event");
  }
  void hold(cudaStream_t stream) const {
    quasi::cuda::check(cudaStreamWaitEvent(stream, event_, 0), "event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The kernels of one time step as one launch.
class StepGraph {
 public:
  StepGraph() = default;
  ~StepGraph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  template <typename Work>
  void capture(cudaStream_t stream, const Work& work) {
    quasi::cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                       "graph capture");
    work();
    cudaGraph_t graph = nullptr;
    quasi::cuda::check(cudaStreamEndCapture(stream, &graph), "graph capture");
    const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    quasi::cuda::check(made, "graph of one step");
  }
  void launch(cudaStream_t stream) const {
    quasi::cuda::check(cudaGraphLaunch(graph_, stream), "one step");
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

/// cuBLAS on a stream.
class LinearAlgebra {
 public:
  LinearAlgebra() { check_blas(cublasCreate(&blas_), "cuBLAS"); }
  ~LinearAlgebra() { cublasDestroy(blas_); }
  LinearAlgebra(const LinearAlgebra&) = delete;
  LinearAlgebra& operator=(const LinearAlgebra&) = delete;

  void use(cudaStream_t stream) { check_blas(cublasSetStream(blas_, stream), "cuBLAS"); }
  cublasHandle_t blas() const { return blas_; }

 private:
  cublasHandle_t blas_ = nullptr;
};

}  // namespace quasi::mosfet::cuda
