#pragma once

#include "quasi/v1/job_service.grpc.pb.h"
#include "server/api/access/admit.hpp"
#include "server/api/services.hpp"

namespace quasi::server {

/// Implements quasi.v1.JobService: each method checks its request, converts it and posts it to the
/// writer or a reader.
class JobServiceApi : public v1::JobService::CallbackService {
 public:
  explicit JobServiceApi(Services& services) : services_(services) {}

  grpc::ServerUnaryReactor* GetCapabilities(grpc::CallbackServerContext*,
                                            const v1::GetCapabilitiesRequest*,
                                            v1::GetCapabilitiesResponse*) override;
  grpc::ServerUnaryReactor* SubmitJobs(grpc::CallbackServerContext*, const v1::SubmitJobsRequest*,
                                       v1::SubmitJobsResponse*) override;
  grpc::ServerUnaryReactor* ValidateJobs(grpc::CallbackServerContext*,
                                         const v1::ValidateJobsRequest*,
                                         v1::ValidateJobsResponse*) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext*, const v1::GetJobRequest*,
                                   v1::GetJobResponse*) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext*, const v1::ListJobsRequest*,
                                     v1::ListJobsResponse*) override;
  grpc::ServerUnaryReactor* GetJobSet(grpc::CallbackServerContext*, const v1::GetJobSetRequest*,
                                      v1::GetJobSetResponse*) override;
  grpc::ServerUnaryReactor* ListJobSets(grpc::CallbackServerContext*, const v1::ListJobSetsRequest*,
                                        v1::ListJobSetsResponse*) override;
  grpc::ServerUnaryReactor* DeleteJobs(grpc::CallbackServerContext*, const v1::DeleteJobsRequest*,
                                       v1::DeleteJobsResponse*) override;
  grpc::ServerUnaryReactor* CancelJobs(grpc::CallbackServerContext*, const v1::CancelJobsRequest*,
                                       v1::CancelJobsResponse*) override;
  grpc::ServerUnaryReactor* HoldJobs(grpc::CallbackServerContext*, const v1::HoldJobsRequest*,
                                     v1::HoldJobsResponse*) override;
  grpc::ServerUnaryReactor* ReleaseJobs(grpc::CallbackServerContext*, const v1::ReleaseJobsRequest*,
                                        v1::ReleaseJobsResponse*) override;
  grpc::ServerUnaryReactor* ReprioritiseJobs(grpc::CallbackServerContext*,
                                             const v1::ReprioritiseJobsRequest*,
                                             v1::ReprioritiseJobsResponse*) override;
  grpc::ServerUnaryReactor* ExplainJob(grpc::CallbackServerContext*, const v1::ExplainJobRequest*,
                                       v1::ExplainJobResponse*) override;
  grpc::ServerUnaryReactor* GetUsage(grpc::CallbackServerContext*, const v1::GetUsageRequest*,
                                     v1::GetUsageResponse*) override;
  grpc::ServerWriteReactor<v1::WatchEvent>* WatchJobs(grpc::CallbackServerContext*,
                                                      const v1::WatchJobsRequest*) override;
  grpc::ServerWriteReactor<v1::ReadLogsResponse>* ReadLogs(grpc::CallbackServerContext*,
                                                           const v1::ReadLogsRequest*) override;
  grpc::ServerUnaryReactor* ListArtifacts(grpc::CallbackServerContext*,
                                          const v1::ListArtifactsRequest*,
                                          v1::ListArtifactsResponse*) override;
  grpc::ServerUnaryReactor* ListPools(grpc::CallbackServerContext*, const v1::ListPoolsRequest*,
                                      v1::ListPoolsResponse*) override;

 private:
  Services& services_;
};

/// These functions create the streams. Each stream has a file of its own in streams/.
grpc::ServerWriteReactor<v1::WatchEvent>* watch_jobs(Services&, grpc::CallbackServerContext*,
                                                     const v1::WatchJobsRequest&, const Admission&);
grpc::ServerWriteReactor<v1::ReadLogsResponse>* read_logs(Services&, grpc::CallbackServerContext*,
                                                          const v1::ReadLogsRequest&,
                                                          const Admission&);

}  // namespace quasi::server
