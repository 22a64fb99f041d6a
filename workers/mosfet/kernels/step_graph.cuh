#pragma once

#include <cuda_runtime.h>

#include "workers/backend/device/check_cuda.cuh"

namespace quasi::mosfet::cuda {

/// Owns the CUDA graph of one time step, which starts all its kernels with one launch.
class StepGraph {
 public:
  StepGraph() = default;
  ~StepGraph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Records the work that `work` gives to `stream` as a graph.
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
  /// Starts the graph on a stream.
  void launch(cudaStream_t stream) const {
    quasi::cuda::check(cudaGraphLaunch(graph_, stream), "one step");
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace quasi::mosfet::cuda
